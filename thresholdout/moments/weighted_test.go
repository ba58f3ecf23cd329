package moments

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestWeightedLemma: a number that a weighted statement rejects is one that the best bet against it, on any sample of which the statement is
// true, wins from. Red when MixedLow and MixedHigh change places, or the spread is forgotten.
func TestWeightedLemma(t *testing.T) {
	random := rand.New(rand.NewChaCha8([32]byte{6, 17}))
	rejected := 0
	for range 2000 {
		n, g := 1+random.IntN(10), 0.02+0.98*random.Float64()
		w := Weighted{N: float64(n), Guess: g}
		as, bs := make([]float64, n), make([]float64, n)
		off := 0.0
		for i := range n {
			bs[i] = []float64{random.Float64(), 1, 0.1}[random.IntN(3)]
			as[i] = bs[i] * []float64{random.Float64(), g, 1, 0}[random.IntN(4)]
			d := as[i] - g*bs[i]
			off += d / w.N
			w.Spread += d * d / w.N
			w.Size += bs[i] / w.N
			w.MixedHigh += d * bs[i] / w.N
			w.SizeSquare += bs[i] * bs[i] / w.N
		}
		w.MixedLow = w.MixedHigh
		if random.IntN(2) == 0 { // the margin's middle may be anywhere
			w.Shift = off + 0.2*(random.Float64()-0.5)
		}
		w.Away = math.Abs(off - w.Shift)
		level := 0.01 + 3*random.Float64()
		for _, mirrored := range []bool{false, true} {
			end := w.Low(level)
			if mirrored {
				end = 1 - w.High(level)
				for i := range as {
					as[i] = bs[i] - as[i]
				}
			}
			if end <= 1e-6 {
				continue
			}
			rejected++
			r := end - 1e-12
			best := math.Inf(-1)
			for s := 1; s <= 500; s++ {
				stake := 1 - math.Pow(float64(s)/500, 3)
				capital := 0.0
				for i := range as {
					capital += math.Log1p(stake * (as[i] - r*bs[i]) / r)
				}
				best = max(best, capital)
			}
			if best < level*(1-1e-2)-1e-6 {
				t.Fatalf("r=%v is rejected at %v, but the best bet on the sample is %v (mirrored: %v): %+v", r, level, best, mirrored, w)
			}
		}
	}
	if rejected < 500 {
		t.Errorf("only %d ends were above 0: the search is too weak", rejected)
	}
}

// TestWeightedIsTheMean: with B = 1 and a statement about the guess itself the weighted region is Low's.
func TestWeightedIsTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.Float64Range(0.05, 0.95).Draw(t, "g")
		v := rapid.Float64Range(0, 1).Draw(t, "v") * g * (1 - g)
		n, level := math.Exp(rapid.Float64Range(1, 15).Draw(t, "log n")), rapid.Float64Range(0.5, 50).Draw(t, "level")
		w := Weighted{N: n, Guess: g, Spread: v, Size: 1, SizeSquare: 1}
		if low, want := w.Low(level), Low(g, v, n, level); math.Abs(low-want) > 1e-9 {
			t.Fatalf("low %v, want %v", low, want)
		}
		if high, want := w.High(level), High(g, v, n, level); math.Abs(high-want) > 1e-9 {
			t.Fatalf("high %v, want %v", high, want)
		}
	})
}

// TestWeightedOutcome: the comparisons in integers are those of exact fractions.
func TestWeightedOutcome(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		c := WeightedCheck{N: rapid.Int64Range(1, 6).Draw(t, "n"), Guess: rapid.Int64Range(0, grid).Draw(t, "guess"), Cells: 1 << rapid.IntRange(0, 9).Draw(t, "log cells")}
		var s WeightedSums
		g := big.NewRat(c.Guess, grid)
		var means [5]*big.Rat // A-gB, (A-gB)^2, B, (A-gB)B, B^2
		for i := range means {
			means[i] = new(big.Rat)
		}
		for range c.N {
			b := rapid.Int64Range(0, grid).Draw(t, "b")
			a := rapid.Int64Range(0, b).Draw(t, "a")
			s.Add(a, b)
			x, y := big.NewRat(a, grid), big.NewRat(b, grid)
			d := x.Sub(x, new(big.Rat).Mul(g, y))
			mul := func(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) }
			for i, term := range []*big.Rat{d, mul(d, d), y, mul(d, y), mul(y, y)} {
				means[i].Add(means[i], term.Quo(term, big.NewRat(c.N, 1)))
			}
		}
		// Margins at what is true, or a step to either side.
		step := func(x *big.Rat, unit int64, up bool) int64 {
			y := new(big.Rat).Mul(x, big.NewRat(unit, 1))
			floor := new(big.Int).Div(y.Num(), y.Denom()).Int64()
			if up && !y.IsInt() {
				floor++
			}
			return floor + rapid.Int64Range(-1, 1).Draw(t, "by one")*int64(rapid.IntRange(0, 1).Draw(t, "off"))
		}
		shift := rapid.Int64Range(-grid/4, grid/4).Draw(t, "shift")
		away := new(big.Rat).Sub(means[0], big.NewRat(shift, grid))
		away.Abs(away)
		r := WeightedRank{Shift: shift, Away: step(away, grid, true), Spread: step(means[1], squares, true), Size: step(means[2], grid, false),
			MixedLow: step(means[3], squares, false), MixedHigh: step(means[3], squares, true), SizeSquare: step(means[4], squares, true)}
		c.Ranks = []WeightedRank{r}
		at := func(x, unit int64) *big.Rat { return big.NewRat(x, unit) }
		want := away.Cmp(at(r.Away, grid)) <= 0 && means[1].Cmp(at(r.Spread, squares)) <= 0 && means[2].Cmp(at(r.Size, grid)) >= 0 &&
			means[3].Cmp(at(r.MixedLow, squares)) >= 0 && means[3].Cmp(at(r.MixedHigh, squares)) <= 0 && means[4].Cmp(at(r.SizeSquare, squares)) <= 0
		o, err := c.Outcome(s)
		if c.Valid() != nil {
			return
		}
		if err != nil || (o.Rank == 1) != want {
			t.Fatalf("%+v, %v; in fractions %v: %+v", o, err, want, r)
		}
		passed += o.Rank
		if o.Failed() && o.Loss == 0 {
			ratio := float64(s.A) / float64(s.B) * float64(c.Cells)
			if ratio < float64(o.Cell)-1e-9 || ratio > float64(o.Cell+1)+1e-9 || means[2].Cmp(at(r.Size, grid)) < 0 || means[4].Cmp(at(r.SizeSquare, squares)) > 0 {
				t.Fatalf("%+v is not true: %v, %+v", o, ratio, r)
			}
		}
	})
	if passed == 0 {
		t.Error("nothing passed")
	}
}

// TestExactWeighted enumerates units whose weight and value take few values: all outcomes of a weighted question together miss on a side with
// probability at most e^-E, at that level or any higher one. Red at half of the level.
func TestExactWeighted(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{19, 17}))
	worst, violated := 0.0, 0
	for range 2500 {
		n := 1 + r.IntN(6)
		kinds := 2 + r.IntN(2)
		as, bs, p := make([]int64, kinds), make([]int64, kinds), make([]float64, kinds)
		sum, ea, eb := 0.0, 0.0, 0.0
		for i := range p {
			bs[i] = int64([]float64{1, 0.5, r.Float64()}[r.IntN(3)] * grid)
			as[i] = int64([]float64{0, 1, r.Float64()}[r.IntN(3)] * float64(bs[i]))
			p[i] = math.Exp(-5 * r.Float64())
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
			ea += p[i] * float64(as[i])
			eb += p[i] * float64(bs[i])
		}
		if eb == 0 {
			continue
		}
		truth := ea / eb
		// Margins at what some sample is, so that passes are at the edge of what they say.
		c := WeightedCheck{N: int64(n), Guess: int64(r.Float64() * grid), Cells: 1 << r.IntN(4)}
		if k := r.IntN(kinds); bs[k] > 0 {
			c.Guess = int64(float64(as[k]) / float64(bs[k]) * grid)
		}
		var at WeightedSums
		for range n {
			k := r.IntN(kinds)
			at.Add(as[k], bs[k])
		}
		g := float64(c.Guess) / grid
		mean := func(w Wide) float64 { return (float64(w.Hi)*math.Exp2(64) + float64(w.Lo)) / squares / float64(n) }
		aa, ab, bb := mean(at.SquareA), mean(at.Mixed), mean(at.SquareB)
		off := int64((float64(at.A) - g*float64(at.B)) / float64(n))
		shift := off * int64(r.IntN(2))
		c.Ranks = []WeightedRank{{Away: max(off-shift, shift-off) + 2, Shift: shift, Size: max(int64(float64(at.B)/float64(n))-2, 0),
			Spread: int64((aa-2*g*ab+g*g*bb)*squares) + 1<<12, MixedLow: int64((ab-g*bb)*squares) - 1<<12, MixedHigh: int64((ab-g*bb)*squares) + 1<<12, SizeSquare: int64(bb*squares) + 1<<12}}
		if c.Ranks[0].Spread < 0 || c.Valid() != nil {
			continue
		}
		level := 0.1 + 3*r.Float64()
		var missed [2][2]float64 // by fault, side
		count := make([]int, kinds)
		var walk func(i, left int, probability float64)
		walk = func(i, left int, probability float64) {
			if i == kinds-1 {
				count[i] = left
				probability *= math.Pow(p[i], float64(left))
				var s WeightedSums
				for k, c := range count {
					for range c {
						s.Add(as[k], bs[k])
					}
				}
				o, err := c.Outcome(s)
				if err != nil {
					t.Fatal(err)
				}
				for fault, share := range []float64{1, 0.5} {
					low, high := c.Interval(o, share*level-float64(fault)*passLevel)
					for higher := 1.2; fault == 0 && higher < 4; higher *= 1.5 { // ends need not be nested: one at a higher level counts, too
						l, h := c.Interval(o, higher*level)
						low, high = max(low, l), min(high, h)
					}
					if low > truth {
						missed[fault][0] += probability
					}
					if high < truth {
						missed[fault][1] += probability
					}
				}
				return
			}
			ways := 1.0
			for k := 0; k <= left; k++ {
				count[i] = k
				walk(i+1, left-k, probability*ways*math.Pow(p[i], float64(k)))
				ways *= float64(left-k) / float64(k+1)
			}
		}
		walk(0, n, 1)
		reached := max(missed[0][0], missed[0][1]) * math.Exp(level)
		if reached > 1+1e-9 {
			t.Fatalf("a side misses with %v times e^-%v: %+v", reached, level, c)
		}
		worst = max(worst, reached)
		if max(missed[1][0], missed[1][1])*math.Exp(level) > 1+1e-9 {
			violated++
		}
	}
	t.Logf("largest probability times e^E: %.4f; %d violations at half of the level", worst, violated)
	if violated == 0 {
		t.Error("half of the level goes unnoticed: the search is too weak")
	}
}

// TestPlannedWeightsPass: an honest plan of a share among the rows of units passes at rank 1 in nearly all holdouts, and its interval is within
// six times a textbook's; a guess that is far away fails, says its cell, and covers.
func TestPlannedWeightsPass(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{20, 17}))
	const n, training = 5000, 12000
	draw := func() (a, b float64) { // of a unit with five rows: the share that satisfies a condition, and of those the late ones
		in, late := 0, 0
		for range 5 {
			if r.IntN(2) == 0 {
				in++
				if r.IntN(5) == 0 {
					late++
				}
			}
		}
		return float64(late) / 5, float64(in) / 5
	}
	const truth = 0.2
	passed := 0
	for i := range 40 {
		guess := truth
		if i%10 == 9 {
			guess = 0.6
		}
		var x [5][2]float64
		for range training {
			a, b := draw()
			d := a - guess*b
			for j, y := range []float64{d, d * d, b, d * b, b * b} {
				x[j][0] += y / training
				x[j][1] += y * y / training
			}
		}
		m := func(j int) Moment { return Moment{x[j][0], x[j][1] - x[j][0]*x[j][0]} }
		off := m(0)
		if guess != truth {
			off.Mean = 0 // who is sure of the guess plans no room
		}
		c, err := PlanWeighted(WeightedTraining{Units: training, Guess: guess, Off: off, Spread: m(1), B: m(2), Mixed: m(3), SquareB: m(4)}, n, 110)
		if err != nil {
			t.Fatal(err)
		}
		var s WeightedSums
		for range n {
			a, b := draw()
			s.Add(int64(a*grid), max(int64(b*grid), int64(a*grid)))
		}
		o, err := c.Outcome(s)
		if err != nil {
			t.Fatal(err)
		}
		low, high := c.Interval(o, 8.39)
		if low > truth || high < truth {
			t.Errorf("[%v, %v] after %+v", low, high, o)
		}
		if guess != truth {
			if !o.Failed() || o.Loss != 0 || high-low > 0.2 {
				t.Errorf("a guess of %v: %+v, [%v, %v]", guess, o, low, high)
			}
			continue
		}
		if o.Rank == 1 {
			passed++
		}
		if textbook := 1.96 * math.Sqrt(truth*(1-truth)/(2.5*n)); o.Rank == 1 && (high-low)/2 > 6*textbook {
			t.Errorf("[%v, %v] is %v times the textbook's", low, high, (high-low)/2/textbook)
		}
	}
	if passed < 35 {
		t.Errorf("%d of 36 honest questions pass at rank 1", passed)
	}
}

// TestSizedFollows: what a failure's interval is made from is true of every sample whose weights are as the first rank says.
func TestSizedFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "n")
		edge := float64(rapid.IntRange(0, 8).Draw(t, "edge")) / 8
		var b, bb, spread, mixed float64
		for range n {
			y := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(1.0)).Draw(t, "b")
			d := y*rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1})).Draw(t, "a/b") - edge*y
			b += y / float64(n)
			bb += y * y / float64(n)
			spread += d * d / float64(n)
			mixed += d * y / float64(n)
		}
		c := WeightedCheck{N: int64(n), Ranks: []WeightedRank{{Size: int64(b * grid), SizeSquare: int64(math.Ceil(bb * squares))}}}
		w := c.sized(edge)
		if w.Away != 0 || spread > w.Spread+1e-12 || mixed > w.MixedHigh+1e-12 || mixed < w.MixedLow-1e-12 || bb > w.SizeSquare+1e-12 || b < w.Size-1e-12 {
			t.Fatalf("edge %v: spread %v, mixed %v, weights %v and %v: %+v", edge, spread, mixed, b, bb, w)
		}
	})
}

// TestMarginsOnOneSide: a margin that lies all on one side of the guess still says no more than the sample: its ends are on their sides of the sample's own ratio, whatever the weights are. Red where an end may be beyond
// the guess, where the least weights are not the worst ones.
func TestMarginsOnOneSide(t *testing.T) {
	const n = 1000
	for _, size := range []float64{0.2, 0.5, 0.8} {
		for _, share := range []float64{0.4, 0.45} { // of A in B, and 1 less it in the mirror; the guess is .3
			off := (share - 0.3) * 0.8
			w := Weighted{N: n, Guess: 0.3, Away: 0.3 * off, Shift: off, Size: size, Spread: 0.8, MixedLow: -1, MixedHigh: 1, SizeSquare: 0.8}
			if low := w.Low(0); low > share {
				t.Errorf("weights of %v at least: the low end is %v, the ratio %v", size, low, share)
			}
			if high := w.mirror().High(0); high < 1-share {
				t.Errorf("weights of %v at least: the high end is %v, the ratio %v", size, high, 1-share)
			}
		}
	}
}
