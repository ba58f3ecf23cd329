package freedman

import (
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// productCut is where products of two standard normal variables are cut for a row function in [0,1]: one in two hundred is cut.
const productCut = 4.0

// game is one run of the analyst against a holdout.
type game struct {
	Told   float64 `json:"told"` // how often the prediction hits the response's sign
	Low    float64 `json:"low"`  // interval of Told, the mechanism's or the plain one
	High   float64 `json:"high"`
	Missed bool    `json:"missed"` // some interval of the run
}

// noisePart is one part of the noise: columns come from seeds of their own, so that none has to be kept.
type noisePart struct {
	seed     uint64
	response []float64
	score    []float64
}

func newNoisePart(seed uint64, n int64) *noisePart {
	p := &noisePart{seed: seed, response: make([]float64, n), score: make([]float64, n)}
	r := p.column(-1)
	for i := range p.response {
		p.response[i] = r.NormFloat64()
	}
	return p
}

func (p *noisePart) column(j int) *rand.Rand { return rand.New(rand.NewPCG(p.seed, uint64(j+1))) }

// product has the cut products of a column and the response, from 0 to 1.
func (p *noisePart) product(j int) (sums moments.Sums) {
	r := p.column(j)
	for _, y := range p.response {
		v := max(-productCut, min(r.NormFloat64()*y, productCut))
		sums.Add(int64(math.Round((v + productCut) / (2 * productCut) * float64(rowfn.One))))
	}
	return sums
}

// weigh adds a column to the prediction.
func (p *noisePart) weigh(j int, weight float64) {
	r := p.column(j)
	for i := range p.score {
		p.score[i] += weight * r.NormFloat64()
	}
}

// hits is how often the prediction has the sign of the response.
func (p *noisePart) hits() (sums moments.Sums) {
	for i, s := range p.score {
		hit := int64(0)
		if s*p.response[i] > 0 {
			hit = rowfn.One
		}
		sums.Add(hit)
	}
	return sums
}

// playAnalyst plays the analyst once.
func playAnalyst(p thresholdout.Guarantee, seed uint64) (game, error) {
	holdout, training := newNoisePart(run.SeedOf(seed, 1), p.N), newNoisePart(run.SeedOf(seed, 2), p.Training)
	o := &analysts.Referee{Oracle: analysts.NewHoldout(p, run.SeedOf(seed, 3))}
	ask := func(binary bool, of func(part *noisePart) moments.Sums) (float64, *thresholdout.Interval, error) {
		mean := func(part *noisePart) thresholdout.Mean { return thresholdout.Mean{Sum: of(part).Sum, N: p.N} }
		checked := func(part *noisePart) thresholdout.RootSums {
			return thresholdout.RootSums{All: p.N, Sums: of(part), Binary: binary}
		}
		return o.Ask(analysts.Question{Truth: 0.5,
			Holdout:  func(int64, int64) thresholdout.Mean { return mean(holdout) },
			Training: func() thresholdout.Mean { return mean(training) },
			Checked:  func(int64, int64) (_, _ thresholdout.RootSums) { return checked(holdout), checked(training) }})
	}
	products, squares := make([]float64, p.Questions-1), 0.0
	for j := range products {
		told, _, err := ask(false, func(part *noisePart) moments.Sums { return part.product(j) })
		if err != nil {
			return game{}, err
		}
		products[j] = told - 0.5
		squares += products[j] * products[j]
	}
	limit := screeningQuantile() * math.Sqrt(squares/float64(len(products)))
	for j, v := range products {
		if math.Abs(v) > limit {
			holdout.weigh(j, v)
			training.weigh(j, v)
		}
	}
	told, interval, err := ask(true, (*noisePart).hits)
	if err != nil {
		return game{}, err
	}
	if interval == nil {
		half := 1.96 * math.Sqrt(told*(1-told)/float64(p.N))
		interval = &thresholdout.Interval{Low: told - half, High: told + half}
	}
	return game{Told: told, Low: interval.Low, High: interval.High, Missed: o.Game.Missed}, nil
}

// fitOfHits is the R2 of a prediction that is jointly normal with the response and hits its sign so often.
func fitOfHits(hits float64) float64 {
	correlation := math.Sin(math.Pi * (max(0.5, hits) - 0.5))
	return correlation * correlation
}
