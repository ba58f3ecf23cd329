package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/interval"
)

// Plan is a query as row functions and the way back from their means to the answer.
type Plan struct {
	Functions []RowFunction // what is asked: one question each
	Range     Range         // of the answer; for counts and sums, of the answer divided by the number of units
	combine   func(n int64, parts []Part) Result
	describe  Description
}

// Part is a released mean of one row function, in [0,1].
type Part struct {
	Value     float64
	Low, High float64 // the interval, where Bounded; parts of one answer hold simultaneously
	Bounded   bool
}

// Result is the answer in the query's own units.
type Result struct {
	Value     *float64 // nil where the answer is undefined: as far as can be told, the condition holds nowhere
	Low, High *float64 // nil where a part has no interval
}

// Combine turns the released means of Functions, in their order, into the answer. n is the number of units of the holdout.
func (p *Plan) Combine(n int64, parts []Part) Result {
	if len(parts) != len(p.Functions) {
		panic(fmt.Sprintf("queries: %d parts for %d row functions", len(parts), len(p.Functions)))
	}
	return p.combine(n, parts)
}

// Description is a plan in words, for people.
type Description struct {
	Functions []string `json:"row_functions"` // each row function, in words and canonical text
	Combine   string   `json:"combine"`       // how their means make the answer
	Null      string   `json:"null"`          // what a null counts as
	Target    string   `json:"target"`        // what the interval is about
	Questions int      `json:"questions"`     // the cost
}

// Describe says what will be asked.
func (p *Plan) Describe() Description { return p.describe }

// affine answers with scale · (low + width · mean), the mean being that of the only row function.
func affine(r Range, scaled bool) func(int64, []Part) Result {
	return func(n int64, parts []Part) Result {
		scale := 1.0
		if scaled {
			scale = float64(n)
		}
		return finish(parts[0].Value, interval.Interval{Low: parts[0].Low, High: parts[0].High}, parts[0].Bounded, r, scale)
	}
}

// ratio answers with low + width · (mean of the first row function / mean of the second). The first is never above the
// second at any unit, so the ratio lies in [0,1].
func ratio(r Range) func(int64, []Part) Result {
	return func(_ int64, parts []Part) Result {
		above, below := parts[0], parts[1]
		bounded := above.Bounded && below.Bounded
		if !(below.Value > 0) {
			result := finish(0, interval.Interval{Low: 0, High: 1}, bounded, r, 1)
			result.Value = nil
			return result
		}
		a := interval.Interval{Low: above.Low, High: above.High}.Clip(0, 1)
		b := interval.Interval{Low: below.Low, High: below.High}.Clip(0, 1)
		quotient := interval.Interval{Low: 0, High: 1}
		if b.High > 0 {
			quotient.Low = a.Div(interval.Point(b.High)).Low
		}
		if b.Low > 0 {
			quotient.High = a.Div(interval.Point(b.Low)).High
		}
		return finish(min(max(above.Value, 0), 1)/min(below.Value, 1), quotient, bounded, r, 1)
	}
}

// finish moves a mean in [0,1] and its interval to the range and the scale of the answer. What the noise carried out of
// the range is brought back to its end: the target lies within.
func finish(mean float64, bounds interval.Interval, bounded bool, r Range, scale float64) Result {
	low, width := interval.Point(r.Low), interval.Point(r.High).Sub(interval.Point(r.Low))
	m := min(max(mean, 0), 1)
	value := min(max(r.Low+float64((r.High-r.Low)*m), r.Low), r.High) * scale
	result := Result{Value: &value}
	if bounded {
		b := low.Add(width.Mul(bounds.Clip(0, 1))).Clip(r.Low, r.High)
		b = b.Mul(interval.Point(scale)).Clip(r.Low*scale, r.High*scale)
		result.Low, result.High = &b.Low, &b.High
	}
	return result
}
