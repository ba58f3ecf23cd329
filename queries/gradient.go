package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// MaxGradient is the most coordinates of a gradient. They do not cost more by being many, but each is a row function, and each
// interval holds together with those of all the others.
const MaxGradient = 4096

var gradientKind = kind{
	name: "gradient",
	doc: "The gradient of a linear model's mean loss by its intercept and weights: of the log loss with the link logit, of the squared error (not halved) with identity. " +
		"A row's gradient that is longer than clip is scaled down to the length clip. With it you can train a model on the holdout itself.",
	price: price{"1", "1 a weight"},
	examples: []string{
		`{"type":"gradient","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002,"origin":{"SFO":0,"OAK":0}},"link":"logit"}},"clip":1}`,
		`{"type":"gradient","label":"delay","model":{"linear":{"weights":{"distance":0}}},"clip":1000}`,
	},
	make: func() body { return new(gradient) },
}

// gradient is {"type":"gradient"}.
type gradient struct {
	Model    *model.Model
	Features map[string]*expr.Syntax
	Label    *expr.Syntax
	Clip     *float64
}

func (q *gradient) members() []member {
	return []member{
		required("model", modelForm{&q.Model, &q.Features}, "a linear model with one output, as docs/MODELS.md describes; name all weights that you want to fit, for example as 0"),
		optional(computedMember, computedForm{&q.Features}, featuresDoc),
		labelled(expression{&q.Label}, "the truth: a condition with the link logit, a number with identity"),
		required("clip", number{into: &q.Clip, above: &zero}, "the largest length of a row's gradient; intervals are proportional to it"),
	}
}

func (q *gradient) rules(v *violations, pointer string) {
	switch {
	case q.Model == nil:
	case q.Model.Linear() == nil:
		v.add(pointer+"/model", "must be linear, with one output")
	case q.Model.Link() != model.Logit && q.Model.Link() != model.Identity:
		v.add(pointer+"/model", fmt.Sprintf("must have the link %s or %s: of others the gradient is not known here", model.Identity, model.Logit))
	case 1+len(q.Model.Linear().Parameters) > MaxGradient:
		v.add(pointer+"/model", fmt.Sprintf("has more than %d weights with the intercept", MaxGradient))
	}
	featureRules(v, pointer, q.Model, q.Features)
	if q.Clip != nil && (*q.Clip > MaxMagnitude || *q.Clip < MinWidth) {
		v.add(pointer+"/clip", fmt.Sprintf("must lie in [%g, %g]", MinWidth, MaxMagnitude))
	}
}

func (q *gradient) compile(c *compiler) *Plan {
	p, ok := c.model(q.Model, q.Features)
	if !ok {
		return nil
	}
	residual := q.residual(c, p)
	if residual == nil || len(c.list) > 0 {
		return nil
	}
	names, features := []string{"intercept"}, []*rowfn.Node{rowfn.Const(1)}
	in, ok := c.inputs(q.Features)
	if !ok {
		return nil
	}
	for _, w := range q.Model.Linear().Parameters {
		names, features = append(names, w.Name), append(features, rowfn.OrElse(c.feature(in, w.Feature), w.Null))
	}
	clip := *q.Clip
	length := rowfn.Mul(rowfn.Abs(residual), rowfn.Sqrt(squares(features)))
	scaled := rowfn.Div(rowfn.Mul(residual, rowfn.Const(clip)), rowfn.Max(length, rowfn.Const(clip)))
	coordinates := make([]*rowfn.Node, len(features))
	for i, x := range features {
		coordinates[i] = rowfn.Mul(scaled, x)
	}
	plan := shape.Gradient(names, coordinates, clip)
	q.say(c, plan, names)
	return plan
}

// residual is what a row's features are multiplied with: the derivative of its loss by the score.
func (q *gradient) residual(c *compiler, p predictor) *rowfn.Node {
	if p.link == model.Logit {
		label := c.truth(q.Label)
		if label == nil {
			return nil
		}
		return rowfn.Sub(p.number(), rowfn.If(label, rowfn.Const(1), rowfn.Const(0)))
	}
	label := c.number("label", q.Label)
	if label == nil {
		return nil
	}
	return rowfn.Mul(rowfn.Const(2), rowfn.Sub(p.scores[0], label))
}

// squares is the sum of the squares of numbers, added in pairs so that the tree is not deep.
func squares(numbers []*rowfn.Node) *rowfn.Node {
	if len(numbers) == 1 {
		return rowfn.Mul(numbers[0], numbers[0])
	}
	half := len(numbers) / 2
	return rowfn.Add(squares(numbers[:half]), squares(numbers[half:]))
}

func (q *gradient) say(c *compiler, plan *Plan, names []string) {
	loss := "squared error"
	if q.Model.Link() == model.Logit {
		loss = "log loss"
	}
	function := fmt.Sprintf("the row's gradient of the %s for %s, scaled down to the length %v where it is longer: by ", loss, q.Label.Canonical(), *q.Clip)
	for i, name := range names[:min(len(names), maxNamed)] {
		if i > 0 {
			function += ", "
		}
		function += name
	}
	if len(names) > maxNamed {
		function += ", …"
	}
	if c.grouped {
		function = "the mean over the unit's rows of " + function
	}
	plan.Words = Description{
		Functions: []string{function},
		Combine:   "the mean of each row function",
		Null:      "a null feature counts as the model says; a row whose label or score is null has no gradient and counts as 0; a null in a condition makes it false",
		Target:    c.target("the mean of the gradient of the %s for %s, each row's scaled down to the length %v%s", loss, q.Label.Canonical(), *q.Clip, c.rowsOf(nil, WeightUnit)),
	}
}
