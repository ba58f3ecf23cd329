package binomial

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

// TestLogUpper holds tails against the sum in exact arithmetic: a term of the continued fraction or of Stirling's series that is
// wrong shows.
func TestLogUpper(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 40, 300} {
		for _, p := range []float64{0.001, 0.25, 0.5, 0.95, 0.999} {
			for _, count := range []int64{1, 2, n - n/3, n - 1, n} {
				if float64(count) <= p*float64(n) || count > n {
					continue // the tail is asked for beyond the mean only
				}
				want, _ := exactUpper(n, count, p).Float64()
				if got := math.Exp(LogUpper(float64(n), float64(count), p)); math.Abs(got/want-1) > 1e-11 {
					t.Errorf("P(Bin(%d, %v) >= %d): %v, the sum is %v", n, p, count, got, want)
				}
			}
		}
	}
}

// TestLogProbability: the law adds up to 1, and each probability is exact arithmetic's.
func TestLogProbability(t *testing.T) {
	for _, n := range []int64{1, 15, 16, 200} {
		for _, p := range []float64{1e-6, 0.3, 0.999} {
			sum := 0.0
			for x := range n + 1 {
				got := math.Exp(LogProbability(float64(n), float64(x), p))
				want, _ := exactTerm(n, x, p).Float64()
				if math.Abs(got-want) > 1e-12*want {
					t.Errorf("P(Bin(%d, %v) = %d): %v, exactly %v", n, p, x, got, want)
				}
				sum += got
			}
			if math.Abs(sum-1) > 1e-12 {
				t.Errorf("n %d, p %v: the probabilities add up to %v", n, p, sum)
			}
		}
	}
}

// TestEndsAreExact: at either end the tail, by exact arithmetic, is never more than it may be and less by no more than 3e-8. An end whose
// digits are lost beside 0 or 1 shows, as one that Newton's method overshoots does.
func TestEndsAreExact(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 17, 300, 100_000} {
		for _, count := range []int64{1, 2, 7, n / 2, n - 1, n} {
			if count < 1 || count > n || min(count, n-count) > 1000 {
				continue // exact sums take as many terms
			}
			for _, alpha := range []float64{0.45, 0.025, 1e-9, 1e-40, 1e-300} {
				level := -math.Log(alpha)
				for end, tail := range map[string]float64{
					"low":  ratio(exactUpper(n, count, Low(float64(n), float64(count), level)), alpha),
					"high": ratio(exactLower(n, n-count, High(float64(n), float64(n-count), level)), alpha),
				} {
					// Next to 1 a float64 is too coarse to say where the end is.
					coarse := end == "low" && Low(float64(n), float64(count), level) > 0.999 || end == "high" && High(float64(n), float64(n-count), level) > 0.999
					if tail > 1+1e-12 || tail < 1-3e-8 && !coarse {
						t.Errorf("%d of %d at %v: the tail at the %s end is %v times as large", count, n, alpha, end, tail)
					}
				}
			}
		}
	}
}

// TestEnds: the ends hold the share between them, move with the count and the level, and count failures as successes.
func TestEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := float64(rapid.Int64Range(1, 1<<40).Draw(t, "n"))
		count := float64(rapid.Int64Range(0, int64(n)).Draw(t, "count"))
		level := rapid.Float64Range(1e-3, 2000).Draw(t, "level")
		low, high := Low(n, count, level), High(n, count, level)
		if !(0 <= low && low <= count/n && count/n <= high && high <= 1) {
			t.Fatalf("%v of %v: %v to %v", count, n, low, high)
		}
		if l, h := Low(n, count, level+1), High(n, count, level+1); l > low || h < high {
			t.Fatalf("at the level %v %v to %v, a level higher %v to %v", level, low, high, l, h)
		}
		if count < n {
			if l, h := Low(n, count+1, level), High(n, count+1, level); l < low*(1-1e-12) || h < high*(1-1e-12) {
				t.Fatalf("%v of %v: %v to %v, of one more %v to %v", count, n, low, high, l, h)
			}
		}
		if back := 1 - High(n, n-count, level); math.Abs(back-low) > 1e-15 {
			t.Fatalf("low end %v, by failures %v", low, back)
		}
	})
}

// TestEndsOfNothing: what no float64 can say is no reason for a narrow interval.
func TestEndsOfNothing(t *testing.T) {
	for _, level := range []float64{800, 1e6, math.Inf(1)} {
		if low, high := Low(10, 3, level), High(10, 7, level); low > 1e-100 || high < 1-1e-100 {
			t.Errorf("level %v: %v to %v", level, low, high)
		}
	}
	if Low(5, 0, 1) != 0 || High(5, 5, 1) != 1 {
		t.Error("no success has no low end, and no failure no high one")
	}
}

func ratio(tail *big.Float, alpha float64) float64 {
	r, _ := tail.Quo(tail, big.NewFloat(alpha)).Float64()
	return r
}

// exactUpper is P(Bin(n, p) >= count): the sum of its terms, from the rarer side.
func exactUpper(n, count int64, p float64) *big.Float {
	sum := exact(0)
	if n-count <= count {
		for i := count; i <= n; i++ {
			sum.Add(sum, exactTerm(n, i, p))
		}
		return sum
	}
	for i := range count {
		sum.Add(sum, exactTerm(n, i, p))
	}
	return sum.Sub(exact(1), sum)
}

// exactLower is P(Bin(n, p) <= count).
func exactLower(n, count int64, p float64) *big.Float {
	if count == n {
		return exact(1)
	}
	return new(big.Float).SetPrec(precision).Sub(exact(1), exactUpper(n, count+1, p))
}

// exactTerm is P(Bin(n, p) = x).
func exactTerm(n, x int64, p float64) *big.Float {
	term := new(big.Float).SetPrec(precision).SetInt(new(big.Int).Binomial(n, x))
	success := exact(p)
	failure := new(big.Float).SetPrec(precision).Sub(exact(1), success)
	return term.Mul(term, power(success, x)).Mul(term, power(failure, n-x))
}

// precision in bits: a tail of 1e-300 that is found as a difference from 1 has 1000 of them left.
const precision = 2000

func exact(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

func power(base *big.Float, exponent int64) *big.Float {
	out, square := exact(1), new(big.Float).Copy(base)
	for ; exponent > 0; exponent >>= 1 {
		if exponent&1 == 1 {
			out.Mul(out, square)
		}
		square.Mul(square, square)
	}
	return out
}

// TestKLAtTheEdges: means next to 0 or 1 have the divergence of 0 or 1, not none: an interval around them would be [0,1].
func TestKLAtTheEdges(t *testing.T) {
	for _, p := range []float64{0.1, 0.3, 0.5, 0.7, 0.9, 0.99} {
		for _, tiny := range []float64{1e-300, 1e-20, 1e-17, 1e-16} {
			if got, want := KL(tiny, p), -math.Log1p(-p); math.Abs(got-want) > 1e-13*(1+want) {
				t.Errorf("KL(%v, %v) = %v, want %v", tiny, p, got, want)
			}
		}
		if got, want := KL(1-1e-16, p), -math.Log(p); math.Abs(got-want) > 1e-13*(1+want) {
			t.Errorf("KL(1-1e-16, %v) = %v, want %v", p, got, want)
		}
	}
}
