package fairness

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestAdjustments: the mean about one adjustment is that of a rule that follows it alone, and one that is followed the other way is wrong where that is right; also where the last
// rows fill no whole word.
func TestAdjustments(t *testing.T) {
	for seed := range uint64(20) {
		for _, weight := range []float64{1, -1} {
			p := newPart(seeds.Of(seed, 9), 300+int64(seed))
			open := int64(len(p.score))
			p.follow(3, weight)
			want := p.of(3).Sum
			if weight < 0 {
				want = (2*int64(p.fixed)+open)*rowfn.One - want
			}
			if got := p.last(); got.Sum != want || got.N != int64(p.n) {
				t.Fatalf("seed %d, weight %v: %+v, want a sum of %d", seed, weight, got, want)
			}
		}
	}
}

// TestLaw: the share of counted rows, all undecided ones being right half of the time, is the law's: within 5 standard errors of a million rows (false alarm 6e-7).
func TestLaw(t *testing.T) {
	const rows = 1_000_000
	p := newPart(7, rows)
	gap := gapOf((float64(p.fixed) + float64(len(p.score))/2) / rows)
	if math.Abs(gap-lawGap) > 5*2*.5/math.Sqrt(rows) {
		t.Errorf("a gap of %v, want %v", gap, lawGap)
	}
	if share := float64(len(p.score)) / rows; math.Abs(share-(1-groupShare)*undecided) > 5*.5/math.Sqrt(rows) {
		t.Errorf("%v of the rows are undecided", share)
	}
}
