package ledger

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Tx is a holdout's books during one Update. It must not be used after fn has returned, nor by another goroutine.
type Tx struct {
	group   *group
	books   books // a copy: kept when fn succeeds
	records []record
	answers map[string][]byte // what this Tx appended, by query; nil where the database was asked in vain
	idem    map[idemKey]Idempotency
	over    bool
	err     error // the database could not be read: the whole group fails with it
}

// books are what the writer remembers of a holdout.
type books struct {
	number  int64 // of the row
	id      string
	limits  Amount
	spent   Amount
	seq     int64
	head    digest
	state   []byte
	deleted bool
}

type idemKey struct{ principal, key string }

// Update runs fn alone with the holdout's books and returns when what it appended is durable, together with other
// callers' updates in one commit. If fn returns an error nothing of it is kept, and Update returns that error. fn must
// be quick and pure in memory and must not call the ledger: others wait for it, and it can run again if a commit has to
// be retried. When ctx ends
// first, Update returns an error that is ErrUnavailable and ctx.Err(); an update that had begun commits all the same.
func (l *Ledger) Update(ctx context.Context, id string, fn func(tx *Tx) error) error {
	return l.submit(ctx, &request{id: id, fn: fn})
}

// State is the mechanism's state. It is the caller's copy.
func (tx *Tx) State() []byte { return bytes.Clone(tx.books.state) }

// SetState replaces the mechanism's state; the ledger keeps a copy. A state over MaxStateBytes fails the update.
func (tx *Tx) SetState(state []byte) {
	if len(state) > MaxStateBytes {
		tx.refuse(invalid("state of %d bytes, at most %d", len(state), MaxStateBytes))
		return
	}
	tx.books.state = bytes.Clone(state)
}

// Spent is what has been spent, what this Tx appended included.
func (tx *Tx) Spent() (questions, tokens int64) {
	return tx.books.spent.Questions, tx.books.spent.Tokens
}

// Limits are the holdout's limits.
func (tx *Tx) Limits() (questions, tokens int64) {
	return tx.books.limits.Questions, tx.books.limits.Tokens
}

// Answer is the recorded answer to a query, if there is one: of earlier commits, of this commit's group, of this Tx.
func (tx *Tx) Answer(query string) (body []byte, ok bool) {
	if body, known := tx.answers[query]; known {
		return bytes.Clone(body), body != nil
	}
	body, err := tx.group.answer(&tx.books, query)
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
	var found int
	err := tx.group.l.writer.stmt.void.QueryRow(tx.books.number, query, at.UnixNano()).Scan(&found)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		tx.fail(err)
	}
	return err == nil
}

// Append debits and records an answer. It refuses with a *BudgetError to exceed the limits, with ErrAnswered to answer
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
	if err := d.check(); err != nil {
		return Receipt{}, err
	}
	b := &tx.books
	// Both sides are at most 2^63-1 and not negative, so the differences do not overflow.
	left := Amount{b.limits.Questions - b.spent.Questions, b.limits.Tokens - b.spent.Tokens}
	if d.Questions > left.Questions || d.Tokens > left.Tokens {
		return Receipt{}, &BudgetError{Requested: Amount{d.Questions, d.Tokens}, Left: left}
	}
	if _, answered := tx.Answer(d.Query); answered && !d.Void {
		return Receipt{}, fmt.Errorf("%w: %s", ErrAnswered, d.Query)
	}
	if tx.err != nil {
		return Receipt{}, tx.err
	}
	if len(tx.records) >= MaxAppends {
		return Receipt{}, invalid("more than %d answers in one update", MaxAppends)
	}
	r := record{
		Entry: Entry{Seq: b.seq + 1, Time: d.Time.UTC(), Query: d.Query, Principal: d.Principal, Questions: d.Questions,
			Tokens: d.Tokens, Canonical: bytes.Clone(d.Canonical), Kind: d.kind()},
		Spent: Amount{b.spent.Questions + d.Questions, b.spent.Tokens + d.Tokens},
	}
	r.seal(b.head, d.Core)
	b.seq, b.head, b.spent = r.Seq, r.Head, r.Spent
	tx.records = append(tx.records, r)
	if !d.Void {
		tx.answers[d.Query] = r.Body
	}
	return Receipt{Seq: r.Seq, Head: headText(r.Head), Body: bytes.Clone(r.Body)}, nil
}

func (d *Debit) kind() string {
	if d.Void {
		return KindVoid
	}
	return KindAnswer
}

func (d *Debit) check() error {
	if d.Questions < 0 || d.Tokens < 0 {
		return invalid("negative debit of %d questions and %d tokens", d.Questions, d.Tokens)
	}
	if len(d.Canonical) > MaxCanonicalBytes || !utf8.Valid(d.Canonical) {
		return invalid("canonical query of %d bytes: at most %d, in UTF-8", len(d.Canonical), MaxCanonicalBytes)
	}
	return errors.Join(checkText("query id", d.Query, false), checkText("principal", d.Principal, true),
		checkTime(d.Time), checkCore(d.Core))
}

// Idempotent records the use of an idempotency key together with what the update appends. If the key is recorded
// already it returns nil for the same request, and ErrIdempotencyMismatch for another.
func (tx *Tx) Idempotent(i Idempotency) error {
	if err := i.check(); err != nil {
		return err
	}
	if tx.err != nil {
		return tx.err
	}
	key := idemKey{i.Principal, i.Key}
	known, ok := tx.idem[key]
	if !ok {
		var err error
		if known, ok, err = tx.group.idempotency(key); err != nil {
			tx.fail(err)
			return tx.err
		}
	}
	switch {
	case ok && known.Request != i.Request:
		return ErrIdempotencyMismatch
	case !ok:
		tx.idem[key] = i
	}
	return nil
}

// fail makes the update's group fail: the database cannot be read.
func (tx *Tx) fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
	if tx.group.err == nil {
		tx.group.err = err
	}
}

// refuse makes this update fail alone, whatever fn returns.
func (tx *Tx) refuse(err error) {
	if tx.err == nil {
		tx.err = err
	}
}

// group is the updates of one commit: books and entries that are not durable yet, over those that are.
type group struct {
	l       *Ledger
	books   map[string]*books // by holdout
	changed map[string]int64  // the holdout's durable seq before this group
	records []groupRecord
	answers map[string]map[string][]byte // by holdout and query
	idem    map[idemKey]Idempotency
	err     error
}

type groupRecord struct {
	holdout int64
	record
}

func newGroup(l *Ledger) *group {
	return &group{l: l, books: map[string]*books{}, changed: map[string]int64{},
		answers: map[string]map[string][]byte{}, idem: map[idemKey]Idempotency{}}
}

// run is one update on the group's books; only its success changes them.
func (g *group) run(r *request) error {
	b, err := g.open(r.id)
	if err != nil {
		return err
	}
	tx := &Tx{group: g, books: *b, answers: map[string][]byte{}, idem: map[idemKey]Idempotency{}}
	defer func() { tx.over = true }()
	err = r.fn(tx)
	if tx.err != nil {
		err = tx.err
	}
	if err != nil {
		return err
	}
	g.merge(tx, b)
	return nil
}

// open is the holdout's books in this group.
func (g *group) open(id string) (*books, error) {
	b := g.books[id]
	if b == nil {
		if b = g.l.writer.books[id]; b == nil {
			var err error
			if b, err = g.l.readBooks(id); err != nil {
				if !isOurs(err) {
					g.err = err
				}
				return nil, err
			}
		}
		g.books[id] = b
	}
	if b.deleted {
		return nil, ErrDeleted
	}
	return b, nil
}

func (g *group) merge(tx *Tx, before *books) {
	id := before.id
	if len(tx.records) > 0 || !bytes.Equal(tx.books.state, before.state) || (tx.books.state == nil) != (before.state == nil) {
		if _, ok := g.changed[id]; !ok {
			g.changed[id] = before.seq
		}
		after := tx.books
		g.books[id] = &after
	}
	if len(tx.records) > 0 && g.answers[id] == nil {
		g.answers[id] = map[string][]byte{}
	}
	for _, r := range tx.records {
		g.records = append(g.records, groupRecord{before.number, r})
		if r.Kind == KindAnswer {
			g.answers[id][r.Query] = r.Body
		}
	}
	for key, i := range tx.idem {
		g.idem[key] = i
	}
}

// answer returns nil if the query has none.
func (g *group) answer(b *books, query string) ([]byte, error) {
	if body := g.answers[b.id][query]; body != nil {
		return body, nil
	}
	var body []byte
	err := g.l.writer.stmt.answer.QueryRow(b.number, query).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return body, err
}

func (g *group) idempotency(key idemKey) (Idempotency, bool, error) {
	if i, ok := g.idem[key]; ok {
		return i, true, nil
	}
	return scanIdempotency(g.l.writer.stmt.idempotency.QueryRow(key.principal, key.key), key)
}

func (g *group) dirty() bool { return len(g.changed) > 0 || len(g.idem) > 0 }

// flush writes the group. A holdout's row must be as the books had it before; otherwise someone else has written to
// this ledger, and everything that is believed about it is void.
func (g *group) flush(tx *sql.Tx) error {
	w := &g.l.writer
	for i := range g.records {
		if err := w.stmt.insertEntry(tx, g.records[i].holdout, &g.records[i].record); err != nil {
			return err
		}
	}
	for id, seq := range g.changed {
		b := g.books[id]
		state, err := g.l.sealer.seal(b.state, purposeState(b.id, b.seq))
		if err != nil {
			return err
		}
		done, err := tx.Stmt(w.stmt.debit).Exec(state, b.spent.Questions, b.spent.Tokens, b.seq, b.head[:], b.number, seq)
		if err := changedOne(done, err); err != nil {
			return err
		}
	}
	now := time.Now()
	for key, i := range g.idem {
		if _, err := tx.Stmt(w.stmt.insertIdem).Exec(key.principal, key.key, i.Request[:], i.Resource, now.UnixNano()); err != nil {
			return err
		}
	}
	if now.Sub(w.pruned) >= pruneEvery {
		if err := prune(context.Background(), tx, now); err != nil {
			return err
		}
		w.pruned = now
	}
	return nil
}

func changedOne(done sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("ledger: %d rows changed where one should: another program writes to this ledger", n)
	}
	return err
}

// keep makes the group's books the writer's, after the commit.
func (g *group) keep() {
	w := &g.l.writer
	if len(w.books)+len(g.books) > maxBooks {
		w.books = map[string]*books{}
	}
	for id, b := range g.books {
		w.books[id] = b
	}
}
