package sqlite

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// chainPage is how many entries are read at a time: a slow receiver must not hold a read transaction open, for that
// would keep the write-ahead log from being emptied.
const chainPage = 64

// Export implements ledger.Ledger. It is consistent although others go on writing: entries never change, and it ends where the books
// stood when it began.
func (l *Ledger) Export(ctx context.Context, id string, w io.Writer) (err error) {
	if err := l.ours(); err != nil {
		return err
	}
	defer func() { l.distrust(err) }()
	all, err := readRows(ctx, l.readers, "WHERE id = ?", id)
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
	rows, err := db.QueryContext(ctx, "SELECT number, id, created, digest, public, "+bookColumns+
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
			Limits: b.Limits, Spent: b.Spent, Released: b.Released, Deleted: b.Deleted}
		all = append(all, r)
	}
	return all, wrapRead(rows.Err())
}

// chain is the holdout's history up to last, read page by page.
func (r *row) chain(ctx context.Context, db querier, last int64) ledger.Chain {
	return ledger.Chain{Holdout: r.Holdout, Seq: r.seq, Head: r.head, Entries: pages(ctx, db, r.number, last)}
}

func pages(ctx context.Context, db querier, number, last int64) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for after := int64(beforeAll); ; {
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

// beforeAll is below every seq, also the negative ones that only a damaged file has.
const beforeAll = -1 << 63
