// Package dpsgd trains dp/learn's models on handwritten digits with differential privacy (Abadi et al., arXiv 1607.00133), and measures
// accuracy against epsilon, the gap between training and test accuracy, what noise costs in training loss (Bassily, Smith, Thakurta, arXiv 1405.7085), and how much a canary
// and a membership attack find out, which has to be less than the account says.
package dpsgd

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/experiments/tables"
)

// What is measured: run.Row.Set.
const (
	digitsTraining = "training accuracy"
	digitsTest     = "test accuracy"
	gap            = "generalisation gap"   // training accuracy less test accuracy
	excessLoss     = "excess training loss" // over the same training without noise
	membership     = "membership advantage" // of the attack by loss: true positive rate less false positive rate
)

// Ways of training: run.Row.Method.
const (
	privateSGD   = "DP-SGD"
	noiselessSGD = "clipped, no noise"
	plainSGD     = "plain SGD"
)

// delta is below one over the number of digits.
const delta = 1e-5

// noiselessMultiplier stands for no noise: far below what moves a loss.
const noiselessMultiplier = 1e-6

// model is a model with its settings, which were tried out by hand on these digits: a choice that no epsilon here
// accounts for.
type model struct {
	name    string
	hidden  []int
	private learn.Private // without its multiplier
	plain   learn.Plain
}

func (m model) network(seed uint64) *learn.Network {
	if m.hidden == nil {
		return learn.Softmax(tables.DigitPixels, tables.DigitClasses)
	}
	return learn.Perceptron(noise.Seeded(seed), tables.DigitPixels, m.hidden, tables.DigitClasses)
}

func models(quick bool) []model {
	hidden, steps := 32, 60
	if quick {
		hidden, steps = 8, 40
	}
	settings := func(rate float64) learn.Private {
		return learn.Private{Steps: steps, Sampling: 0.2, Clip: 1, Rate: rate, Momentum: 0.5}
	}
	return []model{
		{"softmax regression", nil, settings(2), learn.Plain{Epochs: 30, Momentum: 0.9}},
		{"perceptron", []int{hidden}, settings(1), learn.Plain{Epochs: 30, Momentum: 0.9}},
	}
}

// cell is one way of training one model on so many digits.
type cell struct {
	model      model
	n          int
	method     string
	epsilon    float64 // of privateSGD
	multiplier float64
	runs       []outcome // nil until all are finished
}

// outcome is what came out of one training.
type outcome struct{ Training, Test, Loss, Advantage float64 }

// newCells has all epsilons at the largest size, and for the rate of the convex model some at smaller sizes.
func newCells(quick bool) ([]*cell, error) {
	sizes, epsilons := []int{337, 674, 1347}, []float64{0.25, 0.5, 1, 2, 4, 8}
	if quick {
		sizes, epsilons = []int{674, 1347}, []float64{0.5, 2, 8}
	}
	var cells []*cell
	for i, m := range models(quick) {
		for _, n := range sizes {
			largest := n == sizes[len(sizes)-1]
			if i > 0 && !largest {
				continue
			}
			for _, eps := range epsilons {
				if !largest && !rated(eps) {
					continue
				}
				multiplier, err := account.SubsampledMultiplier(m.private.Sampling, m.private.Steps, eps, delta)
				if err != nil {
					return nil, fmt.Errorf("experiments: epsilon %v: %w", eps, err)
				}
				cells = append(cells, &cell{model: m, n: n, method: privateSGD, epsilon: eps, multiplier: multiplier})
			}
			cells = append(cells, &cell{model: m, n: n, method: noiselessSGD, multiplier: noiselessMultiplier})
			if largest {
				cells = append(cells, &cell{model: m, n: n, method: plainSGD})
			}
		}
	}
	return cells, nil
}

// rated: the epsilons at which noise is large enough to measure and small enough for the loss to be near its minimum.
func rated(eps float64) bool { return eps >= 0.5 && eps <= 4 }

// train is one run. Split and seed belong to the repetition, so that all cells of one see the same digits and differ by less
// than chance: a perceptron begins at the same weights.
func (c *cell) train(ctx context.Context, split, seed uint64) (outcome, error) {
	training, test, err := tables.SplitDigits(split, c.n)
	if err != nil {
		return outcome{}, err
	}
	n, s := c.model.network(seeds.Of(seed, 1)), noise.Seeded(seeds.Of(seed, 2))
	if c.method == plainSGD {
		err = n.Train(ctx, training, c.model.plain, s)
	} else {
		settings := c.model.private
		settings.Multiplier = c.multiplier
		err = n.TrainPrivately(ctx, training, settings, s)
	}
	if err != nil {
		return outcome{}, err
	}
	return outcome{n.Accuracy(training), n.Accuracy(test), n.Loss(training), membershipAdvantage(n, training, test)}, nil
}

// membershipAdvantage calls a digit a member when its loss is below the mean of the training part (Yeom et al., arXiv
// 1709.01604, section 3.2), and returns how much more often it says so of members than of others.
func membershipAdvantage(n *learn.Network, members, others learn.Data) float64 {
	threshold := n.Loss(members)
	below := func(d learn.Data) float64 {
		count, probabilities := 0, make([]float64, d.Classes)
		scores := n.NewPass(d.Len()).Scores(d.X)
		for i, y := range d.Y {
			own := scores[i*d.Classes : (i+1)*d.Classes]
			if learn.SoftmaxTo(probabilities, own)-own[y] < threshold {
				count++
			}
		}
		return float64(count) / float64(d.Len())
	}
	return below(members) - below(others)
}

// advantageBound is the largest membership advantage that (eps, delta) allows: member and other are one replaced digit,
// that is one removed and one added, (2 eps, (1+e^eps) delta); and between such neighbours no test does better than
// (e^a - 1 + 2b) / (e^a + 1) for (a, b).
func advantageBound(eps, delta float64) float64 {
	a, b := 2*eps, (1+math.Exp(eps))*delta
	return min(1, (math.Expm1(a)+2*b)/(math.Exp(a)+1))
}

// Experiment is private training.
var Experiment = run.Experiment{
	Name:  "dp-sgd",
	Short: "the accuracy of private training on handwritten digits against epsilon",
	Paper: `Abadi et al. (arXiv 1607.00133): training with clipped gradients and noise loses little accuracy at epsilons of a few, and the account of
moments (Rényi divergence) of Poisson batches is far below the composition of each step. Theory for convex losses (arXiv 1405.7085): the excess
empirical loss falls as d/(n epsilon)^2 where the loss is strongly convex, near its minimum. Differential privacy bounds what any membership attack gains: an audit
with a canary (arXiv 2006.07709) shows an epsilon below the promised one, and one that is near it where the account is tight.
What is private is stable, and so is as good on other examples as on its own (arXiv 1411.2664): the gap between training and test
accuracy goes where epsilon is small.`,
	Small: run.Options{Quick: true, Repetitions: 2},
	Run:   measure,
}

// measure trains models on digits with learn.TrainPrivately, whose noise multiplier comes from dp/account for each epsilon.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "dp-sgd", Seed: o.Seed, Quick: o.Quick}
	repetitions := o.RepetitionsOr(20)
	cells, err := newCells(o.Quick)
	if err != nil {
		return result, err
	}
	if _, err := tables.Digits(); err != nil {
		return result, err
	}
	runs, finished, err := run.Repeat(ctx, o, "trainings", len(cells)*repetitions, func(ctx context.Context, i int) (outcome, error) {
		repetition := uint64(i % repetitions)
		return cells[i/repetitions].train(ctx, seeds.Of(o.Seed, 1, repetition), seeds.Of(o.Seed, 2, repetition))
	})
	var done findings
	for i, c := range cells {
		from, to := i*repetitions, (i+1)*repetitions
		if run.AllFinished(finished[from:to]) {
			c.runs = runs[from:to]
			done = append(done, c)
		}
	}
	var audited []*audit
	if err == nil {
		audited, err = runAudits(ctx, o, audits(cells), repetitions)
	}
	result.Complete = err == nil
	checks, missing := done.checks(audited, o.Quick)
	err = errors.Join(err, missing)
	result.Rows, result.Fits, result.Checks = done.rows(), done.fits(), checks
	for _, a := range audited {
		result.Rows = append(result.Rows, a.row())
	}
	result.Summary, result.Figures = done.table(), done.figures(audited)
	settings := models(o.Quick)[0].private
	result.Notes = []string{
		fmt.Sprintf("Each training takes %d steps with batches that hold every digit with probability %v, clips gradients at norm %v, and adds noise for "+
			"(epsilon, %v) by the account of Rényi divergence; neighbours differ in one added or removed digit, and the number of digits is public. "+
			"Accuracies are means over %d random splits; the test part are the digits that were not drawn.", settings.Steps, settings.Sampling, settings.Clip, delta, repetitions),
		fmt.Sprintf("The canary is one of %d examples and gives a clipped gradient of its own direction; a separation is from %d trainings with it and %d without, "+
			"and stands for an epsilon as for a normal variable. The attack by loss calls a digit a member when its loss is below the training part's mean.", auditRows+1, auditRuns(o.Quick), auditRuns(o.Quick)),
		"Noise and batches are exact integers and ChaCha8 bits, as in a private training, but from the experiment's seed: whoever knows it knows the noise. " +
			"Learning rates, steps and clipping norm were tried out by hand on these digits, which no epsilon here accounts for.",
	}
	return result, err
}
