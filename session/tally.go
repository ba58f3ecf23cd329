package session

import (
	"fmt"
	"math/big"
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

// clusteredOf are the sums of pairs of units of several rows, of a part of n units. half are those of the holdout's first half; the training part has no halves, and plans by all its pairs of units.
func clusteredOf(c *shape.Clusters, sums, half rowfn.Sums, n int64, training bool) (thresholdout.Statistic, error) {
	of := func(sums rowfn.Sums, units int64) pairs.Vectors {
		v := pairs.Vectors{Units: units, Sums: sums.Values, Products: make([]*big.Int, len(sums.Products))}
		for i, x := range sums.Products {
			v.Products[i] = x.Big()
		}
		return v
	}
	all := of(sums, n)
	first, second := all, all
	if !training {
		first = of(half, n/2)
		second = all.Less(first)
	}
	p := thresholdout.ClusteredSums{All: n, Difference: c.Second > 0, Whole: training}
	var err error
	if p.ClusteredSums, err = pairs.Clustered(pairs.Curves{First: c.First, Second: c.Second}, first, second); err != nil {
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
