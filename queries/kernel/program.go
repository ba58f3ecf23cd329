package kernel

import (
	"fmt"
	"sync"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Program evaluates a batch of row functions over the columns of one table. It does not change once its tables are filled, and may be run by many
// goroutines, each with a [State] of its own.
type Program struct {
	functions int
	steps     []step
	numbers   registers
	bytes     registers
	codes     registers
	constants []float64 // of the number registers after the columns
	scores    int       // registers of models' scores
	features  int       // of the model that has the most
	scratch   int       // numbers that the model needs which needs the most
	bits      int       // likewise bits of rows
	tables    []*table  // of the steps that have one
	products  []product
	values    int // lists of units' values that products read
	filled    sync.Once
	damage    error // of Fill
}

// registers are those of one class: columns come first, then constants, then what blocks are computed in.
type registers struct {
	columns   []*dataset.Column
	constants int
	scratch   int
}

func (r *registers) count() int { return len(r.columns) + r.constants + r.scratch }

// step is one value with registers in the place of ids, or a sink, whose number, mask and where are in a, b and c.
type step struct {
	value
	dst      int32
	constant bool    // the second argument is k
	high     float64 // of opClamp, beside k
	first    int32   // of opScores and opScore: the register of the first score
	sink     *sink
}

// Compile binds row functions to a table and makes their program. Errors mean that a tree breaks the contract of package
// rowfn or that it was checked against another schema; none depends on the table's rows.
func Compile(functions []rowfn.Function, t *dataset.Table) (*Program, error) {
	return CompileBatch(rowfn.Batch{Functions: functions}, t)
}

// CompileBatch is Compile for row functions and products of their values.
func CompileBatch(batch rowfn.Batch, t *dataset.Table) (*Program, error) {
	functions := batch.Functions
	l := newLowering(t, len(functions))
	sinks := make([]sink, len(functions))
	for i := range functions {
		s, err := l.sink(&functions[i])
		if err != nil {
			return nil, fmt.Errorf("%w (row function %d)", err, i)
		}
		s.function = i
		sinks[i] = s
	}
	l.rank()
	a := newAssembler(l, len(functions))
	if err := a.p.keepValues(sinks, batch.Products); err != nil {
		return nil, err
	}
	for i := range sinks {
		a.emitSink(&sinks[i])
	}
	return a.finish(len(functions)), nil
}

// Registers is the number of registers that each worker holds, of 8·MaxBlock and of MaxBlock bytes.
func (p *Program) Registers() (numbers, bytes int) {
	return p.numbers.constants + p.numbers.scratch + p.scores + ScratchRegisters(p.scratch, p.bits), p.bytes.constants + p.bytes.scratch + 4*p.values
}

// ScratchRegisters is how many registers of 8·MaxBlock bytes are as large as what a model needs for itself.
func ScratchRegisters(numbers, bits int) int {
	return (numbers + len(rowfn.Bits{})*bits + MaxBlock - 1) / MaxBlock
}

// class says in which kind of register a value is.
type class uint8

const (
	numberClass class = iota
	byteClass
)

func (v *value) class() class {
	if v.op <= opSelect {
		return numberClass
	}
	return byteClass
}

// assembler orders the values of a graph and gives them registers.
type assembler struct {
	*lowering
	p       *Program
	at      []int32 // by id: the register, or unplaced
	steps   []step
	last    []int         // by id: the last step that reads it
	columns map[int]int32 // by column: the register
	first   map[id]int32  // by the id of opScores: the register of its first score
}

const unplaced = -1

func newAssembler(l *lowering, functions int) *assembler {
	a := &assembler{lowering: l, p: &Program{}, at: make([]int32, len(l.values)), steps: make([]step, 0, len(l.values)+functions),
		last: make([]int, len(l.values)), columns: make(map[int]int32, len(l.values)/valuesPerFunction), first: map[id]int32{}}
	for i := range a.at {
		a.at[i] = unplaced
	}
	return a
}

// constantArgument says whether the operation has a loop for a constant second argument, which then needs no register.
func (g *graph) constantArgument(v *value) bool {
	switch v.op {
	case opAdd, opMul, opDiv, opLess, opLessEq, opGreater, opGreaterEq, opEq, opNe:
		return g.isConst(v.b)
	}
	return false
}

// operands are the values that must be in registers for v.
func (g *graph) operands(v *value) [3]id {
	o := [3]id{v.a, v.b, v.c}
	switch {
	case v.op == opClamp:
		o[1], o[2] = none, none
	case g.constantArgument(v):
		o[1] = none
	}
	return o
}

const emitted = -2 // in at: ordered, but not yet in a register

// emit orders what a value needs, then the value. The depth is bounded by expr.MaxDepth and the length of chains.
func (a *assembler) emit(i id) {
	if i == none || a.at[i] != unplaced {
		return
	}
	v := a.values[i]
	for _, o := range a.operands(&v) {
		a.emit(o)
	}
	for _, o := range v.scores.inputs() {
		a.emit(o)
	}
	a.at[i] = emitted
	switch v.op {
	case opColumn, opConst, opTrue, opFalse:
		return // they are in registers from the start
	}
	a.steps = append(a.steps, step{value: v, dst: int32(i)})
}

func (a *assembler) emitSink(s *sink) {
	a.emit(s.number)
	a.emit(s.mask)
	a.emit(s.where)
	a.steps = append(a.steps, step{sink: s, dst: unplaced, value: value{a: s.number, b: s.mask, c: s.where}})
}

// reads calls f with the values that a step reads.
func (a *assembler) reads(s *step, f func(id)) {
	operands := [3]id{s.a, s.b, s.c}
	if s.sink == nil {
		operands = a.operands(&s.value)
	}
	for _, o := range operands {
		if o != none {
			f(o)
		}
	}
	for _, o := range s.value.scores.inputs() {
		f(o)
	}
}

// finish gives registers: columns and constants keep theirs, every other value frees its own after its last reader. An
// operation may write over what it reads, for it looks at one row at a time.
func (a *assembler) finish(functions int) *Program {
	p := a.p
	p.functions = functions
	a.placeColumns()
	for n := range a.steps {
		a.reads(&a.steps[n], func(i id) { a.last[i] = n })
	}
	var free [2][]int32
	base := [2]int32{int32(p.numbers.count()), int32(p.bytes.count())}
	var used [2]int32
	for n := range a.steps {
		s := &a.steps[n]
		a.reads(s, func(i id) {
			c := a.values[i].class()
			if a.last[i] == n && a.at[i] >= base[c] {
				a.last[i] = -1 // once, where it is read twice
				free[c] = append(free[c], a.at[i])
			}
		})
		a.translate(s)
		if s.sink == nil {
			c, i := s.value.class(), id(s.dst)
			if k := len(free[c]); k > 0 {
				s.dst, free[c] = free[c][k-1], free[c][:k-1]
			} else {
				s.dst = base[c] + used[c]
				used[c]++
			}
			a.at[i] = s.dst
		}
	}
	p.numbers.scratch, p.bytes.scratch = int(used[numberClass]), int(used[byteClass])
	p.steps = a.steps
	for i := range a.steps {
		if t := a.steps[i].table; t != nil {
			p.tables = append(p.tables, t)
		}
	}
	return p
}

// placeColumns gives the columns that are read and the constants the first registers of their classes.
func (a *assembler) placeColumns() {
	p := a.p
	for i := range a.values {
		if v := &a.values[i]; v.op == opColumn && a.at[i] == emitted {
			a.at[i] = a.column(&p.numbers, v.column)
		}
	}
	for n := range a.steps {
		switch s := &a.steps[n]; s.op {
		case opBool, opBoolNull:
			a.column(&p.bytes, s.column)
		case opCodesEq, opCodesNe:
			a.column(&p.codes, s.column)
			a.column(&p.codes, s.other)
		case opCodeEq, opCodeNe, opCodeTable, opLookup:
			a.column(&p.codes, s.column)
		}
	}
	for i := range a.values {
		if a.at[i] != emitted {
			continue
		}
		switch v := &a.values[i]; v.op {
		case opConst:
			a.at[i] = int32(p.numbers.count())
			p.numbers.constants++
			p.constants = append(p.constants, v.k)
		case opFalse:
			a.at[i] = int32(len(p.bytes.columns))
		case opTrue:
			a.at[i] = int32(len(p.bytes.columns)) + 1
		}
	}
	p.bytes.constants = 2 // false and true
}

func (a *assembler) column(r *registers, column int) int32 {
	at, ok := a.columns[column]
	if !ok {
		at = int32(len(r.columns))
		if given := column - a.table.Columns(); given >= 0 {
			r.columns = append(r.columns, a.given[given])
		} else {
			r.columns = append(r.columns, a.table.Column(column))
		}
		a.columns[column] = at
	}
	return at
}

// translate puts registers in the place of a step's ids, and a constant argument in k.
func (a *assembler) translate(s *step) {
	switch s.op {
	case opBool, opBoolNull, opCodeEq, opCodeNe, opCodeTable, opLookup:
		s.a = id(a.columns[s.column])
		return
	case opCodesEq, opCodesNe:
		s.a, s.b = id(a.columns[s.column]), id(a.columns[s.other])
		return
	case opScores:
		a.keepScores(s)
		return
	case opScore:
		s.first = a.first[s.a]
	}
	if s.sink == nil && s.op == opClamp {
		s.k, s.high, s.b, s.c = a.values[s.b].k, a.values[s.c].k, none, none
	}
	if s.sink == nil && a.constantArgument(&s.value) {
		s.k, s.b, s.constant = a.values[s.b].k, none, true
	}
	for _, o := range [3]*id{&s.a, &s.b, &s.c} {
		if *o != none {
			*o = id(a.at[*o])
		}
	}
}
