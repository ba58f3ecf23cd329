package postgres

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// chainPage is how many entries are read at a time: a slow receiver must not hold a connection.
const chainPage = 64

// Export implements ledger.Ledger. It is consistent although others go on writing: entries never change, and it ends where the books stood when it began.
func (l *Ledger) Export(ctx context.Context, id string, w io.Writer) error {
	all, err := readRows(ctx, l.readers, "WHERE id = $1", id)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%w: holdout %q", ledger.ErrNotFound, id)
	}
	chain := all[0].chain(ctx, l.readers, all[0].seq)
	return chain.Export(w)
}

// row is a holdout's row without what is sealed, and where its books say that its chain ends.
type row struct {
	ledger.Holdout
	number int64
	seq    int64
	head   [32]byte
}

// readRows reads books and public facts in one statement, so that they agree.
func readRows(ctx context.Context, db querier, which string, args ...any) ([]row, error) {
	return readAll(ctx, db, scanRow, "SELECT id, created, digest, public, "+bookColumns+" FROM holdouts JOIN books ON holdout = number "+which, args...)
}

func scanRow(from pgx.Row) (r row, err error) {
	var created int64
	var digest, public []byte
	var b books
	var scan bookScan
	if err := from.Scan(append([]any{&b.ID, &created, &digest, &public}, scan.into(&b)...)...); err != nil {
		return r, err
	}
	if len(digest) != len(r.Digest) {
		return r, &ledger.CorruptError{Holdout: b.ID, Seq: -1, Reason: "digest is not 32 bytes"}
	}
	if err := scan.finish(&b); err != nil {
		return r, err
	}
	return row{number: b.number, seq: b.Seq, head: b.Head, Holdout: ledger.Holdout{ID: b.ID, Created: time.Unix(0, created).UTC(), Digest: [32]byte(digest), Public: public,
		Limits: b.Limits, Spent: b.Spent, Released: b.Released, Deleted: b.Deleted}}, nil
}

// chain is the holdout's history up to last, read page by page.
func (r *row) chain(ctx context.Context, db querier, last int64) ledger.Chain {
	return ledger.Chain{Holdout: r.Holdout, Seq: r.seq, Head: r.head, Entries: pages(ctx, db, r.number, last)}
}

func pages(ctx context.Context, db querier, number, last int64) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for after := int64(math.MinInt64); ; {
			entries, err := readEntries(ctx, db, number, after, last, chainPage)
			if err != nil {
				yield(ledger.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if len(entries) == 0 {
				return
			}
		}
	}
}

// readEntries reads chain entries after < seq <= last, in order.
func readEntries(ctx context.Context, db querier, number, after, last int64, limit int) ([]ledger.Entry, error) {
	scan := func(row pgx.Row) (ledger.Entry, error) { return scanEntry(row) }
	return readAll(ctx, db, scan, fmt.Sprintf("SELECT %s FROM entries WHERE holdout = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT %d", entryColumns, limit), number, after, last)
}
