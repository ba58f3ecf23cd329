package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// AnswerVersion is the version of the JSON of answers: of its members, and of what each of them means. An answer is replayed as it was
// recorded, so a later version does not change earlier ones.
const AnswerVersion = 1

// PromisedAnswerVersion is the version of answers with the member promise.
const PromisedAnswerVersion = 2

// Answer is what is recorded of an answer and sent for ever. It holds nothing that changes; a ledger adds its place. Its JSON is
// written by [Answer.JSON]: a float64 as the shortest decimal that reads back as the same number. The OpenAPI document is made of this type,
// whose tags doc and enum are for it.
type Answer struct {
	Version   int                 `json:"version" doc:"of the members of an answer and of what they mean; an answer is replayed as it was recorded"` // AnswerVersion; JSON fills it in
	ID        string              `json:"id"`
	Holdout   string              `json:"holdout" doc:"its id"`
	Query     string              `json:"query" doc:"the query's identity: sha256:…"`
	Value     *float64            `json:"value" doc:"null where the query has no defined result"`
	Interval  *Interval           `json:"interval" doc:"null where no valid bound is known"`
	Items     []Item              `json:"items,omitempty" doc:"where the answer is many numbers"`
	Selected  string              `json:"selected,omitempty" doc:"of a selection: the candidate"`
	Regret    *float64            `json:"regret,omitempty" doc:"of a selection: the best candidate is at most so much better, in the query's units"`
	Verdict   queries.Verdict     `json:"verdict,omitempty" enum:"yes,no,undecided" doc:"of a decision or a test"`
	PValue    *float64            `json:"p_value,omitempty" doc:"of a test; valid after all the questions of the guarantee, so that no correction belongs on top"`
	Plain     *float64            `json:"plain_p_value,omitempty" doc:"of a test by itself: valid for this one test, if its hypothesis was chosen before any answer; not valid for one of many tests"`
	Functions []Released          `json:"row_functions,omitempty" doc:"where the answer is made of several row functions: the released mean of each, in [0,1]"`
	Promise   *Promised           `json:"promise,omitempty" doc:"of a question with a promise about the holdout, under gaussian"`
	Best      *bool               `json:"best,omitempty" doc:"of a submission to a ladder: whether it is the one that is shown now"`
	Mechanism thresholdout.Name   `json:"mechanism"`
	Source    thresholdout.Source `json:"source" doc:"what the mechanism took: holdout, or training: what the holdout was compared with, which value_from names; guess: your own; none: there was nothing to compare with; mixed: different for its row functions"`
	ValueFrom ValueFrom           `json:"value_from,omitempty" enum:"check,training,training+check,guess,holdout,mixed" doc:"which rows the value is of: check: the part that is kept for questions about models and never handed out; training: the part that everyone with a key can download; training+check: both; guess: your own number; holdout: what was released of the holdout; mixed: different for its row functions. Absent of answers that were recorded before it was"`
	Cost      Cost                `json:"cost"`

	Outcome thresholdout.Outcome `json:"outcome,omitempty" enum:"close,rough,differs,agrees,kept,broken,measured,unknown,selected,best,behind,mixed" doc:"what the mechanism found: your guess or the training value is close, or close within a wider margin (rough), or differs; it agrees within a noisy threshold; what was promised is kept, or broken; nothing was compared (measured); there are too few rows to compare with, or none, so that no value is released and the interval is all of the range (unknown; items of which this is so do not count here beside others); of a selection selected; of a submission best or behind; mixed: different for its row functions. Absent of answers that were recorded before it was"`

	Warnings []Warning `json:"warnings,omitempty" doc:"what a reader of the answer should know. They follow from the question, from rows that were handed out or kept beside the holdout, and from the interval of the answer itself, never from more of holdout rows. Absent where there are none, and of answers that were recorded before they were"`
}

// Interval is an interval in the query's own units. Parts are the parts of its half-width, where the answer is one
// row function's mean, moved and scaled.
type Interval struct {
	Low        *float64           `json:"low,omitempty" doc:"absent where the answer is items, each with its own, or a selection"`
	High       *float64           `json:"high,omitempty"`
	Confidence float64            `json:"confidence"`
	Scope      string             `json:"scope" doc:"what the confidence is about, such as all 1000 questions"`
	Target     string             `json:"target" doc:"what the interval is about, such as population of rows"`
	Bound      string             `json:"bound" doc:"the theorem"`
	Parts      map[string]float64 `json:"parts,omitempty" doc:"what the half-width is made of"`
}

// Released is the released mean of one row function, in [0,1], where an answer is made of several. Each was paid for, and
// its interval is one of those that hold together.
type Released struct {
	Value  float64             `json:"value"`
	Low    *float64            `json:"low" doc:"null where no valid bound is known"`
	High   *float64            `json:"high"`
	Source thresholdout.Source `json:"source"`
	From   ValueFrom           `json:"value_from,omitempty"`
}

// Item is one number of an answer that is many, with an interval of its own.
type Item struct {
	Of    string   `json:"of" doc:"what the number is about, such as a category or a bin"`
	Value *float64 `json:"value" doc:"null where it is undefined"`
	Low   *float64 `json:"low" doc:"null where no valid bound is known"`
	High  *float64 `json:"high"`
}

// What is said of an answer of several row functions of which some are from the training part and some from the holdout, or some passed and some did not.
const (
	fromBoth thresholdout.Source  = "mixed"
	mixed    thresholdout.Outcome = "mixed"
)

// JSON writes the answer without the escapes that only HTML needs, so that a target reads delay > 15.
func (a Answer) JSON() ([]byte, error) {
	a.Version = AnswerVersion
	if a.Promise != nil {
		a.Version = PromisedAnswerVersion
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		return nil, fmt.Errorf("session: answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// answer makes an answer of what the steps released.
func (s *Session) answer(q *Question, outcome queries.Outcome, r *releasing, cost Cost) Answer {
	result := q.Plan.Combine(outcome)
	a := Answer{ID: s.answerID(q.ID), Holdout: s.Holdout, Query: q.ID, Value: result.Value,
		Items: ItemsOf(result), Selected: result.Selected, Regret: result.Regret, Verdict: result.Verdict, PValue: result.PValue, Plain: result.Alone,
		Mechanism: s.Guarantee.Mechanism, Source: thresholdout.FromHoldout, Cost: cost}
	known := knownOf(r.outputs)
	if len(known) > 0 {
		a.Source, a.Outcome = known[0].Source, known[0].Outcome()
	}
	a.ValueFrom = r.sums.Training.valueFrom(a.Source)
	for _, o := range known {
		if o.Source != a.Source {
			a.Source, a.ValueFrom = fromBoth, ValueFromMixed
		}
		if o.Outcome() != a.Outcome {
			a.Outcome = mixed
		}
	}
	if r.choice != nil {
		a.Outcome = thresholdout.Selected
	}
	a.Warnings = slices.Concat(OfPlan(q.Plan), r.sums.warned.values)
	if slices.ContainsFunc(r.outputs, func(o thresholdout.Output) bool { return o.Source == thresholdout.FromTraining }) {
		a.Warnings = append(slices.Clip(a.Warnings), r.sums.Training.Doubted(q.Plan)...)
	}
	a.Interval = s.interval(q.Plan, result, r)
	if a.Interval != nil && len(result.Items) == 0 {
		if w := WiderThanSpread(farthest(result), r.sums.warned.spread); w != nil {
			a.Warnings = append(slices.Clip(a.Warnings), *w)
		}
	}
	if len(r.outputs) == 1 {
		a.Promise = s.promised(q, r.outputs[0].Promise)
	}
	if len(r.outputs) > 1 && len(result.Items) == 0 {
		for _, o := range r.outputs {
			part := Released{Value: o.Value, Source: o.Source, From: r.sums.Training.valueFrom(o.Source)}
			if o.Interval != nil {
				part.Low, part.High = &o.Interval.Low, &o.Interval.High
			}
			a.Functions = append(a.Functions, part)
		}
	}
	return a
}

// knownOf are the outputs of which something is known: an item that says nothing makes no answer a mixed one. Where nothing is known of any they are all.
func knownOf(outputs []thresholdout.Output) []thresholdout.Output {
	known := slices.DeleteFunc(slices.Clone(outputs), func(o thresholdout.Output) bool { return o.Outcome() == thresholdout.Unknown })
	if len(known) == 0 {
		return outputs
	}
	return known
}

// ItemsOf are the items of a result as an answer shows them.
func ItemsOf(r queries.Result) (items []Item) {
	for _, i := range r.Items {
		items = append(items, Item{Of: i.Of, Value: i.Value, Low: i.Low, High: i.High})
	}
	return items
}

// interval is what all the intervals of an answer have in common, with the ends of the one where it has one; nil where nothing
// is known.
func (s *Session) interval(plan *queries.Plan, result queries.Result, r *releasing) *Interval {
	i := &Interval{Low: result.Low, High: result.High, Confidence: s.Guarantee.Confidence, Scope: s.scope(r.state), Target: plan.Describe().Target}
	if r.choice != nil {
		i.Bound = r.choice.Bound
	}
	for _, o := range r.outputs {
		switch {
		case o.Interval == nil:
			return nil
		case i.Bound == "":
			i.Bound = o.Interval.Bound
		case !strings.Contains(i.Bound, o.Interval.Bound):
			i.Bound += " and " + o.Interval.Bound
		}
	}
	if i.Bound == "" || (i.Low == nil || i.High == nil) && len(result.Items) == 0 && result.Regret == nil {
		return nil
	}
	if scale, ok := plan.Scale(s.Guarantee.N); ok && len(r.outputs) == 1 {
		i.Parts = scaled(r.outputs[0].Interval.Parts, scale)
	}
	return i
}

// scope is what an interval's confidence is about.
func (s *Session) scope(state thresholdout.State) string {
	if state.Reporting() {
		return "all questions and the final report"
	}
	if s.Guarantee.Questions == 1 {
		return "the only question"
	}
	return fmt.Sprintf("all %d questions", s.Guarantee.Questions)
}

// scaled multiplies the parts of a half-width; nil where that has no meaning.
func scaled(parts map[string]float64, by float64) map[string]float64 {
	if len(parts) == 0 || math.IsNaN(by) || math.IsInf(by, 0) {
		return nil
	}
	out := make(map[string]float64, len(parts))
	for name, v := range parts {
		if v *= by; !math.IsInf(v, 0) && !math.IsNaN(v) {
			out[name] = v
		}
	}
	return out
}
