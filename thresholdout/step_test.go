package thresholdout

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// falseAlarm of each statistical check here; seeds are fixed.
const falseAlarm = 1e-6

func must(t testing.TB, s Spec) Guarantee {
	t.Helper()
	p, err := Plan(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mean(x float64, n int64) Mean { return Mean{Sum: int64(x * float64(n) * float64(grid)), N: n} }

// gaussianLaw checks that the released noise of every question has the scale that the guarantee declares.
func gaussianLaw(p Guarantee, wrongScale float64) error {
	in := Input{Holdout: mean(0.5, p.N)}
	var z []float64
	for run := range uint64(200) {
		state := State{}
		for state.Questions < p.Questions {
			j := state.Questions + 1
			out, next, err := Step(p, state, in, Seeded{Seed: run, Question: j})
			if err != nil {
				return err
			}
			sigma := p.gaussian().Sigma
			if p.gaussian().Scheduled {
				sigma = bounds.ScheduledSigma(sigma, j, p.Questions)
			}
			z = append(z, (out.Value-0.5)/(sigma*wrongScale))
			state = next
		}
	}
	return stattest.Kolmogorov(z, distuv.UnitNormal.CDF, falseAlarm)
}

func TestGaussianLaw(t *testing.T) {
	for _, sigma := range []float64{0, 0.004} {
		p := must(t, Spec{Mechanism: Gaussian, N: 100_000, Questions: 200, Sigma: sigma})
		if err := gaussianLaw(p, 1); err != nil {
			t.Error(err)
		}
		if gaussianLaw(p, 1.1) == nil {
			t.Error("noise 10% too narrow went unnoticed")
		}
	}
}

// comparisonLaw checks how often a difference of T + x sigma fails: P(N(0,1) < x).
func comparisonLaw(p Guarantee, x, wrongScale float64) error {
	in := Input{Holdout: mean(0.3, p.N), Training: mean(0.3+p.comparison().Threshold+x*p.comparison().Sigma, p.Training)}
	const trials = 20_000
	failed := 0
	for i := range int64(trials) {
		out, _, err := Step(p, State{}, in, Seeded{Seed: 7, Question: i})
		if err != nil {
			return err
		}
		failed += int(out.Tokens)
	}
	return stattest.Frequency(failed, trials, distuv.UnitNormal.CDF(x*wrongScale), falseAlarm)
}

func TestComparisonLaw(t *testing.T) {
	p := must(t, Spec{Mechanism: Thresholdout, N: 10_000, Training: 23_457, Preset: PresetScience2015})
	for _, x := range []float64{-2, -1, 0, 0.5, 2} {
		if err := comparisonLaw(p, x, 1); err != nil {
			t.Errorf("x=%v: %v", x, err)
		}
		if x != 0 && comparisonLaw(p, x, 1.2) == nil {
			t.Errorf("x=%v: a comparison noise of the wrong scale went unnoticed", x)
		}
	}
}

// redrawn and frozen are the two faults of the threshold's noise: drawn anew for every question, and never drawn anew.
type redrawn struct{ Seeded }

func (r redrawn) Threshold(epoch int64) *noise.Stream {
	return Seeded{Seed: r.Seed ^ uint64(r.Question+1)<<32}.Threshold(epoch)
}

type frozen struct{ Seeded }

func (f frozen) Threshold(int64) *noise.Stream { return f.Seeded.Threshold(0) }

// redrawLaw asks two questions whose difference is the threshold itself. A pass has probability 1/2; two passes in one epoch,
// with gamma ~ Lap(2) shared and eta ~ Lap(4) each, 1/4 + E(1-e^{-|gamma|/4})^2/4 = 7/24; a pass after a failure, in a new epoch, 1/2.
func redrawLaw(p Guarantee, from func(run uint64, question int64) Noise) error {
	in := Input{Holdout: mean(0.25, p.N), Training: mean(0.25+p.comparison().Threshold, p.Training)}
	const trials = 20_000
	both, failures, recovered := 0, 0, 0
	for run := range uint64(trials) {
		first, state, err := Step(p, State{}, in, from(run, 1))
		if err != nil {
			return err
		}
		second, _, err := Step(p, state, in, from(run, 2))
		if err != nil {
			return err
		}
		switch {
		case first.Tokens == 0 && second.Tokens == 0:
			both++
		case first.Tokens == 1:
			failures++
			recovered += int(1 - second.Tokens)
		}
	}
	return errors.Join(stattest.Frequency(both, trials, 7.0/24, falseAlarm), stattest.Frequency(failures, trials, 0.5, falseAlarm),
		stattest.Frequency(recovered, failures, 0.5, falseAlarm))
}

func TestThresholdIsRedrawnOnlyAfterAToken(t *testing.T) {
	p := must(t, Spec{Mechanism: Thresholdout, Form: FormLaplace, N: 10_000, Training: 10_000, Threshold: 0.125, Sigma: 0.01})
	if err := redrawLaw(p, func(run uint64, q int64) Noise { return Seeded{run, q} }); err != nil {
		t.Error(err)
	}
	if redrawLaw(p, func(run uint64, q int64) Noise { return redrawn{Seeded{run, q}} }) == nil {
		t.Error("a threshold redrawn for every question went unnoticed")
	}
	if redrawLaw(p, func(run uint64, q int64) Noise { return frozen{Seeded{run, q}} }) == nil {
		t.Error("a threshold that is never redrawn went unnoticed")
	}
}

// TestStepsDecideByStateAlone: with a spent budget even sums that cannot be are not looked at.
func TestStepsDecideByStateAlone(t *testing.T) {
	p := must(t, Spec{Mechanism: Thresholdout, N: 1000, Training: 1000, Questions: 10, Tokens: 3})
	if _, _, err := Step(p, State{Questions: 10}, Input{}, nil); !errors.Is(err, ErrNoQuestions) {
		t.Error(err)
	}
	if _, _, err := Step(p, State{Questions: 5, Tokens: 3}, Input{}, nil); !errors.Is(err, ErrNoTokens) {
		t.Error(err)
	}
	for _, in := range []Input{{}, {Holdout: Mean{Sum: -1, N: 1000}, Training: mean(0.5, 1000)},
		{Holdout: mean(0.5, 999), Training: mean(0.5, 1000)}, {Holdout: mean(0.5, 1000), Training: mean(1.5, 1000)}} {
		if _, s, err := Step(p, State{}, in, Seeded{}); err == nil || s != (State{}) {
			t.Errorf("%+v was accepted", in)
		}
	}
}

// TestStepIsPure: the same arguments give the same answer; values are on the grid and within their interval.
func TestStepIsPure(t *testing.T) {
	for _, p := range []Spec{
		{Mechanism: Gaussian, N: 5000, Questions: 50},
		{Mechanism: Thresholdout, N: 5000, Training: 7000, Questions: 50},
		{Mechanism: Thresholdout, Form: FormLaplace, N: 5000, Training: 7000, Questions: 50},
		{Mechanism: GuessAndCheck, N: 5000, Training: 7000, Questions: 50},
		{Mechanism: GuessAndCheck, N: 500, Training: 700, Questions: 50},
		{Mechanism: Split, N: 5000, Questions: 50},
		{Mechanism: Naive, N: 5000},
	} {
		p := must(t, p)
		for _, x := range []float64{0, 0.001, 0.4, 1} {
			from, to := p.Slice(State{Questions: 3})
			in := Input{Holdout: mean(x, to-from), Training: mean(0.5, p.Training)}
			a, s, err := Step(p, State{Questions: 3}, in, Keyed{Query: "q"})
			b, s2, err2 := Step(p, State{Questions: 3}, in, Keyed{Query: "q"})
			if err != nil || err2 != nil || !reflect.DeepEqual(a, b) || s != s2 {
				t.Fatalf("%s %v: %+v %v, then %+v %v", p.Mechanism, x, a, err, b, err2)
			}
			if s.Questions != 4 || s.Tokens != a.Tokens || a.Value*float64(grid) != math.Trunc(a.Value*float64(grid)) {
				t.Errorf("%s: %+v, state %+v", p.Mechanism, a, s)
			}
			if p.Mechanism == Naive != (a.Interval == nil) {
				t.Errorf("%s: interval %v", p.Mechanism, a.Interval)
			}
			if i := a.Interval; i != nil && !(0 <= i.Low && i.Low <= a.Value && a.Value <= i.High && i.High <= 1) {
				t.Errorf("%s: value %v, interval %+v", p.Mechanism, a.Value, *i)
			}
		}
	}
}

func TestSlicesAreDisjoint(t *testing.T) {
	p := must(t, Spec{Mechanism: Split, N: 1003, Questions: 10})
	end := int64(0)
	for j := range p.Questions {
		from, to := p.Slice(State{Questions: j})
		if from != end || to-from != 100 {
			t.Errorf("slice %d is %d to %d, the last one ended at %d", j, from, to, end)
		}
		end = to
	}
	if end > p.N {
		t.Errorf("the last slice ends at %d of %d", end, p.N)
	}
}

func TestPlanRefuses(t *testing.T) {
	for field, p := range map[string]Spec{
		"confidence": {Mechanism: Gaussian, N: 1000, Confidence: 1},
		"holdout":    {Mechanism: Gaussian, N: 1},
		"questions":  {Mechanism: Split, N: 10, Questions: 11},
		"sigma":      {Mechanism: Gaussian, N: 1000, Sigma: math.NaN()},
		"half_width": {Mechanism: Gaussian, N: 1000, HalfWidth: 0.001},
		"tokens":     {Mechanism: Thresholdout, N: 1000, Training: 1000, Questions: 5, Tokens: 6},
		"rounds":     {Mechanism: Gaussian, N: 1000, Rounds: -1},
		"mechanism":  {Mechanism: Thresholdout, N: 1000},
		"form":       {Mechanism: Thresholdout, N: 1000, Training: 1000, Form: "cauchy"},
		"preset":     {Mechanism: Thresholdout, N: 1000, Training: 1000, Preset: "nature"},
		"threshold":  {Mechanism: Gaussian, N: 1000, Threshold: 0.1},
	} {
		_, err := Plan(p)
		var wrong *ParamError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestPlanOfNoInterval: a guarantee whose half-width is infinite is refused, for it could not be stored.
func TestPlanOfNoInterval(t *testing.T) {
	var wrong *ParamError
	if g, err := Plan(Spec{Mechanism: Gaussian, N: 4, Questions: 10_000_000}); !errors.As(err, &wrong) || wrong.Field != "questions" {
		t.Errorf("%+v, %v", g, err)
	}
}

func ExampleStep() {
	p, err := Plan(Spec{Mechanism: Gaussian, N: 10_000, Questions: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	holdout := Mean{Sum: 3121 << 30, N: 10_000} // 3,121 of 10,000 rows say yes
	answer, next, err := Step(p, State{}, Input{Holdout: holdout}, Seeded{Seed: 1})
	fmt.Printf("±%.3f, %d asked, near the mean: %v, %v\n", p.HalfWidth, next.Questions, math.Abs(answer.Value-0.3121) < 0.08, err)
	// Output: ±0.057, 1 asked, near the mean: true, <nil>
}
