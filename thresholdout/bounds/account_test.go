package bounds

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/binomial"
)

// TestAccountAgainstReference: the references take the best real m; ours takes an integer, which is never better, and at 1e12 units
// hardly worse.
func TestAccountAgainstReference(t *testing.T) {
	for _, r := range references(t, "adaptive_pvalue") {
		got, want := AdaptivePValue(1e12, r.Inputs["p"], r.Inputs["I"]), r.Expected["value"]
		if got < want*(1-1e-12) || got > want*(1+1e-9) {
			t.Errorf("%v: %v, the reference is %v", r.Inputs, got, want)
		}
		if coarse := AdaptivePValue(10, r.Inputs["p"], r.Inputs["I"]); coarse < got {
			t.Errorf("%v: ten units give %v, less than the best m, %v", r.Inputs, coarse, got)
		}
	}
	for _, r := range references(t, "adaptive_tail") {
		got, want := AdaptiveTail(r.Inputs["n"], r.Inputs["t"], r.Inputs["I"]), r.Expected["value"]
		if got < want*(1-1e-12) || got > want*(1+1e-2) { // the place of m matters more in a small tail
			t.Errorf("%v: %v, the reference is %v", r.Inputs, got, want)
		}
	}
}

func TestRoundsAgainstReference(t *testing.T) {
	for _, r := range references(t, "ci_halfwidth_adaptive_hoeffding_rounds") {
		n := r.Inputs["n"]
		b, err := AdaptiveHoeffdingRounds(int64(n), int64(r.Inputs["k"]), int64(r.Inputs["rounds"]), r.Inputs["beta"])
		if err != nil {
			t.Fatal(err)
		}
		if ratio := b.HalfWidth / r.Expected["value"]; ratio < 1-1e-6 || ratio > rounding(n)*(1+1e-6) {
			t.Errorf("%v: %v, the reference is %v (ratio %.8f)", r.Inputs, b.HalfWidth, r.Expected["value"], ratio)
		}
	}
}

// TestRounds: sizes add up, all but the last round have noise, one round is a batch fixed beforehand, more rounds are wider, and as
// many as there are questions are no wider than the schedule.
func TestRounds(t *testing.T) {
	const n, k, beta = 10000, 60, 0.05
	schedule, err := AdaptiveHoeffdingScheduled(n, k, beta)
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for rounds := int64(1); rounds <= k; rounds++ {
		r, err := AdaptiveHoeffdingRounds(n, k, rounds, beta)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for i, size := range r.Size {
			total += size
			if (r.Sigma[i] == 0) != (i == len(r.Size)-1) || size < k/rounds || size > k/rounds+1 {
				t.Fatalf("%d rounds: %+v", rounds, r)
			}
		}
		if total != k || len(r.Sigma) != int(rounds) || r.HalfWidth < last*(1-1e-6) || r.HalfWidth > schedule.HalfWidth {
			t.Fatalf("%d rounds: %+v after %v; the schedule has %v", rounds, r, last, schedule.HalfWidth)
		}
		last = r.HalfWidth
	}
	one, err := AdaptiveHoeffdingRounds(n, k, 1, beta)
	if want := math.Sqrt(math.Log(2*k/beta) / (2 * n)); err != nil || math.Abs(one.HalfWidth-want) > 1e-15 {
		t.Errorf("one round: %v, %v, want %v", one.HalfWidth, err, want)
	}
	for _, rounds := range []int64{0, k + 1, -1} {
		if _, err := AdaptiveHoeffdingRounds(n, k, rounds, beta); err == nil {
			t.Errorf("%d rounds were accepted", rounds)
		}
	}
	if r, err := AdaptiveHoeffdingRounds(n, 1000, 100, beta); err != nil || len(r.Sigma) != 100 { // more than are tuned one by one
		t.Errorf("%v, %v", r, err)
	}
}

// TestCapped: at the m that fits, shares fixed beforehand cost one to two percent, and an answer without noise is the tail itself.
func TestCapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := math.Round(math.Exp(rapid.Float64Range(math.Log(10), math.Log(1e10)).Draw(t, "log n")))
		share := math.Exp(rapid.Float64Range(-25, -2).Draw(t, "log share"))
		released := rapid.Float64Range(0, 25).Draw(t, "I")
		sigma := math.Exp(rapid.Float64Range(-3, 1.5).Draw(t, "log sigma")) / math.Sqrt(n)
		c := Capped{N: n, M: CappedM(n, share, released), Share: share, Released: released}
		w, err := c.HalfWidth(sigma)
		if err != nil {
			t.Fatal(err)
		}
		if missed := 2 * PCap(w, sigma, released, int64(n), int64(c.M)); missed > share*(1+1e-12) || missed < share*(1-1e-6) {
			t.Fatalf("%+v: %v misses with %v", c, w, missed)
		}
		if 2*Miss(n, w*(1+1e-9), sigma, released) > share*(1+1e-6) {
			t.Fatalf("%+v: narrower than the bound with the best m for every noise", c)
		}
		exact, err := c.HalfWidth(0)
		if err != nil || exact > w || exact < Exact(n, 1, share, released)*(1-1e-9) {
			t.Fatalf("%+v: %v without noise, %v with it, %v", c, exact, w, err)
		}
	})
	for _, bad := range []Capped{{10, 10, .1, 0, 1}, {10, 0, .1, 0, 1}, {10, 1.5, .1, 0, 1}, {10, 1, 0, 0, 1}, {10, 1, .1, 0, -1}, {10, 1, math.NaN(), 0, 1}, {10, 1, .1, -.1, 1}} {
		if _, err := bad.HalfWidth(0.1); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// step is one step of a small run beside Gaussian answers: a vector of noisy means, a selection or a comparison. Each candidate or
// coordinate is a function of the letters.
type step struct {
	kind   string
	values [][]float64
	noise  float64 // sigma, or eta of a selection or comparison
	answer []float64
}

func (s step) means(rows []int) []float64 {
	means := make([]float64, len(s.values))
	for c, v := range s.values {
		for _, x := range rows {
			means[c] += v[x] / float64(len(rows))
		}
	}
	return means
}

// logLikelihood of what was answered, without constants that do not depend on the rows.
func (s step) logLikelihood(rows []int) float64 {
	means := s.means(rows)
	switch s.kind {
	case "vector":
		sum := 0.0
		for c, m := range means {
			d := (s.answer[c] - m) / s.noise
			sum -= d * d / 2
		}
		return sum
	case "selection":
		total := 0.0
		for _, m := range means {
			total += math.Exp(s.noise * m)
		}
		return s.noise*means[int(s.answer[0])] - math.Log(total)
	default: // 1[q + logistic noise of scale 1/eta > c]
		x := s.noise * (means[0] - s.answer[1])
		if s.answer[0] == 0 {
			x = -x
		}
		return -math.Log1p(math.Exp(-x))
	}
}

// price of the step in nats, for values whose variance is bounded as the account says.
func (s step) price(n float64) float64 {
	switch s.kind {
	case "vector":
		return Information(n, OneHotVariance(len(s.values)), s.noise)
	case "selection":
		return Selection(n, s.noise)
	}
	return Comparison(n, RangeVariance(0, 1), s.noise)
}

func randomStep(r *rand.Rand, letters int) step {
	s := step{kind: []string{"vector", "selection", "comparison"}[r.IntN(3)]}
	switch s.kind {
	case "vector": // a histogram of the letters
		for c := range letters {
			one := make([]float64, letters)
			one[c] = 1
			s.values = append(s.values, one)
			s.answer = append(s.answer, r.Float64()*1.4-0.2)
		}
		s.noise = math.Exp(r.Float64()*3 - 2)
		return s
	case "selection":
		s.values = make([][]float64, 2+r.IntN(3))
		s.answer = []float64{float64(r.IntN(len(s.values)))}
	default:
		s.values = make([][]float64, 1)
		s.answer = []float64{float64(r.IntN(2)), r.Float64()}
	}
	for c := range s.values {
		for range letters {
			s.values[c] = append(s.values[c], math.Round(r.Float64())) // the extreme values have the largest variance
		}
	}
	s.noise = math.Exp(r.Float64()*4 - 1)
	return s
}

// TestAccountLemma looks for a violation of the lemma (docs/proofs/account.md) among histograms, selections and comparisons on
// small samples, enumerated exactly. The same search must find violations when a quarter is charged.
func TestAccountLemma(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{5}))
	worst, violated := map[string]float64{}, map[string]int{}
	for range 6000 {
		in := instance{n: 2 + r.IntN(3), letters: 2 + r.IntN(2)}
		for range in.n {
			in.laws = append(in.laws, randomLaw(r, in.letters))
		}
		s := randomStep(r, in.letters)
		m := 1 + r.IntN(in.n-1)
		got := s.ratio(in, m, 1)
		if got > 1+1e-12 {
			t.Fatalf("the ratio is %v: %+v, %+v, m=%d", got, s, in, m)
		}
		worst[s.kind] = max(worst[s.kind], got)
		if s.ratio(in, m, 0.25) > 1 {
			violated[s.kind]++
		}
	}
	t.Logf("largest ratios %v", worst)
	for _, kind := range []string{"vector", "selection", "comparison"} {
		if violated[kind] == 0 {
			t.Errorf("%s: charging a quarter went unnoticed, the search is too weak (largest ratio %v)", kind, worst[kind])
		}
	}
}

// ratio is the left side of the lemma over its right side, as instance.ratio.
func (s step) ratio(in instance, m int, charge float64) float64 {
	lambda := float64(in.n) / float64(m)
	left, right := 0.0, 0.0
	rows := make([]int, in.n)
	in.samples(rows, 0, 1, func(p float64) {
		left += p * math.Exp(lambda*s.logLikelihood(rows))
		subsets, sum := 0.0, 0.0
		for set := range uint(1) << in.n {
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
			sum += math.Exp(s.logLikelihood(some))
		}
		right += p * sum / subsets
	})
	return math.Pow(left, 1/lambda) / (math.Exp((lambda-1)*charge*s.price(float64(in.n))) * right)
}

// TestAdaptivePValueCovers enumerates a worst case: n fair coins, an analyst who sees their noisy mean and then tests for the side that
// it suggests. The rate of false rejections at the corrected level stays below alpha, and the uncorrected one does not.
func TestAdaptivePValueCovers(t *testing.T) {
	const n, alpha = 60, 0.05
	for _, sigma := range []float64{0.02, 0.05, 0.1} {
		released := Information(n, 0.25, sigma)
		naive, corrected := 0.0, 0.0
		for x := 0; x <= n; x++ {
			mass := binomialMass(n, x)
			mean := float64(x) / n
			for side, tail := range []float64{upperTail(n, x), upperTail(n, n-x)} {
				// the analyst takes the upper side where the noisy mean is above one half
				taken := phi((mean - 0.5) / sigma)
				if side == 1 {
					taken = 1 - taken
				}
				if tail <= alpha {
					naive += mass * taken
				}
				if AdaptivePValue(n, tail, released) <= alpha {
					corrected += mass * taken
				}
			}
		}
		if corrected > alpha {
			t.Errorf("sigma=%v: %v of true hypotheses are rejected at %v", sigma, corrected, alpha)
		}
		if sigma == 0.02 && naive <= alpha {
			t.Errorf("the naive test rejects %v: the analyst is too weak", naive)
		}
	}
}

func binomialMass(n, x int) float64 {
	return math.Exp(binomial.LogProbability(float64(n), float64(x), 0.5))
}

func upperTail(n, x int) float64 {
	sum := 0.0
	for i := x; i <= n; i++ {
		mass := binomialMass(n, i)
		sum += mass
	}
	return sum
}
