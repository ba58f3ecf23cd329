package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// blobs are rows around one centre for each class, in [0,1] or near it.
func blobs(seed uint64, rows, dim, classes int) Data {
	r := rand.New(noise.Seeded(seed))
	d := Data{Dim: dim, Classes: classes}
	centres := make([]float64, classes*dim)
	for i := range centres {
		centres[i] = r.Float64()
	}
	for range rows {
		y := r.IntN(classes)
		d.Y = append(d.Y, y)
		for k := range dim {
			d.X = append(d.X, centres[y*dim+k]+0.15*r.NormFloat64())
		}
	}
	return d
}

func models(seed uint64, dim, classes int) map[string]*Network {
	s := noise.Seeded(seed)
	softmax := Softmax(dim, classes)
	r := rand.New(s)
	for i := range softmax.params {
		softmax.params[i] = r.NormFloat64()
	}
	return map[string]*Network{"softmax": softmax, "one hidden": Perceptron(s, dim, []int{7}, classes), "two hidden": Perceptron(s, dim, []int{6, 5}, classes)}
}

func loss(n *Network, x []float64, label int) float64 {
	p := n.Scores(x)
	norm := SoftmaxTo(make([]float64, len(p)), p)
	return norm - p[label]
}

// TestGradients compares every derivative, by parameter and by input, with a central difference of the loss.
func TestGradients(t *testing.T) {
	d := blobs(1, 20, 5, 3)
	for name, n := range models(2, 5, 3) {
		sum := newBatchSum(n)
		for i := range d.Y {
			sum.of(d, []int{i}, math.Inf(1))
			for k := range n.params {
				if want := difference(&n.params[k], func() float64 { return loss(n, d.Row(i), d.Y[i]) }); math.Abs(sum.gradient[k]-want) > 1e-8 {
					t.Fatalf("%s: derivative by parameter %d is %v, the loss says %v", name, k, sum.gradient[k], want)
				}
			}
			x, gradient := append([]float64(nil), d.Row(i)...), make([]float64, d.Dim)
			if got, want := n.InputGradient(gradient, x, d.Y[i]), loss(n, x, d.Y[i]); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%s: loss %v, scores say %v", name, got, want)
			}
			for k := range x {
				if want := difference(&x[k], func() float64 { return loss(n, x, d.Y[i]) }); math.Abs(gradient[k]-want) > 1e-8 {
					t.Fatalf("%s: derivative by feature %d is %v, the loss says %v", name, k, gradient[k], want)
				}
			}
		}
	}
}

func difference(at *float64, f func() float64) float64 {
	const h = 1e-5
	was := *at
	*at = was + h
	up := f()
	*at = was - h
	down := f()
	*at = was
	return (up - down) / (2 * h)
}

func TestTrainLearns(t *testing.T) {
	all := blobs(3, 900, 6, 4)
	train, test := all.Subset(span(0, 600)), all.Subset(span(600, 900))
	for name, n := range map[string]*Network{"softmax": Softmax(6, 4), "perceptron": Perceptron(noise.Seeded(4), 6, []int{8}, 4)} {
		before := n.Loss(train)
		if err := n.Train(context.Background(), train, Plain{Epochs: 40}, noise.Seeded(5)); err != nil {
			t.Fatal(err)
		}
		if after := n.Loss(train); after > before/2 || n.Accuracy(test) < 0.9 {
			t.Errorf("%s: loss from %v to %v, accuracy %v", name, before, after, n.Accuracy(test))
		}
	}
}

func span(from, to int) []int {
	var rows []int
	for i := from; i < to; i++ {
		rows = append(rows, i)
	}
	return rows
}

// TestConcurrentReaders is for the race detector: many passes share a network.
func TestConcurrentReaders(t *testing.T) {
	n, d := Perceptron(noise.Seeded(30), 6, []int{8}, 3), blobs(31, 50, 6, 3)
	want := n.Scores(d.Row(0))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range d.Y {
				n.InputGradient(make([]float64, 6), d.Row(i), d.Y[i])
			}
			if !slices.Equal(n.Scores(d.Row(0)), want) {
				t.Error("another reader changed the scores")
			}
		})
	}
	group.Wait()
}
