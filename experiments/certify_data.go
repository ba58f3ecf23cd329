package experiments

import (
	"math/rand/v2"
	"sync"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/data"
)

const (
	digitPixels  = 64
	digitClasses = 10
	digitWhite   = 16 // the largest value of a pixel
)

// digits are the handwritten digits with pixels in [0,1], in the order of the file.
var digits = sync.OnceValues(func() (learn.Data, error) {
	digits := learn.Data{Dim: digitPixels, Classes: digitClasses}
	columns, rows, err := realTable("digits", data.Digits)
	if err != nil {
		return digits, err
	}
	digits.X, digits.Y = make([]float64, rows*digitPixels), make([]int, rows)
	pixel := 0
	for _, column := range columns {
		if column.Name == "label" {
			for i, v := range column.Numbers {
				digits.Y[i] = int(v)
			}
			continue
		}
		for i, v := range column.Numbers {
			digits.X[i*digitPixels+pixel] = v / digitWhite
		}
		pixel++
	}
	return digits, nil
})

// splitDigits draws a training part of size digits and returns it with the others, in drawn order.
func splitDigits(seed uint64, size int) (training, others learn.Data, err error) {
	all, err := digits()
	if err != nil {
		return training, others, err
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(all.Len())
	return all.Subset(order[:size]), all.Subset(order[size:]), nil
}

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

// certifyModel is one of the two models of the experiment.
type certifyModel struct {
	name    string
	network func(s *noise.Stream) *learn.Network
	plain   learn.Plain
}

var certifyModels = []certifyModel{
	{"softmax regression", func(*noise.Stream) *learn.Network { return learn.Softmax(digitPixels, digitClasses) },
		learn.Plain{Epochs: 10, Rate: 0.1, Momentum: 0.9}},
	{"perceptron", func(s *noise.Stream) *learn.Network {
		return learn.Perceptron(s, digitPixels, []int{32}, digitClasses)
	}, learn.Plain{Epochs: 10, Rate: 0.05, Momentum: 0.9}},
}
