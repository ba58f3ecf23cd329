package moments

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestEnoughIsEnough: products of up to some thousand bets, exactly: values that are 0 or y, of units that are not alike, at the stakes that plans have and at others. Whether the logarithm of the product is more than
// enough is a matter of how many values are y. It is with probability at most e^-level. Red where the bets' range is taken for a tenth of it, and for a gain
// that is a third of a nat larger.
func TestEnoughIsEnough(t *testing.T) {
	for name, f := range map[string]struct {
		enough   func(level, width float64) float64
		violates bool
	}{
		"as proved":              {BestTilts.enough, false},
		"as in older guarantees": {FirstTilts.enough, false},
		"a tenth of the range":   {func(level, width float64) float64 { return BestTilts.enough(level, width/10) }, true},
		"a third of a nat more":  {func(level, width float64) float64 { return max(BestTilts.enough(level, width)-1.0/3, 0) }, true},
	} {
		r := rand.New(rand.NewChaCha8([32]byte{25, 17}))
		worst := 0.0
		for range 1000 {
			n := 10 + r.IntN(600)
			y := math.Pow(10, -1.5*r.Float64())
			low, high := r.Float64(), 0.0 // probabilities of y, of some units and of the others
			if high = low; r.IntN(2) == 0 {
				high = low + (1-low)*r.Float64()
			}
			some := r.IntN(n + 1)
			truth := y * (float64(some)*low + float64(n-some)*high) / float64(n)
			deviation := y * math.Sqrt(float64(some)*low*(1-low)+float64(n-some)*high*(1-high))
			level := 0.3 + 4*r.Float64()
			if !(truth > 0 && deviation > 1e-6) {
				continue
			}
			// The worst stakes are those with which ln K is as uncertain as enough asks for.
			stake := math.Sqrt(2*level) / deviation * math.Exp(0.7*(r.Float64()-0.8))
			if r.IntN(2) == 0 { // against values near 1
				truth = 1 - truth
			} else {
				y = -y
			}
			if stake*truth >= 1-1e-6 {
				continue
			}
			width := betRange(stake, truth)
			value := func(count int) float64 { // ln K where so many values are off their side's end
				end := 0.0
				if y > 0 {
					end = 1
				}
				return float64(n-count)*math.Log1p(stake*(end-truth)) + float64(count)*math.Log1p(stake*(end-y-truth))
			}
			// What is won from one outcome on is held against the level at which that outcome is just enough.
			probabilities := convolved(some, low, n-some, high)
			won, tried, first := 0.0, 0, 0
			step := 1
			if value(n) > value(0) {
				first, step = n, -1
			}
			for count := first; count >= 0 && count <= n && value(count) > 0.05; count += step {
				if won += probabilities[count]; value(count) > f.enough(4, width) || r.IntN(4) > 0 || tried == 4 {
					continue
				}
				tried++
				from, to := 0.0, 4.0
				for range 24 {
					if mid := (from + to) / 2; f.enough(mid, width) < value(count) {
						from = mid
					} else {
						to = mid
					}
				}
				worst = max(worst, won*math.Exp(from))
			}
		}
		t.Logf("%s: largest probability times e^E: %.4f", name, worst)
		if f.violates != (worst > 1+1e-9) {
			t.Errorf("%s: the largest probability is %v times what is allowed", name, worst)
		}
	}
}

// TestEitherGroupIsWonOrLost: units that by chance are in the one group with all that its bet wins, or in the other with all that its bet loses, as units that are not alike may be; exactly, at each outcome and the level
// at which it is just enough. Red where what bets on two groups must come to follows from the larger of both ranges.
func TestEitherGroupIsWonOrLost(t *testing.T) {
	for name, f := range map[string]struct {
		width    func(j both, r, s, slope float64) float64
		violates bool
	}{
		"as proved": {both.width, false},
		"the larger of both ranges": {func(j both, r, s, slope float64) float64 {
			one, other := j.stakes(r, s, slope)
			return max(betRange(one/r, r), betRange(other/s, s))
		}, true},
	} {
		random := rand.New(rand.NewChaCha8([32]byte{32, 17}))
		worst := 0.0
		for range 400 {
			n := 1 + random.IntN(60)
			r, s := 0.01+0.05*random.Float64(), 0.99-0.05*random.Float64()
			won, lost := 0.3+1.7*random.Float64(), 0.3+1.7*random.Float64() // logarithms
			first, second := math.Expm1(won)/(1-r), -math.Expm1(-lost)/s
			j := both{first: Group{Units: 1 / first}, second: Group{Units: 1 / second}}
			width := f.width(j, r, s, 1)
			p := -math.Expm1(-lost) / (math.Expm1(won) - math.Expm1(-lost)) // of a fair bet
			probabilities, tail := convolved(n, p, 0, 0), 0.0
			for count := n; count >= 0; count-- {
				tail += probabilities[count]
				reached := won*float64(count) - lost*float64(n-count)
				if reached < 0.1 {
					break
				}
				from, to := 0.0, 30.0
				for range 40 {
					if mid := (from + to) / 2; BestTilts.enough(mid, width) < reached {
						from = mid
					} else {
						to = mid
					}
				}
				worst = max(worst, tail*math.Exp(from))
			}
		}
		t.Logf("%s: largest probability times e^E: %.4f", name, worst)
		if f.violates != (worst > 1+1e-9) {
			t.Errorf("%s: the largest probability is %v times what is allowed", name, worst)
		}
	}
}

// convolved are the probabilities of each number of successes among n units of probability p and m of probability q.
func convolved(n int, p float64, m int, q float64) []float64 {
	if p == q {
		n, m = n+m, 0
	}
	binomial := func(n int, p float64) []float64 {
		out := make([]float64, n+1)
		for i := range out {
			a, _ := math.Lgamma(float64(n + 1))
			b, _ := math.Lgamma(float64(i + 1))
			c, _ := math.Lgamma(float64(n - i + 1))
			switch {
			case p == 0 && i == 0, p == 1 && i == n:
				out[i] = 1
			case p > 0 && p < 1:
				out[i] = math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
			}
		}
		return out
	}
	a, b := binomial(n, p), binomial(m, q)
	out := make([]float64, n+m+1)
	for i, x := range a {
		for j, y := range b {
			if x*y > 1e-18 {
				out[i+j] += x * y
			}
		}
	}
	return out
}

// TestOvershotIsABound: sums of numbers that are one of two, exactly, at every place where probability lies: how much of them is beyond, discounted, is no more than what their deviation and range allow, and
// nearly that much. Red without what the band's end adds, or for a deviation that is a tenth larger.
func TestOvershotIsABound(t *testing.T) {
	for name, f := range map[string]struct {
		overshot func(s, width float64) float64
		violates bool
	}{
		"as proved":                 {overshot, false},
		"a deviation a tenth more":  {func(s, width float64) float64 { return overshot(1.1*s, width) }, true},
		"three quarters of a range": {func(s, width float64) float64 { return overshot(s, 0.75*width) }, true},
	} {
		r := rand.New(rand.NewChaCha8([32]byte{26, 17}))
		worst := 0.0
		for range 400 {
			n, m := 1+r.IntN(200), r.IntN(100)
			p, q, width := r.Float64(), r.Float64(), math.Pow(10, 0.5-2*r.Float64())
			deviation := width * math.Sqrt(float64(n)*p*(1-p)+float64(m)*q*(1-q))
			bound, beyond := f.overshot(deviation, width), 0.0
			probabilities := convolved(n, p, m, q)
			for count := n + m; count >= 0; count-- {
				beyond = beyond*math.Exp(-width) + probabilities[count]
				worst = max(worst, beyond/bound)
			}
		}
		t.Logf("%s: at most %.4f of what is allowed", name, worst)
		if f.violates != (worst > 1+1e-9) || worst < 0.9 {
			t.Errorf("%s: %v times what is allowed", name, worst)
		}
	}
}

// TestOvershotIsIntegrated: the integral is that of ten times as many cells, within its slack.
func TestOvershotIsIntegrated(t *testing.T) {
	for width := narrowestRange; width < 10; width *= 1.3 {
		for s := leastDeviation; s < 50; s *= 1.2 {
			rough, fine := overshotBy(s, width, overshotCells), overshotBy(s, width, 20*overshotCells)
			if math.Abs(rough-fine) > quadratureSlack*fine && fine < 1 {
				t.Fatalf("deviation %v, range %v: %v, with more cells %v", s, width, rough, fine)
			}
		}
	}
}

// TestTiltedBets: what the proof says of one bet under the law that has its money for a density: its mean logarithm, its exponential moments and its deviation under a tilt. Red for a range that is half of it.
func TestTiltedBets(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{27, 17}))
	halved := 0
	for range 20_000 {
		width, p, theta := 3*r.Float64(), r.Float64(), 4*r.Float64()*r.Float64()
		// Y is a or a+width with E e^-Y = 1 under Q.
		a := math.Log(1 - p + p*math.Exp(-width))
		moment := func(of func(y float64) float64) float64 { return (1-p)*of(a) + p*of(a+width) }
		variance := p * (1 - p) * width * width
		bounds := func(width float64) (ok bool) {
			mean := moment(func(y float64) float64 { return y })
			grown := moment(func(y float64) float64 { return math.Exp(theta * y) })
			return mean <= variance*excess(width)*(1+1e-9)+1e-15 &&
				grown <= math.Exp(variance*(theta*excess(width)+theta*theta*excess(theta*width)))*(1+1e-9)
		}
		if !bounds(width) {
			t.Fatalf("range %v, probability %v, theta %v", width, p, theta)
		}
		if !bounds(width / 2) {
			halved++
		}
		// Under the tilt the deviation is at least e^(-theta w/2) times as large.
		up := p * math.Exp(theta*width) / (1 - p + p*math.Exp(theta*width))
		if tilted := up * (1 - up) * width * width; tilted < variance*math.Exp(-theta*width)*(1-1e-9) {
			t.Fatalf("range %v, probability %v, theta %v: the variance falls from %v to %v", width, p, theta, variance, tilted)
		}
	}
	if halved == 0 {
		t.Error("half of the range goes unnoticed")
	}
}

// TestMajorant: the function of docs/proofs/overshoot.md, section 3, is at least e^(-lam x), or 0 below 0, and its values at the integers add up to 1/(1-e^-lam). Red for a derivative at 0 that does not make up for those at
// the other integers.
func TestMajorant(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{28, 17}))
	for range 300 {
		lam, x := 0.05+4*r.Float64(), 12*r.Float64()-4
		if x == math.Floor(x) {
			continue
		}
		sum := 0.0
		for n := range 900 {
			m, e := float64(n), math.Exp(-lam*float64(n))
			sum += e / ((x - m) * (x - m))
			if n > 0 {
				sum += lam * e * (1/x - 1/(x-m))
			}
		}
		sine := math.Sin(math.Pi*x) / math.Pi
		want := 0.0
		if x > 0 {
			want = math.Exp(-lam * x)
		}
		if got := sine * sine * sum; got < want-1e-12 {
			t.Fatalf("%v at %v: %v is below %v", lam, x, got, want)
		}
	}
}

// TestEnoughRises: what is enough rises with the level, by no more than the level, and is the level where bets are large. Red where the table is read at its upper levels alone, or its cells are not worked out to the end.
func TestEnoughRises(t *testing.T) {
	for _, width := range []float64{0.03, 0.11, 0.4, 1.3, 3} {
		last := 0.0
		for level := 0.0; level < 9; level += 0.01 {
			l := BestTilts.enough(level, width)
			if l < last || l > level || l-last > 0.01+1e-9 {
				t.Fatalf("range %v, level %v: %v after %v", width, level, l, last)
			}
			last = l
		}
	}
	for level := 1.0; level < 12; level += 0.7 { // a better tilt only helps, by up to a quarter of a nat
		for _, width := range []float64{0.03, 0.11, 0.4, 1.3} {
			if first, best := FirstTilts.enough(level, width), BestTilts.enough(level, width); best > first+0.001 || best < first-0.3 {
				t.Errorf("range %v, level %v: %v, it was %v", width, level, best, first)
			}
		}
	}
	if BestTilts.enough(5, 3) != 5 || BestTilts.enough(120, 0.1)-BestTilts.enough(100, 0.1) != 20 {
		t.Errorf("%v for large bets; from a level of 100 to 120 it rises by %v", BestTilts.enough(5, 3), BestTilts.enough(120, 0.1)-BestTilts.enough(100, 0.1))
	}
}

// TestNarrowBatchesCover: samples of skewed laws, planned by others of the same law: at an E of ln 20 a side an end is beyond the truth at most as often as promised (false alarm 1e-6), and often enough for the test to notice
// ends that are half as far. Red for a level that is not paid.
func TestNarrowBatchesCover(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{29, 17}))
	level := math.Log(20)
	const runs = 2000
	var missed, near [2]int
	for range runs {
		n := 500
		rare, scale := 0.03+0.9*r.Float64(), 0.02+0.2*r.Float64()
		values := func() (float64, []int64) {
			v := make([]int64, n)
			for i := range v {
				if r.Float64() < rare {
					v[i] = int64(math.Min(scale*r.ExpFloat64(), 1) * grid)
				}
			}
			return rare * scale * (1 - math.Exp(-1/scale)), v
		}
		truth, v := values()
		_, training := values()
		plan := Of(training).Sample()
		b, err := PlanBatch(plan.Mean, plan.Variance, float64(n), level, BestTilts)
		if err != nil {
			t.Fatal(err)
		}
		s := Of(v)
		var third, fourth Wide
		for _, x := range v {
			square := (x*x + grid/2) / grid
			third.AddProduct(x, square)
			fourth.AddProduct(square, square)
		}
		sample := s.SampleWith(third, fourth)
		low, high := b.Low(sample, level), b.High(sample, level)
		for side, end := range []float64{low, high} {
			beyond := func(end float64) bool { return side == 0 && end > truth || side == 1 && end < truth }
			if beyond(end) {
				missed[side]++
			}
			if beyond(sample.Mean + (end-sample.Mean)/2) {
				near[side]++
			}
		}
	}
	t.Logf("of %d: %d below and %d above are beyond the truth, at half of the way %d and %d", runs, missed[0], missed[1], near[0], near[1])
	for side := range missed {
		if err := stattest.AtMost(missed[side], runs, math.Exp(-level), 1e-6); err != nil {
			t.Error(err)
		}
		if err := stattest.AtMost(near[side], runs, math.Exp(-level), 1e-6); err == nil {
			t.Error("ends that are half as far go unnoticed")
		}
	}
}

// TestEndsAreWon: at the end that a check prints, the best bet has come to what its own range asks for, whatever mean, variance, units and level are, and the end is no further out than Markov's. The same of weights. Red for a range that is
// a quarter of the bet's.
func TestEndsAreWon(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{31, 17}))
	narrower := 0
	for range 2000 {
		u, n, level := r.Float64(), math.Pow(10, 1+4*r.Float64()), []float64{1.2, 3.7, 5, 8.5, 12}[r.IntN(5)]
		v := u * (1 - u) * r.Float64()
		low, markov := BestTilts.Overshot(u, v, n, level), Low(u, v, n, level)
		if low < markov {
			t.Fatalf("mean %v, variance %v, %v units, level %v: %v is below %v", u, v, n, level, low, markov)
		}
		if low > 1e-6 {
			stake := Stake(u, v, low)
			if won, need := n*Capital(u, v, low, stake), BestTilts.enough(level, betRange(stake/low, low)); won < need*(1-1e-9)-1e-9 {
				t.Fatalf("mean %v, variance %v, %v units, level %v: at %v a bet comes to e^%v, enough is e^%v", u, v, n, level, low, won, need)
			}
		}
		if low > markov+1e-9 {
			narrower++
		}
		w := Weighted{N: n, Guess: u, Away: 0.01 * r.Float64(), Size: 0.5, Spread: v, MixedHigh: 0.1 * v, SizeSquare: 0.4}
		if end := w.overshot(level); end < w.Low(level) || end > 1e-6 && !w.rejects(end-2*endSlack, BestTilts.enough(level, w.rangeAt(end))*(1-1e-6)) {
			t.Fatalf("%+v at level %v: %v is not rejected", w, level, end)
		}
	}
	if narrower < 1000 {
		t.Errorf("%d of 2000 ends are narrower than by Markov's inequality", narrower)
	}
}
