package holdout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

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
	Items     []Item                 `json:"items,omitempty"`
	Selected  string                 `json:"selected,omitempty"`
	Regret    *float64               `json:"regret,omitempty"`
	Verdict   queries.Verdict        `json:"verdict,omitempty"`
	PValue    *float64               `json:"p_value,omitempty"`
	Alone     *float64               `json:"plain_p_value,omitempty"`
	Parts     []partJSON             `json:"row_functions,omitempty"`
	Best      *bool                  `json:"best,omitempty"` // of a submission to a ladder: whether it is shown now
	Mechanism thresholdout.Mechanism `json:"mechanism"`
	Source    thresholdout.Source    `json:"source"`
	Cost      Cost                   `json:"cost"`
}

// intervalJSON is an interval in the query's own units. Parts are the parts of its half-width, where the answer is one
// row function's mean, moved and scaled.
type intervalJSON struct {
	Low        *float64           `json:"low,omitempty"` // absent where the answer is items or a selection
	High       *float64           `json:"high,omitempty"`
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
func (h *opened) answerCore(q *question, outcome queries.Outcome, released *stepping, cost Cost) answerJSON {
	result := q.plan.Combine(outcome)
	core := answerJSON{ID: answerID(h.id, q.id), Holdout: h.id, Query: q.id, Value: result.Value,
		Items: itemsOf(result), Selected: result.Selected, Regret: result.Regret, Verdict: result.Verdict, PValue: result.PValue, Alone: result.Alone,
		Mechanism: h.params.Mechanism, Source: thresholdout.FromHoldout, Cost: cost}
	outputs := released.outputs
	if len(outputs) > 0 {
		core.Source = outputs[0].Source
	}
	for _, o := range outputs {
		if o.Source != core.Source {
			core.Source = fromBoth
		}
	}
	core.Interval = h.interval(q.plan, result, released)
	if len(outputs) > 1 && len(result.Items) == 0 {
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

func itemsOf(r queries.Result) (items []Item) {
	for _, i := range r.Items {
		items = append(items, Item{Of: i.Of, Value: i.Value, Low: i.Low, High: i.High})
	}
	return items
}

// interval is what all the intervals of an answer have in common, with the ends of the one where it has one; nil where nothing
// is known.
func (h *opened) interval(plan *queries.Plan, result queries.Result, released *stepping) *intervalJSON {
	i := &intervalJSON{Low: result.Low, High: result.High, Confidence: h.params.Confidence, Scope: h.scope(), Target: plan.Describe().Target}
	if released.choice != nil {
		i.Bound = released.choice.Bound
	}
	for _, o := range released.outputs {
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
	if len(released.outputs) == 1 && plan.Numbers() == 1 && result.Value != nil {
		i.Parts = scaled(released.outputs[0].Interval.Parts, h.scale(plan))
	}
	return i
}

// scope is what an interval's confidence is about.
func (h *opened) scope() string {
	if h.params.Questions == 1 {
		return "the only question"
	}
	return fmt.Sprintf("all %d questions", h.params.Questions)
}

// scale is how much the answer of a plan of one row function moves when its mean moves by one.
func (h *opened) scale(plan *queries.Plan) float64 {
	low := plan.Combine(queries.Outcome{N: h.params.N, Parts: []queries.Part{{Value: 0}}}).Value
	high := plan.Combine(queries.Outcome{N: h.params.N, Parts: []queries.Part{{Value: 1}}}).Value
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
