package queries

import (
	"context"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TrainingPart is what compiling may know of the training part: the constants of a question that are not declared, such as the
// mean and the standard deviation behind a z-score, or the categories of a column. It is fixed with the holdout, so a question
// has the same constants for ever.
type TrainingPart interface {
	// Means are the exact means, in [0,1], of row functions over the units of the training part.
	Means(ctx context.Context, functions []RowFunction) ([]float64, error)
	// Texts are the values of a text column that occur in the training part, sorted; nil if it is no text column.
	Texts(column string) []string
	// Column is what is known of a column's values there; false if nothing is.
	Column(name string) (ColumnFacts, bool)
	// Numbers are the different values of a column of numbers that occur in the training part, rising, null not among them; nil if it is no column of numbers, or if there are more than most.
	Numbers(column string, most int) []float64
}

// PublicFacts is a [TrainingPart] of a holdout of whose other rows something is public.
type PublicFacts interface {
	// Everywhere says what public facts say of a column's values in all rows, those that are held out among them: that training rows have all of them, and that none is null.
	Everywhere(ctx context.Context, column string) (known, full bool)
}

// ColumnFacts are what is known of a column's values in the training part.
type ColumnFacts struct {
	Rows      int64   // of the training part
	Nulls     int64   // rows without a value
	Low, High float64 // of numbers, where one is not null; else Low > High
}

// Training gives the training part; without it, questions that need its constants are refused.
func Training(t TrainingPart) Option { return func(c *compiler) { c.training = t } }

// trainingMeans are the exact means of row functions over the training part; nil where the query is wrong already, or with a
// violation at the named member where there is no training part. instead says what to declare.
func (c *compiler) trainingMeans(name, instead string, functions ...RowFunction) []float64 {
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	if c.training == nil {
		c.add(c.pointer+"/"+name, "is needed: this holdout has no training part to take it from; "+instead)
		return nil
	}
	if c.holdoutOnly {
		c.add(c.pointer+"/"+name, "is needed: the training part, which it would be taken from, has none of the numbers that came for each row; "+instead)
		return nil
	}
	means, err := c.means(functions)
	if err != nil {
		c.failed = fmt.Errorf("queries: training part: %w", err)
		return nil
	}
	return means
}

// inTraining are the exact moments of the training part; nil where there are none, which is a violation at the named member
// where there is no training part at all.
func (c *compiler) inTraining(m shape.Moments, name, instead string) []float64 {
	means := c.trainingMeans(name, instead, m.Functions...)
	if means == nil {
		return nil
	}
	values, ok := m.Exact(means)
	if !ok {
		return nil
	}
	return values
}

// centers are the training part's means of numbers, clamped to their ranges; without a training part, or where it has no row in
// which where holds, the middles of the ranges.
func (c *compiler) centers(name string, where *rowfn.Node, weight Weight, ranges []Range, numbers ...*rowfn.Node) []float64 {
	at, _ := c.centersAnd(nil, name, where, weight, ranges, numbers...)
	return at
}

// centersAnd are the centers, and the training part's means of other functions, of the same pass; none where the centers are the middles.
func (c *compiler) centersAnd(others []RowFunction, name string, where *rowfn.Node, weight Weight, ranges []Range, numbers ...*rowfn.Node) (at, means []float64) {
	at = make([]float64, len(numbers))
	functions := make([]RowFunction, len(numbers))
	for i, r := range ranges {
		at[i] = r.Low/2 + r.High/2
		functions[i] = RowFunction{Value: numbers[i], Lo: r.Low, Hi: r.High, Null: r.Low}
	}
	if c.training == nil {
		return at, nil
	}
	if means := c.inTraining(shape.MomentsOf(where, c.rowVotes(weight), append(functions, others...)...), name, ""); means != nil {
		return means[:len(at)], means[len(at):]
	}
	return at, nil
}

// zScored is a number that is to be standardised.
type zScored struct {
	value *rowfn.Node // clamped to the range
	in    Range
}

func zScoredColumns(names []string, r Range) []zScored {
	all := make([]zScored, len(names))
	for i, name := range names {
		all[i] = zScored{r.Clamp(rowfn.Column(name, rowfn.Number)), r}
	}
	return all
}

// leastSpread is the standard deviation, as a part of the range, below which a number counts as constant: the grid's rounding of
// its mean and square is far below.
const leastSpread = 1e-4

// zScores are the numbers minus their means, divided by their standard deviations, both of the training part; null where a
// number is. A number that does not vary has none. It is nil after a violation.
func (c *compiler) zScores(name, instead string, numbers []zScored) []*rowfn.Node {
	functions := make([]RowFunction, 0, 2*len(numbers))
	for _, x := range numbers {
		middle, half := x.in.Low/2+x.in.High/2, x.in.High/2-x.in.Low/2
		away := rowfn.Sub(x.value, rowfn.Const(middle))
		functions = append(functions,
			RowFunction{Value: x.value, Lo: x.in.Low, Hi: x.in.High, Null: middle},
			RowFunction{Value: rowfn.Mul(away, away), Lo: 0, Hi: half * half})
	}
	means := c.trainingMeans(name, instead, functions...)
	if means == nil {
		return nil
	}
	scores := make([]*rowfn.Node, len(numbers))
	for i, x := range numbers {
		half := x.in.High/2 - x.in.Low/2
		away := (2*means[2*i] - 1) * half // of the mean from the middle
		sd := math.Sqrt(max(0, means[2*i+1]*half*half-away*away))
		if sd < leastSpread*2*half {
			continue
		}
		scores[i] = rowfn.Mul(rowfn.Sub(x.value, rowfn.Const(x.in.Low/2+x.in.High/2+away)), rowfn.Const(1/sd))
	}
	return scores
}

// watch notes an expression whose values may count as others than a reader takes them for: value is clamped to a range, or nil; what is null counts as the words say, or "" where nobody
// expects otherwise. It is for holdouts with a training part, which is asked about it.
func (c *compiler) watch(p *Plan, of *expr.Syntax, value *rowfn.Node, r Range, where *rowfn.Node, counts string) *shape.Values {
	if p == nil || of == nil || c.training == nil || len(c.list) > 0 {
		return nil
	}
	v := shape.Values{Of: of.Canonical(), Counts: counts, Range: r, Where: where, MostBelow: MostClamped, MostAbove: MostClamped, Clean: true}
	if value != nil && value.Type == rowfn.Number && r.Valid() {
		v.Value, v.Clean = value, false
	}
	if name, ok := of.Column(); ok {
		v.Column = name
		if facts, ok := c.training.Column(name); ok && v.Value != nil && facts.Low <= facts.High {
			v.Spread = &Range{Low: facts.Low, High: facts.High}
			v.Clean = r.Contains(facts.Low) && r.Contains(facts.High)
		}
	}
	if counts != "" {
		if null, err := of.Null(); err == nil && null != nil {
			v.Null, _ = null.CheckCondition(c.schema) // an error is a time that is computed, of which no null can be asked
		}
		v.Clean = v.Clean && (v.Null == nil || c.neverNull(of))
	}
	if v.Null == nil && v.Value == nil {
		return nil
	}
	p.Values = append(p.Values, v)
	return &p.Values[len(p.Values)-1]
}

// What rows with a null count as, in words that follow "they".
const (
	countsAsFalse   = "count as rows in which it does not hold"
	countsAsNoLabel = "count as if the label did not hold"
)

func countsAs(null float64) string { return fmt.Sprintf("count as %v", null) }

// neverNull reports whether an expression is known to have a value in every row of the training part.
func (c *compiler) neverNull(of *expr.Syntax) bool {
	columns, plain := of.NullColumns()
	for _, name := range columns {
		facts, ok := c.training.Column(name)
		plain = plain && ok && facts.Nulls == 0
	}
	return plain
}

// Shares of the training part's rows from which on an answer says that values count as others.
const (
	// MostNulls is that of nulls: a hundredth moves a mean by a hundredth of its distance from what they count as.
	MostNulls = 0.01
	// MostClamped is that of values below a range, and of those above it: ranges are meant to cut off what is rare.
	MostClamped = 0.05
)
