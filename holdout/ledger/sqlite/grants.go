package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// maxGrants is how many grants the writer remembers; beyond it they are read again.
const maxGrants = 1 << 16

// grantColumns are what scanGrant scans, of grants: also the amounts, in the same statement.
const grantColumns = `id, coalesce(parent, ''), holder, name, shows, may_grant, maker, created, coalesce(expires, 0), coalesce(ended, 0), ended_by,
	(SELECT json_group_object(m.name, cap) FROM grant_meters m WHERE owner = grants.id),
	(SELECT json_group_object(m.name, spent) FROM grant_meters m WHERE owner = grants.id),
	(SELECT json_group_object(m.name, held) FROM grant_meters m WHERE owner = grants.id)`

// scanGrant reads a grant of a holdout, and what else was selected after it.
func scanGrant(row scanner, holdout string, more ...any) (g ledger.Grant, err error) {
	var created, expires, ended int64
	var limits, spent, held string
	if err := row.Scan(append([]any{&g.ID, &g.Parent, &g.Holder, &g.Name, &g.Shows, &g.MayGrant, &g.By, &created, &expires, &ended, &g.EndedBy, &limits, &spent, &held}, more...)...); err != nil {
		return g, err
	}
	g.Holdout, g.Created, g.Expires, g.Ended = holdout, time.Unix(0, created).UTC(), timeOf(expires), timeOf(ended)
	if err := errors.Join(json.Unmarshal([]byte(limits), &g.Limits), json.Unmarshal([]byte(spent), &g.Spent), json.Unmarshal([]byte(held), &g.Held)); err != nil {
		return g, &ledger.CorruptError{Holdout: holdout, Seq: -1, Reason: "meters of grant " + g.ID, Err: err}
	}
	return g, nil
}

// timeOf is the time of nanoseconds since 1970, where 0 is none.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// nullTime is the inverse of timeOf in a column that can be NULL.
func nullTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

// readHeld reads what grants of a holdout hold; nil where there was never one.
func readHeld(id, text string, into *ledger.Meters) error {
	var held ledger.Meters
	if err := json.Unmarshal([]byte(text), &held); err != nil {
		return &ledger.CorruptError{Holdout: id, Seq: -1, Reason: "what is granted", Err: err}
	}
	if *into = held; len(held) == 0 {
		*into = nil
	}
	return nil
}

// heldNow selects what grants of a holdout hold at the time of the first argument: what has expired holds nothing, though no update has ended it yet. Where the
// holdout's questions were ended no grant does.
func (v schema) heldNow() string {
	if v < withGrants {
		return "iif(?1 > 0, '{}', '{}')"
	}
	return `(SELECT json_group_object(name, iif(held = 0, 0, held - coalesce((SELECT sum(m.cap - m.spent) FROM grants g JOIN grant_meters m ON m.owner = g.id
		WHERE g.holdout = granted.holdout AND g.parent IS NULL AND g.ended IS NULL AND g.expires <= ?1 AND m.name = granted.name), 0)))
		FROM granted WHERE granted.holdout = number)`
}

// updateHeld writes what grants hold of a holdout, and how often there were changes of them. What is on the disk must be as the books had it before.
func (s *statements) updateHeld(tx *sql.Tx, before, after *books) error {
	for name, held := range after.Held {
		was, known := before.Held[name]
		switch {
		case !known:
			if _, err := tx.Stmt(s.hold).Exec(after.number, name, held); err != nil {
				return err
			}
		case held != was:
			done, err := tx.Stmt(s.holdMore).Exec(held, after.number, name, was)
			if err := changedOne(done, err); err != nil {
				return err
			}
		}
	}
	if after.Grants == before.Grants {
		return nil
	}
	_, err := tx.Stmt(s.changes).Exec(after.number, after.Grants)
	return err
}

// Grant implements ledger.Recorded.
func (r recorded) Grant(id string) (ledger.Grant, bool, error) {
	if c, ok := r.group.grants[r.books.ID][id]; ok {
		return c.Grant, true, nil
	}
	w := &r.group.l.writer
	if g, ok := w.grants[id]; ok {
		return g, g.Holdout == r.books.ID, nil
	}
	g, err := scanGrant(w.stmt.grant.QueryRow(r.books.number, id), r.books.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Grant{}, false, nil
	}
	if err == nil {
		w.keepGrant(g)
	}
	return g, err == nil, r.group.fail(err)
}

// keepGrant remembers a durable grant.
func (w *writer) keepGrant(g ledger.Grant) {
	if len(w.grants) >= maxGrants || w.grants == nil {
		w.grants = map[string]ledger.Grant{}
	}
	w.grants[g.ID] = g
}

// Due implements ledger.Recorded.
func (r recorded) Due(at time.Time) (ids []string, next time.Time, err error) {
	rows, err := r.group.l.writer.stmt.due.Query(r.books.number, at.UnixNano())
	if err != nil {
		return nil, next, r.group.fail(err)
	}
	defer rows.Close()
	ours := r.group.grants[r.books.ID]
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, next, r.group.fail(err)
		}
		if c, changed := ours[id]; !changed || c.Ended.IsZero() {
			ids = append(ids, id)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, next, r.group.fail(err)
	}
	var first int64
	if err := r.group.l.writer.stmt.next.QueryRow(r.books.number, at.UnixNano()).Scan(&first); err != nil {
		return nil, next, r.group.fail(err)
	}
	next = timeOf(first)
	for _, id := range r.group.made {
		c, mine := ours[id]
		switch {
		case !mine || !c.Ended.IsZero() || c.Expires.IsZero():
		case !c.Expires.After(at):
			ids = append(ids, id)
		case next.IsZero() || c.Expires.Before(next):
			next = c.Expires
		}
	}
	return ids, next, nil
}

// Now implements ledger.Recorded.
func (r recorded) Now() time.Time { return r.group.l.now() }

// mergeGrants takes what an update made of grants.
func (g *group) mergeGrants(holdout string, changes []ledger.GrantChange) {
	for _, c := range changes {
		all := g.grants[holdout]
		if all == nil {
			all = map[string]ledger.GrantChange{}
			g.grants[holdout] = all
		}
		if before, ok := all[c.ID]; ok {
			c = before.Merge(c)
		} else if c.New {
			g.made = append(g.made, c.ID)
		}
		all[c.ID] = c
	}
}

// flushNewGrants writes the grants that the group made, each after the one that it is a part of.
func (g *group) flushNewGrants(tx *sql.Tx) error {
	s := &g.l.writer.stmt
	for _, id := range g.made {
		for holdout, all := range g.grants {
			c, ok := all[id]
			if !ok {
				continue
			}
			parent := any(nil)
			if c.Parent != "" {
				parent = c.Parent
			}
			if _, err := tx.Stmt(s.insertGrant).Exec(g.books[holdout].number, c.ID, parent, c.Holder, c.Name, c.Shows, c.MayGrant, c.By, c.Created.UnixNano(), nullTime(c.Expires)); err != nil {
				return err
			}
			for name, limit := range c.Limits {
				if _, err := tx.Stmt(s.insertGrantMeter).Exec(c.ID, name, limit, c.Spent[name], c.Held[name]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// flushGrants writes what became of grants. What is on the disk must be as the group had it before.
func (g *group) flushGrants(tx *sql.Tx) error {
	s := &g.l.writer.stmt
	for _, all := range g.grants {
		for _, c := range all {
			if c.Ends {
				done, err := tx.Stmt(s.endGrant).Exec(c.Ended.UnixNano(), c.EndedBy, c.ID)
				if err := changedOne(done, err); err != nil {
					return err
				}
			}
			for name := range c.Limits {
				if c.New || c.Spent[name] == c.Was[name] && c.Held[name] == c.Had[name] {
					continue
				}
				done, err := tx.Stmt(s.moveGrant).Exec(c.Spent[name], c.Held[name], c.ID, name, c.Was[name], c.Had[name])
				if err := changedOne(done, err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// keepGrants makes the group's grants the writer's, after the commit.
func (g *group) keepGrants() {
	for _, all := range g.grants {
		for _, c := range all {
			g.l.writer.keepGrant(c.Grant)
		}
	}
}

// Grants implements ledger.Ledger.
func (l *Ledger) Grants(ctx context.Context, holdout, holder string) ([]ledger.Grant, error) {
	if holdout == "" && holder == "" {
		return nil, fmt.Errorf("%w: grants of no holdout and of no holder", ledger.ErrInvalid)
	}
	if l.schema < withGrants || ctx.Err() == nil && holdout != "" && l.memory.ungranted(holdout) {
		return nil, nil
	}
	which, args := "", []any{l.now().UnixNano()}
	switch {
	case holder == "":
		which, args = "WHERE grants.holdout = (SELECT number FROM holdouts WHERE id = ?2)", append(args, holdout)
	case holdout == "":
		which, args = "WHERE holder = ?2", append(args, holder)
	default:
		which, args = "WHERE holder = ?2 AND grants.holdout = (SELECT number FROM holdouts WHERE id = ?3)", append(args, holder, holdout)
	}
	return l.readGrants(ctx, which, args...)
}

// Grant implements ledger.Ledger.
func (l *Ledger) Grant(ctx context.Context, id string) (ledger.Grant, error) {
	var all []ledger.Grant
	var err error
	if l.schema >= withGrants {
		all, err = l.readGrants(ctx, "WHERE id = ?2", l.now().UnixNano(), id)
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: grant %q", ledger.ErrNotFound, id)
	}
	if err != nil {
		return ledger.Grant{}, err
	}
	return all[0], nil
}

// grantsNow are some grants, which a condition chooses, as they are at the time of the first argument: what has expired is held by nobody any more, and a grant ends with the first of those
// that it is a part of. What parts that have expired and were not ended have left is summed once for all of them: there may be as many of these as there are grants.
func grantsNow(which string) string {
	return `WITH chosen AS MATERIALIZED (SELECT * FROM grants ` + which + `),
	expired AS MATERIALIZED (SELECT whole, json_group_object(name, due) AS due FROM (SELECT g.parent AS whole, m.name, sum(m.cap - m.spent) AS due FROM grants g JOIN grant_meters m ON m.owner = g.id
		WHERE g.holdout IN (SELECT holdout FROM chosen) AND g.parent IN (SELECT id FROM chosen) AND g.ended IS NULL AND g.expires <= ?1 GROUP BY g.parent, m.name) GROUP BY whole)
	SELECT ` + grantColumns + `, (SELECT id FROM holdouts h WHERE h.number = grants.holdout), coalesce(expired.due, '{}'),
	(WITH RECURSIVE path (parent, expires, ended) AS (SELECT grants.parent, grants.expires, grants.ended
		UNION ALL SELECT g.parent, g.expires, g.ended FROM path JOIN grants g ON g.id = path.parent)
		SELECT coalesce(min(coalesce(min(expires, ended), expires, ended)), 0) FROM path)
	FROM chosen AS grants LEFT JOIN expired ON expired.whole = grants.id ORDER BY grants.number`
}

func (l *Ledger) readGrants(ctx context.Context, which string, args ...any) ([]ledger.Grant, error) {
	return readAll(ctx, l.readers, func(row scanner) (ledger.Grant, error) {
		var holdout, due string
		var until int64
		g, err := scanGrant(row, "", &holdout, &due, &until)
		if err != nil {
			return g, err
		}
		g.Holdout, g.Until = holdout, timeOf(until)
		var over ledger.Meters
		if err := json.Unmarshal([]byte(due), &over); err != nil {
			return g, err
		}
		for name, amount := range over {
			g.Held[name] -= amount
		}
		return g, nil
	}, grantsNow(which), args...)
}

// recordedGrants are all grants of a holdout as they are on the disk, for a verification.
func recordedGrants(ctx context.Context, db querier, number int64) ([]ledger.Grant, error) {
	return readAll(ctx, db, func(row scanner) (ledger.Grant, error) {
		var holdout string
		g, err := scanGrant(row, "", &holdout)
		g.Holdout = holdout
		return g, err
	}, "SELECT "+grantColumns+", (SELECT id FROM holdouts h WHERE h.number = grants.holdout) FROM grants WHERE holdout = ? ORDER BY number", number)
}

// addPayers gives entries, which are in order, the grants that paid.
func addPayers(ctx context.Context, db querier, number int64, entries []ledger.Entry) error {
	type payer struct {
		seq int64
		id  string
	}
	scan := func(row scanner) (p payer, err error) { return p, row.Scan(&p.seq, &p.id) }
	payers, err := readAll(ctx, db, scan, "SELECT seq, payer FROM payers WHERE holdout = ? AND seq >= ? AND seq <= ?", number, entries[0].Seq, entries[len(entries)-1].Seq)
	for _, p := range payers {
		if i := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Seq == p.seq }); i >= 0 {
			entries[i].Grant = p.id
		}
	}
	return err
}

// notEvent is of the entries that somebody asked for.
const notEvent = "query NOT GLOB 'inherited:*' AND query NOT GLOB 'end:*'"

// Spending implements ledger.Ledger.
func (l *Ledger) Spending(ctx context.Context, holdout string) ([]ledger.Spending, error) {
	number, _, err := l.end(ctx, holdout)
	if err != nil {
		return nil, err
	}
	text := `SELECT principal, '', kind, debit, count(*) FROM entries WHERE holdout = ? AND kind IN ('answer', 'void') AND ` + notEvent + ` GROUP BY 1, 2, 3, 4 ORDER BY 1, 2`
	if l.schema >= withGrants {
		text = `SELECT e.principal, coalesce(p.payer, ''), e.kind, e.debit, count(*) FROM entries e LEFT JOIN payers p ON p.holdout = e.holdout AND p.seq = e.seq
			WHERE e.holdout = ? AND e.kind IN ('answer', 'void') AND ` + notEvent + ` GROUP BY 1, 2, 3, 4 ORDER BY 1, 2`
	}
	rows, err := l.readers.QueryContext(ctx, text, number)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	var all []ledger.Spending
	for rows.Next() {
		var principal, grant, kind, debit string
		var count int64
		if err := rows.Scan(&principal, &grant, &kind, &debit, &count); err != nil {
			return nil, wrapRead(err)
		}
		each, err := ledger.ParseMeters(debit)
		if err != nil {
			return nil, &ledger.CorruptError{Holdout: holdout, Seq: -1, Reason: "debit", Err: err}
		}
		if len(all) == 0 || all[len(all)-1].Principal != principal || all[len(all)-1].Grant != grant {
			all = append(all, ledger.Spending{Principal: principal, Grant: grant})
		}
		all[len(all)-1].Add(kind, each, count)
	}
	return all, wrapRead(rows.Err())
}
