package moments

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// drawValues are a few values in [0,1], often extreme or equal.
func drawValues(t *rapid.T) []float64 {
	value := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1, 0.5, 1e-9, 1 - 1e-9}))
	return rapid.SliceOfN(value, 1, 12).Draw(t, "values")
}

func momentsOf(values []float64) (mean, variance float64) {
	n := float64(len(values))
	for _, x := range values {
		mean += x / n
	}
	for _, x := range values {
		variance += (x - mean) * (x - mean) / n
	}
	return mean, variance
}

// TestLemma: at a fixed stake a bet has become at least what Capital says, for every sample with such a mean and variance, and for less than is true
// of it. Red for a lower bound of the variance in the place of an upper one.
func TestLemma(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := drawValues(t)
		mean, variance := momentsOf(values)
		u := mean * rapid.Float64Range(0.01, 1).Draw(t, "share of the mean")
		v := variance + rapid.Float64Range(0, 0.25).Draw(t, "more variance")*float64(rapid.IntRange(0, 1).Draw(t, "any more"))
		r := u * rapid.Float64Range(0.01, 0.999).Draw(t, "r/u")
		stake := rapid.Float64Range(0, 0.9999).Draw(t, "stake")
		if !(u > 1e-12) {
			return
		}
		got := 0.0
		for _, x := range values {
			got += math.Log1p(stake*(x/r-1)) / float64(len(values))
		}
		if want := Capital(u, v, r, stake); got < want-1e-9*(1+math.Abs(want)) {
			t.Fatalf("u=%v v=%v r=%v stake %v: the bet became %v, the lemma says at least %v", u, v, r, stake, got, want)
		}
	})
}

// TestStakeIsBest: no stake has more capital, and the best one's is the divergence that Low inverts.
func TestStakeIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Float64Range(0.01, 0.999).Draw(t, "u")
		v := rapid.Float64Range(1e-6, 0.25).Draw(t, "v")
		r := u * rapid.Float64Range(0.01, 0.99).Draw(t, "r/u")
		best := Capital(u, v, r, Stake(u, v, r))
		m2 := min(u*u+v, u)
		if want := bounds.KL(u*u/m2, u*r/m2); math.Abs(best-want) > 1e-9*(1+want) {
			t.Fatalf("the best capital is %v, the divergence %v", best, want)
		}
		if other := Capital(u, v, r, rapid.Float64Range(0, 0.9999).Draw(t, "stake")); other > best+1e-12 {
			t.Fatalf("another stake has %v, the best %v", other, best)
		}
	})
}

// TestLowIsMonotone: an end moves outward as less is said or a higher level is asked for, and it is never wider than Chernoff's.
func TestLowIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, v := rapid.Float64Range(0, 1).Draw(t, "u"), rapid.Float64Range(0, 0.3).Draw(t, "v")
		n := math.Exp(rapid.Float64Range(0, 25).Draw(t, "log n"))
		level := math.Exp(rapid.Float64Range(-2, 7).Draw(t, "log level"))
		low := Low(u, v, n, level)
		more := 1 + rapid.Float64Range(0, 1).Draw(t, "more")
		for name, weaker := range map[string]float64{"mean": Low(u/more, v, n, level), "variance": Low(u, v*more, n, level), "units": Low(u, v, n/more, level), "level": Low(u, v, n, level*more)} {
			if weaker > low+1e-12 {
				t.Fatalf("with less said of the %s the low end rises from %v to %v", name, low, weaker)
			}
		}
		if low > u || low < 0 {
			t.Fatalf("the low end %v is not between 0 and the mean %v", low, u)
		}
		chernoff, high := bounds.ChernoffInterval(n, u, level)
		if low < chernoff-1e-11 || High(u, v, n, level) > high+1e-11 {
			t.Fatalf("[%v, %v] is wider than Chernoff's [%v, %v]", low, High(u, v, n, level), chernoff, high)
		}
		if at, _ := bounds.ChernoffInterval(n, u, level); v >= 0.25 && math.Abs(low-at) > 1e-11 {
			t.Fatalf("a variance of %v says nothing, but the low end is %v and Chernoff's %v", v, low, at)
		}
		if got := 1 - High(1-u, v, n, level); math.Abs(got-low) > 1e-13 {
			t.Fatalf("high is no mirror of low: %v and %v", got, low)
		}
	})
}

// TestEndsMeetTheLevel: just above the printed low end the divergence is at most the level, and below it is above: neither wider nor narrower
// than the formula.
func TestEndsMeetTheLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, v := rapid.Float64Range(0.001, 0.999).Draw(t, "u"), rapid.Float64Range(1e-6, 0.25).Draw(t, "v")
		n := math.Exp(rapid.Float64Range(1, 18).Draw(t, "log n"))
		level := rapid.Float64Range(0.5, 100).Draw(t, "level")
		low := Low(u, v, n, level)
		m2 := min(u*u+v, u)
		at := func(r float64) float64 { return n * bounds.KL(u*u/m2, u*r/m2) }
		if low > 1e-12 && at(low) < level*(1-1e-9) {
			t.Fatalf("low %v is inside: its divergence is %v, the level %v", low, at(low), level)
		}
		if outer := low + 1e-9; outer < u && at(outer) > level*(1+1e-3) {
			t.Fatalf("low %v is too wide: at %v the divergence is %v, the level %v", low, outer, at(outer), level)
		}
	})
}

// TestSumsInRationals: the comparisons in integers are those of exact fractions.
func TestSumsInRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, grid), 1, 9).Draw(t, "values")
		s := Of(values)
		mean, square := new(big.Rat), new(big.Rat)
		n := big.NewRat(int64(len(values)), 1)
		for _, x := range values {
			y := big.NewRat(x, grid)
			mean.Add(mean, y)
			square.Add(square, y.Mul(y, y))
		}
		mean.Quo(mean, n)
		variance := square.Quo(square, n)
		variance.Sub(variance, new(big.Rat).Mul(mean, mean))
		guess, away := rapid.Int64Range(0, grid).Draw(t, "guess"), rapid.Int64Range(0, grid).Draw(t, "away")
		if rapid.Bool().Draw(t, "just there") {
			away = max(s.Sum-s.Units*guess, s.Units*guess-s.Sum) / s.Units
		}
		d := new(big.Rat).Sub(mean, big.NewRat(guess, grid))
		if want := d.Abs(d).Cmp(big.NewRat(away, grid)) <= 0; s.near(guess, away) != want {
			t.Fatalf("near(%d, %d) is %v", guess, away, !want)
		}
		limit := rapid.Int64Range(0, squares/4).Draw(t, "limit")
		if rapid.Bool().Draw(t, "just that variance") {
			exact := new(big.Rat).Mul(variance, big.NewRat(squares, 1))
			limit = new(big.Int).Div(exact.Num(), exact.Denom()).Int64() + rapid.Int64Range(-1, 1).Draw(t, "by one")
		}
		if limit >= 0 {
			if want := variance.Cmp(big.NewRat(limit, squares)) <= 0; s.steady(limit) != want {
				t.Fatalf("steady(%d) is %v, the variance is %v", limit, !want, variance)
			}
		}
		cells := int64(1) << rapid.IntRange(0, 20).Draw(t, "log cells")
		cell := new(big.Rat).Mul(mean, big.NewRat(cells, 1))
		want := min(new(big.Int).Div(cell.Num(), cell.Denom()).Int64(), cells-1)
		if got := s.cell(cells); got != want {
			t.Fatalf("cell %d of %d, want %d", got, cells, want)
		}
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLargestSums: 2^32 units of the largest values overflow nothing.
func TestLargestSums(t *testing.T) {
	s := Sums{Units: maxUnits, Sum: maxUnits * grid, Squares: Wide{Hi: 1 << 28}} // 2^32 values of 1: 2^92 = 2^28 2^64
	c := Check{N: maxUnits, Guess: 0, Ranks: []Rank{{Away: grid - 1, Units: maxUnits}}, Cells: maxCells}
	o, err := c.Outcome(s)
	if err != nil || o != (Outcome{Cell: maxCells - 1}) {
		t.Errorf("%+v, %v", o, err)
	}
	c.Guess, c.Ranks[0].Away = grid, 0
	if o, err := c.Outcome(s); err != nil || o != (Outcome{Rank: 1}) {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestRefused: sums that no units have, and checks that are no chain, are errors and no outcomes.
func TestRefused(t *testing.T) {
	good := Check{N: 3, Guess: 5, Ranks: []Rank{{Away: 1, Variance: 1, Units: 3}, {Away: 2, Variance: squares, Units: 3}}, Cells: 4}
	sums := Of([]int64{1, 2, 3})
	if _, err := good.Outcome(sums); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Sums{
		"another holdout's": Of([]int64{1, 2}), "too large": {3, 3*grid + 1, Wide{}}, "negative": {3, -1, Wide{}},
		"too few squares": {3, 3 * grid, Wide{0, 5}}, "more squares than values": {3, 6, Wide{0, 7 * grid}},
	} {
		if o, err := good.Outcome(s); err == nil {
			t.Errorf("sums that are %s: %+v", name, o)
		}
	}
	for name, change := range map[string]func(*Check){
		"margins that narrow":       func(c *Check) { c.Ranks[1].Away = 0 },
		"a margin beside the next":  func(c *Check) { c.Ranks[0].Shift = 2 },
		"the other side of it":      func(c *Check) { c.Ranks[0].Shift = -2 },
		"a shift of more than all":  func(c *Check) { c.Ranks[1].Away, c.Ranks[1].Shift = grid, grid+1 },
		"variances that fall":       func(c *Check) { c.Ranks[1].Variance = 0 },
		"units of a mean":           func(c *Check) { c.Ranks[0].Units = 2 },
		"units that rise":           func(c *Check) { c.Partial, c.Ranks[0].Units = true, 2 },
		"no rank":                   func(c *Check) { c.Ranks = nil },
		"three ranks":               func(c *Check) { c.Ranks = append(c.Ranks, c.Ranks[1]) },
		"no cells":                  func(c *Check) { c.Cells = 0 },
		"a guess above 1":           func(c *Check) { c.Guess = grid + 1 },
		"a fraction of a condition": func(c *Check) { c.Partial, c.Binary = true, true },
		"no units":                  func(c *Check) { c.N = 0 },
	} {
		c := good
		c.Ranks = append([]Rank{}, good.Ranks...)
		change(&c)
		if o, err := c.Outcome(sums); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
	wrong := DifferenceCheck{First: good, Second: good}
	if _, err := wrong.Outcome(sums, sums); err == nil {
		t.Error("a difference of means over all units is taken for one of disjoint groups")
	}
	partial := good
	partial.Partial = true
	if _, err := (DifferenceCheck{First: partial, Second: partial}).Outcome(sums, sums); err == nil {
		t.Error("six units in disjoint groups of three")
	}
}

// TestWithHalfWidth: what passes has an interval within the width that was asked for, a margin more would not, and a width that even a
// perfect guess misses is refused.
func TestWithHalfWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCheck(t, rapid.Int64Range(50, 1e6).Draw(t, "n"))
		level := rapid.Float64Range(2, 60).Draw(t, "level")
		w := math.Exp(rapid.Float64Range(-8, 0).Draw(t, "log width"))
		g := float64(c.Guess) / grid
		got, ok := c.WithHalfWidth(w, level)
		if !ok {
			got = c
			got.Ranks = []Rank{c.Ranks[0]}
			got.Ranks[0].Away = 0
			if low, high := got.Interval(Outcome{Rank: 1}, level); low >= g-w && high <= g+w {
				t.Fatalf("±%v was refused, but the guess itself has [%v, %v]", w, low, high)
			}
			return
		}
		if err := got.Valid(); err != nil || len(got.Ranks) != 1 {
			t.Fatalf("%v: %+v", err, got)
		}
		low, high := got.Interval(Outcome{Rank: 1}, level)
		if low < g-w || high > g+w {
			t.Fatalf("[%v, %v] is not within %v ± %v", low, high, g, w)
		}
		if got.Ranks[0].Away < grid {
			got.Ranks[0].Away++
			if low, high := got.Interval(Outcome{Rank: 1}, level); low >= g-w && high <= g+w {
				t.Fatalf("a step more would have been within ±%v too", w)
			}
		}
	})
}

// TestBatchLemma: the money that Batch says the bets have become is no more than what the planned stakes make of the sample itself, no more than all
// money was bet, and what it became falls as r rises; with two moments and with four. Red for a stake that follows the sample, which no test of coverage would notice, for one that
// rises with r, and for a remainder that is too small.
func TestBatchLemma(t *testing.T) {
	for turn := range 20 { // a remainder that is too small shows in few of the draws
		rapid.Check(t, stattest.Further(turn, batchLemma))
	}
}

func batchLemma(t *rapid.T) {
	var sums Sums
	var third, fourth Wide
	values := drawValues(t)
	for i, x := range values {
		steps := int64(x * grid)
		values[i] = float64(steps) / grid
		square := (steps*steps + grid/2) / grid
		sums.Units, sums.Sum = sums.Units+1, sums.Sum+steps
		sums.Squares.AddSquare(steps)
		third.AddProduct(steps, square)
		fourth.AddProduct(square, square)
	}
	s := sums.SampleWith(third, fourth)
	if rapid.Bool().Draw(t, "two moments") {
		s = sums.Sample()
	}
	level := rapid.Float64Range(0.1, 20).Draw(t, "level")
	b, err := PlanBatch(rapid.Float64Range(0, 1).Draw(t, "planned mean"), rapid.Float64Range(0, 0.25).Draw(t, "planned variance"), rapid.Float64Range(0, 50).Draw(t, "planned units"), level, BestTilts)
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "the other side") {
		b, s = b.mirror(), s.mirror()
		for i, x := range values {
			values[i] = 1 - x
		}
	}
	if !(s.Mean > 1e-6) { // nearer to 0, what 1-x was rounded by is a part of x that can be seen
		return
	}
	parts := 0.0
	for i, x := range b.below {
		if x.logShare != math.Log(b.Weights[i]) {
			t.Fatalf("bet %d has e^%v of the probability of error, planned are %v", i, x.logShare, b.Weights[i])
		}
		parts += b.Weights[i]
	}
	if parts > 1+1e-12 {
		t.Fatalf("bets share %v of the probability of error", parts)
	}
	became := func(x bet, r float64) (log, width float64) {
		least, most := math.Inf(1), math.Inf(-1)
		lam := min(x.stake*r, largestStake)
		for _, v := range append([]float64{0, 1}, values...) {
			factor := math.Log1p(lam * (v/r - 1))
			least, most = min(least, factor), max(most, factor)
		}
		for _, v := range values {
			log += math.Log1p(lam * (v/r - 1))
		}
		return log, most - least
	}
	r := s.Mean * rapid.Float64Range(0.01, 0.99).Draw(t, "r/mean")
	further := r + (s.Mean-r)*rapid.Float64Range(0, 1).Draw(t, "further")
	won, together := false, 0.0
	for _, x := range b.below {
		log, width := became(x, r)
		if got := s.Units * s.grown(r, x.stake); got > log+1e-9*(1+math.Abs(got)) {
			t.Fatalf("r=%v: a bet is said to have become e^%v, and became e^%v", r, got, log)
		}
		if above, _ := became(x, further); above > log+1e-9*(1+math.Abs(log)) {
			t.Fatalf("at %v a bet became e^%v, at %v e^%v", further, above, r, log)
		}
		if r <= x.upTo && width > x.width*(1+1e-9) {
			t.Fatalf("against %v a bet of at most e^%v, planned up to %v with %v", r, width, x.upTo, x.width)
		}
		need := level - x.logShare
		if x.apart() && r <= x.upTo {
			need = BestTilts.enough(need, x.width)
		}
		won = won || log > need-1e-9
		if !x.apart() {
			together += math.Exp(log + x.logShare - level)
		}
	}
	if b.outside(s, level)(r) && !won && together < 1-1e-9 {
		t.Fatalf("%v is outside, and no bet against it became enough", r)
	}
}

// TestSeriesLemma: what four moments say of a bet is no more than what it made of the sample, at small stakes nearly as much, on both sides. Red for a third moment
// with the wrong sign.
func TestSeriesLemma(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sums Sums
		var third, fourth Wide
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 51))
		var values []float64
		for range rapid.IntRange(5, 40).Draw(t, "units") {
			x := r.Float64()
			steps := int64(0.5 * x * x * x * x * grid) // skewed
			square := (steps*steps + grid/2) / grid
			values = append(values, float64(steps)/grid)
			sums.Units, sums.Sum = sums.Units+1, sums.Sum+steps
			sums.Squares.AddSquare(steps)
			third.AddProduct(steps, square)
			fourth.AddProduct(square, square)
		}
		two, four := sums.Sample(), sums.SampleWith(third, fourth)
		if rapid.Bool().Draw(t, "the other side") {
			two, four = two.mirror(), four.mirror()
			for i, x := range values {
				values[i] = 1 - x
			}
		}
		at := four.Mean * rapid.Float64Range(0.5, 0.99).Draw(t, "r/mean")
		stake := math.Exp(-rapid.Float64Range(1, 5).Draw(t, "-ln of the stake"))
		grown := 0.0
		for _, x := range values {
			grown += math.Log1p(stake*(x-at)) / float64(len(values))
		}
		got := four.grown(at, stake)
		if got > grown+1e-12 {
			t.Fatalf("at %v a bet is said to have grown by %v, and grew by %v", at, got, grown)
		}
		if got < two.grown(at, stake) {
			t.Fatalf("four moments say less than two: %v", got)
		}
		if short := grown - got; short > math.Pow(stake, 4)+1e-7 {
			t.Fatalf("at %v a bet of %v grew by %v, and is said to have by %v", at, stake, grown, got)
		}
	})
}

// TestWeightedBatchLemma: the same with weights, where each unit has a B of its own, at one stake.
func TestWeightedBatchLemma(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1, 0.5, 1e-9}))
		var sums WeightedSums
		var units [][2]float64
		for range rapid.IntRange(1, 12).Draw(t, "units") {
			b := int64(part.Draw(t, "B") * grid)
			a := int64(part.Draw(t, "A/B") * float64(b))
			sums.Add(a, b)
			units = append(units, [2]float64{float64(a) / grid, float64(b) / grid})
		}
		s := sums.Sample()
		if rapid.Bool().Draw(t, "the other side") {
			s = s.mirror()
			for i, u := range units {
				units[i][0] = u[1] - u[0]
			}
		}
		if !(s.Mean > 1e-9) {
			return
		}
		r := s.Mean * rapid.Float64Range(0.01, 0.99).Draw(t, "r/mean")
		lam := rapid.Float64Range(0, 0.999).Draw(t, "stake")
		grown := 0.0
		for _, u := range units {
			grown += math.Log1p(lam*(u[0]/r-u[1])) / float64(len(units))
		}
		if got := s.grown(r, lam/r); got > grown+1e-7*(1+math.Abs(got)) {
			t.Fatalf("r=%v, stake %v: a bet is said to have grown by %v a unit, and grew by %v", r, lam, got, grown)
		}
	})
}

// TestOutcomeIsTrue: what an outcome says of the holdout is true of its sums.
func TestOutcomeIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, grid), rapid.SampledFrom([]int64{0, grid})), 1, 9).Draw(t, "values")
		s := Of(values)
		n := s.Units
		c := drawCheck(t, n+rapid.Int64Range(0, 5).Draw(t, "others"))
		if !c.Partial {
			c.N = n
			for l := range c.Ranks {
				c.Ranks[l].Units = n
			}
		}
		mean, variance := s.moments()
		if rapid.Bool().Draw(t, "a good guess") {
			c.Ranks = c.Ranks[:1]
			edge := rapid.Int64Range(-1, 1).Draw(t, "edge") * c.Ranks[0].Away
			c.Guess = min(max(int64(mean*grid)-c.Ranks[0].Shift-edge+rapid.Int64Range(-5, 5).Draw(t, "off"), 0), grid)
			c.Ranks[0].Variance = int64(variance * rapid.Float64Range(0.8, 2).Draw(t, "of the variance") * squares)
			c.Ranks[0].Units = min(c.Ranks[0].Units, n+1)
		}
		o, err := c.Outcome(s)
		if err != nil {
			t.Fatal(err)
		}
		from, to, v, units := c.said(o)
		if mean < from-1e-12 || mean > to+1e-12 || variance > v+1e-12 || float64(n) < units {
			t.Fatalf("%+v says a mean in [%v, %v], a variance of at most %v and %v units; they are %v, %v and %d", o, from, to, v, units, mean, variance, n)
		}
	})
}
