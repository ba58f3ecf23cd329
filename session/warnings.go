package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Warning is something that a reader should know: of a card, of an explanation, or of an answer. Code is stable: "dependent-rows", …
type Warning struct {
	Code   string  `json:"code" doc:"stable, to compare with, such as dependent-rows"`
	Detail string  `json:"detail" doc:"a sentence for a person"`
	Column string  `json:"column,omitempty" doc:"the column that it is about"`
	Unit   string  `json:"unit,omitempty" doc:"the unit setting that would mend it"`
	Effect float64 `json:"design_effect,omitempty" doc:"the factor by which the variance of a mean grows, since rows depend on each other"`
}

// ClippedMean is the code of the warning that an answer is the mean of clipped products.
const ClippedMean = "clipped-mean"

// clippedMean is said of an association of which the form was left open and that is one question in the clipped form alone.
var clippedMean = Warning{Code: ClippedMean, Detail: `this is the mean of the product of z-scores, clipped; it is usually nearer to 0 than the correlation or covariance itself, which "form":"exact" asks for: at a higher price here`}

// ReadsLabel is the code of the warning that a model reads a column that tells its label.
const ReadsLabel = "reads-label"

// OfPlan are the warnings that follow from a plan alone.
func OfPlan(plan *queries.Plan) (warnings []Warning) {
	if plan.Clipped {
		warnings = append(warnings, clippedMean)
	}
	for _, l := range plan.Leaks {
		how := "which the label is made of"
		if !l.Same {
			how = "which tells " + l.Label + " by itself in the training part"
		}
		warnings = append(warnings, Warning{Code: ReadsLabel, Column: l.Column, Detail: fmt.Sprintf("the prediction reads %s, %s: if a new row does not have it yet, the model is not as good as this says", l.Column, how)})
	}
	return warnings
}

// Codes of warnings about the values of an expression.
const (
	NullValues    = "null-values"
	UnknownTexts  = "unknown-texts"
	ClampedValues = "clamped-values"
)

// Watched are the values of a plan that may count as others than a reader takes them for, with their shares in the training part.
type Watched struct {
	Of        string      `json:"of" doc:"the expression"`
	Null      float64     `json:"null" doc:"the share of the training part's rows that are asked about in which it is null, or a condition in it compares a null; of a column that a model reads, of all rows"`
	Below     float64     `json:"below" doc:"the share that is below the range, and counts as its low end"`
	Above     float64     `json:"above" doc:"the share that is above the range, and counts as its high end"`
	Suggested *[2]float64 `json:"suggested_range,omitempty" doc:"round numbers between which nearly all values of the training part lie, at most one in two hundred being below and as many above; where the declared range cuts off more, or is much wider"`
}

// WatchedBy is what a pass over the training part has to sum for what answers to these plans warn of.
func WatchedBy(plans []*queries.Plan) (b rowfn.Batch) {
	for _, p := range plans {
		b.Join(watchedOf(p))
	}
	return b
}

func watchedOf(p *queries.Plan) (b rowfn.Batch) {
	for i := range p.Values {
		b.Functions = append(b.Functions, p.Values[i].Functions()...)
	}
	if spread, ok := spreadOf(p); ok {
		b.Join(spread)
	}
	return b
}

// warned is what the answer to a question warns of by the training part: of values whatever the answer will be, and of its interval by how the values are spread.
type warned struct {
	values []Warning
	spread *float64 // nil where it is not known
}

// warned is what the answers to questions warn of, from the training part; nothing where there is none.
func (s *Session) warned(ctx context.Context, questions []*Question, training Source) ([]warned, error) {
	plans := make([]*queries.Plan, len(questions))
	for i, q := range questions {
		plans[i] = q.Plan
	}
	all := make([]warned, len(questions))
	seen, err := see(ctx, plans, training)
	if err != nil || seen == nil {
		return all, err
	}
	for i, p := range plans {
		for j := range p.Values {
			if found := seen[i].shares[j]; found != nil {
				all[i].values = addWarnings(all[i].values, &p.Values[j], *found)
			}
		}
		all[i].spread = seen[i].spread
	}
	return all, nil
}

// seen is what the training part says of a plan's values.
type seen struct {
	shares []*shape.ValueShares // of each; nil for one that is not of any row there
	spread *float64             // of what the answer is the mean of; nil where it is not known
}

// see is what the training part says of each plan's values; nil where there is none.
func see(ctx context.Context, plans []*queries.Plan, training Source) ([]seen, error) {
	if training == nil {
		return nil, nil
	}
	batch, n := WatchedBy(plans), training.Units()
	var sums rowfn.Sums
	var err error
	switch {
	case len(batch.Products) > 0:
		sums, err = training.Moments(ctx, batch, 0, n)
	case len(batch.Functions) > 0:
		sums.Values, err = training.Sums(ctx, batch.Functions, 0, n)
	}
	if err != nil {
		return nil, err
	}
	all := make([]seen, len(plans))
	for i, p := range plans {
		own := sums.Cut(watchedOf(p))
		for j := range p.Values {
			v := &p.Values[j]
			of := own.Cut(rowfn.Batch{Functions: v.Functions()})
			var found *shape.ValueShares
			if shares, ok := v.Shares(of.Values); ok {
				found = &shares
			}
			all[i].shares = append(all[i].shares, found)
		}
		if _, ok := spreadOf(p); ok {
			all[i].spread = spreadFrom(p, own, n)
		}
	}
	return all, nil
}

// Watch says the shares of a plan's values in the training part, with what an answer would warn of whatever it is, and the standard deviation of what it is the mean of, in the answer's units; nil where
// that is not known.
func (s *Session) Watch(ctx context.Context, plan *queries.Plan, training Source) (watched []Watched, warnings []Warning, spread *float64, err error) {
	all, err := see(ctx, []*queries.Plan{plan}, training)
	if err != nil || all == nil {
		return nil, nil, nil, err
	}
	for i, found := range all[0].shares {
		if found == nil {
			continue
		}
		v := &plan.Values[i]
		if !v.Texts { // those are not null
			watched = append(watched, Watched{Of: v.Of, Null: found.Null, Below: found.Below, Above: found.Above})
		}
		warnings = addWarnings(warnings, v, *found)
	}
	return watched, warnings, all[0].spread, nil
}

// leastTooWide is how many times as wide as the training part's values a range is that is called too wide: half of an interval is then about numbers that do not occur.
const leastTooWide = 2

// suggestedTail is the most that a suggested range leaves out on either side.
const suggestedTail = 0.005

// Spreads are of the plan's values that a range shall be suggested for, by their places in what [Session.Watch] returned: those of which the range cuts off more than it should, or which take
// little of it.
func Spreads(plan *queries.Plan, watched []Watched) map[int]*shape.Spreads {
	all := map[int]*shape.Spreads{}
	for i, w := range watched {
		at := slices.IndexFunc(plan.Values, func(v shape.Values) bool { return v.Of == w.Of && v.Value != nil })
		if at < 0 {
			continue
		}
		v := &plan.Values[at]
		wide := v.Spread != nil && v.Range.High-v.Range.Low > leastTooWide*(v.Spread.High-v.Spread.Low)
		if wide || clamped(v, shape.ValueShares{Below: w.Below, Above: w.Above}) {
			all[i] = v.Spreads()
		}
	}
	return all
}

// Suggest adds the range that holds nearly all values of the training part.
func (w *Watched) Suggest(ctx context.Context, spreads *shape.Spreads, training Source) error {
	sums, err := training.Sums(ctx, spreads.Functions(), 0, training.Units())
	if err != nil {
		return err
	}
	if r, ok := spreads.Range(sums, suggestedTail); ok {
		w.Suggested = &[2]float64{r.Low, r.High}
	}
	return nil
}

func clamped(v *shape.Values, found shape.ValueShares) bool {
	return found.Below > v.MostBelow || found.Above > v.MostAbove
}

// addWarnings adds what is to be said of values of which the training part has these shares, once.
func addWarnings(all []Warning, v *shape.Values, found shape.ValueShares) []Warning {
	if found.Null > queries.MostNulls {
		all = append(all, nullWarning(v, found.Null))
	}
	if clamped(v, found) {
		all = append(all, clampWarning(v, found))
	}
	return all
}

func nullWarning(v *shape.Values, share float64) Warning {
	switch {
	case v.Texts:
		return Warning{Code: UnknownTexts, Column: v.Column, Detail: fmt.Sprintf("%s of the training part's rows have a text of %s that the model does not list; they %s",
			percent(share), shortened(v.Of), v.Counts)}
	case v.Model:
		return Warning{Code: NullValues, Column: v.Column, Detail: fmt.Sprintf("%s of the training part's rows have no value of %s, and the model does not say what that counts as; they %s. Its library may refuse such rows",
			percent(share), shortened(v.Of), v.Counts)}
	}
	return Warning{Code: NullValues, Column: v.Column, Detail: fmt.Sprintf(`%s of the training part's rows that are asked about have no value of %s; they %s. With "null":"skip" the question is about the others`,
		percent(share), shortened(v.Of), v.Counts)}
}

func clampWarning(v *shape.Values, found shape.ValueShares) Warning {
	return Warning{Code: ClampedValues, Column: v.Column, Detail: fmt.Sprintf("%s of the training part's rows that are asked about have %s below the range %v, and %s above it; they count as its ends. explain suggests a range",
		percent(found.Below), shortened(v.Of), v.Range, percent(found.Above))}
}

// percent is a share in three digits.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + "%" }

// maxExpression is how much of an expression a warning repeats, in bytes.
const maxExpression = 200

func shortened(text string) string {
	if len(text) <= maxExpression {
		return text
	}
	cut := maxExpression
	for cut > 0 && text[cut]&0xC0 == 0x80 { // within a character
		cut--
	}
	return text[:cut] + "…"
}

// longestShare is one whose percentage has as many characters as any.
const longestShare = 1.2345678e-300

// mostWarnings are the longest warnings that an answer can have, by public facts alone.
func (s *Session) mostWarnings(q *Question) (all []Warning) {
	all = OfPlan(q.Plan)
	for i := range q.Plan.Values {
		v := &q.Plan.Values[i]
		if v.Clean {
			continue
		}
		if v.Null != nil {
			all = append(all, nullWarning(v, longestShare))
		}
		if v.Value != nil {
			all = append(all, clampWarning(v, shape.ValueShares{Below: longestShare, Above: longestShare}))
		}
	}
	if _, ok := spreadOf(q.Plan); ok {
		all = append(all, Warning{Code: Uninformative, Detail: spreadDetail(longestShare, longestShare)})
	}
	return all
}
