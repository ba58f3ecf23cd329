package bounds

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
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

// TestBinomialTail against the sum in exact arithmetic.
func TestBinomialTail(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 40, 300} {
		for _, p := range []float64{0.001, 0.05, 0.5, 0.75, 0.999} {
			for _, x := range []int64{0, 1, n / 10, n / 3, n - 1} {
				if float64(x) >= p*float64(n) || x >= n {
					continue // the tail is asked for beyond the mean only
				}
				want, _ := binomialSum(n, x, p).Float64()
				if got := math.Exp(logBinomialTail(float64(n), float64(x), p)); math.Abs(got/want-1) > 1e-11 {
					t.Errorf("P(Bin(%d, %v) <= %d): %v, the sum is %v", n, p, x, got, want)
				}
			}
		}
	}
}

func binomialSum(n, x int64, p float64) *big.Float {
	sum := new(big.Float).SetPrec(400)
	success := new(big.Float).SetPrec(400).SetFloat64(p)
	failure := new(big.Float).SetPrec(400).Sub(big.NewFloat(1).SetPrec(400), success)
	for i := int64(0); i <= x; i++ {
		term := new(big.Float).SetPrec(400).SetInt(new(big.Int).Binomial(n, i))
		for range i {
			term.Mul(term, success)
		}
		for range n - i {
			term.Mul(term, failure)
		}
		sum.Add(sum, term)
	}
	return sum
}

// TestMeanCoverage enumerates all outcomes of small yes/no samples: an interval for every outcome that misses the true mean no more
// often than it says, for any true mean.
func TestMeanCoverage(t *testing.T) {
	for _, n := range []int64{2, 5, 17, 60} {
		for _, beta := range []float64{0.3, 0.05} {
			for p := 0.005; p < 1; p += 0.01 {
				exact, chernoff := 0.0, 0.0
				for x := int64(0); x <= n; x++ {
					mass, _ := new(big.Float).Sub(binomialSum(n, x, p), binomialSum(n, x-1, p)).Float64()
					if low, high, _ := ClopperPearson(x, n, beta); p < low || p > high {
						exact += mass
					}
					if low, high := ChernoffInterval(float64(n), float64(x)/float64(n), math.Log(2/beta)); p < low || p > high {
						chernoff += mass
					}
				}
				if exact > beta || chernoff > exact+1e-12 {
					t.Fatalf("n=%d p=%v beta=%v: misses %v exact, %v Chernoff", n, p, beta, exact, chernoff)
				}
			}
		}
	}
}

// TestMeanIntervals: the exact interval is inside Chernoff's, and that inside Hoeffding's at the same level; near 0 the answer's
// interval is narrower than the account's half-width.
func TestMeanIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := math.Round(math.Exp(rapid.Float64Range(math.Log(10), math.Log(1e7)).Draw(t, "log n")))
		share := math.Exp(rapid.Float64Range(-20, -1).Draw(t, "log share"))
		released := rapid.Float64Range(0, 20).Draw(t, "I")
		c := Capped{N: n, M: CappedM(n, share, released), Share: share, Released: released}
		sigma := math.Exp(rapid.Float64Range(-3, 1).Draw(t, "log sigma")) / math.Sqrt(n)
		answer := rapid.Float64Range(-0.1, 1.1).Draw(t, "answer")
		low, high, err := c.MeanInterval(answer, sigma, 0.5)
		exactLow, exactHigh, err2 := c.FractionInterval(answer, sigma, 0.5)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		grid := 1 / n // a count is an integer: the exact interval starts from the next one outwards
		if exactLow < low-grid-1e-9 || exactHigh > high+grid+1e-9 || !(low >= 0 && low <= high && high <= 1) {
			t.Fatalf("%+v: [%v, %v] and exact [%v, %v]", c, low, high, exactLow, exactHigh)
		}
		t2 := math.Sqrt(c.Level(share/2)/(2*n)) + sigma*MaxNormalQuantile(1, share/2)
		if low < answer-t2-1e-9 && low > 1e-12 || high > answer+t2+1e-9 && high < 1-1e-12 {
			if answer >= 0 && answer <= 1 {
				t.Fatalf("%+v: [%v, %v], Hoeffding's half-width is %v", c, low, high, t2)
			}
		}
	})
	c := Capped{N: 10000, M: CappedM(10000, 5e-4, 16), Share: 5e-4, Released: 16}
	plain, err := c.HalfWidth(0.008)
	if err != nil {
		t.Fatal(err)
	}
	if _, high, err := c.MeanInterval(0.02, 0.008, 0.5); err != nil || high-0.02 > 0.9*plain {
		t.Errorf("at 0.02 up to %v, %v; the half-width is %v", high, err, plain)
	}
}
