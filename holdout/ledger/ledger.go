package ledger

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
)

// Ledger is an open ledger: the contract that every implementation keeps, and that ledgertest.Run tests. Its methods may be called
// from many goroutines.
//
// What holds for all of them:
//
//   - A call that writes returns nil only when what it wrote is durable: it survives the end of the process and of the machine.
//     Until then nobody reads any of it.
//   - A call that refuses (with any error but ErrUnavailable) has written nothing.
//   - ErrUnavailable says that the outcome of a write is not known, or that a read failed now. It is safe to ask again. The
//     ledger recovers by itself, and Ready says when it has.
//   - When ctx ends first, the error is ErrUnavailable and ctx.Err(). A write that had begun is finished all the same.
//   - A reader sees what was durable at one moment, and everything that was acknowledged to anyone before its call.
//   - After Close every call fails with ErrClosed or, of a read, with an error that says so.
type Ledger interface {
	// CreateHoldout records a new holdout with its chain's genesis entry, and the idempotency key of the upload, if any. A zero Created
	// is now. It fails with *ExistsError if the digest is known, also that of a deleted holdout, or if the same request has made a
	// holdout before; with ErrExists if the id is known; with ErrIdempotencyMismatch if the key was used for another request; with
	// ErrInvalid if it cannot be recorded.
	CreateHoldout(ctx context.Context, h Holdout, idem *Idempotency) error
	// ReplaceHoldout records a holdout in the place of another one of the same table, of which nothing was asked, and deletes that one, in
	// one write: what is durable is either the old one, whole, or the new one. h.Digest must be the old one's Successor. It fails with ErrNotFound if there is no
	// such holdout, with ErrAsked if its chain has an answer, a void, a release or a retirement, with ErrSettled if old.Draft is set and it is a draft no more, and as
	// CreateHoldout does: with *ExistsError if it was replaced already. One that was deleted as a draft can be replaced, too.
	ReplaceHoldout(ctx context.Context, old Replaced, h Holdout, idem *Idempotency) error
	// SettleHoldout ends a holdout's being a draft, for good: who calls it is about to show what its parts hold. Settling again
	// does nothing. It fails with ErrNotFound or ErrDeleted. No ReplaceHoldout that asks for a draft succeeds after it.
	SettleHoldout(ctx context.Context, id string) error
	// Holdout returns a holdout with what it has spent, also a deleted or a damaged one, or ErrNotFound.
	Holdout(ctx context.Context, id string) (Holdout, error)
	// Holdouts returns all holdouts in the order of their creation, deleted and damaged ones included.
	Holdouts(ctx context.Context) ([]Holdout, error)
	// HoldoutByDigest returns the id under which a table is known; ok is false if it is not.
	HoldoutByDigest(ctx context.Context, digest [32]byte) (id string, ok bool, err error)
	// DeleteHoldout erases a holdout's secret and state for good and ends its chain with an entry that says who did it.
	// What was answered stays, and so does the digest: the same table is refused for ever. Deleting again does nothing.
	DeleteHoldout(ctx context.Context, id, principal string) error

	// Update runs fn with the holdout's books and returns when what fn appended is durable: all of it, with the new state, or
	// nothing. No two updates of a holdout run on the same books, whichever server they came to: each sees what all before it did. If fn returns an error
	// nothing of it is kept, and Update returns that error. A panic of fn is raised in the caller's goroutine.
	//
	// fn must be quick and pure in memory and must not call the ledger: others wait for it. It may run more than once, when a commit
	// has to be tried again or when the books turn out not to be the newest; the last run counts, and none begins after Update has
	// returned. An implementation may so
	// send debit, answer and state in one round trip, on the books that it believes in.
	//
	// It fails with ErrNotFound, ErrDeleted, or ErrCorrupt if nothing can be built on the holdout's chain. After a commit that
	// failed all who waited for it get ErrUnavailable; the next run of fn sees what is durable, whichever way it went.
	Update(ctx context.Context, id string, fn func(tx *Tx) error) error
	// Answer returns the recorded answer to a query: the bytes that were sent when it was asked first. An entry that is not what the
	// chain says is ErrCorrupt.
	Answer(ctx context.Context, id, query string) (body []byte, ok bool, err error)
	// Answers returns the answers with a seq above after, in order, at most limit (MaxAnswers if it is 0 or more than that).
	// Each has its note. With a principal, only those that it asked first. An unknown holdout is ErrNotFound, and an entry that is not what the
	// chain says is ErrCorrupt.
	Answers(ctx context.Context, id, principal string, after int64, limit int) ([]Entry, error)
	// Closing returns the entry that closed a holdout, also one that was deleted since; ok is false if none did. An unknown holdout is ErrNotFound, and an entry
	// that is not what the chain says is ErrCorrupt.
	Closing(ctx context.Context, id string) (e Entry, ok bool, err error)
	// Retirement returns the entry that retired a holdout, as Closing does the one that closed it.
	Retirement(ctx context.Context, id string) (e Entry, ok bool, err error)
	// Idempotency returns what an idempotency key was used for. A use is remembered for IdempotencyLife at least.
	Idempotency(ctx context.Context, principal, key string) (i Idempotency, ok bool, err error)

	// HeadAt returns the head of a holdout's entry, as entries and answers say it; ok is false if there is no such entry.
	HeadAt(ctx context.Context, id string, seq int64) (head string, ok bool, err error)
	// Export writes a holdout's chain as JSON Lines (docs/format/ledger.md): released bytes and public debits, and no secret. It is
	// consistent although others go on writing, and ends where the books stood when it began. It fails with ErrNotFound.
	Export(ctx context.Context, id string, w io.Writer) error

	// CreateKey records an API key. It fails with ErrExists if its id or hash is known, also that of a revoked key, or if a key that is not revoked has its
	// subject: a token has one key at a time; and with ErrRevoked if the key that it is made by is known and revoked.
	CreateKey(ctx context.Context, k Key) error
	// Keys returns all keys in the order of their creation, revoked ones included.
	Keys(ctx context.Context) ([]Key, error)
	// KeyByHash returns the key with this hash. A revoked key is not found: whoever shows it has no rights.
	KeyByHash(ctx context.Context, hash [32]byte) (k Key, ok bool, err error)
	// KeyBySubject returns the key of this subject. A revoked key is not found, as by KeyByHash; nobody's key is found for the zero subject.
	KeyBySubject(ctx context.Context, s Subject) (k Key, ok bool, err error)
	// RevokeKey takes a key's rights away for good. Revoking again does nothing; an unknown id is ErrNotFound.
	RevokeKey(ctx context.Context, id string) error

	// CreateGrant records a grant. A zero Created is now. It fails with ErrNotFound if there is no such key, holdout or parent, with ErrDeleted if the holdout is deleted, with ErrExists if the id is known or
	// the key has a grant of the holdout, also a revoked one, and with ErrInvalid where the grant cannot be a slice of its parent ([Grant.Fits]).
	CreateGrant(ctx context.Context, g Grant) error
	// Grants returns the grants of a holdout in the order of their creation, revoked ones included; of all holdouts, where holdout is "".
	Grants(ctx context.Context, holdout string) ([]Grant, error)
	// RevokeGrant takes a grant's rights away for good, and with them those of all grants below it ([Grants.Chain]). Revoking again does nothing; an unknown id is ErrNotFound.
	RevokeGrant(ctx context.Context, id string) error
	// Releases returns the releases of a holdout with a seq above after in the order of the chain, at most limit, also of one that was deleted since. An unknown holdout is ErrNotFound, and an entry that is not
	// what the chain says is ErrCorrupt.
	Releases(ctx context.Context, id string, after int64, limit int) ([]Entry, error)
	// ReleaseOf returns the release of a request by its id; ok is false if there is none. Errors are those of Releases.
	ReleaseOf(ctx context.Context, id, query string) (e Entry, ok bool, err error)
	// Debits returns what the answers and voids of a holdout with a seq above after debited, by who asked first, and the seq of the last of them, or after where there are none: all of one
	// moment. An unknown holdout has none.
	Debits(ctx context.Context, id string, after int64) (by map[string]Meters, last int64, err error)

	// Ready returns nil when the ledger can be read and can commit. Where no commit of the last moments says so it commits a probe, so that a full
	// disk turns it red before a question is lost on it, and room on the disk turns it green again.
	Ready(ctx context.Context) error
	// Close finishes what was accepted and closes the ledger. A second Close does nothing.
	Close() error
}

// Shared is what a ledger has beside that several servers may have open at once.
//
// A server that has read rows must be able to record what they said: it reserves in its memory what a question may need, and nobody else may spend that
// meanwhile. So it has the holdout to itself from the reservation to the commit, which is a term.
type Shared interface {
	Ledger
	// Term waits until no other server has the holdout, and has it for this one until release is called, the process ends, or the way to the ledger is lost. It fails with ErrNotFound, and
	// with ErrUnavailable, also when ctx ends first. A server asks for one term of a holdout at a time.
	//
	// The number is the same as last time if no other server had the holdout since, and a greater one otherwise. In an update it is [Tx.Term]: an update that finds another number there than its server was told
	// has lost its term, though nobody told it, and must record nothing.
	Term(ctx context.Context, id string) (number int64, release func(), err error)
	// Deleted reports whether a holdout is deleted. It is for servers that keep something of it in memory; of an unknown holdout it is false.
	Deleted(ctx context.Context, id string) (bool, error)
	// AddFiles is for a server that puts files where all of them keep theirs: until release, no server's SweepFiles is ok. still fails where that is not certain any more.
	AddFiles(ctx context.Context) (still func(ctx context.Context) error, release func(), err error)
	// SweepFiles is for a server that removes what others have left: until release, AddFiles waits. ok is false while another server adds files, or sweeps.
	SweepFiles(ctx context.Context) (release func(), ok bool, err error)
}

// Options say how a ledger is opened. Where it lives is the implementation's to say.
type Options struct {
	// Key is the server key: it seals secrets and mechanism states at rest. It must not be all zeros, unless ReplayOnly. Open fails with
	// ErrWrongKey if the ledger was made with another one.
	Key [32]byte
	// ReplayOnly opens the ledger without the key: everything recorded can be read, exported and replayed; nothing can
	// be written (ErrReplayOnly), and Secret and State come back nil. It is what is left when the server key is lost.
	ReplayOnly bool
	// MustExist makes Open fail with ErrLost, and make nothing, where there is no ledger or an empty one: other files say that
	// there was one.
	MustExist bool
	// Committed, if it is not nil, hears where a holdout's chain ends after a durable commit of updates: the seq and head of
	// its last entry. It is called before those who wait are told, so it must be quick and must not call the ledger.
	Committed func(id string, seq int64, head string)
	// Halted, if it is not nil, hears that the ledger commits nothing now, be it for a moment or until the next start: what Committed has told is in danger. It must
	// be quick and must not call the ledger.
	Halted func()
	// Disk is where the ledger's files are. Nil: the machine's disk. Tests simulate one.
	Disk Disk
	// Logger hears of commits that failed and of the recovery. It never hears of queries or answers. Nil: silence.
	Logger *slog.Logger
	// Fault, in tests, is called at the steps of every commit (StepBegin and so on). An error of it is the disk's or the network's: the
	// commit fails there. While it waits the commit waits.
	Fault func(step string) error
}

// Disk is what a ledger needs of a file system, beside what its engine does with it.
type Disk interface {
	// VFS is the engine's name for the file system (a VFS of SQLite); empty: the machine's.
	VFS() string
	// Create makes an empty file that only its owner can read, if there is none, and makes its name durable.
	Create(path string) error
	// Lock takes the ledger at path for this process, until the closer is closed; it fails with ErrInUse.
	Lock(path string) (io.Closer, error)
	// CheckAccess says which of the ledger's files this process cannot read and write.
	CheckAccess(path string) error

	Stat(name string) (fs.FileInfo, error)
	Remove(name string) error
	SameFile(a, b fs.FileInfo) bool
	Device(info fs.FileInfo) uint64 // of the file system that a file is on
	OpenFile(name string, flag int) (File, error)
}

// File is an open file of a Disk.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Sync() error
}

// Steps of a commit, as Options.Fault hears of them.
const (
	StepBegin     = "begin"     // before anything is written
	StepCommit    = "commit"    // everything is written and nothing of it is durable
	StepCommitted = "committed" // it is durable, and nobody knows
)
