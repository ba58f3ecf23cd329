package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// books are what a server believes of a holdout.
type books struct {
	ledger.Books
	number int64 // of the row
}

// maxBooks is how many holdouts' books are kept in memory; beyond it they are read again.
const maxBooks = 4096

// believed is what is believed of a holdout's books, read where nothing is.
func (l *Ledger) believed(ctx context.Context, id string) (*books, error) {
	l.mu.Lock()
	b, damage := l.books[id], l.damaged[id]
	l.mu.Unlock()
	if damage != nil || b != nil {
		return b, damage
	}
	b, err := l.readBooks(ctx, l.readers, id, "")
	if err != nil {
		return nil, err
	}
	if err := l.checkEnd(ctx, b); err != nil {
		return nil, err
	}
	return b, nil
}

// believe keeps books that are durable.
func (l *Ledger) believe(b *books) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.books) >= maxBooks {
		l.books = map[string]*books{}
	}
	l.books[b.ID], l.ends[b.ID] = b, end{b.Seq, b.Head}
}

// doubt forgets what was believed of a holdout, and not where its chain was.
func (l *Ledger) doubt(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.books, id)
}

// checkEnd compares books with where this server has seen the chain before. A database that lost what it had acknowledged, as after a failover to a standby that lagged behind,
// has spent budget to give again: nothing is appended to the holdout then.
func (l *Ledger) checkEnd(ctx context.Context, b *books) error {
	l.mu.Lock()
	seen, ok := l.ends[b.ID]
	l.mu.Unlock()
	if !ok || seen.seq == b.Seq && seen.head == b.Head {
		return nil
	}
	head, _, err := l.HeadAt(ctx, b.ID, seen.seq)
	if err != nil {
		return err
	}
	if head == ledger.HeadText(seen.head) {
		return nil
	}
	damage := &ledger.CorruptError{Holdout: b.ID, Seq: seen.seq, Reason: "the database has lost what it had acknowledged: the chain has another head here than when this server wrote it"}
	l.log.Error("the ledger's database is older than it was, or another one: nothing is appended to this holdout", "holdout", b.ID, "error", damage)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damaged[b.ID] = damage
	return damage
}

// isEnded says of books, joined with their holdout, whether there is a closing, where they are not deleted, and whether there is a retirement.
const isEnded = "EXISTS (SELECT 1 FROM entries e WHERE e.holdout = number AND e.kind = 'closed') AND NOT coalesce(deleted, false), " +
	"EXISTS (SELECT 1 FROM entries e WHERE e.holdout = number AND e.kind = 'retired')"

// bookColumns are what bookScan takes, of books joined with their holdout: also the meters, in the same statement, so that all is of one moment.
const bookColumns = `number, seq, head, deleted, term, ` + isEnded + `, released,
	(SELECT json_object_agg(name, cap) FROM meters m WHERE m.holdout = number)::text,
	(SELECT json_object_agg(name, spent) FROM meters m WHERE m.holdout = number)::text`

// bookScan takes what bookColumns selects.
type bookScan struct {
	head          []byte
	released      string
	limits, spent *string
}

func (s *bookScan) into(b *books) []any {
	return []any{&b.number, &b.Seq, &s.head, &b.Deleted, &b.Term, &b.Closed, &b.Retired, &s.released, &s.limits, &s.spent}
}

// finish fills what could not be scanned at once.
func (s *bookScan) finish(b *books) error {
	if copy(b.Head[:], s.head) != len(b.Head) {
		return &ledger.CorruptError{Holdout: b.ID, Seq: b.Seq, Reason: "head is not 32 bytes"}
	}
	var err error
	if b.Limits, b.Spent, err = scanMeters(s.limits, s.spent); err != nil {
		return &ledger.CorruptError{Holdout: b.ID, Seq: -1, Reason: "meters", Err: err}
	}
	if b.Released, err = ledger.ParseEpsilons(s.released); err != nil {
		return &ledger.CorruptError{Holdout: b.ID, Seq: -1, Reason: "the account of releases", Err: err}
	}
	return nil
}

func scanMeters(limits, spent *string) (l, s ledger.Meters, err error) {
	if limits == nil || spent == nil {
		return nil, nil, errors.New("there are none")
	}
	return l, s, errors.Join(json.Unmarshal([]byte(*limits), &l), json.Unmarshal([]byte(*spent), &s))
}

// readBooks reads a holdout's books with the mechanism's state; of a deleted one that it is.
func (l *Ledger) readBooks(ctx context.Context, db rower, id, lock string) (*books, error) {
	b := &books{Books: ledger.Books{ID: id}}
	var scan bookScan
	var state []byte
	err := db.QueryRow(ctx, "SELECT "+bookColumns+", state FROM holdouts JOIN books ON holdout = number WHERE id = $1"+lock, id).Scan(append(scan.into(b), &state)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	if err := scan.finish(b); err != nil || b.Deleted {
		return b, err
	}
	if b.State, err = l.sealer.Open(state, ledger.StateAfter(b.Seq, id)); err != nil {
		return nil, &ledger.CorruptError{Holdout: id, Seq: b.Seq, Reason: "mechanism state", Err: err}
	}
	return b, nil
}

type idemKey struct{ principal, key string }

// group is the updates of one commit: books and entries that are not durable yet, over those that are believed to be.
type group struct {
	l       *Ledger
	before  *books
	after   *books
	exact   bool
	changed bool
	entries []ledger.Entry
	answers map[string][]byte // by query
	uses    map[idemKey]ledger.Idempotency
	err     error
}

func newGroup(l *Ledger, b *books, exact bool) *group {
	return &group{l: l, before: b, after: b, exact: exact, answers: map[string][]byte{}, uses: map[idemKey]ledger.Idempotency{}}
}

// run is one update on the group's books; only its success changes them.
//
// It answers a question without looking whether that has its answer: the commit, which cannot answer a question twice, says so. Where the update fails it is run again with
// the look-ups, since the reason may be that.
func (g *group) run(ctx context.Context, fn func(tx *ledger.Tx) error) error {
	look := &recorded{ctx: ctx, group: g, exact: g.exact}
	drafted, err := ledger.Draft(g.after.Books, look, fn)
	if err != nil && look.assumed {
		drafted, err = ledger.Draft(g.after.Books, &recorded{ctx: ctx, group: g, exact: true}, fn)
	}
	if err != nil {
		return err
	}
	g.changed = g.changed || drafted.Changed
	g.after = &books{Books: drafted.Books, number: g.before.number}
	g.entries = append(g.entries, drafted.Entries...)
	for _, e := range drafted.Entries {
		if e.Kind == ledger.KindAnswer {
			g.answers[e.Query] = e.Body
		}
	}
	for _, use := range drafted.Uses {
		g.uses[idemKey{use.Principal, use.Key}] = use
	}
	return nil
}

// recorded is what is known of a holdout before an update of the group. A database that cannot be read fails the whole group.
type recorded struct {
	ctx     context.Context
	group   *group
	exact   bool // look everything up
	assumed bool // something was not looked up
}

var _ ledger.CheckedLater = (*recorded)(nil)

// AnsweredLater implements ledger.CheckedLater.
func (r *recorded) AnsweredLater(query string) bool {
	if r.exact || r.group.answers[query] != nil {
		return false
	}
	r.assumed = true
	return true
}

// Answer implements ledger.Recorded.
func (r *recorded) Answer(query string) ([]byte, error) {
	if body := r.group.answers[query]; body != nil {
		return body, nil
	}
	var body []byte
	err := r.group.l.readers.QueryRow(r.ctx, "SELECT body FROM entries WHERE holdout = $1 AND query = $2 AND kind = 'answer'", r.group.before.number, query).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return body, r.fail(err)
}

// Voided implements ledger.Recorded. It knows of earlier commits alone: nobody asks in the commit that the void is in.
func (r *recorded) Voided(query string, at time.Time) (found bool, err error) {
	err = r.group.l.readers.QueryRow(r.ctx, "SELECT EXISTS (SELECT 1 FROM entries WHERE holdout = $1 AND query = $2 AND kind = 'void' AND time = $3)",
		r.group.before.number, query, at.UnixNano()).Scan(&found)
	return found, r.fail(err)
}

// Released implements ledger.Recorded. Where another server has recorded one behind the believed books, the commit says that they are not the newest.
func (r *recorded) Released(query string) (known bool, err error) {
	for i := range r.group.entries {
		if e := &r.group.entries[i]; e.Kind == ledger.KindRelease && e.Query == query {
			return true, nil
		}
	}
	err = r.group.l.readers.QueryRow(r.ctx, "SELECT EXISTS (SELECT 1 FROM entries WHERE holdout = $1 AND query = $2 AND kind = 'release')", r.group.before.number, query).Scan(&known)
	return known, r.fail(err)
}

// Idempotency implements ledger.Recorded. Whether a key is another request's the commit says.
func (r *recorded) Idempotency(principal, key string) (i ledger.Idempotency, ok bool, err error) {
	if i, ok := r.group.uses[idemKey{principal, key}]; ok {
		return i, true, nil
	}
	if !r.exact {
		r.assumed = true
		return i, false, nil
	}
	i, ok, err = scanIdempotency(r.group.l.readers.QueryRow(r.ctx, keyUse, principal, []byte(key)), principal, key)
	return i, ok, r.fail(err)
}

// fail makes the group fail: the database cannot be read.
func (r *recorded) fail(err error) error {
	if err != nil && r.group.err == nil {
		r.group.err = err
	}
	return err
}

// keyUse selects the use of an idempotency key, for scanIdempotency.
const keyUse = "SELECT request, resource, outcome FROM idempotency WHERE principal = $1 AND key = $2"

func scanIdempotency(row pgx.Row, principal, key string) (i ledger.Idempotency, ok bool, err error) {
	i.Principal, i.Key = principal, key
	var request, outcome []byte
	err = row.Scan(&request, &i.Resource, &outcome)
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.Idempotency{}, false, nil
	}
	if err != nil {
		return ledger.Idempotency{}, false, err
	}
	copy(i.Request[:], request) // 32 bytes by the table's CHECK
	i.Outcome = string(outcome)
	return i, true, nil
}

// recordText is the one statement of a commit, and releasedText that of one with a release.
const (
	recordText   = "SELECT record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)"
	releasedText = "SELECT record_released($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)"
)

// send makes the group durable in one statement, or says that its books are not what the database has. Where it changes nothing, it looks whether they are.
func (g *group) send(ctx context.Context) (stands bool, err error) {
	b := g.before
	if !g.changed && len(g.uses) == 0 {
		err := g.l.readers.QueryRow(ctx, "SELECT seq = $2 AND head = $3 AND term = $4 AND deleted = $5 FROM books WHERE holdout = $1", b.number, b.Seq, b.Head[:], b.Term, b.Deleted).Scan(&stands)
		return stands, err
	}
	state, err := g.l.sealer.Seal(g.after.State, ledger.StateAfter(g.after.Seq, g.after.ID))
	if err != nil {
		return false, err
	}
	if err := g.l.step(ledger.StepBegin); err != nil {
		return false, err
	}
	args := append([]any{b.number, b.Seq, b.Term, state}, g.meters()...)
	args = append(append(append(args, g.columns()...), g.keyUses()...), time.Now().UnixNano())
	statement := recordText
	if released := g.after.Released.Text(); released != b.Released.Text() {
		statement, args = releasedText, append(args, released)
	}
	if err := g.l.step(ledger.StepCommit); err != nil {
		return false, err
	}
	conn, err := g.l.writers.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	if err := conn.QueryRow(ctx, statement, args...).Scan(&stands); err != nil || !stands {
		return false, err
	}
	if err := waited(conn.Conn()); err != nil {
		return false, err
	}
	if err := g.l.step(ledger.StepCommitted); err != nil {
		return false, err
	}
	g.l.committed.Store(time.Now().UnixNano())
	g.l.prune()
	return true, nil
}

// meters are what is spent after the group, by name.
func (g *group) meters() []any {
	names := slices.Sorted(maps.Keys(g.after.Spent))
	spent := make([]int64, len(names))
	for i, name := range names {
		spent[i] = g.after.Spent[name]
	}
	return []any{names, spent}
}

// columns are the group's entries, column by column.
func (g *group) columns() []any {
	n := len(g.entries)
	versions, seqs, times := make([]int64, n), make([]int64, n), make([]int64, n)
	kinds, queries, principals, debits, spents := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	canonicals, bodies, heads, notes := make([][]byte, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i := range g.entries {
		e := &g.entries[i]
		versions[i], seqs[i], times[i] = int64(e.Version), e.Seq, e.Time.UnixNano()
		kinds[i], queries[i], principals[i], debits[i], spents[i] = e.Kind, e.Query, e.Principal, e.Debit.Text(), e.Spent.Text()
		canonicals[i], bodies[i], heads[i], notes[i] = notNull(e.Canonical), e.Body, e.Head[:], []byte(e.Note)
	}
	return []any{versions, seqs, kinds, times, queries, canonicals, principals, debits, spents, bodies, heads, notes}
}

// keyUses are the group's uses of idempotency keys, column by column.
func (g *group) keyUses() []any {
	n := len(g.uses)
	principals, resources := make([]string, 0, n), make([]string, 0, n)
	keys, requests, outcomes := make([][]byte, 0, n), make([][]byte, 0, n), make([][]byte, 0, n)
	for _, use := range g.uses {
		principals, resources = append(principals, use.Principal), append(resources, use.Resource)
		keys, requests, outcomes = append(keys, []byte(use.Key)), append(requests, use.Request[:]), append(outcomes, []byte(use.Outcome))
	}
	return []any{principals, keys, requests, resources, outcomes}
}

// notNull is empty bytes for none.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// pruneEvery is how often idempotency keys are removed that are older than they are remembered.
const pruneEvery = time.Hour

// prune removes old idempotency keys now and then, in the background.
func (l *Ledger) prune() {
	last, now := l.pruned.Load(), time.Now()
	if now.Sub(time.Unix(0, last)) < pruneEvery || !l.pruned.CompareAndSwap(last, now.UnixNano()) || last == 0 { // the start's probe has done it
		return
	}
	_ = l.accept(func() { _ = l.transaction(context.Background(), l.probe) }) // the next hour tries again
}
