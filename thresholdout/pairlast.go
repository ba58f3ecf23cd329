package thresholdout

import (
	"fmt"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// The names of the bounds of last answers about quantiles and about pairs of units.
const (
	BoundOrder       = "order-statistics"
	BoundSamplePairs = "sample-pairs"
)

// ReadLast implements [LastStatistic]: the rungs between which the quantile must be, by the counts of units beyond them.
func (q QuantileSums) ReadLast(training LastStatistic, by LastPlanning) (Reading, error) {
	planned := by.N
	if training != nil {
		t, ok := training.(QuantileSums)
		if !ok {
			return Reading{}, otherLast(q, training)
		}
		planned = max(int64(float64(by.N)*float64(t.Units)/float64(grid)/float64(max(t.All, 1))), 1)
	}
	return q.reading(planned, by)
}

// ExpectLast implements [LastStatistic].
func (q QuantileSums) ExpectLast(by LastPlanning) (Reading, error) {
	share := float64(by.N) / float64(max(q.All, 1))
	scaled := func(count int64) int64 { return int64(float64(count)/float64(grid)*share) * grid }
	expected := QuantileSums{All: by.N, P: q.P, Exact: q.Exact, Units: scaled(q.Units)}
	for i := range q.Below {
		expected.Below, expected.Upto = append(expected.Below, scaled(q.Below[i])), append(expected.Upto, scaled(q.Upto[i]))
	}
	return expected.reading(max(expected.Units/grid, 1), by)
}

func (q QuantileSums) reading(planned int64, by LastPlanning) (Reading, error) {
	check := pairs.Quantile{P: q.P, PlannedLevel: by.Level}
	for i := range q.Below {
		check.Points = append(check.Points, float64(i))
	}
	if !q.Exact {
		check.Planned = planned
	}
	counts := pairs.QuantileCounts{Unit: grid, Units: q.All, N: q.Units, Below: q.Below, Upto: q.Upto}
	if _, err := check.Innermost(counts, by.Level); err != nil {
		return Reading{}, fmt.Errorf("thresholdout: %w", err)
	}
	value, _ := q.Value()
	return Reading{Value: value, Bound: BoundOrder, Interval: func(level float64) (low, high float64) {
		span, err := check.Innermost(counts, level)
		if err != nil {
			return 0, 1
		}
		return q.place(span.Low), q.place(span.High)
	}}, nil
}

// ReadLast implements [LastStatistic]: by the variances that the training part plans, where the holdout's are no larger, and by matchings.
func (p PairSums) ReadLast(training LastStatistic, by LastPlanning) (Reading, error) {
	check := pairCheck{Check: pairs.Silent(), monotone: p.Monotone, difference: p.Difference}
	if training != nil {
		t, ok := training.(PairSums)
		if !ok {
			return Reading{}, otherLast(p, training)
		}
		planned, err := t.Plan(Planning{N: by.N, Questions: by.Questions, Deviations: moments.Deviations(by.Questions)})
		if err != nil {
			return Reading{}, err
		}
		check = planned.(pairCheck)
	}
	if p.Monotone != check.monotone || p.Difference != check.difference || p.Whole {
		return Reading{}, otherLast(p, training)
	}
	sums := p.Sums
	if check.swapped {
		sums = sums.Swapped()
	}
	if _, _, err := check.Exact(sums, by.Level); err != nil {
		return Reading{}, fmt.Errorf("thresholdout: %w", err)
	}
	value, ok := p.Value()
	if !ok {
		value = 0.5
	}
	return Reading{Value: value, Bound: BoundSamplePairs, Interval: func(level float64) (low, high float64) {
		low, high, err := check.Exact(sums, level)
		if err != nil {
			return 0, 1
		}
		return low, high
	}}, nil
}

// ExpectLast implements [LastStatistic].
func (p PairSums) ExpectLast(by LastPlanning) (Reading, error) {
	planned, err := p.Plan(Planning{N: by.N, Questions: by.Questions, Deviations: moments.Deviations(by.Questions)})
	if err != nil {
		return Reading{}, err
	}
	check := planned.(pairCheck)
	value, ok := p.Value()
	if !ok {
		value = 0.5
	}
	return Reading{Value: value, Bound: BoundSamplePairs, Interval: func(level float64) (low, high float64) { return check.Foreseen(value, level) }}, nil
}

// otherLast is the error of a last answer that is planned by the sums of another question.
func otherLast(holdout, training Statistic) error {
	return fmt.Errorf("thresholdout: sums of a %T planned by those of a %T", holdout, training)
}
