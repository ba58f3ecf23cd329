package queries

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Option is a fact about the holdout that compiling depends on.
type Option func(*compiler)

// Grouped says whether the holdout has a unit column, so that a unit can hold several rows.
func Grouped(yes bool) Option { return func(c *compiler) { c.grouped = yes } }

// LargestUnit says how units with several rows vote where every row has one vote: a unit of more than so many rows counts as one of so
// many. declared says that no unit of the population is said to have more, and that none of the table has.
func LargestUnit(rows int64, declared bool) Option {
	return func(c *compiler) { c.largest, c.declared = rows, declared }
}

// HoldoutRows says how many rows the holdout has, which is public: what a sum over them is times a mean, where units have several.
func HoldoutRows(rows int64) Option { return func(c *compiler) { c.ofHoldout = rows } }

// AsOne says whether the mechanism checks more than a mean as one question. Where a query leaves open which of two forms it asks for, it then asks for the one that is the better answer.
func AsOne(yes bool) Option { return func(c *compiler) { c.asOne = yes } }

// Disguises says which columns tell a label by themselves in the training part, so that a plan can say that a model reads them.
func Disguises(label string, columns []string) Option {
	return func(c *compiler) { c.disguised, c.disguises = label, columns }
}

// Population says what the units were drawn from, in words that follow "in": a target is about it. Without it, "the population
// that the rows were drawn from", or the units.
func Population(words string) Option { return func(c *compiler) { c.population = words } }

// At places the pointers of errors below a part of the body, such as "/queries/3" of a batch.
func At(pointer string) Option { return func(c *compiler) { c.pointer = pointer } }

// compiler is what the bodies compile with, as long as one call of [Query.Compile] lasts.
type compiler struct {
	violations
	schema     dataset.Schema
	grouped    bool
	asOne      bool  // what is more than a mean is one question
	largest    int64 // units of more rows count as one of so many, where rows vote; 0: not known here
	declared   bool  // no unit has more
	ofHoldout  int64 // rows of the holdout; 0: not known here
	population string
	pointer    string
	training   TrainingPart                           // nil without one
	means      func([]RowFunction) ([]float64, error) // of the training part
	everywhere func(column string) (known, full bool) // what public facts say of all rows, see PublicFacts
	failed     error                                  // of reading the training part

	rows        int64  // of the holdout, where a question can bring a number for each
	checkRows   int64  // and for each of the check part, behind them; 0 without one
	noRows      string // why it cannot
	holdoutOnly bool   // what was compiled has no numbers for the rows of the training part
	fitted      bool   // what was compiled has a model or predictions

	disguised string // a label, and the columns that tell it by themselves
	disguises []string
	leaks     []shape.Leak // columns that models read and a new row does not have

	read []shape.Values // columns that models read, whose values count as others

	asTruth string // a label of numbers that is a condition, and how, for the words of the plan
}

// looksFor notes the columns that a prediction reads and that tell its label: those that the label is made of, and those that tell it by themselves.
func (c *compiler) looksFor(q *prediction) {
	read := map[string]bool{}
	computed := q.Features
	switch {
	case q.Model != nil:
		names, _ := q.Model.Columns()
		for _, name := range names {
			if computed[name] == nil {
				read[name] = true
			}
		}
	case q.Prediction != nil:
		computed = map[string]*expr.Syntax{"": q.Prediction}
	}
	for _, name := range slices.Sorted(maps.Keys(computed)) {
		for _, column := range computed[name].Columns() {
			read[column] = true
		}
	}
	label := q.Label.Columns()
	for _, column := range label {
		if read[column] {
			c.leak(shape.Leak{Column: column, Label: q.Label.Canonical(), Same: true})
		}
	}
	if !slices.Contains(label, c.disguised) {
		return
	}
	for _, column := range c.disguises {
		if read[column] && !slices.Contains(label, column) {
			c.leak(shape.Leak{Column: column, Label: c.disguised})
		}
	}
}

func (c *compiler) leak(l shape.Leak) {
	if !slices.Contains(c.leaks, l) {
		c.leaks = append(c.leaks, l)
	}
}

// rowVotes reports whether every row has one vote, where units hold several.
func (c *compiler) rowVotes(w Weight) bool { return w == WeightRow && c.grouped }

// number is the checked node of a member that must be a number; nil with a violation if it is not.
func (c *compiler) number(name string, s *expr.Syntax) *rowfn.Node {
	n, err := s.CheckNumber(c.schema)
	if err != nil {
		c.expression(c.pointer+"/"+name, err)
		return rowfn.Const(0) // a plan is made of it, which nobody sees
	}
	return n
}

// condition is the checked node of a member that must be a condition; nil for a member that is absent.
func (c *compiler) condition(name string, s *expr.Syntax) *rowfn.Node {
	if s == nil {
		return nil
	}
	n, err := s.CheckCondition(c.schema)
	if err != nil {
		c.expression(c.pointer+"/"+name, err)
	}
	return n
}

// truth is the checked node of a label that must be a condition; nil with a violation. A column of numbers is one by [compiler.zeroOne], or the violation says how to ask.
func (c *compiler) truth(label *expr.Syntax) *rowfn.Node {
	name, ok := c.numberColumn(label)
	if !ok {
		return c.condition("label", label)
	}
	n, values := c.zeroOne(name)
	switch {
	case n != nil:
	case len(values) == 0: // there are many, or none is known
		c.add(c.pointer+"/label", fmt.Sprintf("this is a number; expected a condition, such as %s > 0", expr.Column(name)))
	default:
		c.add(c.pointer+"/label", fmt.Sprintf("this is a number; expected a condition, such as %s == %v. A column of 0 and 1 is one by itself; the training part has other values here", expr.Column(name), values[len(values)-1]))
	}
	return n
}

// numberColumn is the name of the column of numbers that an expression is.
func (c *compiler) numberColumn(s *expr.Syntax) (name string, ok bool) {
	name, ok = s.Column()
	at := slices.IndexFunc(c.schema.Fields, func(f dataset.Field) bool { return f.Name == name })
	return name, ok && at >= 0 && c.schema.Fields[at].Kind == dataset.Number
}

// zeroOne is the condition that a column of numbers is 1, if the training part has 0 and 1 in it and no other number: so tables write labels. Else it is nil, with some of the
// numbers, if the training part is there.
func (c *compiler) zeroOne(column string) (*rowfn.Node, []float64) {
	if c.training == nil {
		return nil, nil
	}
	values := c.training.Numbers(column, mostLabels)
	for _, x := range values {
		if x != 0 && x != 1 {
			return nil, values
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	c.asTruth = expr.Column(column) + " holds where it is 1"
	return rowfn.Compare(rowfn.OpEq, rowfn.Column(column, rowfn.Number), rowfn.Const(1)), values
}

// mostLabels are told apart in a column of numbers that may be a label; of more it is none.
const mostLabels = 20

// measured is the row function of a member that is a number with a range or a condition without one, and what it is in words.
func (c *compiler) measured(name string, s *expr.Syntax, r Range, null *float64) (RowFunction, string) {
	n, err := s.Check(c.schema)
	if err != nil {
		c.expression(c.pointer+"/"+name, err)
		return RowFunction{}, ""
	}
	switch {
	case n.Type == rowfn.Condition && (r.Valid() || null != nil):
		c.add(c.pointer+"/range", "a condition is 1 or 0; it has no range and no null")
	case n.Type == rowfn.Condition:
		return RowFunction{Value: n, Lo: 0, Hi: 1}, "(1 where " + s.Canonical() + ", else 0)"
	case n.Type != rowfn.Number:
		c.add(c.pointer+"/"+name, "must be a number or a condition")
	case !r.Valid():
		c.add(c.pointer+"/range", `is missing: a number needs "range": [low, high] to be clamped to; a condition, such as x == 1, needs none`)
	default:
		return RowFunction{Value: n, Lo: r.Low, Hi: r.High, Null: orLow(null, r)}, fmt.Sprintf("%s clamped to %v", s.Canonical(), r)
	}
	return RowFunction{}, ""
}
