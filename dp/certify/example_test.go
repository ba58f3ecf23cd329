package certify_test

import (
	"context"
	"fmt"

	"github.com/holdoutd/holdoutd/dp/certify"
)

// A threshold on the first of two measurements, smoothed by Gaussian noise: the prediction at (2, 0) is certified almost up to the
// threshold, two standard deviations away; the one at the threshold abstains.
func Example() {
	above := certify.Classifier{Classes: 2, Label: func(x []float64) int {
		if x[0] > 0 {
			return 1
		}
		return 0
	}}
	smoother, err := certify.New(above, certify.Options{Noise: certify.Noise{Family: certify.Gaussian, Scale: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range [][]float64{{2, 0}, {0, 0}} {
		c, err := smoother.Certify(x, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		if c.Prediction == certify.Abstain {
			fmt.Println("abstains")
			continue
		}
		fmt.Printf("label %d within %.2f\n", c.Prediction, c.Radius)
	}
	// Output:
	// label 1 within 1.88
	// abstains
}

// Certified accuracy of many rows, against attacks in the L1 norm.
func ExampleBatch() {
	rows, labels := certify.Slice{{-1}, {-0.2}, {0.5}, {1.5}}, []int{0, 0, 1, 1}
	classifier := func() certify.Classifier {
		return certify.Classifier{Classes: 2, Scores: func(dst, x []float64) {
			dst[1] = min(max((x[0]+1)/2, 0), 1)
			dst[0] = 1 - dst[1]
		}}
	}
	o := certify.Options{Noise: certify.Noise{Family: certify.Laplace, Scale: 0.5}, Method: certify.TwoSided, Bound: certify.EmpiricalBernstein}
	certificates, err := certify.Batch(context.Background(), classifier, o, rows, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, size := range []float64{0, 0.1, 0.3, 0.6} {
		fmt.Printf("%.1f: %.2f\n", size, certify.Accuracy(certificates, labels, size))
	}
	// Output:
	// 0.0: 1.00
	// 0.1: 0.75
	// 0.3: 0.50
	// 0.6: 0.50
}

// PixelDP's certificate beside the others, from the same two bounds.
func ExamplePixelDPGaussian() {
	top, rest, sigma := 0.91, 0.05, 0.5
	fmt.Printf("PixelDP   %.3f\n", certify.PixelDPGaussian(top, rest, sigma))
	fmt.Printf("Rényi     %.3f\n", certify.RenyiGaussian(top, rest, sigma))
	fmt.Printf("two-sided %.3f\n", certify.SmoothingGaussian(top, rest, sigma))
	// Output:
	// PixelDP   0.241
	// Rényi     0.633
	// two-sided 0.746
}
