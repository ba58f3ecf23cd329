package model

import (
	"fmt"
	"slices"
	"strings"
)

// Linear is the weights of a linear model with one output.
type Linear struct {
	Intercept  float64
	Parameters []Parameter
}

// Parameter is a weight and what it multiplies.
type Parameter struct {
	Name    string // the column's name; for a text of a column, "column=text"
	Feature Feature
	Weight  float64
	Null    float64 // what a null Feature counts as
}

// Forms are the members that say which form a model has.
var Forms = []string{"linear", "softmax", "trees", "network", "kernel", "neighbors", "mixture"}

// maxMixed is how deep mixtures may be within mixtures: a stack of calibrated votes.
const maxMixed = 3

// model reads the object with the one member that says which form it has, and perhaps a threshold. level is the number of mixtures that it is within.
func (r *reader) model(pointer string, in any, level int) *Model {
	known := slices.Clone(Forms)
	if level == 0 {
		known = append(known, "threshold") // the models of a mixture decide nothing
	}
	o := r.object(pointer, in, known...)
	threshold := r.threshold(pointer, o)
	if len(o) != 1 {
		r.add(pointer, `must have one member, of "%s"; and may have "threshold"`, strings.Join(Forms, `", "`))
	}
	if level > maxMixed {
		r.add(pointer, "there are more than %d mixtures around it", maxMixed)
	}
	if !r.ok() {
		return nil
	}
	for name, content := range o {
		m := r.named(name, pointer+"/"+name, content, level)
		if m != nil && threshold != nil {
			if m.threshold = threshold; m.classes != nil {
				r.add(pointer+"/threshold", "is for a model with one output; one with classes predicts the largest score")
			}
		}
		return m
	}
	return nil
}

func (r *reader) named(name, pointer string, in any, level int) *Model {
	switch name {
	case "linear":
		return r.linear(pointer, in)
	case "softmax":
		return r.softmax(pointer, in)
	case "mixture":
		return r.mixture(pointer, in, level)
	case "network":
		return r.network(pointer, in)
	case "kernel":
		return r.kernel(pointer, in)
	case "neighbors":
		return r.neighbors(pointer, in)
	}
	return r.ensemble(pointer, in)
}

// threshold takes the member out of a model's object; nil if it is not there.
func (r *reader) threshold(pointer string, o map[string]any) *float64 {
	in, there := o["threshold"]
	if !there {
		return nil
	}
	delete(o, "threshold")
	if in == nil {
		r.add(pointer+"/threshold", "must be a number")
	}
	return new(r.number(pointer+"/threshold", in, 0))
}

func (r *reader) linear(pointer string, in any) *Model {
	o := r.object(pointer, in, "intercept", "weights", "link", "impute")
	m := &Model{link: choice(r, pointer+"/link", o["link"], oneOutput...)}
	form := map[string]any{}
	intercept := r.number(pointer+"/intercept", o["intercept"], 0)
	if intercept != 0 {
		form["intercept"] = intercept
	}
	if m.link != Identity {
		form["link"] = m.link
	}
	w := weights{r: r, model: m, outputs: linearOutputs{{intercept: intercept}}, linear: &Linear{Intercept: intercept}}
	w.read(pointer, o, form)
	m.linear = w.linear
	m.form = map[string]any{"linear": form}
	return m
}

func (r *reader) softmax(pointer string, in any) *Model {
	o := r.object(pointer, in, "classes", "intercepts", "weights", "impute", "link")
	m := &Model{link: choice(r, pointer+"/link", o["link"], Softmax, Identity), classes: r.classes(pointer+"/classes", o["classes"])}
	intercepts := r.numbers(pointer+"/intercepts", o["intercepts"], len(m.classes))
	form := map[string]any{"classes": ClassForms(m.classes), "intercepts": intercepts}
	if m.link != Softmax {
		form["link"] = m.link
	}
	w := weights{r: r, model: m, outputs: make(linearOutputs, len(m.classes)), lists: true}
	for k, x := range intercepts {
		w.outputs[k].intercept = x
	}
	w.read(pointer, o, form)
	m.form = map[string]any{"softmax": form}
	return m
}

// weights reads "weights" and "impute" into terms, column by column in the order of their names.
type weights struct {
	r       *reader
	model   *Model
	outputs linearOutputs
	linear  *Linear
	lists   bool // a weight is a list, of one number for each output
}

func (w *weights) read(pointer string, o, form map[string]any) {
	all := w.r.columns(pointer+"/weights", o["weights"])
	if o["weights"] == nil {
		w.r.add(pointer, `"weights" is missing: an object with a weight for each column`)
	}
	imputed := w.r.columns(pointer+"/impute", o["impute"])
	weightForms, nullForms := map[string]any{}, map[string]any{}
	w.model.asZero, w.model.weighs = map[string]bool{}, map[string]bool{}
	for _, column := range sortedKeys(all) {
		at := pointer + "/weights/" + escape(column)
		if texts, ok := all[column].(map[string]any); ok {
			null := w.nullText(pointer+"/impute/"+escape(column), texts, imputed[column])
			if null == nil {
				w.model.asZero[column] = true
			}
			w.model.weighs[column] = true
			if weightForms[column] = w.byText(at, column, texts, null); null != nil {
				nullForms[column] = *null
			}
		} else {
			null := w.r.number(pointer+"/impute/"+escape(column), imputed[column], 0)
			if imputed[column] == nil {
				w.model.asZero[column] = true
			}
			if null != 0 {
				nullForms[column] = null
			}
			weightForms[column] = w.column(at, column, all[column], null)
		}
		if w.r.weights > MaxWeights {
			w.r.add(pointer+"/weights", "has more than %d weights", MaxWeights)
			return
		}
	}
	for _, column := range sortedKeys(imputed) {
		if all[column] == nil {
			w.r.add(pointer+"/impute/"+escape(column), "is no column with a weight")
		}
	}
	if form["weights"] = weightForms; len(nullForms) > 0 {
		form["impute"] = nullForms
	}
	w.model.scorer = &Scorer{features: len(w.model.features), outputs: len(w.outputs), form: w.outputs}
}

// columns is an object with a member for each column; empty if it is absent.
func (r *reader) columns(pointer string, in any) map[string]any {
	if in == nil {
		return nil
	}
	o, ok := in.(map[string]any)
	if !ok {
		r.add(pointer, "must be an object with a member for each column")
	}
	return o
}

// each is a weight for each output: a number, or a list of them for several.
func (w *weights) each(pointer string, in any) (list []float64, form any) {
	w.r.weights += len(w.outputs)
	if in == nil {
		w.r.add(pointer, "must be a number, not null")
		return make([]float64, len(w.outputs)), nil
	}
	if !w.lists {
		x := w.r.number(pointer, in, 0)
		return []float64{x}, x
	}
	list = w.r.numbers(pointer, in, len(w.outputs))
	return list, list
}

func (w *weights) column(pointer, column string, in any, null float64) any {
	list, form := w.each(pointer, in)
	f := Feature{Column: column}
	for k, x := range list {
		w.outputs[k].terms = append(w.outputs[k].terms, term{len(w.model.features), x, null})
	}
	w.model.features = append(w.model.features, f)
	if w.linear != nil {
		w.linear.Parameters = append(w.linear.Parameters, Parameter{Name: column, Feature: f, Weight: list[0], Null: null})
	}
	return form
}

// nullText is the text that a null of a text column counts as, one of those with a weight; nil where it counts 0.
func (w *weights) nullText(pointer string, texts map[string]any, in any) *string {
	if in == nil {
		return nil
	}
	text, ok := in.(string)
	if _, weighs := texts[text]; !ok || !weighs {
		w.r.add(pointer, "must be a text that has a weight: what a null counts as")
		return nil
	}
	return &text
}

// byText makes a feature for each output, whose value is the weight itself.
func (w *weights) byText(pointer, column string, in map[string]any, null *string) any {
	form := map[string]any{}
	if w.r.texts += len(w.outputs); w.r.texts > MaxTexts {
		w.r.add(pointer, "there are more than %d text columns, counted for each class", MaxTexts)
		return nil
	}
	tables := make([]map[string]float64, len(w.outputs))
	for k := range tables {
		tables[k] = map[string]float64{}
	}
	for _, text := range sortedKeys(in) {
		list, one := w.each(pointer+"/"+escape(text), in[text])
		form[text] = one
		for k, x := range list {
			tables[k][text] = x
		}
		if w.linear != nil {
			indicator := Feature{Column: column, Texts: map[string]float64{text: 1}}
			if null != nil && *null == text {
				indicator.Null = 1
			}
			w.linear.Parameters = append(w.linear.Parameters, Parameter{Name: fmt.Sprintf("%s=%s", column, text), Feature: indicator, Weight: list[0]})
		}
	}
	for k := range tables {
		w.outputs[k].terms = append(w.outputs[k].terms, term{feature: len(w.model.features), weight: 1})
		f := Feature{Column: column, Texts: tables[k]}
		if null != nil {
			f.Null = tables[k][*null]
		}
		w.model.features = append(w.model.features, f)
	}
	return form
}
