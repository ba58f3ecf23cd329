package moments

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestExactBetween enumerates every sample of small holdouts: a mean that is said to be just what it is, with the truth about its variance, misses on a side with probability at most e^-E, steady and unsteady samples
// together, at laws that the interval fears. It finds violations where the variance is taken to be steady always, and where one of the two chains has all of e^-E at nine tenths of the level.
func TestExactBetween(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 23))
	honest := func(c Check, h float64, steady bool, level float64) (float64, float64) {
		return c.Between(h, h, steady, level)
	}
	type reader func(c Check, h float64, steady bool, level float64) (float64, float64)
	faults := map[string]reader{
		"always steady": func(c Check, h float64, _ bool, level float64) (float64, float64) {
			return c.Between(h, h, true, level)
		},
		"nine tenths of the level": func(c Check, h float64, steady bool, level float64) (float64, float64) {
			return c.Between(h, h, steady, 0.9*level-passLevel)
		},
	}
	// missed is the probability that the lower end misses, of samples of n units that are y with probability share and else 0.
	missed := func(c Check, y int64, share, level float64, read reader) (below float64) {
		truth := share * float64(y) / grid
		for j := int64(0); j <= c.N; j++ {
			s := Sums{Units: c.N, Sum: j * y}
			for range j {
				s.Squares.AddSquare(y)
			}
			steady, err := c.Steady(s)
			if err != nil {
				t.Fatal(err)
			}
			if low, _ := read(c, float64(s.Sum)/float64(c.N)/grid, steady, level); low > truth {
				a, _ := math.Lgamma(float64(c.N + 1))
				b, _ := math.Lgamma(float64(j + 1))
				d, _ := math.Lgamma(float64(c.N - j + 1))
				below += math.Exp(a - b - d + power(share, j) + power(1-share, c.N-j))
			}
		}
		return below
	}
	worst, violated := 0.0, map[string]int{}
	for range 1500 {
		n, level := 2+r.Int64N(9), 0.1+4*r.Float64()
		y := int64((0.05 + 0.95*r.Float64()) * grid)
		j := 1 + r.Int64N(n)
		p := float64(j) / float64(n)
		v := float64(y) / grid * float64(y) / grid
		c := Check{N: n, Guess: grid / 2, Cells: 1, Ranks: []Rank{{Variance: int64(v * p * (1 - p) * 1.00001 * squares), Units: n}}}
		at := func(read reader) float64 { // as likely as the end of the sample with j of them lets it be
			low, _ := read(c, p*float64(y)/grid, true, level)
			return min(max((low-2*gridError)/(float64(y)/grid), 0), 1)
		}
		fears := at(honest)
		for _, share := range []float64{fears, fears * r.Float64()} {
			reached := missed(c, y, share, level, honest) * math.Exp(level)
			if reached > 1+1e-9 {
				t.Fatalf("%+v of %d: the lower end misses %v times what E = %v says", c, y, reached, level)
			}
			worst = max(worst, reached)
		}
		for _, name := range slices.Sorted(maps.Keys(faults)) { // in one order, for they draw from one source
			read := faults[name]
			share := at(read)
			if name == "always steady" {
				share *= r.Float64()
			}
			if missed(c, y, share, level, read)*math.Exp(level) > 1+1e-6 {
				violated[name]++
			}
		}
	}
	t.Logf("largest probability times e^E: %.4f; violations with faults: %v", worst, violated)
	for name := range faults {
		if violated[name] == 0 {
			t.Errorf("%s went unnoticed", name)
		}
	}
	if worst < 0.8 {
		t.Errorf("the largest probability is %v of what is allowed: the search is too weak", worst)
	}
}

// TestBetweenIsTheCheck: what is known to lie between two numbers is read as a pass that says the same: of 0/1 values by the exact tail, of others by their variance. Unsteady ones are no narrower.
func TestBetweenIsTheCheck(t *testing.T) {
	for _, c := range []Check{
		{N: 500, Guess: grid / 4, Cells: 4, Binary: true, Ranks: []Rank{{Away: grid / 50, Variance: squares, Units: 500}}},
		{N: 500, Guess: grid / 4, Cells: 4, Ranks: []Rank{{Away: grid / 50, Variance: squares / 100, Units: 500}, {Away: grid / 50, Variance: squares, Units: 500}}},
		{N: 500, Guess: grid / 4, Cells: 4, Ranks: []Rank{{Away: grid / 50, Variance: squares, Units: 500}}},
	} {
		from, to := float64(c.Guess-c.Ranks[0].Away)/grid, float64(c.Guess+c.Ranks[0].Away)/grid
		low, high := c.Interval(Outcome{Rank: 1}, 6)
		if l, h := c.Between(from, to, true, 6); l != low || h != high {
			t.Errorf("%+v: [%v, %v], as a pass [%v, %v]", c, l, h, low, high)
		}
		l, h := c.Between(from, to, false, 6)
		if c.OneChain() != (l == low && h == high) || l > low || h < high {
			t.Errorf("%+v: unsteady [%v, %v], steady [%v, %v]", c, l, h, low, high)
		}
		if paid := c.PriceOfSteady(); c.OneChain() != (paid == 0) || !c.OneChain() && float64(paid) < math.Ln2*natsPerUnit {
			t.Errorf("%+v: %d is paid for saying whether it is steady", c, paid)
		}
	}
}
