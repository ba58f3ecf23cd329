package learn_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// chessboard is a square whose quarters alternate between two labels.
func chessboard(rows int, seed uint64) learn.Data {
	r := rand.New(noise.Seeded(seed))
	d := learn.Data{Dim: 2, Classes: 2}
	for range rows {
		x, y := r.Float64(), r.Float64()
		label := 0
		if (x > 0.5) != (y > 0.5) {
			label = 1
		}
		d.X, d.Y = append(d.X, x, y), append(d.Y, label)
	}
	return d
}

// No line separates the two classes; a hidden layer does.
func ExampleNetwork_Train() {
	train, test := chessboard(2000, 1), chessboard(1000, 2)
	linear, net := learn.Softmax(2, 2), learn.Perceptron(noise.Seeded(3), 2, []int{16}, 2)
	for _, n := range []*learn.Network{linear, net} {
		if err := n.Train(context.Background(), train, learn.Plain{Epochs: 200, Momentum: 0.9}, noise.Seeded(4)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(linear.Accuracy(test) < 0.7, net.Accuracy(test) > 0.95)
	// Output: true true
}

// Training that hides whether any one example was in it.
func ExampleNetwork_TrainPrivately() {
	train, test := chessboard(5000, 1), chessboard(1000, 2)
	settings := learn.Private{Steps: 400, Sampling: 0.1, Clip: 1, Multiplier: 4, Rate: 2, Momentum: 0.5}
	spent, err := settings.Account()
	if err != nil {
		fmt.Println(err)
	}
	eps, _ := spent.Epsilon(1e-5)

	var key noise.Key // 32 secret random bytes, used for this training only
	net := learn.Perceptron(key.Stream("initial"), 2, []int{16}, 2)
	if err := net.TrainPrivately(context.Background(), train, settings, key.Stream("train")); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("epsilon %.2f at delta 1e-5, %v\n", eps, net.Accuracy(test) > 0.9)
	// Output: epsilon 2.26 at delta 1e-5, true
}

// What an adversary does with the gradient by the input.
func ExampleNetwork_InputGradient() {
	n := learn.Softmax(2, 2)
	copy(n.Params(), []float64{-4, 0, 4, 0}) // class 1 where the first feature is positive
	x, gradient := []float64{0.1, 0}, make([]float64, 2)
	loss := n.InputGradient(gradient, x, 1)
	fmt.Printf("loss %.3f, gradient %.2f\n", loss, gradient)
	for k := range x {
		x[k] += 0.1 * gradient[k] // uphill
	}
	fmt.Println(learn.Predict(n.Scores(x)))
	// Output:
	// loss 0.371, gradient [-2.48 0.00]
	// 0
}

// Which of 400 people will pay back, by two features, privately by noise on the weights: neighbours differ in one person.
func ExampleLogistic_OutputPerturbation() {
	d := learn.Data{Dim: 2, Classes: 2}
	for i := range 400 {
		x := float64(i%20)/10 - 0.95
		y := 0
		if x > 0 {
			y = 1
		}
		d.X, d.Y = append(d.X, x, 1), append(d.Y, y)
	}
	l := learn.Logistic{Dim: 2, Radius: 1.5, Lambda: 0.05}
	n, err := l.OutputPerturbation(d, 1, noise.Seeded(1))
	if err != nil {
		panic(err)
	}
	fmt.Println(n.Accuracy(d) > 0.9)
	// Output: true
}
