package machine

// Unsafe says in what way a file system may lose what was made durable, or lets two machines write where one has a lock; it is empty for one that
// is not known to. name is the kernel's for it.
func Unsafe(path string) (name, reason string, err error) {
	kind, err := filesystem(path)
	if err != nil {
		return "", "", err
	}
	f := unsafe[kind]
	return f.name, f.reason, nil
}

// Reasons.
const (
	inMemory   = "is in memory: the machine forgets it when it is started again, and with it what was spent"
	remote     = "is on another machine, whose locks and caches do not keep a second server out"
	passesOn   = "passes calls on to another program or machine, which may keep no locks, or no promise that what is synced is durable"
	ofTheHost  = "is a folder of the machine's host, which does not see the locks of its guests"
	ofACluster = "is written by several machines"
)

type unsafeFS struct{ name, reason string }
