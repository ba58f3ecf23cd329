package session

import (
	"math"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Where a promise comes from.
const (
	FromQuestion = "question"
	FromTraining = "training"
)

// Promised is what an answer says of its question's promise, in the query's own units.
type Promised struct {
	Bounds
	From string `json:"from" enum:"question,training" doc:"question: you promised it; training: the training part suggested it"`
	Held *bool  `json:"held" doc:"whether the holdout keeps it; null where no token was left to check it, and the answer is that of a question without one"`
}

// Bounds is a promise in the query's own units: one of its members.
type Bounds struct {
	AtMost       *float64 `json:"at_most,omitempty" doc:"the answer about the holdout is at most so much"`
	AtLeast      *float64 `json:"at_least,omitempty" doc:"the answer about the holdout is at least so much"`
	Disagreement *float64 `json:"disagreement,omitempty" doc:"the mean distance of the values from 0 is at most so much"`
	Variance     *float64 `json:"variance,omitempty" doc:"the variance of the values over the units is at most so much"`
}

// bear makes a question bear the promise that it names, or one that the training part suggests when it is asked: its plan then has summed what decides about it.
func (s *Session) bear(q *Question) error {
	canBear, distances := q.Plan.CanBear()
	switch {
	case q.promise == nil && !(canBear && s.suggests(q.Plan)):
		return nil
	case q.promise == nil:
		q.Plan, q.suggested = q.Plan.Bearing(suggesting(q.Plan, distances)), true
		return nil
	case !s.Guarantee.TakesPromises():
		// As with a guess: it would be part of the question's identity, without any effect.
		return wrong("/promise", "the mechanism %s of this holdout checks no promises; only a guarantee of gaussian with tokens does", s.Guarantee.Mechanism)
	case !canBear:
		return wrong("/promise", "a promise is about one mean over all rows: this query has where, weights or weight row, or is made of more than one mean")
	}
	pledge, err := pledgeOf(q.promise, q.Plan, s.Guarantee.N, distances)
	if err != nil {
		return err
	}
	q.Plan, q.Pledge = q.Plan.Bearing(shape.Beside{Squares: pledge.Kind == thresholdout.Variance, Distances: pledge.Kind == thresholdout.Disagreement}), &pledge
	return nil
}

// suggests reports whether the training part's promise is good enough to be taken without being asked: where both parts are alike, and where nothing of the question can have been fitted to
// the training part. A broken one would widen all later answers.
func (s *Session) suggests(plan *queries.Plan) bool {
	return s.RandomSplit && s.Guarantee.TakesPromises() && s.Guarantee.Training > 0 && !plan.Fitted && !plan.HoldoutOnly
}

// suggesting is what the training part is asked about a plan, to suggest a promise.
func suggesting(plan *queries.Plan, distances bool) shape.Beside {
	e := plan.Equation()
	return shape.Beside{Squares: e == nil || !e.Binary, Distances: distances, Suggest: true} // of 0 and 1, a variance says no more than the mean
}

// Explained is the question as it is explained: where it bears no promise, with what the training part says about one, so that it can be suggested.
func (s *Session) Explained(q *Question) *Question {
	canBear, distances := q.Plan.CanBear()
	if q.Pledge != nil || !canBear || !s.Guarantee.TakesPromises() || q.Plan.HoldoutOnly {
		return q
	}
	explained := *q
	explained.Plan = q.Plan.Bearing(suggesting(q.Plan, distances))
	return &explained
}

// bearsPromise reports whether a question can be answered with a promise: its own, or one that the training part suggests.
func (q *Question) bearsPromise() bool { return q.Pledge != nil || q.suggested }

// pledgeOf is a promise about the row function of a plan, in [0,1], of a holdout of n units.
func pledgeOf(p *queries.Promise, plan *queries.Plan, n int64, distances bool) (thresholdout.Pledge, error) {
	u := unitsOf(plan, n)
	var kind thresholdout.PledgeKind
	var bound float64
	var hint string
	switch {
	case p.AtMost != nil:
		kind, bound, hint = thresholdout.AtMost, u.down(*p.AtMost), "it must be above the low end of the answer's range and at most its middle; beyond, use at_least or variance"
	case p.AtLeast != nil:
		kind, bound, hint = thresholdout.AtLeast, 1-u.down(*p.AtLeast), "it must be at least the middle of the answer's range and below its high end; else use at_most or variance"
	case p.Disagreement != nil:
		kind, bound, hint = thresholdout.Disagreement, *p.Disagreement/(u.high*u.times), "it must be above 0 and at most the high end of the range"
		if !distances {
			return thresholdout.Pledge{}, wrong("/promise/disagreement", "a disagreement is of values whose range is symmetric about 0, as those of a compare of two answers with one range are; use variance")
		}
	default:
		kind, bound, hint = thresholdout.Variance, *p.Variance/(u.width()*u.width()), "it must be above 0 and at most a quarter of the square of the range's width"
	}
	pledge, err := thresholdout.NewPledge(kind, bound)
	if err != nil || math.IsNaN(bound) {
		return pledge, wrong("/promise/"+string(kind), "%s", "a bound that says nothing: "+hint)
	}
	return pledge, nil
}

// units are the query's own: a mean of 0 is low, one of 1 is high, and the answer is times that.
type units struct{ low, high, times float64 }

func unitsOf(plan *queries.Plan, n int64) units {
	a := plan.Affine()
	u := units{a.Low, a.High, 1}
	if a.PerUnit {
		u.times = float64(n)
	}
	return u
}

func (u units) width() float64 { return u.high - u.low }

// down moves an answer to [0,1].
func (u units) down(answer float64) float64 { return (answer/u.times - u.low) / u.width() }

// up moves a mean in [0,1] to an answer.
func (u units) up(x float64) float64 { return (u.low + x*u.width()) * u.times }

// Bounds says a pledge in the query's own units: as the question named it, if it did.
func (s *Session) Bounds(q *Question, p thresholdout.Pledge) (b Bounds) {
	if named := q.promise; named != nil && q.Pledge != nil {
		return Bounds{named.AtMost, named.AtLeast, named.Disagreement, named.Variance}
	}
	u, x := unitsOf(q.Plan, s.Guarantee.N), p.Value()
	switch p.Kind {
	case thresholdout.AtMost:
		x = u.up(x)
		b.AtMost = &x
	case thresholdout.AtLeast:
		x = u.up(1 - x)
		b.AtLeast = &x
	case thresholdout.Disagreement:
		x *= u.high * u.times
		b.Disagreement = &x
	case thresholdout.Variance:
		x *= u.width() * u.width()
		b.Variance = &x
	}
	return b
}

// promised is what an answer says of its question's promise; nil where it has none.
func (s *Session) promised(q *Question, kept *thresholdout.Kept) *Promised {
	if kept == nil {
		return nil
	}
	p := &Promised{Bounds: s.Bounds(q, kept.Pledge), From: FromTraining}
	if q.Pledge != nil {
		p.From = FromQuestion
	}
	if kept.Checked {
		p.Held = &kept.Held
	}
	return p
}

// besideOf are the sums for promises of one pass over a part.
func besideOf(plan *queries.Plan, sums shape.BesideSums) (b Beside) {
	b.Distances = sums.Distances
	if sums.Squares != nil {
		squares := moments.Wide(*sums.Squares)
		b.Squares = &squares
	}
	if sums.Third != nil {
		b.Higher = &thresholdout.Higher{Third: moments.Wide(*sums.Third), Fourth: moments.Wide(*sums.Fourth)}
	}
	return b
}

// Beside are the sums of a part that decide about promises, or suggest them.
type Beside struct {
	thresholdout.PledgeSums
	Higher *thresholdout.Higher
}

// Pledge is the one that a question bears in this state: its own, or what the training part suggests; nil for none. It is a function of public facts. A test in the first
// request keeps its plain p-value instead, which is of an answer without a promise.
func (s *Session) Pledge(state thresholdout.State, q *Question, training PartSums) *thresholdout.Pledge {
	if q.Pledge != nil || !q.suggested {
		return q.Pledge
	}
	if _, _, fresh := s.Guarantee.FreshNoise(state, state); fresh && q.Plan.Test != nil {
		return nil
	}
	return s.Suggested(state, training)
}

// Suggested is the promise that the training part suggests for the next question; nil for none.
func (s *Session) Suggested(state thresholdout.State, training PartSums) *thresholdout.Pledge {
	if len(training.Means) != 1 || training.Beside == nil {
		return nil
	}
	p, ok := s.Guarantee.DefaultPledge(state, thresholdout.PledgeTraining{Mean: training.Means[0], PledgeSums: training.Beside.PledgeSums, Higher: training.Beside.Higher})
	if !ok {
		return nil
	}
	return &p
}
