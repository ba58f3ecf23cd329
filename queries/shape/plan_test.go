package shape

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/rowfn"
)

// wild is a shape whose formula went wrong.
type wild Result

func (w wild) items() []string        { return nil }
func (w wild) combine(Outcome) Result { return Result(w) }

// TestNothingThatJSONCannotHold: whatever a formula makes of the rows, the answer can be written.
func TestNothingThatJSONCannotHold(t *testing.T) {
	nan, inf, one := math.NaN(), math.Inf(1), 1.0
	p := &Plan{Functions: []rowfn.Function{{Lo: 0, Hi: 1}}, Shape: wild{Value: &nan, Low: &one, High: &inf, Regret: &inf, PValue: &nan, Items: []Item{{Of: "a", Value: &one, Low: &nan, High: &one}, {Of: "b", Value: &inf, Low: &one, High: &one}}}}
	r := p.Combine(Outcome{Parts: []Part{{}}})
	if r.Value != nil || r.Low != nil || r.High != nil || r.Regret != nil || r.PValue != nil || *r.Items[0].Value != 1 || r.Items[0].Low != nil || r.Items[0].High != nil ||
		r.Items[1].Value != nil || *r.Items[1].Low != 1 {
		t.Errorf("%+v", r)
	}
}
