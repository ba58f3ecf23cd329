package kernel

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/kernel/vector"
	"github.com/holdoutd/holdoutd/rowfn"
)

// sink is where a row function ends: the sum of a row's fixed-point values. One that takes two values only is
// (on-off)·[mask] + off·[where], where mask implies where; else it is the grid of a Number, or 0 outside where.
type sink struct {
	function int
	values   int // the list that takes the units' values, for products; or noValues
	perUnit  rowfn.PerUnit
	number   id // or none
	mask     id // where number is none
	where    id // opTrue for everywhere
	everyRow bool
	on, off  int64
	grid     grid
	chain    *chain // how number is computed, where that and the sum are one loop
}

// grid is the rounding of rowfn.Function.
type grid struct {
	lo, hi, null float64
	scale        float64
}

// newGrid returns an error where the contract of a row function is broken, which no query's plan does.
func newGrid(lo, hi, null float64) (grid, error) {
	g := grid{lo, hi, null, float64(rowfn.One) / (hi - lo)}
	if !(lo < hi) || math.IsInf(hi-lo, 0) || math.IsInf(g.scale, 0) || !(lo <= null && null <= hi) {
		return grid{}, fmt.Errorf("kernel: null counts as %v in the range %v to %v", null, lo, hi)
	}
	return g, nil
}

// fixed is the value of one row.
func (g grid) fixed(v float64) int64 {
	if v != v {
		v = g.null
	}
	return int64(float64((max(min(v, g.hi), g.lo)-g.lo)*g.scale) + 0.5)
}

// sink lowers a row function.
func (l *lowering) sink(f *rowfn.Function) (sink, error) {
	g, err := newGrid(f.Lo, f.Hi, f.Null)
	if err != nil {
		return sink{}, err
	}
	s := sink{perUnit: f.PerUnit, number: none, mask: none, where: l.truth(true), grid: g}
	if f.PerUnit > rowfn.UnitShare {
		return sink{}, fmt.Errorf("kernel: unknown per-unit rule %d", f.PerUnit)
	}
	if f.Where != nil {
		if f.Where.Type != rowfn.Condition {
			return sink{}, fmt.Errorf("kernel: where is no condition")
		}
		if s.where, err = l.node(f.Where); err != nil {
			return sink{}, err
		}
	}
	s.everyRow = l.at(s.where).op == opTrue
	switch {
	case f.PerUnit == rowfn.UnitAny:
		s.mask, s.on, s.off = s.where, rowfn.One, 0
		return s, nil
	case f.Value == nil:
		s.mask, s.on, s.off = s.where, g.fixed(1), 0
		return s, nil
	case f.Value.Type == rowfn.Text:
		return sink{}, fmt.Errorf("kernel: the value is text")
	}
	v, err := l.node(f.Value)
	if err != nil {
		return sink{}, err
	}
	x := l.at(v)
	switch {
	case f.Value.Type == rowfn.Condition:
		s.mask, s.on, s.off = l.logic(opAnd, v, s.where), g.fixed(1), g.fixed(0)
	case x.op == opConst:
		s.mask, s.on, s.off = s.where, g.fixed(x.k), 0
	case x.op == opSelect && l.isConst(x.b) && l.isConst(x.c):
		on, off := g.fixed(l.at(x.b).k), g.fixed(l.at(x.c).k)
		s.mask, s.on, s.off = l.logic(opAnd, x.a, s.where), on, off
	default:
		s.number = v
	}
	return s, nil
}

// sumFixed is the sum of grid.fixed. The three comparisons do not depend on one another and become conditional moves.
func sumFixed(a []float64, g grid) int64 {
	sum, done := vector.SumFixed(a, g.lo, g.hi, g.null, g.scale)
	lo, hi, null := math.Float64bits(g.lo), math.Float64bits(g.hi), math.Float64bits(g.null)
	for _, v := range a[done:] {
		b := math.Float64bits(v)
		if v < g.lo {
			b = lo
		}
		if v > g.hi {
			b = hi
		}
		if v != v {
			b = null
		}
		sum += int64(float64((math.Float64frombits(b)-g.lo)*g.scale) + 0.5)
	}
	return sum
}

// sumFixedWhere is sumFixed of the rows in which where is 1.
func sumFixedWhere(a []float64, where []uint8, g grid) int64 {
	sum, done := vector.SumFixedWhere(a, where, g.lo, g.hi, g.null, g.scale)
	a, where = a[done:], where[done:]
	where = where[:len(a)]
	lo, hi, null := math.Float64bits(g.lo), math.Float64bits(g.hi), math.Float64bits(g.null)
	for i, v := range a {
		b := math.Float64bits(v)
		if v < g.lo {
			b = lo
		}
		if v > g.hi {
			b = hi
		}
		if v != v {
			b = null
		}
		sum += int64(float64((math.Float64frombits(b)-g.lo)*g.scale)+0.5) & -int64(where[i])
	}
	return sum
}

// prefixFixed writes the running sums of grid.fixed where where is 1, from start on: dst[i+1] includes row i.
func prefixFixed(dst []int64, start int64, a []float64, where []uint8, g grid) {
	where, dst = where[:len(a)], dst[:len(a)+1]
	lo, hi, null := math.Float64bits(g.lo), math.Float64bits(g.hi), math.Float64bits(g.null)
	dst[0] = start
	dst = dst[1:][:len(a)]
	for i, v := range a {
		b := math.Float64bits(v)
		if v < g.lo {
			b = lo
		}
		if v > g.hi {
			b = hi
		}
		if v != v {
			b = null
		}
		start += int64(float64((math.Float64frombits(b)-g.lo)*g.scale)+0.5) & -int64(where[i])
		dst[i] = start
	}
}

// prefixCount writes the running number of ones, from start on.
func prefixCount(dst []int64, start int64, a []uint8) {
	dst = dst[:len(a)+1]
	dst[0] = start
	dst = dst[1:][:len(a)]
	for i, b := range a {
		start += int64(b)
		dst[i] = start
	}
}

// prefixTwo writes the running sums of (on-off)·mask + off·where.
func prefixTwo(dst []int64, start int64, mask, where []uint8, on, off int64) {
	where, dst = where[:len(mask)], dst[:len(mask)+1]
	dst[0] = start
	dst = dst[1:][:len(mask)]
	for i, b := range mask {
		start += (on-off)*int64(b) + off*int64(where[i])
		dst[i] = start
	}
}
