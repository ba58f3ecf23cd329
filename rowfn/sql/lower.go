package sql

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

// refused is why a node is not printed. It ends a lowering.
type refused string

// value is what a node became.
type value struct {
	t        *term
	infinite bool  // of a number or time: it may be infinite, which counts as null
	absent   *term // of a text column: 1 where it is null
	literal  bool  // of a text
	empty    bool  // of a literal
}

// lowering makes terms of nodes.
type lowering struct {
	*terms
	d       *Dialect
	table   *Table
	done    map[*rowfn.Node]value
	columns map[*term]bool
}

func newLowering(d *Dialect, table *Table) *lowering {
	return &lowering{&terms{map[string]*term{}}, d, table, map[*rowfn.Node]value{}, map[*term]bool{}}
}

// use fills a template that the dialect must have.
func (l *lowering) use(template, what string, args ...*term) *term {
	if template == "" {
		panic(refused(what + " is not pushed down"))
	}
	return l.of(template, args...)
}

func (l *lowering) column(name string) *term {
	t := l.leaf(name)
	l.columns[t] = true
	return t
}

func (l *lowering) integer(n int64) *term {
	return l.leaf(strings.Replace(l.d.Integer, "$1", fmt.Sprint(n), 1))
}
func (l *lowering) number(x float64) *term { return l.leaf(l.d.Number(x)) }
func (l *lowering) truth(holds bool) *term {
	if holds {
		return l.leaf(l.d.True)
	}
	return l.leaf(l.d.False)
}
func (l *lowering) and(a, b *term) *term       { return l.of(l.d.And, a, b) }
func (l *lowering) add(a, b *term) *term       { return l.of(l.d.IntAdd, a, b) }
func (l *lowering) sub(a, b *term) *term       { return l.of(l.d.IntSub, a, b) }
func (l *lowering) mul(a, b *term) *term       { return l.of(l.d.IntMul, a, b) }
func (l *lowering) div(a *term, n int64) *term { return l.of(l.d.IntDiv, a, l.integer(n)) }
func (l *lowering) mod(a *term, n int64) *term { return l.of(l.d.IntMod, a, l.integer(n)) }

// clean is a number that is finite or NaN.
func (l *lowering) clean(v value) *term {
	if !v.infinite {
		return v.t
	}
	return l.of(l.d.Clean, v.t)
}

// node is a node's value. What is wrong or not pushed down is a panic of type refused.
func (l *lowering) node(n *rowfn.Node) value {
	if v, ok := l.done[n]; ok {
		return v
	}
	args := make([]value, len(n.Args))
	for i, a := range n.Args {
		args[i] = l.node(a)
	}
	v := l.lower(n, args)
	l.done[n] = v
	return v
}

func (l *lowering) lower(n *rowfn.Node, args []value) value {
	d := l.d
	switch n.Op {
	case rowfn.OpColumn:
		return l.cell(n)
	case rowfn.OpNumber:
		if n.Type == rowfn.Time && !(math.Abs(n.Number) <= MaxTime) {
			panic(refused("a time beyond those that are loaded is not pushed down"))
		}
		return value{t: l.number(n.Number)}
	case rowfn.OpNull:
		return value{t: l.number(math.NaN())}
	case rowfn.OpText:
		return value{t: l.leaf(d.Text(n.Text)), literal: true, empty: n.Text == ""}
	case rowfn.OpTrue, rowfn.OpFalse:
		return value{t: l.truth(n.Op == rowfn.OpTrue)}
	case rowfn.OpNeg:
		return value{t: l.use(d.Neg, "-x", args[0].t), infinite: args[0].infinite}
	case rowfn.OpAbs:
		return value{t: l.use(d.Abs, "abs", args[0].t), infinite: args[0].infinite}
	case rowfn.OpFloor:
		return value{t: l.use(d.Floor, "floor", args[0].t), infinite: args[0].infinite}
	case rowfn.OpCeil:
		return value{t: l.use(d.Ceil, "ceil", args[0].t), infinite: args[0].infinite}
	case rowfn.OpSqrt:
		return value{t: l.use(d.Sqrt, "sqrt", args[0].t), infinite: args[0].infinite}
	case rowfn.OpAdd:
		return value{t: l.use(d.Add, "+", args[0].t, args[1].t), infinite: true}
	case rowfn.OpSub:
		return value{t: l.use(d.Sub, "-", args[0].t, args[1].t), infinite: true}
	case rowfn.OpMul:
		return value{t: l.use(d.Mul, "*", args[0].t, args[1].t), infinite: true}
	case rowfn.OpDiv:
		return value{t: l.use(d.Div, "/", args[0].t, l.clean(args[1])), infinite: true}
	case rowfn.OpMin:
		return value{t: l.use(d.Min, "min", args[0].t, args[1].t)}
	case rowfn.OpMax:
		return value{t: l.use(d.Max, "max", args[0].t, args[1].t)}
	case rowfn.OpClamp:
		return value{t: l.use(d.Min, "clamp", l.use(d.Max, "clamp", args[0].t, args[1].t), args[2].t)}
	case rowfn.OpIf:
		if n.Type == rowfn.Condition {
			return value{t: l.use(d.PickTruth, "if", args[0].t, args[1].t, args[2].t)}
		}
		return value{t: l.use(d.Pick, "if", args[0].t, args[1].t, args[2].t), infinite: args[1].infinite || args[2].infinite}
	case rowfn.OpIsNull:
		return value{t: l.isNull(n.Args[0], args[0])}
	case rowfn.OpNot:
		return value{t: l.of(d.Not, args[0].t)}
	case rowfn.OpAnd, rowfn.OpOr:
		of := make([]*term, len(args))
		for i, a := range args {
			of[i] = a.t
		}
		return value{t: l.fold(map[bool]string{true: d.And, false: d.Or}[n.Op == rowfn.OpAnd], of)}
	case rowfn.OpLookup:
		return l.lookup(n, args[0])
	case rowfn.OpLog:
		panic(refused("the last bit of a logarithm is a library's own"))
	case rowfn.OpExp:
		panic(refused("the last bit of an exponential is a library's own"))
	case rowfn.OpScore:
		panic(refused("a model's score is computed by this server"))
	case rowfn.OpRow:
		panic(refused("numbers that come with the question are with this server"))
	}
	if n.Op >= rowfn.OpFullYear && n.Op <= rowfn.OpMilliseconds {
		return value{t: l.part(n.Op, args[0].t)}
	}
	return value{t: l.test(n, args)}
}

// cell is a column of the table.
func (l *lowering) cell(n *rowfn.Node) value {
	c, ok := l.table.Columns[n.Text]
	if !ok || c.Type != n.Type {
		panic(refused(fmt.Sprintf("the table has no column %q that is %s", n.Text, n.Type)))
	}
	switch t := l.column(c.Name); n.Type {
	case rowfn.Text:
		return value{t: t, absent: l.column(c.Null)}
	case rowfn.Condition:
		return value{t: l.of(l.d.IntEqual, t, l.integer(1))}
	default:
		return value{t: t, infinite: true} // whoever wrote it
	}
}

func (l *lowering) isNull(of *rowfn.Node, v value) *term {
	switch {
	case of.Type == rowfn.Text:
		return l.of(l.d.IntEqual, v.absent, l.integer(1))
	case of.Type == rowfn.Condition:
		return l.of(l.d.IntEqual, l.column(l.table.Columns[of.Text].Name), l.integer(2))
	}
	return l.of(l.d.IsNull, v.t)
}

// fold joins terms in a tree of the least depth.
func (l *lowering) fold(template string, of []*term) *term {
	if len(of) == 1 {
		return of[0]
	}
	half := len(of) / 2
	return l.of(template, l.fold(template, of[:half]), l.fold(template, of[half:]))
}

// test is a comparison, or a test of texts.
func (l *lowering) test(n *rowfn.Node, args []value) *term {
	d := l.d
	if n.Args[0].Type == rowfn.Text {
		return l.textTest(n, args)
	}
	a := l.clean(args[0])
	if n.Op == rowfn.OpIn {
		var equal []*term
		for _, b := range args[1:] {
			equal = append(equal, l.of(d.Equal, a, l.clean(b)))
		}
		slices.SortFunc(equal, func(a, b *term) int { return a.id - b.id })
		return l.fold(d.Or, slices.Compact(equal))
	}
	b := l.clean(args[1])
	switch n.Op {
	case rowfn.OpLess:
		return l.of(d.Less, a, b)
	case rowfn.OpLessEq:
		return l.of(d.LessEq, a, b)
	case rowfn.OpGreater:
		return l.of(d.Less, b, a)
	case rowfn.OpGreaterEq:
		return l.of(d.LessEq, b, a)
	case rowfn.OpEq:
		return l.of(d.Equal, a, b)
	case rowfn.OpNe:
		return l.of(d.NotEqual, a, b)
	}
	panic(refused(fmt.Sprintf("the operation %d is not pushed down", n.Op)))
}

func (l *lowering) textTest(n *rowfn.Node, args []value) *term {
	d, a := l.d, args[0]
	var result *term
	switch n.Op {
	case rowfn.OpEq:
		result = l.of(d.TextEqual, a.t, args[1].t)
	case rowfn.OpNe:
		result = l.of(d.Not, l.of(d.TextEqual, a.t, args[1].t))
	case rowfn.OpIn:
		var equal []*term
		for _, b := range args[1:] {
			equal = append(equal, l.of(d.TextEqual, a.t, b.t))
		}
		result = l.fold(d.Or, equal)
	default:
		if args[1].empty {
			result = l.truth(true)
			break
		}
		result = l.use(map[rowfn.Op]string{rowfn.OpHasPrefix: d.Prefix, rowfn.OpHasSuffix: d.Suffix, rowfn.OpContains: d.Contains}[n.Op], "a test of texts", a.t, args[1].t)
	}
	for _, v := range args {
		if v.absent != nil {
			result = l.and(result, l.of(d.IntEqual, v.absent, l.integer(0)))
		}
	}
	return result
}

// lookup is the sum of the numbers of all texts, each times whether the row has it: one at most is not 0.
func (l *lowering) lookup(n *rowfn.Node, text value) value {
	if len(n.Texts) > MaxLookup {
		panic(refused(fmt.Sprintf("a lookup of %d texts is dearer than to read the rows", len(n.Texts))))
	}
	d := l.d
	present := l.of(d.IntEqual, text.absent, l.integer(0))
	var each []*term
	for _, s := range slices.Sorted(maps.Keys(n.Texts)) {
		has := l.and(l.of(d.TextEqual, text.t, l.leaf(d.Text(s))), present)
		each = append(each, l.use(d.Mul, "a lookup", l.of(d.Double, has), l.number(n.Texts[s])))
	}
	found := l.fold(d.Add, each)
	return value{t: l.use(d.Pick, "a lookup", present, found, l.number(n.Number))}
}

const microsecondsPerDay = 86400 * 1000000

// part is a part of a time by integer arithmetic: the days since 1970 in eras of 400 years, as package queries/kernel counts them. Eras are
// added so that no number is negative.
func (l *lowering) part(op rowfn.Op, t *term) *term {
	d := l.d
	micros := l.use(d.Micros, "a part of a time", t)
	cut := l.div(micros, microsecondsPerDay)
	rest := l.sub(micros, l.mul(cut, l.integer(microsecondsPerDay)))
	before := l.of(d.IntLess, rest, l.integer(0))
	rest = l.add(rest, l.mul(before, l.integer(microsecondsPerDay)))
	return l.of(d.OfTime, l.partOf(op, l.sub(cut, before), rest), t)
}

func (l *lowering) partOf(op rowfn.Op, days, rest *term) *term {
	const era, eras, toMarchOfYear0 = 146097, 1000, 719468 // 1000 eras are more than MaxTime
	const first = toMarchOfYear0 + eras*era
	switch op {
	case rowfn.OpHours:
		return l.div(rest, 3600*1000000)
	case rowfn.OpMinutes:
		return l.mod(l.div(rest, 60*1000000), 60)
	case rowfn.OpSeconds:
		return l.mod(l.div(rest, 1000000), 60)
	case rowfn.OpMilliseconds:
		return l.mod(l.div(rest, 1000), 1000)
	}
	z := l.add(days, l.integer(first))
	if op == rowfn.OpDayOfWeek {
		const thursday = 4 // 1970-01-01
		return l.mod(l.add(z, l.integer(((thursday-first)%7+7)%7)), 7)
	}
	e := l.div(z, era)
	doe := l.sub(z, l.mul(e, l.integer(era)))
	yoe := l.div(l.sub(l.add(l.sub(doe, l.div(doe, 1460)), l.div(doe, 36524)), l.div(doe, 146096)), 365)
	doy := l.sub(doe, l.sub(l.add(l.mul(yoe, l.integer(365)), l.div(yoe, 4)), l.div(yoe, 100)))
	mp := l.div(l.add(l.mul(doy, l.integer(5)), l.integer(2)), 153)
	late := l.of(l.d.IntLess, l.integer(9), mp)
	year := l.add(l.add(yoe, l.mul(e, l.integer(400))), late) // 400·eras years too many
	switch op {
	case rowfn.OpFullYear:
		return l.sub(year, l.integer(400*eras))
	case rowfn.OpMonth:
		return l.sub(l.add(mp, l.integer(2)), l.mul(late, l.integer(12)))
	case rowfn.OpDayOfMonth:
		return l.sub(doy, l.div(l.add(l.mul(mp, l.integer(153)), l.integer(2)), 5))
	case rowfn.OpDate:
		return l.add(l.sub(doy, l.div(l.add(l.mul(mp, l.integer(153)), l.integer(2)), 5)), l.integer(1))
	}
	divides := func(n int64) *term { return l.of(l.d.IntEqual, l.mod(year, n), l.integer(0)) }
	leap := l.add(l.sub(divides(4), divides(100)), divides(400))
	return l.sub(l.add(l.add(doy, l.integer(59)), leap), l.mul(late, l.add(leap, l.integer(365))))
}

// row is a function's value at a row as an integer, where its condition is not looked at.
func (l *lowering) row(f *rowfn.Function) *term {
	scale := float64(rowfn.One) / (f.Hi - f.Lo)
	switch {
	case f.Value == nil:
		c := min(max(1, f.Lo), f.Hi)
		return l.integer(int64(math.Floor(float64((c-f.Lo)*scale) + 0.5)))
	case f.Value.Type == rowfn.Condition && f.Lo == 0 && f.Hi == 1:
		return l.mul(l.node(f.Value).t, l.integer(rowfn.One))
	}
	v := l.node(f.Value).t
	if f.Value.Type == rowfn.Condition {
		v = l.of(l.d.Double, v)
	}
	return l.use(l.d.Grid, "a value", v, l.number(f.Lo), l.number(f.Hi), l.number(f.Null), l.number(scale))
}

// where is 1 in the rows that a function is about, or nil for all.
func (l *lowering) where(f *rowfn.Function) *term {
	if f.Where == nil {
		return nil
	}
	return l.node(f.Where).t
}
