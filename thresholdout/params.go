package thresholdout

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Defaults of New.
const (
	DefaultQuestions  = 1000
	DefaultConfidence = 0.95

	// DefaultSubmissions of a ladder, whose intervals hardly depend on their number: a million would widen the widest by a fifth.
	DefaultSubmissions = 10_000

	// DefaultTokens lets an honest analyst guess wrong a few times; each time widens later intervals.
	DefaultTokens = 20
)

// PresetScience2015 is the parameters of the experiment of Dwork et al., Science 2015: threshold 4/sqrt(n), noise 1/sqrt(n).
const PresetScience2015 = "science2015"

// Limits of New.
const (
	// MaxUnits keeps a sum of 2^30 grid steps a unit within 2^61 (dp/noise.Saturation).
	MaxUnits = 1 << 31
	// MaxConfidence keeps beta far above the smallest probabilities that the bounds compute.
	MaxConfidence = 1 - 1e-9
	// MaxSigma: noise as wide as the range of a row function says nothing more.
	MaxSigma = 1
	// MinSigma keeps noise coarser than the grid of values, 2^-30.
	MinSigma = 1e-9
)

// ParamError says which parameter is wrong, why, and what to do.
type ParamError struct {
	Field  string // as in the API
	Detail string
}

func (e *ParamError) Error() string { return "thresholdout: " + e.Field + ": " + e.Detail }

func wrong(field, format string, args ...any) error {
	return &ParamError{Field: field, Detail: fmt.Sprintf(format, args...)}
}

// New fills in what is zero and checks every number. N and, for a mechanism that compares, Training must be set; for the
// gaussian mechanism a HalfWidth without Questions asks for as many questions as that half-width allows. [Auto] is replaced by
// the mechanism it chooses. Errors are *[ParamError].
//
// What New returned, New returns again: numbers that it plans itself are accepted if they are what it would plan, and
// refused otherwise. In particular the scale of a noise schedule is never taken for constant noise.
func New(p Params) (Params, error) {
	if p.Confidence == 0 {
		p.Confidence = DefaultConfidence
	}
	if !(p.Confidence > 0 && p.Confidence <= MaxConfidence) {
		return p, wrong("confidence", "%v is not between 0 and 1; 0.95 is usual", p.Confidence)
	}
	if p.N < bounds.MinUnits || p.N > MaxUnits {
		return p, wrong("holdout", "%d units in the holdout; between %d and %d are possible", p.N, bounds.MinUnits, int64(MaxUnits))
	}
	if p.Questions < 0 || p.Questions > bounds.MaxQuestions {
		return p, wrong("questions", "%d is not between 1 and %d", p.Questions, int64(bounds.MaxQuestions))
	}
	for _, f := range []struct {
		field string
		value float64
	}{{"sigma", p.Sigma}, {"threshold", p.Threshold}, {"half_width", p.HalfWidth}} {
		if f.field == "half_width" && p.Mechanism != Gaussian && f.value > MaxSigma {
			continue // a planned one can say that an interval says nothing
		}
		if !(f.value >= 0 && f.value <= MaxSigma) {
			return p, wrong(f.field, "%v is not between 0 and %v, the width of a row function's range", f.value, MaxSigma)
		}
	}
	if p.Sigma != 0 && p.Sigma < MinSigma {
		return p, wrong("sigma", "%v is finer than the grid of answers; the least is %v", p.Sigma, MinSigma)
	}
	if err := p.checkFields(); err != nil {
		return p, err
	}
	switch p.Mechanism {
	case Gaussian:
		return p.gaussian()
	case GuessAndCheck:
		return p.guessAndCheck()
	case Thresholdout:
		return p.thresholdout()
	case Split:
		return p.split()
	case Auto:
		return p.automatic()
	case Leaderboard:
		return p.leaderboard()
	case Naive:
		if p.Questions == 0 {
			p.Questions = DefaultQuestions
		}
		return p, nil
	}
	return p, wrong("mechanism", "there is no mechanism %q; use auto, gaussian, guess_and_check, thresholdout, split, ladder or naive", p.Mechanism)
}

// checkFields refuses parameters that the mechanism does not have, which would otherwise be ignored in silence.
func (p Params) checkFields() error {
	compares := p.Mechanism == Thresholdout
	guesses := p.Mechanism == GuessAndCheck
	auto := p.Mechanism == Auto // which passes on what it is given
	for _, f := range []struct {
		field string
		set   bool
		has   bool
	}{
		{"tokens", p.Tokens != 0, compares || guesses || auto},
		{"form", p.Form != "", compares},
		{"preset", p.Preset != "", compares},
		{"threshold", p.Threshold != 0, compares || p.Mechanism == Leaderboard},
		{"sigma", p.Sigma != 0, compares || guesses || auto || p.Mechanism == Gaussian},
		{"half_width", p.HalfWidth != 0, p.Mechanism != Naive}, // most accept only what they plan
		{"scheduled", p.Scheduled, p.Mechanism == Gaussian},
		{"rounds", p.Rounds != 0, p.Mechanism == Gaussian || auto},
		{"round_sigma", p.RoundSigma != nil, p.Mechanism == Gaussian},
		{"published", p.Published, p.Mechanism == Gaussian || p.Mechanism == Split || auto},
		{"capped", p.Capped != 0 || p.Subsample != 0, p.Mechanism == Gaussian},
		{"parts", p.Parts != nil, p.Form == FormLaplace},
		{"widths", p.Widths != 0, guesses},
		{"cells", p.Cells != 0, guesses},
	} {
		if f.set && !f.has {
			return wrong(f.field, "the mechanism %q does not take it", p.Mechanism)
		}
	}
	return nil
}

func (p Params) beta() float64 { return 1 - p.Confidence }

// planWidth sets a half-width that is planned, not chosen.
func (p Params) planWidth(w float64) (Params, error) {
	if p.HalfWidth != 0 && p.HalfWidth != w {
		return p, wrong("half_width", "the mechanism %q does not take it", p.Mechanism)
	}
	p.HalfWidth = w
	return p, nil
}

func (p Params) split() (Params, error) {
	if p.Questions == 0 {
		p.Questions = min(DefaultQuestions, p.N)
	}
	if p.Questions > p.N {
		return p, wrong("questions", "%d slices of %d units: each question needs at least one unit", p.Questions, p.N)
	}
	b, err := bounds.Splitting(p.N, p.Questions, p.beta())
	if err != nil {
		return p, err
	}
	return p.planWidth(b.HalfWidth)
}

func (p Params) thresholdout() (Params, error) {
	if p.Training < 1 {
		return p, wrong("mechanism", "thresholdout compares with a training part, and there is none; use gaussian")
	}
	if p.Questions == 0 {
		p.Questions = DefaultQuestions
	}
	if p.Tokens == 0 {
		p.Tokens = min(DefaultTokens, p.Questions)
	}
	if p.Tokens < 1 || p.Tokens > p.Questions {
		return p, wrong("tokens", "%d is not between 1 and the number of questions, %d", p.Tokens, p.Questions)
	}
	if p.Form == "" {
		p.Form = FormGaussian
	}
	if p.Form != FormGaussian && p.Form != FormLaplace {
		return p, wrong("form", "there is no form %q; use gaussian (Science 2015) or laplace (NIPS 2015)", p.Form)
	}
	switch {
	case p.Preset == PresetScience2015:
		threshold, sigma := 4/math.Sqrt(float64(p.N)), 1/math.Sqrt(float64(p.N))
		if p.Threshold != 0 && p.Threshold != threshold || p.Sigma != 0 && p.Sigma != sigma {
			return p, wrong("preset", "science2015 sets threshold and sigma; give the preset or the numbers")
		}
		p.Threshold, p.Sigma = threshold, sigma
	case p.Preset != "":
		return p, wrong("preset", "there is no preset %q; use science2015", p.Preset)
	default:
		p.tune()
	}
	if p.Form == FormLaplace {
		w := bounds.Laplace{N: p.N, Questions: p.Questions, Tokens: p.Tokens, Beta: p.beta(), Threshold: p.Threshold, Sigma: p.Sigma}.HalfWidth()
		p.Parts = map[string]float64{"threshold_and_noise": w.Sample, "sampling_and_adaptivity": w.Posterior}
		return p.planWidth(w.HalfWidth)
	}
	return p.planWidth(0)
}

// tune chooses threshold and noise, where they are not given, for the narrowest interval of an honest analyst.
//
// The threshold is three standard deviations of the difference of a training and a holdout mean at their largest (a row
// function that is 0 or 1 with equal probability): a fixed question then fails about three times in a thousand by chance. A smaller
// one would be narrower and spend tokens faster.
func (p *Params) tune() {
	if p.Threshold == 0 {
		p.Threshold = min(1, 1.5*math.Sqrt(1/float64(p.N)+1/float64(p.Training)))
	}
	if p.Sigma == 0 {
		p.Sigma = min(MaxSigma, max(MinSigma, p.forcedRuns().TunedNoise()))
	}
}

func (p Params) forcedRuns() bounds.ForcedRuns {
	return bounds.ForcedRuns{N: p.N, Questions: p.Questions, Tokens: p.Tokens, Beta: p.beta(),
		Threshold: p.Threshold, Comparison: p.Sigma, Release: p.Sigma}
}

// UsesTraining reports whether a Step looks at the training part.
func (p Params) UsesTraining() bool { return p.HasTokens() }

// HasTokens reports whether a budget has tokens beside the questions: the mechanism compares a guess with the holdout.
func (p Params) HasTokens() bool { return p.Mechanism == Thresholdout || p.Mechanism == GuessAndCheck }

// Slice is the range of holdout units that the next answer reads: all of them, or for split the next slice.
func (p Params) Slice(s State) (from, to int64) {
	if p.Mechanism != Split {
		return 0, p.N
	}
	size := p.N / p.Questions
	return s.Questions * size, (s.Questions + 1) * size
}
