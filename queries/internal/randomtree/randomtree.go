// Package randomtree draws random typed trees of package rowfn and random tables, for the tests of kernels and engines.
package randomtree

import (
	"fmt"
	"math"
	"strings"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/rowfn"
)

// The columns of every table: x, y Numbers, p, q Bools, s, t Texts, d, e Times. The pools hold edge values; nil is null.
var (
	numbers = []any{nil, 0.0, 1.0, -1.0, 2.0, 0.5, 0.1, 0.3, 15.0, -60.0, 1e-300, -1e-300, 5e-324, -5e-324, math.MaxFloat64, -math.MaxFloat64, 0x1p-1022,
		1e308, -1e308, 0x1p53, -0x1p53, 709.0, 710.0, -745.0, -746.0, math.Pi, 1e15 + 0.5}
	truths = []any{nil, true, false}
	texts  = []any{nil, "", "a", "A", "ab", "abc", "b", "é", "日本", "e\u0301", "a ", " a", "it's", `a\`, `\'`, `\x61`, `"`, "a\x00b", "\x00", "%_", "a\n\tb", "😀"}
	times  = []any{nil, 0.0, 1.0, -1.0, 981072000e6, 981072000e6 - 1, 951782400e6, 951868799999999.0, -2203891200e6, 4102444800e6, -9e15, 9e15, 1e15 + 1, -62135596800e6, -99999999999999999.0}
)

// Rows draws n rows.
func Rows(t *rapid.T, n int) []reference.Row {
	rows := make([]reference.Row, n)
	for i := range rows {
		r := reference.Row{}
		for _, name := range []string{"x", "y"} {
			r[name] = rapid.SampledFrom(numbers).Draw(t, name)
			if x := rapid.Float64().Draw(t, "any"); rapid.Bool().Draw(t, "use") && !math.IsNaN(x) && !math.IsInf(x, 0) {
				r[name] = x + 0
			}
		}
		for _, name := range []string{"p", "q"} {
			r[name] = rapid.SampledFrom(truths).Draw(t, name)
		}
		r["s"], r["t"] = rapid.SampledFrom(texts[:6]).Draw(t, "s"), rapid.SampledFrom(texts).Draw(t, "t")
		for _, name := range []string{"d", "e"} {
			r[name] = rapid.SampledFrom(times).Draw(t, name)
		}
		rows[i] = r
	}
	return rows
}

// Table holds the rows as columns.
func Table(rows []reference.Row) *dataset.Table {
	var columns []dataset.Column
	for _, name := range []string{"x", "y", "d", "e"} {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number}, Numbers: make([]float64, len(rows))}
		if name == "d" || name == "e" {
			c.Kind = dataset.Time
		}
		for i, r := range rows {
			c.Numbers[i] = math.NaN()
			if x, ok := r[name].(float64); ok {
				c.Numbers[i] = x
			}
		}
		columns = append(columns, c)
	}
	for _, name := range []string{"p", "q"} {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Bool}, Bools: make([]uint8, len(rows))}
		for i, r := range rows {
			c.Bools[i] = map[any]uint8{nil: dataset.NullBool, true: 1, false: 0}[r[name]]
		}
		columns = append(columns, c)
	}
	for _, name := range []string{"s", "t"} {
		values := make([]string, len(rows))
		for i, r := range rows {
			values[i], _ = r[name].(string)
		}
		columns = append(columns, dataset.NewText(name, values, func(i int) bool { return rows[i][name] == nil }))
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		panic(err)
	}
	return table
}

// Node draws a Number, Time or Condition of a depth.
func Node(t *rapid.T, depth int) *rowfn.Node {
	g := generator{t}
	switch rapid.IntRange(0, 4).Draw(t, "type") {
	case 0:
		return g.time(depth)
	case 1, 2:
		return g.number(depth)
	}
	return g.condition(depth)
}

// Number and Condition draw a tree of their type.
func Number(t *rapid.T, depth int) *rowfn.Node    { return generator{t}.number(depth) }
func Condition(t *rapid.T, depth int) *rowfn.Node { return generator{t}.condition(depth) }

type generator struct{ t *rapid.T }

// WithoutLogs is a tree with roots and whole numbers in the place of logarithms and exponentials, whose last bit is a library's own: every engine computes it alike. done has the nodes that were met before, so that what is shared stays so.
func WithoutLogs(n *rowfn.Node, done map[*rowfn.Node]*rowfn.Node) *rowfn.Node {
	if n == nil || done[n] != nil {
		return done[n]
	}
	other := *n
	other.Args = nil
	for _, a := range n.Args {
		other.Args = append(other.Args, WithoutLogs(a, done))
	}
	switch n.Op {
	case rowfn.OpLog:
		other.Op = rowfn.OpSqrt
	case rowfn.OpExp:
		other.Op = rowfn.OpFloor
	}
	done[n] = &other
	return &other
}

func (g generator) pick(n int) int { return rapid.IntRange(0, n-1).Draw(g.t, "pick") }

func node(o rowfn.Op, t rowfn.Type, args ...*rowfn.Node) *rowfn.Node {
	return &rowfn.Node{Op: o, Type: t, Args: args}
}

func column(name string, t rowfn.Type) *rowfn.Node {
	return &rowfn.Node{Op: rowfn.OpColumn, Type: t, Text: name}
}

func (g generator) one(ops ...rowfn.Op) rowfn.Op { return rapid.SampledFrom(ops).Draw(g.t, "op") }

func (g generator) constant() *rowfn.Node {
	x, ok := rapid.SampledFrom(numbers).Draw(g.t, "constant").(float64)
	if !ok {
		return node(rowfn.OpNull, rowfn.Number)
	}
	return &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Number, Number: x}
}

func (g generator) number(depth int) *rowfn.Node {
	if depth <= 0 {
		return []*rowfn.Node{column("x", rowfn.Number), column("y", rowfn.Number), g.constant()}[g.pick(3)]
	}
	sub := func() *rowfn.Node { return g.number(depth - 1) }
	switch g.pick(10) {
	case 0, 1, 2, 3:
		return node(g.one(rowfn.OpAdd, rowfn.OpSub, rowfn.OpMul, rowfn.OpDiv, rowfn.OpMin, rowfn.OpMax), rowfn.Number, sub(), sub())
	case 4, 5:
		return node(g.one(rowfn.OpNeg, rowfn.OpAbs, rowfn.OpLog, rowfn.OpExp, rowfn.OpSqrt, rowfn.OpFloor, rowfn.OpCeil), rowfn.Number, sub())
	case 6:
		return node(rowfn.OpClamp, rowfn.Number, sub(), sub(), sub())
	case 7:
		return node(rowfn.OpIf, rowfn.Number, g.condition(depth-1), sub(), sub())
	case 8:
		return node(rowfn.OpSub, rowfn.Number, g.time(depth-1), g.time(depth-1))
	}
	part := rowfn.OpFullYear + rowfn.Op(g.pick(int(rowfn.OpMilliseconds-rowfn.OpFullYear)+1))
	return node(part, rowfn.Number, g.time(depth-1))
}

func (g generator) time(depth int) *rowfn.Node {
	if depth > 0 && g.pick(2) == 0 {
		return node(rowfn.OpIf, rowfn.Time, g.condition(depth-1), g.time(depth-1), g.time(depth-1))
	}
	switch g.pick(5) {
	case 0:
		return node(rowfn.OpNull, rowfn.Time)
	case 1:
		return &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Time, Number: rapid.SampledFrom(times[1:]).Draw(g.t, "time").(float64)}
	}
	return column(rapid.SampledFrom([]string{"d", "e"}).Draw(g.t, "column"), rowfn.Time)
}

func (g generator) text() *rowfn.Node {
	return &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: rapid.SampledFrom(texts[1:]).Draw(g.t, "text").(string)}
}

func (g generator) textColumn() *rowfn.Node {
	return column(rapid.SampledFrom([]string{"s", "t"}).Draw(g.t, "column"), rowfn.Text)
}

func (g generator) condition(depth int) *rowfn.Node {
	if depth <= 0 {
		return []*rowfn.Node{column("p", rowfn.Condition), column("q", rowfn.Condition), node(rowfn.OpTrue, rowfn.Condition), node(rowfn.OpFalse, rowfn.Condition),
			node(rowfn.OpIsNull, rowfn.Condition, column("p", rowfn.Condition)), node(rowfn.OpIsNull, rowfn.Condition, g.textColumn())}[g.pick(6)]
	}
	sub := func() *rowfn.Node { return g.condition(depth - 1) }
	compare := g.one(rowfn.OpLess, rowfn.OpLessEq, rowfn.OpGreater, rowfn.OpGreaterEq, rowfn.OpEq, rowfn.OpNe)
	switch g.pick(12) {
	case 0, 1:
		return node(compare, rowfn.Condition, g.number(depth-1), g.number(depth-1))
	case 2:
		return node(compare, rowfn.Condition, g.time(depth-1), g.time(depth-1))
	case 3:
		return node(g.one(rowfn.OpAnd, rowfn.OpOr), rowfn.Condition, sub(), sub(), sub())
	case 4:
		return node(rowfn.OpNot, rowfn.Condition, sub())
	case 5:
		return node(rowfn.OpIf, rowfn.Condition, sub(), sub(), sub())
	case 6:
		return node(rowfn.OpIsNull, rowfn.Condition, g.number(depth-1))
	case 7:
		return node(g.one(rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains), rowfn.Condition, g.textColumn(), g.text())
	case 8:
		sides := []*rowfn.Node{g.textColumn(), g.textColumn(), g.text()}
		return node(g.one(rowfn.OpEq, rowfn.OpNe), rowfn.Condition, sides[g.pick(3)], sides[g.pick(3)])
	case 9:
		return node(rowfn.OpIn, rowfn.Condition, g.textColumn(), g.text(), g.text())
	case 10:
		n := node(rowfn.OpIn, rowfn.Condition, g.number(depth-1))
		for range 1 + g.pick(12) {
			n.Args = append(n.Args, g.number(min(depth-1, g.pick(4)/3)))
		}
		return n
	}
	return g.thresholds(depth)
}

// thresholds compares one number with so many constants that kernels rank it.
func (g generator) thresholds(depth int) *rowfn.Node {
	x := g.number(depth - 1)
	n := node(g.one(rowfn.OpAnd, rowfn.OpOr), rowfn.Condition)
	for range 1 + g.pick(20) {
		c := node(g.one(rowfn.OpLess, rowfn.OpLessEq, rowfn.OpGreater, rowfn.OpGreaterEq), rowfn.Condition, x, g.constant())
		if g.pick(2) == 0 {
			c.Args[0], c.Args[1] = c.Args[1], c.Args[0]
		}
		if g.pick(3) == 0 {
			c = node(rowfn.OpNot, rowfn.Condition, c)
		}
		n.Args = append(n.Args, c)
	}
	n.Args = append(n.Args, column("p", rowfn.Condition))
	return n
}

// String prints a tree, for messages.
func String(n *rowfn.Node) string {
	switch n.Op {
	case rowfn.OpColumn:
		return n.Text
	case rowfn.OpNumber:
		return fmt.Sprint(n.Number)
	case rowfn.OpText:
		return fmt.Sprintf("%q", n.Text)
	}
	parts := make([]string, len(n.Args))
	for i, a := range n.Args {
		parts[i] = String(a)
	}
	return fmt.Sprintf("op%d(%s)", n.Op, strings.Join(parts, ", "))
}
