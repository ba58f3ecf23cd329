package expr

import (
	"fmt"
	"strconv"
	"sync"

	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/containers"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/holdoutd/holdoutd/rowfn"
)

// celTypes are the types of CEL that stand for ours. There is no dyn, int, list variable or map in the environment.
var celTypes = map[rowfn.Type]*types.Type{rowfn.Number: types.DoubleType, rowfn.Condition: types.BoolType, rowfn.Text: types.StringType, rowfn.Time: types.TimestampType}

// celFunctions declares every function of the language to cel-go's checker, with our types only.
var celFunctions = sync.OnceValue(func() []*decls.FunctionDecl {
	number, condition, text, moment := types.DoubleType, types.BoolType, types.StringType, types.TimestampType
	var all []*decls.FunctionDecl
	add := func(name string, options ...decls.FunctionOpt) {
		f, err := decls.NewFunction(name, options...)
		if err != nil {
			panic("expr: declaring " + name + " to cel-go: " + err.Error()) // a constant table; a test would see it
		}
		all = append(all, f)
	}
	overload := func(name string, out *types.Type, in ...*types.Type) decls.FunctionOpt {
		return decls.Overload(fmt.Sprint(name, in), in, out)
	}
	for name, f := range functions {
		sign := celName(name)
		switch {
		case f.op == rowfn.OpAnd || f.op == rowfn.OpOr:
			add(sign, overload(sign, condition, condition, condition))
		case f.op == rowfn.OpNot:
			add(sign, overload(sign, condition, condition))
		case f.op == rowfn.OpIf:
			add(sign, overload(sign, number, condition, number, number), overload(sign, condition, condition, condition, condition),
				overload(sign, moment, condition, moment, moment))
		case f.op == rowfn.OpEq || f.op == rowfn.OpNe:
			add(sign, overload(sign, condition, number, number), overload(sign, condition, moment, moment),
				overload(sign, condition, text, text), overload(sign, condition, condition, condition))
		case f.op >= rowfn.OpLess && f.op <= rowfn.OpGreaterEq:
			add(sign, overload(sign, condition, number, number), overload(sign, condition, moment, moment))
		case f.op == rowfn.OpIn:
			add(sign, overload(sign, condition, number, types.NewListType(number)), overload(sign, condition, text, types.NewListType(text)),
				overload(sign, condition, moment, types.NewListType(moment)))
		case f.op == rowfn.OpSub:
			add(sign, overload(sign, number, number, number), overload(sign, number, moment, moment))
		case f.op >= rowfn.OpHasPrefix && f.op <= rowfn.OpContains:
			add(sign, decls.MemberOverload(sign, []*types.Type{text, text}, condition))
		case f.op >= rowfn.OpFullYear:
			add(sign, decls.MemberOverload(sign, []*types.Type{moment}, number))
		default:
			in := make([]*types.Type, f.min)
			for i := range in {
				in[i] = number
			}
			add(sign, overload(sign, number, in...))
		}
	}
	add("timestamp", overload("timestamp", moment, text))
	add(nullTestName, overload(nullTestName, condition, number), overload(nullTestName, condition, moment),
		overload(nullTestName, condition, text), overload(nullTestName, condition, condition))
	add(nullName, overload(nullName, number))
	add(nullTimeName, overload(nullTimeName, moment))
	return all
})

// CEL has no nullable double, so null tests and null branches are functions in what cel-go checks.
const (
	nullTestName = "is_null"
	nullName     = "null_number"
	nullTimeName = "null_time"
)

// celName is cel-go's name of one of our functions.
func celName(name string) string {
	for cel, sign := range signs {
		if sign == name {
			return cel
		}
	}
	return name
}

// mostAgreed is how many forms are remembered: each takes some hundred bytes.
const mostAgreed = 4096

// agreed are forms of trees on which cel-go has agreed.
var agreed = struct {
	sync.Mutex
	forms map[string]struct{}
}{forms: map[string]struct{}{}}

// agrees is celAgrees, asked once for each form: it takes as long as all else that compiles a short expression.
func (b builder) agrees(root *term) (offset int, detail string) {
	form := string(b.form(nil, root, map[string]int{}))
	agreed.Lock()
	_, known := agreed.forms[form]
	agreed.Unlock()
	if known {
		return 0, ""
	}
	if offset, detail = celAgrees(root, b); detail != "" {
		return offset, detail
	}
	agreed.Lock()
	defer agreed.Unlock()
	if len(agreed.forms) >= mostAgreed {
		clear(agreed.forms)
	}
	agreed.forms[form] = struct{}{}
	return 0, ""
}

// form is all that the types of a tree hang on: its terms, the types of its columns, and the builder's. What a literal is does not count, nor how a column is called.
func (b builder) form(to []byte, t *term, columns map[string]int) []byte {
	to = append(to, '0'+byte(t.kind))
	if n, built := b.nodes[t]; built {
		to = append(to, 'A'+byte(n.Type))
	}
	switch t.kind {
	case columnTerm:
		i, seen := columns[t.name]
		if !seen {
			i = len(columns)
			columns[t.name] = i
		}
		to = strconv.AppendInt(append(to, 'a'+byte(columnType(b.fields[t.name].Kind))), int64(i), 10)
	case callTerm:
		to = append(to, t.name...)
	}
	if len(t.args) == 0 {
		return to
	}
	to = append(to, '(')
	for _, a := range t.args {
		to = append(b.form(to, a, columns), ',')
	}
	return append(to, ')')
}

// celAgrees type-checks the canonical tree with cel-go and compares every type with the builder's. It returns where and
// what they differ about; the builder refuses first whatever cel-go would, so that a difference is a fault of ours.
func celAgrees(root *term, b builder) (offset int, detail string) {
	base, err := celEnvironment()
	if err != nil {
		return root.offset, err.Error()
	}
	env, err := checker.NewEnv(containers.DefaultContainer, emptyRegistry(), checker.ValidatedDeclarations(base))
	if err != nil {
		return root.offset, err.Error()
	}
	w := celWriter{b: b, factory: ast.NewExprFactory(), names: map[string]string{}, terms: map[int64]*term{}}
	tree := w.expr(root)
	if err := env.AddIdents(w.columns...); err != nil {
		return root.offset, err.Error()
	}
	source := common.NewTextSource(b.syntax.source)
	checked, errs := checker.Check(ast.NewAST(tree, ast.NewSourceInfo(source)), source, env)
	if list := errs.GetErrors(); len(list) > 0 {
		if t := w.terms[list[0].ExprID]; t != nil {
			offset = t.offset
		}
		return offset, list[0].Message
	}
	for id, t := range w.terms {
		if ours, ok := b.nodes[t]; ok && !checked.GetType(id).IsExactType(celTypes[ours.Type]) {
			return t.offset, "cel-go has " + checked.GetType(id).String() + " for " + ours.Type.String()
		}
	}
	return 0, ""
}

// celEnvironment has the functions and no columns; each check adds those that its expression reads to a scope of its own.
var celEnvironment = sync.OnceValues(func() (*checker.Env, error) {
	env, err := checker.NewEnv(containers.DefaultContainer, emptyRegistry())
	if err != nil {
		return nil, err
	}
	return env, env.AddFunctions(celFunctions()...)
})

var emptyRegistry = sync.OnceValue(func() *types.Registry {
	r, err := types.NewRegistry()
	if err != nil {
		panic("expr: cel-go's registry: " + err.Error())
	}
	return r
})

// celWriter writes the canonical tree as a tree of cel-go, with a plain name for every column.
type celWriter struct {
	b       builder
	factory ast.ExprFactory
	last    int64
	names   map[string]string
	columns []*decls.VariableDecl
	terms   map[int64]*term
}

func (w *celWriter) id(t *term) int64 {
	w.last++
	if t != nil {
		w.terms[w.last] = t
	}
	return w.last
}

func (w *celWriter) expr(t *term) ast.Expr {
	f := w.factory
	switch t.kind {
	case columnTerm:
		name, ok := w.names[t.name]
		if !ok {
			name = fmt.Sprintf("c%d", len(w.names))
			w.names[t.name] = name
			w.columns = append(w.columns, decls.NewVariable(name, celTypes[columnType(w.b.fields[t.name].Kind)]))
		}
		return f.NewIdent(w.id(t), name)
	case numberTerm:
		return f.NewLiteral(w.id(t), types.Double(t.number))
	case textTerm:
		return f.NewLiteral(w.id(t), types.String(t.name))
	case timeTerm:
		return f.NewCall(w.id(t), "timestamp", f.NewLiteral(w.id(nil), types.String(t.text())))
	case truthTerm:
		return f.NewLiteral(w.id(t), types.Bool(t.number != 0))
	case listTerm:
		return f.NewList(w.id(t), w.exprs(t.args), nil)
	}
	return w.call(t)
}

func (w *celWriter) exprs(terms []*term) []ast.Expr {
	all := make([]ast.Expr, len(terms))
	for i, t := range terms {
		all[i] = w.expr(t)
	}
	return all
}

func (w *celWriter) call(t *term) ast.Expr {
	f, name := w.factory, celName(t.name)
	switch {
	case len(t.args) == 2 && t.args[1].kind == nullTerm: // x == null, x != null
		test := f.NewCall(w.id(nil), nullTestName, w.expr(t.args[0]))
		if t.name == "==" {
			return test
		}
		return f.NewCall(w.id(t), operators.LogicalNot, test)
	case t.name == "?:":
		args := make([]ast.Expr, 3)
		for i, a := range t.args {
			switch {
			case a.kind == nullTerm && w.b.nodes[t].Type == rowfn.Time:
				args[i] = f.NewCall(w.id(nil), nullTimeName)
			case a.kind == nullTerm:
				args[i] = f.NewCall(w.id(nil), nullName)
			default:
				args[i] = w.expr(a)
			}
		}
		return f.NewCall(w.id(t), name, args...)
	case functions[t.name].style == method:
		return f.NewMemberCall(w.id(t), name, w.expr(t.args[0]), w.exprs(t.args[1:])...)
	case len(t.args) > 2 && functions[t.name].op != rowfn.OpClamp: // &&, ||, min, max
		args := w.exprs(t.args)
		folded := args[0]
		for _, a := range args[1:] {
			folded = f.NewCall(w.id(t), name, folded, a)
		}
		return folded
	}
	return f.NewCall(w.id(t), name, w.exprs(t.args)...)
}
