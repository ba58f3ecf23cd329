package holdout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/internal/tracing"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Explain says what a query means, what it would cost and what the training part says to it. It touches no holdout row,
// costs nothing, and changes nothing. Whether a query was answered before is no secret: asking would show it, at no cost.
func (s *Service) Explain(ctx context.Context, p Principal, id string, query []byte) (e Explanation, err error) {
	err = s.InTurn(ctx, p, bodyWork(1, len(query)), func(ctx context.Context) error {
		r, err := s.rightTo(ctx, p, id)
		if err != nil {
			return err
		}
		e, err = s.explain(ctx, id, query, r)
		return err
	})
	return e, err
}

func (s *Service) explain(ctx context.Context, id string, query []byte, r right) (Explanation, error) {
	parsing, span := tracing.Start(ctx, tracing.Parse)
	q, err := s.parse(parsing, query, s.labelOf(parsing, id), s.numbersOf(parsing, id))
	if err == nil {
		err = r.report(q)
	}
	span.Done(err)
	if err != nil {
		return Explanation{}, err
	}
	h, release, err := s.take(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	defer release()
	asked, err := h.question(ctx, q)
	if err != nil {
		return Explanation{}, err
	}
	asked = h.session.Explained(asked)
	plan := asked.Plan
	size, err := h.session.AnswerBytes(asked)
	if err != nil {
		return Explanation{}, err
	}
	if err := need(ctx, heldWork(plan).plus(h.passWork([]*queries.Plan{plan}, int64(size), false))); err != nil {
		return Explanation{}, err
	}
	recorded, err := s.asRecorded(ctx, id, asked.ID)
	if err != nil {
		return Explanation{}, err
	}
	state, others, err := s.leftOf(ctx, h, recorded)
	if err != nil {
		return Explanation{}, err
	}
	left := h.without(state, others) // what pays; the answer would be given in state
	played := h.session.Played(state, plan)
	said := played.Describe()
	e := Explanation{Query: recorded, Canonical: shownCanonical(asked.Canonical), Per: votes(h.card.Unit, func() []byte { return asked.Canonical }), Functions: said.Functions, Combine: said.Combine,
		Target: said.Target, NullRule: said.Null, Outcomes: []ForeseenOutcome{}, Warnings: []Warning{}}
	body, answered, err := s.ledger.Answer(ctx, id, e.Query)
	if err != nil {
		return e, s.ledgerError(err)
	}
	e.Answered = answered
	if q.IsReported() && !answered {
		return e, reportsAlone()
	}
	e.Warnings = append(e.Warnings, session.OfPlan(played)...)
	if r.shows != ShowsFull { // the rest follows from what others' answers cost, or from the recorded answer
		if r.shows == ShowsBit && !session.Decides(plan) {
			return Explanation{}, noBit()
		}
		e.Cost = Cost{Questions: h.session.Price(plan).Questions}
		if answered {
			e.Cost = Cost{}
		}
		return e, nil
	}
	spread, err := h.watch(ctx, &e, played)
	if err != nil {
		return e, err
	}
	training, err := session.TrainingSums(ctx, played, h.reference)
	if err != nil {
		return e, scanError(err)
	}
	if !training.None() {
		result, err := h.session.Training(played, training)
		if err != nil {
			return e, fmt.Errorf("holdout: explain: %w", err)
		}
		e.Training, e.Items = result.Value, session.ItemsOf(result)
		e.Selected = result.Selected
		e.ValueFrom = training.From
	}
	reason := h.session.Short(left, asked)
	if reason == "" && !answered {
		var narrow *session.NarrowError // foresee warns of it
		if asked, err = h.session.Settle(state, asked, training, h.guarantee.Affordable(left)); err != nil && !errors.As(err, &narrow) {
			return e, fmt.Errorf("holdout: explain: %w", err)
		}
	}
	if !asked.Plan.Measured { // then the value is the holdout's
		e.Warnings = append(e.Warnings, training.Doubted(played)...)
	}
	price := h.session.Price(asked.Plan)
	e.Cost = Cost{Questions: price.Questions, Tokens: h.session.MostTokens(asked.Plan), Rounds: price.Rounds}
	if answered {
		err = e.recorded(body)
		e.warnSpread(spread)
		return e, err
	}
	if reason != "" {
		e.Warnings = append(e.Warnings, Warning{Code: reason, Detail: h.lacks(reason, left, price) + keptFor(others)})
		return e, nil
	}
	if most := MostUnasked(h.guarantee.Questions); price.Questions > most {
		e.Warnings = append(e.Warnings, Warning{Code: PriceUnconfirmed, Detail: fmt.Sprintf("the query costs %d of the holdout's %d questions, more than the %d that a query may cost unasked: ask it with max_questions=%d", price.Questions, h.guarantee.Questions, most, price.Questions)})
	}
	if w := h.halfEmpty(left, price.Questions); w != nil {
		w.Detail = "asked alone, " + w.Detail + "; put all the questions of the round into one batch"
		e.Warnings = append(e.Warnings, *w)
	}
	if err := h.foresee(&e, asked, state, training); err != nil {
		return e, err
	}
	e.warnSpread(spread)
	if report, ok := h.guarantee.ReportWidth(state); ok {
		e.Report = &report
	}
	err = h.foreseeOutcomes(&e, asked, state, training)
	if err == nil {
		err = h.foreseeMeasured(&e, asked, state, left, training)
	}
	if b := h.session.Budget(left); b.Tokens != nil { // it takes no more than there are: items for which none is left have no value
		e.Cost.Tokens = min(e.Cost.Tokens, b.Tokens.Left)
	}
	return e, err
}

// recorded says of an answered query what its answer says: asking is a replay, at no cost.
func (e *Explanation) recorded(body []byte) error {
	var answer session.Answer
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("holdout: explain: the recorded answer: %w", err)
	}
	p, err := session.ReadProspect(&answer)
	if err != nil {
		return fmt.Errorf("holdout: explain: %w", err)
	}
	e.Cost, e.HalfWidth, e.Widest = Cost{}, p.HalfWidth, p.Widest
	if answer.Interval != nil {
		e.Bound = answer.Interval.Bound
	}
	e.Outcomes = append(e.Outcomes, ForeseenOutcome{Outcome: p.Outcome, HalfWidth: p.HalfWidth, Widest: p.Widest, Recorded: true})
	return nil
}

// foreseeOutcomes says how an answer now can come out.
func (h *opened) foreseeOutcomes(e *Explanation, q *session.Question, state thresholdout.State, training session.PartSums) error {
	if training.None() && h.guarantee.UsesTraining() {
		return nil
	}
	ways, unknown, err := h.session.Prospects(state, q, training)
	var narrow *session.NarrowError
	if errors.As(err, &narrow) { // foresee has warned
		return nil
	}
	if err != nil {
		return fmt.Errorf("holdout: explain: %w", err)
	}
	e.Cost.Tokens -= unknown
	known := true
	for _, w := range ways {
		e.Outcomes = append(e.Outcomes, foreseenOutcome(w))
		if known = known && w.Widest != nil; known && (e.Widest == nil || *w.Widest > *e.Widest) {
			e.Widest = w.Widest
		}
	}
	if !known {
		e.Widest = nil
	}
	return nil
}

// foreseeMeasured says what a question would cost, and tell, if it were measured. left is what pays for it.
func (h *opened) foreseeMeasured(e *Explanation, q *session.Question, state, left thresholdout.State, training session.PartSums) error {
	measured, ok := h.session.MeasuredForm(q)
	if !ok || training.None() || h.session.Short(left, measured) != "" {
		return nil
	}
	ways, _, err := h.session.Prospects(state, measured, training)
	if err != nil {
		return fmt.Errorf("holdout: explain: %w", err)
	}
	w := ways[0]
	if w.Outcome == thresholdout.Unknown { // it would say nothing either
		return nil
	}
	foreseen := foreseenOutcome(w)
	e.Measured = &foreseen
	return nil
}

func foreseenOutcome(w session.Prospect) ForeseenOutcome {
	return ForeseenOutcome{Outcome: w.Outcome, Cost: w.Cost, HalfWidth: w.HalfWidth, Widest: w.Widest, Report: w.Report}
}

// mostShown is the most bytes of a member that an explanation shows of a query: what a person reads, and no model.
const mostShown = 4096

// shownCanonical is the canonical form in which each long member stands as its digest: a model sent back would be most of the reply, and its sender has it.
func shownCanonical(canonical []byte) json.RawMessage {
	if len(canonical) <= mostShown {
		return canonical
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(canonical, &members) != nil {
		return canonical
	}
	for name, member := range members {
		if len(member) > mostShown {
			members[name] = json.RawMessage(fmt.Sprintf(`{"bytes":%d,"digest":"sha256:%x"}`, len(member), sha256.Sum256(member)))
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(members) != nil {
		return canonical
	}
	return bytes.TrimSpace(b.Bytes())
}

// watch says what shares of the values count as others than a reader may take them for, and suggests ranges. It returns the standard deviation of what the answer is the mean of; nil where that is not known.
func (h *opened) watch(ctx context.Context, e *Explanation, plan *queries.Plan) (spread *float64, err error) {
	if h.trainingTable == nil {
		return nil, nil
	}
	values, warnings, spread, err := h.session.Watch(ctx, plan, h.reference.Training)
	if err != nil {
		return nil, scanError(err)
	}
	for i, spreads := range session.Spreads(plan, values) {
		if err := need(ctx, h.trainingWork(rowfn.Batch{Functions: spreads.Functions()})); err != nil {
			return nil, err
		}
		if err := values[i].Suggest(ctx, spreads, h.reference.Training); err != nil {
			return nil, scanError(err)
		}
	}
	e.Values, e.Warnings = values, append(e.Warnings, warnings...)
	return spread, nil
}

// warnSpread warns of an interval that is wider than its values are spread, where nothing else says that it tells little.
func (e *Explanation) warnSpread(spread *float64) {
	if slices.ContainsFunc(e.Warnings, func(w Warning) bool { return w.Code == uninformative }) || len(e.Items) > 0 {
		return
	}
	if w := session.WiderThanSpread(e.HalfWidth, spread); w != nil {
		e.Warnings = append(e.Warnings, *w)
	}
}

// foresee says the half-width that an answer now would get, about what the training part says, and whether it tells anything;
// without a training part, about the middle, which only a question of one mean over all units has.
func (h *opened) foresee(e *Explanation, q *session.Question, state thresholdout.State, training session.PartSums) error {
	plan := h.session.Played(state, q.Plan)
	if training.None() && (plan.Numbers() > 1 || h.guarantee.UsesTraining() || plan.Checked() && plan.Affine() == nil) {
		return nil
	}
	preview, err := h.foreseePromise(e, q, state, training)
	var narrow *session.NarrowError
	if errors.As(err, &narrow) {
		e.Warnings = append(e.Warnings, Warning{Code: session.HalfWidthTooNarrow, Detail: tooNarrow(narrow).Detail})
		return nil
	}
	if err != nil {
		return fmt.Errorf("holdout: explain: %w", err)
	}
	if preview.Bound == "" { // no interval is known
		return nil
	}
	e.Bound = preview.Bound
	r := preview.Result
	e.Regret, e.Verdict = r.Regret, r.Verdict
	switch {
	case len(r.Items) > 0:
		items := session.ItemsOf(r)
		for i := range items { // an item of which an answer would say nothing has the training part's value all the same
			if items[i].Value == nil && i < len(e.Items) {
				items[i].Value = e.Items[i].Value
			}
		}
		e.Items = items
		if widest, ok := widestItem(r); ok {
			e.HalfWidth = &widest
		}
		e.warnItems(plan, r)
	case preview.Selected:
	case r.Value == nil || r.Low == nil || r.High == nil:
		e.Warnings = append(e.Warnings, Warning{Code: "uninformative", Detail: "what an answer is compared with has no rows to which the condition applies, so an answer is likely to be undefined"})
	default:
		half := max(*r.High-*r.Value, *r.Value-*r.Low)
		e.HalfWidth = &half
		h.warnUninformative(e, plan, half)
	}
	return nil
}

// foreseePromise is the preview of an answer now, which has the interval of a promise that holds where one would be checked. It says what a promise is worth, whether the question bears
// one or the training part only suggests it.
func (h *opened) foreseePromise(e *Explanation, q *session.Question, state thresholdout.State, training session.PartSums) (session.Preview, error) {
	plain, promised := *q, *q
	plain.Pledge = nil
	without, err := h.session.Preview(state, &plain, training)
	if err != nil {
		return without, err
	}
	f := &Foreseen{From: session.FromQuestion}
	switch used := h.session.Pledge(state, q, training); {
	case used != nil:
		promised.Pledge, f.Used = used, h.guarantee.ChecksPromises(state)
	default:
		promised.Pledge = h.session.Suggested(state, training)
	}
	if promised.Pledge == nil {
		return without, nil
	}
	if q.Pledge == nil {
		f.From = session.FromTraining
	}
	with, err := h.session.Preview(state, &promised, training)
	if err != nil {
		return with, err
	}
	f.Bounds = h.session.Bounds(q, *promised.Pledge)
	f.With, f.Without = halfWidthOf(with), halfWidthOf(without)
	e.Promise = f
	if !f.Used {
		return without, nil
	}
	e.Cost.Tokens = 1
	return with, nil
}

// halfWidthOf is that of a previewed answer's interval; nil where it has none.
func halfWidthOf(p session.Preview) *float64 {
	r := p.Result
	if p.Bound == "" || r.Value == nil || r.Low == nil || r.High == nil {
		return nil
	}
	half := max(*r.High-*r.Value, *r.Value-*r.Low)
	return &half
}

// widestItem is the largest half-width of an answer that is many numbers.
func widestItem(r queries.Result) (widest float64, ok bool) {
	for _, item := range r.Items {
		if item.Value != nil && item.Low != nil && item.High != nil {
			widest, ok = max(widest, *item.High-*item.Value, *item.Value-*item.Low), true
		}
	}
	return widest, ok
}

// warnItems says of how many items of an answer the interval would span what they can be at all or, of a share, be wider than it is.
func (e *Explanation) warnItems(plan *queries.Plan, r queries.Result) {
	vague := 0
	for _, i := range r.Items {
		if i.Value == nil || i.Low == nil || i.High == nil {
			vague++
			continue
		}
		half := max(*i.High-*i.Value, *i.Value-*i.Low)
		if 2*half >= plan.Range.High-plan.Range.Low || plan.FromZero && half >= math.Abs(*i.Value) {
			vague++
		}
	}
	if vague > 0 {
		e.Warnings = append(e.Warnings, Warning{Code: "uninformative",
			Detail: fmt.Sprintf("%d of %d items would have no value, or an interval wider than the number that it is about", vague, len(r.Items))})
	}
}

// warnUninformative says when an answer would tell little: its interval would span what the answer can be at all, or its
// half-width would be larger than the answer's distance from the low end of its range, which for a fraction, a count or a
// sum is the quantity itself.
func (h *opened) warnUninformative(e *Explanation, plan *queries.Plan, half float64) {
	scale := 1.0
	if moved := plan.Affine(); moved != nil && moved.PerUnit {
		scale = float64(h.session.Guarantee.N)
	}
	low, width := plan.Range.Low*scale, (plan.Range.High-plan.Range.Low)*scale
	switch {
	case math.IsNaN(width) || math.IsInf(width, 0):
	case 2*half >= width:
		e.Warnings = append(e.Warnings, Warning{Code: "uninformative",
			Detail: fmt.Sprintf("the interval would be as wide as the range of the answer (half-width %.3g, range of width %.3g); declare a narrower range, or ask about more rows", half, width)})
	case plan.FromZero && e.Training != nil && half >= math.Abs(*e.Training):
		e.Warnings = append(e.Warnings, Warning{Code: "uninformative",
			Detail: fmt.Sprintf("the interval (half-width %.3g) would be wider than the number itself (%.3g in the rows of %s)", half, *e.Training, e.ValueFrom)})
	case e.Training != nil && half >= *e.Training-low && plan.Numbers() == 1 && !plan.FromZero:
		e.Warnings = append(e.Warnings, Warning{Code: "uninformative",
			Detail: fmt.Sprintf("the interval (half-width %.3g) would be wider than the number's distance from the low end of its range (%.3g in the rows of %s)", half, *e.Training-low, e.ValueFrom)})
	}
}
