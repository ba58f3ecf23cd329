package queries

import (
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
)

var frequenciesKind = kind{
	name:  "frequencies",
	doc:   "The shares of rows that have each category of a text column, and of rows that have another value or none. The categories are declared or the training part's, never the holdout's. " + sharesDoc,
	price: price{"at most 4", "1 a share"},
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
	itemGuesses
}

func (q *frequencies) members() []member {
	return []member{
		required("of", expression{&q.Of}, "a text column"),
		optional("values", textsForm{&q.Values}, valuesDoc),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; under gaussian it costs at most one more question"),
		q.itemGuesses.member(),
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
	p := shape.SharesOf(categories, where, c.grouped)
	c.sayShares(p, categories, q.Where, "the share of rows with each value of "+q.Of.Canonical())
	p.Words.Null = "nulls have a share of their own"
	return p
}
