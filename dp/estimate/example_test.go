package estimate_test

import (
	"fmt"

	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// The mean age of a thousand people, none of whom it tells anything about.
func ExampleMean_Release() {
	ages := make([]float64, 1000)
	for i := range ages {
		ages[i] = float64(20 + i%60)
	}
	var key noise.Key // 32 secret random bytes
	mean := estimate.Mean{Dim: 1, Low: 0, High: 100, Epsilon: 1}
	released, err := mean.Release(ages, key.Stream("mean age"))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%.2f, noise at most %.2f with 95%%\n", released[0], mean.NoiseHalfWidth(len(ages), 0.05))
	// Output: 49.49, noise at most 0.30 with 95%
}
