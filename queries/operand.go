package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/shape"
)

const operandDoc = "a query that is the mean of one row function, such as mean, fraction, accuracy or loss, without where, weight and guess"

// operand is a query inside of another.
type operand struct{ into **Query }

func (f operand) read(v *violations, pointer string, in *value) {
	before := len(v.list)
	q := readQuery(v, pointer, in)
	if q == nil {
		return
	}
	if _, nested := q.body.(interface{ nests() }); nested {
		v.add(pointer+"/type", article(q.kind.name)+" holds queries itself and cannot be part of another")
	}
	if g, ok := q.body.(guessed); ok && (g.guess().Value != nil || g.guess().HalfWidth != nil || g.guess().Measure != nil) {
		v.add(pointer, "a query inside of another has no guess, half_width or measure of its own")
	}
	if q.Promise() != nil {
		v.add(pointer, "a query inside of another has no promise of its own")
	}
	if len(v.list) == before {
		*f.into = q
	}
}

func (f operand) canonical() any {
	if *f.into == nil {
		return nil
	}
	return (*f.into).object()
}

func (f operand) schema() map[string]any {
	return map[string]any{"$ref": schemaOperand}
}

// refer completes the names that a member's schema refers to.
func refer(s map[string]any, prefix string) map[string]any {
	if name, ok := s["$ref"].(string); ok {
		s["$ref"] = prefix + name
	}
	if items, ok := s["items"].(map[string]any); ok {
		refer(items, prefix)
	}
	return s
}

// object is the canonical form before it is written.
func (q *Query) object() map[string]any {
	o := map[string]any{"type": q.kind.name}
	for _, m := range q.body.members() {
		if c := m.form.canonical(); c != nil {
			o[m.name] = c
		}
	}
	return o
}

// operands is a list of queries.
type operands struct {
	into  *[]*Query
	least int
	most  int
}

func (f operands) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) < f.least || len(in.items) > f.most {
		v.add(pointer, fmt.Sprintf("must be a list of %d to %d queries", f.least, f.most))
		return
	}
	for i, item := range in.items {
		var q *Query
		operand{&q}.read(v, fmt.Sprintf("%s/%d", pointer, i), item)
		*f.into = append(*f.into, q)
	}
}

func (f operands) canonical() any {
	all := make([]any, len(*f.into))
	for i, q := range *f.into {
		all[i] = q.object()
	}
	return all
}

func (f operands) schema() map[string]any {
	return map[string]any{"type": "array", "items": operand{}.schema(), "minItems": f.least, "maxItems": f.most}
}

// inside compiles an operand, whose errors are at its place.
func (c *compiler) inside(name string, q *Query) *Plan {
	outer := c.pointer
	c.pointer = outer + "/" + name
	before := len(c.list)
	p := q.body.compile(c)
	c.pointer = outer
	if len(c.list) > before || c.failed != nil {
		return nil
	}
	return p
}

// single compiles an operand that has to be the mean of one row function, such as a mean, a fraction or an accuracy without where;
// what says so where it is not.
func (c *compiler) single(name string, q *Query) (RowFunction, *Plan) {
	p := c.inside(name, q)
	if p == nil {
		return RowFunction{}, nil
	}
	if a := p.Affine(); a == nil || *a != (shape.Affine{Low: p.Functions[0].Lo, High: p.Functions[0].Hi}) {
		c.add(c.pointer+"/"+name, "must be the mean of one row function, such as a mean, a fraction, an accuracy or a loss (squared in place of rmse), of every unit with one vote and without where")
		return RowFunction{}, nil
	}
	f := p.Functions[0]
	if f.Where != nil || f.PerUnit != UnitMean {
		c.add(c.pointer+"/"+name, "must be a mean over all rows")
		return RowFunction{}, nil
	}
	return f, p
}

// scalar compiles an operand whose answer has to be one number.
func (c *compiler) scalar(name string, q *Query) *Plan {
	p := c.inside(name, q)
	if p != nil && !p.Scalar() {
		c.add(c.pointer+"/"+name, "must be a query whose answer is one number")
		return nil
	}
	return p
}
