package widths

import (
	"context"
	"errors"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// rangeAlone releases each mean that an answer is made of by itself, of which a check knows its range and nothing of its variance: what intervals are
// that pay for the worst variance there is.
type rangeAlone struct {
	guarantee         thresholdout.Guarantee
	state             thresholdout.State
	holdout, training []thresholdout.Mean
}

// ofRange are the means of a plan's row functions.
func ofRange(ctx context.Context, g thresholdout.Guarantee, plan *queries.Plan, holdout, training *engine.Table) (*rangeAlone, error) {
	means := func(part *engine.Table) ([]thresholdout.Mean, error) {
		sums, err := part.Sums(ctx, plan.Functions, 0, part.Units())
		out := make([]thresholdout.Mean, len(sums))
		for i, sum := range sums {
			out[i] = thresholdout.Mean{Sum: sum, N: part.Units()}
		}
		return out, err
	}
	onHoldout, err := means(holdout)
	if err != nil {
		return nil, err
	}
	onTraining, err := means(training)
	return &rangeAlone{guarantee: g, holdout: onHoldout, training: onTraining}, err
}

// Together implements queries.Releaser.
func (r *rangeAlone) Together() bool { return false }

// Number implements queries.Releaser.
func (r *rangeAlone) Number(function int) (queries.Part, error) {
	out, next, err := thresholdout.Step(r.guarantee, r.state, thresholdout.Input{Training: r.training[function], Holdout: r.holdout[function]}, nil)
	if err != nil {
		return queries.Part{}, err
	}
	r.state = next
	return queries.Part{Value: out.Value, Low: out.Interval.Low, High: out.Interval.High, Bounded: true}, nil
}

var errNotTogether = errors.New("experiments: means are released one by one")

// Vector implements queries.Releaser.
func (r *rangeAlone) Vector(int, int, float64) ([]queries.Part, error) { return nil, errNotTogether }

// Select implements queries.Releaser.
func (r *rangeAlone) Select(int, int, int64) (queries.Choice, error) {
	return queries.Choice{}, errNotTogether
}
