package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

// weights are declared weights of rows, such as those of a survey or of inverse propensities: {"of": expression, "range": [low, high]}.
type weights struct {
	Of    *expr.Syntax
	Range Range
}

const weightsDoc = `{"of": a number, "range": [low, high]}: a weight for each row, clamped to the range, which must not be negative. The answer is ` +
	`E[weight·value]/E[weight], and costs two questions. The interval is wide if the high end is much larger than the mean weight`

type weightsForm struct{ into **weights }

func (f weightsForm) members(w *weights) []member {
	return []member{
		required("of", expression{&w.Of}, "the weight: a row expression; a null counts as the low end of the range"),
		required("range", rangeForm{&w.Range}, "[low, high] with 0 <= low"),
	}
}

func (f weightsForm) read(v *violations, pointer string, in *value) {
	if in.kind != objectValue {
		v.wrongType(pointer, `an object: {"of": …, "range": […]}`, in)
		return
	}
	w, before := new(weights), len(v.list)
	members := f.members(w)
	for _, m := range members {
		if given := in.member(m.name); given != nil {
			m.form.read(v, pointer+"/"+m.name, given)
		} else {
			v.add(pointer, `"`+m.name+`" is missing: `+m.doc)
		}
	}
	for _, given := range in.members {
		if given.name != "of" && given.name != "range" {
			v.put(Violation{Pointer: pointer + "/" + escape(given.name), Detail: "unknown member; weights have of and range", Suggestion: suggest(given.name, members)})
		}
	}
	if w.Range.valid() && w.Range.Low < 0 {
		v.add(pointer+"/range", "must not hold negative weights")
	}
	if len(v.list) == before {
		*f.into = w
	}
}

func (f weightsForm) canonical() any {
	if *f.into == nil {
		return nil
	}
	o := map[string]any{}
	for _, m := range f.members(*f.into) {
		o[m.name] = m.form.canonical()
	}
	return o
}

func (f weightsForm) schema() map[string]any {
	properties := map[string]any{}
	for _, m := range f.members(new(weights)) {
		s := m.form.schema()
		s["description"] = m.doc
		properties[m.name] = s
	}
	return map[string]any{"type": "object", "properties": properties, "required": []string{"of", "range"}, "additionalProperties": false}
}

// weightedAverage is the plan of a mean of f's value in which rows have weights. With u in [0,1] the place of the value in its range
// and w in [0,1] the weight as a part of the largest one, it asks for the means of w·u and w·(1-u), as groups does: their sum is
// the mean of w, and their quotient has a narrower interval than that of w·u and w.
func weightedAverage(c *compiler, f RowFunction, w *weights, where *rowfn.Node, weight Weight) *Plan {
	of := c.number("weights/of", w.Of)
	if of == nil || f.Value == nil || len(c.list) > 0 {
		return nil
	}
	r, high := Range{f.Lo, f.Hi}, w.Range.High
	part := rowfn.Div(w.Range.clamp(rowfn.OrElse(of, w.Range.Low)), rowfn.Const(high))
	value := r.clamp(rowfn.OrElse(f.Value, f.Null))
	width := rowfn.Const(r.High - r.Low)
	up := rowfn.Div(rowfn.Sub(value, rowfn.Const(r.Low)), width)
	down := rowfn.Div(rowfn.Sub(rowfn.Const(r.High), value), width)
	p := &Plan{Range: r, combine: func(o Outcome) Result { return shareOf(o.Parts[0], o.Parts[1], r) }}
	for _, u := range []*rowfn.Node{up, down} {
		product := RowFunction{Value: rowfn.Mul(part, u), Lo: 0, Hi: 1, Where: where}
		if c.grouped && weight == WeightRow {
			product.PerUnit = UnitShare
		}
		p.Functions = append(p.Functions, product)
	}
	return p
}

// describeWeighted says what weightedAverage did.
func (p *Plan) describeWeighted(c *compiler, text string, w *weights, where *expr.Syntax, weight Weight, null float64) {
	name := fmt.Sprintf("%s clamped to %v", w.Of.Canonical(), w.Range)
	in, unit, rows := "", "", ""
	if where != nil {
		in, rows = " where "+where.Canonical(), " over the rows in which "+where.Canonical()
	}
	switch {
	case c.grouped && weight == WeightRow:
		unit, rows = "the sum over the unit's rows"+in+", "+c.share()+", of ", rows+", every row having its weight as its vote, "+c.unitCap()
		in = ""
	case c.grouped:
		unit, rows = "the mean over the unit's rows"+in+" of ", rows+", the weight of a row being divided by the number of these rows in its unit"
		in = ""
	}
	p.describe = Description{
		Functions: []string{
			fmt.Sprintf("%sw · u%s, with w the weight %s as a part of %v and u the place of %s in its range, from 0 to 1", unit, in, name, w.Range.High, text),
			fmt.Sprintf("%sw · (1 - u)%s", unit, in),
		},
		Combine: fmt.Sprintf("the first mean divided by the sum of both, moved to %v; undefined where that sum is not positive", p.Range),
		Null:    fmt.Sprintf("a null counts as %v, a null weight as %v", null, w.Range.Low),
		Target:  c.target("the mean of %s with weights %s%s", text, name, rows),
	}
}
