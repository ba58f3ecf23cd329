package analysts

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// Trace is the tracing attack (Homer et al. 2008; Dwork, Smith, Steinke, Ullman and Vadhan 2015): after answers about columns that say nothing about each other it scores units by how well they fit
// the answers. It returns the scores of the holdout's units and of as many strangers of the same population, whom no answer was about. Scores of strangers have mean 0 and variance 1. It asks while keep
// says so, which is told how many questions were asked.
func Trace(o Oracle, seed uint64, n, training int64, weight Weighting, keep func(asked int64) bool) (members, strangers []float64, err error) {
	far := 0.0
	c := newCoins(seed, n, n) // the strangers are where other analysts have the training part
	norm := 0.0
	for j := int64(0); o.Remaining() > 0 && keep(j); j++ {
		q := c.column(int(j))
		// As KnowsTraining does it: the training part is useless, so that each answer comes from the holdout.
		q.Training = func() thresholdout.Mean { return thresholdout.Mean{N: training} }
		q.Guess = &thresholdout.Guess{Value: &far}
		answer, _, err := o.Ask(q)
		if err != nil {
			return nil, nil, err
		}
		w := weight(answer, j)
		c.weigh(int(j), w)
		norm += w * w
	}
	c.settle()
	if norm > 0 {
		for _, scores := range [][]float64{c.holdout.score, c.training.score} {
			for i := range scores {
				scores[i] /= math.Sqrt(norm)
			}
		}
	}
	return c.holdout.score, c.training.score, nil
}
