// Package reference evaluates a total tree one row at a time, as plainly as its meaning can be said. Tests compare it with
// CEL's interpreter, and the kernels with it.
package reference

import (
	"math"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/queries/expr"
)

// Row is one row by column name: a float64 (Number, and Time in microseconds), a string, a bool or nil for null.
type Row map[string]any

// Evaluate is the value of a tree at one row: a float64, NaN for null, of a Number or Time; a bool of a Condition; a
// *string of a Text.
func Evaluate(n *expr.Node, row Row) any {
	args := make([]any, len(n.Args))
	for i, a := range n.Args {
		args[i] = Evaluate(a, row)
	}
	f := func(i int) float64 { return args[i].(float64) }
	b := func(i int) bool { return args[i].(bool) }
	switch n.Op {
	case expr.OpColumn:
		return cell(n.Type, row[n.Text])
	case expr.OpNumber:
		return n.Number
	case expr.OpText:
		return &n.Text
	case expr.OpTrue, expr.OpFalse:
		return n.Op == expr.OpTrue
	case expr.OpNull:
		return math.NaN()
	case expr.OpIf:
		if b(0) {
			return args[1]
		}
		return args[2]
	case expr.OpNot:
		return !b(0)
	case expr.OpAnd, expr.OpOr:
		for i := range args {
			if b(i) == (n.Op == expr.OpOr) {
				return b(i)
			}
		}
		return n.Op == expr.OpAnd
	case expr.OpIsNull:
		if n.Args[0].Op == expr.OpColumn {
			return row[n.Args[0].Text] == nil
		}
		return math.IsNaN(f(0))
	case expr.OpIn:
		for i := range args[1:] {
			if equal(args[0], args[i+1]) {
				return true
			}
		}
		return false
	case expr.OpEq:
		return equal(args[0], args[1])
	case expr.OpNe:
		return !null(args[0]) && !null(args[1]) && !equal(args[0], args[1])
	case expr.OpLess:
		return f(0) < f(1)
	case expr.OpLessEq:
		return f(0) <= f(1)
	case expr.OpGreater:
		return f(0) > f(1)
	case expr.OpGreaterEq:
		return f(0) >= f(1)
	case expr.OpHasPrefix, expr.OpHasSuffix, expr.OpContains:
		return textTest(n.Op, args[0].(*string), *args[1].(*string))
	case expr.OpLookup:
		if s := args[0].(*string); s != nil {
			return n.Texts[*s]
		}
		return n.Number
	case expr.OpScore:
		return score(n, args)
	}
	numbers := make([]float64, len(args))
	for i := range args {
		if numbers[i] = f(i); math.IsNaN(numbers[i]) {
			return math.NaN()
		}
	}
	if n.Op >= expr.OpFullYear {
		return part(n.Op, time.UnixMicro(int64(numbers[0])).UTC())
	}
	if x := arithmetic(n.Op, numbers); !math.IsInf(x, 0) {
		return x
	}
	return math.NaN()
}

// score is one score of a model, NaN if it is not finite.
func score(n *expr.Node, args []any) float64 {
	in, out := make([][]float64, len(args)), make([][]float64, n.Model.Outputs())
	for i := range in {
		in[i] = []float64{args[i].(float64)}
	}
	for k := range out {
		out[k] = []float64{0}
	}
	n.Model.BlockIn(make([]float64, n.Model.Scratch()), out, in)
	x := out[n.Output][0]
	return x + (x - x)
}

func cell(t expr.Type, v any) any {
	switch t {
	case expr.Condition:
		return v == true
	case expr.Text:
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

func textTest(op expr.Op, s *string, part string) bool {
	switch {
	case s == nil:
		return false
	case op == expr.OpHasPrefix:
		return strings.HasPrefix(*s, part)
	case op == expr.OpHasSuffix:
		return strings.HasSuffix(*s, part)
	}
	return strings.Contains(*s, part)
}

func arithmetic(op expr.Op, x []float64) float64 {
	switch op {
	case expr.OpNeg:
		return -x[0]
	case expr.OpAbs:
		return math.Abs(x[0])
	case expr.OpLog:
		return math.Log(x[0])
	case expr.OpExp:
		return math.Exp(x[0])
	case expr.OpSqrt:
		return math.Sqrt(x[0])
	case expr.OpFloor:
		return math.Floor(x[0])
	case expr.OpCeil:
		return math.Ceil(x[0])
	case expr.OpAdd:
		return x[0] + x[1]
	case expr.OpSub:
		return x[0] - x[1]
	case expr.OpMul:
		return x[0] * x[1]
	case expr.OpDiv:
		return x[0] / x[1]
	case expr.OpMin:
		return math.Min(x[0], x[1])
	case expr.OpMax:
		return math.Max(x[0], x[1])
	case expr.OpClamp:
		return math.Min(math.Max(x[0], x[1]), x[2])
	}
	panic("an operation that is not arithmetic")
}

func part(op expr.Op, t time.Time) float64 {
	return float64(map[expr.Op]int{
		expr.OpFullYear: t.Year(), expr.OpMonth: int(t.Month()) - 1, expr.OpDayOfMonth: t.Day() - 1, expr.OpDate: t.Day(),
		expr.OpDayOfWeek: int(t.Weekday()), expr.OpDayOfYear: t.YearDay() - 1, expr.OpHours: t.Hour(), expr.OpMinutes: t.Minute(),
		expr.OpSeconds: t.Second(), expr.OpMilliseconds: t.Nanosecond() / 1e6,
	}[op])
}
