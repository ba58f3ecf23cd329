package ledger

import (
	"encoding/json"
	"log/slog"
	"time"
)

// Limits of what one call may record. They keep one caller from filling a commit that others wait for.
const (
	MaxCoreBytes      = 4 << 20  // of Debit.Core: an answer with some 100,000 numbers
	MaxCanonicalBytes = 4 << 20  // of Debit.Canonical: a query with a model of as many weights
	MaxPublicBytes    = 32 << 20 // of Holdout.Public: a card of 16,384 columns with their values
	MaxSecretBytes    = 1 << 20
	MaxStateBytes     = 1 << 20
	MaxTextBytes      = 1 << 10 // of ids, principals, query ids, key names, idempotency keys and resources
	MaxAppends        = 1 << 14 // answers in one Update: as many as a table may have columns
)

// Options say where a ledger lives and how it is opened.
type Options struct {
	// Path of the SQLite file. Beside it live Path-wal and Path-shm (SQLite's) and Path.lock (ours).
	Path string
	// Key is the server key: it seals secrets and mechanism states at rest. It must not be all zeros, unless ReplayOnly.
	Key [32]byte
	// ReplayOnly opens the ledger without the key: everything recorded can be read, exported and replayed; nothing can
	// be written, and Secret and State come back nil. It is what is left when the server key is lost.
	ReplayOnly bool
	// MustExist makes Open fail with ErrLost, and make nothing, where there is no ledger or an empty one: other files say that
	// there was one.
	MustExist bool
	// Committed, if it is not nil, hears where a holdout's chain ends after a durable commit of updates: the seq and head of
	// its last entry. It is called by the writer, so it must be quick and must not call the ledger.
	Committed func(id string, seq int64, head string)
	// Logger hears of commits that failed and of the recovery. It never hears of queries or answers. Nil: silence.
	Logger *slog.Logger
	// Fault, in tests, is called before and after the steps of a commit ("begin", "commit", "committed") and makes them fail.
	Fault func(step string) error
}

// Holdout is a holdout as the ledger keeps it.
type Holdout struct {
	ID      string
	Created time.Time       // zero: the time of CreateHoldout
	Digest  [32]byte        // keyed digest of the table; unique for ever, also after deletion
	Public  json.RawMessage // the card and settings, as the service wrote them; the chain's genesis commits to these bytes
	Secret  []byte          // sealed at rest; nil once deleted and when opened with ReplayOnly

	// The guarantee's limits: what may be spent in all. A Tokens of 0 means that there are none to spend.
	Questions, Tokens int64

	State   []byte // the mechanism's state, sealed at rest; nil as Secret is
	Deleted bool

	// Damage says why nothing new can be recorded for the holdout: its books and its chain disagree, or a sealed value does
	// not open. It is ErrCorrupt, or nil. What was answered can still be read; the other holdouts are not concerned.
	Damage error
}

// Debit is what an answer costs, with the answer.
type Debit struct {
	Query             string // the query's id, "sha256:…": answered at most once per holdout
	Canonical         []byte // the query's canonical form; UTF-8
	Principal         string // who asked first
	Questions, Tokens int64  // what this answer spends; neither negative
	Core              []byte // the answer: a non-empty JSON object in UTF-8 without surrounding space
	Time              time.Time
	// Void says that the question failed after rows had been read: the debit is recorded and no answer. The query can be asked, and
	// paid, again.
	Void bool
}

// Receipt is what Append recorded. It is worth nothing until Update has returned nil.
type Receipt struct {
	Seq  int64  // the answer's place in its holdout's chain; the genesis entry is 0
	Head string // "sha256:…", the chain's head with this answer
	Body []byte // the bytes to send, the same for ever: Core with "ledger" put before its last brace
}

// Idempotency is one use of an Idempotency-Key: who used which key for which request, and what came of it.
type Idempotency struct {
	Principal string
	Key       string
	Request   [32]byte // digest of the request
	Resource  string   // what the request made: a holdout's id, …
}

// Kinds of chain entries.
const (
	KindGenesis = "genesis" // seq 0: the public facts of the holdout
	KindAnswer  = "answer"
	KindVoid    = "void"    // a question that failed after rows had been read: debited, and not answered
	KindDeleted = "deleted" // the last entry of a deleted holdout
)

// Entry is one recorded chain entry.
type Entry struct {
	Seq               int64
	Time              time.Time
	Query, Principal  string
	Questions, Tokens int64 // spent by this entry
	Canonical, Body   []byte
	Kind              string
}

// Key is an API key; only its hash is kept.
type Key struct {
	ID, Name, Scope string
	Created         time.Time
	Hash            [32]byte
	Revoked         bool
}

// Report says what a verification found in order.
type Report struct {
	Holdout string `json:"holdout"`
	Entries int64  `json:"entries"` // of the chain, genesis included
	Answers int64  `json:"answers"`
	Voids   int64  `json:"voids"` // questions that failed after rows had been read
	Spent   Amount `json:"spent"`
	Limits  Amount `json:"limits"`
	Head    string `json:"head"` // compare it with the head of an answer that was kept elsewhere
	Deleted bool   `json:"deleted,omitempty"`

	Public string `json:"-"` // the holdout's public facts, which the genesis entry commits to
}

// Amount is a number of questions and of tokens.
type Amount struct {
	Questions int64 `json:"questions"`
	Tokens    int64 `json:"tokens"`
}
