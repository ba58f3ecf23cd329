package queries

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/rowfn"
)

// predictor is a prediction in a row.
type predictor struct {
	scores    []*rowfn.Node // before the link; one, or one for each class
	link      model.Link
	classes   []model.Class
	condition *rowfn.Node // of a prediction that is a condition; then there are no scores
}

// model binds a model's features to columns and expressions.
func (c *compiler) model(m *model.Model, computed map[string]*expr.Syntax) (p predictor, ok bool) {
	c.fitted = true
	inputs, ok := c.inputs(computed)
	if !ok {
		return p, false
	}
	features := make([]*rowfn.Node, 0, len(m.Features()))
	for _, f := range m.Features() {
		n := c.feature(inputs, f)
		if n == nil {
			return p, false
		}
		features = append(features, n)
	}
	c.watchModel(m, inputs)
	p = predictor{link: m.Link(), classes: m.Classes()}
	for k := range m.Scorer().Outputs() {
		p.scores = append(p.scores, &rowfn.Node{Op: rowfn.OpScore, Type: rowfn.Number, Model: m.Scorer(), Output: k, Args: features})
	}
	return p, true
}

// inputs are what a model can read, by name: the kinds of columns, and numbers that are computed.
type inputs struct {
	columns  map[string]dataset.Kind
	computed map[string]*rowfn.Node
}

func (c *compiler) inputs(computed map[string]*expr.Syntax) (in inputs, ok bool) {
	in = inputs{make(map[string]dataset.Kind, len(c.schema.Fields)), map[string]*rowfn.Node{}}
	for _, f := range c.schema.Fields {
		in.columns[f.Name] = f.Kind
	}
	ok = true
	for _, name := range slices.Sorted(maps.Keys(computed)) {
		at := c.pointer + "/features/" + escape(name)
		n, err := computed[name].Check(c.schema)
		_, column := in.columns[name]
		switch {
		case column:
			c.add(at, "is the name of a column; give the feature another one")
		case err != nil:
			c.expression(at, err)
		case n.Type == rowfn.Condition:
			in.computed[name] = rowfn.If(n, rowfn.Const(1), rowfn.Const(0))
			continue
		case n.Type == rowfn.Number:
			in.computed[name] = n
			continue
		default:
			c.add(at, "must be a number or a condition")
		}
		ok = false
	}
	return in, ok
}

// feature is a model's feature as a number of the row; nil with a violation where the column is not there or is of another kind.
func (c *compiler) feature(in inputs, f model.Feature) *rowfn.Node {
	if n := in.computed[f.Column]; n != nil {
		return n
	}
	kind, known := in.columns[f.Column]
	n := rowfn.Column(f.Column, rowfn.Number)
	switch {
	case !known:
		c.unknownInput(f.Column)
		return nil
	case f.Texts != nil && kind == dataset.Text:
		n.Type = rowfn.Text
		return &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{n}, Texts: f.Texts, Number: f.Null}
	case f.Texts == nil && kind == dataset.Bool:
		return truthNumber(f.Column)
	case f.Texts == nil && kind == dataset.Number:
		return n
	}
	want := "a number or true and false"
	if f.Texts != nil {
		want = "text"
	}
	c.add(c.pointer+"/model", fmt.Sprintf("reads the column %s as %s, but it is %v", strconv.Quote(f.Column), want, kind))
	return nil
}

// unknownInput is unknownColumn of a model's input. A weight is often written of an expression, or of a column's text as tables of dummies name it: plan_plus.
func (c *compiler) unknownInput(name string) {
	for _, f := range c.schema.Fields {
		if text, dummy := strings.CutPrefix(name, f.Name); dummy && f.Kind == dataset.Text && len(text) > 1 && strings.ContainsRune("_=.:", rune(text[0])) {
			c.add(c.pointer+"/model", fmt.Sprintf(`unknown column %q; a weight of a text of a column is written {%s: {%s: …}}`, name, quoted(f.Name), quoted(text[1:])))
			return
		}
	}
	if s, err := expr.Parse(name); err == nil {
		_, column := s.Column()
		if n, err := s.Check(c.schema); err == nil && !column && (n.Type == rowfn.Number || n.Type == rowfn.Condition) {
			free := "x"
			for slices.ContainsFunc(c.schema.Fields, func(f dataset.Field) bool { return f.Name == free }) {
				free += "x"
			}
			c.add(c.pointer+"/model", fmt.Sprintf(`unknown column %q; an expression is a feature, which has a name: write "features": {%s: %s} beside "model", and %[2]s in the model`, name, quoted(free), quoted(name)))
			return
		}
	}
	c.unknownColumn("model", name)
}

func (c *compiler) unknownColumn(member, name string) {
	if reason, skipped := c.schema.Skipped[name]; skipped {
		c.put(Violation{Pointer: c.pointer + "/" + member, Detail: "the upload's column " + strconv.Quote(name) + " was skipped: " + reason})
		return
	}
	names := make([]string, len(c.schema.Fields))
	for i, f := range c.schema.Fields {
		names[i] = f.Name
	}
	c.put(Violation{Pointer: c.pointer + "/" + member, Detail: "unknown column " + strconv.Quote(name), Suggestion: nearest.Name(name, names)})
}

// truthNumber is a Bool column as 1 and 0, null where it is null.
func truthNumber(column string) *rowfn.Node {
	n := rowfn.Column(column, rowfn.Condition)
	null := rowfn.Null()
	return rowfn.If(rowfn.IsNull(n), null, rowfn.If(n, rowfn.Const(1), rowfn.Const(0)))
}

// largestExponent keeps exp(-score) finite. A probability is then at least 1e-304, and as near to 1 as a double can be.
const largestExponent = 700

// sigmoid is 1/(1+exp(-z)).
func sigmoid(z *rowfn.Node) *rowfn.Node {
	e := rowfn.Exp(rowfn.Neg(Range{Low: -largestExponent, High: largestExponent}.Clamp(z)))
	return rowfn.Div(rowfn.Const(1), rowfn.Add(rowfn.Const(1), e))
}

// number is the prediction of one number or probability; null where the score is.
func (p predictor) number() *rowfn.Node {
	switch {
	case p.condition != nil:
		return rowfn.If(p.condition, rowfn.Const(1), rowfn.Const(0))
	case p.link == model.Logit:
		return sigmoid(p.scores[0])
	case p.link == model.Log:
		return rowfn.Exp(p.scores[0])
	case p.link == model.Sqrt:
		return rowfn.Mul(p.scores[0], rowfn.Abs(p.scores[0]))
	}
	return p.scores[0]
}

// above is whether the prediction is above a threshold of its own scale, decided on the scale of the scores.
func (p predictor) above(threshold float64) *rowfn.Node {
	switch {
	case p.condition != nil:
		return p.condition
	case p.link != model.Logit:
		return rowfn.CompareTo(rowfn.OpGreater, p.number(), threshold)
	case threshold <= 0:
		return rowfn.CompareTo(rowfn.OpGreater, p.scores[0], -model.MaxMagnitude)
	case threshold >= 1:
		return rowfn.CompareTo(rowfn.OpGreater, p.scores[0], math.MaxFloat64)
	}
	return rowfn.CompareTo(rowfn.OpGreater, p.scores[0], math.Log(threshold)-math.Log1p(-threshold))
}

// probabilities are those of the classes.
func (p predictor) probabilities() []*rowfn.Node {
	if p.link != model.Softmax {
		return p.scores
	}
	top := p.scores[0]
	for _, z := range p.scores[1:] {
		top = rowfn.Max(top, z)
	}
	var sum *rowfn.Node
	all := make([]*rowfn.Node, len(p.scores))
	for k, z := range p.scores {
		all[k] = rowfn.Exp(rowfn.Sub(z, top))
		if sum == nil {
			sum = all[k]
		} else {
			sum = rowfn.Add(sum, all[k])
		}
	}
	for k := range all {
		all[k] = rowfn.Div(all[k], sum)
	}
	return all
}

// picked is, for each class, whether it is the predicted one: the first of those with the largest score. With the running
// maxima from both ends that takes two comparisons a class.
func (p predictor) picked() []*rowfn.Node {
	last := len(p.scores) - 1
	after := make([]*rowfn.Node, last+1) // the largest of the scores from k on
	after[last] = p.scores[last]
	for k := last - 1; k >= 0; k-- {
		after[k] = rowfn.Max(p.scores[k], after[k+1])
	}
	all := make([]*rowfn.Node, last+1)
	var before *rowfn.Node
	for k, z := range p.scores {
		var holds []*rowfn.Node
		if k < last {
			holds = append(holds, rowfn.Compare(rowfn.OpGreaterEq, z, after[k+1]))
		}
		if before == nil {
			before = z
		} else {
			holds = append(holds, rowfn.Compare(rowfn.OpGreater, z, before))
			before = rowfn.Max(before, z)
		}
		if all[k] = holds[0]; len(holds) > 1 {
			all[k] = rowfn.And(holds...)
		}
	}
	return all
}

// isClass is, for each class, whether the label is it; nil with a violation where the label has another type.
func (c *compiler) isClass(label *expr.Syntax, classes []model.Class) []*rowfn.Node {
	all := make([]*rowfn.Node, len(classes))
	var x *rowfn.Node
	if classes[0].Numeric {
		x = c.number("label", label)
	} else {
		x = c.textColumn("label", label)
	}
	if x == nil {
		return nil
	}
	for k, class := range classes {
		value := rowfn.Const(class.Number)
		if !class.Numeric {
			value = rowfn.TextConst(class.Text)
		}
		all[k] = rowfn.Compare(rowfn.OpEq, x, value)
	}
	return all
}

// oneOutput adds a violation where the prediction has classes.
func (c *compiler) oneOutput(p predictor) bool {
	if p.classes != nil {
		c.add(c.pointer+"/model", "must have one output, not classes")
	}
	return p.classes == nil
}

// modelForm is a model. What it computes itself is no part of its canonical form, but of that of the question's features.
type modelForm struct {
	into     **model.Model
	computed *map[string]*expr.Syntax
}

func (f modelForm) read(v *violations, pointer string, in *value) {
	if in.kind != objectValue {
		v.wrongType(pointer, `an object: {"`+strings.Join(model.Forms, `": …}, {"`)+`": …}, or {"sha256": …} of a model that was sent before`, in)
		return
	}
	own := slices.IndexFunc(in.members, func(m memberValue) bool { return m.name == computedMember })
	if own >= 0 {
		var features map[string]*expr.Syntax
		computedForm{&features}.read(v, pointer+"/"+computedMember, in.members[own].value)
		addComputed(v, pointer+"/"+computedMember, f.computed, features)
		in = &value{kind: objectValue, members: slices.Delete(slices.Clone(in.members), own, own+1)}
	}
	if in.member("sha256") != nil {
		*f.into = named(v, pointer, in)
		return
	}
	var b bytes.Buffer
	in.write(&b)
	m, err := model.Parse(b.Bytes())
	if err != nil {
		var e *model.Error
		if !errors.As(err, &e) {
			v.add(pointer, err.Error())
			return
		}
		for _, one := range e.Violations {
			v.put(Violation{Pointer: pointer + one.Pointer, Detail: one.Detail, Suggestion: one.Meant})
		}
		return
	}
	*f.into = m
}

// Models keeps models that were sent, so that queries can name them by their digests.
type Models interface {
	Kept(sha256 string) *model.Model // nil if it is not kept
}

// KeptModels is where the models are that a query names by their digests. Without this option none are.
func KeptModels(m Models) ParseOption { return func(v *violations) { v.models = m } }

// named reads {"sha256": …}, perhaps with a threshold; nil with a violation.
func named(v *violations, pointer string, in *value) *model.Model {
	digest, threshold := in.member("sha256"), in.member("threshold")
	if wants := 1 + min(len(in.members)-1, 1); len(in.members) != wants || wants == 2 && threshold == nil {
		v.add(pointer, `must have "sha256" alone, or with "threshold" and "features", where it names a model that was sent before`)
		return nil
	}
	if digest.kind != textValue || !isDigest(digest.text) {
		v.add(pointer+"/sha256", "must be 64 small hexadecimal digits")
		return nil
	}
	var m *model.Model
	if v.models != nil {
		m = v.models.Kept(digest.text)
	}
	if m == nil {
		v.add(pointer+"/sha256", "the model of this digest is not kept (any more): send it to POST /v1/models, or give the model itself")
		return nil
	}
	if !m.Large() {
		v.named += m.Size()
	}
	if threshold == nil {
		return m
	}
	x, ok := threshold.float()
	switch {
	case !ok || math.Abs(x) > model.MaxMagnitude:
		v.add(pointer+"/threshold", fmt.Sprintf("must be a number within ±%g", float64(model.MaxMagnitude)))
	case m.Classes() != nil:
		v.add(pointer+"/threshold", "is for a model with one output; one with classes predicts the largest score")
	}
	return m.WithThreshold(x)
}

// canonical is the model's form, or its digest where that is long.
func (f modelForm) canonical() any {
	switch m := *f.into; {
	case m == nil:
		return nil
	case m.Large():
		return map[string]any{"sha256": m.ID()}
	default:
		return m.Form()
	}
}

func (f modelForm) schema() map[string]any {
	members := map[string]any{"sha256": digestSchema(), "threshold": map[string]any{"type": "number"}, computedMember: computedForm{f.computed}.schema()}
	for _, name := range model.Forms {
		members[name] = map[string]any{"type": "object"}
	}
	return map[string]any{"type": "object", "minProperties": 1, "maxProperties": 3, "additionalProperties": false, "properties": members}
}

// computedMember is the member of a question, or of its model, with the features that are computed.
const computedMember = "features"

// computedForm is an object of expressions by name.
type computedForm struct{ into *map[string]*expr.Syntax }

// addComputed adds features to those that are there. The question and its model may both compute some, under names that differ.
func addComputed(v *violations, pointer string, into *map[string]*expr.Syntax, more map[string]*expr.Syntax) {
	if *into == nil {
		*into = map[string]*expr.Syntax{}
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if (*into)[name] != nil {
			v.add(pointer+"/"+escape(name), "is computed twice: by the model and beside it")
		}
		(*into)[name] = more[name]
	}
	if len(*into) > MaxComputed {
		v.add(pointer, fmt.Sprintf("must not be more than %d, those of the model counted", MaxComputed))
	}
}

// MaxComputed bounds the expressions that are computed for one model.
const MaxComputed = 1000

func (f computedForm) read(v *violations, pointer string, in *value) {
	if in.kind != objectValue {
		v.wrongType(pointer, "an object of expressions by name", in)
		return
	}
	if len(in.members) > MaxComputed {
		v.add(pointer, fmt.Sprintf("must not be more than %d", MaxComputed))
		return
	}
	features := map[string]*expr.Syntax{}
	for _, m := range in.members {
		var s *expr.Syntax
		expression{&s}.read(v, pointer+"/"+escape(m.name), m.value)
		features[m.name] = s
	}
	addComputed(v, pointer, f.into, features)
}

func (f computedForm) canonical() any {
	if len(*f.into) == 0 {
		return nil
	}
	all := map[string]any{}
	for name, s := range *f.into {
		all[name] = s.Canonical()
	}
	return all
}

func (f computedForm) schema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string", "minLength": 1, "maxLength": expr.MaxSource}, "maxProperties": MaxComputed}
}
