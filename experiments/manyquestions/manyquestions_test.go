package manyquestions

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/pmw"
)

// TestSets: probability and count of a set are sums over its cells, and rows are drawn by the law: the first cell is within 5 standard errors of its share of a million rows (false alarm 6e-7).
func TestSets(t *testing.T) {
	const rows = 1_000_000
	r := rand.New(rand.NewPCG(5, 0))
	counts := drawn(rows, r)
	if share := float64(counts[0]) / rows; math.Abs(share-law[0]) > 5*math.Sqrt(law[0]*(1-law[0])/rows) {
		t.Errorf("a share of %v is in the first cell, want %v", share, law[0])
	}
	for range 100 {
		q := question(r.Uint64())
		truth, count := 0.0, int64(0)
		for i := range domain {
			if q>>i&1 == 1 {
				truth, count = truth+law[i], count+counts[i]
			}
		}
		if math.Abs(q.truth()-truth) > 1e-12 || q.count(&counts) != count {
			t.Fatalf("%x: %v and %d, want %v and %d", uint64(q), q.truth(), q.count(&counts), truth, count)
		}
	}
	if all := question(math.MaxUint64); math.Abs(all.truth()-1) > 1e-12 || all.count(&counts) != rows {
		t.Errorf("all cells have a probability of %v and %d rows", all.truth(), all.count(&counts))
	}
	if q := where(func(i int) bool { return i%3 == 0 }); q != 0x9249249249249249 {
		t.Errorf("every third cell is %x", uint64(q))
	}
}

// TestWeightsAskSets: private weights are asked about the cells of the set, and a guess of no noise to speak of is the table's share.
func TestWeightsAskSets(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))
	c := &cell{method: byWeights, n: 2_000_000_000, k: 300, settings: pmw.Settings{Domain: domain, Rows: 2_000_000_000, Epsilon: 8, Updates: 300, Threshold: .0005, Rate: .02}}
	w := &weights{rows: float64(c.n)}
	for i := range w.holdout {
		w.holdout[i] = int64(law[i] * float64(c.n))
	}
	rest := c.n
	for _, count := range w.holdout[1:] {
		rest -= count
	}
	w.holdout[0] = rest
	var err error
	if w.run, err = c.settings.Start(w.holdout[:], noise.Seeded(9)); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		q := question(r.Uint64())
		value, _, err := w.ask(q, q.truth())
		if err != nil || math.Abs(value-q.truth()) > .002 {
			t.Fatalf("%x: %v, %v, want %v", uint64(q), value, err, q.truth())
		}
	}
}
