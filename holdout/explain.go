package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Explain says what a query means, what it would cost and what the training part says to it. It touches no holdout row,
// costs nothing, and changes nothing. Whether a query was answered before is no secret: asking would show it, at no cost.
func (s *Service) Explain(ctx context.Context, p Principal, id string, query []byte) (Explanation, error) {
	q, err := s.parse(query)
	if err != nil {
		return Explanation{}, err
	}
	h, release, err := s.tables.take(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	defer release()
	plan, err := h.compile(q)
	if err != nil {
		return Explanation{}, err
	}
	said := plan.Describe()
	e := Explanation{Query: q.ID(), Canonical: json.RawMessage(q.Canonical()), Functions: said.Functions, Combine: said.Combine,
		Target: said.Target, NullRule: said.Null, Warnings: []Warning{},
		Cost: Cost{Questions: int64(len(plan.Functions))}}
	if h.params.HasTokens() {
		e.Cost.Tokens = e.Cost.Questions
	}
	if _, e.Answered, err = s.ledger.Answer(ctx, id, e.Query); err != nil {
		return e, s.ledgerError(err)
	}
	exact, err := h.trainingMeans(ctx, plan)
	if err != nil {
		return e, err
	}
	var means []float64
	if exact != nil {
		for _, m := range exact {
			means = append(means, float64(m.Sum)/(float64(m.N)*float64(queries.One)))
		}
		e.Training = h.plain(plan, means)
	}
	questions, tokens, err := s.ledger.Balance(ctx, id)
	if err != nil {
		return e, s.ledgerError(err)
	}
	state := thresholdout.State{Questions: questions, Tokens: tokens}
	if reason := h.unaffordable(state, len(plan.Functions)); reason != "" {
		if !e.Answered {
			e.Warnings = append(e.Warnings, Warning{Code: reason, Detail: "the budget does not pay for this question any more"})
		}
		return e, nil
	}
	if h.params.Mechanism == thresholdout.GuessAndCheck {
		return e, h.expect(&e, plan, exact, guess(q, plan), state)
	}
	h.preview(&e, plan, means, state)
	return e, nil
}

// trainingMeans are the means of a plan's row functions over the training part; nil without one.
func (h *opened) trainingMeans(ctx context.Context, plan *queries.Plan) ([]thresholdout.Mean, error) {
	if h.training == nil {
		return nil, nil
	}
	sums, err := h.training.Sums(ctx, plan.Functions, 0, h.training.Units())
	if err != nil {
		return nil, scanError(err)
	}
	means := make([]thresholdout.Mean, len(sums))
	for i, sum := range sums {
		means[i] = thresholdout.Mean{Sum: sum, N: h.training.Units()}
	}
	return means, nil
}

// plain is the answer that the means make without any interval.
func (h *opened) plain(plan *queries.Plan, means []float64) *float64 {
	parts := make([]queries.Part, len(means))
	for i, m := range means {
		parts[i].Value = m
	}
	return plan.Combine(h.params.N, parts).Value
}

// preview is the half-width that an answer now would get, about what the training part says; without one, about the
// middle, which only a single row function has.
func (h *opened) preview(e *Explanation, plan *queries.Plan, means []float64, state thresholdout.State) {
	if means == nil {
		if len(plan.Functions) > 1 {
			return
		}
		means = []float64{0.5}
	}
	parts := make([]queries.Part, len(means))
	for i, m := range means {
		width, bound, ok := h.params.Preview(state)
		if !ok {
			return
		}
		e.Bound = bound
		parts[i] = queries.Part{Value: m, Low: max(m-width, 0), High: min(m+width, 1), Bounded: true}
		state.Questions++
	}
	h.foresee(e, plan, parts)
}

// expect is the interval that an answer now would get if its guesses pass at their narrowest width. That passes at wider ones
// count too is in the mechanism's secret state only: after some, the interval is a little wider than said.
func (h *opened) expect(e *Explanation, plan *queries.Plan, means []thresholdout.Mean, g *thresholdout.Guess, state thresholdout.State) error {
	parts := make([]queries.Part, len(means))
	for i, m := range means {
		value, interval, err := h.params.Expected(state, m, g)
		var width *thresholdout.WidthError
		if errors.As(err, &width) {
			e.Warnings = append(e.Warnings, Warning{Code: HalfWidthTooNarrow, Detail: tooNarrow(width, plan).Detail})
			return nil
		}
		if err != nil {
			return fmt.Errorf("holdout: explain: %w", err)
		}
		e.Bound = interval.Bound
		parts[i] = queries.Part{Value: value, Low: interval.Low, High: interval.High, Bounded: true}
		state.Questions++
	}
	h.foresee(e, plan, parts)
	return nil
}

// foresee says the half-width that the parts make, and whether it tells anything.
func (h *opened) foresee(e *Explanation, plan *queries.Plan, parts []queries.Part) {
	r := plan.Combine(h.params.N, parts)
	if r.Value == nil || r.Low == nil || r.High == nil {
		e.Warnings = append(e.Warnings, Warning{Code: "uninformative", Detail: "the training part has no rows to which the condition applies, so an answer is likely to be undefined"})
		return
	}
	half := max(*r.High-*r.Value, *r.Value-*r.Low)
	e.HalfWidth = &half
	h.warnUninformative(e, plan, half)
}

// warnUninformative says when an answer would tell little: its interval would span what the answer can be at all, or its
// half-width would be larger than the answer's distance from the low end of its range, which for a fraction, a count or a
// sum is the quantity itself.
func (h *opened) warnUninformative(e *Explanation, plan *queries.Plan, half float64) {
	scale := 1.0
	if len(plan.Functions) == 1 {
		scale = h.scale(plan) / (plan.Range.High - plan.Range.Low) // the number of units for counts and sums
	}
	low, width := plan.Range.Low*scale, (plan.Range.High-plan.Range.Low)*scale
	switch {
	case math.IsNaN(width) || math.IsInf(width, 0):
	case 2*half >= width:
		e.Warnings = append(e.Warnings, Warning{Code: "uninformative",
			Detail: fmt.Sprintf("the interval would be as wide as the range of the answer (half-width %.3g, range of width %.3g); a narrower range or a coarser condition would tell more", half, width)})
	case e.Training != nil && half >= *e.Training-low && len(plan.Functions) == 1:
		e.Warnings = append(e.Warnings, Warning{Code: "uninformative",
			Detail: fmt.Sprintf("the interval (half-width %.3g) would be wider than what is asked about (%.3g above the low end of its range in the training part)", half, *e.Training-low)})
	}
}
