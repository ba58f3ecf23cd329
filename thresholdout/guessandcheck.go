package thresholdout

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Guess is an analyst's own guess of a row function's mean, for a mechanism that takes guesses.
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

// MethodGuessCheck is the name of its method, and of the bound that its answers name.
const MethodGuessCheck = "guess-and-check"

var guessAndCheckKind = Kind{
	Name:     GuessAndCheck,
	Says:     "confirms a guess, the training mean or the analyst's own, where the holdout agrees; else answers from the holdout, for a token",
	Takes:    []string{ParamTokens},
	Assumes:  "guesses from the training part are mostly right: each that is not spends a token and widens later intervals, and without tokens no new question is answered. The intervals themselves hold whatever is guessed",
	Variants: []Variant{{"", (*guessAndCheck)(nil)}},
	Methods: []Method{{Name: MethodGuessCheck, Formula: "|g-h| ≤ d, then n kl(g±d || x) ≤ E = ln(2k(B+1)/β) + ln C(j,f) + f ln c + …",
		Source: "[proof](proofs/guess-and-check.md), after Rogers et al., arXiv 1906.09231"}},
	Plan: planGuessAndCheck,
	Read: readGuessAndCheck,
}

// guessAndCheck answers with a guess while the holdout mean is near it, else from the holdout for a token
// (docs/proofs/guess-and-check.md).
type guessAndCheck struct {
	Head
	Widths int     `json:"widths" doc:"at how many widths a guess is checked"`                                                          // at how many widths a guess is checked
	Cells  int64   `json:"cells" doc:"an answer after a wrong guess is the midpoint of one of so many cells of [0,1]; 0: it has noise"` // a failure tells the midpoint of one of so many cells; 0: noise Sigma
	Sigma  float64 `json:"sigma,omitempty" doc:"the noise of an answer after a wrong guess"`                                            // of a failure's noise, where it has no cells
}

// passes is what guess_and_check remembers.
type passes struct {
	Wide int64 `json:"wide"` // guesses that passed at a wider width than the narrowest, which later widths pay for
}

// planGuessAndCheck plans the widths and the releases from public facts.
func planGuessAndCheck(s Spec) (Mechanism, error) {
	if s.Training < 1 {
		return nil, wrong("mechanism", "guess_and_check takes its guesses from a training part, and there is none; use gaussian")
	}
	s, err := s.withTokens()
	if err != nil {
		return nil, err
	}
	m := &guessAndCheck{Head: s.Head(), Widths: widths}
	// A release is as near to the holdout mean as a pass at the narrowest width, so a failure's interval is no wider.
	plan := m.check().PlannedRelease(float64(m.margin(grid/2, 0)) / float64(grid))
	m.Cells, m.Sigma = plan.Cells, plan.Sigma
	m.HalfWidth = m.planned(State{}, grid/2)
	return m, nil
}

// readGuessAndCheck reads a stored one.
func readGuessAndCheck(text []byte) (Mechanism, error) {
	m, err := ReadAs[guessAndCheck](text)
	if g, ok := m.(*guessAndCheck); ok && (g.Widths < 1 || g.Cells < 0 || g.Cells == 0 && !(g.Sigma > 0) || g.Training < 1 || g.Tokens < 1) {
		return nil, errHead
	}
	return m, err
}

// ComparesWithTraining implements [Compares].
func (m *guessAndCheck) ComparesWithTraining() {}

// ReadMemory implements [Remembers].
func (m *guessAndCheck) ReadMemory(text []byte) (Memory, error) {
	var p passes
	err := json.Unmarshal(text, &p)
	return p, err
}

// passedWide is how many guesses passed at a wider width.
func passedWide(s State) int64 {
	p, _ := s.Memory.(passes)
	return p.Wide
}

func (m *guessAndCheck) check() bounds.GradedCheck {
	return bounds.GradedCheck{N: m.N, Questions: m.Questions, Tokens: m.Tokens, Beta: m.Beta(), Widths: m.Widths, Cells: m.Cells, Sigma: m.Sigma}
}

// level is E of the next question.
func (m *guessAndCheck) level(s State) float64 {
	return m.check().Level(s.Questions, s.Tokens, passedWide(s))
}

// margin is how many steps of 2^-30 a guess may be away from the holdout mean at the planned width of this rank. With s the sum
// of the parts' 1/n, the difference of their means has variance v s, v <= p(1-p) <= 1/4 the row variance, which the
// guess itself tells within the same uncertainty (Wilson's interval).
func (m *guessAndCheck) margin(guess int64, rank int) int64 {
	g, s := float64(guess)/float64(grid), 1/float64(m.N)+1/float64(m.Training)
	const z = deviations
	far := min(z*math.Sqrt(s)/2, z*math.Sqrt(s*g*(1-g)+z*z*s*s/4)+z*z*s/2)
	return int64(min(math.Ceil(math.Ldexp(far*float64(grid), rank)), float64(grid)))
}

// within is the interval of a question whose holdout mean is known to lie between low and high.
func (h *Head) within(level, low, high float64) (float64, float64) {
	low, _ = bounds.ChernoffInterval(float64(h.N), low, level)
	_, high = bounds.ChernoffInterval(float64(h.N), high, level)
	return max(0, low-gridError), min(1, high+gridError) // a row function's values are rounded to the grid
}

// reported is the interval of an answer that is known to be within near of the holdout mean, for the reason named.
func (m *guessAndCheck) reported(level, value, near float64, reason string) *Interval {
	low, high := m.within(level, value-near, value+near)
	bound := MethodGuessCheck
	if m.Cells == 0 {
		bound = MethodGuessCheck + "-gaussian"
	}
	return &Interval{Low: low, High: high, Bound: bound,
		Parts: map[string]float64{reason: near, "sampling_and_adaptivity": max(high-value, value-low) - near}}
}

// planned is the half-width that a guess passes with at the narrowest planned width.
func (m *guessAndCheck) planned(s State, guess int64) float64 {
	v := float64(guess) / float64(grid)
	i := m.reported(m.level(s), v, float64(m.margin(guess, 0))/float64(grid), "agreement")
	return max(i.High-v, v-i.Low)
}

// margins are the steps that a guess may be away, narrowest first, and the guess in steps.
func (m *guessAndCheck) margins(s State, training Mean, g *Guess) (guess int64, margins []int64, err error) {
	guess = (training.Sum + training.N/2) / training.N
	if g != nil && g.Value != nil {
		if !(*g.Value >= 0 && *g.Value <= 1) {
			return 0, nil, fmt.Errorf("thresholdout: guess %v is not within 0 and 1", *g.Value)
		}
		guess = int64(math.Floor(*g.Value*float64(grid) + 0.5))
	}
	if g == nil || g.HalfWidth == 0 {
		for rank := range m.Widths {
			margins = append(margins, m.margin(guess, rank))
		}
		return guess, margins, nil
	}
	if !(g.HalfWidth > 0 && g.HalfWidth <= 1) {
		return 0, nil, fmt.Errorf("thresholdout: half_width %v is not between 0 and 1", g.HalfWidth)
	}
	margin := m.marginOf(s, guess, g.HalfWidth)
	if margin < 1 {
		v := float64(guess) / float64(grid)
		low, high := m.within(m.level(s)*(1+1e-11), v-2*gridError, v+2*gridError) // a little more than marginOf asks for
		return 0, nil, &WidthError{HalfWidth: g.HalfWidth, Least: max(high-v, v-low) + 2*gridError, Planned: m.planned(s, guess)}
	}
	return guess, []int64{margin}, nil
}

// marginOf is the most steps that a guess may be away for its interval to be within guess±width; below 1 if there is none. A side
// that reaches 0 or 1 always holds.
func (m *guessAndCheck) marginOf(s State, guess int64, width float64) int64 {
	n, level, v := float64(m.N), m.level(s), float64(guess)/float64(grid)
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

// Expected implements [Guesses].
func (m *guessAndCheck) Expected(s State, training Mean, g *Guess) (value float64, _ *Interval, err error) {
	guess, margins, err := m.margins(s, training, g)
	if err != nil {
		return 0, nil, err
	}
	value = float64(guess) / float64(grid)
	return value, m.reported(m.level(s), value, float64(margins[0])/float64(grid), "agreement"), nil
}

// Release implements [Mechanism]: the guess and the narrowest width that passes, else from the holdout for a token. All comparisons are of
// integers: |Sum - n guess| <= n margin in steps of the sum; each product is at most 2^61. Widths may depend on the transcript
// and on the question, for the union that pays for them is over transcripts.
func (m *guessAndCheck) Release(s State, in Input, from Noise) (Output, Memory, error) {
	guess, margins, err := m.margins(s, in.Training, in.Guess)
	if err != nil {
		return Output{}, nil, err
	}
	level, n := m.level(s), in.Holdout.N
	away := in.Holdout.Sum - n*guess
	away = max(away, -away)
	for rank, steps := range margins {
		if away > n*steps {
			continue
		}
		out := Output{Value: float64(guess) / float64(grid), Source: FromTraining, Margin: float64(steps) / float64(grid)}
		if in.Guess != nil && in.Guess.Value != nil {
			out.Source = FromGuess
		}
		out.Interval = m.reported(level, out.Value, out.Margin, "agreement")
		if rank > 0 {
			return out, passes{passedWide(s) + 1}, nil
		}
		return out, s.Memory, nil
	}
	out := Output{Source: FromHoldout, Tokens: 1}
	reason := "rounding"
	if m.Cells > 0 {
		out.Value = in.Holdout.cell(m.Cells)
	} else {
		reason = "noise"
		out.Value = in.Holdout.value(noise.RoundedNormal(from.Answer("release", s.Tokens, m.Sigma), steps(m.Sigma, m.N)))
	}
	out.Interval = m.reported(level, out.Value, m.releaseError(), reason)
	return out, s.Memory, nil
}

// releaseError is how far a failure's answer may be from the holdout mean: by its cell for sure, by its noise at the confidence.
func (m *guessAndCheck) releaseError() float64 { return m.check().ReleaseError() + gridError }

// Preview implements [Mechanism]: of a guess that passes at the narrowest width.
func (m *guessAndCheck) Preview(s State, value float64) *Interval {
	return m.reported(m.level(s), value, float64(m.margin(int64(math.Round(value*float64(grid))), 0))/float64(grid), "agreement")
}

// Promise implements [Mechanism].
func (m *guessAndCheck) Promise(s State) (Promise, bool) {
	width, near := m.planned(s, grid/2), float64(m.margin(grid/2, 0))/float64(grid)
	return Promise{HalfWidth: width, Sigma: m.Sigma, Parts: map[string]float64{"agreement": near, "sampling_and_adaptivity": width - near}}, true
}

// At implements [Levels]. How far an answer may be from the holdout mean is a fact at every level, but for noise.
func (m *guessAndCheck) At(s State, o Output, level float64) (low, high float64, ok bool) {
	other := *m
	if other.Head, ok = m.at(level); !ok {
		return 0, 0, false
	}
	near := o.Margin
	if o.Source == FromHoldout {
		near = other.releaseError()
	}
	return other.reported(other.level(s), o.Value, near, "").ends()
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
