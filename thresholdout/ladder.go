package thresholdout

import (
	"encoding/json"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

var ladderKind = Kind{
	Name:     Ladder,
	Says:     "a leaderboard of zero_one losses, which shows the best loss so far",
	Takes:    []string{ParamThreshold},
	Variants: []Variant{{"", (*ladder)(nil)}},
	Plan:     planLadder,
	Read:     ReadAs[ladder],
}

// ladder is the Ladder of Blum and Hardt (arXiv 1502.04585) with a fixed step: the board shows the loss of the best submission so far, rounded
// to a multiple of the step eta, and moves only for a submission whose loss is more than eta below what it shows. There is no noise. What the
// board tells is where it moved and to which multiples, so that its runs can be counted, and an interval for the loss of the
// submission that it shows holds whoever submits what (docs/proofs/ladder.md).
type ladder struct {
	Head
	Threshold float64 `json:"threshold" doc:"the step by which the board moves"` // eta, the board's step, a whole number of units of N
}

// Board is what a ladder remembers.
type Board struct {
	Shown int64 `json:"shown"` // the loss shown, in steps, once there is a submission
	Moves int64 `json:"moves"` // so far; the first submission moves it
	Place int64 `json:"place"` // of the submission that is shown: it was the Place-th
}

// planLadder plans the step of a ladder, where it is not given, and what its intervals can become.
func planLadder(s Spec) (Mechanism, error) {
	s = s.orDefault(DefaultSubmissions)
	m := &ladder{Head: s.Head(), Threshold: s.Threshold}
	step := m.step()
	if s.Threshold == 0 {
		step = bounds.LadderStep(s.N, s.Questions, m.Beta())
	} else if step < 1 {
		return nil, wrong("threshold", "%v is less than one of %d units; the board moves by whole units", s.Threshold, s.N)
	}
	m.Threshold = float64(step) / float64(s.N)
	m.HalfWidth = m.steps().Widest(s.Questions)
	return m, nil
}

// step is the step of the board in units: eta N.
func (m *ladder) step() int64 { return int64(math.Round(m.Threshold * float64(m.N))) }

func (m *ladder) steps() bounds.LadderSteps {
	return bounds.LadderSteps{N: m.N, Step: m.step(), Beta: m.Beta()}
}

// ReadMemory implements [Remembers].
func (m *ladder) ReadMemory(text []byte) (Memory, error) {
	var b Board
	err := json.Unmarshal(text, &b)
	return b, err
}

// Submit implements [Submissions]. The comparison is of integers: a loss of Sum/(N 2^30) moves a board that shows Shown steps
// if Sum < (Shown-1) Step 2^30.
func (m *ladder) Submit(s State, loss Mean) (Standing, Memory) {
	step := m.step() * grid // at most 2^61
	board, begun := s.Memory.(Board)
	best := !begun || loss.Sum < (board.Shown-1)*step
	if best {
		board.Shown = loss.Sum / step
		if loss.Sum%step >= step-step/2 { // rounded half up
			board.Shown++
		}
		board.Moves++
		board.Place = s.Questions + 1
	}
	return Standing{Loss: min(1, float64(board.Shown)*float64(m.step())/float64(m.N)), Best: best, Interval: m.interval(board)}, board
}

// interval is that of the loss of the submission that is shown. Its loss on the holdout is within half a step of what is
// shown; how far that is from its loss in the population depends on how many runs of the board there were before it.
func (m *ladder) interval(b Board) *Interval {
	level := m.steps().Level(b.Place, b.Moves-1)
	eta := float64(m.step()) / float64(m.N)
	low, high := m.within(level, max(0, (float64(b.Shown)-0.5)*eta), min(1, (float64(b.Shown)+0.5)*eta))
	shown := min(1, float64(b.Shown)*eta)
	return &Interval{Low: low, High: high, Bound: "ladder-steps",
		Parts: map[string]float64{"rounding": eta / 2, "sampling_and_adaptivity": max(0, max(high-shown, shown-low)-eta/2)}}
}

// Release implements [Mechanism]: a question is a submission.
func (m *ladder) Release(s State, in Input, _ Noise) (Output, Memory, error) {
	standing, memory := m.Submit(s, in.Holdout)
	return Output{Value: standing.Loss, Interval: standing.Interval, Source: FromHoldout}, memory, nil
}

// Preview implements [Mechanism]: what the board will show is not known.
func (m *ladder) Preview(State, float64) *Interval { return nil }

// Promise implements [Mechanism]: what the board shows is no answer to a question.
func (m *ladder) Promise(State) (Promise, bool) { return Promise{}, false }

// within is the interval of a question whose holdout mean is known to lie between low and high.
func (h *Head) within(level, low, high float64) (float64, float64) {
	low = bounds.ChernoffLow(float64(h.N), low, level)
	high = bounds.ChernoffHigh(float64(h.N), high, level)
	return max(0, low-gridError), min(1, high+gridError) // a row function's values are rounded to the grid
}
