package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// timeOf is the time of nanoseconds since 1970, where 0 is none.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// readHeld reads what grants of a holdout hold; nil where there was never one.
func readHeld(text string, into *ledger.Meters) error {
	var held ledger.Meters
	err := json.Unmarshal([]byte(text), &held)
	if *into = held; len(held) == 0 {
		*into = nil
	}
	return err
}

// lookUp reads what an update asks for beside answers and idempotency keys. What it sees belongs to the books that are believed, if these have not moved when
// the update commits: every void and every change of a grant moves them.
type lookUp struct {
	ctx   context.Context
	db    rower
	books *books
	now   func() time.Time
}

func (l lookUp) voided(query string, at time.Time) (found bool, err error) {
	err = l.db.QueryRow(l.ctx, "SELECT EXISTS (SELECT FROM holdoutd.entries WHERE holdout = $1 AND query = $2 AND kind = 'void' AND time = $3)",
		l.books.number, []byte(query), at.UnixNano()).Scan(&found)
	return found, err
}

// Grant implements ledger.Recorded.
func (g *group) Grant(id string) (ledger.Grant, bool, error) {
	if c, ok := g.grants[id]; ok {
		return c.Grant, true, nil
	}
	if known, ok := g.before.grants[id]; ok {
		return known, true, nil
	}
	all, err := readGrants(g.look.ctx, g.look.db, asRecorded, "WHERE g.holdout = $2 AND g.id = $3", g.before.number, []byte(id))
	if err != nil || len(all) == 0 {
		return ledger.Grant{}, false, g.fail(err)
	}
	found := all[0]
	found.Until = time.Time{} // a Tx works it out
	g.before.grants[id] = found
	return found, true, nil
}

// Due implements ledger.Recorded.
func (g *group) Due(at time.Time) (ids []string, next time.Time, err error) {
	type due struct {
		id      []byte
		expires int64
	}
	all, err := readAll(g.look.ctx, g.look.db, func(row pgx.Row) (d due, err error) { return d, row.Scan(&d.id, &d.expires) },
		"SELECT id, expires FROM holdoutd.grants WHERE holdout = $1 AND ended IS NULL AND expires IS NOT NULL ORDER BY number", g.before.number)
	if err != nil {
		return nil, next, g.fail(err)
	}
	see := func(id string, expires time.Time) {
		switch {
		case !expires.After(at):
			ids = append(ids, id)
		case next.IsZero() || expires.Before(next):
			next = expires
		}
	}
	for _, d := range all {
		if c, changed := g.grants[string(d.id)]; !changed || c.Ended.IsZero() {
			see(string(d.id), timeOf(d.expires))
		}
	}
	if err := g.lookUpDue(at, ids); err != nil {
		return nil, next, err
	}
	for _, id := range g.made {
		if c := g.grants[id]; c.Ended.IsZero() && !c.Expires.IsZero() {
			see(id, c.Expires)
		}
	}
	return ids, next, nil
}

// lookUpDue looks up grants that expire now, and those that they are parts of, at once: they may be thousands, and a round trip for each would take longer than a commit may.
func (g *group) lookUpDue(at time.Time, ids []string) error {
	if !slices.ContainsFunc(ids, func(id string) bool { _, known := g.before.grants[id]; return !known }) {
		return nil
	}
	const due = "g.holdout = $2 AND g.ended IS NULL AND g.expires <= $3"
	found, err := readGrants(g.look.ctx, g.look.db, asRecorded,
		"WHERE "+due+" OR g.id IN (SELECT g.parent FROM holdoutd.grants g WHERE "+due+")", g.before.number, at.UnixNano())
	for _, each := range found {
		each.Until = time.Time{} // a Tx works it out
		g.before.grants[each.ID] = each
	}
	return g.fail(err)
}

// Now implements ledger.Recorded.
func (g *group) Now() time.Time { return g.look.now() }

// mergeGrants takes what an update made of grants.
func (g *group) mergeGrants(changes []ledger.GrantChange) {
	for _, c := range changes {
		if before, ok := g.grants[c.ID]; ok {
			c = before.Merge(c)
		} else if c.New {
			g.made = append(g.made, c.ID)
		}
		g.grants[c.ID] = c
	}
}

// What move_grants reads.
type (
	grantMade struct {
		ID       string  `json:"id"`
		Parent   *string `json:"parent"`
		Holder   string  `json:"holder"`
		Name     string  `json:"name"`
		Shows    string  `json:"shows"`
		MayGrant bool    `json:"may_grant"`
		Maker    string  `json:"maker"`
		Created  int64   `json:"created"`
		Expires  *int64  `json:"expires"`
	}
	grantMeter struct {
		Owner string `json:"owner,omitempty"`
		Name  string `json:"name"`
		Cap   int64  `json:"cap"`
		Spent int64  `json:"spent"`
		Held  int64  `json:"held"`
	}
	grantEnded struct {
		ID string `json:"id"`
		At int64  `json:"at"`
		By string `json:"by"`
	}
	grantsMoved struct {
		Made    []grantMade  `json:"made"`
		Begun   []grantMeter `json:"begun"`
		Moved   []grantMeter `json:"moved"`
		Ended   []grantEnded `json:"ended"`
		Held    []grantMeter `json:"held"`
		Changes int64        `json:"changes"`
	}
)

func hexOf(s string) string { return hex.EncodeToString([]byte(s)) }

// grantArguments is what the group made of grants, and of what they hold, for move_grants; nil where it is nothing.
func (g *group) grantArguments() (any, error) {
	m := grantsMoved{Made: []grantMade{}, Begun: []grantMeter{}, Moved: []grantMeter{}, Ended: []grantEnded{}, Held: []grantMeter{}}
	for _, id := range g.made {
		c := g.grants[id]
		made := grantMade{ID: hexOf(c.ID), Holder: hexOf(c.Holder), Name: hexOf(c.Name), Shows: hexOf(c.Shows), MayGrant: c.MayGrant, Maker: hexOf(c.By), Created: c.Created.UnixNano()}
		if c.Parent != "" {
			parent := hexOf(c.Parent)
			made.Parent = &parent
		}
		if !c.Expires.IsZero() {
			at := c.Expires.UnixNano()
			made.Expires = &at
		}
		m.Made = append(m.Made, made)
	}
	for _, c := range g.grants {
		for name, limit := range c.Limits {
			meter := grantMeter{Owner: hexOf(c.ID), Name: name, Cap: limit, Spent: c.Spent[name], Held: c.Held[name]}
			switch {
			case c.New:
				m.Begun = append(m.Begun, meter)
			case c.Spent[name] != c.Was[name] || c.Held[name] != c.Had[name]:
				m.Moved = append(m.Moved, meter)
			}
		}
		if c.Ends {
			m.Ended = append(m.Ended, grantEnded{hexOf(c.ID), c.Ended.UnixNano(), hexOf(c.EndedBy)})
		}
	}
	for name, held := range g.after.Held {
		if was, known := g.before.Held[name]; !known || was != held {
			m.Held = append(m.Held, grantMeter{Name: name, Held: held})
		}
	}
	if g.after.Grants != g.before.Grants {
		m.Changes = g.after.Grants
	}
	if len(g.grants) == 0 && len(m.Held) == 0 && m.Changes == 0 {
		return nil, nil
	}
	text, err := json.Marshal(m)
	return string(text), err
}

// asRecorded is before every time: nothing has expired that was not ended.
const asRecorded = -1 << 63

// grantsAt are some grants, which a condition chooses, as they are at the time of the first argument: what has expired is held by nobody any more, and a grant ends with the first of those
// that it is a part of. What parts that have expired and were not ended have left is summed once for all of them: there may be as many of these as there are grants.
func grantsAt(which string) string {
	return `WITH chosen AS MATERIALIZED (SELECT g.* FROM holdoutd.grants g ` + which + `),
	expired AS MATERIALIZED (SELECT d.whole, json_object_agg(d.name, d.due)::text AS due FROM (SELECT p.parent AS whole, m.name, sum(m.cap - m.spent) AS due
		FROM holdoutd.grants p JOIN holdoutd.grant_meters m ON m.owner = p.id
		WHERE p.holdout IN (SELECT holdout FROM chosen) AND p.parent IN (SELECT id FROM chosen) AND p.ended IS NULL AND p.expires <= $1 GROUP BY p.parent, m.name) d GROUP BY d.whole)
	SELECT g.id, coalesce(g.parent, ''), g.holder, g.name, g.shows, g.may_grant, g.maker, g.created, coalesce(g.expires, 0), coalesce(g.ended, 0), g.ended_by,
	(SELECT json_object_agg(m.name, m.cap)::text FROM holdoutd.grant_meters m WHERE m.owner = g.id),
	(SELECT json_object_agg(m.name, m.spent)::text FROM holdoutd.grant_meters m WHERE m.owner = g.id),
	(SELECT json_object_agg(m.name, m.held)::text FROM holdoutd.grant_meters m WHERE m.owner = g.id),
	(SELECT h.id FROM holdoutd.holdouts h WHERE h.number = g.holdout), coalesce(expired.due, '{}'),
	(WITH RECURSIVE path (parent, expires, ended) AS (SELECT g.parent, g.expires, g.ended
		UNION ALL SELECT p.parent, p.expires, p.ended FROM path JOIN holdoutd.grants p ON p.id = path.parent)
		SELECT coalesce(min(least(path.expires, path.ended)), 0) FROM path)
	FROM chosen g LEFT JOIN expired ON expired.whole = g.id ORDER BY g.number`
}

func readGrants(ctx context.Context, db rower, at int64, which string, args ...any) ([]ledger.Grant, error) {
	return readAll(ctx, db, func(row pgx.Row) (g ledger.Grant, err error) {
		var id, parent, holder, name, shows, by, endedBy, holdout []byte
		var created, expires, ended, until int64
		var limits, spent, held, due string
		if err := row.Scan(&id, &parent, &holder, &name, &shows, &g.MayGrant, &by, &created, &expires, &ended, &endedBy, &limits, &spent, &held, &holdout, &due, &until); err != nil {
			return g, err
		}
		g.ID, g.Parent, g.Holder, g.Name, g.Shows, g.By, g.EndedBy, g.Holdout = string(id), string(parent), string(holder), string(name), string(shows), string(by), string(endedBy), string(holdout)
		g.Created, g.Expires, g.Ended, g.Until = time.Unix(0, created).UTC(), timeOf(expires), timeOf(ended), timeOf(until)
		var over ledger.Meters
		err = errors.Join(json.Unmarshal([]byte(limits), &g.Limits), json.Unmarshal([]byte(spent), &g.Spent), json.Unmarshal([]byte(held), &g.Held), json.Unmarshal([]byte(due), &over))
		if err != nil {
			return g, &ledger.CorruptError{Holdout: g.Holdout, Seq: -1, Reason: "meters of grant " + g.ID, Err: err}
		}
		for name, amount := range over {
			g.Held[name] -= amount
		}
		return g, nil
	}, grantsAt(which), append([]any{at}, args...)...)
}

// Grants implements ledger.Ledger.
func (l *Ledger) Grants(ctx context.Context, holdout, holder string) ([]ledger.Grant, error) {
	now := l.now().UnixNano()
	switch {
	case holdout == "" && holder == "":
		return nil, fmt.Errorf("%w: grants of no holdout and of no holder", ledger.ErrInvalid)
	case holder == "":
		return readGrants(ctx, l.readers, now, "WHERE g.holdout = (SELECT number FROM holdoutd.holdouts WHERE id = $2)", []byte(holdout))
	case holdout == "":
		return readGrants(ctx, l.readers, now, "WHERE g.holder = $2", []byte(holder))
	}
	return readGrants(ctx, l.readers, now, "WHERE g.holder = $2 AND g.holdout = (SELECT number FROM holdoutd.holdouts WHERE id = $3)", []byte(holder), []byte(holdout))
}

// Grant implements ledger.Ledger.
func (l *Ledger) Grant(ctx context.Context, id string) (ledger.Grant, error) {
	all, err := readGrants(ctx, l.readers, l.now().UnixNano(), "WHERE g.id = $2", []byte(id))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: grant %q", ledger.ErrNotFound, id)
	}
	if err != nil {
		return ledger.Grant{}, err
	}
	return all[0], nil
}

// addPayers gives entries, which are in order, the grants that paid.
func addPayers(ctx context.Context, db rower, number int64, entries []ledger.Entry) error {
	type payer struct {
		seq int64
		id  []byte
	}
	scan := func(row pgx.Row) (p payer, err error) { return p, row.Scan(&p.seq, &p.id) }
	payers, err := readAll(ctx, db, scan, "SELECT seq, payer FROM holdoutd.payers WHERE holdout = $1 AND seq >= $2 AND seq <= $3", number, entries[0].Seq, entries[len(entries)-1].Seq)
	for _, p := range payers {
		if i := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Seq == p.seq }); i >= 0 {
			entries[i].Grant = string(p.id)
		}
	}
	return err
}

// Spending implements ledger.Ledger. Events, which nobody asked for, have names that no query's id has.
func (l *Ledger) Spending(ctx context.Context, holdout string) ([]ledger.Spending, error) {
	number, _, err := l.end(ctx, holdout)
	if err != nil {
		return nil, err
	}
	type sum struct {
		principal, grant []byte
		kind, debit      string
		count            int64
	}
	sums, err := readAll(ctx, l.readers, func(row pgx.Row) (s sum, err error) {
		return s, row.Scan(&s.principal, &s.grant, &s.kind, &s.debit, &s.count)
	},
		`SELECT e.principal, coalesce(p.payer, ''), e.kind, e.debit, count(*) FROM holdoutd.entries e LEFT JOIN holdoutd.payers p ON p.holdout = e.holdout AND p.seq = e.seq
		WHERE e.holdout = $1 AND e.kind IN ('answer', 'void') AND NOT (e.query >= 'inherited:' AND e.query < 'inherited;') AND NOT (e.query >= 'end:' AND e.query < 'end;')
		GROUP BY 1, 2, 3, 4 ORDER BY 1, 2`, number)
	if err != nil {
		return nil, err
	}
	var all []ledger.Spending
	for _, s := range sums {
		each, err := ledger.ParseMeters(s.debit)
		if err != nil {
			return nil, &ledger.CorruptError{Holdout: holdout, Seq: -1, Reason: "debit", Err: err}
		}
		if len(all) == 0 || all[len(all)-1].Principal != string(s.principal) || all[len(all)-1].Grant != string(s.grant) {
			all = append(all, ledger.Spending{Principal: string(s.principal), Grant: string(s.grant)})
		}
		all[len(all)-1].Add(s.kind, each, s.count)
	}
	return all, nil
}
