package queries

import (
	"fmt"
	"path"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

var screenKind = kind{
	name: "screen",
	doc: "Many features against one label in one request: for each feature the correlation, or the mean product. Only features for which training part and holdout disagree take tokens. " +
		"Features for which none are left are null and cost nothing.",
	price: price{"1 a feature", "1 a feature"},
	examples: []string{
		`{"type":"screen","label":"delay > 15","features":["distance"],"range":[0,3000]}`,
		`{"type":"screen","label":"delay","features":"d*","statistic":"product","range":[0,3000],"range_label":[-60,180]}`,
	},
	make: func() body { return &screen{Statistic: screenCorrelation, Clip: DefaultClip} },
}

// The statistics of a screen.
const (
	screenCorrelation = "correlation"
	screenProduct     = "product"
)

// MaxFeatures bounds the features of one screen: each is a question and a line of the answer.
const MaxFeatures = 16384

// screen is {"type":"screen"}.
type screen struct {
	Label      *expr.Syntax
	Features   features
	Statistic  string
	Range      Range
	RangeLabel Range
	Clip       float64
}

func (q *screen) members() []member {
	return []member{
		labelled(expression{&q.Label}, "what the features are compared with: a number, or a condition or a column of 0 and 1, which count as 1 and -1"),
		required("features", featuresForm{&q.Features}, `a list of number columns; or a pattern of column names, with * and ?, for all number columns that match and are not part of the label`),
		optional("statistic", choice{&q.Statistic, []string{screenCorrelation, screenProduct}}, "correlation: the mean product of z-scores, with means and standard deviations of the training part; product: the mean product of feature and label; default: correlation"),
		required("range", rangeForm{&q.Range}, "[low, high]: features are clamped to it"),
		optional("range_label", optionalRange{&q.RangeLabel}, "[low, high] of a label that is another number"),
		optional("clip", clipForm{&q.Clip}, "of correlation: the product of the z-scores is clamped to ±clip, in [1e-6, 1e6]; the interval is proportional to clip"),
	}
}

func (q *screen) rules(v *violations, pointer string) {
	if q.Statistic == screenProduct && q.Clip != DefaultClip {
		v.add(pointer+"/clip", `belongs to "statistic":"correlation"`)
	}
}

func (q *screen) compile(c *compiler) *Plan {
	label, labelRange := q.label(c)
	names := q.Features.resolve(c, q.Label)
	if len(c.list) > 0 {
		return nil
	}
	p := &Plan{Range: Range{Low: -1, High: 1}}
	if q.Statistic == screenProduct {
		q.products(p, label, labelRange, names)
	} else {
		q.correlations(c, p, label, labelRange, names)
	}
	d := &p.Words
	d.Null = "a null feature or label counts as a product of 0, or as the value nearest to it"
	d.Target = c.target("for each feature the %s", d.Combine)
	return p
}

// label is the number that features are held against, clamped.
func (q *screen) label(c *compiler) (*rowfn.Node, Range) {
	n, err := q.Label.Check(c.schema)
	if err != nil {
		c.expression(c.pointer+"/label", err)
		return nil, Range{}
	}
	switch {
	case n.Type == rowfn.Condition && q.RangeLabel.Valid():
		c.add(c.pointer+"/range_label", "a label that is a condition is 1 or -1 and has no range")
	case n.Type == rowfn.Condition:
		return rowfn.If(n, rowfn.Const(1), rowfn.Const(-1)), Range{Low: -1, High: 1}
	case n.Type != rowfn.Number:
		c.add(c.pointer+"/label", "must be a number or a condition")
	case !q.RangeLabel.Valid():
		if name, ok := c.numberColumn(q.Label); ok {
			if one, _ := c.zeroOne(name); one != nil {
				return rowfn.If(one, rowfn.Const(1), rowfn.Const(-1)), Range{Low: -1, High: 1}
			}
		}
		c.add(c.pointer+"/range_label", "is missing: the label is a number, which needs a range to be clamped to")
	default:
		return q.RangeLabel.Clamp(n), q.RangeLabel
	}
	return nil, Range{}
}

// products asks for the mean of feature times label, over the hull of what the product can be.
func (q *screen) products(p *Plan, label *rowfn.Node, labelRange Range, names []string) {
	a, b, x, y := q.Range.Low, q.Range.High, labelRange.Low, labelRange.High
	r := Range{Low: min(a*x, a*y, b*x, b*y), High: max(a*x, a*y, b*x, b*y)}
	for _, name := range names {
		p.Functions = append(p.Functions, RowFunction{Value: rowfn.Mul(q.Range.Clamp(rowfn.Column(name, rowfn.Number)), label), Lo: r.Low, Hi: r.High,
			Null: min(max(0, r.Low), r.High)})
	}
	p.Range = r
	p.Program = []Release{{Kind: Number, Count: len(names), Optional: true}}
	p.Shape, p.Equations = shape.Each{Names: names, Range: r, Within: r}, shape.MeansOf(p.Functions)
	p.Words.Functions = []string{fmt.Sprintf("for each of %d features: the feature, clamped to %v, times the label %s", len(names), q.Range, q.Label.Canonical())}
	p.Words.Combine = "mean of the feature times the label"
}

// correlations asks for the mean product of z-scores. A feature that does not vary in the training part has none, and is not asked.
func (q *screen) correlations(c *compiler, p *Plan, label *rowfn.Node, labelRange Range, names []string) {
	scores := c.zScores("features", `use "statistic":"product"`, append([]zScored{{label, labelRange}}, zScoredColumns(names, q.Range)...))
	if scores == nil {
		return
	}
	if scores[0] == nil {
		c.add(c.pointer+"/label", "does not vary in the training part")
		return
	}
	r := Range{Low: -q.Clip, High: q.Clip}
	defined := make([]bool, len(names))
	for i, z := range scores[1:] {
		if defined[i] = z != nil; z != nil {
			p.Functions = append(p.Functions, RowFunction{Value: rowfn.Mul(z, scores[0]), Lo: r.Low, Hi: r.High})
		}
	}
	if len(p.Functions) == 0 {
		c.add(c.pointer+"/features", "none of the features varies in the training part")
		return
	}
	p.Range = r
	p.Program = []Release{{Kind: Number, Count: len(p.Functions), Optional: true}}
	p.Shape, p.Equations = shape.Each{Names: names, Defined: defined, Range: r, Within: r}, shape.MeansOf(p.Functions)
	p.Words.Functions = []string{fmt.Sprintf("for each of %d features: the product of the z-scores of the feature, clamped to %v, and of the label %s, clipped to ±%v, "+
		"with means and standard deviations of the training part", len(names), q.Range, q.Label.Canonical(), q.Clip)}
	p.Words.Combine = fmt.Sprintf("mean product of the z-scores of feature and label, clipped to ±%v", q.Clip)
}

// features are the columns of a screen: a pattern, or names.
type features struct {
	pattern string
	names   []string
}

// resolve are the names of the columns.
func (f features) resolve(c *compiler, label *expr.Syntax) []string {
	at := c.pointer + "/features"
	if f.names != nil {
		kinds := make(map[string]dataset.Kind, len(c.schema.Fields))
		for _, field := range c.schema.Fields {
			kinds[field.Name] = field.Kind
		}
		for i, name := range f.names {
			if kind, ok := kinds[name]; !ok {
				c.add(fmt.Sprintf("%s/%d", at, i), "there is no column of this name")
			} else if kind != dataset.Number {
				c.add(fmt.Sprintf("%s/%d", at, i), "the column holds no numbers")
			}
		}
		return f.names
	}
	inLabel := map[string]bool{}
	for _, name := range label.Columns() {
		inLabel[name] = true
	}
	var names []string
	for _, field := range c.schema.Fields {
		if ok, _ := path.Match(f.pattern, field.Name); ok && field.Kind == dataset.Number && !inLabel[field.Name] {
			names = append(names, field.Name)
		}
	}
	if len(names) == 0 {
		c.add(at, "no column of numbers beside the label matches the pattern")
	}
	return names
}

// featuresForm reads features.
type featuresForm struct{ into *features }

func (f featuresForm) read(v *violations, pointer string, in *value) {
	switch in.kind {
	case textValue:
		if _, err := path.Match(in.text, ""); err != nil || in.text == "" || strings.ContainsAny(in.text, `[\`) {
			v.add(pointer, "is no pattern of a column name; * stands for any text and ? for any character")
			return
		}
		f.into.pattern = in.text
	case listValue:
		if len(in.items) == 0 || len(in.items) > MaxFeatures {
			v.add(pointer, fmt.Sprintf("must have between 1 and %d columns", MaxFeatures))
			return
		}
		seen := make(map[string]bool, len(in.items))
		for i, item := range in.items {
			at := fmt.Sprintf("%s/%d", pointer, i)
			switch {
			case item.kind != textValue:
				v.wrongType(at, "the name of a column", item)
			case seen[item.text]:
				v.add(at, "is in the list before")
			}
			seen[item.text] = true
			f.into.names = append(f.into.names, item.text)
		}
	default:
		v.wrongType(pointer, "a pattern or a list of columns", in)
	}
}

func (f featuresForm) canonical() any {
	if f.into.names != nil {
		return f.into.names
	}
	return f.into.pattern
}

func (f featuresForm) schema() map[string]any {
	return map[string]any{"oneOf": []any{
		map[string]any{"type": "string", "minLength": 1},
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1, "maxItems": MaxFeatures, "uniqueItems": true},
	}}
}
