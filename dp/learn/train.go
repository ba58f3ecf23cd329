package learn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Plain are the settings of training without privacy. The zero value of a field means its default.
type Plain struct {
	Epochs   int     // passes over the data (DefaultEpochs)
	Batch    int     // rows of a step (DefaultBatch)
	Rate     float64 // learning rate (DefaultRate)
	Momentum float64 // in [0,1) (0)
	Decay    float64 // weight of half the squared norm of the parameters in the loss (0)
}

// Defaults that suit features in [0,1] and a few thousand rows.
const (
	DefaultEpochs = 60
	DefaultBatch  = 32
	DefaultRate   = 0.1
)

func (o Plain) filled() (Plain, error) {
	if o.Epochs == 0 {
		o.Epochs = DefaultEpochs
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Epochs < 1 || o.Batch < 1 || !(o.Rate > 0 && o.Rate < math.Inf(1)) || !(o.Momentum >= 0 && o.Momentum < 1) || !(o.Decay >= 0 && o.Decay < math.Inf(1)) {
		return o, fmt.Errorf("%w: %+v", ErrSettings, o)
	}
	return o, nil
}

// Train minimises the mean cross-entropy by stochastic gradient descent, from the parameters that the network has. The
// order of the rows comes from s. A cancelled context ends it between two epochs with the context's error.
func (n *Network) Train(ctx context.Context, d Data, o Plain, s *noise.Stream) error {
	o, err := o.filled()
	if err != nil {
		return err
	}
	if err := d.check(n.Dim(), n.Classes()); err != nil {
		return err
	}
	order := make([]int, d.Len())
	for i := range order {
		order[i] = i
	}
	r, sum, descent := rand.New(s), newBatchSum(n), newDescent(n, o.Rate, o.Momentum)
	for range o.Epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for from := 0; from < len(order); from += o.Batch {
			rows := order[from:min(from+o.Batch, len(order))]
			sum.of(d, rows, math.Inf(1))
			for i := range sum.gradient {
				sum.gradient[i] = sum.gradient[i]/float64(len(rows)) + o.Decay*n.params[i]
			}
			descent.step(sum.gradient)
		}
	}
	return nil
}

// batchSum sums the gradients of a batch, chunk by chunk.
type batchSum struct {
	gradient []float64 // shaped like the parameters
	layers   []layer   // views of it
	pass     *Pass
	x        []float64
	y        []int
}

func newBatchSum(n *Network) *batchSum {
	b := &batchSum{gradient: make([]float64, len(n.params)), pass: n.NewPass(chunk), x: make([]float64, chunk*n.Dim()), y: make([]int, chunk)}
	b.layers = n.views(b.gradient)
	return b
}

// of makes gradient the sum of the named rows' gradients, each clipped to norm limit.
func (b *batchSum) of(d Data, rows []int, limit float64) {
	clear(b.gradient)
	for len(rows) > 0 {
		some := rows[:min(chunk, len(rows))]
		rows = rows[len(some):]
		for k, i := range some {
			copy(b.x[k*d.Dim:], d.Row(i))
			b.y[k] = d.Y[i]
		}
		b.pass.Scores(b.x[:len(some)*d.Dim])
		b.pass.backward(b.y[:len(some)])
		if !math.IsInf(limit, 1) {
			b.pass.clip(limit)
		}
		b.pass.addGradients(b.layers)
	}
}

// descent is gradient descent with heavy-ball momentum.
type descent struct {
	params, velocity []float64
	rate, momentum   float64
}

func newDescent(n *Network, rate, momentum float64) *descent {
	return &descent{n.params, make([]float64, len(n.params)), rate, momentum}
}

func (g *descent) step(gradient []float64) {
	for i, v := range gradient {
		g.velocity[i] = g.momentum*g.velocity[i] + v
		g.params[i] -= g.rate * g.velocity[i]
	}
}

// The constants of Adam that its authors propose.
const (
	adamDecay   = 0.9
	adamSquares = 0.999
	adamLeast   = 1e-8
)

// adam is Algorithm 1 of Kingma and Ba.
type adam struct {
	params, mean, square []float64
	rate, decay          float64
	unbias1, unbias2     float64 // powers of the decays
}

func (a *adam) step(gradient []float64) {
	a.unbias1 *= a.decay
	a.unbias2 *= adamSquares
	for i, v := range gradient {
		a.mean[i] = a.decay*a.mean[i] + (1-a.decay)*v
		a.square[i] = adamSquares*a.square[i] + (1-adamSquares)*v*v
		a.params[i] -= a.rate * (a.mean[i] / (1 - a.unbias1)) / (math.Sqrt(a.square[i]/(1-a.unbias2)) + adamLeast)
	}
}
