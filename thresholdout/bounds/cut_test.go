package bounds

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/binomial"
)

// missesAt is what the upper end p for the answer a misses with, by its formula and a plain sum over the noise.
func (c Cut) missesAt(a, p, far float64) float64 {
	lead, rest := 0.0, c.N-c.M
	if c.M > 0 {
		lead = (c.N/c.M - 1) * c.Released
	}
	if c.Sigma == 0 {
		return math.Exp(lead - rest*KL(a, max(a, p)))
	}
	const step = 1.0 / 512
	total := math.Erfc(far/math.Sqrt2) / 2
	for z := -far + step/2; z < 12 && a-c.Sigma*z >= 0; z += step {
		q := min(a-c.Sigma*z, 1)
		total += step * math.Exp(lead-rest*KL(q, max(q, p))-z*z/2) / math.Sqrt(2*math.Pi)
	}
	return total
}

// TestCutAgainstQuadrature: at both ends of a cut the misses are its share, by a plain sum, and no more: a slightly narrower interval would have more. It
// would notice a factor or a region of the noise that is left out, and a rule that integrates past a peak.
func TestCutAgainstQuadrature(t *testing.T) {
	const sumError = 2e-3 // of the plain sum, where it begins and ends
	cuts := 0
	rapid.Check(t, func(t *rapid.T) {
		n := math.Round(math.Exp(rapid.Float64Range(math.Log(10), math.Log(1e6)).Draw(t, "log n")))
		share := math.Exp(rapid.Float64Range(-18, -2).Draw(t, "log share"))
		sigma := rapid.SampledFrom([]float64{0, 1}).Draw(t, "noise") * math.Exp(rapid.Float64Range(-4, 1).Draw(t, "log sigma")) / math.Sqrt(n)
		released := max(0, rapid.Float64Range(-2, 20).Draw(t, "I"))
		c := NewCut(n, share, sigma, released)
		if c.M != math.Trunc(c.M) || !(c.M >= 1 && c.M < n) && (c.M != 0 || released > 0) {
			t.Fatalf("%+v has no M", c)
		}
		answer := rapid.Float64Range(0, 1).Draw(t, "answer")
		low, high := c.Within(answer, 0, share, 0, 1)
		far := MaxNormalQuantile(1, rareNoise*share)
		for _, side := range [][2]float64{{answer, high}, {1 - answer, 1 - low}} {
			a, end := side[0], side[1]
			if end >= 1 {
				continue
			}
			cuts++
			if got := c.missesAt(a, end, far); got > share/2*(1+sumError) {
				t.Fatalf("%+v: the end %v for %v misses with %v, %v may", c, end, a, got, share/2)
			}
			if got := c.missesAt(a, end-1e-3*(end-a)-1e-9, far); got < share/2*(1-sumError) {
				t.Fatalf("%+v: the end %v for %v is wider than it has to be: a part in a thousand less misses with %v, %v may", c, end, a, got, share/2)
			}
		}
	})
	if cuts < 50 {
		t.Errorf("only %d ends were cuts", cuts)
	}
}

// TestCutCoverage enumerates all counts of small samples and integrates over the noise: with nothing released, the interval of a noisy answer misses the true
// probability no more often than its share.
func TestCutCoverage(t *testing.T) {
	const cells, share = 40, 0.1 // cells of equal probability of the noise
	for _, n := range []float64{5, 30} {
		for _, noise := range []float64{0.05, 0.4, 1.5} { // of a unit
			sigma := noise / n
			c := NewCut(n, share, sigma, 0)
			var lows, highs [][]float64
			for x := 0.0; x <= n; x++ {
				var low, high []float64
				for i := range cells {
					z := -math.Sqrt2 * math.Erfcinv(2*(float64(i)+0.5)/cells)
					l, h := c.Within(min(max(x/n+sigma*z, 0), 1), 0, share, 0, 1)
					low, high = append(low, l), append(high, h)
				}
				lows, highs = append(lows, low), append(highs, high)
			}
			worst := 0.0
			for p := 0.01; p < 1; p += 0.02 {
				missed := 0.0
				for x := range lows {
					mass := math.Exp(binomial.LogProbability(n, float64(x), p))
					for i := range lows[x] {
						if p < lows[x][i] || p > highs[x][i] {
							missed += mass / cells
						}
					}
				}
				worst = max(worst, missed)
			}
			t.Logf("n=%v, noise of %v units: %.3f of what may miss does", n, noise, worst/share)
			if worst > share+1.0/cells {
				t.Errorf("n=%v, noise of %v units: %v of intervals miss, %v may", n, noise, worst, share)
			}
			if n == 30 && worst < share/10 {
				t.Errorf("n=%v, noise of %v units: only %v of intervals miss, the test is too weak", n, noise, worst)
			}
		}
	}
}

// TestCutIsNested: at a smaller share, with the same m, an interval holds the one at a larger.
func TestCutIsNested(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := math.Round(math.Exp(rapid.Float64Range(math.Log(10), math.Log(1e6)).Draw(t, "log n")))
		c := NewCut(n, 1e-4, math.Exp(rapid.Float64Range(-4, 1).Draw(t, "log sigma"))/math.Sqrt(n), rapid.Float64Range(0, 20).Draw(t, "I"))
		answer := rapid.Float64Range(0, 1).Draw(t, "answer")
		low, high := 0.0, 1.0
		for share := 1e-12; share < 0.9; share *= 3 {
			l, h := c.Within(answer, 0, share, 0, 1)
			if l < low-1e-9 || h > high+1e-9 {
				t.Fatalf("%+v: at %v [%v, %v], at a third of it [%v, %v]", c, share, l, h, low, high)
			}
			low, high = l, h
		}
	})
}

// TestLastExact: the half-width is that of the schedule's answers and an exact one by the sum over the noise, at the best m for each value: at the half-width the misses are beta. It is
// narrower than with noise in the last answer, for a single question Hoeffding's. Below a hundred units the closed form is held against the same sum.
func TestLastExact(t *testing.T) {
	for _, c := range []struct {
		n, k int64
	}{{10_000, 2}, {10_000, 5}, {10_000, 40}, {99, 2}, {99, 10}, {60, 10}, {30, 3}} {
		const beta = 0.05
		b, err := LastExact(c.n, c.k, beta)
		if err != nil {
			t.Fatal(err)
		}
		n, released, total := float64(c.n), 0.0, 0.0
		for j := int64(1); j < c.k; j++ {
			sigma := ScheduledSigma(b.Sigma, j, c.k)
			if j == 1 {
				total += Miss(n, b.HalfWidth, sigma, 0)
			} else {
				total += missAtIntegers(n, b.HalfWidth, sigma, released)
			}
			released += Information(n, 0.25, sigma)
		}
		total = 2 * (total + math.Exp(logAdapted(n, 2*n*b.HalfWidth*b.HalfWidth, released)))
		if total > beta*(1+1e-4) || total < beta*(1-0.02) {
			t.Errorf("%+v: at ±%v the sum misses with %v", c, b.HalfWidth, total)
		}
		noisy, err := AdaptiveHoeffdingScheduled(c.n, c.k, beta)
		again, err2 := LastExactNoise(c.n, c.k, beta, b.Sigma)
		if err != nil || err2 != nil || b.HalfWidth >= noisy.HalfWidth || math.Abs(again/b.HalfWidth-1) > 1e-8 {
			t.Errorf("%+v: ±%v, read again ±%v, with noise in the last answer ±%v; %v, %v", c, b.HalfWidth, again, noisy.HalfWidth, err, err2)
		}
	}
	one, err := LastExact(1000, 1, 0.05)
	if want := math.Sqrt(math.Log(40) / 2000); err != nil || math.Abs(one.HalfWidth-want) > 1e-12 || one.Sigma != 0 {
		t.Errorf("a single question: %+v, %v; Hoeffding's is ±%v", one, err, want)
	}
}

// TestFewUnitsAgainstQuadrature: below a hundred units the tail at the best m for each value of the noise, in closed form, is at least its expectation by a plain sum, and hardly more. At a single m it
// is more by far where the noise is large: what was done before.
func TestFewUnitsAgainstQuadrature(t *testing.T) {
	for _, n := range []float64{2, 10, 60, 99} {
		for _, released := range []float64{minInformation, 0.1, 1, 10, 30} {
			for _, noise := range []float64{0.1, 0.6, 1.4, 5} {
				for _, w := range []float64{0.5, 1.2, 2, 4, 8} {
					sigma, w := noise/math.Sqrt(n), w/math.Sqrt(n)
					want := missAtIntegers(n, w, sigma, released)
					if got := bestCapped(n, w, sigma, sigma, released); want < 0.4 && (got < want*(1-1e-3) || got > want*1.03+1e-12) {
						t.Errorf("n=%v I=%v sigma=%v w=%v: %v, the sum is %v", n, released, sigma, w, got, want)
					}
					if one, both := bestCapped(n, w, sigma, sigma, released), bestCapped(n, w, sigma/1.5, sigma, released); both < 0.4 && one > both*(1+1e-9) {
						t.Errorf("n=%v I=%v sigma=%v w=%v: %v, for noise up to that %v", n, released, sigma, w, one, both)
					}
				}
			}
		}
	}
	given, err := ConstantNoise(99, 10, 0.05, 0.176)
	if err != nil || given.HalfWidth > 0.6 {
		t.Errorf("noise that the owner names: ±%v, %v; with one m for all values of the noise it was ±0.81", given.HalfWidth, err)
	}
}
