package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// checkHoldouts finds, when the ledger is opened, the holdouts whose books cannot be built on: it compares each holdout's books with its last entry and its facts with its first. Nothing is appended to those,
// and the others go on. Whole chains are for [Verify].
func (l *Ledger) checkHoldouts(ctx context.Context) error {
	type name struct {
		number int64
		id     string
	}
	scan := func(row pgx.Row) (n name, err error) { return n, row.Scan(&n.number, &n.id) }
	all, err := readAll(ctx, l.readers, scan, "SELECT number, id FROM holdouts ORDER BY number")
	if err != nil {
		return err
	}
	damaged := map[string]error{}
	for _, n := range all {
		reason, err := l.checkHoldout(ctx, n.number)
		switch {
		case errors.Is(err, ledger.ErrUnavailable) || ctx.Err() != nil:
			return err
		case err != nil || reason != "":
			damage := &ledger.CorruptError{Holdout: n.id, Seq: -1, Reason: reason, Err: err}
			if reason == "" {
				damage.Reason = "it cannot be read"
			}
			damaged[n.id] = damage
			l.log.Error("a holdout's place in the ledger is damaged: nothing is appended to it", "holdout", n.id, "error", damage)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damaged = damaged
	return nil
}

// checkHoldout compares facts and books with the first and the last entry. The reason is "" if they agree.
func (l *Ledger) checkHoldout(ctx context.Context, number int64) (reason string, err error) {
	// One moment: other servers go on writing.
	tx, err := l.readers.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return "", wrapRead(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // nothing was written
	all, err := readRows(ctx, tx, "WHERE number = $1", number)
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "it has no books", nil
	}
	row := &all[0]
	first, err := readEntries(ctx, tx, number, -1, 0, 1)
	if err != nil {
		return "", err
	}
	if len(first) != 1 || first[0].Head != row.Genesis().Head {
		return "the genesis entry is about other facts than these of the holdout", nil
	}
	last, err := readEntries(ctx, tx, number, row.seq-2, math.MaxInt64, 3)
	if err != nil {
		return "", err
	}
	if len(last) == 0 || last[len(last)-1].Seq != row.seq {
		return fmt.Sprintf("the books end at seq %d, the chain elsewhere", row.seq), nil
	}
	rows, err := tx.Query(ctx, "SELECT canonical FROM entries WHERE kind = 'release' AND holdout = $1 ORDER BY seq LIMIT $2", number, ledger.MaxReleases+1)
	if err != nil {
		return "", wrapRead(err)
	}
	requests, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return "", wrapRead(err)
	}
	if reason := ledger.CheckReleases(row.Released, requests); reason != "" {
		return reason, nil
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

// isLocal reports whether a host is this machine: a socket, or a loopback address.
func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.HasPrefix(host, "/") || host == "localhost" || err == nil && ip.IsLoopback()
}
