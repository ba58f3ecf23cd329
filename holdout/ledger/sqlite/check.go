package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/holdout/ledger"
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
		reason, err := l.checkHoldout(ctx, n.number)
		switch {
		case errors.Is(err, ledger.ErrUnavailable) && !malformed(err) || ctx.Err() != nil:
			return err
		case err != nil || reason != "":
			damage := &ledger.CorruptError{Holdout: n.id, Seq: -1, Reason: reason, Err: err}
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
	first, err := readEntries(ctx, l.readers, number, -1, 0, 1)
	if err != nil {
		return "", err
	}
	if len(first) != 1 || first[0].Head != row.Genesis().Head {
		return "the genesis entry is about other facts than these of the holdout", nil
	}
	last, err := readEntries(ctx, l.readers, number, row.seq-2, math.MaxInt64, 3)
	if err != nil {
		return "", err
	}
	if len(last) == 0 || last[len(last)-1].Seq != row.seq {
		return fmt.Sprintf("the books end at seq %d, the chain elsewhere", row.seq), nil
	}
	if !l.replayOnly { // to one that is only read nothing is added, and an old one has no index for it
		requests, err := l.releaseRequests(ctx, number)
		if err != nil {
			return "", err
		}
		if reason := ledger.CheckReleases(row.Released, requests); reason != "" {
			return reason, nil
		}
	}
	e := &last[len(last)-1]
	switch {
	case e.Head != row.head:
		return "the chain ends in another head than the books say", nil
	case !e.Spent.Equal(row.Spent):
		return "the books say that other amounts are spent than the chain", nil
	case (e.Kind == ledger.KindDeleted) != row.Deleted:
		return "chain and books disagree on whether the holdout is deleted", nil
	case row.seq == 0:
		return "", nil
	case len(last) != 2:
		return "the entry before the last is missing", nil
	}
	return "", e.CheckHead(last[0].Head)
}

// releaseRequests are the requests of a chain's releases, in their order.
func (l *Ledger) releaseRequests(ctx context.Context, number int64) (all [][]byte, err error) {
	rows, err := l.readers.QueryContext(ctx, "SELECT canonical FROM entries WHERE kind = 'release' AND holdout = ? ORDER BY seq", number)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	for rows.Next() && len(all) <= ledger.MaxReleases {
		var one []byte
		if err := rows.Scan(&one); err != nil {
			return nil, wrapRead(err)
		}
		all = append(all, one)
	}
	return all, wrapRead(rows.Err())
}

// chained selects answers, and chainedEntries entries of any kind, with the head of the entry before each.
const (
	chained        = chainedEntries + "WHERE e.kind = 'answer' "
	chainedEntries = `SELECT e.version, e.seq, e.kind, e.time, e.query, e.canonical, e.principal, e.debit, e.spent, e.body, e.head, p.head, h.id
	FROM entries e JOIN holdouts h ON h.number = e.holdout LEFT JOIN entries p ON p.holdout = e.holdout AND p.seq = e.seq - 1 `
)

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
	if err := l.ours(); err != nil {
		return "", false, err
	}
	defer func() { l.distrust(err) }()
	var raw []byte
	err = l.readers.QueryRowContext(ctx, "SELECT e.head FROM entries e JOIN holdouts h ON h.number = e.holdout WHERE h.id = ? AND e.seq = ?", id, seq).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err != nil || len(raw) != 32 {
		return "", false, wrapRead(err)
	}
	return ledger.HeadText([32]byte(raw)), true, nil
}
