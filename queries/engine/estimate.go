package engine

import (
	"fmt"
	"math/bits"
	"runtime"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/kernel"
)

// Work is what summing row functions takes, from public facts alone. Each number is an upper bound of what a [Table] does, for equal
// subexpressions are counted as often as they are written.
type Work struct {
	Steps  int64 // steps on each row, one of which takes about a nanosecond on one processor
	Texts  int64 // steps before the first row, for tests of texts: about a nanosecond each
	Memory int64 // bytes held at the same time, columns left out: some 64 MiB and MaxScratch for each processor at most, whatever is asked
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
// rows, so that what it says may decide whether and when a request is served. It reads each node once and takes microseconds for a
// query and milliseconds for a batch of thousands. An expression that is malformed counts as well as it can: Sums refuses it.
func Estimate(functions []queries.RowFunction, shape dataset.Shape) Work {
	e := estimate{shape: shape, seen: map[*expr.Node]bool{}, models: map[string]bool{}}
	for i := range functions {
		e.work.Steps += sinkSteps
		e.nodes++
		if shape.Units > 0 {
			e.work.Steps += unitSteps
		}
		e.node(functions[i].Value)
		e.node(functions[i].Where)
	}
	e.work.Memory = min(e.nodes*nodeMemory, maxProgram) + int64(runtime.GOMAXPROCS(0))*min(e.nodes*kernel.MaxBlock*8, MaxScratch) + min(e.tables, MaxTables)
	return e.work
}

// What operations take on a row, in steps of about a nanosecond, as measured by the benchmarks of this package and rounded up.
const (
	plainSteps    = 1
	sinkSteps     = 3
	unitSteps     = 4 // more, where units have several rows
	divisionSteps = 3
	functionSteps = 15 // logarithms, exponentials, parts of times
	lookupSteps   = 3
	searchSteps   = 2   // for each halving of a list
	hashSteps     = 300 // of a literal, once
	nodeMemory    = 768 // bytes of a program for each node
)

type estimate struct {
	shape  dataset.Shape
	seen   map[*expr.Node]bool
	models map[string]bool
	nodes  int64
	tables int64
	work   Work
}

func (e *estimate) node(n *expr.Node) {
	if n == nil || e.seen[n] {
		return
	}
	e.seen[n] = true
	e.nodes++
	for _, a := range n.Args {
		e.node(a)
	}
	switch n.Op {
	case expr.OpColumn, expr.OpRow, expr.OpNumber, expr.OpText, expr.OpTrue, expr.OpFalse, expr.OpNull:
	case expr.OpDiv, expr.OpSqrt:
		e.work.Steps += divisionSteps
	case expr.OpLog, expr.OpExp:
		e.work.Steps += functionSteps
	case expr.OpScore:
		e.score(n)
	case expr.OpLookup:
		e.work.Steps += lookupSteps
		e.find(n, int64(len(n.Texts)))
		e.tables += 8 * e.texts(n).Texts
	case expr.OpEq, expr.OpNe, expr.OpIn, expr.OpHasPrefix, expr.OpHasSuffix, expr.OpContains:
		if len(n.Args) > 0 && n.Args[0] != nil && n.Args[0].Type == expr.Text {
			e.text(n)
			return
		}
		e.work.Steps += int64(1+searchSteps*bits.Len(uint(len(n.Args)))) * plainSteps
	default:
		if n.Op >= expr.OpFullYear && n.Op <= expr.OpMilliseconds {
			e.work.Steps += functionSteps
			return
		}
		e.work.Steps += int64(max(1, len(n.Args)-1)) * plainSteps
	}
}

// texts is the shape of the dictionary that a test of texts reads: the larger one, where it reads two.
func (e *estimate) texts(n *expr.Node) (s dataset.TextShape) {
	for _, a := range n.Args {
		if a != nil && a.Op == expr.OpColumn {
			t := e.shape.Texts[a.Text]
			s.Texts, s.Bytes = max(s.Texts, t.Texts), max(s.Bytes, t.Bytes)
		}
	}
	return s
}

// find counts the search of literals in the dictionary.
func (e *estimate) find(n *expr.Node, literals int64) {
	e.work.Texts += literals * int64(hashSteps+searchSteps*bits.Len64(uint64(e.texts(n).Texts)))
}

func (e *estimate) text(n *expr.Node) {
	e.work.Steps += lookupSteps
	s := e.texts(n)
	switch n.Op {
	case expr.OpEq, expr.OpNe:
		e.find(n, 1)
	case expr.OpIn:
		e.find(n, int64(len(n.Args)))
		e.work.Texts += s.Texts / 8
		e.tables += s.Texts / 8
	default:
		for _, a := range n.Args[1:] {
			if a != nil {
				e.work.Texts += kernel.ScanSteps(s, a.Text)
			}
		}
		e.work.Texts += s.Texts / 8
		e.tables += s.Texts / 8
	}
}

// score counts a model once, however many of its scores are read.
func (e *estimate) score(n *expr.Node) {
	e.work.Steps += plainSteps
	if n.Model == nil {
		return
	}
	s := n.Model.Scorer()
	inputs := s.ID() + "\x00"
	for _, a := range n.Args {
		inputs += fmt.Sprintf("%p ", a)
	}
	if e.models[inputs] {
		return
	}
	e.models[inputs] = true
	e.work.Steps += s.Steps()
	e.nodes += int64(s.Outputs()) + int64(s.Scratch()/kernel.MaxBlock)
}
