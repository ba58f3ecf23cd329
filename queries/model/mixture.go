package model

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/rowfn"
)

// mixture is a sum of other models' predictions: their average, as of a vote, or a linear model of them, as of a calibration or a stack. A model's
// predictions may go through curves first, and be made shares of their sum.
type mixture struct {
	base   []float64 // by output
	parts  []mixed
	widest int // the largest number of outputs of a model
}

// mixed is one model of a mixture.
type mixed struct {
	scorer  *Scorer
	link    Link
	curves  []*curve // of each output what its predictions go through; nil without
	shares  bool     // then they are divided by their sum
	weight  float64
	weights [][]float64 // of each output the weights in those of the mixture; nil where each output adds to its own, times weight
	first   int         // of its features among those of the mixture
}

// mixture reads {"mixture": {...}}. Its models have its classes, in their order, or one output as it has, but where they have "weights".
func (r *reader) mixture(pointer string, in any, level int) *Model {
	o := r.object(pointer, in, "models", "base", "link", "classes")
	m := &Model{}
	form := map[string]any{}
	outputs := r.ends(pointer, o, form, m, Identity, Softmax)
	m.asZero, m.weighs = map[string]bool{}, map[string]bool{}
	mix := &mixture{base: r.base(pointer+"/base", o["base"], form, outputs)}
	list, ok := o["models"].([]any)
	if !ok || len(list) == 0 || len(list) > MaxModels {
		r.add(pointer+"/models", "must be a list of 1 to %d models", MaxModels)
	}
	if !r.ok() {
		return nil
	}
	forms := make([]any, len(list))
	for i, item := range list {
		at := fmt.Sprintf("%s/models/%d", pointer, i)
		p, of, said := r.mixed(at, item, m, level)
		if !r.ok() {
			return nil
		}
		p.first = len(m.features)
		mix.parts, mix.widest = append(mix.parts, p), max(mix.widest, of.scorer.outputs)
		m.features = append(m.features, of.features...)
		maps.Copy(m.asZero, of.asZero)
		maps.Copy(m.weighs, of.weighs)
		forms[i] = said
	}
	form["models"] = forms
	m.scorer = &Scorer{features: len(m.features), outputs: outputs, form: mix}
	m.form = map[string]any{"mixture": form}
	return m
}

// mixed reads one of "models" of the mixture m.
func (r *reader) mixed(pointer string, in any, m *Model, level int) (p mixed, of *Model, form map[string]any) {
	o := r.object(pointer, in, "model", "weight", "weights", "curve", "curves", "shares")
	p.weight = r.number(pointer+"/weight", o["weight"], 1)
	if o["shares"] != nil {
		var ok bool
		if p.shares, ok = o["shares"].(bool); !ok {
			r.add(pointer+"/shares", "must be true or false: whether predictions are divided by their sum")
		}
	}
	if !r.ok() {
		return
	}
	if of = r.model(pointer+"/model", o["model"], level+1); !r.ok() {
		return
	}
	of.scorer.of = of
	p.scorer, p.link = of.scorer, of.link
	if o["weights"] == nil && !slices.Equal(of.classes, m.classes) {
		r.add(pointer+"/model", `must have the classes of the mixture, in their order; or neither has any; or "weights" say what its predictions add to`)
		return
	}
	form = map[string]any{"model": of.form}
	r.weightsOf(pointer, o, &p, max(1, len(m.classes)), form)
	r.curvesOf(pointer, o, &p, form)
	if p.shares {
		if form["shares"] = true; p.scorer.outputs == 1 {
			r.add(pointer+"/shares", "is for a model with classes")
		}
	}
	return
}

// weightsOf reads "weight" or "weights" of a mixture with so many outputs.
func (r *reader) weightsOf(pointer string, o map[string]any, p *mixed, outputs int, form map[string]any) {
	if p.weight != 1 {
		form["weight"] = p.weight
	}
	if o["weights"] == nil {
		return
	}
	if o["weight"] != nil {
		r.add(pointer+"/weights", `are instead of "weight"`)
	}
	list, ok := o["weights"].([]any)
	if !ok || len(list) != p.scorer.outputs {
		r.add(pointer+"/weights", "must be a list of %d lists, one for each prediction of the model", p.scorer.outputs)
		return
	}
	if r.weights += len(list) * outputs; r.weights > MaxWeights {
		r.add(pointer+"/weights", "there are more than %d weights", MaxWeights)
		return
	}
	p.weights = make([][]float64, len(list))
	for j, item := range list {
		at := fmt.Sprintf("%s/weights/%d", pointer, j)
		if p.weights[j] = r.numbers(at, item, outputs); item == nil {
			r.add(at, "must be a list of %d numbers", outputs)
		}
	}
	form["weights"] = p.weights
}

// curvesOf reads "curve", of a model with one output, or "curves", of one with classes.
func (r *reader) curvesOf(pointer string, o map[string]any, p *mixed, form map[string]any) {
	if o["curve"] != nil {
		c, said := r.curve(pointer+"/curve", o["curve"])
		if p.curves, form["curve"] = []*curve{c}, said; p.scorer.outputs > 1 {
			r.add(pointer+"/curve", `is for a model with one output; of one with classes there are "curves"`)
		}
	}
	if o["curves"] == nil {
		return
	}
	list, ok := o["curves"].([]any)
	if !ok || len(list) != p.scorer.outputs || len(list) == 1 {
		r.add(pointer+"/curves", "must be a list of curves, one for each class of the model")
		return
	}
	all := make([]any, len(list))
	p.curves, form["curves"] = make([]*curve, len(list)), all
	for k, item := range list {
		at := fmt.Sprintf("%s/curves/%d", pointer, k)
		if p.curves[k], all[k] = r.curve(at, item); item == nil {
			r.add(at, "must be a curve")
		}
	}
}

// scratch is what a block needs: the outputs of one model after the other, and what that model needs.
func (m *mixture) scratch() (numbers, bits int) {
	for _, p := range m.parts {
		n, b := p.scorer.Scratch()
		numbers, bits = max(numbers, n), max(bits, b)
	}
	return m.widest*MaxBlock + numbers, bits
}

func (m *mixture) bytes() (bytes int64) {
	for _, p := range m.parts {
		bytes += p.scorer.form.bytes()
	}
	return bytes
}

func (m *mixture) steps() int64 {
	steps := int64(len(m.base))
	for _, p := range m.parts {
		outputs, adds := int64(p.scorer.outputs), int64(len(m.base))
		if p.weights != nil {
			adds *= outputs
		}
		steps += p.scorer.Steps() + adds
		if p.link != Identity {
			steps += exponentialSteps * outputs
		}
		for _, c := range p.curves {
			steps += c.steps()
		}
		if p.shares {
			steps += shareSteps * outputs
		}
	}
	return steps
}

// exponentialSteps is what an exponential takes, or a hyperbolic tangent.
const exponentialSteps = 12

// shareSteps is what a sum and a division take.
const shareSteps = 4

func (m *mixture) block(dst, features [][]float64, scratch rowfn.Scratch) {
	rows := len(dst[0])
	for k, b := range m.base {
		for i := range dst[k] {
			dst[k][i] = b
		}
	}
	var heads [MaxClasses][]float64
	for k := range m.widest {
		heads[k] = scratch.Numbers[k*MaxBlock:][:rows]
	}
	scratch.Numbers = scratch.Numbers[m.widest*MaxBlock:]
	for i := range m.parts {
		p := &m.parts[i]
		outputs := heads[:p.scorer.outputs]
		p.scorer.BlockIn(scratch, outputs, features[p.first:p.first+p.scorer.features])
		predictions(p.link, outputs)
		for k, c := range p.curves {
			c.block(outputs[k])
		}
		if p.shares {
			shares(outputs)
		}
		p.add(dst, outputs)
	}
}

// add adds a model's predictions to the outputs of the mixture.
func (p *mixed) add(dst, predictions [][]float64) {
	for j, x := range predictions {
		if p.weights == nil {
			addOne(dst[j], x, p.weight, math.Float64bits(math.NaN()))
			continue
		}
		for k, w := range p.weights[j] {
			addOne(dst[k], x, w, math.Float64bits(math.NaN()))
		}
	}
}

// shares divides the predictions of each row by their sum; where that is 0 all are equal, as in scikit-learn's calibrations of several classes. Each row takes the same
// steps.
func shares(predictions [][]float64) {
	equal := math.Float64bits(1 / float64(len(predictions)))
	for i := range predictions[0] {
		sum := 0.0
		for _, p := range predictions {
			sum += p[i]
		}
		none := -uint64(bit(sum == 0))
		for _, p := range predictions {
			x := p[i] / sum
			x = math.Float64frombits(math.Float64bits(x)&^none | equal&none)
			p[i] = x + (x - x)
		}
	}
}

// largestExponent keeps exp(-score) finite, as where a question turns a score into a probability.
const largestExponent = 700

// Of is the prediction of a score, by a link of models with one output; NaN where it is no finite number.
func (l Link) Of(score float64) float64 {
	switch l {
	case Logit:
		score = 1 / (1 + math.Exp(-min(max(score, -largestExponent), largestExponent)))
	case Log:
		score = math.Exp(score)
	case Sqrt:
		score *= math.Abs(score)
	}
	return score + (score - score)
}

// predictions turns the scores of a block into predictions, in their place. What is no finite number becomes NaN.
func predictions(link Link, scores [][]float64) {
	for _, s := range scores {
		for i, z := range s {
			s[i] = z + (z - z)
		}
	}
	switch link {
	case Logit, Log, Sqrt:
		for i, z := range scores[0] {
			scores[0][i] = link.Of(z)
		}
	case Softmax:
		for i := range scores[0] {
			top, sum := scores[0][i], 0.0
			for _, s := range scores[1:] {
				top = max(top, s[i])
			}
			for _, s := range scores {
				s[i] = math.Exp(s[i] - top)
				sum += s[i]
			}
			for _, s := range scores {
				s[i] /= sum
			}
		}
	}
}
