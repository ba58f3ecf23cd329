package session

import (
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// tallyOf are the counts of a tally over a part of n units. half are the sums of the first half of the holdout's units, of a tally that is [shape.Halved]; the
// training part has no halves, and plans by all its pairs of units.
func tallyOf(t *shape.Tally, sums, half []int64, n int64, training bool) (thresholdout.Statistic, error) {
	if t.Kind == shape.Quantile {
		q := thresholdout.QuantileSums{All: n, P: t.P, Exact: t.Exact}
		q.Units, q.Below, q.Upto = t.Ladder(sums, n)
		return q, nil
	}
	p := thresholdout.PairSums{All: n, Monotone: t.Kind == shape.Area, Difference: t.Kind == shape.AreaDifference}
	var err error
	switch t.Kind {
	case shape.Area:
		with, without := t.Tables(sums)
		p.Sums, err = pairs.AUC(slices.Concat(with...), slices.Concat(without...)) // a column each
	case shape.AreaDifference:
		p.Sums, err = pairs.AUCDifference(t.Tables(sums))
	default:
		first, second := t.Table(sums), t.Table(sums)
		if p.Whole = training; !training {
			rest := make([]int64, len(sums))
			for i := range rest {
				rest[i] = sums[i] - half[i]
			}
			first, second = t.Table(half), t.Table(rest)
		}
		p.Sums, err = pairs.Kendall(first, second)
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return p, nil
}

// Halves is what plans need of the first half of the holdout's units beside what they need of all. The order of units is secret and random, or else it is public
// and not by content.
func Halves(plans []*queries.Plan) (all rowfn.Batch) {
	for _, plan := range plans {
		for _, declared := range plan.Statistics() {
			if shape.IsHalved(declared) {
				all.Join(declared.Batch())
			}
		}
	}
	return all
}
