package sqlite

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/internal/stored"
)

// Export implements ledger.Ledger. It is consistent although others go on writing: entries never change, and it ends where the books
// stood when it began.
func (l *Ledger) Export(ctx context.Context, id string, w io.Writer) error {
	all, err := readRows(ctx, l.readers, l.schema, "WHERE id = ?", id)
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
func readRows(ctx context.Context, db querier, version schema, which string, args ...any) ([]row, error) {
	rows, err := db.QueryContext(ctx, "SELECT number, id, created, digest, public, "+version.bookColumns()+
		" FROM holdouts JOIN books ON holdout = number "+which, args...)
	if err != nil {
		return nil, wrapRead(err)
	}
	defer rows.Close()
	var all []row
	for rows.Next() {
		var r row
		var created int64
		var digest, public []byte
		var b ledger.Books
		var scan bookScan
		if err := rows.Scan(append([]any{&r.number, &b.ID, &created, &digest, &public}, scan.into(&b)...)...); err != nil {
			return nil, wrapRead(err)
		}
		if len(digest) != len(r.Digest) {
			return nil, &ledger.CorruptError{Holdout: b.ID, Seq: -1, Reason: "digest is not 32 bytes"}
		}
		if err := scan.finish(&b); err != nil {
			return nil, err
		}
		r.seq, r.head = b.Seq, b.Head
		r.Holdout = ledger.Holdout{ID: b.ID, Created: time.Unix(0, created).UTC(), Digest: [32]byte(digest), Public: public,
			Limits: b.Limits, Spent: b.Spent, Held: b.Held, End: b.End, Deleted: b.Deleted}
		all = append(all, r)
	}
	return all, wrapRead(rows.Err())
}

// chain is the holdout's history up to last, read page by page.
func (r *row) chain(ctx context.Context, db querier, last int64) ledger.Chain {
	return ledger.Chain{Holdout: r.Holdout, Seq: r.seq, Head: r.head, Entries: stored.Pages(r.entries(ctx, db, last))}
}

// entries reads those behind a seq and up to last, in order.
func (r *row) entries(ctx context.Context, db querier, last int64) func(after int64, most int) ([]ledger.Entry, error) {
	return func(after int64, most int) ([]ledger.Entry, error) {
		return readEntries(ctx, db, r.number, after, last, most)
	}
}
