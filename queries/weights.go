package queries

import (
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// weights are declared weights of rows, such as those of a survey or of inverse propensities: {"of": expression, "range": [low, high]}.
type weights struct {
	Of    *expr.Syntax
	Range Range
}

const weightsDoc = `{"of": a number, "range": [low, high]}: a weight for each row, clamped to the range, which must not be negative. The answer is ` +
	`E[weight·value]/E[weight], and costs two questions under gaussian. The interval is wide if the high end is much larger than the mean weight`

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
	if w.Range.Valid() && w.Range.Low < 0 {
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

// weighted is the plan of a mean of f's value in which rows have weights; nil with a violation.
func (c *compiler) weighted(f RowFunction, w *weights, where *rowfn.Node, weight Weight) *Plan {
	of := c.number("weights/of", w.Of)
	if of == nil || f.Value == nil || len(c.list) > 0 {
		return nil
	}
	return shape.Weighted(f, w.Range.Clamp(rowfn.OrElse(of, w.Range.Low)), w.Range.High, where, c.rowVotes(weight))
}
