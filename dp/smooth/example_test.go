package smooth_test

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/smooth"
)

// The median of 1001 waiting times, of which nobody expects that one person moves it by more than 0.1 hours.
func ExampleProposal_Release() {
	hours := make([]float64, 1001)
	for i := range hours {
		hours[i] = float64(i) / 250
	}
	p := smooth.Proposal{Bound: 0.1, Epsilon: noise.Eps(0.5), Delta: 1e-6}
	s := noise.Seeded(1) // a service takes a Stream of its secret Key
	out, err := p.Release(smooth.Range{Low: 0, High: 24}, hours, s)
	fmt.Println(math.Abs(out-2) < 1, err)
	p.Bound = 0.01 // nearly as much as one person moves it: noise of that size is not enough on tables next to this one
	_, err = p.Release(smooth.Range{Low: 0, High: 24}, hours, s)
	fmt.Println(errors.Is(err, smooth.ErrRefused))
	// Output:
	// true <nil>
	// true
}

// The slope of a line through 10,000 points, each block's by least squares: of how it is computed nothing need be known.
func ExampleNoise_Aggregate() {
	slope := func(rows []int) float64 {
		var xy, xx float64
		for _, row := range rows {
			x := float64(row%100) - 49.5
			y := 0.7*x + float64(row%7) - 3
			xy, xx = xy+x*y, xx+x*x
		}
		return xy / xx
	}
	out, err := smooth.Noise{Epsilon: 1}.Aggregate(smooth.Range{Low: -2, High: 2}, 10_000, 200, slope, noise.Seeded(1))
	fmt.Println(math.Abs(out-0.7) < 0.1, err)
	// Output: true <nil>
}
