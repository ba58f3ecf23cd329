package engine

import (
	"fmt"
	"math/bits"
	"runtime"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Work is what summing row functions takes, from public facts alone. Each number is an upper bound of what a [Table] does, for equal
// subexpressions are counted as often as they are written.
type Work struct {
	Steps int64 // steps on each row, one of which takes about a nanosecond on one processor
	Texts int64 // steps before the first row, for tests of texts: about a nanosecond each
	// Memory is the bytes that are held at the same time, columns left out. A batch is summed in as many passes as keep this at some 64
	// MiB and MaxScratch for each processor; only where a single row function needs more is it more.
	Memory int64
}

// Total is the number of steps for so many rows: about as many nanoseconds of one processor. It does not overflow.
func (w Work) Total(rows int64) int64 {
	hi, lo := bits.Mul64(uint64(max(w.Steps, 0)), uint64(max(rows, 0)))
	total := lo + uint64(max(w.Texts, 0))
	if hi != 0 || total < lo || total > maxSteps {
		return maxSteps
	}
	return int64(total)
}

// maxSteps is more than any server does in a lifetime.
const maxSteps = 1 << 62

// Estimate returns the work of summing row functions over a table of a shape. It depends on the functions and the shape only, never on
// rows, so that what it says may decide whether and when a request is served. It walks the expressions, which takes microseconds for a
// query and milliseconds for a batch of thousands. An expression that is malformed counts as well as it can: Sums refuses it.
func Estimate(functions []rowfn.Function, shape dataset.Shape) Work {
	return EstimateBatch(rowfn.Batch{Functions: functions}, shape)
}

// EstimateBatch is [Estimate] for row functions and products of their values.
func EstimateBatch(batch rowfn.Batch, shape dataset.Shape) Work {
	e := plan(batch, itemsOf(batch), shape)
	registers := min(e.most.nodes*kernel.MaxBlock*8, max(MaxScratch, e.most.own*kernel.MaxBlock*8))
	e.work.Memory = e.most.nodes*nodeMemory + e.most.tables + int64(runtime.GOMAXPROCS(0))*registers
	return e.work
}

// plan estimates a batch and cuts it into parts of which each is compiled, and its tables made, in bounded memory: how many items are in
// each. One item makes a part of its own whatever it needs.
func plan(batch rowfn.Batch, items []item, shape dataset.Shape) *estimate {
	e := &estimate{batch: batch, shape: shape, seen: map[*rowfn.Node]bool{}, models: map[string]bool{}, parts: []int{0}}
	if len(batch.Products) > 0 {
		e.valued = make([]bool, len(batch.Functions))
	}
	for _, i := range items {
		pass, work := e.pass, e.work
		e.item(i)
		if e.parts[len(e.parts)-1] > 0 && (e.pass.nodes > maxNodes || e.pass.tables > MaxTables) {
			e.pass, e.work = size{}, work
			clear(e.seen)
			clear(e.models)
			clear(e.valued)
			e.parts = append(e.parts, 0)
			e.item(i)
			pass = size{}
		}
		e.parts[len(e.parts)-1]++
		e.most.nodes, e.most.tables = max(e.most.nodes, e.pass.nodes), max(e.most.tables, e.pass.tables)
		e.most.own = max(e.most.own, e.pass.nodes-pass.nodes)
	}
	return e
}

// What operations take on a row, in steps of about a nanosecond, as measured by the benchmarks of this package and rounded up.
const (
	sinkSteps     = 3
	unitSteps     = 4 // more, where units have several rows
	valueSteps    = 1 // more, where the values are kept for products
	productSteps  = 1
	divisionSteps = 3
	functionSteps = 15 // logarithms, exponentials, parts of times
	lookupSteps   = 3
	searchSteps   = 2   // for each halving of a list
	hashSteps     = 300 // of a literal, once
	nodeMemory    = 768 // bytes of a program for each node
)

// estimate walks expressions. Nodes that functions of a pass share are counted once.
type estimate struct {
	batch  rowfn.Batch
	shape  dataset.Shape
	valued []bool               // by function of the batch: in this pass, as one of a product
	seen   map[*rowfn.Node]bool // in this pass
	models map[string]bool      // in this pass
	parts  []int                // functions of each pass
	pass   size                 // of this pass so far
	most   size                 // of any pass
	work   Work
}

// size is what bounds a pass.
type size struct {
	nodes, tables int64
	own           int64 // of most: nodes that a single function added
}

func (e *estimate) item(i item) {
	if i.product < 0 {
		e.function(&e.batch.Functions[i.function])
		return
	}
	e.steps(productSteps)
	p := e.batch.Products[i.product]
	for _, at := range [2]int{p.A, p.B} {
		if !e.valued[at] {
			e.valued[at] = true
			e.pass.nodes++
			e.steps(valueSteps)
			e.function(&e.batch.Functions[at])
		}
	}
}

func (e *estimate) function(f *rowfn.Function) {
	e.pass.nodes++
	e.steps(sinkSteps)
	if e.shape.Units > 0 {
		e.steps(unitSteps)
	}
	e.node(f.Value)
	e.node(f.Where)
}

// steps counts steps of each row, and once those before the first.
func (e *estimate) steps(n int64) { e.work.Steps = min(e.work.Steps+n, maxSteps) }
func (e *estimate) once(n int64)  { e.work.Texts = min(e.work.Texts+n, maxSteps) }

func (e *estimate) node(n *rowfn.Node) {
	if n == nil || e.seen[n] {
		return
	}
	e.seen[n] = true
	e.pass.nodes++
	for _, a := range n.Args {
		e.node(a)
	}
	switch n.Op {
	case rowfn.OpColumn, rowfn.OpRow, rowfn.OpNumber, rowfn.OpText, rowfn.OpTrue, rowfn.OpFalse, rowfn.OpNull:
	case rowfn.OpDiv, rowfn.OpSqrt:
		e.steps(divisionSteps)
	case rowfn.OpLog, rowfn.OpExp:
		e.steps(functionSteps)
	case rowfn.OpScore:
		e.score(n)
	case rowfn.OpLookup:
		e.steps(lookupSteps)
		e.find(n, int64(len(n.Texts)))
		e.pass.tables += kernel.TableBytes(e.texts(n), true)
	case rowfn.OpEq, rowfn.OpNe, rowfn.OpIn, rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains:
		if len(n.Args) > 0 && n.Args[0] != nil && n.Args[0].Type == rowfn.Text {
			e.text(n)
			return
		}
		e.steps(int64(1 + searchSteps*bits.Len(uint(len(n.Args)))))
	default:
		if n.Op >= rowfn.OpFullYear && n.Op <= rowfn.OpMilliseconds {
			e.steps(functionSteps)
			return
		}
		e.steps(int64(max(1, len(n.Args)-1)))
	}
}

// texts is the shape of the dictionary that a test of texts reads: the larger one, where it reads two.
func (e *estimate) texts(n *rowfn.Node) (s dataset.TextShape) {
	for _, a := range n.Args {
		if a != nil && a.Op == rowfn.OpColumn {
			t := e.shape.Texts[a.Text]
			s.Texts, s.Bytes = max(s.Texts, t.Texts), max(s.Bytes, t.Bytes)
		}
	}
	return s
}

// find counts the search of literals in the dictionary.
func (e *estimate) find(n *rowfn.Node, literals int64) {
	e.once(literals * int64(hashSteps+searchSteps*bits.Len64(uint64(e.texts(n).Texts))))
}

func (e *estimate) text(n *rowfn.Node) {
	e.steps(lookupSteps)
	s := e.texts(n)
	switch n.Op {
	case rowfn.OpEq, rowfn.OpNe:
		e.find(n, 1)
	case rowfn.OpIn:
		e.find(n, int64(len(n.Args)))
		e.once(s.Texts / 8)
		e.pass.tables += kernel.TableBytes(s, false)
	default:
		for _, a := range n.Args[1:] {
			if a != nil {
				e.once(kernel.ScanSteps(s, a.Text))
			}
		}
		e.once(s.Texts / 8)
		e.pass.tables += kernel.TableBytes(s, false)
	}
}

// score counts a model once, however many of its scores are read.
func (e *estimate) score(n *rowfn.Node) {
	e.steps(1)
	if n.Model == nil {
		return
	}
	s := n.Model
	inputs := s.ID() + "\x00"
	for _, a := range n.Args {
		inputs += fmt.Sprintf("%p ", a)
	}
	if e.models[inputs] {
		return
	}
	e.models[inputs] = true
	e.steps(s.Steps())
	e.pass.nodes += int64(s.Outputs()) + int64(kernel.ScratchRegisters(s.Scratch()))
}
