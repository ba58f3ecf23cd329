package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Update implements ledger.Ledger: together with other callers' updates, in one commit.
func (l *Ledger) Update(ctx context.Context, id string, fn func(tx *ledger.Tx) error) error {
	return l.submit(ctx, &request{id: id, fn: fn})
}

// books are what the writer remembers of a holdout.
type books struct {
	ledger.Books
	number int64 // of the row
}

type idemKey struct{ principal, key string }

// group is the updates of one commit: books and entries that are not durable yet, over those that are.
type group struct {
	l       *Ledger
	books   map[string]*books // by holdout
	changed map[string]*books // by holdout: the durable ones, before this group
	records []groupRecord
	answers map[string]map[string][]byte // by holdout and query
	idem    map[idemKey]ledger.Idempotency
	err     error
}

type groupRecord struct {
	holdout int64
	ledger.Entry
}

func newGroup(l *Ledger) *group {
	return &group{l: l, books: map[string]*books{}, changed: map[string]*books{},
		answers: map[string]map[string][]byte{}, idem: map[idemKey]ledger.Idempotency{}}
}

// run is one update on the group's books; only its success changes them.
func (g *group) run(r *request) error {
	b, err := g.open(r.id)
	if err != nil {
		return err
	}
	drafted, err := ledger.Draft(b.Books, recorded{g, b}, r.fn)
	if err != nil {
		return err
	}
	g.merge(b, drafted)
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
	return b, nil
}

func (g *group) merge(before *books, d ledger.Drafted) {
	id := before.ID
	if d.Changed {
		if _, ok := g.changed[id]; !ok {
			g.changed[id] = before
		}
		g.books[id] = &books{Books: d.Books, number: before.number}
	}
	if len(d.Entries) > 0 && g.answers[id] == nil {
		g.answers[id] = map[string][]byte{}
	}
	for _, e := range d.Entries {
		g.records = append(g.records, groupRecord{before.number, e})
		if e.Kind == ledger.KindAnswer {
			g.answers[id][e.Query] = e.Body
		}
	}
	for _, i := range d.Uses {
		g.idem[idemKey{i.Principal, i.Key}] = i
	}
}

// recorded is what is known of a holdout before an update of the group. A database that cannot be read fails the whole group.
type recorded struct {
	group *group
	books *books
}

// Answer implements ledger.Recorded.
func (r recorded) Answer(query string) ([]byte, error) {
	if body := r.group.answers[r.books.ID][query]; body != nil {
		return body, nil
	}
	var body []byte
	err := r.group.l.writer.stmt.answer.QueryRow(r.books.number, query).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return body, r.group.fail(err)
}

// Voided implements ledger.Recorded. It knows of earlier commits alone: nobody asks in the commit that the void is in.
func (r recorded) Voided(query string, at time.Time) (bool, error) {
	var found int
	err := r.group.l.writer.stmt.void.QueryRow(r.books.number, query, at.UnixNano()).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, r.group.fail(err)
}

// Released implements ledger.Recorded. A release of the same commit it does not know: the index does, and then the updates run one by one.
func (r recorded) Released(query string) (known bool, err error) {
	err = r.group.l.writer.stmt.release.QueryRow(r.books.number, query).Scan(&known)
	return known, r.group.fail(err)
}

// Idempotency implements ledger.Recorded.
func (r recorded) Idempotency(principal, key string) (ledger.Idempotency, bool, error) {
	name := idemKey{principal, key}
	if i, ok := r.group.idem[name]; ok {
		return i, true, nil
	}
	i, ok, err := scanIdempotency(r.group.l.writer.stmt.idempotency.QueryRow(principal, key), name)
	return i, ok, r.group.fail(err)
}

// fail makes the group fail: the database cannot be read.
func (g *group) fail(err error) error {
	if err != nil && g.err == nil {
		g.err = err
	}
	return err
}

func (g *group) dirty() bool { return len(g.changed) > 0 || len(g.idem) > 0 }

// flush writes the group. A holdout's row must be as the books had it before; otherwise someone else has written to
// this ledger, and everything that is believed about it is void.
func (g *group) flush(tx *sql.Tx) error {
	w := &g.l.writer
	for i := range g.records {
		if err := w.stmt.insertEntry(tx, g.records[i].holdout, &g.records[i].Entry); err != nil {
			return err
		}
	}
	for id, before := range g.changed {
		if err := w.stmt.updateBooks(tx, &g.l.sealer, before, g.books[id]); err != nil {
			return err
		}
	}
	now := time.Now()
	for key, i := range g.idem {
		if _, err := tx.Stmt(w.stmt.insertIdem).Exec(key.principal, key.key, i.Request[:], i.Resource, i.Outcome, now.UnixNano()); err != nil {
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
