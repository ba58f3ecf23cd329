package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/internal/stored"
)

// What is compared without reading whole chains: each holdout's books with the last entry and its facts with the first, when the ledger is opened
// and, of a holdout that another server has made since, when this one hears of it; and each entry that is replayed with its head. Whole chains are for
// [Verify].

// snapshot runs do on one moment of the database.
func (l *Ledger) snapshot(ctx context.Context, do func(tx pgx.Tx) error) error {
	return wrapRead(pgx.BeginTxFunc(ctx, l.readers, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do))
}

// checkAll finds the holdouts whose books cannot be built on. Nothing is appended to them, and the others go on.
func (l *Ledger) checkAll(ctx context.Context) error {
	return l.snapshot(ctx, func(tx pgx.Tx) error {
		ids, err := readAll(ctx, tx, func(row pgx.Row) (id []byte, err error) { return id, row.Scan(&id) }, "SELECT id FROM holdoutd.holdouts ORDER BY number")
		for i := 0; err == nil && i < len(ids); i++ {
			_, err = l.check(ctx, tx, string(ids[i]))
		}
		return err
	})
}

// damage is why nothing can be built on a holdout, or nil. It is ErrNotFound for one that is not there.
func (l *Ledger) damage(ctx context.Context, id string) error {
	l.mu.Lock()
	damage, known := l.checked[id]
	l.mu.Unlock()
	if known {
		return damage
	}
	err := l.snapshot(ctx, func(tx pgx.Tx) (err error) {
		damage, err = l.check(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return damage
}

// check compares a holdout and remembers the outcome.
func (l *Ledger) check(ctx context.Context, tx pgx.Tx, id string) (damage, err error) {
	err = compare(ctx, tx, id)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return err, nil // it may come
	case ctx.Err() != nil || errors.Is(err, ledger.ErrUnavailable):
		return nil, err
	case err != nil:
		damage = stored.Damage(id, err)
		l.log.Error("a holdout's place in the ledger is damaged: nothing is appended to it", "holdout", id, "error", damage)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checked[id] = damage
	return damage, nil
}

// compare compares facts and books with the first and the last entries.
func compare(ctx context.Context, tx pgx.Tx, id string) error {
	var number int64
	err := tx.QueryRow(ctx, "SELECT number FROM holdoutd.holdouts WHERE id = $1", []byte(id)).Scan(&number)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	if err != nil {
		return wrapRead(err)
	}
	all, err := readRows(ctx, tx, "WHERE h.number = $1", number)
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return &ledger.CorruptError{Holdout: id, Seq: -1, Reason: "it has no books"}
	}
	chain := all[0].chain(ctx, tx, math.MaxInt64)
	return chain.CheckEnds(all[0].entries(ctx, tx, math.MaxInt64))
}

// row is a holdout's row without what is sealed, and where its books say that its chain ends.
type row struct {
	ledger.Holdout
	number int64
	seq    int64
	head   [32]byte
}

// readRows reads books and public facts in one statement, so that they agree.
func readRows(ctx context.Context, db rower, which string, args ...any) ([]row, error) {
	return readAll(ctx, db, func(from pgx.Row) (r row, err error) {
		var created int64
		var digest, public []byte
		b, _, _, err := scanStanding(behind{from, []any{&created, &digest, &public}})
		if err != nil {
			return r, err
		}
		if len(digest) != len(r.Digest) {
			return r, &ledger.CorruptError{Holdout: b.ID, Seq: -1, Reason: "digest is not 32 bytes"}
		}
		r.number, r.seq, r.head = b.number, b.Seq, b.Head
		r.Holdout = ledger.Holdout{ID: b.ID, Created: time.Unix(0, created).UTC(), Digest: [32]byte(digest), Public: public,
			Limits: b.Limits, Spent: b.Spent, Held: b.Held, End: b.End, Deleted: b.Deleted}
		return r, nil
	}, `SELECT h.number, h.id, s.moves, s.seq, s.head, s.deleted, s.draft, s.restored, s.state, s.limits, s.spent, s.ended, s.held, s.due, s.changes, h.created, h.digest, h.public
		FROM holdoutd.holdouts h JOIN holdoutd.standing s ON s.number = h.number `+which, args...)
}

// behind is a row with more columns than whoever scans it knows.
type behind struct {
	row  pgx.Row
	more []any
}

func (b behind) Scan(into ...any) error { return b.row.Scan(append(into, b.more...)...) }

// chain is the holdout's history up to last, read page by page.
func (r *row) chain(ctx context.Context, db rower, last int64) ledger.Chain {
	return ledger.Chain{Holdout: r.Holdout, Seq: r.seq, Head: r.head, Entries: stored.Pages(r.entries(ctx, db, last))}
}

// entries reads those behind a seq and up to last, in order.
func (r *row) entries(ctx context.Context, db rower, last int64) func(after int64, most int) ([]ledger.Entry, error) {
	return func(after int64, most int) ([]ledger.Entry, error) {
		return readEntries(ctx, db, r.number, after, last, most)
	}
}

// Export implements ledger.Ledger. It is consistent although others go on writing: entries never change, and it ends where the books
// stood when it began.
func (l *Ledger) Export(ctx context.Context, id string, w io.Writer) error {
	all, err := readRows(ctx, l.readers, "WHERE h.id = $1", []byte(id))
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	chain := all[0].chain(ctx, l.readers, all[0].seq)
	return chain.Export(w)
}
