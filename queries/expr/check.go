package expr

import (
	"slices"
	"sort"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/rowfn"
)

// check types the canonical tree twice: by builder, which makes the total tree and knows what to say of an error, and by
// cel-go, which must agree at every node.
func (s *Syntax) check(schema dataset.Schema) (*rowfn.Node, *Error) {
	b := builder{syntax: s, fields: fieldsOf(schema, s.Columns()), nodes: map[*term]*rowfn.Node{}}
	if err := b.unknownColumn(schema); err != nil {
		return nil, err
	}
	n, err := b.node(s.root)
	if err != nil {
		return nil, err
	}
	if n.Type == rowfn.Text {
		return nil, s.fail(s.root.offset, "the expression is text", "a number or a condition")
	}
	if at, detail := b.agrees(s.root); detail != "" {
		return nil, s.fail(at, "the expression does not type-check: "+detail, "")
	}
	return n, nil
}

// fewColumns is how many names are looked up one by one, which for a wide table is faster than hashing all of its names.
const fewColumns = 16

// fieldsOf are the fields of some columns, by name, without those that the schema does not have.
func fieldsOf(schema dataset.Schema, columns []string) map[string]dataset.Field {
	fields := make(map[string]dataset.Field, len(columns))
	if len(columns) <= fewColumns {
		for _, name := range columns {
			if i := slices.IndexFunc(schema.Fields, func(f dataset.Field) bool { return f.Name == name }); i >= 0 {
				fields[name] = schema.Fields[i]
			}
		}
		return fields
	}
	for _, f := range schema.Fields {
		if _, ok := slices.BinarySearch(columns, f.Name); ok {
			fields[f.Name] = f
		}
	}
	return fields
}

// builder turns terms into nodes.
type builder struct {
	syntax *Syntax
	fields map[string]dataset.Field // the columns that the expression reads
	nodes  map[*term]*rowfn.Node    // of every term but lists and null; a term that is asked for twice is built once
}

// unknownColumn is the error about the first column of the source that the schema does not have.
func (b *builder) unknownColumn(schema dataset.Schema) *Error {
	var columns []*term
	b.syntax.root.walk(func(t *term) {
		if t.kind == columnTerm {
			columns = append(columns, t)
		}
	})
	sort.SliceStable(columns, func(i, j int) bool { return columns[i].offset < columns[j].offset })
	for _, t := range columns {
		if _, ok := b.fields[t.name]; ok {
			continue
		}
		err := b.syntax.fail(t.offset, "unknown column "+quoteShort(t.name), "")
		if reason, skipped := schema.Skipped[t.name]; skipped {
			return b.syntax.fail(t.offset, "the upload's column "+quoteShort(t.name)+" was skipped: "+reason, "")
		}
		names := make([]string, len(schema.Fields))
		for i, f := range schema.Fields {
			names[i] = f.Name
		}
		if use := timePart(t.name, schema); use != "" {
			err.Suggestion = use
		} else if near := nearest.Name(t.name, names); near != "" {
			err.Suggestion = printColumn(near)
		} else if word, ok := words[t.name]; ok {
			err.Suggestion = word
		}
		return err
	}
	return nil
}

// timePart is how one asks for the part of a time that a.hour means in other languages, where a is a column of times; "" elsewhere.
func timePart(name string, schema dataset.Schema) string {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return ""
	}
	of := strings.TrimSuffix(name[:dot], ".dt") // as pandas writes it
	column, ok := fieldsOf(schema, []string{of})[of]
	use, isPart := strings.CutPrefix(elsewhere[strings.ToLower(name[dot+1:])], "time.")
	if !ok || column.Kind != dataset.Time || !isPart {
		return ""
	}
	return printColumn(of) + "." + use
}

func (b *builder) node(t *term) (*rowfn.Node, *Error) {
	if n, ok := b.nodes[t]; ok {
		return n, nil
	}
	n, err := b.build(t)
	if err == nil {
		b.nodes[t] = n
	}
	return n, err
}

func (b *builder) build(t *term) (*rowfn.Node, *Error) {
	switch t.kind {
	case columnTerm:
		return &rowfn.Node{Op: rowfn.OpColumn, Type: columnType(b.fields[t.name].Kind), Text: t.name}, nil
	case numberTerm:
		return &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Number, Number: t.number}, nil
	case timeTerm:
		return &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Time, Number: t.number}, nil
	case textTerm:
		return &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: t.name}, nil
	case truthTerm:
		return truth(t.number != 0), nil
	case nullTerm:
		return nil, b.syntax.fail(t.offset, "null stands here where a value is wanted", "x == null, x != null, or null as a branch of ?:")
	}
	switch f := functions[t.name]; f.op {
	case rowfn.OpAnd, rowfn.OpOr, rowfn.OpNot:
		return b.uniform(t, f.op, rowfn.Condition, rowfn.Condition)
	case rowfn.OpIf:
		return b.conditional(t)
	case rowfn.OpEq, rowfn.OpNe:
		return b.equality(t, f.op)
	case rowfn.OpLess, rowfn.OpLessEq, rowfn.OpGreater, rowfn.OpGreaterEq:
		return b.order(t, f.op)
	case rowfn.OpIn:
		return b.membership(t)
	case rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains:
		return b.textTest(t, f.op)
	case rowfn.OpMin, rowfn.OpMax:
		return b.extreme(t, f.op)
	case rowfn.OpSub:
		return b.difference(t)
	default:
		if f.op >= rowfn.OpFullYear {
			return b.uniform(t, f.op, rowfn.Time, rowfn.Number)
		}
		return b.uniform(t, f.op, rowfn.Number, rowfn.Number)
	}
}

func columnType(k dataset.Kind) rowfn.Type {
	switch k {
	case dataset.Bool:
		return rowfn.Condition
	case dataset.Text:
		return rowfn.Text
	case dataset.Time:
		return rowfn.Time
	}
	return rowfn.Number
}

// want builds a term that must have a type.
func (b *builder) want(t *term, want rowfn.Type) (*rowfn.Node, *Error) {
	n, err := b.node(t)
	if err == nil && n.Type != want {
		err = b.syntax.mismatch(t, n, want)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// mismatch says that a term has another type than its place wants, and how to get there.
func (s *Syntax) mismatch(t *term, n *rowfn.Node, want rowfn.Type) *Error {
	err := s.fail(t.offset, "this is "+n.Type.String(), want.String())
	switch {
	case n.Type == rowfn.Condition && want == rowfn.Number:
		err.Suggestion = t.inner() + " ? 1 : 0"
	case n.Type == rowfn.Number && want == rowfn.Condition:
		err.Suggestion = t.inner() + " != 0"
	case n.Type == rowfn.Text && want == rowfn.Time && t.kind == textTerm:
		err.Suggestion = "timestamp(" + t.text() + ")"
	case n.Type == rowfn.Text && t.kind == columnTerm && want == rowfn.Condition:
		err.Suggestion = t.text() + ` == "…"`
	case n.Type == rowfn.Time && want == rowfn.Number:
		err.Expected += `, such as t.getHours() or t - timestamp("2001-01-01")`
	}
	if len(err.Suggestion) > 4*maxEcho {
		err.Suggestion = ""
	}
	return err
}

// uniform is an operation whose arguments are all of one type.
func (b *builder) uniform(t *term, op rowfn.Op, in, out rowfn.Type) (*rowfn.Node, *Error) {
	n := &rowfn.Node{Op: op, Type: out, Args: make([]*rowfn.Node, len(t.args))}
	for i, a := range t.args {
		var err *Error
		if n.Args[i], err = b.want(a, in); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// extreme is min or max; more than two arguments fold to the left.
func (b *builder) extreme(t *term, op rowfn.Op) (*rowfn.Node, *Error) {
	n, err := b.uniform(t, op, rowfn.Number, rowfn.Number)
	if err != nil {
		return nil, err
	}
	folded := n.Args[0]
	for _, a := range n.Args[1:] {
		folded = &rowfn.Node{Op: op, Type: rowfn.Number, Args: []*rowfn.Node{folded, a}}
	}
	return folded, nil
}

// difference is number - number, or time - time, which is a number of microseconds.
func (b *builder) difference(t *term) (*rowfn.Node, *Error) {
	left, err := b.node(t.args[0])
	if err != nil {
		return nil, err
	}
	in := rowfn.Number
	if left.Type == rowfn.Time {
		in = rowfn.Time
	}
	return b.uniform(t, rowfn.OpSub, in, rowfn.Number)
}

// order is a comparison by size, of two numbers or two times.
func (b *builder) order(t *term, op rowfn.Op) (*rowfn.Node, *Error) {
	left, err := b.node(t.args[0])
	if err != nil {
		return nil, err
	}
	right, err := b.node(t.args[1])
	if err != nil {
		return nil, err
	}
	switch {
	case left.Type == rowfn.Time || right.Type == rowfn.Time:
		return b.uniform(t, op, rowfn.Time, rowfn.Condition)
	case left.Type == rowfn.Text && right.Type == rowfn.Text:
		return nil, b.syntax.fail(t.offset, "texts have no order in this language", "==, !=, in, startsWith, endsWith or contains")
	}
	return b.uniform(t, op, rowfn.Number, rowfn.Condition)
}

// conditional is ?: on numbers, times or conditions. A null branch takes the type of the other one.
func (b *builder) conditional(t *term) (*rowfn.Node, *Error) {
	test, err := b.want(t.args[0], rowfn.Condition)
	if err != nil {
		return nil, err
	}
	yes, no := t.args[1], t.args[2]
	typed := yes
	if yes.kind == nullTerm {
		typed = no
	}
	first, err := b.node(typed)
	if err != nil {
		return nil, err
	}
	if first.Type == rowfn.Text {
		return nil, b.syntax.fail(typed.offset, "text is never computed", "a number, a time or a condition")
	}
	n := &rowfn.Node{Op: rowfn.OpIf, Type: first.Type, Args: []*rowfn.Node{test, nil, nil}}
	for i, branch := range []*term{yes, no} {
		switch {
		case branch.kind == nullTerm && first.Type != rowfn.Condition:
			n.Args[i+1] = &rowfn.Node{Op: rowfn.OpNull, Type: first.Type}
		case branch.kind == nullTerm:
			return nil, b.syntax.fail(branch.offset, "a condition is never null", "true or false")
		default:
			if n.Args[i+1], err = b.want(branch, first.Type); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

// textTest is column.startsWith("…") and its kin.
func (b *builder) textTest(t *term, op rowfn.Op) (*rowfn.Node, *Error) {
	n, err := b.uniform(t, op, rowfn.Text, rowfn.Condition)
	switch {
	case err != nil:
		return nil, err
	case n.Args[0].Op != rowfn.OpColumn:
		return nil, b.syntax.fail(t.args[0].offset, "this is a literal text", "a text column")
	case n.Args[1].Op != rowfn.OpText:
		return nil, b.syntax.fail(t.args[1].offset, "this is a column", "a literal text in quotes")
	}
	return n, nil
}
