package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// books are what is believed of a holdout.
type books struct {
	ledger.Books
	number    int64                   // of the row
	moves     int64                   // how often the row has changed
	restored  bool                    // from a backup, and not accepted yet
	grants    map[string]ledger.Grant // that were looked up since: they change with the books alone
	contended bool                    // another server moves these books too: take their lock first
}

type idemKey struct{ principal, key string }

// facts were found in the database where a group had believed that there was nothing.
type facts struct {
	answers map[string][]byte // by query
	uses    map[idemKey]ledger.Idempotency
}

// group is updates of one holdout that are committed together: books and entries that are not durable yet, over those that are believed. That a
// query has no answer, and that an idempotency key was not used, is believed until the database says otherwise: it is compared in the round trip
// that commits.
type group struct {
	before, after *books
	known         *facts
	look          lookUp

	entries []ledger.Entry
	answers map[string][]byte
	uses    map[idemKey]ledger.Idempotency
	grants  map[string]ledger.GrantChange // what the group's updates made of grants
	made    []string                      // ids of new ones, in order
	changed bool

	absent map[string]bool  // queries that were looked up in vain
	unused map[idemKey]bool // likewise
	err    error            // the database cannot be read
}

func newGroup(b *books, known *facts, look lookUp) *group {
	return &group{before: b, after: b, known: known, look: look, grants: map[string]ledger.GrantChange{}, answers: map[string][]byte{}, uses: map[idemKey]ledger.Idempotency{},
		absent: map[string]bool{}, unused: map[idemKey]bool{}}
}

// run is one update on the group's books; only its success changes them. accepts says that it may run on a holdout that was restored, and ends that.
func (g *group) run(fn func(tx *ledger.Tx) error, accepts bool) error {
	if g.after.restored && !accepts {
		return ledger.ErrRestored
	}
	d, err := ledger.Draft(g.after.Books, g, fn)
	if err != nil {
		return err
	}
	if d.Changed || g.after.restored {
		after := *g.after
		after.Books, after.restored = d.Books, false
		g.after, g.changed = &after, true
	}
	for _, e := range d.Entries {
		g.entries = append(g.entries, e)
		if e.Kind == ledger.KindAnswer {
			g.answers[e.Query] = e.Body
		}
	}
	g.mergeGrants(d.Grants)
	for _, i := range d.Uses {
		g.uses[idemKey{i.Principal, i.Key}] = i
	}
	return nil
}

// Answer implements ledger.Recorded.
func (g *group) Answer(query string) ([]byte, error) {
	if body := g.answers[query]; body != nil {
		return body, nil
	}
	if body := g.known.answers[query]; body != nil {
		return body, nil
	}
	g.absent[query] = true
	return nil, nil
}

// Voided implements ledger.Recorded. It knows of earlier commits alone: nobody asks in the commit that the void is in.
func (g *group) Voided(query string, at time.Time) (bool, error) {
	found, err := g.look.voided(query, at)
	return found, g.fail(err)
}

// fail makes the group fail: the database cannot be read.
func (g *group) fail(err error) error {
	if err != nil && g.err == nil {
		g.err = err
	}
	return err
}

// Idempotency implements ledger.Recorded.
func (g *group) Idempotency(principal, key string) (ledger.Idempotency, bool, error) {
	name := idemKey{principal, key}
	if i, ok := g.uses[name]; ok {
		return i, true, nil
	}
	if i, ok := g.known.uses[name]; ok {
		return i, true, nil
	}
	g.unused[name] = true
	return ledger.Idempotency{}, false, nil
}

func (g *group) dirty() bool { return g.changed || len(g.uses) > 0 }

const moveBooks = "SELECT holdoutd.move_books($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)"

// What move_books returns.
const (
	moved    = 1 // the books are others by now
	answered = 2 // a query that was looked up in vain is answered
	used     = 3 // a key that was looked up in vain was used
)

// arguments are those of move_books: what the group believed, and what it makes of the books.
func (g *group) arguments(s *ledger.Sealer) ([]any, error) {
	b, a := g.before, g.after
	var state []byte
	if g.changed {
		var err error
		if state, err = s.Seal(a.State, ledger.StateAfter(a.Seq, a.ID)); err != nil {
			return nil, err
		}
	}
	absent := make([][]byte, 0, len(g.absent))
	for q := range g.absent {
		absent = append(absent, []byte(q))
	}
	unusedBy, unused := keyArrays(g.unused)
	meters, spent := []string{}, []int64{}
	for name, amount := range a.Spent {
		if amount != b.Spent[name] {
			meters, spent = append(meters, name), append(spent, amount)
		}
	}
	e := columnsOf(g.entries)
	grants, err := g.grantArguments()
	if err != nil {
		return nil, err
	}
	by, keys := make([][]byte, 0, len(g.uses)), make([][]byte, 0, len(g.uses))
	requests, resources := make([][]byte, 0, len(g.uses)), make([][]byte, 0, len(g.uses))
	for _, i := range g.uses {
		by, keys = append(by, []byte(i.Principal)), append(keys, []byte(i.Key))
		requests, resources = append(requests, i.Request[:]), append(resources, []byte(i.Resource))
	}
	return []any{b.number, b.moves, b.Head[:], absent, unusedBy, unused, g.changed, b.restored && !a.restored, state, a.Head[:], meters, spent,
		e.versions, e.kinds, e.times, e.queries, e.canonicals, e.principals, e.debits, e.spents, e.bodies, e.heads, e.notes, e.payers, grants, by, keys, requests, resources}, nil
}

// columns are entries as the database's functions take them.
type columns struct {
	versions                                                      []int32
	kinds, debits, spents                                         []string
	times                                                         []int64
	queries, canonicals, principals, bodies, heads, notes, payers [][]byte
}

func columnsOf(entries []ledger.Entry) columns {
	none := func() [][]byte { return [][]byte{} } // nil would be NULL
	c := columns{[]int32{}, []string{}, []string{}, []string{}, []int64{}, none(), none(), none(), none(), none(), none(), none()}
	for i := range entries {
		e := &entries[i]
		c.versions, c.kinds, c.times = append(c.versions, int32(e.Version)), append(c.kinds, e.Kind), append(c.times, e.Time.UnixNano())
		c.debits, c.spents = append(c.debits, e.Debit.Text()), append(c.spents, e.Spent.Text())
		c.queries, c.canonicals = append(c.queries, []byte(e.Query)), append(c.canonicals, bytesOf(e.Canonical))
		c.principals, c.bodies = append(c.principals, []byte(e.Principal)), append(c.bodies, e.Body)
		c.heads, c.notes = append(c.heads, e.Head[:]), append(c.notes, []byte(e.Note))
		c.payers = append(c.payers, []byte(e.Grant))
	}
	return c
}

func keyArrays(keys map[idemKey]bool) (by, names [][]byte) {
	by, names = make([][]byte, 0, len(keys)), make([][]byte, 0, len(keys))
	for k := range keys {
		by, names = append(by, []byte(k.principal)), append(names, []byte(k.key))
	}
	return by, names
}

// bytesOf is not nil, which would be NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// next is what is believed of the books once the group is durable.
func (g *group) next() *books {
	after := *g.after
	if g.changed {
		after.moves++
	}
	for id, c := range g.grants {
		after.grants[id] = c.Grant
	}
	return &after
}

// find looks up what the group believed not to be there.
func (f *facts) find(ctx context.Context, db rower, g *group) error {
	absent := make([][]byte, 0, len(g.absent))
	for q := range g.absent {
		absent = append(absent, []byte(q))
	}
	rows, err := db.Query(ctx, "SELECT query, body FROM holdoutd.entries WHERE holdout = $1 AND query = ANY ($2) AND kind = 'answer'", g.before.number, absent)
	if err != nil {
		return err
	}
	var query, body []byte
	_, err = pgx.ForEachRow(rows, []any{&query, &body}, func() error {
		f.answers[string(query)] = body
		body = nil
		return nil
	})
	if err != nil {
		return err
	}
	by, names := keyArrays(g.unused)
	rows, err = db.Query(ctx, `SELECT i.principal, i.key, request, resource FROM holdoutd.idempotency i
		JOIN unnest($1::bytea[], $2::bytea[]) w (principal, key) ON i.principal = w.principal AND i.key = w.key`, by, names)
	if err != nil {
		return err
	}
	var principal, key, request, resource []byte
	_, err = pgx.ForEachRow(rows, []any{&principal, &key, &request, &resource}, func() error {
		i := ledger.Idempotency{Principal: string(principal), Key: string(key), Resource: string(resource)}
		copy(i.Request[:], request) // 32 bytes by the table's CHECK
		f.uses[idemKey{i.Principal, i.Key}] = i
		return nil
	})
	return err
}

func newFacts() *facts { return &facts{map[string][]byte{}, map[idemKey]ledger.Idempotency{}} }

// standing reads books as they are now, with whether the holdout is a draft: from the view of this name, or from lock_books.
const standing = "SELECT number, id, moves, seq, head, deleted, draft, restored, state, limits, spent, ended, held, due, changes FROM holdoutd."

// scanStanding reads a row of it. The state is sealed still.
func scanStanding(row pgx.Row) (b *books, draft bool, sealed []byte, err error) {
	b = &books{grants: map[string]ledger.Grant{}}
	var id, head, ended []byte
	var limits, spent, held string
	var due int64
	if err := row.Scan(&b.number, &id, &b.moves, &b.Seq, &head, &b.Deleted, &draft, &b.restored, &sealed, &limits, &spent, &ended, &held, &due, &b.Grants); err != nil {
		return nil, false, nil, err
	}
	b.ID, b.End, b.Due = string(id), ledger.EndOf(string(ended)), timeOf(due)
	if copy(b.Head[:], head) != len(head) || len(head) != len(b.Head) {
		return nil, false, nil, &ledger.CorruptError{Holdout: b.ID, Seq: b.Seq, Reason: "head is not 32 bytes"}
	}
	if err := errors.Join(json.Unmarshal([]byte(limits), &b.Limits), json.Unmarshal([]byte(spent), &b.Spent), readHeld(held, &b.Held)); err != nil {
		return nil, false, nil, &ledger.CorruptError{Holdout: b.ID, Seq: -1, Reason: "meters", Err: err}
	}
	return b, draft, sealed, nil
}

// scanBooks reads a row of it and opens the state, unless we have no key.
func (l *Ledger) scanBooks(row pgx.Row) (b *books, draft bool, err error) {
	b, draft, sealed, err := scanStanding(row)
	if err != nil || l.replayOnly {
		return b, draft, err
	}
	if b.State, err = l.sealer.Open(sealed, ledger.StateAfter(b.Seq, b.ID)); err != nil {
		return nil, false, &ledger.CorruptError{Holdout: b.ID, Seq: b.Seq, Reason: "mechanism state", Err: err}
	}
	return b, draft, nil
}

// findBooks reads a holdout's books as they are now, or is ledger.ErrNotFound.
func (l *Ledger) findBooks(ctx context.Context, db rower, id string) (*books, error) {
	b, _, err := l.scanBooks(db.QueryRow(ctx, standing+"standing WHERE id = $1", []byte(id)))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	return b, err
}

const lockBooks = standing + "lock_books($1)"

// keep remembers books, and forgets all others where they are too many.
func (l *Ledger) keep(b *books) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.believe) >= maxBooks {
		l.believe = map[string]*books{}
	}
	l.believe[b.ID] = b
}

func (l *Ledger) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.believe, id)
}
