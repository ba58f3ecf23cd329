package shape

import "github.com/holdoutd/holdoutd/rowfn"

// Equation says that a plan's answer is also the root of an estimating equation E(A - r·B) = 0 of two row functions, with
// 0 <= A <= B <= 1 at every unit: r = E A/E B is in [0,1], and the answer is r moved to Range. It is another way to release the same
// answer, as one question, for a mechanism whose intervals depend on the variance of A - r·B; the plan's own functions are for all others.
type Equation struct {
	A     rowfn.Function
	B     *rowfn.Function // nil: 1 at every unit, so that r is a mean
	Whole bool            // B is 0 or 1 at every unit, so that r is a mean over the units in which it is 1; of course where B is nil
	Range Range           // of the answer: r = 0 is Low, r = 1 is High
	Root  bool            // the answer is the square root of r, moved to Range
}

// EquationSums are the exact sums that decide about a root, in steps of 1/One and 1/One²: of A, B, A², AB and B² over the units.
type EquationSums struct {
	A, B       int64
	AA, AB, BB rowfn.Wide
}

// Equation is that of the first of the means, moved from [0,1] to a range.
func (m Moments) Equation(r Range) *Equation {
	e := &Equation{A: m.Functions[0], Whole: !m.Rows, Range: r}
	if m.Conditional {
		e.B = &m.Functions[len(m.Functions)-1]
	}
	return e
}

// Batch is what a pass has to sum: A, B where it is not 1, and of the products those that do not follow from the sums. Of a mean and of a
// conditional mean that is A² alone.
func (e *Equation) Batch() rowfn.Batch {
	b := rowfn.Batch{Functions: []rowfn.Function{e.A}, Products: []rowfn.Product{{A: 0, B: 0}}}
	if e.B != nil {
		b.Functions = append(b.Functions, *e.B)
	}
	if e.B != nil && !e.Whole {
		b.Products = append(b.Products, rowfn.Product{A: 0, B: 1}, rowfn.Product{A: 1, B: 1})
	}
	return b
}

// Sums are all five sums, of the sums of [Equation.Batch] over n units. Where B is 0 or 1, A is 0 where B is, so that AB is A and B² is B.
func (e *Equation) Sums(s rowfn.Sums, n int64) EquationSums {
	sums := EquationSums{A: s.Values[0], B: n * rowfn.One, AA: s.Products[0]}
	if e.B != nil {
		sums.B = s.Values[1]
	}
	if e.B != nil && !e.Whole {
		sums.AB, sums.BB = s.Products[1], s.Products[2]
		return sums
	}
	sums.AB, sums.BB = rowfn.Times(sums.A, rowfn.One), rowfn.Times(sums.B, rowfn.One)
	return sums
}
