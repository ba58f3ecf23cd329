package ledger

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Limits of what one call may record. They keep one caller from filling a commit that others wait for.
const (
	MaxCoreBytes      = 4 << 20  // of Debit.Core: an answer with some 100,000 numbers
	MaxCanonicalBytes = 4 << 20  // of Debit.Canonical: a query with a model of as many weights
	MaxPublicBytes    = 32 << 20 // of Holdout.Public: a card of 16,384 columns with their values
	MaxSecretBytes    = 1 << 20
	MaxStateBytes     = 1 << 20
	MaxTextBytes      = 1 << 10 // of ids, principals, query ids, notes, key names, idempotency keys and resources
	MaxAppends        = 1 << 14 // answers in one Update: as many as a table may have columns
	MaxOutcomeBytes   = 4 << 20 // of Idempotency.Outcome: some words on each query of a batch
)

// MaxAnswers is how many entries Answers returns at most; ask again after the last one.
const MaxAnswers = 1000

// IdempotencyLife is how long an idempotency key is remembered. Forgetting one is harmless: a question asked again is
// replayed by its id, and a table uploaded again is refused by its digest.
const IdempotencyLife = 7 * 24 * time.Hour

// Holdout is a holdout as the ledger keeps it.
type Holdout struct {
	ID      string
	Created time.Time       // zero: the time of CreateHoldout
	Digest  [32]byte        // keyed digest of the table; unique for ever, also after deletion
	Public  json.RawMessage // the card and settings, as the service wrote them; the chain's genesis commits to these bytes
	Secret  []byte          // sealed at rest; nil once deleted and when opened with ReplayOnly

	// Limits are what may be spent in all, by meter. A debit may name these meters and no others.
	Limits Meters
	Spent  Meters // so far; names the meters of Limits. Zero in CreateHoldout

	State   []byte // the mechanism's state, sealed at rest; nil as Secret is
	Deleted bool
	// Closed says that the chain has a closing: nothing is asked any more. Of a deleted holdout it is false.
	Closed bool
	// Retired says that the chain has a retirement: nothing is asked any more, and the rows may be had. It stays when the holdout is deleted.
	Retired bool

	// Released is what private releases of the training part have spent. It stays when the holdout is deleted.
	Released Epsilons

	// Draft says that nothing of its parts was shown yet: no row, and nothing that depends on one. It begins so, and SettleHoldout ends it.
	Draft bool

	// Damage says why nothing new can be recorded for the holdout: its books and its chain disagree, or a sealed value does
	// not open. It is ErrCorrupt, or nil. What was answered can still be read; the other holdouts are not concerned.
	Damage error
}

// Check says whether a new holdout can be recorded, or is ErrInvalid.
func (h *Holdout) Check() error {
	switch {
	case h.Deleted || h.Closed || h.Retired:
		return invalid("a holdout is not created deleted, closed or retired")
	case len(h.Spent) > 0 || h.Released.Made > 0:
		return invalid("a holdout is created with nothing spent")
	case len(h.Public) > MaxPublicBytes || len(h.Secret) > MaxSecretBytes || len(h.State) > MaxStateBytes:
		return invalid("public, secret and state of %d, %d and %d bytes, at most %d, %d and %d",
			len(h.Public), len(h.Secret), len(h.State), MaxPublicBytes, MaxSecretBytes, MaxStateBytes)
	case !utf8.Valid(h.Public) || !json.Valid(h.Public):
		return invalid("public part is not JSON in UTF-8")
	}
	return errors.Join(h.Limits.checkLimits(), checkText("holdout id", h.ID, false), checkTime(h.Created))
}

// Replaced is a holdout in whose place another one is recorded.
type Replaced struct {
	ID        string
	Principal string // who does it: of the old chain's last entry
	Draft     bool   // only if it is a draft still
}

// Successor is the digest of the holdout that replaces the one of this digest and id. It is keyed as the digest is, and there is one for each
// holdout, so that of two replacements one is refused.
func Successor(digest [32]byte, id string) [32]byte {
	h := sha256.New()
	h.Write([]byte("holdoutd successor\n"))
	h.Write(digest[:])
	h.Write([]byte(id))
	return [32]byte(h.Sum(nil))
}

// Room says of the holdout that is to be replaced, with what is recorded of it, whether it is gone already. It fails with ErrInvalid where the successor is not its own, with ErrAsked where it was asked,
// and with ErrSettled where its place is not to be had any more. It is for implementations.
func (r Replaced) Room(digest []byte, successor [32]byte, asked, draft, deleted bool) (gone bool, err error) {
	switch {
	case len(digest) != len(successor) || Successor([32]byte(digest), r.ID) != successor:
		return false, fmt.Errorf("%w: the digest is not that of the successor of %q", ErrInvalid, r.ID)
	case asked:
		return false, ErrAsked
	case !draft && (r.Draft || deleted):
		return false, ErrSettled
	}
	return deleted, nil
}

// Debit is what an answer costs, with the answer.
type Debit struct {
	Query     string // the query's id, "sha256:…": answered at most once per holdout
	Canonical []byte // the query's canonical form; UTF-8
	Principal string // who asked first
	Cost      Meters // what this answer spends; none negative, each a meter of the holdout
	Note      string // the asker's own remark, or "". It is kept beside the chain: no head commits to it, and no export has it
	Core      []byte // the answer: a non-empty JSON object in UTF-8 without surrounding space
	Time      time.Time
	// Void says that the question failed after rows had been read: the debit is recorded and no answer. The query can be asked, and
	// paid, again.
	Void bool
}

// Closing is the end of a holdout's questions: by a final report, or by a retirement, after which its rows may be had.
type Closing struct {
	Principal string // who does it
	Core      []byte // what is said of it: a non-empty JSON object in UTF-8 without surrounding space
	Time      time.Time
}

// Receipt is what Append, Close or Retire recorded. It is worth nothing until Update has returned nil.
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
	Outcome   string   // what else is to be replayed, as the service wrote it; "" where there is nothing, and of uses by a program before outcomes were kept
}

// Check says whether the use can be recorded, or is ErrInvalid.
func (i *Idempotency) Check() error {
	if len(i.Outcome) > MaxOutcomeBytes || !utf8.ValidString(i.Outcome) {
		return invalid("outcome of %d bytes: at most %d, in UTF-8", len(i.Outcome), MaxOutcomeBytes)
	}
	return errors.Join(checkText("principal", i.Principal, true), checkText("idempotency key", i.Key, false),
		checkText("resource", i.Resource, true))
}

// Kinds of chain entries.
const (
	KindGenesis = "genesis" // seq 0: the public facts of the holdout
	KindAnswer  = "answer"
	KindVoid    = "void"    // a question that failed after rows had been read: debited, and not answered
	KindRelease = "release" // a private release of the training part: it debits no meter
	KindClosed  = "closed"  // the end of a holdout's questions: it debits all that is left, and none but a retirement and a deletion follow
	KindRetired = "retired" // the end of a holdout's secrecy: it debits all that is left, none but a deletion follows, and the rows may be had
	KindDeleted = "deleted" // the last entry of a deleted holdout
)

// EntryVersion is the version of the encoding of chain entries that this program writes: which parts there are, in which order
// they are hashed, and what the core of each kind holds. Version 1 was never released.
const EntryVersion = 2

// Entry is one chain entry, with everything that its head commits to and, of an answer that [Ledger.Answers] returns, the note beside it.
type Entry struct {
	Version   int
	Seq       int64
	Kind      string
	Time      time.Time
	Query     string
	Canonical []byte
	Principal string
	Debit     Meters // of this entry
	Spent     Meters // after it
	Body      []byte // the bytes that were sent
	Head      [32]byte
	Note      string // "" where there is none, and of answers that were recorded before notes were kept
}

// Key is an API key. Of its secret the hash alone is kept. A key of a subject has no secret: its Hash is that of nothing.
type Key struct {
	ID, Name, Scope string
	Created         time.Time
	Hash            [32]byte
	Subject         Subject // zero: a key with a secret
	By              string  // the id of the key that made it; empty of the server's own first key, and of keys from before this was kept
	Revoked         bool
}

// Subject is whom an issuer of tokens names: what it says in one claim. The three together are its identity.
type Subject struct{ Issuer, Claim, Value string }

// Check says whether the key can be recorded, or is ErrInvalid.
func (k *Key) Check() error {
	if k.Subject != (Subject{}) {
		if err := k.Subject.Check(); err != nil {
			return err
		}
	}
	return errors.Join(checkText("key id", k.ID, false), checkText("key name", k.Name, true),
		checkText("key scope", k.Scope, false), checkText("id of who made the key", k.By, true), checkTime(k.Created))
}

// Check says whether somebody is named, or is ErrInvalid.
func (s *Subject) Check() error {
	return errors.Join(checkText("subject's issuer", s.Issuer, false), checkText("subject's claim", s.Claim, false), checkText("subject", s.Value, false))
}

// Report says what a verification found in order.
type Report struct {
	Holdout string `json:"holdout"`
	Entries int64  `json:"entries"` // of the chain, genesis included
	Answers int64  `json:"answers"`
	Voids   int64  `json:"voids"` // questions that failed after rows had been read
	Spent   Meters `json:"spent"`
	Limits  Meters `json:"limits"`
	Head    string `json:"head"` // compare it with the head of an answer that was kept elsewhere
	Deleted bool   `json:"deleted,omitempty"`
	Closed  bool   `json:"closed,omitempty"`  // its questions have ended
	Retired bool   `json:"retired,omitempty"` // so has the secrecy of its rows

	Releases int64   `json:"releases,omitempty"` // private releases of the training part
	Epsilon  float64 `json:"epsilon,omitempty"`  // what they have spent

	Public string `json:"-"` // the holdout's public facts, which the genesis entry commits to
}
