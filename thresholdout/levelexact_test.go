package thresholdout

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// atLevel is the guarantee that New makes with this probability of error and the same releases; exact says whether it can have them: where
// New plans the noise with the level, it is another guarantee, no wider than any with other noise.
func atLevel(t *testing.T, p Guarantee, level float64) (q Guarantee, exact bool) {
	t.Helper()
	spec := Spec{Mechanism: p.Mechanism, N: p.N, Training: p.Training, Questions: p.Questions, Tokens: p.Tokens, Rounds: p.Rounds, Confidence: 1 - level}
	switch m := p.own.(type) {
	case *gaussian:
		if p.Rounds > 0 || m.Scheduled {
			return must(t, spec), false
		}
		spec.Sigma = m.Sigma
		return changed(must(t, spec), func(q *gaussian) { q.Blocks, q.Subsamples = m.Blocks, m.Subsamples }), true
	case *laplace:
		spec.Form, spec.Threshold, spec.Sigma = m.Form, m.Threshold, m.Sigma
	case *comparedRuns:
		spec.Form, spec.Threshold, spec.Sigma = m.Form, m.Threshold, m.Sigma
		return changed(must(t, spec), func(q *comparedRuns) { q.Relative = m.Relative }), true
	}
	return must(t, spec), true
}

// played asks a few questions, of which every other one disagrees with training, and hands each state and answer on.
func played(t *testing.T, p Guarantee, each func(s State, in Input, from Noise, out Output)) {
	t.Helper()
	state := State{}
	for j := range int64(6) {
		x := 0.3 + 0.08*float64(j)
		from, to := p.Slice(state)
		in := Input{Holdout: mean(x, to-from)}
		if p.UsesTraining() {
			in.Training = mean(x-0.25*float64(j%2), p.Training)
		}
		noise := Seeded{Seed: 5, Question: j}
		out, next, err := Step(p, state, in, noise)
		if err != nil {
			t.Fatal(err)
		}
		each(state, in, noise, out)
		state = next
	}
}

// TestIntervalAtIsThatOfItsConfidence: an answer read at a level has the interval that the same answer has under the guarantee that New
// makes with that confidence. A level that is ignored, or is not handed on to a part of the bound, shows at once: the p-values of tests
// are read this way.
func TestIntervalAtIsThatOfItsConfidence(t *testing.T) {
	for name, p := range levelled(t) {
		for _, level := range []float64{0.5, 0.2, 1e-3, 1e-6, MinLevel} {
			q, exact := atLevel(t, p, level)
			played(t, p, func(s State, in Input, from Noise, out Output) {
				low, high, ok := p.IntervalAt(s, out, level)
				if !ok {
					t.Fatalf("%s at %v: no interval", name, level)
				}
				if !exact { // the schedule that is best at this level is at least as narrow; for any other level it is nearly so
					least := 2 * q.HalfWidth * (1 - 1e-6)
					if got := high - low; got < min(least, 0.9) || got > 1.3*least {
						t.Errorf("%s, question %d at %v: %v wide, with the best noise %v", name, s.Questions, level, got, 2*q.HalfWidth)
					}
					return
				}
				own, _, err := Step(q, s, in, from)
				if err != nil {
					t.Fatal(err)
				}
				if own.Value != out.Value || own.Source != out.Source {
					t.Fatalf("%s at %v: %+v is not the same release as %+v", name, level, own, out)
				}
				if math.Abs(low-own.Interval.Low) > 1e-8 || math.Abs(high-own.Interval.High) > 1e-8 {
					t.Errorf("%s, question %d at %v: [%v, %v], made with that confidence [%v, %v]",
						name, s.Questions, level, low, high, own.Interval.Low, own.Interval.High)
				}
			})
		}
	}
}

// TestLevelsAreStrict: at a thousandth of a level an interval is wider by a fifth of what Hoeffding's inequality alone would add. All
// mechanisms' intervals have a part that grows as the square root of the logarithm does.
func TestLevelsAreStrict(t *testing.T) {
	for name, p := range levelled(t) {
		played(t, p, func(s State, _ Input, _ Noise, out Output) {
			width := func(level float64) float64 {
				low, high, _ := p.IntervalAt(s, out, level)
				return high - low
			}
			units := p.N
			if p.Mechanism == Split {
				from, to := p.Slice(s)
				units = to - from
			}
			hoeffding := func(level float64) float64 { return math.Sqrt(math.Log(2/level) / (2 * float64(units))) }
			for _, level := range []float64{0.5, 0.05, 1e-3, 2e-6} {
				more, least := width(level/1000)-width(level), (hoeffding(level/1000)-hoeffding(level))/5
				if more < least && width(level/1000) < 0.99 {
					t.Errorf("%s, question %d: at %v %v wide, at %v only %v more", name, s.Questions, level, width(level), level/1000, more)
				}
			}
		})
	}
}

// adaptiveNulls plays the single-adaptive attack against any mechanism that reads levels, one round after the other where there are
// rounds, and returns the least level that excludes a true null of 1/2. reading is the guarantee that answers are read under.
func adaptiveNulls(t *testing.T, p, reading Guarantee, run uint64) float64 {
	t.Helper()
	r := rand.New(rand.NewPCG(run, 12))
	holdout, training := coins(r, p.N, p.Questions-1), coins(r, p.Training, p.Questions-1)
	state, weights, least := State{}, make([]float64, p.Questions-1), 1.0
	ask := func(column func(rows [][]int8) Mean) (value float64, ok bool) {
		if p.NeedsTokens() && state.Tokens >= p.Tokens {
			return 0, false
		}
		from, to := p.Slice(state)
		in := Input{Holdout: column(holdout[from:to])}
		if p.UsesTraining() {
			in.Training = column(training)
		}
		out, next, err := Step(p, state, in, Seeded{Seed: run, Question: state.Questions})
		if err != nil {
			t.Fatal(err)
		}
		read := state
		if reading.Questions < p.Questions {
			read = State{}
		}
		if low, high, ok := reading.IntervalAt(read, out, least*0.95); ok && (0.5 < low || 0.5 > high) { // else it is not the least
			least = min(least, excluding(reading, read, out, 0.5))
		}
		if state = next; p.Rounds > 0 && p.Affordable(state) == 0 {
			state = p.EndRound(state)
		}
		return out.Value, true
	}
	for j := range weights {
		value, ok := ask(func(rows [][]int8) Mean { return column(rows, j) })
		if !ok {
			break
		}
		if weights[j] = value - 0.5; p.NeedsTokens() && state.Tokens == p.Tokens-1 {
			break // one token is kept for the last question
		}
	}
	ask(func(rows [][]int8) Mean { return agreement(rows, weights) })
	return least
}

// TestLeastLevelsOfEveryMechanism is TestLeastLevels for every mechanism that has levels: of the true nulls that an adaptive analyst
// looks at, some has a least excluding level of u or less in at most a share u of runs (false alarm 1e-6 each). Where all answers are
// released from the holdout, levels read as if each answer were the only one break that.
func TestLeastLevelsOfEveryMechanism(t *testing.T) {
	const runs = 30
	lookedAt := []float64{0.02, 0.1, 0.3, 0.6}
	for name, p := range map[string]Spec{
		"gaussian":              {Mechanism: Gaussian, N: 600, Questions: 121},
		"gaussian, rounds":      {Mechanism: Gaussian, N: 600, Questions: 121, Rounds: 2},
		"split":                 {Mechanism: Split, N: 600, Questions: 20},
		"guess_and_check":       {Mechanism: GuessAndCheck, N: 600, Training: 600, Questions: 121, Tokens: 40},
		"thresholdout":          {Mechanism: Thresholdout, N: 600, Training: 600, Questions: 121, Tokens: 100, Threshold: 0.005, Sigma: 0.01},
		"thresholdout, laplace": {Mechanism: Thresholdout, Form: FormLaplace, N: 600, Training: 600, Questions: 121, Tokens: 40},
	} {
		p := must(t, p)
		count := func(reading Guarantee) map[float64]int {
			below := map[float64]int{}
			for run := range uint64(runs) {
				least := adaptiveNulls(t, p, reading, run)
				for _, u := range lookedAt {
					if least <= u {
						below[u]++
					}
				}
			}
			return below
		}
		got := count(p)
		for _, u := range lookedAt {
			if err := stattest.AtMost(got[u], runs, u, falseAlarm); err != nil {
				t.Errorf("%s, level %v: %v", name, u, err)
			}
		}
		t.Logf("%s, of %d runs: %v", name, runs, got)
		if p.Mechanism != Gaussian || p.Rounds > 0 {
			continue
		}
		one := changed(p, func(m *gaussian) { m.Questions = 1 })
		if planted := count(one); stattest.AtMost(planted[0.02], runs, 0.02, falseAlarm) == nil {
			t.Errorf("%s: levels for one question went unnoticed: %v", name, planted)
		}
	}
}

// TestChernoffNarrows: for a mean near 0 or 1 an answer shows the common part with Chernoff's interval, for which a tenth of the
// probability of error is paid, nine tenths of it for what rows may do. Without noise and with nothing released it is where n kl(answer||x) <=
// ln(2/share), the answer being off by its rounding.
func TestChernoffNarrows(t *testing.T) {
	for _, given := range []Spec{
		{Mechanism: Gaussian, N: 10_000, Questions: 10, Sigma: 0.001},
		{Mechanism: Gaussian, N: 10_000, Questions: 10, Rounds: 1},
	} {
		p := must(t, given)
		plain := changed(p, func(m *gaussian) { m.Capped = 0 })
		for _, value := range []float64{0.01, 0.99} {
			got, without := p.gaussian().interval(State{}, value), plain.gaussian().interval(State{}, value)
			if got.Bound != p.gaussian().bound()+"+chernoff" || without.Bound != p.gaussian().bound() {
				t.Errorf("%v: bounds %s and %s", value, got.Bound, without.Bound)
			}
			far, farWithout := max(got.High-value, value-got.Low), max(min(without.High, 1)-value, value-max(without.Low, 0))
			if far > farWithout/3 || got.Low > value || got.High < value {
				t.Errorf("%v: [%v, %v], no third of [%v, %v]", value, got.Low, got.High, without.Low, without.High)
			}
			if p.Rounds == 0 {
				continue
			}
			share := (1 - mechanismShare) * cappedShare * p.Beta() / float64(p.Questions)
			for end, from := range map[float64]float64{got.Low: value - gridError, got.High: value + gridError} {
				if kl := float64(p.N) * bounds.KL(from, end); math.Abs(kl-math.Log(2/share)) > 1e-3 {
					t.Errorf("%v: the end %v has n kl %v, not %v", value, end, kl, math.Log(2/share))
				}
			}
		}
	}
}
