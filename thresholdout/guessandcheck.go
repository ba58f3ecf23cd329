package thresholdout

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Guess is an analyst's own guess of a row function's mean, for guess_and_check.
type Guess struct {
	Value     *float64 // in [0,1]; nil is the training mean
	HalfWidth float64  // in [0,1], to be checked at; 0 is the planned widths
}

// WidthError refuses a half-width at which no guess can pass: the tolerance for adaptive questions alone is wider. It
// depends on the state and on public facts only.
type WidthError struct {
	HalfWidth float64 // that was asked for
	Least     float64 // the least that can pass now
	Planned   float64 // what the question is checked at without a width of its own
}

func (e *WidthError) Error() string {
	return fmt.Sprintf("thresholdout: half_width: no guess passes at %.4g; the least now is %.4g, and %.4g leaves room for a good guess", e.HalfWidth, e.Least, e.Planned)
}

const (
	// widths of the graded check. The second is twice as far as the first: beyond six standard deviations a difference is no
	// chance, and more widths would cost every wide pass their logarithm.
	widths = 2

	// deviations is the standard deviations of training mean minus holdout mean that the narrowest width leaves room for: a
	// fixed question misses it about three times in a thousand.
	deviations = 3.0
)

// guessAndCheck plans the widths and the releases from public facts.
func (p Params) guessAndCheck() (Params, error) {
	if p.Training < 1 {
		return p, wrong("mechanism", "guess_and_check takes its guesses from a training part, and there is none; use gaussian")
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
	given := p
	p.Widths = widths
	plan := p.check()
	plan.Cells, plan.Sigma = 0, 0
	// A release is as near to the holdout mean as a pass at the narrowest width, so a failure's interval is no wider.
	plan = plan.PlannedRelease(float64(p.margin(grid/2, 0)) / float64(grid))
	p.Cells, p.Sigma = plan.Cells, plan.Sigma
	p.HalfWidth = p.planned(State{}, grid/2)
	for _, f := range []struct {
		field string
		given bool
	}{
		{"half_width", given.HalfWidth != 0 && given.HalfWidth != p.HalfWidth},
		{"sigma", given.Sigma != 0 && given.Sigma != p.Sigma},
		{"cells", given.Cells != 0 && given.Cells != p.Cells},
		{"widths", given.Widths != 0 && given.Widths != p.Widths},
	} {
		if f.given {
			return p, wrong(f.field, "guess_and_check plans it itself; a query can name its own half_width")
		}
	}
	return p, nil
}

func (p Params) check() bounds.GradedCheck {
	return bounds.GradedCheck{N: p.N, Questions: p.Questions, Tokens: p.Tokens, Beta: p.beta(), Widths: p.Widths, Cells: p.Cells, Sigma: p.Sigma}
}

// level is E of the next question.
func (p Params) level(s State) float64 { return p.check().Level(s.Questions, s.Tokens, s.Wide) }

// margin is how many steps of 2^-30 a guess may be away from the holdout mean at the planned width of this rank. With s the sum
// of the parts' 1/n, the difference of their means has variance v s, v <= p(1-p) <= 1/4 the row variance, which the
// guess itself tells within the same uncertainty (Wilson's interval).
func (p Params) margin(guess int64, rank int) int64 {
	g, s := float64(guess)/float64(grid), 1/float64(p.N)+1/float64(p.Training)
	const z = deviations
	far := min(z*math.Sqrt(s)/2, z*math.Sqrt(s*g*(1-g)+z*z*s*s/4)+z*z*s/2)
	return int64(min(math.Ceil(math.Ldexp(far*float64(grid), rank)), float64(grid)))
}

// within is the interval of a question whose holdout mean is known to lie between low and high.
func (p Params) within(level, low, high float64) (float64, float64) {
	low, _ = bounds.ChernoffInterval(float64(p.N), low, level)
	_, high = bounds.ChernoffInterval(float64(p.N), high, level)
	return max(0, low-gridError), min(1, high+gridError) // a row function's values are rounded to the grid
}

// reported is the interval of an answer that is known to be within near of the holdout mean, for the reason named.
func (p Params) reported(level, value, near float64, reason string) *Interval {
	low, high := p.within(level, value-near, value+near)
	bound := "guess-and-check"
	if p.Cells == 0 {
		bound = "guess-and-check-gaussian"
	}
	return &Interval{Low: low, High: high, Bound: bound,
		Parts: map[string]float64{reason: near, "sampling_and_adaptivity": max(high-value, value-low) - near}}
}

// planned is the half-width that a guess passes with at the narrowest planned width.
func (p Params) planned(s State, guess int64) float64 {
	v := float64(guess) / float64(grid)
	i := p.reported(p.level(s), v, float64(p.margin(guess, 0))/float64(grid), "agreement")
	return max(i.High-v, v-i.Low)
}

// margins are the steps that a guess may be away, narrowest first, and the guess in steps.
func (p Params) margins(s State, training Mean, g *Guess) (guess int64, margins []int64, err error) {
	guess = (training.Sum + training.N/2) / training.N
	if g != nil && g.Value != nil {
		if !(*g.Value >= 0 && *g.Value <= 1) {
			return 0, nil, fmt.Errorf("thresholdout: guess %v is not within 0 and 1", *g.Value)
		}
		guess = int64(math.Floor(*g.Value*float64(grid) + 0.5))
	}
	if g == nil || g.HalfWidth == 0 {
		for rank := range p.Widths {
			margins = append(margins, p.margin(guess, rank))
		}
		return guess, margins, nil
	}
	if !(g.HalfWidth > 0 && g.HalfWidth <= 1) {
		return 0, nil, fmt.Errorf("thresholdout: half_width %v is not between 0 and 1", g.HalfWidth)
	}
	margin := p.marginOf(s, guess, g.HalfWidth)
	if margin < 1 {
		v := float64(guess) / float64(grid)
		low, high := p.within(p.level(s)*(1+1e-11), v-2*gridError, v+2*gridError) // a little more than marginOf asks for
		return 0, nil, &WidthError{HalfWidth: g.HalfWidth, Least: max(high-v, v-low) + 2*gridError, Planned: p.planned(s, guess)}
	}
	return guess, []int64{margin}, nil
}

// marginOf is the most steps that a guess may be away for its interval to be within guess±width; below 1 if there is none. A side
// that reaches 0 or 1 always holds.
func (p Params) marginOf(s State, guess int64, width float64) int64 {
	n, level, v := float64(p.N), p.level(s), float64(guess)/float64(grid)
	// Two steps for the grid (see within), and a margin for the rounding of the divergence.
	width -= 2 * gridError
	level *= 1 + 1e-12
	holds := func(steps int64) bool {
		d := float64(steps) / float64(grid)
		above := v+width >= 1 || n*bounds.KL(v+d, v+width) >= level
		below := v-width <= 0 || n*bounds.KL(v-d, v-width) >= level
		return above && below
	}
	lo, hi := int64(0), max(0, int64(width*float64(grid)))+1
	if v+width >= 1 && v-width <= 0 {
		return grid // any answer is within
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; holds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// Expected is the value and the interval of the next answer if its guess passes, from public facts alone; err is a
// [*WidthError] if its half-width cannot pass. It is for guess_and_check.
func (p Params) Expected(s State, training Mean, g *Guess) (value float64, _ *Interval, err error) {
	if err := training.check(p.Training); err != nil {
		return 0, nil, fmt.Errorf("thresholdout: training: %w", err)
	}
	guess, margins, err := p.margins(s, training, g)
	if err != nil {
		return 0, nil, err
	}
	value = float64(guess) / float64(grid)
	return value, p.reported(p.level(s), value, float64(margins[0])/float64(grid), "agreement"), nil
}

// guessStep answers with the guess and the narrowest width that passes, else from the holdout for a token. All comparisons are of
// integers: |Sum - n guess| <= n margin in steps of the sum; each product is at most 2^61. Widths may depend on the transcript
// and on the question, for the union that pays for them is over transcripts.
func (p Params) guessStep(s State, in Input, from Noise) (out Output, wide int64, err error) {
	guess, margins, err := p.margins(s, in.Training, in.Guess)
	if err != nil {
		return out, 0, err
	}
	level, n := p.level(s), in.Holdout.N
	away := in.Holdout.Sum - n*guess
	away = max(away, -away)
	for rank, margin := range margins {
		if away <= n*margin {
			value := float64(guess) / float64(grid)
			source := FromTraining
			if in.Guess != nil && in.Guess.Value != nil {
				source = FromGuess
			}
			return Output{Value: value, Source: source, Interval: p.reported(level, value, float64(margin)/float64(grid), "agreement")}, int64(min(rank, 1)), nil
		}
	}
	near := p.check().ReleaseError()
	out = Output{Source: FromHoldout, Tokens: 1}
	if p.Cells > 0 {
		out.Value = in.Holdout.cell(p.Cells)
		out.Interval = p.reported(level, out.Value, near+gridError, "rounding")
		return out, 0, nil
	}
	out.Value = in.Holdout.value(noise.RoundedNormal(from.Answer("release", s.Tokens, p.Sigma), steps(p.Sigma, p.N)))
	out.Interval = p.reported(level, out.Value, near+gridError, "noise")
	return out, 0, nil
}

// cell is the midpoint of the mean's cell of [0,1], rounded to the grid: the cell is floor(mean cells), the last one closed.
func (m Mean) cell(cells int64) float64 {
	all := uint64(m.N) << 30
	hi, lo := bits.Mul64(uint64(m.Sum), uint64(cells))
	index := uint64(cells) - 1
	if uint64(m.Sum) < all {
		index, _ = bits.Div64(hi, lo, all)
	}
	// (2 index + 1)/(2 cells) in steps, rounded half up.
	hi, lo = bits.Mul64(2*index+1, uint64(grid))
	lo, carry := bits.Add64(lo, uint64(cells), 0)
	steps, _ := bits.Div64(hi+carry, lo, 2*uint64(cells))
	return float64(steps) / float64(grid)
}
