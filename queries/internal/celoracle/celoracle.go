// Package celoracle evaluates a row expression by CEL's own interpreter, as the reference that our kernels are tested
// against. It shares no code with package expr: it reads the source with cel-go's parser and prints the total form, in
// which every rule about null and about results that are not finite is spelled out, as one CEL program. Comparisons,
// arithmetic, logic, conditionals, in, text tests and the parts of times are CEL's own. Only the functions that CEL does
// not have (log, exp, sqrt, floor, ceil, microseconds) are bound to package math.
//
// It is slow and meant for tests.
package celoracle

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/parser"

	"github.com/holdoutd/holdoutd/dataset"
)

// Program is an expression that CEL's interpreter can evaluate.
type Program struct {
	total   string
	program cel.Program
	names   map[string]string
}

// New reads an expression of the language over a schema.
func New(schema dataset.Schema, source string) (*Program, error) {
	p, err := parser.NewParser()
	if err != nil {
		return nil, err
	}
	tree, errs := p.Parse(common.NewTextSource(source))
	if len(errs.GetErrors()) > 0 {
		return nil, fmt.Errorf("celoracle: %s", errs.ToDisplayString())
	}
	w := writer{names: map[string]string{}, bools: map[string]bool{}}
	for i, f := range schema.Fields {
		w.names[f.Name] = fmt.Sprintf("c%d", i)
		w.bools[w.names[f.Name]] = f.Kind == dataset.Bool
	}
	total := w.condition(tree.Expr())
	if w.err != nil {
		return nil, w.err
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	parsed, issues := env.Parse(total)
	if issues.Err() != nil {
		return nil, fmt.Errorf("celoracle: %s: %w", total, issues.Err())
	}
	program, err := env.Program(parsed) // not type-checked: a nullable number is a double or null
	if err != nil {
		return nil, err
	}
	return &Program{total: total, program: program, names: w.names}, nil
}

// Total is the total form as CEL text, over columns named c0, c1, … in the order of the schema.
func (p *Program) Total() string { return p.total }

// Eval evaluates one row: by column name a float64, string, bool, time.Time or nil. The result is a float64, a bool or nil.
func (p *Program) Eval(row map[string]any) (any, error) {
	input := make(map[string]any, len(row))
	for column, cell := range row {
		if x, ok := cell.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			cell = nil
		}
		input[p.names[column]] = cell
	}
	out, _, err := p.program.Eval(input)
	if err != nil {
		return nil, fmt.Errorf("celoracle: %s: %w", p.total, err)
	}
	switch v := out.(type) {
	case types.Double:
		return float64(v), nil
	case types.Bool:
		return bool(v), nil
	case types.Null:
		return nil, nil
	}
	return nil, fmt.Errorf("celoracle: %s: the result has CEL type %s", p.total, out.Type())
}

// environment is CEL's standard library with bind and the functions that CEL lacks.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{ext.Bindings(), cel.ParserRecursionLimit(100000), cel.ParserExpressionSizeLimit(1 << 24)}
	for name, f := range map[string]func(float64) float64{"log": math.Log, "exp": math.Exp, "sqrt": math.Sqrt, "floor": math.Floor, "ceil": math.Ceil} {
		options = append(options, cel.Function(name, cel.Overload(name, []*cel.Type{cel.DoubleType}, cel.DoubleType,
			cel.UnaryBinding(func(x ref.Val) ref.Val { return types.Double(f(float64(x.(types.Double)))) }))))
	}
	options = append(options, cel.Function("microseconds", cel.Overload("microseconds", []*cel.Type{cel.TimestampType}, cel.DoubleType,
		cel.UnaryBinding(func(t ref.Val) ref.Val { return types.Double(t.(types.Timestamp).Time.UnixMicro()) }))))
	return cel.NewEnv(options...)
})

// writer prints a syntax tree of cel-go as total CEL.
type writer struct {
	names map[string]string
	bools map[string]bool
	fresh int
	err   error
}

func (w *writer) fail(format string, args ...any) string {
	if w.err == nil {
		w.err = fmt.Errorf("celoracle: "+format, args...)
	}
	return "null"
}

// condition is e where a null cell of a boolean column reads as false. It leaves other types as they are.
func (w *writer) condition(e ast.Expr) string {
	text := w.value(e)
	if w.bools[text] {
		return "(" + text + " == true)"
	}
	return text
}

// value is e with its nulls.
func (w *writer) value(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind, ast.SelectKind:
		return w.column(dotted(e))
	case ast.LiteralKind:
		return w.literal(e.AsLiteral())
	case ast.ListKind:
		var members []string
		for _, m := range e.AsList().Elements() {
			members = append(members, w.value(m))
		}
		return "[" + strings.Join(members, ", ") + "]"
	case ast.CallKind:
		return w.call(e.AsCall())
	}
	return w.fail("kind %v", e.Kind())
}

func dotted(e ast.Expr) string {
	if e.Kind() == ast.SelectKind {
		return dotted(e.AsSelect().Operand()) + "." + e.AsSelect().FieldName()
	}
	return e.AsIdent()
}

func (w *writer) column(name string) string {
	if c, ok := w.names[name]; ok {
		return c
	}
	return w.fail("unknown column %q", name)
}

func (w *writer) literal(v ref.Val) string {
	switch v := v.(type) {
	case types.Int:
		return double(float64(v))
	case types.Double:
		return double(float64(v))
	case types.String:
		return strconv.QuoteToASCII(string(v))
	case types.Bool:
		return strconv.FormatBool(bool(v))
	case types.Null:
		return "null"
	}
	return w.fail("literal %v", v)
}

func double(x float64) string { return "(" + strconv.FormatFloat(x, 'e', -1, 64) + ")" }

// bound evaluates the arguments once and uses them in a template of %[1]s, %[2]s, …
func (w *writer) bound(args []string, template string) string {
	names := make([]any, len(args))
	for i := range args {
		w.fresh++
		names[i] = fmt.Sprintf("v%d", w.fresh)
	}
	text := fmt.Sprintf(template, names...)
	for i := len(args) - 1; i >= 0; i-- {
		text = fmt.Sprintf("cel.bind(%s, %s, %s)", names[i], args[i], text)
	}
	return text
}

// strict is null if an argument is null, else the template, or null if that is not finite: only of finite x is x-x 0.
func (w *writer) strict(args []string, template string) string {
	tests := make([]string, len(args))
	for i := range args {
		tests[i] = fmt.Sprintf("%%[%d]s == null", i+1)
	}
	w.fresh++
	result := fmt.Sprintf("r%d", w.fresh)
	finite := fmt.Sprintf("cel.bind(%[1]s, %[2]s, %[1]s - %[1]s == 0.0 ? %[1]s : null)", result, template)
	return w.bound(args, "("+strings.Join(tests, " || ")+" ? null : "+finite+")")
}

// compared is false if an argument is null, else the template.
func (w *writer) compared(args []string, template string) string {
	tests := make([]string, len(args))
	for i := range args {
		tests[i] = fmt.Sprintf("%%[%d]s != null", i+1)
	}
	return w.bound(args, "("+strings.Join(tests, " && ")+" && "+template+")")
}

var infix = map[string]string{
	operators.Add: "+", operators.Multiply: "*", operators.Divide: "/",
	operators.Less: "<", operators.LessEquals: "<=", operators.Greater: ">", operators.GreaterEquals: ">=", operators.Equals: "==", operators.NotEquals: "!=",
	operators.LogicalAnd: "&&", operators.LogicalOr: "||",
}

func (w *writer) call(c ast.CallExpr) string {
	name := c.FunctionName()
	switch name {
	case "col":
		return w.column(string(c.Args()[0].AsLiteral().(types.String)))
	case "timestamp":
		return w.timestamp(string(c.Args()[0].AsLiteral().(types.String)))
	case operators.LogicalAnd, operators.LogicalOr:
		return "(" + w.condition(c.Args()[0]) + " " + infix[name] + " " + w.condition(c.Args()[1]) + ")"
	case operators.LogicalNot:
		return "(!" + w.condition(c.Args()[0]) + ")"
	case operators.Conditional:
		return "(" + w.condition(c.Args()[0]) + " ? " + w.condition(c.Args()[1]) + " : " + w.condition(c.Args()[2]) + ")"
	case operators.Equals, operators.NotEquals:
		for i, a := range c.Args() {
			if a.Kind() == ast.LiteralKind && a.AsLiteral().Type() == types.NullType {
				return "(" + w.value(c.Args()[1-i]) + " " + infix[name] + " null)"
			}
		}
	}
	args := []string{}
	if c.IsMemberFunction() {
		args = append(args, w.value(c.Target()))
	}
	for _, a := range c.Args() {
		args = append(args, w.value(a))
	}
	return w.apply(name, args)
}

func (w *writer) apply(name string, args []string) string {
	switch name {
	case operators.Add, operators.Multiply, operators.Divide:
		return w.strict(args, "%[1]s "+infix[name]+" %[2]s")
	case operators.Subtract: // CEL has a duration for two times; the language counts microseconds
		return w.strict(args, "(type(%[1]s) == google.protobuf.Timestamp ? microseconds(%[1]s) - microseconds(%[2]s) : %[1]s - %[2]s)")
	case operators.Negate:
		return w.strict(args, "-%[1]s")
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Equals, operators.NotEquals:
		return w.compared(args, "%[1]s "+infix[name]+" %[2]s")
	case operators.In:
		return w.compared(args[:1], "%[1]s in "+strings.ReplaceAll(args[1], "%", "%%"))
	case "startsWith", "endsWith", "contains":
		return w.compared(args, "%[1]s."+name+"(%[2]s)")
	case "abs":
		return w.strict(args, "(%[1]s < 0.0 ? -%[1]s : %[1]s)")
	case "log", "exp", "sqrt", "floor", "ceil":
		return w.strict(args, name+"(%[1]s)")
	case "min", "max":
		sign := map[string]string{"min": "<", "max": ">"}[name]
		folded := args[0]
		for _, a := range args[1:] {
			folded = w.strict([]string{folded, a}, "(%[1]s "+sign+" %[2]s ? %[1]s : %[2]s)")
		}
		return folded
	case "clamp":
		return w.strict(args, "(cel.bind(m, %[1]s > %[2]s ? %[1]s : %[2]s, m < %[3]s ? m : %[3]s))")
	}
	if strings.HasPrefix(name, "get") {
		return w.strict(args, "double(%[1]s."+name+"())")
	}
	return w.fail("unknown function %q", name)
}

func (w *writer) timestamp(s string) string {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		s = t.Format(time.RFC3339)
	}
	return "timestamp(" + strconv.Quote(s) + ")"
}
