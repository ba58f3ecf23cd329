package expr

import (
	"slices"
	"sort"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

// check types the canonical tree twice: by builder, which makes the total tree and knows what to say of an error, and by
// cel-go, which must agree at every node.
func (s *Syntax) check(schema dataset.Schema) (*Node, *Error) {
	b := builder{syntax: s, fields: fieldsOf(schema, s.Columns()), nodes: map[*term]*Node{}}
	if err := b.unknownColumn(schema); err != nil {
		return nil, err
	}
	n, err := b.node(s.root)
	if err != nil {
		return nil, err
	}
	if n.Type == Text {
		return nil, s.fail(s.root.offset, "the expression is text", "a number or a condition")
	}
	if at, detail := celAgrees(s.root, b); detail != "" {
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
	nodes  map[*term]*Node          // of every term but lists and null; a term that is asked for twice is built once
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
		names := make([]string, len(schema.Fields))
		for i, f := range schema.Fields {
			names[i] = f.Name
		}
		if near := nearest.Name(t.name, names); near != "" {
			err.Suggestion = printColumn(near)
		} else if word, ok := words[t.name]; ok {
			err.Suggestion = word
		}
		return err
	}
	return nil
}

func (b *builder) node(t *term) (*Node, *Error) {
	if n, ok := b.nodes[t]; ok {
		return n, nil
	}
	n, err := b.build(t)
	if err == nil {
		b.nodes[t] = n
	}
	return n, err
}

func (b *builder) build(t *term) (*Node, *Error) {
	switch t.kind {
	case columnTerm:
		return &Node{Op: OpColumn, Type: columnType(b.fields[t.name].Kind), Text: t.name}, nil
	case numberTerm:
		return &Node{Op: OpNumber, Type: Number, Number: t.number}, nil
	case timeTerm:
		return &Node{Op: OpNumber, Type: Time, Number: t.number}, nil
	case textTerm:
		return &Node{Op: OpText, Type: Text, Text: t.name}, nil
	case truthTerm:
		return truth(t.number != 0), nil
	case nullTerm:
		return nil, b.syntax.fail(t.offset, "null stands here where a value is wanted", "x == null, x != null, or null as a branch of ?:")
	}
	switch f := functions[t.name]; f.op {
	case OpAnd, OpOr, OpNot:
		return b.uniform(t, f.op, Condition, Condition)
	case OpIf:
		return b.conditional(t)
	case OpEq, OpNe:
		return b.equality(t, f.op)
	case OpLess, OpLessEq, OpGreater, OpGreaterEq:
		return b.order(t, f.op)
	case OpIn:
		return b.membership(t)
	case OpHasPrefix, OpHasSuffix, OpContains:
		return b.textTest(t, f.op)
	case OpMin, OpMax:
		return b.extreme(t, f.op)
	case OpSub:
		return b.difference(t)
	default:
		if f.op >= OpFullYear {
			return b.uniform(t, f.op, Time, Number)
		}
		return b.uniform(t, f.op, Number, Number)
	}
}

func columnType(k dataset.Kind) Type {
	switch k {
	case dataset.Bool:
		return Condition
	case dataset.Text:
		return Text
	case dataset.Time:
		return Time
	}
	return Number
}

// want builds a term that must have a type.
func (b *builder) want(t *term, want Type) (*Node, *Error) {
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
func (s *Syntax) mismatch(t *term, n *Node, want Type) *Error {
	err := s.fail(t.offset, "this is "+n.Type.String(), want.String())
	switch {
	case n.Type == Condition && want == Number:
		err.Suggestion = t.inner() + " ? 1 : 0"
	case n.Type == Number && want == Condition:
		err.Suggestion = t.inner() + " != 0"
	case n.Type == Text && want == Time && t.kind == textTerm:
		err.Suggestion = "timestamp(" + t.text() + ")"
	case n.Type == Text && t.kind == columnTerm && want == Condition:
		err.Suggestion = t.text() + ` == "…"`
	case n.Type == Time && want == Number:
		err.Expected += `, such as t.getHours() or t - timestamp("2001-01-01")`
	}
	if len(err.Suggestion) > 4*maxEcho {
		err.Suggestion = ""
	}
	return err
}

// uniform is an operation whose arguments are all of one type.
func (b *builder) uniform(t *term, op Op, in, out Type) (*Node, *Error) {
	n := &Node{Op: op, Type: out, Args: make([]*Node, len(t.args))}
	for i, a := range t.args {
		var err *Error
		if n.Args[i], err = b.want(a, in); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// extreme is min or max; more than two arguments fold to the left.
func (b *builder) extreme(t *term, op Op) (*Node, *Error) {
	n, err := b.uniform(t, op, Number, Number)
	if err != nil {
		return nil, err
	}
	folded := n.Args[0]
	for _, a := range n.Args[1:] {
		folded = &Node{Op: op, Type: Number, Args: []*Node{folded, a}}
	}
	return folded, nil
}

// difference is number - number, or time - time, which is a number of microseconds.
func (b *builder) difference(t *term) (*Node, *Error) {
	left, err := b.node(t.args[0])
	if err != nil {
		return nil, err
	}
	in := Number
	if left.Type == Time {
		in = Time
	}
	return b.uniform(t, OpSub, in, Number)
}

// order is a comparison by size, of two numbers or two times.
func (b *builder) order(t *term, op Op) (*Node, *Error) {
	left, err := b.node(t.args[0])
	if err != nil {
		return nil, err
	}
	right, err := b.node(t.args[1])
	if err != nil {
		return nil, err
	}
	switch {
	case left.Type == Time || right.Type == Time:
		return b.uniform(t, op, Time, Condition)
	case left.Type == Text && right.Type == Text:
		return nil, b.syntax.fail(t.offset, "texts have no order in this language", "==, !=, in, startsWith, endsWith or contains")
	}
	return b.uniform(t, op, Number, Condition)
}

// conditional is ?: on numbers, times or conditions. A null branch takes the type of the other one.
func (b *builder) conditional(t *term) (*Node, *Error) {
	test, err := b.want(t.args[0], Condition)
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
	if first.Type == Text {
		return nil, b.syntax.fail(typed.offset, "text is never computed", "a number, a time or a condition")
	}
	n := &Node{Op: OpIf, Type: first.Type, Args: []*Node{test, nil, nil}}
	for i, branch := range []*term{yes, no} {
		switch {
		case branch.kind == nullTerm && first.Type != Condition:
			n.Args[i+1] = &Node{Op: OpNull, Type: first.Type}
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
func (b *builder) textTest(t *term, op Op) (*Node, *Error) {
	n, err := b.uniform(t, op, Text, Condition)
	switch {
	case err != nil:
		return nil, err
	case n.Args[0].Op != OpColumn:
		return nil, b.syntax.fail(t.args[0].offset, "this is a literal text", "a text column")
	case n.Args[1].Op != OpText:
		return nil, b.syntax.fail(t.args[1].offset, "this is a column", "a literal text in quotes")
	}
	return n, nil
}
