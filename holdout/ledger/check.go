package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// What is compared without reading whole chains: when the ledger is opened, each holdout's books with the last entry and
// its facts with the first; and each entry that is replayed with its head. It is a few reads a holdout, however long its
// chain is. Whole chains are for [VerifyDatabase].

// checkHoldouts finds the holdouts whose books cannot be built on. They are kept from the writer, and the others go on.
func (l *Ledger) checkHoldouts(ctx context.Context) error {
	rows, err := l.readers.QueryContext(ctx, "SELECT number, id FROM holdouts ORDER BY number")
	if err != nil {
		return wrapRead(err)
	}
	defer rows.Close()
	type name struct {
		number int64
		id     string
	}
	var all []name
	for rows.Next() {
		var n name
		if err := rows.Scan(&n.number, &n.id); err != nil {
			return wrapRead(err)
		}
		all = append(all, n)
	}
	if err := rows.Err(); err != nil {
		return wrapRead(err)
	}
	l.damaged = map[string]error{}
	for _, n := range all {
		reason, err := l.checkHoldout(ctx, n.number)
		switch {
		case errors.Is(err, ErrUnavailable) || ctx.Err() != nil:
			return err
		case err != nil || reason != "":
			damage := &CorruptError{Holdout: n.id, Seq: -1, Reason: reason, Err: err}
			if reason == "" {
				damage.Reason = "it cannot be read"
			}
			l.damaged[n.id] = damage
			l.log.Error("a holdout's place in the ledger is damaged: nothing is appended to it", "holdout", n.id, "error", damage)
		}
	}
	return nil
}

// checkHoldout compares facts and books with the first and the last entry. The reason is "" if they agree.
func (l *Ledger) checkHoldout(ctx context.Context, number int64) (reason string, err error) {
	all, err := readRows(ctx, l.readers, "WHERE number = ?", number)
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "it has no books", nil
	}
	row := &all[0]
	first, err := readRecords(ctx, l.readers, number, -1, 0, 1, "")
	if err != nil {
		return "", err
	}
	if len(first) != 1 || first[0].Head != row.facts.first().Head {
		return "the genesis entry is about other facts than these of the holdout", nil
	}
	last, err := readRecords(ctx, l.readers, number, row.seq-2, math.MaxInt64, 3, "")
	if err != nil {
		return "", err
	}
	if len(last) == 0 || last[len(last)-1].Seq != row.seq {
		return fmt.Sprintf("the books end at seq %d, the chain elsewhere", row.seq), nil
	}
	r := &last[len(last)-1]
	switch {
	case r.Head != row.head:
		return "the chain ends in another head than the books say", nil
	case r.Spent != row.spent:
		return "the books say that other amounts are spent than the chain", nil
	case (r.Kind == KindDeleted) != row.deleted:
		return "chain and books disagree on whether the holdout is deleted", nil
	case row.seq == 0:
		return "", nil
	case len(last) != 2:
		return "the entry before the last is missing", nil
	}
	return r.checkHead(last[0].Head), nil
}

// checkHead recomputes an entry's head from the one before. The reason is "" if it fits.
func (r *record) checkHead(prev digest) (reason string) {
	core, ok := split(r.Body, r.Seq, r.Head)
	if !ok || headOf(prev, r, core) != r.Head {
		return "head does not match: this entry or one before it was changed"
	}
	return ""
}

// chained selects answers with the head of the entry before each.
const chained = `SELECT h.id, e.seq, e.kind, e.time, e.query, e.canonical, e.principal, e.questions, e.tokens,
	e.spent_questions, e.spent_tokens, e.body, e.head, p.head
	FROM entries e JOIN holdouts h ON h.number = e.holdout LEFT JOIN entries p ON p.holdout = e.holdout AND p.seq = e.seq - 1
	WHERE e.kind = 'answer' `

// scanChained reads what chained selects and recomputes the entry's head: what is replayed is what was recorded.
func scanChained(row interface{ Scan(into ...any) error }) (r record, err error) {
	var id string
	var at int64
	var head, prev []byte
	if err := row.Scan(&id, &r.Seq, &r.Kind, &at, &r.Query, &r.Canonical, &r.Principal, &r.Questions, &r.Tokens,
		&r.Spent.Questions, &r.Spent.Tokens, &r.Body, &head, &prev); err != nil {
		return r, err
	}
	r.Time = time.Unix(0, at).UTC()
	if len(head) != len(r.Head) || len(prev) != len(r.Head) {
		return r, &CorruptError{Holdout: id, Seq: r.Seq, Reason: "its head, or the one before, is missing"}
	}
	r.Head = digest(head)
	if reason := r.checkHead(digest(prev)); reason != "" {
		return r, &CorruptError{Holdout: id, Seq: r.Seq, Reason: reason}
	}
	return r, nil
}

// HeadAt returns the head of a holdout's entry, as entries and answers say it; ok is false if there is no such entry.
func (l *Ledger) HeadAt(ctx context.Context, id string, seq int64) (head string, ok bool, err error) {
	var raw []byte
	err = l.readers.look(ctx, "SELECT e.head FROM entries e JOIN holdouts h ON h.number = e.holdout WHERE h.id = ? AND e.seq = ?", id, seq).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err != nil || len(raw) != len(digest{}) {
		return "", false, wrapRead(err)
	}
	return headText(digest(raw)), true, nil
}
