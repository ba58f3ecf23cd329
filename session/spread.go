package session

import (
	"fmt"
	"math"
	"math/big"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Uninformative is the code of warnings that an answer tells little.
const Uninformative = "uninformative"

// spreadOf is what the training part is asked for the standard deviation of the values that an answer is the mean of; false where the answer is no mean of numbers. Of shares their value says
// it, and a sum's size follows from how many there are. What a model makes of rows that it was fitted to is spread otherwise than elsewhere, and predictions row by row are of other rows.
func spreadOf(plan *queries.Plan) (b rowfn.Batch, ok bool) {
	if len(plan.Equations) != 1 || plan.PerUnit() || plan.Equations[0].PerUnit || plan.FromZero || plan.Fitted {
		return b, false
	}
	equation := plan.Equations[0]
	if equation.Binary || equation.B != nil && !equation.Whole { // of others the answer is no mean
		return b, false
	}
	b.Functions, b.Products = []rowfn.Function{equation.A}, []rowfn.Product{{A: 0, B: 0}}
	if equation.B != nil {
		b.Functions = append(b.Functions, *equation.B)
	}
	return b, true
}

// spreadFrom is the standard deviation in the training part, in the answer's units, by the sums of spreadOf over its units; nil where it has fewer than two such values. The
// sums are exact.
func spreadFrom(plan *queries.Plan, sums rowfn.Sums, units int64) *float64 {
	n := float64(units)
	if len(sums.Values) > 1 {
		n = float64(sums.Values[1]) / float64(rowfn.One)
	}
	if n < 2 {
		return nil
	}
	square, _ := new(big.Float).SetInt(sums.Products[0].Big()).Float64()
	mean := float64(sums.Values[0]) / float64(rowfn.One) / n
	variance := square/float64(rowfn.One)/float64(rowfn.One)/n - mean*mean
	sd := math.Sqrt(max(0, variance)) * (plan.Range.High - plan.Range.Low)
	return &sd
}

// WiderThanSpread is the warning about an interval that is wider than the values are spread that its answer is the mean of: it tells as much as one row or two. half is the half-width and
// spread the standard deviation in the training part, in the same units; either may be unknown. It is nil where there is nothing to warn of.
func WiderThanSpread(half, spread *float64) *Warning {
	if half == nil || spread == nil || !(*half > *spread) {
		return nil
	}
	return &Warning{Code: Uninformative, Detail: spreadDetail(*half, *spread)}
}

func spreadDetail(half, spread float64) string {
	return fmt.Sprintf("a half-width of %.3g is more than the standard deviation of the values themselves (%.3g in the training part), so the interval tells hardly more than a single row; ask about more rows, or declare a narrower range", half, spread)
}
