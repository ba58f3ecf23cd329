package analysts

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// domain is a finite population of equally likely elements, of which holdout and training part are drawn with
// replacement. An analyst who finds out which elements the holdout has in it asks for just these.
type domain struct {
	holdout, training []int32   // the element of each unit
	drift             []float64 // of each element: evidence that the holdout has it
	value             []bool    // of the question that is asked
	random            *rand.Rand
}

// elementsPerUnit: small enough that the analyst's arrays are cheap, large enough that most elements are not in the holdout.
const elementsPerUnit = 4

func newDomain(seed uint64, n, training int64) *domain {
	size := elementsPerUnit * n
	d := &domain{drift: make([]float64, size), value: make([]bool, size), random: rand.New(rand.NewPCG(seeds.Of(seed, 2), 0)),
		holdout: make([]int32, n), training: make([]int32, training)}
	for _, part := range [][]int32{d.holdout, d.training} {
		for i := range part {
			part[i] = int32(d.random.Int64N(size))
		}
	}
	return d
}

// coin asks about a random subset of the domain that has each element with probability p.
func (d *domain) coin(p float64) Question {
	limit := uint32(p * (1 << 32))
	for i := 0; i < len(d.value); i += 2 {
		u := d.random.Uint64()
		d.value[i] = uint32(u) < limit
		if i+1 < len(d.value) {
			d.value[i+1] = uint32(u>>32) < limit
		}
	}
	return d.question()
}

// learn moves the evidence: where the answer is above what was expected, elements of the subset are likelier to be in the holdout.
func (d *domain) learn(p, answer float64) {
	for i, v := range d.value {
		if v {
			d.drift[i] += (answer - p) * (1 - p)
		} else {
			d.drift[i] -= (answer - p) * p
		}
	}
}

// suspects asks about as many elements as the holdout has units: those with the most evidence.
func (d *domain) suspects() Question {
	order := make([]int, len(d.drift))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(d.drift[b], d.drift[a]), a-b) })
	clear(d.value)
	for _, i := range order[:len(d.holdout)] {
		d.value[i] = true
	}
	return d.question()
}

func (d *domain) question() Question {
	count := 0
	for _, v := range d.value {
		if v {
			count++
		}
	}
	mean := func(units []int32) thresholdout.Mean {
		m := thresholdout.Mean{N: int64(len(units))}
		for _, u := range units {
			if d.value[u] {
				m.Sum += rowfn.One
			}
		}
		return m
	}
	return Question{
		Truth:    float64(count) / float64(len(d.value)),
		Holdout:  func(from, to int64) thresholdout.Mean { return mean(d.holdout[from:to]) },
		Training: func() thresholdout.Mean { return mean(d.training) },
	}
}
