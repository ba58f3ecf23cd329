package shape

import (
	"fmt"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Plan is a query as row functions, the program by which they are released, and the shape of its answer.
type Plan struct {
	Functions []rowfn.Function // what one pass over the rows sums
	Range     Range            // of the answer; of one whose Shape is Affine with PerUnit, of the answer divided by the number of units
	FromZero  bool             // the answer is about how far it is from 0, so an interval wider than that says little
	Program   []Release        // in the order of Functions; nil: each a number by itself; a Search has none
	Shape     Shape
	Decision  *Decision // makes a verdict of the answer; nil without one
	Test      *Test     // makes p-values of the answer; nil without one
	Equations Equations // of which the answer is made too; nil where that is not known
	Checks    *Checks   // the form for a mechanism that checks statistics; nil: what follows from Equations
	Words     Description

	// CheckWords is what Words says otherwise of the form by Checks, where that is not the root of one equation.
	CheckWords CheckWords

	// Values are the expressions of the query whose values may count as others than a reader takes them for.
	Values []Values

	statistics []Statistic // by which it is released: AsChecked
	single     bool        // units are single rows: OfRows
	beside     Beside      // what is summed for promises: Bearing

	// Fitted says that what is asked about may have been fitted to the training part, as a model and its predictions are: what the training part says of it is
	// then kept nowhere else, and the check part is asked instead.
	Fitted bool

	// Leaks are columns that a model reads and that tell its label.
	Leaks []Leak

	// HoldoutOnly says that the row functions are about the rows of the holdout alone, since numbers for these came with the
	// question: the training part has no say in them.
	HoldoutOnly bool

	// Measured says that the holdout's value is asked for, whatever is guessed of it.
	Measured bool

	// Clipped says that the answer is a mean of clipped products in the place of a correlation or a covariance, which nobody asked for by name.
	Clipped bool

	// ZeroOne says that the answer is the mean of a loss that is 0 or 1 in every row, as a ladder takes it.
	ZeroOne bool
}

// Leak is a column that a model reads and that tells its label, in which case it is no model of a new row.
type Leak struct {
	Column, Label string
	Same          bool // the label is made of the column; else the column tells it by itself in the training part
}

// Shape is how the means of a plan's row functions make its answer: one of the types of this package.
type Shape interface {
	// items are the names of the answer's items where each mean is released by itself; nil where it is one number.
	items() []string
	combine(o Outcome) Result
}

// Description is a plan in words, for people.
type Description struct {
	Functions []string `json:"row_functions"` // each row function, in words and canonical text; many alike are one line
	Combine   string   `json:"combine"`       // how their means make the answer
	Null      string   `json:"null"`          // what a null counts as
	Target    string   `json:"target"`        // what the interval is about
}

// Describe says what will be asked.
func (p *Plan) Describe() Description { return p.Words }

// Affine is the plan's shape where the answer is the mean of its only row function, moved to a range; nil for every other.
func (p *Plan) Affine() *Affine {
	if a, ok := p.Shape.(Affine); ok {
		return &a
	}
	return nil
}

// Items are the names of the answer's items, in their order; nil for an answer that is one number or one candidate. together says
// whether the mechanism releases vectors and selections as one: a selection then names its candidate, and has no items.
func (p *Plan) Items(together bool) []string {
	if _, selects := p.Shape.(Selection); selects && together {
		return nil
	}
	return p.Shape.items()
}

// Candidates are the names among which a selection chooses; nil for answers that select nothing.
func (p *Plan) Candidates() []string {
	if s, ok := p.Shape.(Selection); ok {
		return s.Names
	}
	return nil
}

// Scalar reports whether the answer is one number.
func (p *Plan) Scalar() bool { return p.Items(false) == nil && p.Candidates() == nil }

// Combine turns what was released into the answer.
func (p *Plan) Combine(o Outcome) Result {
	selected := 0
	if len(o.Choices) > 0 {
		for _, r := range p.Program {
			if r.Kind == Select {
				selected += r.Count
			}
		}
	}
	if want := p.Numbers() - selected; len(o.Parts) != want {
		panic(fmt.Sprintf("shape: %d parts of a plan that releases %d", len(o.Parts), want))
	}
	r := p.Shape.combine(o)
	if p.Decision != nil {
		p.Decision.decide(&r)
	}
	if p.Test != nil {
		p.Test.judge(&r, o, p.Shape)
	}
	r.mend()
	return r
}

// Decision is a verdict on an answer that is one number: yes where the whole interval is above Bar, no where none of it is. With Least
// it is about minus the answer: yes where the whole interval is below -Bar.
type Decision struct {
	Bar   float64
	Least bool
}

func (d Decision) decide(r *Result) {
	r.Verdict = Undecided
	if r.Value == nil || r.Low == nil || r.High == nil {
		return
	}
	low, high := *r.Low, *r.High
	if d.Least {
		low, high = -high, -low
	}
	switch {
	case low > d.Bar:
		r.Verdict = Yes
	case high <= d.Bar:
		r.Verdict = No
	}
}
