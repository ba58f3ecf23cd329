package thresholdout

import (
	"fmt"
	"math"
	"math/big"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// grid is the number of steps from 0 to 1 of a row function's values, and of released values.
const grid = int64(1) << 30

// gridError is more than what rounding costs: half a step each of a row's value, of a unit's mean and of the released value, and
// threshold and noise being whole steps of the sum's finer grid.
const gridError = 2.0 / float64(grid)

// Input is what one Step reads: the exact means of one row function over the units of [Params.Slice] and, where
// [Params.UsesTraining], over the training part.
type Input struct {
	Training, Holdout Mean
	Guess             *Guess // guess_and_check: the analyst's own, or nil
}

// Step answers one question: it returns what may be released, and the state to be made durable before it is. It is a
// pure function: the same arguments give the same answer.
//
// Whether a question may be asked is decided by the state alone, before a sum is looked at: ErrNoQuestions, and for
// thresholdout and guess_and_check ErrNoTokens. So is, by the question and the training mean beside, a half-width that cannot
// pass: [*WidthError].
func Step(p Params, s State, in Input, from Noise) (Output, State, error) {
	if s.Questions >= p.Questions {
		return Output{}, s, ErrNoQuestions
	}
	if p.Rounds > 0 {
		if err := p.checkRound(s, 1); err != nil {
			return Output{}, s, err
		}
	}
	if p.HasTokens() && s.Tokens >= p.Tokens {
		return Output{}, s, ErrNoTokens
	}
	if err := in.check(p, s); err != nil {
		return Output{}, s, err
	}
	next := p.after(s, 1)
	var out Output
	switch {
	case p.Mechanism == Gaussian:
		out = p.gaussianStep(s, in.Holdout, from)
	case p.Mechanism == GuessAndCheck:
		var wide int64
		var err error
		if out, wide, err = p.guessStep(s, in, from); err != nil {
			return Output{}, s, err
		}
		next.Wide += wide
	case p.Mechanism == Thresholdout && p.Form == FormLaplace:
		out = p.laplaceStep(s, in, from)
	case p.Mechanism == Thresholdout:
		out = p.overfitStep(s, in, from)
	case p.Mechanism == Split:
		out = Output{Value: in.Holdout.value(0), Source: FromHoldout}
		out.Interval = around(out.Value, p.HalfWidth, "splitting", map[string]float64{"sampling": p.HalfWidth})
	case p.Mechanism == Naive:
		out = Output{Value: in.Holdout.value(0), Source: FromHoldout}
	default:
		return Output{}, s, fmt.Errorf("thresholdout: no mechanism %q", p.Mechanism)
	}
	next.Tokens += out.Tokens
	return out, next, nil
}

func (in Input) check(p Params, s State) error {
	from, to := p.Slice(s)
	if err := in.Holdout.check(to - from); err != nil {
		return fmt.Errorf("thresholdout: holdout: %w", err)
	}
	if p.UsesTraining() {
		if err := in.Training.check(p.Training); err != nil {
			return fmt.Errorf("thresholdout: training: %w", err)
		}
	}
	if in.Guess != nil && p.Mechanism != GuessAndCheck {
		return fmt.Errorf("thresholdout: the mechanism %s takes no guess", p.Mechanism)
	}
	return nil
}

func (m Mean) check(units int64) error {
	if m.N != units {
		return fmt.Errorf("a mean over %d units, the guarantee is about %d", m.N, units)
	}
	if m.Sum < 0 || m.Sum > m.N*grid {
		return fmt.Errorf("the sum %d is not within 0 and %d", m.Sum, m.N*grid)
	}
	return nil
}

// steps is the scale of a number in [0,1] on the grid of sums of n units.
func steps(x float64, n int64) float64 { return x * float64(n) * float64(grid) }

// value is (Sum+noise)/(N*2^30), clipped to [0,1] and rounded half up to a multiple of 2^-30.
func (m Mean) value(noise int64) float64 {
	sum := min(max(m.Sum+noise, 0), m.N*grid) // |Sum| <= 2^61 and |noise| <= 2^62: no overflow
	return float64((sum+m.N/2)/m.N) / float64(grid)
}

// around is the interval value±width within [0,1].
func around(value, width float64, bound string, parts map[string]float64) *Interval {
	width += gridError
	return &Interval{Low: max(0, value-width), High: min(1, value+width), Bound: bound, Parts: parts}
}

// overfitStep is Thresholdout in its Gaussian form (Science 2015): the training mean while |training - holdout| <= T + N(0,
// sigma^2), with fresh noise for each comparison; else the holdout mean + N(0, sigma^2), for a token.
func (p Params) overfitStep(s State, in Input, from Noise) Output {
	runs := p.forcedRuns()
	sampling := runs.Sampling(s.Questions, s.Tokens)
	eta := noise.RoundedNormal(from.Answer("compare", s.Tokens, p.Sigma), steps(p.Sigma, p.N))
	if !in.beyond(steps(p.Threshold, p.N), eta) {
		value := in.Training.value(0)
		u := runs.ComparisonNoise()
		return Output{Value: value, Source: FromTraining, Interval: around(value, p.Threshold+u+sampling, "thresholdout-forced-runs",
			map[string]float64{"threshold": p.Threshold, "noise": u, "sampling_and_adaptivity": sampling})}
	}
	xi := noise.RoundedNormal(from.Answer("release", s.Tokens, p.Sigma), steps(p.Sigma, p.N))
	value := in.Holdout.value(xi)
	z := runs.ReleaseNoise()
	return Output{Value: value, Source: FromHoldout, Tokens: 1, Interval: around(value, z+sampling, "thresholdout-forced-runs",
		map[string]float64{"noise": z, "sampling_and_adaptivity": sampling})}
}

// laplaceStep is Thresholdout in its Laplace form (arXiv 1506.02629, figure 1): gamma ~ Lap(2 sigma) is redrawn only after an
// overfit, eta ~ Lap(4 sigma) for each comparison, xi ~ Lap(sigma) for each release. Scales are rounded up to whole steps of
// the sum's grid, which only adds noise.
func (p Params) laplaceStep(s State, in Input, from Noise) Output {
	gamma := noise.DiscreteLaplace(from.Threshold(s.Tokens), p.laplaceScale(2))
	eta := noise.DiscreteLaplace(from.Answer("compare", s.Tokens, p.Sigma), p.laplaceScale(4))
	if !in.beyond(steps(p.Threshold, p.N), gamma, eta) {
		value := in.Training.value(0)
		return Output{Value: value, Source: FromTraining, Interval: around(value, p.HalfWidth, "thresholdout-laplace", p.Parts)}
	}
	xi := noise.DiscreteLaplace(from.Answer("release", s.Tokens, p.Sigma), p.laplaceScale(1))
	value := in.Holdout.value(xi)
	return Output{Value: value, Source: FromHoldout, Tokens: 1, Interval: around(value, p.HalfWidth, "thresholdout-laplace", p.Parts)}
}

func (p Params) laplaceScale(times float64) uint64 {
	return uint64(max(1, min(math.Ceil(steps(times*p.Sigma, p.N)), noise.MaxScale)))
}

// beyond reports whether |training mean - holdout mean| exceeds the threshold plus noise, all exact: both means times
// N_t N_h 2^30, threshold and noise in steps of the holdout's sum.
func (in Input) beyond(threshold float64, noises ...int64) bool {
	scaled := func(sum, n int64) *big.Int { return new(big.Int).Mul(big.NewInt(sum), big.NewInt(n)) }
	difference := scaled(in.Training.Sum, in.Holdout.N)
	difference.Sub(difference, scaled(in.Holdout.Sum, in.Training.N))
	limit := big.NewInt(int64(math.Round(threshold)))
	for _, v := range noises {
		limit.Add(limit, big.NewInt(v))
	}
	limit.Mul(limit, big.NewInt(in.Training.N))
	return difference.Abs(difference).Cmp(limit) > 0
}

// Preview is the interval that the next answer would get if it were released now and were this value; nil where there is none. For
// thresholdout it is that of an answer that agrees with training; guess_and_check has [Params.Expected] instead.
func (p Params) Preview(s State, value float64) *Interval {
	switch {
	case p.Mechanism == Gaussian:
		return p.gaussianInterval(s, value)
	case p.Mechanism == Split:
		return around(value, p.HalfWidth, "splitting", nil)
	case p.Mechanism == Thresholdout && p.Form == FormLaplace:
		return around(value, p.HalfWidth, "thresholdout-laplace", nil)
	case p.Mechanism == Thresholdout:
		return around(value, p.forcedRuns().Pass(s.Questions, s.Tokens), "thresholdout-forced-runs", nil)
	}
	return nil
}
