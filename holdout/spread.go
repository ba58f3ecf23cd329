package holdout

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn"
)

// warnSpread says in an explanation of a mean when its interval would be wider than its values are spread: a half-width above their standard deviation in the
// training part tells as much as one row or two. It reads the training part alone.
func (h *opened) warnSpread(ctx context.Context, e *Explanation, plan *queries.Plan) error {
	for _, w := range e.Warnings {
		if w.Code == uninformative {
			return nil
		}
	}
	if e.HalfWidth == nil || h.reference.Training == nil || plan.FromZero || plan.HoldoutOnly {
		return nil
	}
	spread, ok, err := h.spread(ctx, plan)
	if err != nil {
		return scanError(err)
	}
	if ok && *e.HalfWidth >= spread {
		e.Warnings = append(e.Warnings, Warning{Code: uninformative, Detail: fmt.Sprintf(
			"the interval (half-width %.3g) would be wider than the standard deviation of the values themselves (%.3g in the training part), so it tells hardly more than a single row; ask about more rows, or declare a narrower range",
			*e.HalfWidth, spread)})
	}
	return nil
}

// spread is the standard deviation in the training part of the values that an answer is the mean of, in the answer's units; false where the answer is no
// mean of numbers. The sums are exact.
func (h *opened) spread(ctx context.Context, plan *queries.Plan) (sd float64, ok bool, err error) {
	if len(plan.Equations) != 1 || plan.PerUnit() {
		return 0, false, nil
	}
	equation, training := plan.Equations[0], h.reference.Training
	if equation.Binary || equation.B != nil && !equation.Whole { // of shares the value says it; of others the answer is no mean
		return 0, false, nil
	}
	batch := rowfn.Batch{Functions: []rowfn.Function{equation.A}, Products: []rowfn.Product{{A: 0, B: 0}}}
	if equation.B != nil {
		batch.Functions = append(batch.Functions, *equation.B)
	}
	sums, err := training.Moments(ctx, batch, 0, training.Units())
	if err != nil {
		return 0, false, err
	}
	n := float64(training.Units())
	if equation.B != nil {
		n = float64(sums.Values[1]) / float64(rowfn.One)
	}
	if n < 2 {
		return 0, false, nil
	}
	square, _ := new(big.Float).SetInt(sums.Products[0].Big()).Float64()
	mean := float64(sums.Values[0]) / float64(rowfn.One) / n
	variance := square/float64(rowfn.One)/float64(rowfn.One)/n - mean*mean
	return math.Sqrt(max(0, variance)) * (plan.Range.High - plan.Range.Low), true, nil
}
