package learn

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// chunk is how many rows go through a network together: products of this size stay in the cache, and gonum computes
// them in the calling goroutine while no layer is wider than three of its blocks of 64.
const chunk = 64

// Named rather than blas64's, which a program may replace: the same numbers whatever else is linked.
var engine gonum.Implementation

// Pass holds what a network computes for some rows: buffers that are used again, so that a loop allocates nothing.
// A Pass is for one goroutine; many may share a network.
type Pass struct {
	n       *Network
	rows    int         // of the last Scores
	inputs  [][]float64 // of each layer, rows x in; the first is the caller's
	deltas  [][]float64 // gradient with respect to each layer's affine output, rows x out
	scores  []float64
	factors []float64
}

// NewPass returns room for up to rows rows at a time.
func (n *Network) NewPass(rows int) *Pass {
	p := &Pass{n: n, scores: make([]float64, rows*n.Classes()), factors: make([]float64, rows), inputs: make([][]float64, len(n.layers)), deltas: make([][]float64, len(n.layers))}
	for i, l := range n.layers {
		p.deltas[i] = make([]float64, rows*l.out)
		if i > 0 {
			p.inputs[i] = make([]float64, rows*l.in)
		}
	}
	return p
}

// Scores returns the scores of the rows in x (row-major), a row of Classes() for each. They are the Pass's own until its
// next call.
func (p *Pass) Scores(x []float64) []float64 {
	dim := p.n.Dim()
	p.rows = len(x) / dim
	if p.rows*dim != len(x) || p.rows > len(p.factors) {
		panic(fmt.Sprintf("learn: %d numbers in a pass of %d rows of %d", len(x), len(p.factors), dim))
	}
	p.inputs[0] = x
	for i, l := range p.n.layers {
		out := p.scores
		if i+1 < len(p.n.layers) {
			out = p.inputs[i+1]
		}
		out = out[:p.rows*l.out]
		for r := range p.rows {
			copy(out[r*l.out:(r+1)*l.out], l.biases)
		}
		engine.Dgemm(blas.NoTrans, blas.Trans, p.rows, l.out, l.in, 1, p.inputs[i], l.in, l.weights, l.in, 1, out, l.out)
		if i+1 < len(p.n.layers) {
			tanhs(out)
		}
	}
	return p.scores[:p.rows*p.n.Classes()]
}

func tanhs(dst []float64) {
	for i, v := range dst {
		dst[i] = math.Tanh(v)
	}
}

// outputDeltas makes the last layer's deltas, probability minus indicator, and returns the sum of the rows' losses.
func (p *Pass) outputDeltas(labels []int) float64 {
	classes, last := p.n.Classes(), p.deltas[len(p.deltas)-1]
	loss := 0.0
	for r, y := range labels {
		scores, delta := p.scores[r*classes:(r+1)*classes], last[r*classes:(r+1)*classes]
		loss += SoftmaxTo(delta, scores) - scores[y]
		delta[y]--
	}
	return loss
}

// backward fills the deltas of all layers for the rows of the last Scores and returns the sum of their losses.
func (p *Pass) backward(labels []int) float64 {
	loss := p.outputDeltas(labels)
	for i := len(p.n.layers) - 1; i > 0; i-- {
		l := p.n.layers[i]
		delta, units := p.deltas[i-1][:p.rows*l.in], p.inputs[i]
		engine.Dgemm(blas.NoTrans, blas.NoTrans, p.rows, l.in, l.out, 1, p.deltas[i], l.out, l.weights, l.in, 0, delta, l.in)
		for k := range delta {
			delta[k] *= 1 - units[k]*units[k]
		}
	}
	return loss
}

// InputGradients writes the gradient of each row's cross-entropy with respect to that row to dst (as long as x) and
// returns the sum of the losses.
func (p *Pass) InputGradients(dst, x []float64, labels []int) float64 {
	p.Scores(x)
	loss := p.backward(labels)
	l := p.n.layers[0]
	engine.Dgemm(blas.NoTrans, blas.NoTrans, p.rows, l.in, l.out, 1, p.deltas[0], l.out, l.weights, l.in, 0, dst, l.in)
	return loss
}

// squaredNorms writes the squared Euclidean norm of each row's own gradient with respect to all parameters to dst.
// No such gradient is built: of an affine layer it is the outer product of delta and input, so its squared norm is
// |delta|^2 (|input|^2 + 1), the one for the bias (Goodfellow, arXiv 1510.01799).
func (p *Pass) squaredNorms(dst []float64) {
	clear(dst[:p.rows])
	for i, l := range p.n.layers {
		for r := range p.rows {
			dst[r] += square(p.deltas[i][r*l.out:(r+1)*l.out]) * (square(p.inputs[i][r*l.in:(r+1)*l.in]) + 1)
		}
	}
}

func square(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return sum
}

// addGradients adds the sum of the rows' gradients, as the deltas stand, to dst.
func (p *Pass) addGradients(dst []layer) {
	for i, l := range dst {
		engine.Dgemm(blas.Trans, blas.NoTrans, l.out, l.in, p.rows, 1, p.deltas[i], l.out, p.inputs[i], l.in, 1, l.weights, l.in)
		for r := range p.rows {
			for k, d := range p.deltas[i][r*l.out : (r+1)*l.out] {
				l.biases[k] += d
			}
		}
	}
}

// clip scales each row's deltas so that its gradient has norm at most limit. A row whose gradient overflows counts
// for nothing.
func (p *Pass) clip(limit float64) {
	p.squaredNorms(p.factors)
	for r, squared := range p.factors[:p.rows] {
		switch {
		case !(squared <= math.MaxFloat64):
			p.factors[r] = 0
		case squared <= limit*limit:
			p.factors[r] = 1
		default:
			p.factors[r] = limit / math.Sqrt(squared)
		}
	}
	for i, l := range p.n.layers {
		for r, f := range p.factors[:p.rows] {
			delta := p.deltas[i][r*l.out : (r+1)*l.out]
			if f == 0 {
				clear(delta) // a delta that is not finite times 0 is not 0
				continue
			}
			for k := range delta {
				delta[k] *= f
			}
		}
	}
}
