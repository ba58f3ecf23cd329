package shape

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestPairedFormula: of any five means that there can be, the formula is the difference of the two quotients, and its interval holds the differences of all means within theirs. It would notice a product that is left out of
// the value or of the interval, and a sign.
func TestPairedFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 22))
	for range 5000 {
		one, other := GroupFacts{r.Float64(), 0.01 + 0.5*r.Float64()}, GroupFacts{r.Float64(), 0.01 + 0.4*r.Float64()}
		width, low := 1+9*r.Float64(), float64(r.IntN(2))/2
		draw := func() [5]float64 { // a holdout's means
			b, c := 0.01+0.5*r.Float64(), 0.01+0.4*r.Float64()
			x, y := b*(r.Float64()-one.Mean), c*(r.Float64()-other.Mean)
			return [5]float64{x/one.Share - y/other.Share, x, y, b, c}
		}
		truth := func(m [5]float64) float64 {
			return low + width*(one.Mean-other.Mean+m[1]/m[3]-m[2]/m[4])
		}
		at, beside := draw(), draw()
		var means []Moment
		for i, v := range at {
			means = append(means, Moment{v, interval.Interval{Low: min(v, beside[i]), High: max(v, beside[i])}})
		}
		value, bounds, defined := pairedDifference(one, other, width, low)(means, 100)
		if want := truth(at); !defined || math.Abs(value-want) > 1e-9*(1+math.Abs(at[0])) {
			t.Fatalf("%v, %v: value %v, want %v", one, other, value, want)
		}
		for _, m := range [][5]float64{at, beside} {
			if v := min(max(truth(m), low-width), low+width); v < bounds.Low-1e-9 || v > bounds.High+1e-9 {
				t.Fatalf("%v, %v: %v is not within %v, of %+v", one, other, v, bounds, means)
			}
		}
		means[3].Bounds.Low = 0
		if _, bounds, defined := pairedDifference(one, other, width, low)(means, 100); defined || bounds.Low > low-width || bounds.High < low+width {
			t.Fatalf("a group that may be empty: %v, defined %v", bounds, defined)
		}
	}
	condition := rowfn.Column("late", rowfn.Condition)
	if c := Paired(rowfn.Function{Lo: 0, Hi: 1}, condition, rowfn.Not(condition), GroupFacts{0.5, 0}, GroupFacts{0.5, 1}, 0); c != nil {
		t.Error("a group without rows in the training part is divided by")
	}
}
