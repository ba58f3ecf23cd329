package queries

import (
	"cmp"
	"slices"

	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// mostWatched is how many columns that models read an answer warns of, those with the most such rows first.
const mostWatched = 5

// countsAsZero is what rows count as for which a model has no number.
const countsAsZero = "count as 0"

// watchModel notes the columns that a model reads whose values may count as others than its library has it: nulls of which it does not say what they count as, and texts without a
// weight. The shares are those of the training part.
func (c *compiler) watchModel(m *model.Model, in inputs) {
	if c.training == nil {
		return
	}
	names, isText := m.Columns()
	for _, name := range names {
		facts, ok := c.training.Column(name)
		if _, column := in.columns[name]; !ok || !column || in.computed[name] != nil || slices.ContainsFunc(c.read, func(v shape.Values) bool { return v.Column == name }) {
			continue
		}
		if share := float64(facts.Nulls) / float64(max(facts.Rows, 1)); m.NullsAsZero(name) && share > MostNulls {
			c.read = append(c.read, shape.Values{Of: name, Column: name, Counts: countsAsZero, Known: &share, Model: true})
		}
		if !isText[name] || !m.WeighsTexts(name) {
			continue // trees list the texts of one side
		}
		known, unknown := m.Texts(name), false
		for _, text := range c.training.Texts(name) {
			unknown = unknown || !known[text]
		}
		if !unknown {
			continue
		}
		v := shape.Values{Of: name, Column: name, Counts: countsAsZero, Model: true, Texts: true}
		numbers := make(map[string]float64, len(known))
		for text := range known {
			numbers[text] = 1
		}
		is := &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{rowfn.Column(name, rowfn.Text)}, Texts: numbers, Number: 1}
		v.Null = rowfn.CompareTo(rowfn.OpLess, is, 0.5)
		c.read = append(c.read, v)
	}
}

// mostRead are the columns that are warned of.
func (c *compiler) mostRead() []shape.Values {
	if len(c.read) <= mostWatched {
		return c.read
	}
	share := func(v shape.Values) float64 {
		if v.Known == nil {
			return 0 // not known yet
		}
		return *v.Known
	}
	slices.SortStableFunc(c.read, func(a, b shape.Values) int { return cmp.Compare(share(b), share(a)) })
	return c.read[:mostWatched]
}
