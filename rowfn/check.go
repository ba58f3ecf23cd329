package rowfn

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Limits of a batch.
const (
	maxDepth     = 1 << 13 // levels of a tree: expressions have at most 192, losses of many classes a few hundred more
	maxFunctions = 1 << 16 // a quantile has up to 2^13, a screen 2^14, and several questions share a batch
	maxProducts  = 3 * maxFunctions
)

// Check says what breaks the contract of this package, and at which function or product: types, missing arguments, numbers that are not finite, ranges,
// limits. What it finds good an engine need not look at again.
func (b *Batch) Check() error {
	if len(b.Functions) > maxFunctions || len(b.Products) > maxProducts {
		return fmt.Errorf("rowfn: %d functions and %d products, at most %d and %d are summed", len(b.Functions), len(b.Products), maxFunctions, maxProducts)
	}
	depth := map[*Node]int{}
	for i := range b.Functions {
		f := &b.Functions[i]
		problem := checkFunction(f)
		for _, tree := range []*Node{f.Value, f.Where} {
			if problem == "" && tree != nil {
				problem = checkTree(tree, 1, depth)
			}
		}
		if problem != "" {
			return fmt.Errorf("rowfn: function %d: %s", i, problem)
		}
	}
	for i, p := range b.Products {
		if p.A < 0 || p.B < 0 || p.A >= len(b.Functions) || p.B >= len(b.Functions) {
			return fmt.Errorf("rowfn: product %d is of a function that is not there", i)
		}
	}
	return nil
}

// checkTree says what is wrong with a tree, or "". above is how many levels stand over its arguments; depth has the levels of nodes that are good.
func checkTree(n *Node, above int, depth map[*Node]int) string {
	if above+depth[n]-1 > maxDepth || above > maxDepth {
		return fmt.Sprintf("a tree has more than %d levels", maxDepth)
	}
	if depth[n] > 0 {
		return ""
	}
	levels := 0
	for i, a := range n.Args {
		if a == nil {
			return fmt.Sprintf("argument %d is missing", i)
		}
		if problem := checkTree(a, above+1, depth); problem != "" {
			return problem
		}
		levels = max(levels, depth[a])
	}
	if problem := checkNode(n); problem != "" {
		return fmt.Sprintf("operation %d: %s", n.Op, problem)
	}
	depth[n] = levels + 1
	return ""
}

// checkNode says what is wrong with a node whose arguments are right, or "".
func checkNode(n *Node) string {
	if want, ok := signatures[n.Op]; ok {
		return want.problem(n)
	}
	switch n.Op {
	case OpColumn:
		return leaf(n, n.Text != "" && utf8.ValidString(n.Text), "the name of a column", Number, Condition, Text, Time)
	case OpNumber:
		return leaf(n, isFinite(n.Number), "a finite number", Number, Time)
	case OpText:
		return leaf(n, utf8.ValidString(n.Text), "UTF-8", Text)
	case OpTrue, OpFalse:
		return leaf(n, true, "", Condition)
	case OpNull:
		return leaf(n, true, "", Number, Time)
	case OpRow:
		for i, x := range n.Values {
			if math.IsInf(x, 0) {
				return fmt.Sprintf("number %d is infinite", i)
			}
		}
		return leaf(n, len(n.Values) > 0, "a number for each row", Number)
	case OpIf:
		if len(n.Args) != 3 || n.Args[0].Type != Condition || n.Args[1].Type != n.Type || n.Args[2].Type != n.Type || n.Type == Text {
			return "wants a condition and two numbers, times or conditions of its own type"
		}
	case OpIsNull:
		if n.Type != Condition || len(n.Args) != 1 || (n.Args[0].Type == Text || n.Args[0].Type == Condition) && n.Args[0].Op != OpColumn {
			return "wants a number, a time or a column, and is a condition"
		}
	case OpLookup:
		if n.Type != Number || len(n.Args) != 1 || n.Args[0].Op != OpColumn || n.Args[0].Type != Text || len(n.Texts) == 0 {
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
	case OpScore:
		if n.Model == nil || n.Type != Number || len(n.Args) != n.Model.Features() || n.Output < 0 || n.Output >= n.Model.Outputs() {
			return "wants a model, as many arguments as it has features and one of its outputs, and is a number"
		}
		return allOf(n.Args, Number)
	default:
		return fmt.Sprintf("the operation %d is not known", n.Op)
	}
	return ""
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// leaf is the problem of a node without arguments that must be good, in one of some types.
func leaf(n *Node, good bool, want string, of ...Type) string {
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

func allOf(args []*Node, of Type) string {
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
	gives    Type
	count    int
	more     bool
	of       []Type // the arguments are all of one of these types
	inColumn bool   // of texts: the first argument is a column, the others are literals
}

var (
	onNumbers    = []Type{Number}
	onConditions = []Type{Condition}
	onOrdered    = []Type{Number, Time}
	onAll        = []Type{Number, Time, Text}
)

var signatures = func() map[Op]signature {
	s := map[Op]signature{
		OpSub:       {gives: Number, count: 2, of: onOrdered},
		OpClamp:     {gives: Number, count: 3, of: onNumbers},
		OpEq:        {gives: Condition, count: 2, of: onAll},
		OpNe:        {gives: Condition, count: 2, of: onAll},
		OpIn:        {gives: Condition, count: 2, more: true, of: onAll, inColumn: true},
		OpHasPrefix: {gives: Condition, count: 2, of: []Type{Text}, inColumn: true},
		OpHasSuffix: {gives: Condition, count: 2, of: []Type{Text}, inColumn: true},
		OpContains:  {gives: Condition, count: 2, of: []Type{Text}, inColumn: true},
		OpNot:       {gives: Condition, count: 1, of: onConditions},
		OpAnd:       {gives: Condition, count: 2, more: true, of: onConditions},
		OpOr:        {gives: Condition, count: 2, more: true, of: onConditions},
	}
	for op := OpNeg; op <= OpCeil; op++ {
		s[op] = signature{gives: Number, count: 1, of: onNumbers}
	}
	for _, op := range []Op{OpAdd, OpMul, OpDiv, OpMin, OpMax} {
		s[op] = signature{gives: Number, count: 2, of: onNumbers}
	}
	for op := OpLess; op <= OpGreaterEq; op++ {
		s[op] = signature{gives: Condition, count: 2, of: onOrdered}
	}
	for op := OpFullYear; op <= OpMilliseconds; op++ {
		s[op] = signature{gives: Number, count: 1, of: []Type{Time}}
	}
	return s
}()

func (s signature) problem(n *Node) string {
	switch {
	case n.Type != s.gives:
		return "is " + s.gives.String() + ", not " + n.Type.String()
	case len(n.Args) < s.count || len(n.Args) > s.count && !s.more:
		return fmt.Sprintf("has %d arguments, want %d", len(n.Args), s.count)
	}
	problem := ""
	for i, t := range s.of {
		if problem = allOf(n.Args, t); problem == "" {
			break
		}
		if i+1 < len(s.of) && n.Args[0].Type != t {
			continue
		}
		return problem
	}
	for i, a := range n.Args {
		if s.inColumn && a.Type == Text && (i == 0) != (a.Op == OpColumn) {
			return "wants a text column and literal texts"
		}
	}
	return ""
}

// checkFunction says what is wrong with a function whose trees are right, or "".
func checkFunction(f *Function) string {
	switch width := f.Hi - f.Lo; {
	case !(f.Lo < f.Hi) || !isFinite(width) || !isFinite(float64(One)/width):
		return "the range is none, or too wide or too narrow"
	case !(f.Lo <= f.Null && f.Null <= f.Hi):
		return "null does not count as a number of the range"
	case f.Value != nil && f.Value.Type != Number && f.Value.Type != Condition:
		return "the value is neither a number nor a condition"
	case f.Where != nil && f.Where.Type != Condition:
		return "where is no condition"
	case f.PerUnit > UnitShare:
		return "the way in which rows make a unit is not known"
	}
	return ""
}
