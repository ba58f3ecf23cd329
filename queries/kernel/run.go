package kernel

import (
	"sync"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Units says which rows make a unit.
type Units struct {
	Offsets []uint32 // unit u is the rows Offsets[u] to Offsets[u+1]-1, at least one; nil: every row is its own unit
	Cap     int64    // of rowfn.UnitShare, 1 to dataset.MaxRows
}

// State is what one goroutine needs to run a program: registers and sums. It may be used for one program after another.
type State struct {
	program *Program
	fast    *vectors
	numbers [][]float64
	bytes   [][]uint8
	codes   [][]uint32
	sums    []int64
	slab    []float64
	masks   []uint8

	products []rowfn.Wide
	values   [][]uint32 // of the units that end in the block, for products
	list     []uint32   // the memory of values

	scores   [][]float64   // of models
	features [][]float64   // of the model that is computed
	scratch  rowfn.Scratch // what it needs for itself

	// With units of several rows:
	units   Units
	next    int        // the first unit that does not end before the block
	carries [][2]int64 // by function: the sums of that unit in earlier blocks
	prefix  [2][MaxBlock + 1]int64
	fixed   [MaxBlock]uint32 // values that running sums are made of
	block   int
}

var states = sync.Pool{New: func() any { return new(State) }}

// NewState returns a state for a program, an earlier one's memory where there is any. block is the number of rows of a
// block, 1 to MaxBlock; results do not depend on it.
func NewState(p *Program, units Units, block int) *State {
	if err := p.Fill(); err != nil {
		panic(err) // whoever has mapped dictionaries calls Fill before
	}
	s := states.Get().(*State)
	s.program, s.units, s.block, s.fast = p, units, block, fast
	s.numbers = resized(s.numbers, p.numbers.count())
	s.bytes = resized(s.bytes, p.bytes.count())
	s.codes = resized(s.codes, p.codes.count())
	s.sums = resized(s.sums, p.functions)
	clear(s.sums)
	s.carries = resized(s.carries, p.functions)
	clear(s.carries)
	s.products = resized(s.products, len(p.products))
	clear(s.products)
	s.values, s.list = resized(s.values, p.values), resized(s.list, p.values*block)
	for i := range s.values {
		s.values[i] = s.list[i*block : (i+1)*block]
	}
	numbers, masks := p.Registers()
	numbers -= ScratchRegisters(p.scratch, p.bits)
	masks -= 4 * p.values
	s.scratch = rowfn.Scratch{Numbers: resized(s.scratch.Numbers, p.scratch), Bits: resized(s.scratch.Bits, p.bits)}
	s.slab, s.masks = resized(s.slab, numbers*block), resized(s.masks, masks*block)
	s.scores, s.features = resized(s.scores, p.scores), resized(s.features, p.features)
	for i := range p.scores {
		numbers--
		s.scores[i] = s.slab[numbers*block : (numbers+1)*block]
	}
	for i := range numbers {
		s.numbers[len(p.numbers.columns)+i] = s.slab[i*block : (i+1)*block]
	}
	for i := range masks {
		s.bytes[len(p.bytes.columns)+i] = s.masks[i*block : (i+1)*block]
	}
	for i, k := range p.constants {
		fill(s.numbers[len(p.numbers.columns)+i], k)
	}
	fill(s.bytes[len(p.bytes.columns)], 0)
	fill(s.bytes[len(p.bytes.columns)+1], 1)
	return s
}

// Release gives the state's memory back. The state must not be used afterwards.
func (s *State) Release() {
	clear(s.numbers) // they may view a mapped table
	clear(s.features)
	clear(s.bytes)
	clear(s.codes)
	s.program, s.units = nil, Units{}
	states.Put(s)
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func fill[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// Sums are the sums of the row functions over what Add was given so far. The slice is the state's own.
func (s *State) Sums() []int64 { return s.sums }

// Products are the sums of the products. The slice is the state's own.
func (s *State) Products() []rowfn.Wide { return s.products }

// Add adds the units from..to-1 to the sums. It does not allocate.
func (s *State) Add(from, to int64) {
	rows, end := int(from), int(to)
	if s.units.Offsets != nil {
		rows, end = int(s.units.Offsets[from]), int(s.units.Offsets[to])
		s.next = int(from)
	}
	for ; rows < end; rows += s.block {
		s.run(rows, min(s.block, end-rows))
	}
}

// run evaluates the rows base..base+n-1.
func (s *State) run(base, n int) {
	p := s.program
	for i, c := range p.numbers.columns {
		s.numbers[i] = c.Numbers[base : base+n]
	}
	for i, c := range p.bytes.columns {
		s.bytes[i] = c.Bools[base : base+n]
	}
	for i, c := range p.codes.columns {
		s.codes[i] = c.Codes[base : base+n]
	}
	ended := 0
	if s.units.Offsets != nil {
		ended = s.endedBy(base + n)
	}
	for i := range p.steps {
		switch t := &p.steps[i]; {
		case t.sink == nil && t.class() == numberClass:
			s.number(t, n)
		case t.sink == nil:
			s.condition(t, n)
		case s.units.Offsets != nil:
			s.unitSum(t, base, n, ended)
		case t.sink.values == noValues:
			s.sums[t.sink.function] += s.rowSum(t, n)
		default:
			s.sums[t.sink.function] += s.rowValues(t, n)
		}
	}
	if s.units.Offsets == nil {
		s.multiply(n)
	} else {
		s.multiply(ended)
	}
	s.next += ended
}

// number runs a step that computes a Number.
func (s *State) number(t *step, n int) {
	from := s.fast.number(s, t, n)
	dst := s.numbers[t.dst][from:n]
	var a, b []float64
	switch t.op {
	case opLookup, opScores, opScore:
		s.model(t, dst)
		return
	}
	if t.op != opSelect {
		a = s.numbers[t.a][from:n]
	}
	if t.b != none {
		b = s.numbers[t.b][from:n]
	}
	switch {
	case t.op == opSelect:
		choose(dst, s.bytes[t.a][from:n], b, s.numbers[t.c][from:n])
	case t.op == opClamp:
		clampConst(dst, a, t.k, t.high)
	case t.constant:
		arithmeticConst(t, dst, a)
	case t.op >= opAdd:
		arithmetic(t, dst, a, b)
	default:
		elementary(t, dst, a)
	}
	if t.check {
		finite(dst)
	}
}

func arithmeticConst(t *step, dst, a []float64) {
	switch t.op {
	case opAdd:
		addConst(dst, a, t.k)
	case opMul:
		mulConst(dst, a, t.k)
	case opDiv:
		divConst(dst, a, t.k)
	}
}

func arithmetic(t *step, dst, a, b []float64) {
	switch t.op {
	case opAdd:
		add(dst, a, b)
	case opSub:
		sub(dst, a, b)
	case opMul:
		mul(dst, a, b)
	case opDiv:
		div(dst, a, b)
	case opMin:
		minimum(dst, a, b)
	case opMax:
		maximum(dst, a, b)
	}
}

func elementary(t *step, dst, a []float64) {
	switch t.op {
	case opNeg:
		neg(dst, a)
	case opAbs:
		abs(dst, a)
	case opLog:
		log(dst, a)
	case opExp:
		exp(dst, a)
	case opSqrt:
		sqrt(dst, a)
	case opFloor:
		floor(dst, a)
	case opCeil:
		ceil(dst, a)
	case opPart:
		timePart(exprOp(t.aux), dst, a)
	}
}

// condition runs a step that computes bytes.
func (s *State) condition(t *step, n int) {
	from := s.fast.condition(s, t, n)
	dst := s.bytes[t.dst][from:n]
	switch t.op {
	case opBool:
		isTrue(dst, s.bytes[t.a][from:n])
	case opBoolNull:
		isNullBool(dst, s.bytes[t.a][from:n])
	case opNot:
		not(dst, s.bytes[t.a][from:n])
	case opAnd:
		and(dst, s.bytes[t.a][from:n], s.bytes[t.b][from:n])
	case opOr:
		or(dst, s.bytes[t.a][from:n], s.bytes[t.b][from:n])
	case opIsNull:
		isNull(dst, s.numbers[t.a][from:n])
	case opInList:
		inList(dst, s.numbers[t.a][from:n], t.list)
	case opRank:
		ranks(dst, s.numbers[t.a][from:n], t.list, t.falling)
	case opAbove:
		above(dst, s.bytes[t.a][from:n], t.aux)
	case opCodeEq:
		codeEqual(dst, s.codes[t.a][from:n], t.aux)
	case opCodeNe:
		codeDiffers(dst, s.codes[t.a][from:n], t.aux)
	case opCodeTable:
		if t.table.bytes != nil {
			codeBytes(dst, s.codes[t.a][from:n], t.table.bytes)
		} else {
			codeLookup(dst, s.codes[t.a][from:n], t.table.bits)
		}
	case opCodesEq:
		codesEqual(dst, s.codes[t.a][from:n], s.codes[t.b][from:n], t.marks)
	case opCodesNe:
		codesDiffer(dst, s.codes[t.a][from:n], s.codes[t.b][from:n], t.marks)
	default:
		if t.constant {
			compareConst(t.op, dst, s.numbers[t.a][from:n], t.k)
		} else {
			compare(t.op, dst, s.numbers[t.a][from:n], s.numbers[t.b][from:n])
		}
	}
}

func compareConst(o op, dst []uint8, a []float64, k float64) {
	switch o {
	case opLess:
		lessConst(dst, a, k)
	case opLessEq:
		lessEqConst(dst, a, k)
	case opGreater:
		greaterConst(dst, a, k)
	case opGreaterEq:
		greaterEqConst(dst, a, k)
	case opEq:
		equalConst(dst, a, k)
	case opNe:
		differConst(dst, a, k)
	}
}

func compare(o op, dst []uint8, a, b []float64) {
	switch o {
	case opLess:
		less(dst, a, b)
	case opLessEq:
		lessEq(dst, a, b)
	case opEq:
		equal(dst, a, b)
	case opNe:
		differ(dst, a, b)
	}
}

// rowSum is the sum of a row function over a block of single-row units.
func (s *State) rowSum(t *step, n int) int64 {
	k := t.sink
	if k.number != none {
		if k.everyRow {
			return s.fast.sumFixed(s.numbers[t.a][:n], k.grid)
		}
		return s.fast.sumFixedWhere(s.numbers[t.a][:n], s.bytes[t.c][:n], k.grid)
	}
	sum := (k.on - k.off) * s.fast.count(s.bytes[t.b][:n])
	if k.off != 0 {
		sum += k.off * s.fast.count(s.bytes[t.c][:n])
	}
	return sum
}
