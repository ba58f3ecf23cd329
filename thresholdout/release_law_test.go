package thresholdout

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// failureLaw checks the noise of what a failure releases: training and holdout are so far apart that every question fails.
func failureLaw(p Guarantee, cdf func(float64) float64, wrongScale float64) error {
	in := Input{Holdout: mean(0.5, p.N), Training: mean(1, p.Training)}
	z := make([]float64, 5000)
	for i := range z {
		out, _, err := Step(p, State{}, in, Seeded{Seed: 11, Question: int64(i)})
		if err != nil {
			return err
		}
		z[i] = (out.Value - 0.5) / (p.comparison().Sigma * wrongScale)
	}
	return stattest.Kolmogorov(z, cdf, falseAlarm)
}

// TestFailureLaw: failures of Thresholdout release the holdout mean plus N(0, sigma^2), or Lap(sigma) in the Laplace form.
func TestFailureLaw(t *testing.T) {
	for form, cdf := range map[Form]func(float64) float64{
		FormGaussian: distuv.UnitNormal.CDF, FormLaplace: distuv.Laplace{Scale: 1}.CDF,
	} {
		p := must(t, Spec{Mechanism: Thresholdout, Form: form, N: 10_000, Training: 10_000, Threshold: 0.1, Sigma: 0.005})
		if err := failureLaw(p, cdf, 1); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		if failureLaw(p, cdf, 1.4) == nil {
			t.Errorf("%s: a release with a noise of the wrong scale went unnoticed", form)
		}
	}
}

// laplaceComparisonLaw checks how often a difference of T + x sigma fails: P(Lap(2) + Lap(4) < x), with a new run for each.
func laplaceComparisonLaw(p Guarantee, x, wrongScale float64) error {
	in := Input{Holdout: mean(0.3, p.N), Training: mean(0.3+p.comparison().Threshold+x*p.comparison().Sigma, p.Training)}
	const trials = 20_000
	failed := 0
	for run := range uint64(trials) {
		out, _, err := Step(p, State{}, in, Seeded{Seed: run, Question: 1})
		if err != nil {
			return err
		}
		failed += int(out.Tokens)
	}
	x *= wrongScale
	return stattest.Frequency(failed, trials, 1-(4*math.Exp(-x/4)-math.Exp(-x/2))/6, falseAlarm)
}

func TestLaplaceComparisonLaw(t *testing.T) {
	p := must(t, Spec{Mechanism: Thresholdout, Form: FormLaplace, N: 10_000, Training: 23_457, Threshold: 0.1, Sigma: 0.005})
	for _, x := range []float64{1, 4, 10} {
		if err := laplaceComparisonLaw(p, x, 1); err != nil {
			t.Errorf("x=%v: %v", x, err)
		}
		if laplaceComparisonLaw(p, x, 1.3) == nil {
			t.Errorf("x=%v: comparison noise of the wrong scale went unnoticed", x)
		}
	}
}

// TestAccountCountsWhatIsOut: the half-width of a vector is no narrower than what the plain answers before it have released asks for.
func TestAccountCountsWhatIsOut(t *testing.T) {
	const count, variance = 4, 0.75
	for _, p := range []Guarantee{must(t, Spec{Mechanism: Gaussian, N: 10_000, Questions: 100}), must(t, Spec{Mechanism: Gaussian, N: 10_000, Questions: 100, Sigma: 0.01})} {
		released := 0.0
		for s := (State{}); s.Questions <= 97; s.Questions++ {
			price := p.VectorPrice(count, variance)
			b, own := p.gaussian().charged(s, price)
			share := (1 - mechanismShare) * (1 - cutsShare) * p.gaussian().Capped * p.Beta() * float64(own) / float64(p.Questions) / count
			least, err := bounds.Capped{N: float64(p.N), M: float64(p.gaussian().Subsamples[b]), Share: share, Released: released}.HalfWidth(p.gaussian().vectorNoise(s, count, variance))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := p.PreviewVector(s, count, variance)
			if err != nil || got < least || got > 1.05*least+gridError {
				t.Fatalf("after %d questions: ±%v, %v; what is out asks for ±%v", s.Questions, got, err, least)
			}
			released += bounds.Information(float64(p.N), 0.25, p.gaussian().sigmaOf(s))
		}
	}
}

// TestOneScaleOneStream: the same question's noise at another scale is another stream; two answers from one would give the mean away.
func TestOneScaleOneStream(t *testing.T) {
	k := Keyed{Query: "sha256:q"}
	if k.Answer("release", 0, 0.01).Uint64() == k.Answer("release", 0, 0.02).Uint64() {
		t.Error("one stream serves two scales")
	}
}
