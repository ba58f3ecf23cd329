package shape

import "github.com/holdoutd/holdoutd/rowfn"

// Category is a condition with its name. Of the categories of one plan, at most one holds in a row.
type Category struct {
	Name  string
	Holds *rowfn.Node
}

// Names are the names of categories.
func Names(categories []Category) []string {
	names := make([]string, len(categories))
	for i, k := range categories {
		names[i] = k.Name
	}
	return names
}

// Shares is the shape of the shares of rows in several categories. With Where the first mean is that of the units that count, by
// which the others are divided.
type Shares struct {
	Names []string
	Where bool
}

func (s Shares) items() []string { return s.Names }

func (s Shares) combine(o Outcome) Result {
	parts, unit := o.Parts, Range{0, 1}
	if s.Where {
		parts = parts[1:]
	}
	items := make([]Item, len(s.Names))
	for i, name := range s.Names {
		items[i].Of = name
		switch part := parts[i]; {
		case part.Missing:
		case s.Where:
			items[i].is(ratio(part, o.Parts[0], unit))
		default:
			items[i].is(finish(part.Value, part.interval(), part.Bounded, unit, 1))
		}
	}
	return Result{Items: items}
}

// SharesOf is the plan of the share of rows in each category, of those in which where holds, as one vector.
//
// Let v be the vector of a unit's shares of its rows in the d categories: not negative, its sum s at most 1. The variances of its
// coordinates add up to E|v|² - |Ev|². |v|² <= s, for v_i² <= v_i, and |Ev|² >= (Es)²/d, by Cauchy and Schwarz. With S = Es
// in [0,1] that is at most S - S²/d, which rises in S for d >= 2: 1 - 1/d.
//
// With where, one more coordinate is 1 if the unit has such a row, else 0, and s is that number. Its variance is S - S², and
// the sum at most 2S - S²(1 + 1/d), largest at S = d/(d+1), where it is d/(d+1) = 1 - 1/(d+1).
//
// The mean of a unit's rows is rounded to the grid, so that s can be above 1 by half a step for each coordinate: gridSlack.
func SharesOf(categories []Category, where *rowfn.Node, grouped bool) *Plan {
	p := &Plan{Range: Range{0, 1}, FromZero: true, Shape: Shares{Names(categories), where != nil}}
	any := rowfn.Function{Lo: 0, Hi: 1, Where: where, PerUnit: rowfn.UnitAny}
	if where != nil { // first, for without it the others are nothing
		p.Functions = append(p.Functions, any)
	}
	for _, k := range categories {
		share := Equation{A: rowfn.Function{Value: k.Holds, Lo: 0, Hi: 1, Where: where}, Whole: true, Range: p.Range}
		if where != nil {
			share.B = &any
		}
		p.Functions, p.Equations = append(p.Functions, share.A), append(p.Equations, share)
	}
	p.Program = []Release{{Kind: Vector, Count: len(p.Functions), Variance: sharesVariance(len(p.Functions), grouped), Optional: true}}
	return p
}

// sharesVariance bounds the variances of the shares of d exclusive conditions, summed.
func sharesVariance(d int, grouped bool) float64 {
	variance := 1 - 1/float64(d)
	if grouped {
		variance += gridSlack * float64(d)
	}
	return variance
}

const (
	// gridSlack is what the rounding to the grid adds at most to a sum of variances for each coordinate, twice half a step with room.
	gridSlack = 0x1p-29
	// gridRoom is by how much values are kept within a range whose ends would otherwise be reached, relative to it. The grid's
	// rounding moves each coordinate by at most 2^-31, the middle of a vector of 4096 coordinates by at most 2^-25.
	gridRoom = 0x1p-20
)

// Each is the shape of many means, each by itself, moved to a range and then brought into the narrower one of what is possible.
type Each struct {
	Names   []string
	Defined []bool // nil: all; a name that is not defined has no row function and no value
	Range   Range
	Within  Range
}

func (e Each) items() []string { return e.Names }

func (e Each) combine(o Outcome) Result {
	items, next := make([]Item, len(e.Names)), 0
	for i, name := range e.Names {
		items[i].Of = name
		if e.Defined != nil && !e.Defined[i] {
			continue
		}
		part := o.Parts[next]
		next++
		if part.Missing {
			continue
		}
		one := finish(part.Value, part.interval(), part.Bounded, e.Range, 1)
		for _, end := range []*float64{one.Value, one.Low, one.High} {
			if end != nil {
				*end = min(max(*end, e.Within.Low), e.Within.High)
			}
		}
		items[i].is(one)
	}
	return Result{Items: items}
}

// Gradient is the plan of the means of a vector's coordinates whose length is at most clip at every row, as one vector of ranges ±clip.
//
// In [0,1] a row, whose vector is no longer than clip, is no farther than one half from the middle of the cube, and so is the mean of a
// unit's rows; the variances add up to at most the mean squared distance from the middle, 1/4. The range is wider than clip by
// gridRoom, which covers all rounding.
func Gradient(names []string, coordinates []*rowfn.Node, clip float64) *Plan {
	r := Range{-clip * (1 + gridRoom), clip * (1 + gridRoom)}
	p := &Plan{Range: r, FromZero: true, Shape: Each{Names: names, Range: r, Within: Range{-clip, clip}}}
	for _, x := range coordinates {
		p.Functions = append(p.Functions, rowfn.Function{Value: x, Lo: r.Low, Hi: r.High})
	}
	p.Equations = MeansOf(p.Functions)
	p.Program = []Release{{Kind: Vector, Count: len(coordinates), Variance: 0.25}}
	return p
}
