package certify

import (
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/tables"
)

// noisyCopies is the data, each row copies times, with noise: a classifier that is to be smoothed learns from inputs as it will
// see them (arXiv 1902.02918, section 3.3).
func noisyCopies(d learn.Data, copies int, n certify.Noise, seed uint64) learn.Data {
	random := rand.New(rand.NewPCG(seed, 1))
	out := learn.Data{Dim: d.Dim, Classes: d.Classes, X: make([]float64, copies*len(d.X)), Y: make([]int, 0, copies*len(d.Y))}
	for c := range copies {
		out.Y = append(out.Y, d.Y...)
		n.Add(out.X[c*len(d.X):(c+1)*len(d.X)], d.X, random)
	}
	return out
}

// model is one of the two models of the experiment.
type model struct {
	name    string
	network func(s *noise.Stream) *learn.Network
	plain   learn.Plain
}

var models = []model{
	{"softmax regression", func(*noise.Stream) *learn.Network { return learn.Softmax(tables.DigitPixels, tables.DigitClasses) },
		learn.Plain{Epochs: 10, Rate: 0.1, Momentum: 0.9}},
	{"perceptron", perceptron(tables.DigitPixels), learn.Plain{Epochs: 10, Rate: 0.05, Momentum: 0.9}},
}

// perceptron has 32 hidden units, for inputs of so many pixels.
func perceptron(pixels int) func(s *noise.Stream) *learn.Network {
	return func(s *noise.Stream) *learn.Network {
		return learn.Perceptron(s, pixels, []int{32}, tables.DigitClasses)
	}
}
