package sql

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// notPushed is why a row function is left to the kernels.
type notPushed string

func (n notPushed) Error() string { return string(n) }

const (
	noFunction notPushed = "logarithms and exponentials differ between engines in the last bit"
	noModel    notPushed = "models run in the server's own kernels"
	noRows     notPushed = "its numbers came with the question, row by row"
	noPart     notPushed = "it takes a part of a time that is no whole number of microseconds, or is too far from 1970"
	tooMany    notPushed = "it looks up more than 64 texts"
	tooLarge   notPushed = "it is too large for a statement"
)

// maxLooked is the most texts of a lookup, which an engine compares with one after the other in every row.
const maxLooked = 64

// lowering adds trees to a graph.
type lowering struct {
	*graph
	schema dataset.Schema
	index  map[string]int
	done   map[*rowfn.Node]id
}

func newLowering(g *graph, schema dataset.Schema) *lowering {
	l := &lowering{graph: g, schema: schema, index: make(map[string]int, len(schema.Fields)), done: map[*rowfn.Node]id{}}
	for i, f := range schema.Fields {
		l.index[f.Name] = i
	}
	return l
}

// columnName is what column i of a part's schema is called in the part. Names of the owner's stand in no statement about a part.
func columnName(i int) string { return fmt.Sprintf("c%d", i) }

// malformed says how a tree breaks the contract of package rowfn or does not fit the schema.
func malformed(n *rowfn.Node, format string, args ...any) error {
	return fmt.Errorf("sql: operation %d: %w", n.Op, fmt.Errorf(format, args...))
}

var unaryOps = map[rowfn.Op]op{rowfn.OpNeg: opNeg, rowfn.OpAbs: opAbs, rowfn.OpSqrt: opSqrt, rowfn.OpFloor: opFloor, rowfn.OpCeil: opCeil}

var binaryOps = map[rowfn.Op]op{rowfn.OpAdd: opAdd, rowfn.OpSub: opSub, rowfn.OpMul: opMul, rowfn.OpDiv: opDiv, rowfn.OpMin: opMin, rowfn.OpMax: opMax}

func isComparison(o rowfn.Op) bool { return o >= rowfn.OpLess && o <= rowfn.OpNe }

func isPartOfTime(o rowfn.Op) bool { return o >= rowfn.OpFullYear && o <= rowfn.OpMilliseconds }

// node lowers a Number, Time or Condition. A node that is shared is lowered once.
func (l *lowering) node(n *rowfn.Node) (id, error) {
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
		return l.ofColumn(n)
	case rowfn.OpRow:
		return none, noRows
	case rowfn.OpNumber:
		if math.IsNaN(n.Number) || math.IsInf(n.Number, 0) {
			return none, malformed(n, "the number %v is not finite", n.Number)
		}
		return l.number(n.Number), nil
	case rowfn.OpTrue, rowfn.OpFalse:
		return l.truth(n.Op == rowfn.OpTrue), nil
	case rowfn.OpNull:
		return l.number(math.NaN()), nil
	case rowfn.OpLookup:
		return l.lookup(n)
	case rowfn.OpScore:
		return none, noModel
	case rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains:
		return l.ofText(n)
	case rowfn.OpEq, rowfn.OpNe, rowfn.OpIn, rowfn.OpIsNull:
		if len(n.Args) > 0 && n.Args[0] != nil && n.Args[0].Type == rowfn.Text {
			return l.ofText(n)
		}
	}
	list, err := l.arguments(n)
	if err != nil {
		return none, err
	}
	return l.operation(n, list)
}

// arity is the number of arguments of an operation, and whether it takes more.
func arity(o rowfn.Op) (least int, more bool) {
	switch o {
	case rowfn.OpAnd, rowfn.OpOr, rowfn.OpIn:
		return 2, true
	case rowfn.OpClamp, rowfn.OpIf:
		return 3, false
	case rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains:
		return 2, false
	}
	if binaryOps[o] != 0 || isComparison(o) {
		return 2, false
	}
	return 1, false
}

func argumentFits(n *rowfn.Node, i int, t rowfn.Type) bool {
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

func (l *lowering) arguments(n *rowfn.Node) ([]id, error) {
	least, more := arity(n.Op)
	if len(n.Args) < least || len(n.Args) > least && !more {
		return nil, malformed(n, "%d arguments", len(n.Args))
	}
	list := make([]id, len(n.Args))
	for i, a := range n.Args {
		if a == nil || !argumentFits(n, i, a.Type) {
			return nil, malformed(n, "argument %d has the wrong type", i)
		}
		var err error
		if list[i], err = l.node(a); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (l *lowering) operation(n *rowfn.Node, list []id) (id, error) {
	if o := unaryOps[n.Op]; o != 0 {
		return l.unary(o, list[0]), nil
	}
	if o := binaryOps[n.Op]; o != 0 {
		return l.binary(o, list[0], list[1]), nil
	}
	switch n.Op {
	case rowfn.OpLog, rowfn.OpExp:
		if !l.isConst(list[0]) {
			return none, noFunction
		}
		if n.Op == rowfn.OpLog {
			return l.number(math.Log(l.constant(list[0]))), nil
		}
		return l.number(math.Exp(l.constant(list[0]))), nil
	case rowfn.OpLess, rowfn.OpEq, rowfn.OpLessEq, rowfn.OpNe:
		o := map[rowfn.Op]op{rowfn.OpLess: opLess, rowfn.OpLessEq: opLessEq, rowfn.OpEq: opEq, rowfn.OpNe: opNe}[n.Op]
		return l.compare(o, list[0], list[1]), nil
	case rowfn.OpGreater:
		return l.compare(opLess, list[1], list[0]), nil
	case rowfn.OpGreaterEq:
		return l.compare(opLessEq, list[1], list[0]), nil
	case rowfn.OpClamp:
		return l.clamp(list[0], list[1], list[2]), nil
	case rowfn.OpIf:
		if n.Type != rowfn.Condition {
			return l.choose(list[0], list[1], list[2]), nil
		}
		return l.logic(opOr, l.logic(opAnd, list[0], list[1]), l.logic(opAnd, l.not(list[0]), list[2])), nil
	case rowfn.OpIn:
		at := l.truth(false)
		for _, m := range list[1:] {
			at = l.logic(opOr, at, l.compare(opEq, list[0], m))
		}
		return at, nil
	case rowfn.OpNot:
		return l.not(list[0]), nil
	case rowfn.OpAnd, rowfn.OpOr:
		o := opAnd
		if n.Op == rowfn.OpOr {
			o = opOr
		}
		at := list[0]
		for _, b := range list[1:] {
			at = l.logic(o, at, b)
		}
		return at, nil
	case rowfn.OpIsNull:
		if n.Args[0].Type != rowfn.Condition {
			return l.isNullOf(list[0]), nil
		}
		if x := l.at(list[0]); x.op == opIsTrue {
			return l.add(value{op: opIsNullBool, class: bits, args: x.args}), nil
		}
		return l.truth(false), nil
	}
	if isPartOfTime(n.Op) {
		if n.Args[0].Type != rowfn.Time || !wholeTimes(n.Args[0], map[*rowfn.Node]bool{}) {
			return none, noPart
		}
		return l.partOfTime(n.Op, list[0]), nil
	}
	return none, malformed(n, "unknown operation")
}

// ofColumn lowers a column that is not a Text.
func (l *lowering) ofColumn(n *rowfn.Node) (id, error) {
	i, ok := l.index[n.Text]
	if !ok {
		return none, malformed(n, "no column %q", n.Text)
	}
	switch kind := l.schema.Fields[i].Kind; {
	case kind == dataset.Number && n.Type == rowfn.Number, kind == dataset.Time && n.Type == rowfn.Time:
		return l.column(columnName(i), numbers), nil
	case kind == dataset.Bool && n.Type == rowfn.Condition:
		return l.add(value{op: opIsTrue, class: bits, args: args(l.column(columnName(i), integers))}), nil
	default:
		return none, malformed(n, "column %q is %v", n.Text, kind)
	}
}

func (l *lowering) textColumn(n *rowfn.Node) (id, error) {
	i, ok := l.index[n.Text]
	if !ok || l.schema.Fields[i].Kind != dataset.Text {
		return none, malformed(n, "no text column %q", n.Text)
	}
	return l.column(columnName(i), texts), nil
}

// ofText lowers a test of texts.
func (l *lowering) ofText(n *rowfn.Node) (id, error) {
	least, more := arity(n.Op)
	if len(n.Args) < least || len(n.Args) > least && !more {
		return none, malformed(n, "%d arguments", len(n.Args))
	}
	columns := make([]id, len(n.Args)) // none: a literal
	for i, a := range n.Args {
		if a == nil || a.Type != rowfn.Text || a.Op != rowfn.OpColumn && a.Op != rowfn.OpText {
			return none, malformed(n, "argument %d is no text", i)
		}
		if a.Op == rowfn.OpText && !utf8.ValidString(a.Text) {
			return none, malformed(n, "argument %d is not UTF-8", i)
		}
		columns[i] = none
		if a.Op == rowfn.OpColumn {
			var err error
			if columns[i], err = l.textColumn(a); err != nil {
				return none, err
			}
		}
	}
	if n.Op != rowfn.OpIsNull && n.Op != rowfn.OpEq && n.Op != rowfn.OpNe {
		for i, c := range columns[1:] {
			if c != none {
				return none, malformed(n, "argument %d is a column where a literal text is wanted", i+1)
			}
		}
	}
	switch n.Op {
	case rowfn.OpIsNull:
		if columns[0] == none {
			return l.truth(false), nil
		}
		return l.add(value{op: opTextIsNull, class: bits, args: args(columns[0])}), nil
	case rowfn.OpEq, rowfn.OpNe:
		return l.textsCompared(n, columns[0], columns[1]), nil
	case rowfn.OpIn:
		return l.textIn(n, columns[0]), nil
	}
	return l.textPart(n, columns[0]), nil
}

func (l *lowering) textsCompared(n *rowfn.Node, a, b id) id {
	equal, literal := n.Op == rowfn.OpEq, n.Args[1].Text
	switch {
	case a == none && b == none:
		return l.truth((n.Args[0].Text == n.Args[1].Text) == equal)
	case a != none && b != none:
		o := opTextsDiffer
		if equal {
			o = opTextsEqual
		}
		return l.add(value{op: o, class: bits, args: args(min(a, b), max(a, b))})
	case a == none:
		a, literal = b, n.Args[0].Text
	}
	o := opTextIsNot
	if equal {
		o = opTextIs
	}
	return l.add(value{op: o, class: bits, args: args(a), text: literal})
}

func (l *lowering) textIn(n *rowfn.Node, a id) id {
	list := make([]string, 0, len(n.Args)-1)
	for _, m := range n.Args[1:] {
		list = append(list, m.Text)
	}
	if a == none {
		return l.truth(slices.Contains(list, n.Args[0].Text))
	}
	slices.Sort(list)
	return l.add(value{op: opTextIn, class: bits, args: args(a), list: slices.Compact(list)})
}

func (l *lowering) textPart(n *rowfn.Node, a id) id {
	literal := n.Args[1].Text
	if a == none {
		return l.truth(textTest(n.Op, n.Args[0].Text, literal))
	}
	if literal == "" { // engines do not agree about the empty text, which is in every text
		return l.not(l.add(value{op: opTextIsNull, class: bits, args: args(a)}))
	}
	o := map[rowfn.Op]op{rowfn.OpHasPrefix: opTextPrefix, rowfn.OpHasSuffix: opTextSuffix, rowfn.OpContains: opTextContains}[n.Op]
	return l.add(value{op: o, class: bits, args: args(a), text: literal})
}

// lookup lowers a table of numbers by text.
func (l *lowering) lookup(n *rowfn.Node) (id, error) {
	if len(n.Args) != 1 || n.Args[0] == nil || n.Args[0].Op != rowfn.OpColumn || n.Args[0].Type != rowfn.Text {
		return none, malformed(n, "wants a text column")
	}
	column, err := l.textColumn(n.Args[0])
	if err != nil {
		return none, err
	}
	if math.IsInf(n.Number, 0) {
		return none, malformed(n, "the number of null is infinite")
	}
	v := value{op: opLookup, class: numbers, args: args(column), k: math.Float64bits(n.Number + 0), list: slices.Sorted(maps.Keys(n.Texts))}
	if !math.IsNaN(n.Number) {
		v.bound = math.Abs(n.Number)
	} else {
		v.k = math.Float64bits(math.NaN())
	}
	for _, text := range v.list {
		x := n.Texts[text]
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return none, malformed(n, "the number of %q is not finite", text)
		}
		v.pairs, v.bound = append(v.pairs, x+0), max(v.bound, math.Abs(x))
	}
	if len(v.list) > maxLooked {
		return none, tooMany
	}
	return l.add(v), nil
}
