package holdout

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
)

// BenchmarkAsk answers new questions about 30,000 held out rows, each durable: one asker, 32 at the same time, and batches
// of 100.
func BenchmarkAsk(b *testing.B) {
	s := open(b, b.TempDir())
	card := create(b, s, Settings{Holdout: 0.3, Questions: 1 << 30}, visits(b, 100_000, 1))
	var next atomic.Int64
	question := func() string {
		return fmt.Sprintf(`{"type":"fraction","of":"x > 0.%09d"}`, next.Add(1))
	}
	one := func(b testing.TB) {
		if _, err := s.Ask(b.Context(), analyst, card.ID, []byte(question()), ""); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			one(b)
		}
	})
	b.Run("32 askers", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one(b)
			}
		})
	})
	b.Run("batch of 100", func(b *testing.B) {
		for b.Loop() {
			batch := make([]json.RawMessage, 100)
			for i := range batch {
				batch[i] = json.RawMessage(question())
			}
			if _, err := s.AskBatch(b.Context(), analyst, card.ID, batch, false, ""); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "answers/s")
	})
}
