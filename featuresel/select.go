package featuresel

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Filter is the correlation filter: the columns whose correlations in the training part and, as told, in the holdout have
// the same sign and are both beyond the cutoff, with the largest in the training part first. It appends to dst.
func Filter(dst []int, training, holdout []float64, cutoff float64) []int {
	from := len(dst)
	for j, a := range training {
		if b := holdout[j]; a > cutoff && b > cutoff || a < -cutoff && b < -cutoff {
			dst = append(dst, j)
		}
	}
	byStrength(dst[from:], training)
	return dst
}

// byStrength sorts columns by the size of their correlations, the largest first.
func byStrength(columns []int, correlations []float64) {
	slices.SortFunc(columns, func(i, j int) int {
		a, b := math.Abs(correlations[i]), math.Abs(correlations[j])
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return i - j
	})
}

// Signed is the classifier of columns with the signs of their correlations.
func Signed(columns []int, correlations []float64) Classifier {
	c := Classifier{Columns: columns, Signs: make([]float64, len(columns))}
	for i, j := range columns {
		c.Signs[i] = sign(correlations[j])
	}
	return c
}

// Published is the analyst of Science 2015: it filters columns by the correlations of the training part and of the holdout
// as told, both beyond the cutoff, and asks for the accuracy of the sign classifiers of the first k of them, for each of ks.
func Published(ctx context.Context, o Oracle, training []float64, cutoff float64, ks []int) (c Classifier, told []float64, err error) {
	holdout, err := o.Correlations(ctx)
	if err != nil {
		return c, nil, err
	}
	if len(holdout) != len(training) {
		return c, nil, fmt.Errorf("featuresel: the holdout has %d columns, the training part %d", len(holdout), len(training))
	}
	c = Signed(Filter(nil, training, holdout, cutoff), training)
	told = make([]float64, len(ks))
	for i, k := range ks {
		if told[i], err = o.Accuracy(ctx, c.First(k)); err != nil {
			return c, nil, err
		}
	}
	return c, told, nil
}

// Forward is forward selection: it tries the columns by the size of their training correlations, and keeps one where the
// accuracy with it, as told, is higher than without. It asks one question for each column tried, at most limit, and returns the
// accuracy told of what it has kept: NaN where that is nothing.
func Forward(ctx context.Context, o Oracle, training []float64, limit int) (kept Classifier, told float64, err error) {
	order := make([]int, len(training))
	for j := range order {
		order[j] = j
	}
	byStrength(order, training)
	told = math.NaN()
	for _, j := range order[:min(limit, len(order))] {
		with := kept.add(j, sign(training[j]))
		accuracy, err := o.Accuracy(ctx, with)
		if err != nil {
			return kept, told, err
		}
		if !(accuracy <= told) { // the first is better than nothing
			kept, told = with, accuracy
		}
	}
	return kept, told, nil
}

// Stepwise is a stepwise search: in each step it asks for the accuracy of every classifier that has one of the candidates more, or one
// column fewer, and goes to the best one, until none is told to be better or the steps are done. It asks at most
// len(candidates) questions a step. A told accuracy is that of the best of many: the more the search asks, the more it flatters.
func Stepwise(ctx context.Context, o Oracle, training []float64, candidates []int, steps int) (kept Classifier, told float64, err error) {
	told = math.NaN()
	for range steps {
		best, most := Classifier{}, told
		for _, j := range candidates {
			other := kept.toggle(j, sign(training[j]))
			if len(other.Columns) == 0 {
				continue
			}
			accuracy, err := o.Accuracy(ctx, other)
			if err != nil {
				return kept, told, err
			}
			if !(accuracy <= most) {
				best, most = other, accuracy
			}
		}
		if best.Columns == nil {
			break
		}
		kept, told = best, most
	}
	return kept, told, nil
}

// add is a classifier with one column more; the one it is made of stays as it is.
func (c Classifier) add(j int, sign float64) Classifier {
	return Classifier{append(slices.Clone(c.Columns), j), append(slices.Clone(c.Signs), sign)}
}

// toggle is a classifier without column j where it had it, and with it where not.
func (c Classifier) toggle(j int, sign float64) Classifier {
	at := slices.Index(c.Columns, j)
	if at < 0 {
		return c.add(j, sign)
	}
	return Classifier{slices.Delete(slices.Clone(c.Columns), at, at+1), slices.Delete(slices.Clone(c.Signs), at, at+1)}
}
