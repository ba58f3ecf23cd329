package thresholdout

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// The Ladder of Blum and Hardt (arXiv 1502.04585) with a fixed step: the board shows the loss of the best submission so far, rounded
// to a multiple of the step eta, and moves only for a submission whose loss is more than eta below what it shows. There is no noise. What the
// board tells is where it moved and to which multiples, so that its runs can be counted, and an interval for the loss of the
// submission that it shows holds whoever submits what (docs/proofs/ladder.md).

// Board is the state of a ladder.
type Board struct {
	Shown int64 `json:"shown"` // the loss shown, in steps, once there is a submission
	Moves int64 `json:"moves"` // so far; the first submission moves it
	Place int64 `json:"place"` // of the submission that is shown: it was the Place-th
}

// Standing is what may be shown after a submission.
type Standing struct {
	Loss     float64   // of the best submission so far, as the board shows it
	Best     bool      // this submission is the best
	Interval *Interval // of the shown submission's loss in the population; nil for a ladder without a proof
}

// leaderboard plans the step of a ladder, where it is not given, and what its intervals can become.
func (p Params) leaderboard() (Params, error) {
	if p.Questions == 0 {
		p.Questions = DefaultSubmissions
	}
	step := p.Step()
	if p.Threshold == 0 {
		step = bounds.LadderStep(p.N, p.Questions, p.beta())
	} else if step < 1 {
		return p, wrong("threshold", "%v is less than one of %d units; the board moves by whole units", p.Threshold, p.N)
	}
	p.Threshold = float64(step) / float64(p.N)
	return p.planWidth(p.steps().Widest(p.Questions))
}

// Step is the step of a ladder in units: eta N.
func (p Params) Step() int64 { return int64(math.Round(p.Threshold * float64(p.N))) }

func (p Params) steps() bounds.LadderSteps {
	return bounds.LadderSteps{N: p.N, Step: p.Step(), Beta: p.beta()}
}

// StepLadder is one step of the mechanism ladder: a submission has this mean loss. It is decided by the state alone whether there are submissions left: ErrNoQuestions. The comparison is of integers: a loss of Sum/(N 2^30) moves a
// board that shows Shown steps if Sum < (Shown-1) Step 2^30.
func StepLadder(p Params, s State, in Mean) (Standing, State, error) {
	if p.Mechanism != Leaderboard {
		return Standing{}, s, fmt.Errorf("thresholdout: the mechanism %s has no board", p.Mechanism)
	}
	if s.Questions >= p.Questions {
		return Standing{}, s, ErrNoQuestions
	}
	if err := in.check(p.N); err != nil {
		return Standing{}, s, fmt.Errorf("thresholdout: losses: %w", err)
	}
	step := p.Step() * grid // at most 2^61
	s.Questions++
	var board Board
	if s.Board != nil {
		board = *s.Board
	}
	best := s.Board == nil || in.Sum < (board.Shown-1)*step
	if best {
		board.Shown = in.Sum / step
		if in.Sum%step >= step-step/2 { // rounded half up
			board.Shown++
		}
		board.Moves++
		board.Place = s.Questions
	}
	s.Board = &board
	return Standing{Loss: min(1, float64(board.Shown)*float64(p.Step())/float64(p.N)), Best: best, Interval: p.boardInterval(board)}, s, nil
}

// boardInterval is that of the loss of the submission that is shown. Its loss on the holdout is within half a step of what is
// shown; how far that is from its loss in the population depends on how many runs of the board there were before it.
func (p Params) boardInterval(b Board) *Interval {
	steps := p.steps()
	level := steps.Level(b.Place, b.Moves-1)
	eta := float64(p.Step()) / float64(p.N)
	low, high := p.within(level, max(0, (float64(b.Shown)-0.5)*eta), min(1, (float64(b.Shown)+0.5)*eta))
	shown := min(1, float64(b.Shown)*eta)
	return &Interval{Low: low, High: high, Bound: "ladder-steps",
		Parts: map[string]float64{"rounding": eta / 2, "sampling_and_adaptivity": max(0, max(high-shown, shown-low)-eta/2)}}
}
