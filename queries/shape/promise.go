package shape

import "github.com/holdoutd/holdoutd/rowfn"

// A plan whose answer is the mean of one row function can bear a promise: a bound on the holdout that is checked there, by sums that are taken in the same pass.

// Beside says what is summed beside a plan's mean, about promises.
type Beside struct {
	Squares   bool // the function's square over the units
	Distances bool // the function's distance from 0, of a range that is symmetric about it
	Suggest   bool // the same of the training part, and the higher moments where they are known: it suggests the promise
}

// CanBear reports whether the plan's answer is the mean of one row function over all units, moved to a range; distances, whether that range is symmetric about 0.
func (p *Plan) CanBear() (mean, distances bool) {
	if p.Checked() || p.Affine() == nil || len(p.Functions) != 1 {
		return false, false
	}
	f := p.Functions[0]
	return true, f.Lo == -f.Hi
}

// Bearing is the plan of the same answer, whose passes sum what is asked beside. It is for plans that can bear a promise.
func (p *Plan) Bearing(b Beside) *Plan {
	bearing := *p
	bearing.beside = b
	return &bearing
}

// Beside is what is summed beside the plan's mean.
func (p *Plan) Beside() Beside { return p.beside }

// withBeside appends what is summed beside the mean of the batch's only function.
func (p *Plan) withBeside(b *rowfn.Batch, sampled bool) {
	if p.beside.Squares {
		b.Products = append(b.Products, rowfn.Product{})
	}
	if p.beside.Distances {
		b.Functions = append(b.Functions, distance(p.Functions[0]))
	}
	if square := p.square(sampled); square != nil {
		at := len(b.Functions)
		b.Functions = append(b.Functions, *square)
		b.Products = append(b.Products, rowfn.Product{A: 0, B: at}, rowfn.Product{A: at, B: at})
	}
}

// distance is the distance of a row function's value from 0, by the width of its range to one side. Of a unit with several rows it is the mean of the rows'
// distances, which is no less than the distance of the unit's mean.
func distance(f rowfn.Function) rowfn.Function {
	away := f
	away.Value, away.Lo, away.Null = rowfn.Abs(InUnits(f)), 0, f.Hi
	return away
}

// square is the square of the plan's function as a row function, for the higher moments of the training part; nil where they are not asked for, or not known.
func (p *Plan) square(sampled bool) *rowfn.Function {
	if !sampled || !p.beside.Suggest || !p.beside.Squares {
		return nil
	}
	if e := p.Equation(); e != nil {
		return e.Square
	}
	return nil
}

// BesideSums are the sums of one part beside that of a plan's mean, in steps of 1/One and 1/One²; what is nil was not summed.
type BesideSums struct {
	Squares, Third, Fourth *rowfn.Wide
	Distances              *int64
}

// BesideOf are these sums, of those of one pass ([Plan.Pass]).
func (p *Plan) BesideOf(s rowfn.Sums, sampled bool) (b BesideSums) {
	values, products := s.Values[1:], s.Products
	if p.beside.Squares {
		b.Squares, products = &products[0], products[1:]
	}
	if p.beside.Distances {
		b.Distances = &values[0]
	}
	switch e := p.Equation(); {
	case p.square(sampled) != nil:
		b.Third, b.Fourth = &products[0], &products[1]
	case e != nil && e.Binary: // no power of 0 or 1 is another number
		power := rowfn.Times(s.Values[0], rowfn.One)
		b.Third, b.Fourth = &power, &power
	}
	return b
}
