package bounds

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/binomial"
)

func TestMeanAgainstReference(t *testing.T) {
	for _, r := range references(t, "gnc_mgf_width") {
		// "upper" there is that p is the upper end: the sample's mean is below it.
		got := ChernoffWidth(r.Inputs["n"], r.Inputs["p"], r.Inputs["beta"], r.Inputs["upper"] == 0)
		if want := r.Expected["value"]; math.Abs(got-want) > 1e-6*want {
			t.Errorf("%v: %v, the reference is %v", r.Inputs, got, want)
		}
	}
	for _, r := range references(t, "pixeldp_clopper_pearson") { // each end at alpha/bonferroni
		n, each := int64(r.Inputs["n"]), r.Inputs["alpha"]/r.Inputs["bonferroni"]
		low, _, err := ClopperPearson(int64(r.Inputs["count"]), n, 2*each)
		_, high, err2 := ClopperPearson(400, n, 2*each)
		if err != nil || err2 != nil || math.Abs(low-r.Expected["lower"]) > 1e-9 || math.Abs(high-r.Expected["upper_of_400"]) > 1e-9 {
			t.Errorf("%v: %v and %v, %v %v", r.Expected, low, high, err, err2)
		}
	}
}

// binomialTerm is P(Bin(n, p) = x).
func binomialTerm(n, x int64, p float64) *big.Float {
	term := new(big.Float).SetPrec(400).SetInt(new(big.Int).Binomial(n, x))
	success := new(big.Float).SetPrec(400).SetFloat64(p)
	failure := new(big.Float).SetPrec(400).Sub(big.NewFloat(1).SetPrec(400), success)
	for range x {
		term.Mul(term, success)
	}
	for range n - x {
		term.Mul(term, failure)
	}
	return term
}

// TestMeanCoverage enumerates all outcomes of small yes/no samples: an interval for every outcome that misses the true mean no more
// often than it says, for any true mean.
func TestMeanCoverage(t *testing.T) {
	worst := 0.0
	defer func() { t.Logf("largest probability of a miss, of what is promised: %.4f", worst) }()
	for _, n := range []int64{2, 5, 17, 60} {
		for _, beta := range []float64{0.3, 0.05} {
			for p := 0.005; p < 1; p += 0.01 {
				exact, chernoff := 0.0, 0.0
				for x := int64(0); x <= n; x++ {
					mass, _ := binomialTerm(n, x, p).Float64()
					if low, high, _ := ClopperPearson(x, n, beta); p < low || p > high {
						exact += mass
					}
					if low, high := ChernoffInterval(float64(n), float64(x)/float64(n), math.Log(2/beta)); p < low || p > high {
						chernoff += mass
					}
				}
				worst = max(worst, exact/beta)
				if exact > beta || chernoff > exact+1e-12 {
					t.Fatalf("n=%d p=%v beta=%v: misses %v exact, %v Chernoff", n, p, beta, exact, chernoff)
				}
			}
		}
	}
}

// TestFractionCoverage enumerates all counts of small samples and integrates over the noise: the interval of a noisy answer misses the
// true probability no more often than its share.
func TestFractionCoverage(t *testing.T) {
	const cells = 200 // of equal probability of the noise
	for _, n := range []int64{5, 20, 60} {
		for _, noise := range []float64{0.05, 0.4, 1.5} { // of a unit
			sigma := noise / float64(n)
			c := Capped{N: float64(n), M: 1, Share: 0.07, Mechanism: 0.03}
			type interval struct{ low, high float64 }
			intervals := map[int64][]interval{}
			for x := int64(0); x <= n; x++ {
				for i := range cells {
					z := -math.Sqrt2 * math.Erfcinv(2*(float64(i)+0.5)/cells)
					low, high, err := c.FractionInterval(float64(x)/float64(n)+sigma*z, sigma)
					if err != nil || low > high {
						t.Fatal(low, high, err)
					}
					intervals[x] = append(intervals[x], interval{low, high})
				}
			}
			worst := 0.0
			for p := 0.01; p < 1; p += 0.02 {
				missed := 0.0
				for x, answers := range intervals {
					mass := math.Exp(binomial.LogProbability(float64(n), float64(x), p))
					for _, in := range answers {
						if p < in.low || p > in.high {
							missed += mass / cells
						}
					}
				}
				worst = max(worst, missed)
			}
			t.Logf("n=%d, noise of %v units: %.3f of what may miss does", n, noise, worst/(c.Share+c.Mechanism))
			if worst > c.Share+c.Mechanism+1.0/cells {
				t.Errorf("n=%d, noise of %v units: %v of intervals miss, %v may", n, noise, worst, c.Share+c.Mechanism)
			}
			if n == 60 && worst < (c.Share+c.Mechanism)/8 {
				t.Errorf("n=%d, noise of %v units: only %v of intervals miss, the test is too weak", n, noise, worst)
			}
		}
	}
}

// TestMeanIntervals: the exact interval is inside Chernoff's, and that inside Hoeffding's at the same level; near 0 the answer's
// interval is narrower than the account's half-width.
func TestMeanIntervals(t *testing.T) {
	check := func(c Capped, sigma, answer float64) error {
		low, high, err := c.MeanInterval(answer, sigma, 0)
		if err != nil {
			return err
		}
		exactLow, exactHigh, err := c.FractionInterval(answer, sigma)
		if err != nil {
			return err
		}
		// the answer may have been rounded either way; near 0 and 1 the ends of an interval move much faster than its answer
		outerLow, _, _ := c.MeanInterval(answer-gridSlack, sigma, 0)
		_, outerHigh, _ := c.MeanInterval(answer+gridSlack, sigma, 0)
		if exactLow < outerLow-1e-12 || exactHigh > outerHigh+1e-12 || !(low >= 0 && low <= high && high <= 1) {
			return fmt.Errorf("%+v: [%v, %v] and exact [%v, %v]", c, low, high, exactLow, exactHigh)
		}
		half := math.Sqrt(c.Level(c.Share)/(2*c.N)) + sigma*MaxNormalQuantile(1, c.Mechanism)
		if answer >= 0 && answer <= 1 && (low < max(0, answer-half)-1e-9 || high > min(1, answer+half)+1e-9) {
			return fmt.Errorf("%+v: [%v, %v], Hoeffding's half-width is %v", c, low, high, half)
		}
		return nil
	}
	// Rounding the count outwards, by less than a unit, moved this interval's end by more than 1/n: the end is
	// steep at a mean near 1.
	sigma := math.Exp(-2.46875) / math.Sqrt(90)
	if err := check(Capped{N: 90, M: 53, Share: math.Exp(-1) / 2, Mechanism: math.Exp(-1) / 2, Released: 3.5}, sigma, 1); err != nil {
		t.Error(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := math.Round(math.Exp(rapid.Float64Range(math.Log(10), math.Log(1e7)).Draw(t, "log n")))
		share := math.Exp(rapid.Float64Range(-20, -1).Draw(t, "log share"))
		released := rapid.Float64Range(0, 20).Draw(t, "I")
		c := Capped{N: n, M: CappedM(n, share, released), Share: share / 2, Mechanism: share / 2, Released: released}
		sigma := math.Exp(rapid.Float64Range(-3, 1).Draw(t, "log sigma")) / math.Sqrt(n)
		if err := check(c, sigma, rapid.Float64Range(-0.1, 1.1).Draw(t, "answer")); err != nil {
			t.Fatal(err)
		}
	})
	c := Capped{N: 10000, M: CappedM(10000, 5e-4, 16), Share: 2.5e-4, Mechanism: 2.5e-4, Released: 16}
	plain, err := c.HalfWidth(0.008)
	if err != nil {
		t.Fatal(err)
	}
	if _, high, err := c.MeanInterval(0.02, 0.008, 0); err != nil || high-0.02 > 0.9*plain {
		t.Errorf("at 0.02 up to %v, %v; the half-width is %v", high, err, plain)
	}
}

// The ends of Chernoff's interval are the numbers at which a plain bisection ends, to the last bit: leaving away what is sure changes nothing, however small or large the mean, the level and the number of values are. A wrong
// end here would be another interval than the one that stored holdouts have told.
func TestChernoffEndsAreThoseOfABisection(t *testing.T) {
	plain := func(n, mean, level float64) (high float64) {
		lo, hi := mean, 1.0
		for range 200 {
			p := (lo + hi) / 2
			if p <= lo || p >= hi {
				break
			}
			if n*KL(mean, p) > level {
				hi = p
			} else {
				lo = p
			}
		}
		return hi
	}
	r, usual, sure := rand.New(rand.NewPCG(21, 22)), 0, 0
	for range 200_000 {
		n := math.Exp(r.Float64() * 30)
		mean := []float64{r.Float64(), math.Exp(-20 * r.Float64()), 1 - math.Exp(-20*r.Float64()), float64(1+r.IntN(100)) / 100}[r.IntN(4)]
		level := math.Exp(r.Float64()*16 - 8)
		want := plain(n, mean, level)
		if got := ChernoffHigh(n, mean, level); got != want {
			t.Fatalf("n=%v, mean=%v, level=%v: %v, want %v", n, mean, level, got, want)
		}
		if n > 1000 && n < 1e9 && mean > 0.001 && mean < 0.9 && level > 3 && level < 60 {
			usual++
			if low, _ := surely(n, mean, level); low > mean {
				sure++
			}
		}
	}
	if usual < 1000 || sure < usual*99/100 {
		t.Errorf("of %d roots in %d that are as usual something is sure", sure, usual)
	}
}
