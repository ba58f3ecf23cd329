package checks

import (
	"fmt"
	"math"
)

// exactTest names comparisons that chance has no part in.
const exactTest = "arithmetic"

// exact is about a number that chance does not move.
type exact struct {
	off, tolerance float64
	relation       string
}

// Exactly is a comparison of a computed number with another, to an absolute tolerance.
func Exactly(what string, expected, tolerance, got float64) Comparison {
	return Comparison{What: what, Expected: expected, Got: got, Low: got, High: got,
		hypothesis: exact{math.Abs(got - expected), tolerance, fmt.Sprintf("within %.2g", tolerance)}}
}

// NotBelow is a comparison of a computed number with a limit, to a relative tolerance for rounding.
func NotBelow(what string, limit, got float64) Comparison {
	return Comparison{What: what, Expected: limit, Got: got, Low: got, High: got, hypothesis: exact{limit - got, rounding * math.Abs(limit), "not below"}}
}

// NotAbove is the same for an upper limit.
func NotAbove(what string, limit, got float64) Comparison {
	return Comparison{What: what, Expected: limit, Got: got, Low: got, High: got, hypothesis: exact{got - limit, rounding * math.Abs(limit), "not above"}}
}

func (e exact) p() float64 {
	if e.off <= e.tolerance {
		return 1
	}
	return 0
}

func (e exact) criterion() string { return e.relation }
func (e exact) test() string      { return exactTest }

func (e exact) notices(float64) (float64, string) {
	return e.tolerance, fmt.Sprintf("anything beyond %.2g", e.tolerance)
}

// never is about events that theory allows with a probability that no count tells: it bounds that there is any at all.
type never struct {
	events      int
	probability float64
	fault       float64
	words       string
}

// Never is a comparison of a number of events that must not happen: if theory holds, any does with at most this probability. fault is the
// smallest fault that makes one, in words too, as the experiment knows it.
func Never(what string, events int, probability, fault float64, words string) Comparison {
	e := float64(events)
	return Comparison{What: what, Got: e, Low: e, High: e, hypothesis: never{events, probability, fault, words}}
}

func (n never) p() float64 {
	if n.events == 0 {
		return 1
	}
	return 0
}

func (n never) criterion() string                 { return "none" }
func (n never) test() string                      { return "bound of the theorem" }
func (n never) falseAlarm() float64               { return n.probability }
func (n never) notices(float64) (float64, string) { return n.fault, n.words }
