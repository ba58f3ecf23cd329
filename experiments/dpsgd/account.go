package dpsgd

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/experiments/run"
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

// stepByStep gives half of delta to the steps and half to their composition. A step that is (e, d)-private on a batch is
// (ln(1 + q (e^e - 1)), q d)-private on a Poisson sample (arXiv 1807.01647).
func stepByStep(o learn.Private, steps int) float64 {
	each := delta / 2 / float64(steps)
	whole := account.GaussianGDP(1, o.Multiplier).Epsilon(min(1, each/o.Sampling))
	sampled := math.Log1p(o.Sampling * math.Expm1(whole))
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

// abadiSteps are those of Abadi et al. (arXiv 1607.00133, section 5: sampling 0.01, noise 4, 10,000 steps). Their moments accountant says abadiMoments by an older conversion
// to epsilon; by the newer one, of dp_accounting too, it is abadiRenyi.
var abadiSteps = learn.Private{Steps: 10_000, Sampling: 0.01, Multiplier: 4}

const (
	abadiMoments = 1.26
	abadiRenyi   = 1.0355
)

// byMoments is the epsilon of Abadi et al., theorem 2: the least over moments from 1 to 32 of what steps spend at the order one above, and ln(1/delta) over the moment.
func byMoments(o learn.Private) float64 {
	var orders []float64
	for moment := 1.; moment <= 32; moment++ {
		orders = append(orders, moment+1)
	}
	spent := account.NewRDP(orders...)
	spent.SubsampledGaussian(o.Sampling, o.Multiplier, o.Steps)
	least := math.Inf(1)
	orders, divergences := spent.Orders()
	for i, d := range divergences {
		least = min(least, d+math.Log(1/delta)/(orders[i]-1))
	}
	return least
}

func accountChecks(checks *run.Checks) {
	renyi := accountings[0].epsilon
	ours, advanced := renyi(publishedSteps, publishedSteps.Steps), accountings[1].epsilon(publishedSteps, publishedSteps.Steps)
	checks.Arithmetic("epsilon of 1000 steps at sampling rate 0.01, noise 1.1, delta 1e-5, against dp_accounting's by Rényi divergence", publishedRenyi, 1e-6, ours)
	checks.Arithmetic("epsilon of 10,000 steps at sampling rate 0.01, noise 4, delta 1e-5, against the same", abadiRenyi, 5e-5, renyi(abadiSteps, abadiSteps.Steps))
	checks.Arithmetic("epsilon of the same steps by the moments accountant, against Abadi et al., who say two decimals", abadiMoments, 0.005/abadiMoments, byMoments(abadiSteps))
	checks.Stated(0, run.Check{What: "the first against dp_accounting's nearly exact privacy loss distribution", Expected: publishedExact, Got: ours, Low: ours, High: ours,
		Criterion: "at least: an account may not promise too much", Notices: fmt.Sprintf("an account of less than %.3g of what it says", publishedExact/ours), Agrees: ours >= publishedExact})
	checks.Stated(0, run.Check{What: "the first by advanced composition of sampled steps", Expected: ours, Got: advanced, Low: advanced, High: advanced,
		Criterion: "at least twice: what the account of moments is for", Notices: fmt.Sprintf("a composition that says %.2g of what it does", 2*ours/advanced), Agrees: advanced >= 2*ours})
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
