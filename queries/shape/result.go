package shape

import (
	"math"

	"github.com/holdoutd/holdoutd/queries/interval"
)

// Result is the answer in the query's own units. Which members it has depends on the plan.
type Result struct {
	Value     *float64 // nil where the answer is undefined: as far as can be told, the condition holds nowhere
	Low, High *float64 // nil where a part has no interval

	Items    []Item   // of answers that are many numbers
	Selected string   // of a selection: the name of the candidate
	Regret   *float64 // of a selection: the best candidate is at most so much better, in the query's units; nil without a bound
	Verdict  Verdict  // decisions and tests
	PValue   *float64 // tests: valid after all the questions of the guarantee; nil where no interval is known
	Alone    *float64 // tests: the plain p-value of this test alone; nil where it would not be one
}

// Item is one number of an answer that is many.
type Item struct {
	Of        string // what it is about, such as a category or the edges of a bin
	Value     *float64
	Low, High *float64
}

// is gives an item the number of a result.
func (i *Item) is(r Result) { i.Value, i.Low, i.High = r.Value, r.Low, r.High }

// Verdict is the outcome of a decision.
type Verdict string

// The verdicts.
const (
	Yes       Verdict = "yes"       // the whole interval says so
	No        Verdict = "no"        // the whole interval says otherwise
	Undecided Verdict = "undecided" // the interval holds both
)

// mend takes out of an answer what JSON cannot hold. No formula should get there; but if one does, for some rows and not for others,
// the answer says that it is undefined, and is paid for. An error would tell about the rows at no price.
func (r *Result) mend() {
	one := func(value, low, high **float64) {
		if !isFinite(*value) {
			*value = nil
		}
		if !isFinite(*low) || !isFinite(*high) {
			*low, *high = nil, nil
		}
	}
	one(&r.Value, &r.Low, &r.High)
	for i := range r.Items {
		one(&r.Items[i].Value, &r.Items[i].Low, &r.Items[i].High)
	}
	for _, x := range []**float64{&r.Regret, &r.PValue, &r.Alone} {
		if !isFinite(*x) {
			*x = nil
		}
	}
}

// isFinite is true of a number that is not there.
func isFinite(x *float64) bool { return x == nil || !math.IsNaN(*x) && !math.IsInf(*x, 0) }

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

// answer is a number with its interval, both brought into the range of what is possible.
func answer(value float64, bounds interval.Interval, bounded, defined bool, r Range) Result {
	var result Result
	if defined {
		v := min(max(value, r.Low), r.High)
		if bounded { // rounding must not carry the value out of its own interval
			v = min(max(v, bounds.Low), bounds.High)
		}
		result.Value = &v
	}
	if bounded {
		b := bounds.Clip(r.Low, r.High)
		result.Low, result.High = &b.Low, &b.High
	}
	return result
}
