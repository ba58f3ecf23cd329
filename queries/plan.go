package queries

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/interval"
)

// Plan is a query as row functions, the program by which they are released, and the way back from what was released to the
// answer.
type Plan struct {
	Functions []RowFunction // what one pass over the rows sums
	Range     Range         // of the answer; for counts and sums, of the answer divided by the number of units
	FromZero  bool          // the answer is about how far it is from 0, so an interval wider than that says little
	releases  []Release     // in the order of Functions; nil: each a number by itself
	search    *search       // instead of releases
	combine   func(Outcome) Result
	describe  Description

	holdoutOnly bool

	// Candidates are the names among which a selection chooses; nil for answers that select nothing.
	Candidates []string

	// ZeroOne says that the answer is the mean of a loss that is 0 or 1 in every row, as a ladder takes it.
	ZeroOne bool
}

// HoldoutOnly reports whether the row functions are about the rows of the holdout alone, since numbers for these came with the
// question: the training part has no say in them.
func (p *Plan) HoldoutOnly() bool { return p.holdoutOnly }

// ReleaseKind says how row functions that belong together may be released.
type ReleaseKind uint8

const (
	Number    ReleaseKind = iota // each mean by itself
	Vector                       // all means as one vector, which releases less than its coordinates one by one
	Selection                    // only which mean is the largest
)

// Release is a stretch of a plan's row functions that may be released as one. A mechanism that cannot releases numbers
// instead: Vector and Selection say what is enough, not what must be hidden.
type Release struct {
	Kind  ReleaseKind
	Count int // row functions
	// Variance of a Vector is a sure bound, over all tables, of the variance over the units of its coordinates, summed:
	// at most Count/4; 1-1/d for d functions of which one is 1 and the others 0 at every unit.
	Variance float64
	// Optional Numbers are released as far as the budget for surprises lasts, and are Missing after that. Without it, a question
	// is answered whole or not asked.
	Optional bool
}

// ErrSpent is what a Releaser returns for an Optional number that the budget does not pay for any more.
var ErrSpent = errors.New("queries: the budget for surprises is spent")

// search asks one row function in each step and chooses it by what was released in the steps before. Each row function belongs to
// one step, for a mechanism may have fresh rows for each; one that can be asked in several steps is listed for each of them.
type search struct {
	steps int
	next  func(released []Part) int // the row function that is asked after these
	step  func(function int) int    // that a row function belongs to, never falling along Functions
}

// numbers is one release of each row function by itself.
func numbers(count int) []Release { return []Release{{Kind: Number, Count: count}} }

func (p *Plan) program() []Release {
	if p.releases == nil {
		return numbers(len(p.Functions))
	}
	return p.releases
}

// Part is a released mean of one row function, in [0,1].
type Part struct {
	Function  int // the index in Functions of the row function that it is the mean of; [Plan.Release] sets it
	Value     float64
	Low, High float64 // the interval, where Bounded; parts of one answer hold simultaneously
	Bounded   bool
	Missing   bool // it was not released
	// Fresh says that nothing had been told of the units that the part is a mean of, before the request that it belongs to; then
	// Units is their number and Sigma the standard deviation of its noise.
	Fresh bool
	Units int64
	Sigma float64
	// At is the interval that the part would have if any interval of the guarantee missed with probability at most level; false where
	// it is not known; nil where no level is. Tests make p-values of it.
	At func(level float64) (low, high float64, ok bool)
}

// interval is the part's interval within [0,1].
func (p Part) interval() interval.Interval {
	if !p.Bounded {
		return interval.Interval{Low: 0, High: 1}
	}
	return interval.Interval{Low: p.Low, High: p.High}.Clip(0, 1)
}

// Choice is the outcome of a Selection: the index of the function with the largest mean, within its release.
type Choice struct {
	Index   int
	Regret  float64 // its mean in the population is at most so much less than the largest one, where Bounded
	Bounded bool
}

// Outcome is what was released of a plan.
type Outcome struct {
	N       int64    // units of the holdout
	Level   float64  // the probability that any interval of the guarantee misses; 0 where it is not known
	Parts   []Part   // in the order of Functions; of a search, of those on its way; none for functions of Choices
	Choices []Choice // of the selections that were released as one
}

// Releaser releases means of a plan's row functions: a mechanism, or what foresees one.
type Releaser interface {
	// Together reports whether vectors and selections can be released as one.
	Together() bool
	// Number releases the mean of one row function of Functions.
	Number(function int) (Part, error)
	// Vector releases the means of count row functions from first on, if Together.
	Vector(first, count int, variance float64) ([]Part, error)
	// Select releases which of count row functions from first on has the largest mean, if Together.
	Select(first, count int) (Choice, error)
}

// Release runs the plan's program. n is the number of units of the holdout.
func (p *Plan) Release(n int64, r Releaser) (Outcome, error) {
	out := Outcome{N: n}
	if p.search != nil {
		for range p.search.steps {
			function := p.search.next(out.Parts)
			part, err := r.Number(function)
			if err != nil {
				return out, err
			}
			part.Function = function
			out.Parts = append(out.Parts, part)
		}
		return out, nil
	}
	first := 0
	for _, release := range p.program() {
		if err := out.release(r, release, first); err != nil {
			return out, err
		}
		first += release.Count
	}
	return out, nil
}

func (out *Outcome) release(r Releaser, release Release, first int) error {
	switch {
	case release.Kind == Vector && r.Together():
		parts, err := r.Vector(first, release.Count, release.Variance)
		for i := range parts {
			parts[i].Function = first + i
		}
		out.Parts = append(out.Parts, parts...)
		return err
	case release.Kind == Selection && r.Together():
		choice, err := r.Select(first, release.Count)
		out.Choices = append(out.Choices, choice)
		return err
	}
	spent := false
	for i := first; i < first+release.Count; i++ {
		part := Part{Missing: true}
		if !spent {
			var err error
			part, err = r.Number(i)
			if spent = release.Optional && errors.Is(err, ErrSpent); spent {
				part = Part{Missing: true}
			} else if err != nil {
				return err
			}
		}
		part.Function = i
		out.Parts = append(out.Parts, part)
	}
	return nil
}

// Step is the place, from 0, of a row function among those that are asked one after another: a search asks one of each step.
func (p *Plan) Step(function int) int {
	if p.search == nil {
		return function
	}
	return p.search.step(function)
}

// Sequential reports whether what is asked depends on earlier answers of the same query, as in a search.
func (p *Plan) Sequential() bool { return p.search != nil }

// Numbers is how many means are released where each is released by itself.
func (p *Plan) Numbers() int {
	if p.search != nil {
		return p.search.steps
	}
	return len(p.Functions)
}

// Releases are the plan's releases in order; a search is so many numbers.
func (p *Plan) Releases() []Release {
	if p.search != nil {
		return numbers(p.search.steps)
	}
	return p.program()
}

// Result is the answer in the query's own units. Which members it has depends on the type of the query.
type Result struct {
	Value     *float64 // nil where the answer is undefined: as far as can be told, the condition holds nowhere
	Low, High *float64 // nil where a part has no interval

	Items    []Item   // of answers that are many numbers
	Selected string   // argmax: the name of the candidate
	Regret   *float64 // argmax: the best candidate is at most so much better, in the query's units; nil without a bound
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

// Verdict is the outcome of a decision.
type Verdict string

const (
	Yes       Verdict = "yes"       // the whole interval says so
	No        Verdict = "no"        // the whole interval says otherwise
	Undecided Verdict = "undecided" // the interval holds both
)

// Combine turns what was released into the answer.
func (p *Plan) Combine(o Outcome) Result {
	selected := 0
	if len(o.Choices) > 0 {
		for _, r := range p.program() {
			if r.Kind == Selection {
				selected += r.Count
			}
		}
	}
	if want := p.Numbers() - selected; len(o.Parts) != want {
		panic(fmt.Sprintf("queries: %d parts of a plan that releases %d", len(o.Parts), want))
	}
	r := p.combine(o)
	r.mend()
	return r
}

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

// Description is a plan in words, for people.
type Description struct {
	Functions []string `json:"row_functions"` // each row function, in words and canonical text; many alike are one line
	Combine   string   `json:"combine"`       // how their means make the answer
	Null      string   `json:"null"`          // what a null counts as
	Target    string   `json:"target"`        // what the interval is about
}

// Describe says what will be asked.
func (p *Plan) Describe() Description { return p.describe }

// affine answers with scale · (low + width · mean), the mean being that of the only row function.
func affine(r Range, scaled bool) func(Outcome) Result {
	return func(o Outcome) Result {
		scale := 1.0
		if scaled {
			scale = float64(o.N)
		}
		return finish(o.Parts[0].Value, o.Parts[0].interval(), o.Parts[0].Bounded, r, scale)
	}
}

// ratio answers with low + width · (mean of the first row function / mean of the second). The first is never above the
// second at any unit, so the ratio lies in [0,1].
func ratio(r Range) func(Outcome) Result {
	return func(o Outcome) Result {
		value, quotient, defined := divide(o.Parts[0], o.Parts[1])
		result := finish(value, quotient, o.Parts[0].Bounded && o.Parts[1].Bounded, r, 1)
		if !defined {
			result.Value = nil
		}
		return result
	}
}

// divide is above/below for a part that is never above the other at any unit: a number in [0,1] and its interval; undefined
// where below is not positive.
func divide(above, below Part) (value float64, quotient interval.Interval, defined bool) {
	quotient = interval.Interval{Low: 0, High: 1}
	if !(below.Value > 0) {
		return 0, quotient, false
	}
	a, b := above.interval(), below.interval()
	if b.High > 0 {
		quotient.Low = a.Div(interval.Point(b.High)).Low
	}
	if b.Low > 0 {
		quotient.High = a.Div(interval.Point(b.Low)).High
	}
	return min(min(max(above.Value, 0), 1)/min(below.Value, 1), 1), quotient.Clip(0, 1), true
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
