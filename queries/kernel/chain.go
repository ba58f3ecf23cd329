package kernel

import (
	"math"

	"github.com/holdoutd/holdoutd/queries/kernel/vector"
)

// chain is a number that one loop computes and sums: (min(max(x, low), high) + added) * factor, then times y, or squared. It is what a screen, and the means and
// variances of a training part, ask of each of their columns: as steps, each would write and read a register.
type chain struct {
	x, y          id // y is none for no second number
	square        bool
	low, high     float64
	added, factor float64
	bare          bool // neither moved nor scaled, and in the range of the sink's grid
}

// chains finds the sinks whose numbers are chains. What other steps need of a chain is computed for them as ever.
func (a *assembler) chains(sinks []sink) {
	var uses []int32
	for i := range sinks {
		s := &sinks[i]
		if s.number == none || !s.everyRow || s.values != noValues {
			continue
		}
		if uses == nil {
			uses = a.uses()
		}
		if s.chain = a.chain(s.number, uses); s.chain != nil {
			s.chain.bare = a.bare(s.chain, s.grid)
		}
	}
}

// uses counts how often each value is an argument.
func (g *graph) uses() []int32 {
	counts := make([]int32, len(g.values))
	for i := range g.values {
		for _, o := range [3]id{g.values[i].a, g.values[i].b, g.values[i].c} {
			if o != none {
				counts[o]++
			}
		}
	}
	return counts
}

// chain is the chain that a number is, or nil. Of a product of two chains the one that is used less is the one that need not be in a register.
func (g *graph) chain(number id, uses []int32) *chain {
	if c := g.scaled(number); c != nil {
		return c
	}
	v := g.at(number)
	if v.op != opMul || v.check {
		return nil
	}
	x, y := v.a, v.b
	if uses[y] < uses[x] {
		x, y = y, x
	}
	c := g.scaled(x)
	if c == nil {
		x, y = y, x
		if c = g.scaled(x); c == nil {
			return nil
		}
	}
	if c.y = y; x == y {
		c.y, c.square = none, true
	}
	return c
}

// scaled is a chain without a second number.
func (g *graph) scaled(at id) *chain {
	c := &chain{y: none, factor: 1}
	v := g.at(at)
	if v.op == opMul && !v.check && g.isConst(v.b) {
		c.factor = g.at(v.b).k
		v = g.at(v.a)
	}
	if v.op == opAdd && !v.check && g.isConst(v.b) {
		c.added = g.at(v.b).k
		v = g.at(v.a)
	}
	if v.op != opClamp {
		return nil
	}
	c.x, c.low, c.high = v.a, g.at(v.b).k, g.at(v.c).k
	return c
}

// bare says whether a chain is a clamped number, or its product or square, that lies in a range. Rounding is monotonic, so that what holds for the bounds holds for all.
func (g *graph) bare(c *chain, in grid) bool {
	low, high := c.low, c.high
	most := max(math.Abs(low), math.Abs(high))
	switch {
	case c.square:
		low, high = 0, most*most
	case c.y != none:
		high = most * g.at(c.y).bound
		low = -high
	}
	return c.added == 0 && c.factor == 1 && in.lo <= low && high <= in.hi
}

func (a *assembler) emitChain(s *sink) {
	a.emit(s.chain.x)
	a.emit(s.chain.y)
	a.emit(s.where)
	a.steps = append(a.steps, step{sink: s, dst: unplaced, next: none, value: value{a: s.chain.x, b: s.chain.y, c: s.where}})
}

// placeChains gives the chains a register for where they are not one loop, and each the register of the next one. It returns how many registers that takes.
func (a *assembler) placeChains(register int32) int32 {
	next := none
	for i := len(a.steps) - 1; i >= 0; i-- {
		s := &a.steps[i]
		if s.sink == nil || s.sink.chain == nil {
			continue
		}
		if s.next = next; next == none {
			s.next = s.a
		}
		next = s.a
	}
	if next == none {
		return 0
	}
	a.p.chained = register
	return 1
}

// chainSum is rowSum of a chain.
func (s *State) chainSum(t *step, n int) int64 {
	c, g := t.sink.chain, t.sink.grid
	a, next := s.numbers[t.a][:n], s.numbers[t.next][:n]
	var sum int64
	var done int
	switch {
	case c.square && c.bare:
		sum, done = vector.BareSumChainSquare(a, next, c.low, c.high, c.added, c.factor, g.lo, g.hi, g.null, g.scale)
	case c.square:
		sum, done = vector.SumChainSquare(a, next, c.low, c.high, c.added, c.factor, g.lo, g.hi, g.null, g.scale)
	case c.y != none && c.bare:
		sum, done = vector.BareSumChainTimes(a, next, s.numbers[t.b][:n], c.low, c.high, c.added, c.factor, g.lo, g.hi, g.null, g.scale)
	case c.y != none:
		sum, done = vector.SumChainTimes(a, next, s.numbers[t.b][:n], c.low, c.high, c.added, c.factor, g.lo, g.hi, g.null, g.scale)
	case c.bare:
		sum, done = vector.BareSumChain(a, next, c.low, c.high, c.added, c.factor, g.lo, g.hi, g.null, g.scale)
	default:
		sum, done = vector.SumChain(a, next, c.low, c.high, c.added, c.factor, g.lo, g.hi, g.null, g.scale)
	}
	return sum + sumFixed(s.chainNumbers(t, done, n), g)
}

// summed are the numbers that a sink sums.
func (s *State) summed(t *step, n int) []float64 {
	if t.sink.chain != nil {
		return s.chainNumbers(t, 0, n)
	}
	return s.numbers[t.a][:n]
}

// chainNumbers computes a chain in the rows from..to-1 of the block, step by step.
func (s *State) chainNumbers(t *step, from, to int) []float64 {
	c, dst := t.sink.chain, s.numbers[s.program.chained][from:to]
	clampConst(dst, s.numbers[t.a][from:to], c.low, c.high)
	if c.added != 0 {
		addConst(dst, dst, c.added)
	}
	if math.Float64bits(c.factor) != oneBits {
		mulConst(dst, dst, c.factor)
	}
	if c.square {
		mul(dst, dst, dst)
	}
	if c.y != none {
		mul(dst, dst, s.numbers[t.b][from:to])
	}
	return dst
}
