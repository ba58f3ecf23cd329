package stored

import (
	"iter"
	"math"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// pageSize is how many entries are read at a time: a slow receiver must neither hold many in memory nor keep a read transaction open.
const pageSize = 64

// Pages is a history from its first entry on. read returns the entries behind a seq in order, at most as many as it is told.
func Pages(read func(after int64, most int) ([]ledger.Entry, error)) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		after := int64(math.MinInt64) // below every seq, also the negative ones that only a damaged database has
		for {
			entries, err := read(after, pageSize)
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

// Completed is a history to whose entries is added, page by page, what is stored beside them. A page is in order and not empty.
func Completed(entries iter.Seq2[ledger.Entry, error], add func(page []ledger.Entry) error) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		var page []ledger.Entry
		flush := func() bool {
			if len(page) == 0 {
				return true
			}
			err := add(page)
			for _, e := range page {
				if !yield(e, err) {
					return false
				}
			}
			page = page[:0]
			return true
		}
		for e, err := range entries {
			if err != nil {
				yield(e, err)
				return
			}
			if page = append(page, e); len(page) == pageSize && !flush() {
				return
			}
		}
		flush()
	}
}
