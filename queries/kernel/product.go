package kernel

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/holdoutd/holdoutd/rowfn"
)

// product is one of a batch: the places of two lists of values.
type product struct{ a, b int }

// noValues is the place of a row function whose values nothing but its sum needs.
const noValues = -1

// keepValues gives the row functions of products lists in which they leave the values of a block's units.
func (p *Program) keepValues(sinks []sink, products []rowfn.Product) error {
	for i := range sinks {
		sinks[i].values = noValues
	}
	for _, pair := range products {
		var places [2]int
		for k, at := range [2]int{pair.A, pair.B} {
			if at < 0 || at >= len(sinks) {
				return fmt.Errorf("kernel: a product of function %d of %d", at, len(sinks))
			}
			if sinks[at].values == noValues {
				sinks[at].values = p.values
				p.values++
			}
			places[k] = sinks[at].values
		}
		p.products = append(p.products, product{places[0], places[1]})
	}
	return nil
}

// multiply adds the products of the values of count units to their sums.
func (s *State) multiply(count int) {
	for i, p := range s.program.products {
		s.products[i] = s.products[i].Plus(s.fast.dot(s.values[p.a][:count], s.values[p.b][:count]))
	}
}

// dot is the sum of the products of two lists, with no element above rowfn.One: eight products of at most 2^60 are added without
// a carry.
func dot(a, b []uint32) rowfn.Wide {
	b = b[:len(a)]
	var hi, lo uint64
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]uint32)(a), (*[8]uint32)(b)
		sum := uint64(x[0])*uint64(y[0]) + uint64(x[1])*uint64(y[1]) + uint64(x[2])*uint64(y[2]) + uint64(x[3])*uint64(y[3]) +
			uint64(x[4])*uint64(y[4]) + uint64(x[5])*uint64(y[5]) + uint64(x[6])*uint64(y[6]) + uint64(x[7])*uint64(y[7])
		var carry uint64
		lo, carry = bits.Add64(lo, sum, 0)
		hi += carry
		a, b = a[8:], b[8:]
	}
	for i, x := range a {
		var carry uint64
		lo, carry = bits.Add64(lo, uint64(x)*uint64(b[i]), 0)
		hi += carry
	}
	return rowfn.Wide{Hi: hi, Lo: lo}
}

// rowValues is rowSum that leaves the values of the rows.
func (s *State) rowValues(t *step, n int) int64 {
	k := t.sink
	dst := s.values[k.values][:n]
	switch {
	case k.number != none && k.everyRow:
		return s.fast.fixedValues(dst, s.numbers[t.a][:n], k.grid)
	case k.number != none:
		return s.fast.fixedValuesWhere(dst, s.numbers[t.a][:n], s.bytes[t.c][:n], k.grid)
	}
	if k.off == 0 {
		spread(dst, s.bytes[t.b], uint32(k.on))
		return k.on * s.fast.count(s.bytes[t.b][:n])
	}
	return twoValues(dst, s.bytes[t.b][:n], s.bytes[t.c][:n], k.on, k.off)
}

// spread is on where mask is 1, else 0.
func spread(dst []uint32, mask []uint8, on uint32) {
	mask = mask[:len(dst)]
	for i := range dst {
		dst[i] = on & -uint32(mask[i])
	}
}

// fixedValues is sumFixed that leaves the values.
func fixedValues(dst []uint32, a []float64, g grid) int64 {
	a = a[:len(dst)]
	lo, hi, null := math.Float64bits(g.lo), math.Float64bits(g.hi), math.Float64bits(g.null)
	var sum int64
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
		x := int64(float64((math.Float64frombits(b)-g.lo)*g.scale) + 0.5)
		dst[i] = uint32(x)
		sum += x
	}
	return sum
}

// fixedValuesWhere is sumFixedWhere that leaves the values.
func fixedValuesWhere(dst []uint32, a []float64, where []uint8, g grid) int64 {
	where, a = where[:len(dst)], a[:len(dst)]
	lo, hi, null := math.Float64bits(g.lo), math.Float64bits(g.hi), math.Float64bits(g.null)
	var sum int64
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
		x := int64(float64((math.Float64frombits(b)-g.lo)*g.scale)+0.5) & -int64(where[i])
		dst[i] = uint32(x)
		sum += x
	}
	return sum
}

// twoValues is (on-off)·mask + off·where, and its sum.
func twoValues(dst []uint32, mask, where []uint8, on, off int64) int64 {
	mask, where = mask[:len(dst)], where[:len(dst)]
	var sum int64
	for i := range dst {
		x := (on-off)*int64(mask[i]) + off*int64(where[i])
		dst[i] = uint32(x)
		sum += x
	}
	return sum
}

// total is the sum of values.
func total(values []uint32) (sum int64) {
	for _, x := range values {
		sum += int64(x)
	}
	return sum
}

// anyValues is anyOf that leaves the values of the units.
func anyValues(dst []uint32, sums []int64, offsets []uint32, base int) (last int64) {
	for u, end := range offsets[1:] {
		at := sums[int(end)-base]
		dst[u] = uint32(bit(at > last)) * uint32(rowfn.One)
		last = at
	}
	return last
}

// shareValues is shareOf that leaves the values of the units.
func shareValues(dst []uint32, sums []int64, offsets []uint32, base int, scale, least int64) (last int64) {
	start := int64(offsets[0])
	for u, end := range offsets[1:] {
		at := sums[int(end)-base]
		dst[u] = uint32(rounded((at-last)*scale, max(int64(end)-start, least)))
		last, start = at, int64(end)
	}
	return last
}

// meanValues is meanOf that leaves the values of the units.
func meanValues(dst []uint32, sums, counts []int64, offsets []uint32, base int, scale int64) (last, lastCount int64) {
	for u, end := range offsets[1:] {
		at, count := sums[int(end)-base], counts[int(end)-base]
		dst[u] = uint32(rounded((at-last)*scale, max(count-lastCount, 1)))
		last, lastCount = at, count
	}
	return last, lastCount
}
