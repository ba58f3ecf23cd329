package shape

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Range is the declared range of a number: values are clamped to it.
type Range struct{ Low, High float64 }

// Limits on a range. Products of two values stay finite, so does the scale 2^30/width of a range and of the product of two,
// and a range is not so narrow for its place that float64 has too few numbers in it.
const (
	MaxMagnitude  = 1e150
	MinWidth      = 1e-140
	MinWidthRatio = 0x1p-40 // of the width to the larger end
)

// Problem says what is wrong with a range, or "".
func (r Range) Problem() string {
	width, end := r.High-r.Low, max(math.Abs(r.Low), math.Abs(r.High))
	switch {
	case !(r.Low < r.High):
		return "the first number must be less than the second"
	case end > MaxMagnitude:
		return fmt.Sprintf("must lie within ±%g", MaxMagnitude)
	case width < MinWidth || width < end*MinWidthRatio:
		return "is too narrow for numbers of this size"
	}
	return ""
}

// Contains reports whether x is in the range.
func (r Range) Contains(x float64) bool { return r.Low <= x && x <= r.High }

// Clamp brings a number into the range; null stays null.
func (r Range) Clamp(x *rowfn.Node) *rowfn.Node { return rowfn.Clamp(x, r.Low, r.High) }

// Valid reports whether there is a range: the zero Range is none.
func (r Range) Valid() bool { return r.Low < r.High }

// String is the range as a query spells it.
func (r Range) String() string { return fmt.Sprintf("[%v, %v]", r.Low, r.High) }
