package manyquestions

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/pmw"
	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// law is the probability of each cell: the i-th in proportion to 1/i.
var law = func() (p [domain]float64) {
	total := 0.0
	for i := range p {
		p[i] = 1 / float64(i+1)
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}()

// table is how many rows each cell has.
type table [domain]int64

// drawn are rows of the law.
func drawn(n int64, r *rand.Rand) (t table) {
	for range n {
		x, at := r.Float64(), 0
		for at < domain-1 && x >= law[at] {
			x -= law[at]
			at++
		}
		t[at]++
	}
	return t
}

// question is a set of cells, a bit for each.
type question uint64

// truth is its probability.
func (q question) truth() (sum float64) {
	for rest := uint64(q); rest != 0; rest &= rest - 1 {
		sum += law[bits.TrailingZeros64(rest)]
	}
	return sum
}

// count is how many rows it has.
func (q question) count(t *table) (sum int64) {
	for rest := uint64(q); rest != 0; rest &= rest - 1 {
		sum += t[bits.TrailingZeros64(rest)]
	}
	return sum
}

// where are the cells that satisfy a condition.
func where(holds func(i int) bool) (q question) {
	for i := range domain {
		if holds(i) {
			q |= 1 << i
		}
	}
	return q
}

// answers is who answers.
type answers interface {
	// ask returns the answer to a question, and whether it is farther off than was promised.
	ask(q question, truth float64) (value float64, missed bool, err error)
}

// mechanism answers as a server's does.
type mechanism struct {
	oracle            *analysts.Holdout
	holdout, training table
}

func (m *mechanism) ask(q question, truth float64) (float64, bool, error) {
	mean := func(t *table, n int64) thresholdout.Mean {
		return thresholdout.Mean{Sum: q.count(t) * rowfn.One, N: n}
	}
	g := m.oracle.Guarantee
	value, interval, err := m.oracle.Ask(analysts.Question{Truth: truth,
		Holdout:  func(int64, int64) thresholdout.Mean { return mean(&m.holdout, g.N) },
		Training: func() thresholdout.Mean { return mean(&m.training, g.Training) }})
	if err != nil {
		return 0, false, err
	}
	return value, truth < interval.Low || truth > interval.High, nil
}

// weights answers by private multiplicative weights, which promise how far from the table an answer is.
type weights struct {
	run      *pmw.Run
	holdout  table
	rows     float64
	promised float64
	asked    [domain]uint32
}

func (w *weights) ask(q question, _ float64) (float64, bool, error) {
	for i := range w.asked {
		w.asked[i] = uint32(q>>i&1) * pmw.One
	}
	a, err := w.run.Ask(w.asked[:])
	return a.Value, math.Abs(a.Value-float64(q.count(&w.holdout))/w.rows) > w.promised, err
}

// play lets one analyst ask about random sets of cells, and last about those cells of which the answers say that the holdout has too many rows.
func (c *cell) play(seed uint64) (out outcome, err error) {
	r := rand.New(rand.NewPCG(seeds.Of(seed, 1), 0))
	holdout := drawn(c.n, r)
	var oracle answers
	var private *pmw.Run
	served := &mechanism{holdout: holdout}
	if c.method == byWeights {
		if private, err = c.settings.Start(holdout[:], noise.Seeded(seeds.Of(seed, 2))); err != nil {
			return out, fmt.Errorf("experiments: many-questions: %w", err)
		}
		oracle = &weights{run: private, holdout: holdout, rows: float64(c.n), promised: c.settings.Accuracy(float64(c.k), 1-confidence)}
	} else {
		served.oracle = analysts.NewHoldout(c.guarantee, seeds.Of(seed, 2))
		if c.guarantee.UsesTraining() {
			served.training = drawn(c.guarantee.Training, rand.New(rand.NewPCG(seeds.Of(seed, 3), 0)))
		}
		oracle = served
	}
	var excess [domain]float64
	for j := range c.k {
		q := question(r.Uint64())
		switch {
		case j < c.k-1:
		case private != nil: // whose guess is public: where it has too little is what it answers worst
			guess := private.Guess()
			q = where(func(i int) bool { return law[i] > guess[i] })
		default:
			q = where(func(i int) bool { return excess[i] > 0 })
		}
		truth := q.truth()
		value, missed, err := oracle.ask(q, truth)
		if err != nil {
			return out, fmt.Errorf("experiments: many-questions: %w", err)
		}
		out.Last = math.Abs(value - truth)
		out.Largest = max(out.Largest, out.Last)
		out.Missed = out.Missed || missed
		for i := range excess {
			excess[i] += float64(2*int(q>>i&1)-1) * (value - truth)
		}
	}
	if private != nil {
		out.Mended = c.settings.Updates - private.Left()
	} else {
		out.Tokens = served.oracle.State.Tokens
	}
	return out, nil
}
