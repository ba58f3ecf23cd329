package shape

import (
	"math"
	"testing"
)

// upwards is a part whose lower end misses 1/2 at a level E where u < e^-E, for a uniform u with the probability that it may have; downwards is the other way round.
func upwards(u float64) Part {
	return Part{Value: 0.9, Bounded: true, Low: 0, High: 1, Alone: func(level float64) (low, high float64) { return 0.5 + 0.01*(-math.Log(u)-level), 1 }}
}

func downwards(u float64) Part {
	return Part{Value: 0.1, Bounded: true, Low: 0, High: 1, Alone: func(level float64) (low, high float64) { return 0, 0.5 - 0.01*(-math.Log(u)-level) }}
}

// TestBySample: the p-value of a test by its own sample is exact where ends miss as often as they may: uniform under the null on each side, twice that two-sided; of two parts it is the bound for all their ends. It
// is not for parts that are read in another way. A forgotten end or part, a level that is not rounded up, or the wrong side turns it red.
func TestBySample(t *testing.T) {
	r := Range{-1, 1}
	e := &Equation{Range: r}
	check := func(name string, got *float64, want float64) {
		t.Helper()
		want = max(min(want, 1), LeastLevel)
		if got == nil {
			t.Errorf("%s: none", name)
		} else if *got < want*(1-1e-9) || *got > want*1.001 {
			t.Errorf("%s: %v, want %v", name, *got, want)
		}
	}
	p := func(a Alternative, s Shape, parts ...Part) *float64 {
		return (&Test{Alternative: a}).bySample(Outcome{Parts: parts}, s)
	}
	for _, u := range []float64{1e-12, 1e-6, 0.001, 0.01, 0.049, 0.2, 0.45, 0.6, 0.9, 0.999} {
		check("above, two-sided", p(TwoSided, Moved{r}, upwards(u)), 2*u)
		check("below, two-sided", p(TwoSided, Moved{r}, downwards(u)), 2*u)
		check("above, greater", p(Greater, Moved{r}, upwards(u)), u)
		check("below, less", p(Less, Moved{r}, downwards(u)), u)
		check("above, less", p(Less, Moved{r}, upwards(u)), 1)
		check("below, greater", p(Greater, Moved{r}, downwards(u)), 1)
		mixed := (&Test{Alternative: Greater, Mixed: true}).bySample(Outcome{Parts: []Part{upwards(u)}}, Moved{r})
		check("above, greater, of several means", mixed, 2*u)
		for _, v := range []float64{1e-4, 0.3, 0.98} { // both ends move with the level: they meet halfway
			together := math.Sqrt(u * v)
			check("two parts", p(TwoSided, Between{e, e}, upwards(u), downwards(v)), 4*together)
			check("two parts, greater", p(Greater, Between{e, e}, upwards(u), downwards(v)), 2*together)
			check("two parts, less", p(Less, Between{e, e}, downwards(v), upwards(u)), 2*together)
			check("two parts, the other side", p(Less, Between{e, e}, upwards(u), downwards(v)), 1)
		}
	}
	other := upwards(0.01)
	other.Alone = nil
	if p := p(TwoSided, Between{e, e}, upwards(0.01), other); p != nil {
		t.Errorf("%v of a part that is not read by its own sample", *p)
	}
}
