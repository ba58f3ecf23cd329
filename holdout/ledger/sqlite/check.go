package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/internal/stored"
)

// What is compared without reading whole chains: when the ledger is opened, each holdout's books with the last entry and
// its facts with the first; and each entry that is replayed with its head. It is a few reads a holdout, however long its
// chain is. Whole chains are for [Verify].

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
		err := l.checkHoldout(ctx, n.number, n.id)
		switch {
		case errors.Is(err, ledger.ErrUnavailable) || ctx.Err() != nil:
			return err
		case err != nil:
			damage := stored.Damage(n.id, err)
			l.damaged[n.id] = damage
			l.log.Error("a holdout's place in the ledger is damaged: nothing is appended to it", "holdout", n.id, "error", damage)
		}
	}
	return nil
}

// checkHoldout compares facts and books with the first and the last entries.
func (l *Ledger) checkHoldout(ctx context.Context, number int64, id string) error {
	all, err := readRows(ctx, l.readers, l.schema, "WHERE number = ?", number)
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return &ledger.CorruptError{Holdout: id, Seq: -1, Reason: "it has no books"}
	}
	chain := all[0].chain(ctx, l.readers, math.MaxInt64)
	return chain.CheckEnds(all[0].entries(ctx, l.readers, math.MaxInt64))
}

// chained selects answers with the head of the entry before each.
const chained = `SELECT e.version, e.seq, e.kind, e.time, e.query, e.canonical, e.principal, e.debit, e.spent, e.body, e.head, p.head, h.id
	FROM entries e JOIN holdouts h ON h.number = e.holdout LEFT JOIN entries p ON p.holdout = e.holdout AND p.seq = e.seq - 1
	WHERE e.kind = 'answer' `

// scanChained reads what chained selects and recomputes the entry's head: what is replayed is what was recorded.
func scanChained(row scanner) (e ledger.Entry, err error) {
	var id string
	var prev []byte
	e, err = scanEntry(row, &prev, &id)
	if err == nil {
		if len(prev) != len(e.Head) {
			return e, &ledger.CorruptError{Holdout: id, Seq: e.Seq, Reason: "the head of the entry before is missing"}
		}
		err = e.CheckHead([32]byte(prev))
	}
	var corrupt *ledger.CorruptError
	if errors.As(err, &corrupt) {
		corrupt.Holdout = id
	}
	return e, err
}

// HeadAt implements ledger.Ledger.
func (l *Ledger) HeadAt(ctx context.Context, id string, seq int64) (head string, ok bool, err error) {
	var raw []byte
	err = l.readers.look(ctx, "SELECT e.head FROM entries e JOIN holdouts h ON h.number = e.holdout WHERE h.id = ? AND e.seq = ?", id, seq).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err != nil || len(raw) != 32 {
		return "", false, wrapRead(err)
	}
	return ledger.HeadText([32]byte(raw)), true, nil
}
