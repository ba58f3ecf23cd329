// Package certify trains classifiers of digits, certifies their predictions in all ways of dp/certify (PixelDP, arXiv 1802.03471;
// randomized smoothing, arXiv 1902.02918; Rényi divergence, arXiv 1809.03113) and attacks them (arXiv 1706.06083, arXiv 1906.04584): no
// attack may succeed within a certified radius, and attacks outside should. It draws certified accuracy against radius at the papers' own settings, on two sets of digits.
package certify

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/experiments/tables"
)

// Experiment is certified and attacked predictions.
var Experiment = run.Experiment{
	Name:  "certify",
	Short: "how far digits can be moved without a prediction changing, certified and attacked",
	Paper: `Noise on the input of a classifier makes its expected scores differentially private in the input, and so certifies predictions
against attacks that are smaller than a radius: PixelDP (arXiv 1802.03471), randomized smoothing (arXiv 1902.02918, whose radius for
Gaussian noise is the largest that the two expected scores allow), by Rényi divergence (arXiv 1809.03113). No attack may
succeed within a certified radius. From the same bounds PixelDP's radius is the smallest, then Rényi's, and smoothing's the largest.
Little noise predicts more and much noise certifies farther; each curve of certified accuracy ends where all draws agree
(arXiv 1902.02918, figure 6).`,
	Flags: []run.Flag{{Name: mnistFlag, Usage: "directory with MNIST's four files, for the papers' settings on its digits, too; what is missing is downloaded into it"}},
	Small: run.Options{Quick: true, Repetitions: 3},
	Run:   measure,
}

// Sizes of the experiment.
const (
	trainingDigits = 1297 // of 1,797 digits; the others are for tests
	fullCopies     = 20   // noisy copies of each that a model learns from
	fullDraws      = 10_000
	quickCopies    = 3
	quickDraws     = 1000
	insideDraws    = 4000 // where an attack inside a radius ended
	searchDraws    = 1000 // where one ended that looks for the smallest
)

// failure bounds the probability with which any certificate of a digit is wrong, or a prediction where an attack ended
// is taken for another than it is: half of what all checks of a run may fail by chance.
const failure = 0.5 * run.FalseAlarm

// inside is where an attack has to fail, however often it tries: its size as a part of the certified radius.
const (
	inside      = 0.99
	insideTries = 2
)

// condition is a model that is trained with, and smoothed by, one noise.
type condition struct {
	model model
	noise certify.Noise
}

func (c condition) String() string {
	return fmt.Sprintf("%s, %s %v", c.model.name, familyTitle(c.noise.Family), c.noise.Scale)
}

func familyTitle(f certify.Family) string {
	if f == certify.Laplace {
		return "Laplace"
	}
	return "Gaussian"
}

// unit is the norm that attacks on it are measured in.
func (c condition) unit() string { return unitOf(c.noise.Family) }

func unitOf(f certify.Family) string {
	if f == certify.Laplace {
		return "L1"
	}
	return "L2"
}

func conditions(quick bool) (all []condition) {
	noises := []certify.Noise{{Family: certify.Gaussian, Scale: 0.25}, {Family: certify.Gaussian, Scale: 0.5},
		{Family: certify.Laplace, Scale: 0.15}, {Family: certify.Laplace, Scale: 0.3}}
	if quick {
		noises = []certify.Noise{noises[0], noises[2]}
	}
	for _, m := range models {
		for _, n := range noises {
			all = append(all, condition{m, n})
		}
	}
	return all
}

// way is one of the certificates that are compared.
type way struct {
	scores bool // of expected scores (the softmax), not of labels
	method certify.Method
	bound  certify.Bound
}

func (w way) String() string {
	of := "labels"
	if w.scores {
		of = "scores"
	}
	return fmt.Sprintf("%v, %v of %s", w.method, w.bound, of)
}

// ways that a family of noise can be certified by.
func ways(family certify.Family) []way {
	all := []way{
		{false, certify.Smoothing, certify.ClopperPearson},
		{false, certify.TwoSided, certify.ClopperPearson},
		{false, certify.Renyi, certify.ClopperPearson},
		{false, certify.PixelDP, certify.ClopperPearson},
		{false, certify.PixelDP, certify.Hoeffding},
		{false, certify.PixelDP, certify.EmpiricalBernstein},
		{true, certify.TwoSided, certify.EmpiricalBernstein},
		{true, certify.PixelDP, certify.Hoeffding},
		{true, certify.PixelDP, certify.EmpiricalBernstein},
	}
	if family == certify.Laplace {
		all = append(all[:2], all[3:]...)
	}
	return all
}

// attackSizes are those at which accuracy is measured.
var attackSizes = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}

// certified is what came of one digit under one condition.
type certified struct {
	Label  int       `json:"label"`  // the true one
	Found  []verdict `json:"found"`  // in each way
	Labels assault   `json:"labels"` // on the function that is smoothed labels
	Scores assault   `json:"scores"` // on the one that is smoothed scores
}

// verdict is a certificate.
type verdict struct {
	Prediction int     `json:"prediction"`
	Radius     float64 `json:"radius"`
}

// assault is what attacks on one prediction came to.
type assault struct {
	Prediction int     `json:"prediction"` // of the smoothed function before the attack
	Radius     float64 `json:"radius"`     // the largest that any way certifies, 0 where none does
	Broken     bool    `json:"broken"`     // the attack inside that radius ended where another label is certified
	Smallest   float64 `json:"smallest"`   // size of the smallest attack after which another label was predicted; largestAttack where none was
}

// measure trains models on digits, smooths them, certifies predictions of digits that they have not seen in all ways, and attacks them.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "certify", Seed: o.Seed, Quick: o.Quick}
	copies, draws, count := fullCopies, fullDraws, o.RepetitionsOr(150)
	if o.Quick {
		copies, draws, count = quickCopies, quickDraws, o.RepetitionsOr(40)
	}
	training, others, err := tables.SplitDigits(seeds.Of(o.Seed, 1), trainingDigits)
	if err != nil {
		return result, err
	}
	count = min(count, others.Len())
	all := conditions(o.Quick)
	var checks run.Checks
	bounds, err := boundCoverage(ctx, o, &checks)
	result.Rows = bounds
	if err != nil {
		return result, err
	}
	exact, err := exactCertificates(ctx, o, &checks)
	result.Rows = append(result.Rows, exact...)
	if err != nil {
		return result, err
	}
	plain, err := attackUndefended(ctx, o, training, others, count)
	bareRows := undefendedRows(plain)
	result.Rows = append(result.Rows, bareRows...)
	if err != nil {
		return result, err
	}
	undefendedChecks(&checks, plain)
	runs := publishedRuns
	if o.Quick {
		runs = quickRuns
	}
	papers, err := playPublished(ctx, o, min(runs, count))
	var publishedRows []run.Row
	for _, p := range papers {
		publishedRows = append(publishedRows, p.rows()...)
	}
	result.Rows = append(result.Rows, publishedRows...)
	if err != nil {
		return result, err
	}
	networks, err := train(ctx, o, all, training, copies)
	if err != nil {
		return result, err
	}
	found, finished, err := run.Repeat(ctx, o, "digits", len(all)*count, func(_ context.Context, i int) (certified, error) {
		c, digit := i/count, i%count
		work := digitWork{condition: all[c], network: networks[c], draws: draws, alpha: failure / float64(len(all)*count*eventsPerDigit)}
		return work.digit(others.Row(digit), others.Y[digit], seeds.Of(o.Seed, 3, uint64(i)))
	})
	var digitRows []run.Row
	for c := range all {
		if run.AllFinished(finished[c*count : (c+1)*count]) {
			digitRows = append(digitRows, rowsOf(all[c], found[c*count:(c+1)*count], draws)...)
		}
	}
	result.Complete = err == nil
	result.Rows = append(result.Rows, digitRows...)
	result.Summary = append(tableOf(digitRows), undefendedTable(bareRows)...)
	for _, p := range papers {
		result.Summary = append(result.Summary, p.table(publishedRows)...)
	}
	if result.Complete {
		checksOf(&checks, all, found, count)
		err = formulaChecks(&checks)
		for _, p := range papers {
			err = errors.Join(err, p.checks(&checks, o.Quick))
		}
	}
	result.Checks = checks.Decide()
	result.Notes = []string{
		fmt.Sprintf("Each of %d models learns from %d digits of 8x8 pixels in [0,1], %d noisy copies of each, with the noise that it is smoothed by.",
			len(all), trainingDigits, copies),
		fmt.Sprintf("%d digits that none has seen are certified by %d draws, in up to %d ways from the same draws; all certificates together, and what is "+
			"said of attacks inside a radius, hold with probability %v.", count, draws, len(ways(certify.Gaussian)), 1-failure),
		fmt.Sprintf("Every prediction is attacked by projected gradient descent (%d steps, %d draws for each gradient) at %v of its largest certified radius, "+
			"then at growing and halved sizes for the smallest that succeeds, whose mean is in brackets. Sizes are in the norm that goes with the noise, L2 for "+
			"Gaussian and L1 for Laplace.", attackSteps, attackDraws, inside),
		"The undefended models learn from the digits as they are, and predict without noise. They are attacked in the same way, in either norm, at growing sizes.",
		fmt.Sprintf("Where the distance of the boundary is known and the certificates are tight (a half-space for Gaussian noise, a threshold of one number for Laplace "+
			"noise), %d rows are certified in all ways, by %d draws each: no radius may end beyond the boundary.", exactRows, exactDraws),
		fmt.Sprintf("Certified accuracy is measured at the settings of Cohen et al. (alpha %v; %d draws%s) and of PixelDP (epsilon %v, delta %v, alpha %v, %d draws): "+
			"%d runs, each with a perceptron that learns with fresh noise in every epoch, and %d digits of its own. An independent program says what is to be expected.", cohenAlpha,
			papers[0].all[0].draws, ofMNIST(papers), pixelDPEpsilon, pixelDPDelta, pixelDPAlpha, pixelDraws(o.Quick), min(runs, count), certifiedEach(o.Quick)),
		fmt.Sprintf("Bounds are tried on %d runs of %d draws of labels and scores whose mean is known.", boundRuns, boundDraws),
	}
	if len(digitRows) > 0 {
		result.Figures = figuresOf(all, found, finished, count, plain)
	}
	for _, p := range papers {
		result.Figures = append(result.Figures, p.figures()...)
	}
	return result, err
}

// ofMNIST is the note's word on MNIST.
func ofMNIST(papers []published) string {
	if len(papers) == 1 {
		return "; MNIST is left out, which --mnist reads"
	}
	return fmt.Sprintf(", for MNIST %d", papers[1].all[0].draws)
}

// train trains a network for each condition. What it leaves in the checkpoint are parameters.
func train(ctx context.Context, o run.Options, all []condition, training learn.Data, copies int) ([]*learn.Network, error) {
	params, _, err := run.Repeat(ctx, o, "training", len(all), func(ctx context.Context, i int) ([]float64, error) {
		s := noise.Seeded(seeds.Of(o.Seed, 2, uint64(i)))
		network := all[i].model.network(s)
		data := noisyCopies(training, copies, all[i].noise, seeds.Of(o.Seed, 2, uint64(i), 1))
		if err := network.Train(ctx, data, all[i].model.plain, s); err != nil {
			return nil, fmt.Errorf("experiments: %v: %w", all[i], err)
		}
		return network.Params(), nil
	})
	if err != nil {
		return nil, err
	}
	networks := make([]*learn.Network, len(all))
	for i, c := range all {
		networks[i] = c.model.network(noise.Seeded(0))
		copy(networks[i].Params(), params[i])
	}
	return networks, nil
}

// eventsPerDigit are the certificates of one digit under one condition: in each way, and one where every attack inside a
// radius ended.
const eventsPerDigit = 9 + 2*insideTries
