package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// BenchmarkUpdate records answers of about 600 bytes, each in an Update of its own that looks the query up, sets the
// state and appends. It reports answers per second, and their ratio to BenchmarkUpdate's own measure of a loop that
// appends as many bytes to a file and calls fdatasync after each: what one caller at a time could do at best.
func BenchmarkUpdate(b *testing.B) {
	plain := plainSyncs(b)
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := openTest(b, newPath(b))
			mustCreate(b, l, testHoldout("ho_1", 1<<40, 0))
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						d := benchDebit(i)
						err := l.Update(b.Context(), "ho_1", func(tx *ledger.Tx) error {
							if _, ok := tx.Answer(d.Query); ok {
								return ledger.ErrAnswered
							}
							tx.SetState([]byte(`{"questions":` + strconv.FormatInt(i, 10) + `}`))
							_, err := tx.Append(d)
							return err
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "answers/s")
			b.ReportMetric(rate/plain, "of-append+fdatasync")
		})
	}
}

// BenchmarkBatch records 100 answers in one Update.
func BenchmarkBatch(b *testing.B) {
	l := openTest(b, newPath(b))
	mustCreate(b, l, testHoldout("ho_1", 1<<40, 0))
	var n int64
	for b.Loop() {
		err := l.Update(b.Context(), "ho_1", func(tx *ledger.Tx) error {
			for range 100 {
				n++
				if _, err := tx.Append(benchDebit(n)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "answers/s")
}

// BenchmarkReplay reads recorded answers.
func BenchmarkReplay(b *testing.B) {
	l := openTest(b, newPath(b))
	mustCreate(b, l, testHoldout("ho_1", 1<<40, 0))
	d := benchDebit(1)
	mustAsk(b, l, "ho_1", d)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok, err := l.Answer(b.Context(), "ho_1", d.Query); !ok || err != nil {
				b.Error(ok, err)
			}
		}
	})
}

func benchDebit(i int64) ledger.Debit {
	d := testDebit(strconv.FormatInt(i, 10))
	d.Core = fmt.Appendf(nil, `{"id":"ans_%d","holdout":"ho_1","query":%q,"value":0.3121,"interval":{"low":0.2810,"high":0.3432,`+
		`"confidence":0.95,"scope":"all 1000 questions","target":"population of rows","bound":"adaptive-hoeffding",`+
		`"parts":{"sampling_and_noise":0.0235,"adaptivity":0.0076}},"mechanism":"gaussian","source":"holdout","cost":{"questions":1,"tokens":0}}`, i, d.Query)
	return d
}

// plainSyncs measures appends with fdatasync per second, for half a second, of the bytes that an answer's page takes.
func plainSyncs(b *testing.B) float64 {
	f, err := os.Create(filepath.Join(b.TempDir(), "plain"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	entry := make([]byte, len(benchDebit(1).Core))
	start := time.Now()
	n := 0
	for ; time.Since(start) < 500*time.Millisecond; n++ {
		if _, err := f.Write(entry); err != nil {
			b.Fatal(err)
		}
		if err := fdatasync(f); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}
