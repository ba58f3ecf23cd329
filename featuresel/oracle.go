package featuresel

import (
	"context"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Oracle tells an analyst about a holdout. What it tells may be exact, noisy or copied from the training part.
type Oracle interface {
	// Correlations are those of all columns with the label, as told.
	Correlations(ctx context.Context) ([]float64, error)
	// Accuracy is that of a classifier, as told.
	Accuracy(ctx context.Context, c Classifier) (float64, error)
}

// Exact tells the holdout's own numbers: the standard reuse of a holdout.
type Exact struct{ Data Data }

var _ Oracle = Exact{}

// Correlations implements [Oracle].
func (o Exact) Correlations(context.Context) ([]float64, error) { return Correlations(o.Data), nil }

// Accuracy implements [Oracle].
func (o Exact) Accuracy(_ context.Context, c Classifier) (float64, error) {
	return Accuracy(o.Data, c), nil
}

// Width is the length of the range that correlations are asked with: a mechanism's answers are in [0,1] of it. Products of a
// column and a label are clamped to [-4,4], which a standard normal variable leaves with probability 6e-5.
const Width = 8.0

// CorrelationRange is the range [low, high] of the question for a correlation.
var CorrelationRange = [2]float64{-Width / 2, Width / 2}

// AccuracyRange is the range of the question for an accuracy, with a holdout of n rows: it makes threshold and noise of
// [Science2015] 0.04 and 0.01 of an accuracy, the published numbers for n = 10,000. Correlations shrink with n, and
// threshold and noise with them; what a selection gains in accuracy does not. Below 157 rows the range is [0,1], which is more.
func AccuracyRange(n int) [2]float64 {
	width := max(1, Width*math.Sqrt(float64(n))/100)
	return [2]float64{0.5 - width/2, 0.5 + width/2}
}

// Science2015 is the Thresholdout of the published experiment for correlations in their own units: threshold 4/sqrt(n) and noise
// 1/sqrt(n), which are a [Width]th of that in a mechanism's. There are as many tokens as questions, since the published one
// has no budget.
func Science2015(n, training, questions int64) (thresholdout.Guarantee, error) {
	root := math.Sqrt(float64(n))
	return thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Thresholdout, Form: thresholdout.FormGaussian, N: n, Training: training,
		Questions: questions, Tokens: questions, Threshold: 4 / (root * Width), Sigma: 1 / (root * Width)})
}

// Holdout is the Oracle of a mechanism in this process: every number it tells is a step of [session.Simulated].
type Holdout struct {
	session.Simulated // every question is about all rows: not split
	Training, Holdout Data
}

var _ Oracle = (*Holdout)(nil)

// Correlations implements [Oracle], by a question for each column.
func (o *Holdout) Correlations(ctx context.Context) ([]float64, error) {
	training, holdout := make([]float64, o.Training.Rows()), make([]float64, o.Holdout.Rows())
	out := make([]float64, o.Holdout.Columns())
	for j := range out {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o.Training.Column(training, j)
		o.Holdout.Column(holdout, j)
		multiply(training, o.Training.Label())
		multiply(holdout, o.Holdout.Label())
		var err error
		if out[j], err = o.ask(training, holdout, CorrelationRange); err != nil {
			return nil, fmt.Errorf("featuresel: column %d: %w", j, err)
		}
	}
	return out, nil
}

// Accuracy implements [Oracle].
func (o *Holdout) Accuracy(_ context.Context, c Classifier) (float64, error) {
	training, holdout := make([]float64, o.Training.Rows()), make([]float64, o.Holdout.Rows())
	c.margins(training, o.Training)
	c.margins(holdout, o.Holdout)
	indicate(training)
	indicate(holdout)
	return o.ask(training, holdout, AccuracyRange(o.Holdout.Rows()))
}

// ask asks for the mean of a number that is given for every row of both parts.
func (o *Holdout) ask(training, holdout []float64, within [2]float64) (float64, error) {
	if o.Guarantee.Sliced() {
		return 0, fmt.Errorf("featuresel: the mechanism %s reads other rows for every question, which is not supported", o.Guarantee.Mechanism)
	}
	in := thresholdout.Input{Holdout: mean(holdout, within)}
	if o.Guarantee.UsesTraining() {
		in.Training = mean(training, within)
	}
	out, err := o.Mean(in)
	if err != nil {
		return 0, err
	}
	return within[0] + out.Value*(within[1]-within[0]), nil
}

// mean is the exact mean of values that are clamped to a range and rounded to a grid of it.
func mean(values []float64, within [2]float64) thresholdout.Mean {
	m := thresholdout.Mean{N: int64(len(values))}
	for _, v := range values {
		part := (v - within[0]) / (within[1] - within[0])
		m.Sum += int64(math.Round(max(0, min(1, part)) * float64(rowfn.One)))
	}
	return m
}

func multiply(dst, a []float64) {
	for i := range dst {
		dst[i] *= a[i]
	}
}

// indicate makes 1 of what is positive and 0 of the rest.
func indicate(values []float64) {
	for i, v := range values {
		values[i] = 0
		if v > 0 {
			values[i] = 1
		}
	}
}
