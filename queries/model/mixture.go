package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// mixture is a sum of other models' predictions: their average, as of a vote, or a linear model of them, as of a calibration or a stack. A model's
// predictions may go through a curve first.
type mixture struct {
	base  []float64 // by output
	parts []mixed
}

// mixed is one model of a mixture.
type mixed struct {
	scorer *Scorer
	link   Link
	curve  *curve // what predictions go through; nil without
	weight float64
	first  int // of its features among those of the mixture
}

// mixture reads {"mixture": {...}}. Its models have its classes, in their order, or one output as it has.
func (r *reader) mixture(pointer string, in any, level int) *Model {
	o := r.object(pointer, in, "models", "base", "link", "classes")
	m := &Model{}
	form := map[string]any{}
	outputs := r.ends(pointer, o, form, m, Identity)
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
		one := r.object(at, item, "model", "weight", "curve")
		weight := r.number(at+"/weight", one["weight"], 1)
		through, points := r.curve(at+"/curve", one["curve"])
		if through != nil && outputs > 1 {
			r.add(at+"/curve", "is for models with one output; this mixture has classes")
		}
		if !r.ok() {
			return nil
		}
		of := r.model(at+"/model", one["model"], level+1)
		if !r.ok() {
			return nil
		}
		if !slices.Equal(of.classes, m.classes) {
			r.add(at+"/model", "must have the classes of the mixture, in their order; or neither has any")
			return nil
		}
		of.scorer.of = of
		mix.parts = append(mix.parts, mixed{of.scorer, of.link, through, weight, len(m.features)})
		m.features = append(m.features, of.features...)
		maps.Copy(m.asZero, of.asZero)
		maps.Copy(m.weighs, of.weighs)
		said := map[string]any{"model": of.form}
		if weight != 1 {
			said["weight"] = weight
		}
		if points != nil {
			said["curve"] = points
		}
		forms[i] = said
	}
	form["models"] = forms
	m.scorer = &Scorer{features: len(m.features), outputs: outputs, form: mix}
	m.form = map[string]any{"mixture": form}
	return m
}

// scratch is what a block needs: the outputs of one model after the other, and what that model needs.
func (m *mixture) scratch() int {
	most := 0
	for _, p := range m.parts {
		most = max(most, p.scorer.Scratch())
	}
	return len(m.base)*MaxBlock + most
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
		steps += p.scorer.Steps() + int64(len(m.base))
		if p.link != Identity {
			steps += exponentialSteps * int64(len(m.base))
		}
		if p.curve != nil {
			steps += p.curve.steps()
		}
	}
	return steps
}

// exponentialSteps is what an exponential takes, or a hyperbolic tangent.
const exponentialSteps = 12

func (m *mixture) block(dst, features [][]float64, scratch []float64) {
	rows := len(dst[0])
	for k, b := range m.base {
		for i := range dst[k] {
			dst[k][i] = b
		}
	}
	var heads [MaxClasses][]float64
	outputs := heads[:len(dst)]
	for k := range outputs {
		outputs[k] = scratch[k*MaxBlock:][:rows]
	}
	rest := scratch[len(dst)*MaxBlock:]
	for i := range m.parts {
		p := &m.parts[i]
		p.scorer.BlockIn(rest, outputs, features[p.first:p.first+p.scorer.features])
		predictions(p.link, outputs)
		if p.curve != nil {
			p.curve.block(outputs[0])
		}
		for k, out := range outputs {
			addOne(dst[k], out, p.weight, math.Float64bits(math.NaN()))
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
