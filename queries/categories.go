package queries

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
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

// calendar are the least and the largest value of the parts of a time that have few.
var calendar = map[rowfn.Op][2]int{rowfn.OpMonth: {0, 11}, rowfn.OpDayOfWeek: {0, 6}, rowfn.OpHours: {0, 23}, rowfn.OpDayOfMonth: {0, 30}, rowfn.OpDate: {1, 31}}

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
		c.add(at, "must be a text column; numbers have histogram and groups, conditions have fraction")
		return nil
	}
	return rowfn.Column(column, rowfn.Text)
}

// categories are the declared values of a text column, or the training part's, then what is none of them and what is null.
func (c *compiler) categories(name string, column *rowfn.Node, values []string) []shape.Category {
	if column == nil {
		return nil
	}
	if values == nil {
		if values = c.trainingValues(name, column); values == nil {
			return nil
		}
	}
	var texts []*rowfn.Node
	var all []shape.Category
	for _, v := range values {
		text := rowfn.TextConst(v)
		texts = append(texts, text)
		all = append(all, shape.Category{Name: v, Holds: rowfn.Compare(rowfn.OpEq, column, text)})
	}
	return append(all, shape.Category{Name: "other", Holds: rowfn.And(rowfn.Not(rowfn.In(column, texts...)), rowfn.Not(rowfn.IsNull(column)))}, shape.Category{Name: "null", Holds: rowfn.IsNull(column)})
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
	return mostFrequent(c, texts, func(text string) *rowfn.Node { return rowfn.Compare(rowfn.OpEq, column, rowfn.TextConst(text)) })
}

// mostFrequent are the most frequent ones of values in the training part, in their own order; holds is the condition that a row has one.
func mostFrequent[T any](c *compiler, values []T, holds func(T) *rowfn.Node) []T {
	functions := make([]RowFunction, len(values))
	for i, v := range values {
		functions[i] = RowFunction{Lo: 0, Hi: 1, Value: holds(v)}
	}
	means := c.trainingMeans("values", "", functions...)
	if means == nil {
		return nil
	}
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(means[b], means[a]) })
	order = order[:MaxTrainingValues]
	slices.Sort(order)
	kept := make([]T, len(order))
	for i, at := range order {
		kept[i] = values[at]
	}
	return kept
}

// truths are the groups by a condition: true, false and, of a column, null, which reads as false in a condition.
func truths(by *rowfn.Node, column bool) []shape.Category {
	yes, no := shape.Category{Name: "true", Holds: by}, shape.Category{Name: "false", Holds: rowfn.Not(by)}
	if !column {
		return []shape.Category{yes, no}
	}
	no.Holds = rowfn.And(no.Holds, rowfn.Not(rowfn.IsNull(by)))
	return []shape.Category{yes, no, {Name: "null", Holds: rowfn.IsNull(by)}}
}

// numbers are the groups by the values of a number, declared or those of a column in the training part, then what is none of them and what is null.
func (c *compiler) numbers(by *rowfn.Node, column bool, values []float64) []shape.Category {
	if values == nil {
		if values = c.trainingNumbers(by, column); values == nil {
			return nil
		}
	}
	var all []shape.Category
	var numbers []*rowfn.Node
	for _, v := range values {
		numbers = append(numbers, rowfn.Const(v))
		all = append(all, shape.Category{Name: shape.Edge(v), Holds: rowfn.CompareTo(rowfn.OpEq, by, v)})
	}
	return append(all, shape.Category{Name: "other", Holds: rowfn.And(rowfn.Not(rowfn.In(by, numbers...)), rowfn.Not(rowfn.IsNull(by)))}, shape.Category{Name: "null", Holds: rowfn.IsNull(by)})
}

// trainingNumbers are the values of a column of numbers in the training part: all of them, or the most frequent ones, rising; nil with a violation.
func (c *compiler) trainingNumbers(by *rowfn.Node, column bool) []float64 {
	at := c.pointer + "/values"
	switch {
	case len(c.list) > 0:
		return nil
	case !column:
		detail := "is missing, or edges: by is computed, so that its values are no column's"
		if span, ok := calendar[by.Op]; ok {
			var all []string
			for x := span[0]; x <= span[1]; x++ {
				all = append(all, strconv.Itoa(x))
			}
			detail += `; all values are [` + strings.Join(all, ", ") + `]`
		}
		c.add(at, detail)
		return nil
	case c.training == nil:
		c.add(at, "is missing, or edges: this holdout has no training part to take the values from")
		return nil
	}
	facts, known := c.training.Column(by.Text)
	numbers := c.training.Numbers(by.Text, maxDistinct)
	switch {
	case known && facts.Low > facts.High:
		c.add(at, "is missing, or edges: the column is null in all of the training part")
		return nil
	case len(numbers) == 0:
		c.add(at, fmt.Sprintf("is missing: the column has more than %d values in the training part; declare those that you ask about, or edges of ranges", maxDistinct))
		return nil
	case len(numbers) <= MaxTrainingValues:
		return numbers
	}
	return mostFrequent(c, numbers, func(x float64) *rowfn.Node { return rowfn.CompareTo(rowfn.OpEq, by, x) })
}

// exclusive makes categories of conditions: a row is in the first that holds, or in the last one, other.
func (c *compiler) exclusive(name string, all []*expr.Syntax) []shape.Category {
	cells := make([]shape.Category, 0, len(all)+1)
	var before []*rowfn.Node
	for i, s := range all {
		n := c.condition(fmt.Sprintf("%s/%d", name, i), s)
		if n == nil {
			continue
		}
		cells = append(cells, shape.Category{Name: s.Canonical(), Holds: firstHolds(before, n)})
		before = append(before, rowfn.Not(n))
	}
	return append(cells, shape.Category{Name: "other", Holds: firstHolds(before, nil)})
}

// firstHolds is n and none of what is before.
func firstHolds(before []*rowfn.Node, n *rowfn.Node) *rowfn.Node {
	all := append([]*rowfn.Node{}, before...)
	if n != nil {
		all = append(all, n)
	}
	switch len(all) {
	case 0:
		return rowfn.True()
	case 1:
		return all[0]
	}
	return rowfn.And(all...)
}
