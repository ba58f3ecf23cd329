package session

import (
	"maps"
	"slices"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What an asker guesses, for a mechanism that checks guesses: the answer, or some of its items, and how narrow its interval is to be if the guess passes.

// guessed is what a query guesses.
type guessed struct {
	values    []*float64 // of each number that is released, in the query's units; nil: the training part's
	halfWidth float64    // of the only number, in the query's units; 0: planned
	places    []shape.Place
	measure   bool        // it is to be measured
	null      *shape.Test // what the only number is to be told from; nil: nothing
}

// guessed checks what a query guesses against the guarantee and the form in which it is released; nil if it guesses nothing. Errors are *[WrongError].
func (s *Session) guessed(query *queries.Query, plan *queries.Plan) (*guessed, error) {
	value, named := query.Guess()
	halfWidth, wide := query.HalfWidth()
	items := query.Guesses()
	measure, said := query.Measures()
	if !named && !wide && !said && items == nil {
		return s.tested(&guessed{values: []*float64{nil}}, plan), nil
	}
	name := "guess"
	switch {
	case measure, said && !named && !wide && items == nil:
		name = "measure"
	case wide && !named:
		name = "half_width"
	}
	// Only a mechanism that checks guesses may take one: elsewhere it would be part of the question's identity, so the
	// same question could be asked again and again, each time at its price, without any effect.
	if !s.Guarantee.TakesGuesses() {
		return nil, wrong("/"+name, "the mechanism %s of this holdout takes no %s", s.Guarantee.Mechanism, name)
	}
	if !named && !wide && !measure && items == nil {
		return s.tested(&guessed{values: []*float64{nil}}, plan), nil
	}
	g := &guessed{halfWidth: halfWidth, measure: measure, places: plan.Places(s.Guarantee.N), values: make([]*float64, plan.Numbers())}
	switch {
	case items == nil && plan.Numbers() > 1:
		return nil, wrong("/"+name, "this query is made of %d numbers, and each has its own check; %s is for queries that are checked as one", plan.Numbers(), name)
	case g.places == nil:
		return nil, wrong("/"+name, "the numbers that this query releases are not those of its answer, and each has its own check; %s is for queries that are checked as one", name)
	case measure && !measurable(plan):
		return nil, wrong("/measure", "a %s is not measured: means and shares are, of all units or of those with a condition. Ask without measure, or ask it in the final report", query.Type())
	case wide && halfWidth > g.places[0].Range.High-g.places[0].Range.Low:
		return nil, wrong("/half_width", "must not be more than the width of the answer's range %v", g.places[0].Range)
	case named && !g.places[0].Range.Contains(value):
		return nil, wrong("/guess", "must lie in the answer's range %v", g.places[0].Range)
	case named:
		g.values[0] = &value
	}
	names := plan.Items(false)
	for _, item := range slices.Sorted(maps.Keys(items)) {
		at := slices.Index(names, item)
		if at < 0 {
			return nil, wrong("/guess", "%q is no item of the answer; it has %s", item, some(names))
		}
		v := items[item]
		if r := g.places[at].Range; !r.Contains(v) {
			return nil, wrong("/guess", "%v of %q must lie in the item's range %v", v, item, r)
		}
		g.values[at] = &v
	}
	return s.tested(g, plan), nil
}

// measurable reports whether a plan can be measured: it is released as one mean, over all units or over those in which a condition holds.
func measurable(plan *queries.Plan) bool {
	one := plan.Statistics()
	if len(one) != 1 {
		return false
	}
	e, ok := one[0].(*shape.Equation)
	return ok && e.Whole
}

// MeasuredForm is a question as it is if it is measured, without a wish for a half-width; false where it cannot be, or is measured already. A test takes no measure.
func (s *Session) MeasuredForm(q *Question) (*Question, bool) {
	places := q.Plan.Places(s.Guarantee.N)
	if !s.Guarantee.Measures() || q.Plan.Measured || q.Plan.Test != nil || !measurable(q.Plan) || len(places) != 1 {
		return nil, false
	}
	plan, other := *q.Plan, *q
	plan.Measured, other.Plan = true, &plan
	other.guess = &guessed{values: []*float64{nil}, places: places, measure: true}
	if q.guess != nil {
		other.guess.values = q.guess.values
	}
	return &other, true
}

// tested adds the null hypothesis of a test, of which the mechanism may make use; nil where there is neither that nor a guess.
func (s *Session) tested(g *guessed, plan *queries.Plan) *guessed {
	if places := plan.Places(s.Guarantee.N); plan.Test != nil && len(places) == 1 && s.Guarantee.TakesGuesses() && places[0].Range.Contains(plan.Test.Equals) {
		g.places, g.null = places, plan.Test
	}
	if g.places == nil {
		return nil
	}
	return g
}

// some are the first of some names.
func some(names []string) string {
	const most = 8
	text := ""
	for i, name := range names {
		if i == most {
			return text + ", …"
		}
		if i > 0 {
			text += ", "
		}
		text += name
	}
	return text
}

// OwnWidth reports whether a question names its own half-width: whether its guess can pass then depends on how many tokens are spent.
func (q *Question) OwnWidth() bool { return q.guess != nil && q.guess.halfWidth > 0 }

// guessOf is the asker's guess of one released number, in that number's own units; nil if there is none. A half-width is about the guess, or else about what the training part says.
func (q *Question) guessOf(function int, training PartSums) *thresholdout.Guess {
	g := q.guess
	if g == nil || g.values[function] == nil && g.halfWidth == 0 && !g.measure && g.null == nil {
		return nil
	}
	own, place := &thresholdout.Guess{Measure: g.measure}, g.places[function]
	if v := g.values[function]; v != nil {
		released := place.Of(*v)
		own.Value = &released
	}
	if g.halfWidth > 0 {
		own.HalfWidth = place.Within(q.guessedAt(training), g.halfWidth)
	}
	if g.null != nil {
		null := place.Of(g.null.Equals)
		if at := q.guessedAt(training); g.null.Alternative == shape.TwoSided || (g.null.Alternative == shape.Greater) == (at > null) {
			own.Null = &null
		}
	}
	return own
}

// guessedAt is what a question of one number is released as if its guess is right.
func (q *Question) guessedAt(training PartSums) float64 {
	if v := q.guess.values[0]; v != nil {
		return q.guess.places[0].Of(*v)
	}
	if v, ok := training.value(0); ok {
		return v
	}
	return 0.5
}
