package queries

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Limits of categories.
const (
	// MaxValues bounds the declared categories.
	MaxValues = 1000
	// MaxTrainingValues is how many categories are taken from the training part, the most frequent ones: a list that a person can read.
	MaxTrainingValues = 100
	// maxDistinct: of a column with more values than that, categories must be declared. To find the most frequent ones each is
	// counted in the training part whenever the question is read.
	maxDistinct = MaxValues
)

const valuesDoc = "the categories, as a list of texts; default: the 100 most frequent values of the training part. All other values are one category, other"

var frequenciesKind = kind{
	name: "frequencies",
	doc: "The shares of rows that have each category of a text column, and of rows that have another value or none. The categories are declared or the " +
		"training part's, never the holdout's. " + shareCost,
	examples: []string{
		`{"type":"frequencies","of":"origin","values":["SFO","OAK","SJC"]}`,
		`{"type":"frequencies","of":"origin","values":["SFO","OAK"],"where":"delay > 15"}`,
	},
	make: func() body { return new(frequencies) },
}

// frequencies is {"type":"frequencies"}.
type frequencies struct {
	Of     *expr.Syntax
	Values []string
	Where  *expr.Syntax
}

func (q *frequencies) members() []member {
	return []member{
		required("of", expression{&q.Of}, "a text column"),
		optional("values", textsForm{&q.Values}, valuesDoc),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs at most one more question"),
	}
}

func (q *frequencies) rules(*violations, string) {}

func (q *frequencies) leastItems() int { return len(q.Values) }

func (q *frequencies) compile(c *compiler) *Plan {
	column, where := c.textColumn("of", q.Of), c.condition("where", q.Where)
	categories := c.categories("of", column, q.Values)
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	p := shares(c, categories, where)
	p.describeShares(c, categories, q.Where, "the share of rows with each value of "+q.Of.Canonical())
	p.describe.Null = "nulls have a share of their own"
	return p
}

// category is a condition with its name. Of the categories of one question, at most one holds in a row.
type category struct {
	name  string
	holds *rowfn.Node
}

// textColumn is the column that a member names; nil with a violation if it does not name a text column.
func (c *compiler) textColumn(name string, s *expr.Syntax) *rowfn.Node {
	at := c.pointer + "/" + name
	column, ok := s.Column()
	if !ok {
		c.add(at, "must be the name of a text column")
		return nil
	}
	i := slices.IndexFunc(c.schema.Fields, func(f dataset.Field) bool { return f.Name == column })
	switch {
	case i < 0:
		_, err := s.Check(c.schema) // knows what is near
		c.expression(at, err)
		return nil
	case c.schema.Fields[i].Kind != dataset.Text:
		c.add(at, "must be a text column; numbers have histogram, conditions have fraction")
		return nil
	}
	return rowfn.Column(column, rowfn.Text)
}

// categories are the declared values of a text column, or the training part's, then what is none of them and what is null.
func (c *compiler) categories(name string, column *rowfn.Node, values []string) []category {
	if column == nil {
		return nil
	}
	if values == nil {
		if values = c.trainingValues(name, column); values == nil {
			return nil
		}
	}
	var texts []*rowfn.Node
	var all []category
	for _, v := range values {
		text := rowfn.TextConst(v)
		texts = append(texts, text)
		all = append(all, category{v, rowfn.Compare(rowfn.OpEq, column, text)})
	}
	return append(all, category{"other", rowfn.And(rowfn.Not(rowfn.In(column, texts...)), rowfn.Not(rowfn.IsNull(column)))}, category{"null", rowfn.IsNull(column)})
}

// trainingValues are the values of a column in the training part: all of them, or the most frequent ones, in their own order.
func (c *compiler) trainingValues(name string, column *rowfn.Node) []string {
	if len(c.list) > 0 {
		return nil
	}
	if c.training == nil {
		c.add(c.pointer+"/values", "is missing: this holdout has no training part to take the categories from")
		return nil
	}
	texts := c.training.Texts(column.Text)
	switch {
	case len(texts) == 0:
		c.add(c.pointer+"/values", "is missing: the column is null in all of the training part")
		return nil
	case len(texts) > maxDistinct:
		c.add(c.pointer+"/values", fmt.Sprintf("is missing: the column has more than %d values in the training part; declare those that you ask about", maxDistinct))
		return nil
	case len(texts) <= MaxTrainingValues:
		return texts
	}
	functions := make([]RowFunction, len(texts))
	for i, t := range texts {
		functions[i] = RowFunction{Lo: 0, Hi: 1, Value: rowfn.Compare(rowfn.OpEq, column, rowfn.TextConst(t))}
	}
	means := c.trainingMeans("values", "", functions...)
	if means == nil {
		return nil
	}
	order := make([]int, len(texts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(means[b], means[a]) })
	order = order[:MaxTrainingValues]
	slices.Sort(order)
	kept := make([]string, len(order))
	for i, at := range order {
		kept[i] = texts[at]
	}
	return kept
}

// shares asks for the share of rows in each category, as one vector.
//
// Let v be the vector of a unit's shares of its rows in the d categories: not negative, its sum s at most 1. The variances of its
// coordinates add up to E|v|² - |Ev|². |v|² <= s, for v_i² <= v_i, and |Ev|² >= (Es)²/d, by Cauchy and Schwarz. With S = Es
// in [0,1] that is at most S - S²/d, which rises in S for d >= 2: 1 - 1/d.
//
// With where, one more coordinate is 1 if the unit has such a row, else 0, and s is that number. Its variance is S - S², and
// the sum at most 2S - S²(1 + 1/d), largest at S = d/(d+1), where it is d/(d+1) = 1 - 1/(d+1).
//
// The mean of a unit's rows is rounded to the grid, so that s can be above 1 by half a step for each coordinate: gridSlack.
func shares(c *compiler, categories []category, where *rowfn.Node) *Plan {
	p := &Plan{Range: Range{0, 1}, FromZero: true}
	if where != nil { // first, for without it the others are nothing
		p.Functions = append(p.Functions, RowFunction{Lo: 0, Hi: 1, Where: where, PerUnit: UnitAny})
	}
	for _, k := range categories {
		p.Functions = append(p.Functions, RowFunction{Value: k.holds, Lo: 0, Hi: 1, Where: where})
	}
	variance := 1 - 1/float64(len(p.Functions))
	if c.grouped {
		variance += gridSlack * float64(len(p.Functions))
	}
	p.releases = []Release{{Kind: Vector, Count: len(p.Functions), Variance: variance, Optional: true}}
	p.combine = func(o Outcome) Result {
		parts := o.Parts
		if where != nil {
			parts = parts[1:]
		}
		items := make([]Item, len(categories))
		for i, k := range categories {
			items[i].Of = k.name
			switch part := parts[i]; {
			case part.Missing:
			case where != nil:
				items[i].is(ratio(p.Range)(Outcome{N: o.N, Parts: []Part{part, o.Parts[0]}}))
			default:
				items[i].is(finish(part.Value, part.interval(), part.Bounded, p.Range, 1))
			}
		}
		return Result{Items: items}
	}
	return p
}

// is gives an item the number of a result.
func (i *Item) is(r Result) { i.Value, i.Low, i.High = r.Value, r.Low, r.High }

// gridSlack is what the rounding to the grid adds at most to a sum of variances for each coordinate, twice half a step with room.
const gridSlack = 0x1p-29

// describeShares says what shares did.
func (p *Plan) describeShares(c *compiler, categories []category, where *expr.Syntax, what string) {
	in, asked := "", ""
	if where != nil {
		in, asked = " in which "+where.Canonical(), " where "+where.Canonical()+", else nothing"
	}
	function := fmt.Sprintf("1 if the row is in the category, else 0%s, for each of %d categories: ", asked, len(categories))
	if c.grouped {
		function = fmt.Sprintf("the share of the unit's rows%s that are in the category, for each of %d categories: ", in, len(categories))
	}
	for i, k := range categories {
		if i == maxNamed {
			function += ", …"
			break
		}
		if i > 0 {
			function += ", "
		}
		function += k.name
	}
	p.describe.Functions = []string{function}
	p.describe.Combine = "the mean of each row function"
	if where != nil {
		first := "1 where " + where.Canonical() + ", else 0"
		if c.grouped {
			first = "1 if the unit has a row" + in + ", else 0"
		}
		p.describe.Functions = []string{first, function}
		p.describe.Combine += " but the first, divided by that of the first; undefined where that is not positive"
	}
	p.describe.Target = c.target("%s%s", what, rowsOf(c, where, WeightUnit))
}

// maxNamed is how many categories a description names.
const maxNamed = 20

// textsForm is a list of different texts.
type textsForm struct{ into *[]string }

func (f textsForm) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) == 0 || len(in.items) > MaxValues {
		v.add(pointer, fmt.Sprintf("must be a list of 1 to %d texts", MaxValues))
		return
	}
	seen := make(map[string]bool, len(in.items))
	texts := make([]string, len(in.items))
	for i, item := range in.items {
		at := fmt.Sprintf("%s/%d", pointer, i)
		switch {
		case item.kind != textValue:
			v.wrongType(at, "a text", item)
			return
		case seen[item.text]:
			v.add(at, "occurs twice")
			return
		}
		seen[item.text], texts[i] = true, item.text
	}
	*f.into = texts
}

func (f textsForm) canonical() any {
	if *f.into == nil {
		return nil
	}
	return *f.into
}

func (f textsForm) schema() map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1, "maxItems": MaxValues, "uniqueItems": true}
}
