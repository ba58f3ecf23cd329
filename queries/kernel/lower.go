package kernel

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// lowering adds trees to a graph.
type lowering struct {
	graph
	table *dataset.Table
	index map[string]int    // columns by name
	given []*dataset.Column // columns that came with the query, numbered after those of the table
	done  map[*rowfn.Node]id
}

// valuesPerFunction is a guess that saves a large batch most of the growing.
const valuesPerFunction = 4

// newLowering expects about so many row functions.
func newLowering(t *dataset.Table, functions int) *lowering {
	expected := valuesPerFunction * functions
	l := &lowering{graph: newGraph(expected), table: t,
		index: make(map[string]int, t.Columns()), done: make(map[*rowfn.Node]id, expected)}
	for i := range t.Columns() {
		l.index[t.Column(i).Name] = i
	}
	return l
}

// A malformed error says how a tree breaks the contract of package rowfn or does not fit the table.
func malformed(n *rowfn.Node, format string, args ...any) error {
	return fmt.Errorf("kernel: operation %d: %w", n.Op, fmt.Errorf(format, args...))
}

var unaryOps = [256]op{rowfn.OpNeg: opNeg, rowfn.OpAbs: opAbs, rowfn.OpLog: opLog, rowfn.OpExp: opExp, rowfn.OpSqrt: opSqrt, rowfn.OpFloor: opFloor, rowfn.OpCeil: opCeil}

var binaryOps = [256]op{rowfn.OpAdd: opAdd, rowfn.OpSub: opSub, rowfn.OpMul: opMul, rowfn.OpDiv: opDiv, rowfn.OpMin: opMin, rowfn.OpMax: opMax}

var compareOps = [256]op{rowfn.OpLess: opLess, rowfn.OpLessEq: opLessEq, rowfn.OpGreater: opGreater, rowfn.OpGreaterEq: opGreaterEq, rowfn.OpEq: opEq, rowfn.OpNe: opNe}

// node lowers a Number, Time or Condition. A node that is shared is lowered once.
func (l *lowering) node(n *rowfn.Node) (id, error) {
	if len(n.Args) == 0 && n.Op != rowfn.OpRow { // its value is found as fast
		return l.build(n)
	}
	if at, ok := l.done[n]; ok {
		return at, nil
	}
	at, err := l.build(n)
	if err == nil {
		l.done[n] = at
	}
	return at, err
}

func (l *lowering) build(n *rowfn.Node) (id, error) {
	switch n.Op {
	case rowfn.OpColumn:
		return l.column(n)
	case rowfn.OpRow:
		return l.rows(n)
	case rowfn.OpNumber:
		if math.IsNaN(n.Number) || math.IsInf(n.Number, 0) {
			return none, malformed(n, "the number %v is not finite", n.Number)
		}
		return l.constant(n.Number), nil
	case rowfn.OpTrue, rowfn.OpFalse:
		return l.truth(n.Op == rowfn.OpTrue), nil
	case rowfn.OpNull:
		return l.constant(math.NaN()), nil
	case rowfn.OpEq, rowfn.OpNe, rowfn.OpIn, rowfn.OpIsNull:
		if len(n.Args) > 0 && n.Args[0] != nil && n.Args[0].Type == rowfn.Text {
			return l.text(n)
		}
		if n.Op == rowfn.OpIsNull {
			return l.nullTest(n)
		}
	case rowfn.OpLookup:
		return l.lookup(n)
	case rowfn.OpScore:
		return l.score(n)
	case rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains:
		return l.text(n)
	}
	args, err := l.args(n)
	if err != nil {
		return none, err
	}
	return l.operation(n, args)
}

// arity is the number of arguments of an operation; for those with more it is the least.
func arity(o rowfn.Op) int {
	switch o {
	case rowfn.OpClamp, rowfn.OpIf:
		return 3
	case rowfn.OpAnd, rowfn.OpOr, rowfn.OpIn, rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains:
		return 2
	}
	if binaryOps[o] != 0 || compareOps[o] != 0 {
		return 2
	}
	return 1
}

// argumentType says whether argument i may have a type.
func argumentType(n *rowfn.Node, i int, t rowfn.Type) bool {
	condition := t == rowfn.Condition
	switch n.Op {
	case rowfn.OpNot, rowfn.OpAnd, rowfn.OpOr:
		return condition
	case rowfn.OpIf:
		return t != rowfn.Text && condition == (i == 0 || n.Type == rowfn.Condition)
	case rowfn.OpIsNull:
		return true
	}
	return t == rowfn.Number || t == rowfn.Time
}

func (l *lowering) args(n *rowfn.Node) ([]id, error) {
	want, more := arity(n.Op), n.Op == rowfn.OpAnd || n.Op == rowfn.OpOr || n.Op == rowfn.OpIn
	if len(n.Args) < want || len(n.Args) > want && !more {
		return nil, malformed(n, "%d arguments", len(n.Args))
	}
	ids := make([]id, len(n.Args))
	for i, a := range n.Args {
		if a == nil || !argumentType(n, i, a.Type) {
			return nil, malformed(n, "argument %d has the wrong type", i)
		}
		var err error
		if ids[i], err = l.node(a); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (l *lowering) operation(n *rowfn.Node, args []id) (id, error) {
	if o := unaryOps[n.Op]; o != 0 {
		return l.unary(o, args[0]), nil
	}
	if o := binaryOps[n.Op]; o != 0 {
		return l.binary(o, args[0], args[1]), nil
	}
	if o := compareOps[n.Op]; o != 0 {
		return l.compare(o, args[0], args[1]), nil
	}
	switch n.Op {
	case rowfn.OpClamp:
		return l.clamp(args[0], args[1], args[2]), nil
	case rowfn.OpIf:
		return l.conditional(n, args), nil
	case rowfn.OpIn:
		return l.member(args[0], args[1:]), nil
	case rowfn.OpNot:
		return l.not(args[0]), nil
	case rowfn.OpAnd, rowfn.OpOr:
		o := opAnd
		if n.Op == rowfn.OpOr {
			o = opOr
		}
		at := args[0]
		for _, b := range args[1:] {
			at = l.logic(o, at, b)
		}
		return at, nil
	}
	if n.Op >= rowfn.OpFullYear && n.Op <= rowfn.OpMilliseconds {
		if l.isConst(args[0]) {
			return l.constant(partOf(n.Op, l.at(args[0]).k)), nil
		}
		return l.add(value{op: opPart, a: args[0], b: none, c: none, aux: uint32(n.Op), bound: maxPart}, ""), nil
	}
	return none, malformed(n, "unknown operation")
}

func (l *lowering) conditional(n *rowfn.Node, args []id) id {
	if n.Type != rowfn.Condition {
		return l.selectNumber(args[0], args[1], args[2])
	}
	return l.logic(opOr, l.logic(opAnd, args[0], args[1]), l.logic(opAnd, l.not(args[0]), args[2]))
}

// searchFrom is the number of constant members from which a sorted search beats comparing with each.
const searchFrom = 5

func (l *lowering) member(x id, members []id) id {
	var list []float64
	at := l.truth(false)
	for _, m := range members {
		if l.isConst(m) && !l.isNull(m) {
			list = append(list, l.at(m).k)
		} else {
			at = l.logic(opOr, at, l.compare(opEq, x, m))
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) < searchFrom || l.isConst(x) {
		for _, k := range list {
			at = l.logic(opOr, at, l.compare(opEq, x, l.constant(k)))
		}
		return at
	}
	found := l.add(value{op: opInList, a: x, b: none, c: none, list: padded(list)}, listText(list))
	return l.logic(opOr, at, found)
}

// column lowers a column that is not a Text.
func (l *lowering) column(n *rowfn.Node) (id, error) {
	i, ok := l.index[n.Text]
	if !ok {
		return none, malformed(n, "no column %q", n.Text)
	}
	kind := l.table.Column(i).Kind
	if want := [256]dataset.Kind{rowfn.Number: dataset.Number, rowfn.Condition: dataset.Bool, rowfn.Text: dataset.Text, rowfn.Time: dataset.Time}[n.Type]; kind != want || n.Type == rowfn.Text {
		return none, malformed(n, "column %q is %v", n.Text, kind)
	}
	if kind == dataset.Bool {
		return l.add(value{op: opBool, a: none, b: none, c: none, column: i}, ""), nil
	}
	return l.add(value{op: opColumn, a: none, b: none, c: none, column: i, bound: math.MaxFloat64}, ""), nil
}

// rows lowers numbers that come row by row with the query, as if the table had them as a column.
func (l *lowering) rows(n *rowfn.Node) (id, error) {
	if len(n.Values) != l.table.Rows() || len(n.Values) == 0 {
		return none, malformed(n, "%d numbers for %d rows", len(n.Values), l.table.Rows())
	}
	for _, v := range n.Values {
		if math.IsInf(v, 0) {
			return none, malformed(n, "a number is infinite")
		}
	}
	column := slices.IndexFunc(l.given, func(c *dataset.Column) bool { return &c.Numbers[0] == &n.Values[0] })
	if column < 0 {
		column = len(l.given)
		l.given = append(l.given, &dataset.Column{Field: dataset.Field{Kind: dataset.Number}, Numbers: n.Values})
	}
	return l.add(value{op: opColumn, a: none, b: none, c: none, column: l.table.Columns() + column, bound: math.MaxFloat64}, ""), nil
}

func (l *lowering) nullTest(n *rowfn.Node) (id, error) {
	args, err := l.args(n)
	if err != nil {
		return none, err
	}
	if n.Args[0].Type != rowfn.Condition {
		return l.isNullOf(args[0]), nil
	}
	if x := l.at(args[0]); x.op == opBool {
		return l.add(value{op: opBoolNull, a: none, b: none, c: none, column: x.column}, ""), nil
	}
	return l.truth(false), nil
}
