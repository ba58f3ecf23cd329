package shape

import "github.com/holdoutd/holdoutd/rowfn"

// Equation is an estimating equation E(A - r·B) = 0 of two row functions, with 0 <= A <= B <= 1 at every unit. Its root r = E A/E B is in
// [0,1], and what it says is the link of r moved to Range.
type Equation struct {
	A       rowfn.Function
	B       *rowfn.Function // nil: 1 at every unit, so that r is a mean
	Whole   bool            // B is 0 or 1 at every unit, so that r is a mean over the units in which it is 1; of course where B is nil
	Range   Range           // r = 0 is Low, r = 1 is High
	Link    Link            // it says this of r, moved to Range
	PerUnit bool            // it says that times the number of units

	// Binary says that A has no value but 0 and 1, by its form; Square is A², where that is a row function. Both are known where units are
	// single rows ([Equation.OfRows]).
	Binary bool
	Square *rowfn.Function

	Words CheckWords // what is said of a plan that is released as the root of this equation
}

// Equations are another way to release the answer of a plan, for a mechanism whose intervals depend on the variance of A - r·B. One says
// the answer itself; of a [Contrast] the first says the one mean and the second the other, over units that exclude each other where
// units are rows; of [Shares], [Groups] and [Each] they say the items, in the order of their row functions. Each is one question there.
type Equations []Equation

// EquationSums are the exact sums that decide about a root, in steps of 1/One and 1/One²: of A, B, A², AB and B² over the units.
type EquationSums struct {
	A, B       int64
	AA, AB, BB rowfn.Wide
}

// Batch is what a pass has to sum: of each equation A, then B where it is not 1, and of the products those that do not follow from the
// sums. Of a mean and of a conditional mean that is A² alone, and nothing where A is 0 or 1. What equations share an engine sums once.
func (e Equations) Batch() (b rowfn.Batch) {
	for i := range e {
		at := len(b.Functions)
		b.Functions = append(b.Functions, e[i].A)
		if !e[i].Binary {
			b.Products = append(b.Products, rowfn.Product{A: at, B: at})
		}
		if e[i].B == nil {
			continue
		}
		b.Functions = append(b.Functions, *e[i].B)
		if !e[i].Whole {
			b.Products = append(b.Products, rowfn.Product{A: at, B: at + 1}, rowfn.Product{A: at + 1, B: at + 1})
		}
	}
	return b
}

// Sums are all five sums of each equation, of the sums of [Equations.Batch] over n units. Where B is 0 or 1, A is 0 where B is, so that
// AB is A and B² is B.
func (e Equations) Sums(s rowfn.Sums, n int64) []EquationSums {
	all := make([]EquationSums, len(e))
	values, products := s.Values, s.Products
	for i := range e {
		sums := EquationSums{A: values[0], B: n * rowfn.One}
		values = values[1:]
		if e[i].Binary {
			sums.AA = rowfn.Times(sums.A, rowfn.One)
		} else {
			sums.AA, products = products[0], products[1:]
		}
		if e[i].B != nil {
			sums.B, values = values[0], values[1:]
		}
		if e[i].Whole {
			sums.AB, sums.BB = rowfn.Times(sums.A, rowfn.One), rowfn.Times(sums.B, rowfn.One)
		} else {
			sums.AB, sums.BB, products = products[0], products[1], products[2:]
		}
		all[i] = sums
	}
	return all
}

// MeansOf are the equations of the means of row functions over all units.
func MeansOf(functions []rowfn.Function) (e Equations) {
	for _, f := range functions {
		e = append(e, Equation{A: f, Whole: true, Range: Range{f.Lo, f.Hi}})
	}
	return e
}

// Equation is that of the first of the means, moved from [0,1] to a range.
func (m Moments) Equation(r Range) Equation {
	e := Equation{A: m.Functions[0], Whole: !m.Rows, Range: r}
	if m.Conditional {
		e.B = &m.Functions[len(m.Functions)-1]
	}
	return e
}

// among is the equation of a mean in the rows in which holds does, every unit counting by the share of its rows that these are. up is the
// first of the two functions of split.
func among(up rowfn.Function, holds *rowfn.Node, grouped bool) Equation {
	return Equation{A: up, B: &rowfn.Function{Value: holds, Lo: 0, Hi: 1}, Whole: !grouped, Range: Range{up.Lo, up.Hi}}
}
