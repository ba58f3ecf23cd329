package holdout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// answerJSON is what is recorded of an answer and sent for ever. It holds nothing that changes. The ledger adds its place.
// Go writes a float64 as the shortest decimal that reads back as the same number.
type answerJSON struct {
	ID        string                 `json:"id"`
	Holdout   string                 `json:"holdout"`
	Query     string                 `json:"query"`
	Value     *float64               `json:"value"`    // null where it is undefined
	Interval  *intervalJSON          `json:"interval"` // null where no valid bound is known
	Parts     []partJSON             `json:"row_functions,omitempty"`
	Mechanism thresholdout.Mechanism `json:"mechanism"`
	Source    thresholdout.Source    `json:"source"`
	Cost      Cost                   `json:"cost"`
}

// intervalJSON is an interval in the query's own units. Parts are the parts of its half-width, where the answer is one
// row function's mean, moved and scaled.
type intervalJSON struct {
	Low        float64            `json:"low"`
	High       float64            `json:"high"`
	Confidence float64            `json:"confidence"`
	Scope      string             `json:"scope"`
	Target     string             `json:"target"`
	Bound      string             `json:"bound"`
	Parts      map[string]float64 `json:"parts,omitempty"`
}

// partJSON is a released mean of one row function, in [0,1], where an answer is made of several. Each was paid for, and
// its interval is one of those that hold together.
type partJSON struct {
	Value  float64             `json:"value"`
	Low    *float64            `json:"low"`
	High   *float64            `json:"high"`
	Source thresholdout.Source `json:"source"`
}

// fromBoth is the source of an answer of several row functions, some from the training part and some from the holdout.
const fromBoth thresholdout.Source = "mixed"

// answerCore makes an answer of what the steps released.
func (h *opened) answerCore(q *question, outputs []thresholdout.Output, cost Cost) answerJSON {
	released := make([]queries.Part, len(outputs))
	source := outputs[0].Source
	for i, o := range outputs {
		released[i] = partOf(o)
		if o.Source != source {
			source = fromBoth
		}
	}
	result := q.plan.Combine(h.params.N, released)
	core := answerJSON{ID: answerID(h.id, q.id), Holdout: h.id, Query: q.id, Value: result.Value, Mechanism: h.params.Mechanism, Source: source, Cost: cost}
	if result.Low != nil && result.High != nil {
		core.Interval = &intervalJSON{Low: *result.Low, High: *result.High, Confidence: h.params.Confidence,
			Scope: h.scope(), Target: q.plan.Describe().Target, Bound: outputs[0].Interval.Bound}
		if len(outputs) == 1 {
			core.Interval.Parts = scaled(outputs[0].Interval.Parts, h.scale(q.plan))
		}
		for _, o := range outputs {
			if o.Interval.Bound != core.Interval.Bound {
				core.Interval.Bound += " and " + o.Interval.Bound
				break
			}
		}
	}
	if len(outputs) > 1 {
		for _, o := range outputs {
			part := partJSON{Value: o.Value, Source: o.Source}
			if o.Interval != nil {
				part.Low, part.High = &o.Interval.Low, &o.Interval.High
			}
			core.Parts = append(core.Parts, part)
		}
	}
	return core
}

// scope is what an interval's confidence is about.
func (h *opened) scope() string {
	if h.params.Questions == 1 {
		return "the only question"
	}
	return fmt.Sprintf("all %d questions", h.params.Questions)
}

func partOf(o thresholdout.Output) queries.Part {
	part := queries.Part{Value: o.Value}
	if o.Interval != nil {
		part.Low, part.High, part.Bounded = o.Interval.Low, o.Interval.High, true
	}
	return part
}

// scale is how much the answer of a plan of one row function moves when its mean moves by one.
func (h *opened) scale(plan *queries.Plan) float64 {
	low := plan.Combine(h.params.N, []queries.Part{{Value: 0}}).Value
	high := plan.Combine(h.params.N, []queries.Part{{Value: 1}}).Value
	if low == nil || high == nil {
		return math.NaN()
	}
	return *high - *low
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

// marshal writes JSON without the escapes that only HTML needs, so that a target reads delay > 15.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
