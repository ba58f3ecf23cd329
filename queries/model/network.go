package model

import (
	"fmt"
	"math"
)

// Activation is what a network does to the outputs of every layer but the last.
type Activation string

const (
	Relu     Activation = "relu"
	Tanh     Activation = "tanh"
	Logistic Activation = "logistic" // 1/(1+exp(-x))
	Linearly Activation = "identity"
)

// network is a perceptron: layers of linear functions, with an activation between them.
type network struct {
	activation Activation
	layers     []linearOutputs // the first reads the features
}

// network reads {"network": {...}}.
func (r *reader) network(pointer string, in any) *Model {
	o := r.object(pointer, in, "activation", "weights", "intercepts", "impute", "layers", "link", "classes")
	m := &Model{}
	form := map[string]any{}
	outputs := r.ends(pointer, o, form, m, Softmax)
	n := &network{activation: choice(r, pointer+"/activation", o["activation"], Relu, Tanh, Logistic, Linearly)}
	if n.activation != Relu {
		form["activation"] = n.activation
	}
	list, ok := o["layers"].([]any)
	if !ok || len(list) == 0 || len(list) > MaxLayers {
		r.add(pointer+"/layers", "must be a list of 1 to %d layers behind the first, of which the last makes the outputs", MaxLayers)
	}
	if !r.ok() {
		return nil
	}
	first := r.firstLayer(pointer, o, form, m)
	n.layers = append(n.layers, first)
	forms := make([]any, len(list))
	before := len(first)
	for i, item := range list {
		if !r.ok() {
			return nil
		}
		at := fmt.Sprintf("%s/layers/%d", pointer, i)
		last := 0
		if i == len(list)-1 {
			last = outputs
		}
		var layer linearOutputs
		layer, forms[i] = r.layer(at, item, before, last)
		n.layers = append(n.layers, layer)
		before = len(layer)
	}
	form["layers"] = forms
	m.scorer = &Scorer{features: len(m.features), outputs: outputs, form: n}
	m.form = map[string]any{"network": form}
	return m
}

// ends reads "classes" and "link" of a model that may have classes, and then one of some links, of which the first is the default. It returns the number of
// outputs.
func (r *reader) ends(pointer string, o, form map[string]any, m *Model, withClasses ...Link) (outputs int) {
	outputs, links := 1, oneOutput
	if o["classes"] != nil {
		m.classes = r.classes(pointer+"/classes", o["classes"])
		outputs, links, form["classes"] = len(m.classes), withClasses, ClassForms(m.classes)
	}
	if m.link = choice(r, pointer+"/link", o["link"], links...); m.link != links[0] {
		form["link"] = m.link
	}
	return outputs
}

// firstLayer reads "weights", "intercepts" and "impute": linear functions of the columns, one for each intercept.
func (r *reader) firstLayer(pointer string, o, form map[string]any, m *Model) linearOutputs {
	list, _ := o["intercepts"].([]any)
	if len(list) == 0 || len(list) > MaxUnits {
		r.add(pointer+"/intercepts", "must be a list of 1 to %d numbers, one for each linear function of the columns", MaxUnits)
		return nil
	}
	intercepts := r.numbers(pointer+"/intercepts", o["intercepts"], len(list))
	form["intercepts"] = intercepts
	w := weights{r: r, model: m, outputs: make(linearOutputs, len(list)), lists: true}
	for k, x := range intercepts {
		w.outputs[k].intercept = x
	}
	w.read(pointer, o, form)
	return w.outputs
}

// layer reads a layer of so many inputs, and outputs units where that is not 0.
func (r *reader) layer(pointer string, in any, inputs, outputs int) (layer linearOutputs, form any) {
	o := r.object(pointer, in, "weights", "intercepts")
	units, _ := o["intercepts"].([]any)
	if n := len(units); n == 0 || n > MaxUnits || outputs > 0 && n != outputs {
		r.add(pointer+"/intercepts", "must be a list of numbers, one for each unit: at most %d, and of the last layer one for each output", MaxUnits)
		return nil, nil
	}
	rows, ok := o["weights"].([]any)
	if !ok || len(rows) != inputs {
		r.add(pointer+"/weights", "must be a list of %d lists, one for each unit of the layer before", inputs)
		return nil, nil
	}
	if r.weights += inputs * len(units); r.weights > MaxWeights {
		r.add(pointer+"/weights", "there are more than %d weights", MaxWeights)
		return nil, nil
	}
	intercepts := r.numbers(pointer+"/intercepts", o["intercepts"], len(units))
	layer = make(linearOutputs, len(units))
	for k := range layer {
		layer[k] = linearOutput{intercept: intercepts[k], terms: make([]term, inputs)}
	}
	forms := make([]any, inputs)
	for j, row := range rows {
		if row == nil {
			row = []any{}
		}
		list := r.numbers(fmt.Sprintf("%s/weights/%d", pointer, j), row, len(units))
		for k := range layer {
			layer[k].terms[j] = term{j, list[k], math.NaN()} // what overflowed in a layer is no number in the next
		}
		forms[j] = list
	}
	return layer, map[string]any{"weights": forms, "intercepts": intercepts}
}

// widest is the largest number of units of a layer but the last.
func (n *network) widest() (widest int) {
	for _, layer := range n.layers[:len(n.layers)-1] {
		widest = max(widest, len(layer))
	}
	return widest
}

// scratch is what a block needs: the units of two layers.
func (n *network) scratch() (numbers, bits int) { return 2 * n.widest() * MaxBlock, 0 }

func (n *network) bytes() int64 { return 0 }

func (n *network) steps() (steps int64) {
	for _, layer := range n.layers {
		each := int64(2)
		if n.activation == Tanh || n.activation == Logistic {
			each = exponentialSteps
		}
		for k := range layer {
			steps += each + int64(len(layer[k].terms))
		}
	}
	return steps
}

func (n *network) block(dst, features [][]float64, scratch []float64) {
	rows, half := len(dst[0]), n.widest()*MaxBlock
	var heads [2][MaxUnits][]float64
	in := features
	for l, layer := range n.layers {
		out := dst
		if l < len(n.layers)-1 {
			out = heads[l%2][:len(layer)]
			for k := range out {
				out[k] = scratch[l%2*half+k*MaxBlock:][:rows]
			}
		}
		for k := range layer {
			layer[k].block(out[k], in)
			if l < len(n.layers)-1 {
				n.activate(out[k])
			}
		}
		in = out
	}
}

// activate takes the same steps for every number, to within 1e-15 of what it says.
func (n *network) activate(a []float64) {
	switch n.activation {
	case Relu:
		for i, x := range a {
			a[i] = max(x, 0)
		}
	case Tanh:
		for i, x := range a {
			a[i] = 1 - 2/(1+math.Exp(2*x)) // math.Tanh takes other steps for small numbers than for large ones
		}
	case Logistic:
		for i, x := range a {
			a[i] = 1 / (1 + math.Exp(-x))
		}
	}
}
