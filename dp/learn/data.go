package learn

import (
	"errors"
	"fmt"
	"math"
)

// Data are labelled rows.
type Data struct {
	Dim     int       // features of a row
	Classes int       // labels are in [0, Classes)
	X       []float64 // row-major, len(Y)*Dim finite numbers
	Y       []int     // labels
}

// ErrData is wrapped by what Train and TrainPrivately say of data that are not as Data promises.
var ErrData = errors.New("learn: bad data")

// Len is the number of rows.
func (d Data) Len() int { return len(d.Y) }

// Row returns row i, not a copy of it.
func (d Data) Row(i int) []float64 { return d.X[i*d.Dim : (i+1)*d.Dim : (i+1)*d.Dim] }

// Subset returns copies of the named rows, in their order.
func (d Data) Subset(rows []int) Data {
	s := Data{Dim: d.Dim, Classes: d.Classes, X: make([]float64, 0, len(rows)*d.Dim), Y: make([]int, 0, len(rows))}
	for _, i := range rows {
		s.X, s.Y = append(s.X, d.Row(i)...), append(s.Y, d.Y[i])
	}
	return s
}

func (d Data) check(dim, classes int) error {
	if d.Dim != dim || d.Classes != classes {
		return fmt.Errorf("%w: %d features and %d classes for a model of %d and %d", ErrData, d.Dim, d.Classes, dim, classes)
	}
	if len(d.Y) == 0 || len(d.X) != len(d.Y)*d.Dim {
		return fmt.Errorf("%w: %d numbers for %d rows of %d", ErrData, len(d.X), len(d.Y), d.Dim)
	}
	for i, y := range d.Y {
		if y < 0 || y >= classes {
			return fmt.Errorf("%w: label %d of row %d is not in [0,%d)", ErrData, y, i, classes)
		}
	}
	for i, x := range d.X {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: row %d has a number that is not finite", ErrData, i/d.Dim)
		}
	}
	return nil
}
