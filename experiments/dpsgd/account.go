package dpsgd

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// accounting says what a number of steps spends at delta; all are valid for the same training.
type accounting struct {
	name    string
	epsilon func(o learn.Private, steps int) float64
}

var accountings = []accounting{
	{"Rényi divergence of Poisson batches", func(o learn.Private, steps int) float64 {
		spent := account.NewRDP()
		spent.SubsampledGaussian(o.Sampling, o.Multiplier, steps)
		eps, _ := spent.Epsilon(delta)
		return eps
	}},
	{"advanced composition of sampled steps", stepByStep},
	{"Gaussian DP as if every batch were all", func(o learn.Private, steps int) float64 {
		return account.GDP(math.Sqrt(float64(steps)) / o.Multiplier).Epsilon(delta)
	}},
}

// stepByStep gives half of delta to the steps and half to their composition.
func stepByStep(o learn.Private, steps int) float64 {
	each := delta / 2 / float64(steps)
	whole := account.GaussianGDP(1, o.Multiplier).Epsilon(min(1, each/o.Sampling))
	sampled := account.Approximate{Epsilon: whole}.Sampled(o.Sampling).Epsilon
	return account.Pure{Epsilon: sampled, Delta: each, K: steps}.Advanced(delta / 2)
}

// publishedSteps is a training whose epsilon public code has computed.
var publishedSteps = learn.Private{Steps: 1000, Sampling: 0.01, Multiplier: 1.1}

// What google/differential-privacy's dp_accounting says of it at delta 1e-5, by Rényi divergence, and the same by the
// privacy loss distribution, which is nearly exact.
const (
	publishedRenyi = 1.7117701662
	publishedExact = 1.5153702482
)

// abadiSteps is the example of section 4 of Abadi et al. (arXiv 1607.00133): sampling 0.01, noise 4, 10,000 steps, delta 1e-5. The paper says 1.26 by its account of
// moments and 9.34 by strong composition.
var abadiSteps = learn.Private{Steps: 10_000, Sampling: 0.01, Multiplier: 4}

const (
	abadiMoments = 1.26   // the paper, with its conversion epsilon = rho + ln(1/delta)/(alpha-1) over whole orders
	abadiRenyi   = 1.0355 // google/differential-privacy's dp_accounting, with the newer conversion
)

// momentsEpsilon is Abadi's conversion of a Renyi curve: theorem 2.2, over the orders that the account has.
func momentsEpsilon(spent *account.RDP) float64 {
	best := math.Inf(1)
	orders, divergences := spent.Orders()
	for i, order := range orders {
		best = min(best, divergences[i]+math.Log(1/delta)/(order-1))
	}
	return best
}

func accountComparisons() []checks.Comparison {
	ours, advanced := accountings[0].epsilon(publishedSteps, publishedSteps.Steps), accountings[1].epsilon(publishedSteps, publishedSteps.Steps)
	abadi := account.NewRDP()
	abadi.SubsampledGaussian(abadiSteps.Sampling, abadiSteps.Multiplier, abadiSteps.Steps)
	newer, _ := abadi.Epsilon(delta)
	return []checks.Comparison{
		checks.Exactly("epsilon of Abadi et al.'s example (10,000 steps, sampling rate 0.01, noise 4, delta 1e-5) by their conversion, against the paper", abadiMoments, 0.005, momentsEpsilon(abadi)),
		checks.Exactly("the same by the newer conversion, against dp_accounting", abadiRenyi, 1e-4, newer),
		checks.Exactly("epsilon of 1000 steps at sampling rate 0.01, noise 1.1, delta 1e-5, against dp_accounting's by Rényi divergence", publishedRenyi, 1e-6, ours),
		checks.NotBelow("the same against its nearly exact privacy loss distribution: an account may not promise too much", publishedExact, ours),
		checks.NotBelow("the same by advanced composition of sampled steps, which the account of moments is to be below", ours, advanced),
	}
}

// drawAccount draws epsilon against steps of publishedSteps' kind, by each account.
func drawAccount() (*plot.Plot, error) {
	p := figure.New("What steps spend: sampling rate 0.01, noise 1.1, delta 1e-5", "steps", "epsilon")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = figure.LogTicks, figure.LogTicks
	for i, a := range accountings {
		var points plotter.XYs
		for exponent := 0.0; exponent <= 4; exponent += 0.25 {
			steps := math.Round(math.Pow(10, exponent))
			points = append(points, plotter.XY{X: steps, Y: a.epsilon(publishedSteps, int(steps))})
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle, marks.GlyphStyle = figure.Line(i), figure.Mark(i)
		p.Add(line, marks)
		p.Legend.Add(a.name, line, marks)
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}
