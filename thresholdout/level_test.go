package thresholdout

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// levelled are guarantees of every mechanism that reads answers at other levels.
func levelled(t *testing.T) map[string]Guarantee {
	all := map[string]Guarantee{}
	for name, spec := range map[string]Spec{
		"gaussian":              {Mechanism: Gaussian, N: 5000, Questions: 100},
		"gaussian, constant":    {Mechanism: Gaussian, N: 5000, Questions: 100, Sigma: 0.02},
		"gaussian, rounds":      {Mechanism: Gaussian, N: 5000, Questions: 100, Rounds: 3},
		"split":                 {Mechanism: Split, N: 5000, Questions: 10},
		"guess_and_check":       {Mechanism: GuessAndCheck, N: 5000, Training: 5000, Questions: 100},
		"guess_and_check, some": {Mechanism: GuessAndCheck, N: 200_000, Training: 1000, Questions: 100, Tokens: 100},
		"thresholdout":          {Mechanism: Thresholdout, N: 5000, Training: 5000, Questions: 100},
		"thresholdout, laplace": {Mechanism: Thresholdout, Form: FormLaplace, N: 50_000, Training: 50_000, Questions: 100},
	} {
		all[name] = must(t, spec)
	}
	return all
}

// TestIntervalAt: an answer read at the guarantee's own level has its own interval, at smaller ones it has wider ones that hold it, and
// at larger ones narrower ones.
func TestIntervalAt(t *testing.T) {
	for name, p := range levelled(t) {
		state := State{}
		for j := range int64(6) {
			n := mean(0.03+0.15*float64(j), p.N)
			if p.Mechanism == Split {
				from, to := p.Slice(state)
				n = mean(0.03+0.15*float64(j), to-from)
			}
			in := Input{Holdout: n}
			if p.UsesTraining() {
				in.Training = mean(0.03+0.15*float64(j)+0.2*float64(j%2), p.Training) // every other one disagrees
			}
			out, next, err := Step(p, state, in, Seeded{Seed: 5, Question: j})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			low, high, ok := p.IntervalAt(state, out, p.Level())
			if !ok || math.Abs(low-out.Interval.Low) > 1e-8 || math.Abs(high-out.Interval.High) > 1e-8 {
				t.Errorf("%s, answer %d: [%v, %v], its own is [%v, %v]", name, j, low, high, out.Interval.Low, out.Interval.High)
			}
			for _, level := range []float64{0.9, 0.5, 0.05, 1e-3, 1e-6, MinLevel} {
				l, h, ok := p.IntervalAt(state, out, level)
				if level == 0.9 {
					low, high = l, h
				}
				if !ok || l > low || h < high || l > out.Value || h < out.Value {
					t.Errorf("%s, answer %d at %v: [%v, %v] around %v, not around [%v, %v]", name, j, level, l, h, out.Value, low, high)
				}
				low, high = l, h
			}
			state = next
		}
	}
}

// TestVectorIntervalAt is the same for vectors.
func TestVectorIntervalAt(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 100})
	state := State{Questions: 40}
	out, _, err := StepVector(p, state, []Mean{mean(0.2, p.N), mean(0.3, p.N), mean(0.5, p.N)}, 0.66, Seeded{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		low, high, ok := p.VectorIntervalAt(state, o, 3, 0.66, p.Level())
		wide, wider, also := p.VectorIntervalAt(state, o, 3, 0.66, 1e-4)
		if !ok || !also || low != o.Interval.Low || high != o.Interval.High || wide >= low || wider <= high {
			t.Errorf("[%v, %v] and [%v, %v], its own is [%v, %v]", low, high, wide, wider, o.Interval.Low, o.Interval.High)
		}
	}
}

// TestNoLevel: no interval, no p-value.
func TestNoLevel(t *testing.T) {
	published := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 100, Published: true})
	out, _, err := Step(published, State{}, Input{Holdout: mean(0.3, 5000)}, Seeded{})
	if _, _, ok := published.IntervalAt(State{}, out, 0.05); err != nil || ok {
		t.Errorf("a published bound: %v, %v", ok, err)
	}
	p := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 100})
	out, _, err = Step(p, State{}, Input{Holdout: mean(0.3, 5000)}, Seeded{})
	for _, level := range []float64{0, 1, MinLevel / 2, math.NaN()} {
		if _, _, ok := p.IntervalAt(State{}, out, level); err != nil || ok {
			t.Errorf("level %v: %v, %v", level, ok, err)
		}
	}
	if _, _, ok := p.IntervalAt(State{}, Output{Value: 0.5}, 0.05); ok {
		t.Error("an answer without an interval")
	}
}

// excluding is the least level, to a part in twenty, at which an answer's interval excludes a number; 1 if there is none.
func excluding(p Guarantee, s State, o Output, null float64) float64 {
	excludes := func(level float64) bool {
		low, high, ok := p.IntervalAt(s, o, level)
		return ok && (null < low || null > high)
	}
	lo, hi := math.Log(MinLevel), 0.0
	if !excludes(0.99) { // nor at any less
		return 1
	}
	for hi-lo > 0.05 {
		if mid := (lo + hi) / 2; excludes(math.Exp(mid)) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return math.Exp(hi)
}

// TestLeastLevels: of the true nulls that an adaptive analyst tests, some has a least excluding level of u or less in at most a share u
// of runs, at every u that is looked at (false alarm 1e-6 each); read as if each were the only question, it has almost always.
func TestLeastLevels(t *testing.T) {
	const runs = 40
	lookedAt := []float64{0.02, 0.1, 0.3, 0.6}
	count := func(p, reading Guarantee) map[float64]int {
		below := map[float64]int{}
		for run := range uint64(runs) {
			least := leastOf(t, p, reading, run)
			for _, u := range lookedAt {
				if least <= u {
					below[u]++
				}
			}
		}
		return below
	}
	p := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 151, Sigma: 0.02})
	got := count(p, p)
	for _, u := range lookedAt {
		if err := stattest.AtMost(got[u], runs, u, falseAlarm); err != nil {
			t.Errorf("level %v: %v", u, err)
		}
	}
	one := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 1, Sigma: 0.02})
	planted := count(p, one)
	if stattest.AtMost(planted[0.02], runs, 0.02, falseAlarm) == nil {
		t.Errorf("levels for one question went unnoticed: %v", planted)
	}
	t.Logf("of %d runs: %v; read as one question: %v", runs, got, planted)
}

// leastOf is the least excluding level of a run of the single-adaptive attack, whose nulls, that means are 1/2, are all true.
func leastOf(t *testing.T, p, reading Guarantee, run uint64) float64 {
	rows := coins(rand.New(rand.NewPCG(run, 11)), p.N, p.Questions-1)
	state, weights, least := State{}, make([]float64, p.Questions-1), 1.0
	ask := func(m Mean) float64 {
		out, next, err := Step(p, state, Input{Holdout: m}, Seeded{Seed: run, Question: state.Questions})
		if err != nil {
			t.Fatal(err)
		}
		read := state
		if reading.Questions < p.Questions {
			read = State{}
		}
		least = min(least, excluding(reading, read, out, 0.5))
		state = next
		return out.Value
	}
	for j := range weights {
		weights[j] = ask(column(rows, j)) - 0.5
	}
	ask(agreement(rows, weights))
	return least
}
