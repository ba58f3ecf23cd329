package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Model is a classifier whose loss can be differentiated. Its methods may be called concurrently.
type Model interface {
	Dim() int     // features of a row
	Classes() int // at least 2
	// Scores returns a new slice with one real score for each class: the prediction is the largest, and Softmax makes
	// them probabilities. It panics when x has not Dim() numbers.
	Scores(x []float64) []float64
	// InputGradient writes the gradient, with respect to x, of the cross-entropy -ln Softmax(Scores(x))[label] to dst
	// (Dim() numbers) and returns that loss.
	InputGradient(dst, x []float64, label int) float64
}

// Network is a fully connected network: an affine layer, or several with tanh between them, then softmax. It implements
// Model; training it while it is read is a race.
type Network struct {
	sizes  []int     // features, hidden units of each layer, classes
	layers []layer   // views of params
	params []float64 // of each layer: weights, row-major by unit, then biases
}

type layer struct {
	in, out int
	weights []float64 // out x in
	biases  []float64
}

var _ Model = (*Network)(nil)

// Softmax returns multinomial logistic regression with all weights 0: one affine layer. With two classes it is logistic
// regression, also under clipping and noise: the pair of weight vectors moves like their difference.
func Softmax(dim, classes int) *Network { return network([]int{dim, classes}) }

// Perceptron returns a network with hidden layers of tanh units, its weights uniform as Glorot and Bengio (AISTATS 2010)
// propose, which depends on nothing but the stream.
func Perceptron(s *noise.Stream, dim int, hidden []int, classes int) *Network {
	n := network(slices.Concat([]int{dim}, hidden, []int{classes}))
	r := rand.New(s)
	for _, l := range n.layers {
		limit := math.Sqrt(6 / float64(l.in+l.out))
		for i := range l.weights {
			l.weights[i] = limit * (2*r.Float64() - 1)
		}
	}
	return n
}

func network(sizes []int) *Network {
	total := 0
	for i, size := range sizes {
		if size < 1 || i == len(sizes)-1 && size < 2 {
			panic(fmt.Sprintf("learn: a network of sizes %v", sizes))
		}
		if i > 0 {
			total += (sizes[i-1] + 1) * size
		}
	}
	n := &Network{sizes: sizes, params: make([]float64, total)}
	n.layers = n.views(n.params)
	return n
}

// views cuts a vector of parameters, or of their gradient, into layers.
func (n *Network) views(params []float64) []layer {
	var layers []layer
	for i, out := range n.sizes[1:] {
		in := n.sizes[i]
		layers = append(layers, layer{in, out, params[:in*out], params[in*out : (in+1)*out]})
		params = params[(in+1)*out:]
	}
	return layers
}

// Dim is the number of features.
func (n *Network) Dim() int { return n.sizes[0] }

// Classes is the number of classes.
func (n *Network) Classes() int { return n.sizes[len(n.sizes)-1] }

// Sizes returns features, hidden units of each layer, classes.
func (n *Network) Sizes() []int { return slices.Clone(n.sizes) }

// Params returns all parameters, not a copy of them: of each layer the weights, row-major by unit, then the biases.
func (n *Network) Params() []float64 { return n.params }

// Clone returns a copy that shares nothing.
func (n *Network) Clone() *Network {
	c := network(slices.Clone(n.sizes))
	copy(c.params, n.params)
	return c
}

// Scores implements Model.
func (n *Network) Scores(x []float64) []float64 { return slices.Clone(n.NewPass(1).Scores(x)) }

// InputGradient implements Model.
func (n *Network) InputGradient(dst, x []float64, label int) float64 {
	return n.NewPass(1).InputGradients(dst, x, []int{label})
}

// Accuracy is the share of rows whose label has the largest score.
func (n *Network) Accuracy(d Data) float64 {
	right := 0
	p := n.NewPass(chunk)
	for from := 0; from < d.Len(); from += chunk {
		to := min(from+chunk, d.Len())
		scores := p.Scores(d.X[from*d.Dim : to*d.Dim])
		for i, y := range d.Y[from:to] {
			if Predict(scores[i*d.Classes:(i+1)*d.Classes]) == y {
				right++
			}
		}
	}
	return float64(right) / float64(d.Len())
}

// Loss is the mean cross-entropy, in nats.
func (n *Network) Loss(d Data) float64 {
	total := 0.0
	p := n.NewPass(chunk)
	for from := 0; from < d.Len(); from += chunk {
		to := min(from+chunk, d.Len())
		p.Scores(d.X[from*d.Dim : to*d.Dim])
		total += p.outputDeltas(d.Y[from:to])
	}
	return total / float64(d.Len())
}

// Predict returns the class with the largest score, the first of equals.
func Predict(scores []float64) int {
	best := 0
	for k, s := range scores {
		if s > scores[best] {
			best = k
		}
	}
	return best
}

// SoftmaxTo writes the probabilities e^{s_k} / sum e^{s_j} to dst, which may be scores itself, and returns
// ln sum e^{s_j}.
func SoftmaxTo(dst, scores []float64) float64 {
	top := slices.Max(scores)
	sum := 0.0
	for k, s := range scores {
		dst[k] = math.Exp(s - top)
		sum += dst[k]
	}
	for k := range dst {
		dst[k] /= sum
	}
	return top + math.Log(sum)
}
