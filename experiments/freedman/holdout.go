package freedman

import (
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
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

// product is the mean of the cut product of a column and the response, from 0 to 1.
func (p *noisePart) product(j int) thresholdout.Mean {
	r, sum := p.column(j), int64(0)
	for _, y := range p.response {
		v := max(-productCut, min(r.NormFloat64()*y, productCut))
		sum += int64(math.Round((v + productCut) / (2 * productCut) * float64(rowfn.One)))
	}
	return thresholdout.Mean{Sum: sum, N: int64(len(p.response))}
}

// weigh adds a column to the prediction.
func (p *noisePart) weigh(j int, weight float64) {
	r := p.column(j)
	for i := range p.score {
		p.score[i] += weight * r.NormFloat64()
	}
}

// hits is how often the prediction has the sign of the response.
func (p *noisePart) hits() thresholdout.Mean {
	count := int64(0)
	for i, s := range p.score {
		if s*p.response[i] > 0 {
			count++
		}
	}
	return thresholdout.Mean{Sum: count * rowfn.One, N: int64(len(p.score))}
}

// playAnalyst plays the analyst once.
func playAnalyst(p thresholdout.Guarantee, seed uint64) (game, error) {
	holdout, training := newNoisePart(seeds.Of(seed, 1), p.N), newNoisePart(seeds.Of(seed, 2), p.Training)
	o := &analysts.Referee{Oracle: analysts.NewHoldout(p, seeds.Of(seed, 3))}
	ask := func(of func(part *noisePart) thresholdout.Mean) (float64, *thresholdout.Interval, error) {
		return o.Ask(analysts.Question{Truth: 0.5,
			Holdout:  func(int64, int64) thresholdout.Mean { return of(holdout) },
			Training: func() thresholdout.Mean { return of(training) }})
	}
	products, squares := make([]float64, p.Questions-1), 0.0
	for j := range products {
		told, _, err := ask(func(part *noisePart) thresholdout.Mean { return part.product(j) })
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
	told, interval, err := ask((*noisePart).hits)
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
