package wire

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/rowfn"
)

// checkNode says what is wrong with a node whose arguments are right, or "".
func checkNode(n *rowfn.Node) string {
	for i, a := range n.Args {
		if a == nil {
			return fmt.Sprintf("argument %d is missing", i)
		}
	}
	if want, ok := signatures[n.Op]; ok {
		return want.problem(n)
	}
	switch n.Op {
	case rowfn.OpColumn:
		return leaf(n, n.Text != "" && utf8.ValidString(n.Text), "the name of a column", rowfn.Number, rowfn.Condition, rowfn.Text, rowfn.Time)
	case rowfn.OpNumber:
		return leaf(n, isFinite(n.Number), "a finite number", rowfn.Number, rowfn.Time)
	case rowfn.OpText:
		return leaf(n, utf8.ValidString(n.Text), "UTF-8", rowfn.Text)
	case rowfn.OpTrue, rowfn.OpFalse:
		return leaf(n, true, "", rowfn.Condition)
	case rowfn.OpNull:
		return leaf(n, true, "", rowfn.Number, rowfn.Time)
	case rowfn.OpRow:
		for i, x := range n.Values {
			if math.IsInf(x, 0) {
				return fmt.Sprintf("number %d is infinite", i)
			}
		}
		return leaf(n, len(n.Values) > 0, "a number for each row", rowfn.Number)
	case rowfn.OpIf:
		if len(n.Args) != 3 || n.Args[0].Type != rowfn.Condition || n.Args[1].Type != n.Type || n.Args[2].Type != n.Type || n.Type == rowfn.Text {
			return "wants a condition and two numbers, times or conditions of its own type"
		}
	case rowfn.OpIsNull:
		if n.Type != rowfn.Condition || len(n.Args) != 1 || (n.Args[0].Type == rowfn.Text || n.Args[0].Type == rowfn.Condition) && n.Args[0].Op != rowfn.OpColumn {
			return "wants a number, a time or a column, and is a condition"
		}
	case rowfn.OpLookup:
		if n.Type != rowfn.Number || len(n.Args) != 1 || n.Args[0].Op != rowfn.OpColumn || n.Args[0].Type != rowfn.Text || len(n.Texts) == 0 {
			return "wants a text column and numbers by text, and is a number"
		}
		for text, x := range n.Texts {
			if !utf8.ValidString(text) || !isFinite(x) {
				return "wants finite numbers by texts of UTF-8"
			}
		}
		if math.IsInf(n.Number, 0) {
			return "the number of null is infinite"
		}
	case rowfn.OpScore:
		if n.Model == nil || n.Type != rowfn.Number || len(n.Args) != n.Model.Features() || n.Output < 0 || n.Output >= n.Model.Outputs() {
			return "wants a model, as many arguments as it has features and one of its outputs, and is a number"
		}
		return all(n.Args, rowfn.Number)
	default:
		return fmt.Sprintf("the operation %d is not known", n.Op)
	}
	return ""
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// leaf is the problem of a node without arguments that must be good, in one of some types.
func leaf(n *rowfn.Node, good bool, want string, of ...rowfn.Type) string {
	switch {
	case len(n.Args) > 0:
		return "has no arguments"
	case !good:
		return "wants " + want
	}
	for _, t := range of {
		if n.Type == t {
			return ""
		}
	}
	return "cannot be " + n.Type.String()
}

func all(args []*rowfn.Node, of rowfn.Type) string {
	for i, a := range args {
		if a.Type != of {
			return fmt.Sprintf("argument %d is %s, want %s", i, a.Type, of)
		}
	}
	return ""
}

// signature is what an operation takes and gives: one or more lists of types, all arguments of one. With more, the last type may be
// repeated. Of texts only columns and literals exist; the first may have to be a column, and the others literals.
type signature struct {
	gives    rowfn.Type
	count    int
	more     bool
	of       []rowfn.Type // the arguments are all of one of these types
	inColumn bool         // of texts: the first argument is a column, the others are literals
}

var (
	onNumbers    = []rowfn.Type{rowfn.Number}
	onConditions = []rowfn.Type{rowfn.Condition}
	onOrdered    = []rowfn.Type{rowfn.Number, rowfn.Time}
	onAll        = []rowfn.Type{rowfn.Number, rowfn.Time, rowfn.Text}
)

var signatures = func() map[rowfn.Op]signature {
	s := map[rowfn.Op]signature{
		rowfn.OpSub:       {gives: rowfn.Number, count: 2, of: onOrdered},
		rowfn.OpClamp:     {gives: rowfn.Number, count: 3, of: onNumbers},
		rowfn.OpEq:        {gives: rowfn.Condition, count: 2, of: onAll},
		rowfn.OpNe:        {gives: rowfn.Condition, count: 2, of: onAll},
		rowfn.OpIn:        {gives: rowfn.Condition, count: 2, more: true, of: onAll, inColumn: true},
		rowfn.OpHasPrefix: {gives: rowfn.Condition, count: 2, of: []rowfn.Type{rowfn.Text}, inColumn: true},
		rowfn.OpHasSuffix: {gives: rowfn.Condition, count: 2, of: []rowfn.Type{rowfn.Text}, inColumn: true},
		rowfn.OpContains:  {gives: rowfn.Condition, count: 2, of: []rowfn.Type{rowfn.Text}, inColumn: true},
		rowfn.OpNot:       {gives: rowfn.Condition, count: 1, of: onConditions},
		rowfn.OpAnd:       {gives: rowfn.Condition, count: 2, more: true, of: onConditions},
		rowfn.OpOr:        {gives: rowfn.Condition, count: 2, more: true, of: onConditions},
	}
	for op := rowfn.OpNeg; op <= rowfn.OpCeil; op++ {
		s[op] = signature{gives: rowfn.Number, count: 1, of: onNumbers}
	}
	for _, op := range []rowfn.Op{rowfn.OpAdd, rowfn.OpMul, rowfn.OpDiv, rowfn.OpMin, rowfn.OpMax} {
		s[op] = signature{gives: rowfn.Number, count: 2, of: onNumbers}
	}
	for op := rowfn.OpLess; op <= rowfn.OpGreaterEq; op++ {
		s[op] = signature{gives: rowfn.Condition, count: 2, of: onOrdered}
	}
	for op := rowfn.OpFullYear; op <= rowfn.OpMilliseconds; op++ {
		s[op] = signature{gives: rowfn.Number, count: 1, of: []rowfn.Type{rowfn.Time}}
	}
	return s
}()

func (s signature) problem(n *rowfn.Node) string {
	switch {
	case n.Type != s.gives:
		return "is " + s.gives.String() + ", not " + n.Type.String()
	case len(n.Args) < s.count || len(n.Args) > s.count && !s.more:
		return fmt.Sprintf("has %d arguments, want %d", len(n.Args), s.count)
	}
	problem := ""
	for i, t := range s.of {
		if problem = all(n.Args, t); problem == "" {
			break
		}
		if i+1 < len(s.of) && n.Args[0].Type != t {
			continue
		}
		return problem
	}
	for i, a := range n.Args {
		if s.inColumn && a.Type == rowfn.Text && (i == 0) != (a.Op == rowfn.OpColumn) {
			return "wants a text column and literal texts"
		}
	}
	return ""
}

// checkFunction says what is wrong with a function whose trees are right, or "".
func checkFunction(f *rowfn.Function) string {
	switch width := f.Hi - f.Lo; {
	case !(f.Lo < f.Hi) || !isFinite(width) || !isFinite(float64(rowfn.One)/width):
		return "the range is none, or too wide or too narrow"
	case !(f.Lo <= f.Null && f.Null <= f.Hi):
		return "null does not count as a number of the range"
	case f.Value != nil && f.Value.Type != rowfn.Number && f.Value.Type != rowfn.Condition:
		return "the value is neither a number nor a condition"
	case f.Where != nil && f.Where.Type != rowfn.Condition:
		return "where is no condition"
	case f.PerUnit > rowfn.UnitShare:
		return "the way in which rows make a unit is not known"
	}
	return ""
}
