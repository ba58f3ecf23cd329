package bounds

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// spread has the noise of a reference run: sigma_j sqrt(1+more_j).
type spread struct {
	instance
	more  []float64
	price []func(n, m, sigma, more, answer float64) float64
}

func nearlyExact(n, m, sigma, _, _ float64) float64 { return NearlyExactInformation(n, m, 0.25, sigma) }

// reached is the left side of the lemma for the run itself over its right side for the reference run, for one transcript.
func (s spread) reached(a []float64, m int, charge float64) float64 {
	n, sized := float64(s.n), float64(m)
	lambda := n / sized
	price, widened := 0.0, s.instance
	widened.sigma = make([]float64, len(s.sigma))
	constants := 0.0 // of the reference run's density over the run's own
	for j, sigma := range s.sigma {
		widened.sigma[j] = sigma * math.Sqrt(1+s.more[j])
		constants -= math.Log1p(s.more[j]) / 2
		price += charge * s.price[j](n, sized, sigma, s.more[j], a[j])
	}
	left, right := 0.0, 0.0
	rows := make([]int, s.n)
	s.samples(rows, 0, 1, func(p float64) {
		left += p * math.Exp(lambda*s.logDensity(a, rows))
		subsets, sum := 0.0, 0.0
		for set := range uint(1) << s.n {
			if bits.OnesCount(set) != m {
				continue
			}
			var some []int
			for i, x := range rows {
				if set>>i&1 == 1 {
					some = append(some, x)
				}
			}
			subsets++
			sum += math.Exp(widened.logDensity(a, some))
		}
		right += p * sum / subsets
	})
	return math.Pow(left, 1/lambda) / (math.Exp((lambda-1)*price+constants) * right)
}

// TestReferenceRun looks for a violation of the lemma with reference runs by hill climbing over transcripts of random small
// instances, some answers charged by the variance that they tell, some as nearly exact. The same search must find violations
// when less is charged.
func TestReferenceRun(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{11}))
	const cheap = 0.6
	worst, violated := 0.0, 0
	for range 3000 {
		s := spread{instance: randomInstance(r)}
		m := 1 + r.IntN(s.n-1)
		lambda := float64(s.n) / float64(m)
		for _, sigma := range s.sigma {
			if r.IntN(2) == 0 {
				s.price, s.more = append(s.price, ObservedInformation), append(s.more, math.Exp(8*r.Float64()-5))
				continue
			}
			x := (lambda - 1) / (4 * sigma * sigma * float64(s.n-1))
			s.price, s.more = append(s.price, nearlyExact), append(s.more, max(x, 1)-1)
		}
		a := make([]float64, len(s.sigma))
		for j := range a {
			a[j] = r.Float64()
		}
		reached := s.reached(a, m, 1)
		for range 30 {
			b := make([]float64, len(a))
			for j := range b {
				b[j] = a[j] + s.sigma[j]*r.NormFloat64()/2
			}
			if next := s.reached(b, m, 1); next > reached {
				a, reached = b, next
			}
		}
		if reached > 1+1e-12 {
			t.Fatalf("the ratio is %v: %+v, m=%d, transcript %v", reached, s, m, a)
		}
		worst = max(worst, reached)
		if s.reached(a, m, cheap) > 1 {
			violated++
		}
	}
	t.Logf("largest ratio %v; %d violations when %v of the price is charged", worst, violated, cheap)
	if violated == 0 {
		t.Errorf("charging %v of the price went unnoticed: the search is too weak", cheap)
	}
}

// TestObservedInformation: an answer near 0 costs less than Information says, a nearly exact one too, and nothing is charged below what
// the closed form's best query would need.
func TestObservedInformation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := math.Round(math.Exp(rapid.Float64Range(math.Log(3), math.Log(1e12)).Draw(t, "log n")))
		m := min(1+math.Floor(rapid.Float64Range(0, 1).Draw(t, "m/n")*n), n-1)
		sigma := math.Exp(rapid.Float64Range(-6, 2).Draw(t, "log sigma")) / math.Sqrt(n)
		more := math.Exp(rapid.Float64Range(-20, 10).Draw(t, "log e"))
		answer := rapid.Float64Range(-1, 2).Draw(t, "answer")
		got := ObservedInformation(n, m, sigma, more, answer)
		// the most of what the proof needs, over all means q
		lambda := n/m - 1
		b, c := more/(2*sigma*sigma*(1+more)), lambda/(2*sigma*sigma*(1+more)*(n-1))
		for i := range 201 {
			q := float64(i) / 200
			clipped := min(max(answer, 0), 1)
			need := (math.Log1p(more)/2 - b*(clipped-q)*(clipped-q) + c*q*(1-q)) / lambda
			if need > got*(1+1e-9)+1e-12 {
				t.Fatalf("n=%v m=%v sigma=%v e=%v answer=%v: charged %v, mean %v needs %v", n, m, sigma, more, answer, got, q, need)
			}
		}
		if nearly := NearlyExactInformation(n, m, 0.25, sigma); nearly > Information(n, 0.25, sigma)*(1+1e-12) {
			t.Fatalf("nearly exact: %v, plain %v", nearly, Information(n, 0.25, sigma))
		}
	})
}

// TestObservedHelps: an exact 100th answer about 10,000 units whose earlier answers were near p: the upper half-width of Chernoff's interval
// falls as a second program says; Hoeffding's is 0.0487.
func TestObservedHelps(t *testing.T) {
	const n, share, sigma = 10000, 0.05 / 100, 0.008778
	for _, c := range []struct{ p, plain, observed float64 }{{0.1, 0.031729, 0.024309}, {0.05, 0.024108, 0.016036}} {
		plain, observed := math.Inf(1), math.Inf(1)
		for m := 100.0; m < 9000; m += 50 {
			account := Capped{N: n, M: m, Share: share, Released: 99 * Information(n, 0.25, sigma)}
			_, high := ChernoffInterval(n, c.p, account.Level(share))
			plain = min(plain, high-c.p)
			account.Released = 99 * ObservedInformation(n, m, sigma, ObservedMore(n, m, sigma, c.p), c.p)
			_, high = ChernoffInterval(n, c.p, account.Level(share))
			observed = min(observed, high-c.p)
		}
		if math.Abs(plain-c.plain) > 1e-4*c.plain || math.Abs(observed-c.observed) > 2e-4*c.observed {
			t.Errorf("p=%v: %v and %v observed, want %v and %v", c.p, plain, observed, c.plain, c.observed)
		}
	}
	if more := ObservedMore(n, 5000, sigma, 0.5); more != 0 {
		t.Errorf("a mean of one half has no smaller variance to observe: %v", more)
	}
}
