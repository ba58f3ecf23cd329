// Package reference evaluates a tree one row at a time, as plainly as its meaning can be said. Tests compare it with
// CEL's interpreter, and the kernels with it.
package reference

import (
	"math"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Row is one row by column name: a float64 (Number, and Time in microseconds), a string, a bool or nil for null.
type Row map[string]any

// Evaluate is the value of a tree at one row: a float64, NaN for null, of a Number or Time; a bool of a Condition; a
// *string of a Text.
func Evaluate(n *rowfn.Node, row Row) any {
	args := make([]any, len(n.Args))
	for i, a := range n.Args {
		args[i] = Evaluate(a, row)
	}
	f := func(i int) float64 { return args[i].(float64) }
	b := func(i int) bool { return args[i].(bool) }
	switch n.Op {
	case rowfn.OpColumn:
		return cell(n.Type, row[n.Text])
	case rowfn.OpNumber:
		return n.Number
	case rowfn.OpText:
		return &n.Text
	case rowfn.OpTrue, rowfn.OpFalse:
		return n.Op == rowfn.OpTrue
	case rowfn.OpNull:
		return math.NaN()
	case rowfn.OpIf:
		if b(0) {
			return args[1]
		}
		return args[2]
	case rowfn.OpNot:
		return !b(0)
	case rowfn.OpAnd, rowfn.OpOr:
		for i := range args {
			if b(i) == (n.Op == rowfn.OpOr) {
				return b(i)
			}
		}
		return n.Op == rowfn.OpAnd
	case rowfn.OpIsNull:
		if n.Args[0].Op == rowfn.OpColumn {
			return row[n.Args[0].Text] == nil
		}
		return math.IsNaN(f(0))
	case rowfn.OpIn:
		for i := range args[1:] {
			if equal(args[0], args[i+1]) {
				return true
			}
		}
		return false
	case rowfn.OpEq:
		return equal(args[0], args[1])
	case rowfn.OpNe:
		return !null(args[0]) && !null(args[1]) && !equal(args[0], args[1])
	case rowfn.OpLess:
		return f(0) < f(1)
	case rowfn.OpLessEq:
		return f(0) <= f(1)
	case rowfn.OpGreater:
		return f(0) > f(1)
	case rowfn.OpGreaterEq:
		return f(0) >= f(1)
	case rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains:
		return textTest(n.Op, args[0].(*string), *args[1].(*string))
	case rowfn.OpLookup:
		if s := args[0].(*string); s != nil {
			return n.Texts[*s]
		}
		return n.Number
	case rowfn.OpScore:
		return score(n, args)
	}
	numbers := make([]float64, len(args))
	for i := range args {
		if numbers[i] = f(i); math.IsNaN(numbers[i]) {
			return math.NaN()
		}
	}
	if n.Op >= rowfn.OpFullYear {
		return part(n.Op, time.UnixMicro(int64(numbers[0])).UTC())
	}
	if x := arithmetic(n.Op, numbers); !math.IsInf(x, 0) {
		return x
	}
	return math.NaN()
}

// score is one score of a model, NaN if it is not finite.
func score(n *rowfn.Node, args []any) float64 {
	in, out := make([][]float64, len(args)), make([][]float64, n.Model.Outputs())
	for i := range in {
		in[i] = []float64{args[i].(float64)}
	}
	for k := range out {
		out[k] = []float64{0}
	}
	numbers, bits := n.Model.Scratch()
	n.Model.BlockIn(rowfn.Scratch{Numbers: make([]float64, numbers), Bits: make([]rowfn.Bits, bits)}, out, in)
	x := out[n.Output][0]
	return x + (x - x)
}

func cell(t rowfn.Type, v any) any {
	switch t {
	case rowfn.Condition:
		return v == true
	case rowfn.Text:
		if s, ok := v.(string); ok {
			return &s
		}
		return (*string)(nil)
	}
	if x, ok := v.(float64); ok {
		return x
	}
	return math.NaN()
}

func null(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsNaN(v)
	case *string:
		return v == nil
	}
	return false
}

func equal(a, b any) bool {
	if s, ok := a.(*string); ok {
		r := b.(*string)
		return s != nil && r != nil && *s == *r
	}
	return a.(float64) == b.(float64)
}

func textTest(op rowfn.Op, s *string, part string) bool {
	switch {
	case s == nil:
		return false
	case op == rowfn.OpHasPrefix:
		return strings.HasPrefix(*s, part)
	case op == rowfn.OpHasSuffix:
		return strings.HasSuffix(*s, part)
	}
	return strings.Contains(*s, part)
}

func arithmetic(op rowfn.Op, x []float64) float64 {
	switch op {
	case rowfn.OpNeg:
		return -x[0]
	case rowfn.OpAbs:
		return math.Abs(x[0])
	case rowfn.OpLog:
		return math.Log(x[0])
	case rowfn.OpExp:
		return math.Exp(x[0])
	case rowfn.OpSqrt:
		return math.Sqrt(x[0])
	case rowfn.OpFloor:
		return math.Floor(x[0])
	case rowfn.OpCeil:
		return math.Ceil(x[0])
	case rowfn.OpAdd:
		return x[0] + x[1]
	case rowfn.OpSub:
		return x[0] - x[1]
	case rowfn.OpMul:
		return x[0] * x[1]
	case rowfn.OpDiv:
		return x[0] / x[1]
	case rowfn.OpMin:
		return math.Min(x[0], x[1])
	case rowfn.OpMax:
		return math.Max(x[0], x[1])
	case rowfn.OpClamp:
		return math.Min(math.Max(x[0], x[1]), x[2])
	}
	panic("an operation that is not arithmetic")
}

func part(op rowfn.Op, t time.Time) float64 {
	return float64(map[rowfn.Op]int{
		rowfn.OpFullYear: t.Year(), rowfn.OpMonth: int(t.Month()) - 1, rowfn.OpDayOfMonth: t.Day() - 1, rowfn.OpDate: t.Day(),
		rowfn.OpDayOfWeek: int(t.Weekday()), rowfn.OpDayOfYear: t.YearDay() - 1, rowfn.OpHours: t.Hour(), rowfn.OpMinutes: t.Minute(),
		rowfn.OpSeconds: t.Second(), rowfn.OpMilliseconds: t.Nanosecond() / 1e6,
	}[op])
}
