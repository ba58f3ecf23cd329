package thresholdout

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// TestSelectionLaw: StepSelect chooses by the softmax of eta times the means, with eta of the question's place (false alarm 1e-6
// each), and an eta that is a tenth off is noticed.
func TestSelectionLaw(t *testing.T) {
	const runs = 40_000
	for name, p := range map[string]Guarantee{
		"scheduled": must(t, Spec{Mechanism: Gaussian, N: 2000, Questions: 50}),
		"constant":  must(t, Spec{Mechanism: Gaussian, N: 2000, Questions: 50, Sigma: 0.03}),
		"rounds":    must(t, Spec{Mechanism: Gaussian, N: 2000, Questions: 50, Rounds: 4}),
	} {
		state := State{Questions: 20}
		if p.Rounds > 0 {
			state.Rounds = 1
		}
		sigma := p.gaussian().sigmaOf(state)
		values := []float64{0.4, 0.4 + sigma, 0.4 - sigma, 0.4 + sigma/2, 0.4 + sigma}
		means := make([]Mean, len(values))
		for i, v := range values {
			means[i] = mean(v, p.N)
		}
		counts := make([]int, len(means))
		for run := range uint64(runs) {
			choice, _, err := StepSelect(p, state, means, 1, Seeded{Seed: run})
			if err != nil {
				t.Fatal(err)
			}
			counts[choice.Index]++
		}
		law := func(eta float64) error {
			total, expected := 0.0, make([]float64, len(values))
			for i, v := range values {
				expected[i] = math.Exp(eta * (v - 0.4))
				total += expected[i]
			}
			for i := range expected {
				expected[i] *= runs / total
			}
			return stattest.ChiSquare(counts, expected, falseAlarm)
		}
		n := float64(p.N)
		eta := 1 / (sigma * math.Sqrt((1+2/n)*(1-1/n))) // what one plain answer releases
		if err := law(eta); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if law(1.1*eta) == nil || law(eta/1.1) == nil {
			t.Errorf("%s: a scale a tenth off went unnoticed", name)
		}
	}
}

// TestSelectionIsOnePlainAnswer: a selection releases no more than the plain answer that it is priced as.
func TestSelectionIsOnePlainAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Spec{Mechanism: Gaussian, N: rapid.Int64Range(100, 1_000_000).Draw(t, "n"), Questions: rapid.Int64Range(1, 3000).Draw(t, "k")}
		if rapid.Bool().Draw(t, "constant") {
			in.Sigma = rapid.Float64Range(1e-4, 0.1).Draw(t, "sigma")
		}
		p, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		s := State{Questions: rapid.Int64Range(0, p.Questions-1).Draw(t, "asked")}
		if p.gaussian().sigmaOf(s) == 0 { // the last, after which nothing is released
			return
		}
		n := float64(p.N)
		selection, plain := bounds.Selection(n, p.gaussian().eta(s, 1)), bounds.Information(n, 0.25, p.gaussian().sigmaOf(s))
		if selection > plain || selection < plain*(1-1e-6) {
			t.Fatalf("%v nats, a plain answer releases %v", selection, plain)
		}
	})
}

// TestRegret: the part of the regret that the mechanism may give away covers the tail of its law, all others being better by so much, and
// the whole covers what sampling adds.
func TestRegret(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 100})
	for _, count := range []int{2, 10, 1000} {
		s := State{Questions: 50}
		a := p.gaussian().account(s, 1, 1)
		regret := p.gaussian().regret(s, count, 1)
		sampling := 2 * math.Sqrt(a.Level(2*a.Share/float64(count))/(2*a.N))
		given := regret - sampling - 2*gridError
		// One best candidate, and all others worse by the mechanism's part: the probability that one of them is chosen.
		others := float64(count-1) * math.Exp(-p.gaussian().eta(s, 1)*given)
		if tail := others / (1 + others); tail > a.Mechanism {
			t.Errorf("%d candidates: a loss of %v has probability %v, above %v", count, given, tail, a.Mechanism)
		}
		out, next, err := StepSelect(p, s, []Mean{mean(0.3, p.N), mean(0.4, p.N)}, 1, Seeded{})
		if err != nil || next.Questions != 51 || out.Bound != boundCapped || count == 2 && out.Regret != regret {
			t.Errorf("%+v, %+v, %v", out, next, err)
		}
		if preview, bound := p.PreviewSelection(s, count, 1); preview != regret || bound != boundCapped {
			t.Errorf("foreseen %v by %s", preview, bound)
		}
	}
	if two, many := p.gaussian().regret(State{}, 2, 1), p.gaussian().regret(State{}, 1000, 1); !(two < many && many < 2*two) {
		t.Errorf("the regret of 2 is %v, of 1000 %v: it grows with the logarithm", two, many)
	}
}

// TestVectorLaw: each coordinate bears the noise of the next question, independent of the others' (false alarm 1e-6 each); noise a
// tenth too narrow, and the same noise for all, are noticed.
func TestVectorLaw(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 50_000, Questions: 80})
	state := State{Questions: 30}
	sigma := p.gaussian().vectorNoise(state, 3, 2.0/3)
	var z []float64
	var together int
	const runs = 4000
	for run := range uint64(runs) {
		out, _, err := StepVector(p, state, []Mean{mean(0.5, p.N), mean(0.4, p.N), mean(0.6, p.N)}, 2.0/3, Seeded{Seed: run})
		if err != nil {
			t.Fatal(err)
		}
		a, b := out[0].Value-0.5, out[1].Value-0.4
		z = append(z, a/sigma, b/sigma, (out[2].Value-0.6)/sigma)
		if a*b > 0 {
			together++
		}
	}
	if err := stattest.Kolmogorov(z, distuv.UnitNormal.CDF, falseAlarm); err != nil {
		t.Error(err)
	}
	if stattest.Kolmogorov(z, func(x float64) float64 { return distuv.UnitNormal.CDF(x / 1.1) }, falseAlarm) == nil {
		t.Error("noise 10% too narrow went unnoticed")
	}
	if err := stattest.Frequency(together, runs, 0.5, falseAlarm); err != nil {
		t.Errorf("two coordinates' noise has one sign: %v", err)
	}
}

// TestPrices: a vector costs what it releases, in whole questions: never more than its coordinates, never nothing.
func TestPrices(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 100})
	for _, c := range []struct {
		count    int
		variance float64
		want     int64
	}{
		{1, 0.25, 1}, {2, 0.5, 2}, {2, bounds.OneHotVariance(2), 2}, {3, bounds.OneHotVariance(3), 3}, {4, bounds.OneHotVariance(4), 3},
		{5, bounds.OneHotVariance(5), 4}, {1000, bounds.OneHotVariance(1000), 4}, {1000, 250, 1000}, {10, 0.001, 1}, {10, 0, 1}, {64, 1, 4}, {64, 1.001, 5},
	} {
		if got := p.VectorPrice(c.count, c.variance); got != c.want {
			t.Errorf("%d coordinates of variance %v cost %d, want %d", c.count, c.variance, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 500).Draw(t, "count")
		variance := rapid.Float64Range(0, float64(count)/4).Draw(t, "variance")
		released := bounds.Information(5000, variance, 0.02)
		if paid := float64(p.VectorPrice(count, variance)) * bounds.Information(5000, 0.25, 0.02); paid < released*(1-1e-9) {
			t.Fatalf("%v nats for a vector that releases %v", paid, released)
		}
	})
}

// TestTogetherRefuses: what does not fit is refused before a sum is looked at, and nothing is spent.
func TestTogetherRefuses(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 10})
	six := make([]Mean, 6)
	for i := range six {
		six[i] = mean(0.5, p.N)
	}
	if _, s, err := StepVector(p, State{Questions: 7}, six, 1, Seeded{}); !errors.Is(err, ErrNoQuestions) || s.Questions != 7 {
		t.Errorf("four questions of three: %v, %+v", err, s)
	}
	if _, s, err := StepVector(p, State{Questions: 6}, six, 1, Seeded{}); err != nil || s.Questions != 10 {
		t.Errorf("four of four: %v, %+v", err, s)
	}
	if _, _, err := StepSelect(p, State{Questions: 10}, six, 1, Seeded{}); !errors.Is(err, ErrNoQuestions) {
		t.Errorf("one of none: %v", err)
	}
	rounds := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 10, Rounds: 3}) // 4, 3, 3
	if _, s, err := StepVector(rounds, State{}, six, 1, Seeded{}); err != nil || s.InRound != 4 || s.Questions != 4 {
		t.Errorf("a vector that fills a round: %v, %+v", err, s)
	}
	second := State{Questions: 4, Rounds: 1}
	if _, _, err := StepVector(rounds, second, six, 1, Seeded{}); !errors.Is(err, ErrNoQuestions) {
		t.Errorf("four in a round of three: %v", err)
	}
	if _, s, err := StepSelect(rounds, second, six, 1, Seeded{}); err != nil || s.InRound != 1 {
		t.Errorf("a selection in a round: %v, %+v", err, s)
	}
	if _, _, err := StepSelect(rounds, State{Questions: 8, Rounds: 3}, six, 1, Seeded{}); !errors.Is(err, ErrNoRounds) {
		t.Errorf("after the last round: %v", err)
	}
	for name, q := range map[string]Guarantee{
		"split":     must(t, Spec{Mechanism: Split, N: 5000, Questions: 10}),
		"published": must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 10, Published: true}),
	} {
		if _, _, err := StepVector(q, State{}, six, 1, Seeded{}); err == nil || q.Together() {
			t.Errorf("%s released a vector", name)
		}
		if _, _, err := StepSelect(q, State{}, six, 1, Seeded{}); err == nil {
			t.Errorf("%s selected", name)
		}
	}
	for name, means := range map[string][]Mean{"none": nil, "another table's": {mean(0.5, 4999)}, "too large": {{Sum: 5001 * grid, N: 5000}}} {
		if _, _, err := StepVector(p, State{}, means, 1, Seeded{}); err == nil {
			t.Errorf("a vector of %s was released", name)
		}
		if _, _, err := StepSelect(p, State{}, means, 1, Seeded{}); err == nil {
			t.Errorf("a choice of %s was made", name)
		}
	}
}

// TestLastRoundTogether: in the last round, which bears no noise, a selection is the largest mean and a vector is exact.
func TestLastRoundTogether(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 10, Rounds: 2})
	last := State{Questions: 5, Rounds: 1}
	means := []Mean{mean(0.5, p.N), mean(0.7, p.N), {Sum: mean(0.7, p.N).Sum + 60, N: p.N}}
	choice, next, err := StepSelect(p, last, means, 1, Seeded{Seed: 3})
	if err != nil || choice.Index != 2 {
		t.Errorf("%+v, %v", choice, err)
	}
	out, _, err := StepVector(p, next, means[:2], 0.5, Seeded{Seed: 3})
	if err != nil || out[0].Value != 0.5 || math.Abs(out[1].Value-0.7) > 1e-9 || out[0].Interval.High-0.5 > p.HalfWidth*1.3 {
		t.Errorf("%+v, %v", out, err)
	}
}

// vectorAttack asks for the means of fair coins as vectors, then about the rows' agreement with the answers, by a plain question, as the
// first coordinate of a vector, and in a selection, where it is held against a candidate that is better in truth. claimed is the variance that each
// vector is said to have. It returns whether any interval misses or the selection's regret is exceeded.
func vectorAttack(t *testing.T, p Guarantee, run uint64, size int, claimed float64) (missed bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(run, 21))
	price := p.VectorPrice(size, claimed)
	vectors := int((p.Questions - 4) / price)
	rows := coins(r, p.N, int64(vectors*size))
	state, weights := State{}, make([]float64, vectors*size)
	check := func(o Output) {
		missed = missed || o.Interval.Low > 0.5 || o.Interval.High < 0.5
	}
	noises := func() Seeded { return Seeded{Seed: run, Question: state.Questions} }
	vector := func(means []Mean, variance float64) []Output {
		out, next, err := StepVector(p, state, means, variance, noises())
		if err != nil {
			t.Fatal(err)
		}
		state = next
		for _, o := range out {
			check(o)
		}
		return out
	}
	for v := range vectors {
		means := make([]Mean, size)
		for i := range means {
			means[i] = column(rows, v*size+i)
		}
		for i, o := range vector(means, claimed) {
			weights[v*size+i] = o.Value - 0.5
		}
	}
	best := agreement(rows, weights)
	out, next, err := Step(p, state, Input{Holdout: best}, noises())
	if err != nil {
		t.Fatal(err)
	}
	state = next
	check(out)
	vector([]Mean{best, column(rows, 0)}, 0.5)
	better := Mean{N: p.N} // its population mean is 1/2 plus the regret and a little
	above := p.gaussian().regret(state, 2, 1) + 0.001
	for range p.N {
		if r.Float64() < 0.5+above {
			better.Sum += grid
		}
	}
	choice, _, err := StepSelect(p, state, []Mean{best, better}, 1, noises())
	if err != nil {
		t.Fatal(err)
	}
	return missed || choice.Index == 0
}

// TestVectorsCover: under the attack no more than 5% of runs have a miss (false alarm 1e-6), at the true variance; vectors that are
// said to have a fiftieth of it, and cost so much less, are missed often.
func TestVectorsCover(t *testing.T) {
	const runs, size = 24, 50
	count := func(p Guarantee, claimed float64) (missed int) {
		for run := range uint64(runs) {
			if vectorAttack(t, p, run, size, claimed) {
				missed++
			}
		}
		return missed
	}
	honest := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 604})
	missed := count(honest, size/4.0)
	if err := stattest.AtMost(missed, runs, 0.05, falseAlarm); err != nil {
		t.Error(err)
	}
	planted := count(must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 24}), 0.25)
	if stattest.AtMost(planted, runs, 0.05, falseAlarm) == nil {
		t.Errorf("a wrong variance went unnoticed: %d of %d", planted, runs)
	}
	t.Logf("of %d runs %d missed; with a fiftieth of the variance %d", runs, missed, planted)
}
