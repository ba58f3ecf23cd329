package expr

import (
	"fmt"
	"math"
	"strings"
	"time"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/holdoutd/holdoutd/internal/nearest"
)

// reader turns cel-go's syntax tree into terms.
type reader struct {
	syntax *Syntax
	info   *ast.SourceInfo
	nodes  int
}

// signs are cel-go's names of the operators that the language has.
var signs = map[string]string{
	operators.Add: "+", operators.Subtract: "-", operators.Multiply: "*", operators.Divide: "/", operators.Negate: "neg",
	operators.Less: "<", operators.LessEquals: "<=", operators.Greater: ">", operators.GreaterEquals: ">=",
	operators.Equals: "==", operators.NotEquals: "!=", operators.In: "in",
	operators.LogicalAnd: "&&", operators.LogicalOr: "||", operators.LogicalNot: "!", operators.Conditional: "?:",
}

func (r *reader) term(e ast.Expr, level int) (*term, *Error) {
	at := r.offset(e)
	if r.nodes++; r.nodes > MaxNodes {
		return nil, r.syntax.fail(at, fmt.Sprintf("the expression has more than %d nodes", MaxNodes), "")
	}
	if level > MaxDepth {
		return nil, r.syntax.fail(at, fmt.Sprintf("the expression is nested deeper than %d levels", MaxDepth), "")
	}
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		if strings.HasPrefix(name, ".") {
			return nil, r.syntax.fail(at, "a column name starts with a dot", "a column name")
		}
		return (&term{kind: columnTerm, name: name, offset: at}).canonical(), nil
	case ast.SelectKind:
		return r.dotted(e)
	case ast.LiteralKind:
		return r.literal(e)
	case ast.CallKind:
		return r.call(e, level)
	case ast.ListKind:
		return nil, r.syntax.fail(at, "a list stands only on the right of in", "")
	}
	return nil, r.syntax.fail(at, "maps and structures are not part of this language", "")
}

// offset of a node in code points. cel-go places a call at its bracket; the name before it is the better place.
func (r *reader) offset(e ast.Expr) int {
	place, _ := r.info.GetOffsetRange(e.ID())
	at := int(place.Start)
	if e.Kind() != ast.CallKind || signs[e.AsCall().FunctionName()] != "" {
		return max(at, 0)
	}
	name := e.AsCall().FunctionName()
	source := []rune(r.syntax.source)
	for i := min(at, len(source)); i > 0; i-- {
		if from := i - len(name); from >= 0 && string(source[from:i]) == name {
			return from
		}
		if !strings.ContainsRune(" \t\r\n\f", source[i-1]) {
			break
		}
	}
	return max(at, 0)
}

// dotted reads a.b.c as the column of that name: there are no structures whose fields it could be.
func (r *reader) dotted(e ast.Expr) (*term, *Error) {
	name := ""
	for e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		name = "." + e.AsSelect().FieldName() + name
		e = e.AsSelect().Operand()
	}
	at := r.offset(e)
	if e.Kind() != ast.IdentKind || strings.HasPrefix(e.AsIdent(), ".") {
		return nil, r.syntax.fail(at, "only a column name can be followed by a dot and a name", `a column: col("name")`)
	}
	return (&term{kind: columnTerm, name: e.AsIdent() + name, offset: at}).canonical(), nil
}

// upperHex reports whether an integer that is written at an offset in code points begins with 0X, after its sign. CEL's grammar
// has a small x only; of cel-go's parsers the one that we use takes both, the one that is made from the grammar does not.
func (r *reader) upperHex(at int) bool {
	source := []rune(r.syntax.source)
	digits := strings.TrimLeft(string(source[min(at, len(source)):]), "- \t\r\n\f")
	return strings.HasPrefix(digits, "0X")
}

func (r *reader) literal(e ast.Expr) (*term, *Error) {
	at := r.offset(e)
	t := &term{kind: numberTerm, offset: at}
	switch v := e.AsLiteral().(type) {
	case types.Double:
		t.number = float64(v)
	case types.Int:
		if r.upperHex(at) {
			return nil, r.syntax.fail(at, "0X begins no number", "0x, with a small x")
		}
		t.number = float64(v)
		if t.number >= 1<<63 || int64(t.number) != int64(v) {
			return nil, r.syntax.fail(at, "the integer is not a float64", "a number within ±2^53, or a text if the column is text")
		}
	case types.String:
		t.kind, t.name = textTerm, string(v)
	case types.Bool:
		t.kind = truthTerm
		if v {
			t.number = 1
		}
	case types.Null:
		t.kind = nullTerm
	case types.Uint:
		return nil, r.syntax.fail(at, "unsigned numbers are not part of this language", "a number without u")
	default:
		return nil, r.syntax.fail(at, "byte strings are not part of this language", "a text without b")
	}
	if math.IsInf(t.number, 0) || math.IsNaN(t.number) {
		return nil, r.syntax.fail(at, "the number is out of range", "")
	}
	t.number += 0 // -0 becomes 0: no operation tells them apart
	return t.canonical(), nil
}

func (r *reader) call(e ast.Expr, level int) (*term, *Error) {
	call, at := e.AsCall(), r.offset(e)
	name, args := call.FunctionName(), call.Args()
	if sign := signs[name]; sign != "" {
		name = sign
	} else if err := r.known(name, call, at); err != nil {
		return nil, err
	}
	if literals[name] != "" && !call.IsMemberFunction() {
		return r.leaf(name, args, at)
	}
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	f := functions[name]
	if len(args) < f.min || len(args) > f.max {
		return nil, r.syntax.fail(at, fmt.Sprintf("%s takes %s, not %d", name, count(f), len(args)-receiver(f)), f.use)
	}
	t := &term{kind: callTerm, name: name, offset: at}
	for i, a := range args {
		var arg *term
		var err *Error
		if name == "in" && i == 1 {
			arg, err = r.list(a, level+1)
		} else {
			next := level + 1
			if sub, ok := chained(a, e); ok && sub {
				next = level // a chain of one logical operator is one node
			}
			arg, err = r.term(a, next)
		}
		if err != nil {
			return nil, err
		}
		t.args = append(t.args, arg)
	}
	return t.canonical(), nil
}

// chained reports whether a is a call of the same logical operator as e, which flatten will open.
func chained(a, e ast.Expr) (bool, bool) {
	name := e.AsCall().FunctionName()
	if name != operators.LogicalAnd && name != operators.LogicalOr {
		return false, false
	}
	return a.Kind() == ast.CallKind && a.AsCall().FunctionName() == name, true
}

func receiver(f function) int {
	if f.style == method {
		return 1
	}
	return 0
}

func count(f function) string {
	low, high := f.min-receiver(f), f.max-receiver(f)
	switch {
	case high > low:
		return fmt.Sprintf("%d to %d arguments", low, high)
	case low == 0:
		return "no argument"
	case low == 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", low)
}

// known refuses what is no function of the language, or is written in the wrong style.
func (r *reader) known(name string, call ast.CallExpr, at int) *Error {
	f, ok := functions[name]
	isLiteral := literals[name] != ""
	if ok && f.style != operator || isLiteral {
		if call.IsMemberFunction() == (f.style == method) {
			return nil
		}
		use := f.use
		if isLiteral {
			use = literals[name]
		}
		return r.syntax.fail(at, name+" is not written like this", use)
	}
	switch name {
	case operators.Modulo:
		err := r.syntax.fail(at, "% is not part of this language", "")
		err.Suggestion = "a - b * floor(a / b)"
		return err
	case operators.Index:
		err := r.syntax.fail(at, "[] is not part of this language", "")
		err.Suggestion = `col("name")`
		return err
	}
	err := r.syntax.fail(at, "unknown function "+quoteShort(name), "")
	if use, ok := elsewhere[strings.ToLower(name)]; ok {
		err.Suggestion = use
	} else if near := nearestFunction(name); near != "" {
		err.Suggestion = near
	}
	return err
}

func nearestFunction(name string) string {
	var names []string
	uses := map[string]string{}
	for known, f := range functions {
		if f.style != operator {
			names = append(names, known)
			uses[known] = f.use
		}
	}
	for known, use := range literals {
		names = append(names, known)
		uses[known] = use
	}
	return uses[nearest.Name(name, names)]
}

// leaf reads col("…") and timestamp("…").
func (r *reader) leaf(name string, args []ast.Expr, at int) (*term, *Error) {
	var text types.String
	ok := len(args) == 1 && args[0].Kind() == ast.LiteralKind
	if ok {
		text, ok = args[0].AsLiteral().(types.String)
	}
	if !ok {
		return nil, r.syntax.fail(at, name+" takes one text in quotes", literals[name])
	}
	if r.nodes++; r.nodes > MaxNodes {
		return nil, r.syntax.fail(at, fmt.Sprintf("the expression has more than %d nodes", MaxNodes), "")
	}
	if name == "col" {
		return (&term{kind: columnTerm, name: string(text), offset: at}).canonical(), nil
	}
	microseconds, problem := readTime(string(text))
	if problem != "" {
		return nil, r.syntax.fail(r.offset(args[0]), problem, `a date "2001-02-01" or a time "2001-02-01T13:30:00Z"`)
	}
	return (&term{kind: timeTerm, number: microseconds, offset: at}).canonical(), nil
}

// readTime is the microseconds since 1970 of a date or of a time with its zone.
func readTime(s string) (float64, string) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		t, err = time.Parse(time.RFC3339Nano, s)
	}
	switch {
	case err != nil:
		return 0, "this is not a time"
	case t.Year() < 1685 || t.Year() > 2254:
		return 0, "the time is outside of the years 1685 to 2254"
	case t.Nanosecond()%1000 != 0:
		return 0, "the time is finer than a microsecond"
	}
	return float64(t.UnixMicro()), ""
}

func (r *reader) list(e ast.Expr, level int) (*term, *Error) {
	at := r.offset(e)
	if e.Kind() != ast.ListKind {
		return nil, r.syntax.fail(at, "in needs a list on its right", "[a, b, c]")
	}
	elements := e.AsList().Elements()
	if len(elements) == 0 {
		return nil, r.syntax.fail(at, "the list is empty", "[a, b, c]")
	}
	if len(elements) > MaxList {
		return nil, r.syntax.fail(at, fmt.Sprintf("the list has more than %d members", MaxList), "")
	}
	t := &term{kind: listTerm, offset: at}
	for _, element := range elements {
		member, err := r.term(element, level+1)
		if err != nil {
			return nil, err
		}
		t.args = append(t.args, member)
	}
	return t.canonical(), nil
}
