package analysts

import (
	"math"

	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Question is a row function with values in [0,1] together with what only the simulation knows of it: exact means over
// either part of the data and the truth. An analyst makes questions and sees answers; it never calls Holdout itself.
type Question struct {
	Truth    float64                                // its mean in the population
	Holdout  func(from, to int64) thresholdout.Mean // over a range of the holdout's units
	Training func() thresholdout.Mean               // over the training part
	Guess    *thresholdout.Guess                    // the analyst's own, for guess_and_check
}

// Oracle answers questions about a holdout, one after another.
type Oracle interface {
	// Ask returns the released value and its interval, which is nil where none is promised.
	Ask(q Question) (value float64, interval *thresholdout.Interval, err error)

	// Remaining is how many more questions are surely answered: as many as there are questions, or tokens, left.
	Remaining() int64
}

// Holdout is the Oracle of a mechanism.
type Holdout struct {
	session.Simulated
}

// NewHoldout is a new holdout under a guarantee, with noise of this seed.
func NewHoldout(p thresholdout.Guarantee, seed uint64) *Holdout {
	return &Holdout{session.Simulated{Guarantee: p, Seed: seed}}
}

// Ask implements Oracle.
func (h *Holdout) Ask(q Question) (float64, *thresholdout.Interval, error) {
	in := thresholdout.Input{Holdout: q.Holdout(h.Slice())}
	if h.Guarantee.UsesTraining() {
		in.Training = q.Training()
	}
	if h.Guarantee.TakesGuesses() {
		in.Guess = q.Guess
	}
	out, err := h.Mean(in)
	return out.Value, out.Interval, err
}

// EndRound says that a batch is over: where questions are asked in rounds, its answers are seen now.
func (h *Holdout) EndRound() { h.State = h.Guarantee.EndRound(h.State) }

// Board is the Oracle of a ladder: a question is a submission's mean loss, and the answer what the board shows.
type Board struct {
	Guarantee thresholdout.Guarantee
	State     thresholdout.State
}

// Ask implements Oracle.
func (b *Board) Ask(q Question) (float64, *thresholdout.Interval, error) {
	shown, next, err := thresholdout.StepLadder(b.Guarantee, b.State, q.Holdout(0, b.Guarantee.N))
	if err != nil {
		return 0, nil, err
	}
	b.State = next
	return shown.Loss, shown.Interval, nil
}

// Remaining implements Oracle.
func (b *Board) Remaining() int64 { return b.Guarantee.Questions - b.State.Questions }

// NonAdaptive is an Oracle whose answers are sold with the intervals of a batch fixed beforehand: value +- sqrt(ln(2k/beta)/2n).
// Over naive reuse it is what a data analyst does who corrects for multiple questions, and not for their being chosen
// after answers.
type NonAdaptive struct {
	Holdout
}

// Ask implements Oracle.
func (o *NonAdaptive) Ask(q Question) (float64, *thresholdout.Interval, error) {
	value, _, err := o.Holdout.Ask(q)
	p := o.Guarantee
	w := math.Sqrt(math.Log(2*float64(p.Questions)/(1-p.Confidence)) / (2 * float64(p.N)))
	return value, &thresholdout.Interval{Low: value - w, High: value + w, Bound: "non-adaptive"}, err
}

// Game is what one run of an analyst against an oracle comes to.
type Game struct {
	Questions int64
	Missed    bool    // some interval does not contain its question's truth
	Worst     float64 // the largest |value - truth|
	Reach     float64 // the largest |value - truth| / half-width of its interval
	Last      float64 // |value - truth| of the last answer, which is where single-adaptive analysts strike
}

// Referee is an Oracle that keeps the score of the game.
type Referee struct {
	Oracle
	Game Game
}

// Ask implements Oracle.
func (r *Referee) Ask(q Question) (float64, *thresholdout.Interval, error) {
	value, interval, err := r.Oracle.Ask(q)
	if err != nil {
		return 0, nil, err
	}
	r.Game.Questions++
	r.Game.Last = math.Abs(value - q.Truth)
	r.Game.Worst = max(r.Game.Worst, r.Game.Last)
	if interval != nil {
		r.Game.Missed = r.Game.Missed || q.Truth < interval.Low || q.Truth > interval.High
		// The farther end: an interval that is cut off at 0 or 1 is no narrower for it.
		if width := max(interval.High-value, value-interval.Low); width > 0 {
			r.Game.Reach = max(r.Game.Reach, r.Game.Last/width)
		}
	}
	return value, interval, nil
}

// EndRound is the oracle's, where it has rounds.
func (r *Referee) EndRound() {
	if o, ok := r.Oracle.(interface{ EndRound() }); ok {
		o.EndRound()
	}
}

// Play lets an analyst play one game.
func Play(a Analyst, o Oracle, seed uint64, n, training int64) (Game, error) {
	r := Referee{Oracle: o}
	err := a.Play(&r, seed, n, training)
	return r.Game, err
}
