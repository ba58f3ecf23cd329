package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"
)

// Books are where a holdout stands: what changes with every update.
type Books struct {
	ID       string
	Limits   Meters
	Spent    Meters // names the meters of Limits
	Seq      int64  // of the last entry
	Head     [32]byte
	State    []byte // the mechanism's
	Deleted  bool
	Closed   bool     // there is a closing
	Retired  bool     // there is a retirement
	Released Epsilons // what private releases have spent
	Term     int64    // of the server that has the holdout to itself, or had it last; 0 where a ledger has one server ([Shared])
}

// Recorded looks up what was recorded of a holdout before an update: by earlier commits, and by what is ahead of it in
// its own. An error of it fails the update.
type Recorded interface {
	// Answer returns the body of a query's answer, or nil.
	Answer(query string) (body []byte, err error)
	// Voided reports whether there is a void of a query with this time.
	Voided(query string, at time.Time) (bool, error)
	// Released reports whether there is a release of a request.
	Released(query string) (bool, error)
	// Idempotency returns what a key was used for; ok is false if it was not.
	Idempotency(principal, key string) (i Idempotency, ok bool, err error)
}

// CheckedLater is a Recorded of a ledger whose commit itself refuses to answer a question twice.
type CheckedLater interface {
	Recorded
	// AnsweredLater reports whether the commit will say if a query is answered, so that Append need not look before it.
	AnsweredLater(query string) bool
}

// Draft runs an update on books and returns what it makes of them. It is the rules of a debit, for every implementation: it
// writes nothing and changes no argument. If fn fails, or a look-up, that is the error, and nothing is to be kept.
func Draft(b Books, recorded Recorded, fn func(tx *Tx) error) (Drafted, error) {
	if b.Deleted {
		return Drafted{}, ErrDeleted
	}
	tx := &Tx{before: recorded, books: b, answers: map[string][]byte{}, uses: map[idemKey]Idempotency{}}
	defer func() { tx.over = true }()
	err := fn(tx)
	if tx.err != nil {
		err = tx.err
	}
	if err != nil {
		return Drafted{}, err
	}
	d := Drafted{Books: tx.books, Entries: tx.entries}
	d.Changed = len(tx.entries) > 0 || !bytes.Equal(tx.books.State, b.State) || (tx.books.State == nil) != (b.State == nil)
	for _, use := range tx.uses {
		d.Uses = append(d.Uses, use)
	}
	return d, nil
}

// Drafted is what an update makes of books: to be made durable together, or not at all.
type Drafted struct {
	Books   Books         // after it
	Changed bool          // whether they differ from those before
	Entries []Entry       // to be appended, in order
	Uses    []Idempotency // to be remembered
}

// Tx is a holdout's books during one Update. It must not be used after fn has returned, nor by another goroutine.
type Tx struct {
	before  Recorded
	books   Books // a copy: kept when fn succeeds
	entries []Entry
	answers map[string][]byte // what this Tx appended, by query; nil where the look-up was in vain
	uses    map[idemKey]Idempotency
	over    bool
	err     error // what this update fails with, whatever fn returns
}

type idemKey struct{ principal, key string }

// State is the mechanism's state. It is the caller's copy.
func (tx *Tx) State() []byte { return bytes.Clone(tx.books.State) }

// SetState replaces the mechanism's state; the ledger keeps a copy. A state over MaxStateBytes fails the update.
func (tx *Tx) SetState(state []byte) {
	if len(state) > MaxStateBytes {
		tx.fail(invalid("state of %d bytes, at most %d", len(state), MaxStateBytes))
		return
	}
	tx.books.State = bytes.Clone(state)
}

// Spent is what has been spent, what this Tx appended included. It is not to be changed.
func (tx *Tx) Spent() Meters { return tx.books.Spent }

// Limits are the holdout's limits. They are not to be changed.
func (tx *Tx) Limits() Meters { return tx.books.Limits }

// Term is the number of the holdout's term: the one that [Shared] told who has it, as long as no other server has had it since.
func (tx *Tx) Term() int64 { return tx.books.Term }

// Answer is the recorded answer to a query, if there is one: of earlier commits, of this commit's group, of this Tx.
func (tx *Tx) Answer(query string) (body []byte, ok bool) {
	if body, known := tx.answers[query]; known {
		return bytes.Clone(body), body != nil
	}
	body, err := tx.before.Answer(query)
	if err != nil {
		tx.fail(err)
		return nil, false
	}
	tx.answers[query] = body
	return bytes.Clone(body), body != nil
}

// Voided reports whether an earlier commit has recorded a void of a query with this time. It is for those who were not told
// whether their void is durable.
func (tx *Tx) Voided(query string, at time.Time) bool {
	found, err := tx.before.Voided(query, at)
	if err != nil {
		tx.fail(err)
	}
	return found && err == nil
}

// Append debits and records an answer or a void. It refuses with a *BudgetError to exceed a limit, with ErrAnswered to answer
// a query twice, and with ErrInvalid what cannot be recorded. A zero d.Time is now.
func (tx *Tx) Append(d Debit) (Receipt, error) {
	if tx.over {
		return Receipt{}, invalid("append after the update's end")
	}
	if tx.err != nil {
		return Receipt{}, tx.err
	}
	if d.Time.IsZero() {
		d.Time = time.Now()
	}
	b := &tx.books
	if err := d.check(b.Limits); err != nil {
		return Receipt{}, err
	}
	// Limits and what is spent are at most 2^63-1 and not negative, so the differences do not overflow, nor do the sums below.
	left := b.Limits.left(b.Spent)
	if b.Closed || b.Retired {
		return Receipt{}, &BudgetError{Requested: d.Cost, Left: left}
	}
	for name, amount := range d.Cost {
		if amount > left[name] {
			return Receipt{}, &BudgetError{Requested: d.Cost, Left: left}
		}
	}
	if !d.Void && tx.answered(d.Query) {
		return Receipt{}, fmt.Errorf("%w: %s", ErrAnswered, d.Query)
	}
	if tx.err != nil {
		return Receipt{}, tx.err
	}
	if len(tx.entries) >= MaxAppends {
		return Receipt{}, invalid("more than %d answers in one update", MaxAppends)
	}
	e := Entry{Version: EntryVersion, Seq: b.Seq + 1, Kind: d.kind(), Time: d.Time.UTC(), Query: d.Query, Canonical: bytes.Clone(d.Canonical),
		Principal: d.Principal, Debit: b.Limits.none().plus(d.Cost), Spent: b.Spent.plus(d.Cost), Note: d.Note}
	e.seal(b.Head, d.Core)
	b.Seq, b.Head, b.Spent = e.Seq, e.Head, e.Spent
	tx.entries = append(tx.entries, e)
	if !d.Void {
		tx.answers[d.Query] = e.Body
	}
	return Receipt{Seq: e.Seq, Head: HeadText(e.Head), Body: bytes.Clone(e.Body)}, nil
}

// answered reports whether a query has its answer, as far as that is to be known before the commit.
func (tx *Tx) answered(query string) bool {
	if body, known := tx.answers[query]; known {
		return body != nil
	}
	if later, ok := tx.before.(CheckedLater); ok && later.AnsweredLater(query) {
		return false
	}
	_, answered := tx.Answer(query)
	return answered
}

// Close ends the holdout's questions: an entry debits all that is left of every meter, and nothing is appended after it. It fails with ErrBudget if the
// holdout is closed or retired, and with ErrInvalid for what cannot be recorded. A zero c.Time is now.
func (tx *Tx) Close(c Closing) (Receipt, error) {
	b := &tx.books
	if left := b.Limits.left(b.Spent); b.Closed || b.Retired {
		return Receipt{}, &BudgetError{Requested: left, Left: left}
	}
	r, err := tx.finish(KindClosed, c)
	b.Closed = b.Closed || err == nil
	return r, err
}

// Retire ends the secrecy of the holdout's rows, and its questions where they have not ended: an entry debits all that is left of every meter, and nothing is appended after it. It fails with
// ErrRetired if the holdout is retired, and with ErrInvalid for what cannot be recorded. A zero c.Time is now.
func (tx *Tx) Retire(c Closing) (Receipt, error) {
	b := &tx.books
	if b.Retired {
		return Receipt{}, ErrRetired
	}
	r, err := tx.finish(KindRetired, c)
	b.Retired = b.Retired || err == nil
	return r, err
}

// Retired reports whether the holdout is retired.
func (tx *Tx) Retired() bool { return tx.books.Retired }

// finish appends an entry that debits all that is left.
func (tx *Tx) finish(kind string, c Closing) (Receipt, error) {
	if tx.over {
		return Receipt{}, invalid("an entry of the kind %s after the update's end", kind)
	}
	if tx.err != nil {
		return Receipt{}, tx.err
	}
	if c.Time.IsZero() {
		c.Time = time.Now()
	}
	if err := errors.Join(checkText("principal", c.Principal, true), checkTime(c.Time), checkCore(c.Core)); err != nil {
		return Receipt{}, err
	}
	b := &tx.books
	e := Entry{Version: EntryVersion, Seq: b.Seq + 1, Kind: kind, Time: c.Time.UTC(), Principal: c.Principal, Debit: b.Limits.left(b.Spent), Spent: maps.Clone(b.Limits)}
	e.seal(b.Head, c.Core)
	b.Seq, b.Head, b.Spent = e.Seq, e.Head, e.Spent
	tx.entries = append(tx.entries, e)
	return Receipt{Seq: e.Seq, Head: HeadText(e.Head), Body: bytes.Clone(e.Body)}, nil
}

func (d *Debit) kind() string {
	if d.Void {
		return KindVoid
	}
	return KindAnswer
}

func (d *Debit) check(limits Meters) error {
	for name, amount := range d.Cost {
		if _, ok := limits[name]; !ok {
			return invalid("a debit of the meter %q, which the holdout does not have (%v)", short(name), limits)
		}
		if amount < 0 {
			return invalid("negative debit: %v", d.Cost)
		}
	}
	if len(d.Canonical) > MaxCanonicalBytes || !utf8.Valid(d.Canonical) {
		return invalid("canonical query of %d bytes: at most %d, in UTF-8", len(d.Canonical), MaxCanonicalBytes)
	}
	return errors.Join(checkText("query id", d.Query, false), checkText("principal", d.Principal, true),
		checkText("note", d.Note, true), checkTime(d.Time), checkCore(d.Core))
}

// Idempotent records the use of an idempotency key together with what the update appends. If the key is recorded
// already, its outcome becomes that of i where i is the same request, and otherwise the error is ErrIdempotencyMismatch.
func (tx *Tx) Idempotent(i Idempotency) error {
	if err := i.Check(); err != nil {
		return err
	}
	if tx.err != nil {
		return tx.err
	}
	key := idemKey{i.Principal, i.Key}
	known, ok := tx.uses[key]
	if !ok {
		var err error
		if known, ok, err = tx.before.Idempotency(i.Principal, i.Key); err != nil {
			tx.fail(err)
			return tx.err
		}
	}
	if ok && known.Request != i.Request {
		return ErrIdempotencyMismatch
	}
	if !ok || known.Outcome != i.Outcome {
		tx.uses[key] = i
	}
	return nil
}

// fail makes the update fail, whatever fn returns.
func (tx *Tx) fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
}
