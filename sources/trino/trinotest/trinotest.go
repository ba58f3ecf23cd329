// Package trinotest starts Trino for tests: a coordinator and a worker, two processes on loopback, over a temporary folder that stands for the object store. They end with the
// process.
//
//	func TestMain(m *testing.M) { trinotest.Main(m) }
//
//	func TestX(t *testing.T) {
//		c := trinotest.Shared(t) // starts it at the first call
//		c.Exec(t, "CREATE TABLE iceberg.owner.t AS SELECT …")
//	}
//
// Tests that need it carry the build tag engines. scripts/trino.sh installs what it starts and prints the folder, for HOLDOUTD_TRINO.
package trinotest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The users that the cluster knows. It has no passwords: it listens on loopback alone.
const (
	Owner  = "owner"  // may do everything
	Loader = "loader" // reads the owner's tables, and makes and drops the parts
	Reader = "reader" // reads the parts, and nothing else
)

// The schemas that each of the catalogs iceberg, hive, delta and memory has.
const (
	OwnerSchema   = "owner"   // the owner's tables
	PrivateSchema = "private" // the parts
)

// Catalogs are those that can be written to.
var Catalogs = []string{"iceberg", "hive", "delta", "memory"}

// Main runs a package's tests and stops the shared cluster after them.
func Main(m *testing.M) {
	code := m.Run()
	if c := shared.cluster; c != nil {
		c.Stop()
		os.RemoveAll(c.home)
	}
	os.Exit(code)
}

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Shared is the cluster of the package's tests.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Cluster is a running Trino.
type Cluster struct {
	Port int    // of the coordinator
	Data string // the object store: a folder for each catalog, and in it one for each schema

	home, bin           string
	coordinator, worker *node
	workerPort          int
}

// node is one process.
type node struct {
	cmd  *exec.Cmd
	life io.Closer // the server is killed when this is closed, or when this process ends, however it ends
	log  string
}

// startTimeout is for a very busy machine: Trino loads for half a minute on two free cores, and took five where thirty processes ran on them.
const startTimeout = 15 * time.Minute

func start() (*Cluster, error) {
	bin := os.Getenv("HOLDOUTD_TRINO")
	if bin == "" {
		return nil, errors.New("trinotest: HOLDOUTD_TRINO must name what scripts/trino.sh prints, which installs Trino")
	}
	home, err := os.MkdirTemp("/tmp", "trinotest-")
	if err != nil {
		return nil, fmt.Errorf("trinotest: %w", err)
	}
	c := &Cluster{home: home, bin: bin, Data: filepath.Join(home, "data")}
	if err := c.start(); err != nil {
		c.Stop()
		os.RemoveAll(home)
		return nil, fmt.Errorf("trinotest: %w", err)
	}
	return c, nil
}

func (c *Cluster) start() (err error) {
	if err := os.MkdirAll(c.Data, 0o755); err != nil {
		return err
	}
	if c.Port, err = freePort(); err != nil {
		return err
	}
	if c.workerPort, err = freePort(); err != nil {
		return err
	}
	for _, name := range []string{"coordinator", "worker"} {
		if err := c.configure(name); err != nil {
			return err
		}
	}
	if id := serverUser(); id != nil {
		if err := filepath.WalkDir(c.home, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, int(id.Uid), int(id.Gid)))
		}); err != nil {
			return err
		}
	}
	if c.coordinator, err = c.run("coordinator"); err != nil {
		return err
	}
	if c.worker, err = c.run("worker"); err != nil {
		return err
	}
	if err := c.wait(2); err != nil {
		return err
	}
	for _, catalog := range Catalogs {
		for _, schema := range []string{OwnerSchema, PrivateSchema} {
			if _, err := c.Query(fmt.Sprintf("CREATE SCHEMA %s.%s", catalog, schema)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop kills both processes.
func (c *Cluster) Stop() {
	c.worker.kill()
	c.coordinator.kill()
}

// KillWorker kills the worker in the middle of whatever it does.
func (c *Cluster) KillWorker() { c.worker.kill() }

// StartWorker starts the worker again, and waits until the coordinator gives it work.
func (c *Cluster) StartWorker() (err error) {
	if c.worker, err = c.run("worker"); err != nil {
		return err
	}
	return c.wait(2)
}

// wait waits until so many nodes are active.
func (c *Cluster) wait(nodes int) error {
	deadline := time.Now().Add(startTimeout)
	for {
		rows, err := c.Query("SELECT count(*) FROM system.runtime.nodes WHERE state = 'active'")
		if err == nil && len(rows) == 1 && fmt.Sprint(rows[0][0]) == strconv.Itoa(nodes) {
			return nil
		}
		for _, n := range []*node{c.coordinator, c.worker} {
			if n.ended() {
				return fmt.Errorf("Trino has ended:\n%s", n.tail())
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("Trino does not come up (%v, %v):\n%s", rows, err, c.coordinator.tail())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// run starts a node under a shell that kills it when this process ends.
func (c *Cluster) run(name string) (*node, error) {
	const keeper = `"$@" & server=$!; cat >/dev/null; kill -KILL $server 2>/dev/null; wait $server`
	home := filepath.Join(c.home, name)
	args := append([]string{"-c", keeper, "trinotest", filepath.Join(c.bin, "jdk", "bin", "java")}, jvm...)
	args = append(args, fast()...)
	args = append(args, "-Dnode.id="+name, "-Dnode.environment=test", "-Dnode.data-dir="+home, "-Dnode.internal-address=127.0.0.1", "-Dnode.bind-ip=127.0.0.1",
		"-Dcatalog.config-dir="+filepath.Join(home, "etc/catalog"), "-Dplugin.dir="+filepath.Join(c.bin, "server/plugin"),
		"-Dconfig="+filepath.Join(home, "etc/config.properties"), "-Dlog.levels-file="+filepath.Join(home, "etc/log.properties"), "-Dlog.enable-console=true",
		"-cp", filepath.Join(c.bin, "server/lib/*"), "io.trino.server.TrinoServer")
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser(), Setpgid: true} // an interrupt of the terminal is ours to handle
	n := &node{cmd: cmd, log: filepath.Join(home, "log")}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if n.life, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return n, cmd.Start()
}

func (n *node) kill() {
	if n == nil || n.cmd.ProcessState != nil {
		return
	}
	n.life.Close()
	n.cmd.Wait() // it says how the server ended, which was by our signal
}

// ended reports whether the server has given up by itself: its keeper stays, and says so in no other way.
func (n *node) ended() bool {
	text, _ := os.ReadFile(n.log)
	return strings.Contains(string(text), "ERROR\tmain\tio.trino.server.Server\t")
}

// tail is the end of what the server has logged.
func (n *node) tail() string {
	text, _ := os.ReadFile(n.log)
	return string(text[max(0, len(text)-4000):])
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// serverUser is who runs the servers where we are root; nil: whoever we are.
func serverUser() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil
	}
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	if errors.Join(errU, errG) != nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// URL is the coordinator's.
func (c *Cluster) URL() string { return "http://127.0.0.1:" + strconv.Itoa(c.Port) }

// Queries are those that run, or wait to, of a user: their texts.
func (c *Cluster) Queries(user string) ([]string, error) {
	rows, err := c.Query("SELECT query FROM system.runtime.queries WHERE state IN ('QUEUED','PLANNING','STARTING','RUNNING','FINISHING') AND user = '" + user + "'")
	var texts []string
	for _, row := range rows {
		texts = append(texts, fmt.Sprint(row[0]))
	}
	return texts, err
}

var client = &http.Client{Timeout: time.Minute}
