package shape

import (
	"math"

	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Joint is the [Statistic] of an answer that is a formula of several means of the same units. They are checked as one question, in which each has its share of the
// probability of error: most of it belongs to the mean whose error the answer has in full.
type Joint struct {
	Means  Equations // each whole, and no link; its Range is that of the row function
	Shares []float64 // positive, with a sum of 1
	Range  Range     // of the answer
	Of     Formula
}

// Batch implements [Statistic].
func (j *Joint) Batch() rowfn.Batch { return j.Means.Batch() }

// Sampled implements [Statistic].
func (j *Joint) Sampled() (all rowfn.Batch) {
	for i := range j.Means {
		all.Join(j.Means[i].Sampled())
	}
	return all
}

// Make is the answer, with its interval, of what is known of the means, each in [0,1], in a holdout of n units; a value that is no number is undefined.
func (j *Joint) Make(means []Part, n int64) Part {
	moments, defined := make([]Moment, len(means)), true
	for i, m := range means {
		r := j.Means[i].Range
		width := interval.Point(r.High).Sub(interval.Point(r.Low))
		moments[i] = Moment{r.Low + (r.High-r.Low)*min(max(m.Value, 0), 1), interval.Point(r.Low).Add(width.Mul(m.interval())).Clip(r.Low, r.High)}
		if j.Means[i].B != nil && m.Low <= 0 && m.High >= 1 {
			defined = false // as far as can be told, the condition may hold nowhere
		}
	}
	value, bounds, exists := j.Of(moments, n)
	r := answer(value, bounds, true, defined && exists, j.Range)
	made := Part{Value: math.NaN(), Low: *r.Low, High: *r.High, Bounded: true}
	if r.Value != nil {
		made.Value = *r.Value
	}
	return made
}

// Made is the shape of an answer that is released as it is, in its own units.
type Made struct{ Range Range }

func (m Made) items() []string { return nil }

func (m Made) combine(o Outcome) Result {
	p := o.Parts[0]
	return answer(p.Value, interval.Interval{Low: p.Low, High: p.High}, p.Bounded, !math.IsNaN(p.Value), m.Range)
}

// CheckedBy says how the plan of these moments is checked as one question: by the means of functions, which need not be those of the plan, in the rows in
// which the plan's are. It has no such form where rows have the votes.
func (m Moments) CheckedBy(j Joint, functions ...rowfn.Function) *Checks {
	if m.Rows {
		return nil
	}
	for _, f := range functions {
		e := Equation{A: f, Whole: true, Range: Range{f.Lo, f.Hi}}
		if m.Conditional {
			last := &m.Functions[len(m.Functions)-1]
			e.A.Where, e.A.PerUnit, e.B = last.Where, rowfn.UnitMean, last
		}
		j.Means = append(j.Means, e)
	}
	return &Checks{Statistics: []Statistic{&j}, Shape: Made{j.Range}}
}
