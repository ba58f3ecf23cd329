package shape

import (
	"math"
	"slices"
)

// Test makes p-values of an answer. The null hypothesis is rejected where the answer's interval excludes Equals, on the side of the
// alternative; of an answer that is items, where the interval of any item excludes 0.
type Test struct {
	Equals      float64
	Alternative Alternative
	Plain       *Plain // of the test by itself; nil where it has no p-value of its own
	// BySample says that the test by itself has a p-value where its parts are read by their own sample. Its answer is then monotone in each part.
	BySample bool
	// Mixed says that each end of the answer may be decided by both ends of a part, as where several means are one part.
	Mixed bool
}

// Alternative is the side on which a test rejects.
type Alternative string

// The alternatives.
const (
	TwoSided Alternative = "two-sided"
	Greater  Alternative = "greater"
	Less     Alternative = "less"
)

// judge adds the verdict and the p-values to an answer of a shape.
func (t *Test) judge(r *Result, o Outcome, s Shape) {
	r.Verdict = Undecided
	if t.rejects(*r) {
		r.Verdict = Yes
	}
	r.PValue = pValue(o, func(o Outcome) bool { return t.rejects(s.combine(o)) })
	if t.Plain != nil {
		r.Alone = t.Plain.pValue(o, t.Alternative)
	}
	if _, fresh := o.fresh(); t.BySample || t.Plain != nil && !fresh {
		r.Alone = t.bySample(o, s)
	}
}

// rejects sees an answer as its parts' intervals make it, at any level.
func (t *Test) rejects(r Result) bool {
	if len(r.Items) > 0 {
		return r.deviates()
	}
	if r.Low == nil || r.High == nil {
		return false
	}
	return t.Alternative != Less && *r.Low > t.Equals || t.Alternative != Greater && *r.High < t.Equals
}

// deviates reports whether the interval of any item excludes 0.
func (r Result) deviates() bool {
	for _, i := range r.Items {
		if i.Low != nil && i.High != nil && (*i.Low > 0 || *i.High < 0) {
			return true
		}
	}
	return false
}

const (
	// LeastLevel is the least p-value: intervals are not read at smaller levels (thresholdout.MinLevel).
	LeastLevel = 1e-9
	// almostOne is a level that says no less than 1 does.
	almostOne = 0.999
	// levelSteps halve the logarithm's range: p-values are up by at most 1 in 1000.
	levelSteps = 15
)

// pValue is the least level at which the parts' intervals reject, rounded up (docs/proofs/p-values.md); 1 if there is none, nil where
// levels are not known. It is at most the guarantee's level if and only if the answer itself rejects.
func pValue(o Outcome, rejects func(Outcome) bool) *float64 {
	rejectsAt := func(level float64) bool {
		read, ok := o.At(level)
		return ok && rejects(read)
	}
	if _, ok := o.At(LeastLevel); !ok {
		return nil
	}
	low, high := LeastLevel, 1.0
	if o.Level > 0 {
		if rejects(o) {
			high = o.Level
		} else {
			low = o.Level
		}
	}
	switch {
	case low == LeastLevel && rejectsAt(low):
		return &low
	case high == 1 && !rejectsAt(almostOne): // as most tests of true nulls: none of the levels below needs a look
		return &high
	}
	for range levelSteps {
		if middle := math.Sqrt(low * high); rejectsAt(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	if high == o.Level {
		high = decimal(high)
	}
	return &high
}

// decimal is a level as it was declared: at a confidence of 0.95 it is 0.05, where 1 - 0.95 in doubles is 0.050000000000000044, which a reader who
// compares a p-value with 0.05 would take for more. It moves by no more than 1 - confidence was rounded by.
func decimal(level float64) float64 {
	const (
		digits  = 1e12
		rounded = 0x1p-53 // half a unit in the last place of a number below 1
	)
	if said := math.Round(level*digits) / digits; said < level && level-said <= rounded {
		return said
	}
	return level
}

// bySample is the p-value of the test by itself, of parts that are read by their own sample; nil for others. At a level E each end of a part's interval misses with probability at most e^-E,
// whatever the other parts do. Two-sided all ends count; on one side one end of each part decides, for the answer is monotone in it, but for a part that is Mixed. So at E a true null is rejected with probability at most as many
// times e^-E as there are ends that count, and the p-value is the least of these bounds at which it is rejected: since intervals are nested, it is at most u with probability at most u.
func (t *Test) bySample(o Outcome, s Shape) *float64 {
	ends := float64(len(o.Parts))
	if t.Alternative == TwoSided || t.Mixed {
		ends *= 2
	}
	for _, p := range o.Parts {
		if p.Alone == nil || p.Missing {
			return nil
		}
	}
	if ends == 0 {
		return nil
	}
	rejectsAt := func(level float64) bool {
		read := o
		read.Parts = slices.Clone(o.Parts)
		for i := range read.Parts {
			p := &read.Parts[i]
			p.Low, p.High = p.Alone(level)
			p.Bounded = true
		}
		return t.rejects(s.combine(read))
	}
	low, high := math.Log(ends), math.Log(ends/LeastLevel)
	p := 1.0
	switch {
	case rejectsAt(high):
		p = LeastLevel
	case rejectsAt(low):
		for range levelSteps {
			if middle := (low + high) / 2; rejectsAt(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		p = min(ends*math.Exp(-low), 1)
	}
	return &p
}
