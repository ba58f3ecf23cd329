package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/shape"
)

// MaxConfusion is the most classes of a confusion matrix: 1,024 cells.
const MaxConfusion = 32

var confusionKind = kind{
	name:  "confusion",
	doc:   "The confusion matrix of a classifier: for each pair of a label and a predicted class, the share of rows that have it. Rows whose label is no class of the model are not counted. " + sharesDoc,
	price: price{"at most 4", "1 a share"},
	examples: []string{
		`{"type":"confusion","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002},"link":"logit"}},"threshold":0.2}`,
		`{"type":"confusion","label":"delay > 15","prediction":"distance > 1000"}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return new(confusion) },
}

// confusion is {"type":"confusion"}.
type confusion struct {
	prediction
	Threshold *float64
	Where     *expr.Syntax
	itemGuesses
}

func (q *confusion) members() []member {
	return append(q.prediction.members(labelDoc),
		q.prediction.thresholdMember(&q.Threshold),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; under gaussian it costs at most one more question"),
		q.prediction.skipping(),
		q.itemGuesses.member(),
	)
}

func (q *confusion) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	q.leavesOut(v, pointer, &q.Where)
}

func (q *confusion) compile(c *compiler) *Plan {
	where := c.condition("where", q.Where)
	cells, names := q.cells(c, q.Threshold)
	if len(names) > MaxConfusion {
		c.add(c.pointer+"/model", fmt.Sprintf("has more than %d classes", MaxConfusion))
	}
	if cells == nil || len(c.list) > 0 {
		return nil
	}
	var all []shape.Category
	for i, row := range cells {
		for j, holds := range row {
			all = append(all, shape.Category{Name: fmt.Sprintf("label %s, predicted %s", names[i], names[j]), Holds: holds})
		}
	}
	p := shape.SharesOf(all, where, c.grouped)
	c.sayShares(p, all, q.Where, "the share of rows with each pair of "+q.Label.Canonical()+" and the class of "+q.name())
	p.Words.Null = conditionNull
	c.watch(p, q.Label, nil, Range{}, where, countsAsNoLabel)
	return p
}
