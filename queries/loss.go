package queries

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var lossKind = kind{
	name: "loss",
	doc: "The mean loss of a model's predictions, each row's loss clamped to a range. For classes: zero_one is 1 where the prediction is wrong; log is minus the logarithm of the probability that the model gives to the label, clipped; " +
		"brier is the squared distance of the probabilities from the label, halved if there are several classes. For a condition and the model's score s: hinge is max(0, 1 - s) where the label holds, else max(0, 1 + s). " +
		"For numbers, with e = label - prediction: squared is e², absolute is |e|, pinball is the larger of q·e and (q-1)·e.",
	price: price{"1, with where 2", "1"},
	examples: []string{
		`{"type":"loss","loss":"log","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002},"link":"logit"}},"clip":0.01}`,
		`{"type":"loss","loss":"absolute","label":"delay","prediction":"distance / 100","range":[0,120]}`,
		`{"type":"loss","loss":"pinball","quantile":0.9,"label":"delay","model":{"linear":{"intercept":30,"weights":{"distance":0.01}}},"range":[0,120],"where":"delay != null"}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return new(loss) },
}

// The losses.
const (
	zeroOneLoss  = "zero_one"
	logLoss      = "log"
	brierLoss    = "brier"
	hingeLoss    = "hinge"
	squaredLoss  = "squared"
	absoluteLoss = "absolute"
	pinballLoss  = "pinball"
)

var losses = []string{zeroOneLoss, logLoss, brierLoss, hingeLoss, squaredLoss, absoluteLoss, pinballLoss}

// defaultLogClip bounds a log loss by 6.9. The interval is as wide as the loss can be, so a smaller one is dear.
const defaultLogClip = 0.001

// minClip bounds a log loss by 34.5.
const minClip = 1e-15

// loss is {"type":"loss"}.
type loss struct {
	prediction
	Loss      string
	Range     Range
	Clip      *float64
	Quantile  *float64
	Threshold *float64
	Null      *float64
	Where     *expr.Syntax
	Weight    Weight
	bearing
	Guess guess
}

func (q *loss) members() []member {
	return append(append(append([]member{required("loss", oneOf{&q.Loss, losses}, "which loss")},
		q.prediction.members("the truth: a condition or, for a model with classes, a column; a number for squared, absolute and pinball")...),
		optional("range", optionalRange{&q.Range}, "[low, high] of the loss: a row's loss is clamped to it. Needed for hinge, squared, absolute and pinball; "+
			"zero_one and brier are in [0, 1], log in [0, -ln(clip)]"),
		optional("clip", orElseForm{number{into: &q.Clip}, defaultLogClip}, fmt.Sprintf("log: probabilities are clipped to [clip, 1 - clip]; default: %v", defaultLogClip)),
		optional("quantile", number{into: &q.Quantile, above: &zero}, "pinball: the q that is predicted, in (0, 1)"),
		optional("threshold", thresholdForm{number{into: &q.Threshold}, &q.prediction, func() bool { return q.Loss != zeroOneLoss }}, "zero_one: "+thresholdDoc),
		optional("null", skipping{number{into: &q.Null}, &q.skip}, "what a row counts as if its loss is null, because its label or its prediction is null; default: the high end of the range. "+skipTrue),
		optional("where", expression{&q.Where}, whereDoc),
		optional("weight", weightForm{&q.Weight}, weightDoc),
		q.bearing.member(),
	), q.Guess.members()...)
}

func (q *loss) guess() *guess { return &q.Guess }

func (q *loss) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
	only := func(name string, set bool, of string) {
		if set && q.Loss != "" && q.Loss != of {
			v.add(pointer+"/"+name, "is for "+of+" only")
		}
	}
	only("clip", q.Clip != nil, logLoss)
	only("quantile", q.Quantile != nil, pinballLoss)
	only("threshold", q.Threshold != nil, zeroOneLoss)
	if q.Loss == pinballLoss && (q.Quantile == nil || *q.Quantile >= 1) {
		v.add(pointer+"/quantile", "must be given, in (0, 1)")
	}
	if q.Clip != nil && !(*q.Clip >= minClip && *q.Clip < 0.5) {
		v.add(pointer+"/clip", fmt.Sprintf("must be at least %g and less than 0.5", minClip))
	}
	r := q.within()
	if !r.Valid() && q.Loss != "" {
		v.add(pointer, `"range" is missing: this loss has no bound of its own`)
	}
	nullRule(v, pointer, q.Null, r)
	q.Guess.rules(v, pointer, r)
}

// within is the range that a row's loss is clamped to; not valid where it must be declared.
func (q *loss) within() Range {
	switch {
	case q.Range.Valid():
		return q.Range
	case q.Loss == zeroOneLoss || q.Loss == brierLoss:
		return Range{Low: 0, High: 1}
	case q.Loss == logLoss:
		return Range{Low: 0, High: -math.Log(*orDefault(q.Clip, defaultLogClip))}
	}
	return Range{}
}

func (q *loss) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	value, said := q.value(c)
	if value == nil || len(c.list) > 0 {
		return nil
	}
	r := q.within()
	null := *orDefault(q.Null, r.High)
	p := shape.Average(RowFunction{Value: value, Lo: r.Low, Hi: r.High, Null: null}, where, c.rowVotes(q.Weight))
	text := fmt.Sprintf("%s clamped to %v", said, r)
	c.sayAverage(p, "mean of "+text, text, q.Where, q.Weight)
	p.Words.Null = fmt.Sprintf("a row whose loss is null counts as %v; a null in a condition makes it false", null)
	if q.Loss == zeroOneLoss {
		p.Words.Null = conditionNull
		p.ZeroOne = len(p.Functions) == 1 && !c.grouped && r == Range{Low: 0, High: 1}
	}
	counts := fmt.Sprintf("count as a loss of %v", null)
	c.watch(p, q.Prediction, nil, Range{}, where, counts)
	if n, err := q.Label.Check(c.schema); err == nil && n.Type == rowfn.Condition {
		counts = countsAsNoLabel
	}
	c.watch(p, q.Label, nil, Range{}, where, counts)
	return p
}

// value is the loss of a row, with the same in words; nil with a violation.
func (q *loss) value(c *compiler) (*rowfn.Node, string) {
	if q.Loss == zeroOneLoss {
		right, said := q.right(c, q.Threshold)
		if right == nil {
			return nil, ""
		}
		return rowfn.If(right, rowfn.Const(0), rowfn.Const(1)), "0 where " + said + ", else 1"
	}
	p, ok := q.predictor(c)
	if !ok {
		return nil, ""
	}
	of := fmt.Sprintf("%s of %s as %s", q.Loss+" loss", q.name(), q.Label.Canonical())
	switch {
	case q.Loss == logLoss || q.Loss == brierLoss:
		return q.probabilistic(c, p), of
	case !c.oneOutput(p):
		return nil, ""
	case q.Loss == hingeLoss:
		return q.hinge(c, p), of
	}
	label := c.number("label", q.Label)
	if label == nil {
		return nil, ""
	}
	e := rowfn.Sub(label, p.number())
	switch q.Loss {
	case squaredLoss:
		return rowfn.Mul(e, e), of
	case absoluteLoss:
		return rowfn.Abs(e), of
	}
	return rowfn.Max(rowfn.Mul(rowfn.Const(*q.Quantile), e), rowfn.Mul(rowfn.Const(*q.Quantile-1), e)),
		fmt.Sprintf("%s at %v", of, *q.Quantile)
}

func (q *loss) hinge(c *compiler, p predictor) *rowfn.Node {
	label := c.truth(q.Label)
	if label == nil {
		return nil
	}
	s := p.number()
	if p.condition == nil {
		s = p.scores[0]
	}
	margin := rowfn.If(label, rowfn.Sub(rowfn.Const(1), s), rowfn.Add(rowfn.Const(1), s))
	return rowfn.Max(margin, rowfn.Const(0))
}

// probabilistic is the log or the Brier loss.
func (q *loss) probabilistic(c *compiler, p predictor) *rowfn.Node {
	if p.classes == nil {
		label := c.truth(q.Label)
		if label == nil {
			return nil
		}
		probability := p.number()
		if q.Loss == brierLoss {
			e := rowfn.If(label, rowfn.Sub(rowfn.Const(1), probability), probability)
			return rowfn.Mul(e, e)
		}
		return q.log(rowfn.If(label, probability, rowfn.Sub(rowfn.Const(1), probability)))
	}
	label := c.isClass(q.Label, p.classes)
	if label == nil {
		return nil
	}
	null := rowfn.Null()
	probabilities := p.probabilities()
	if q.Loss == logLoss {
		given := null // where the label is no class of the model
		for k, x := range probabilities {
			given = rowfn.If(label[k], x, given)
		}
		return q.log(given)
	}
	var sum, known *rowfn.Node
	for k, x := range probabilities {
		e := rowfn.If(label[k], rowfn.Sub(rowfn.Const(1), x), x)
		if e = rowfn.Mul(e, e); sum == nil {
			sum, known = e, label[k]
			continue
		}
		sum = rowfn.Add(sum, e)
		known = rowfn.Or(known, label[k])
	}
	return rowfn.If(known, rowfn.Div(sum, rowfn.Const(2)), null)
}

func (q *loss) log(probability *rowfn.Node) *rowfn.Node {
	clip := *orDefault(q.Clip, defaultLogClip)
	return rowfn.Neg(rowfn.Log(Range{Low: clip, High: 1 - clip}.Clamp(probability)))
}
