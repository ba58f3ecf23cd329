package hypothesis_test

import (
	"fmt"

	"github.com/holdoutd/holdoutd/dp/hypothesis"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// Are the 600 throws of a die fair?
func ExampleGoodnessOfFit() {
	var key noise.Key // 32 secret random bytes
	die := hypothesis.GoodnessOfFit{Shares: []float64{1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6}, Epsilon: noise.Eps(1)}
	result, err := die.Test([]int64{95, 90, 97, 94, 88, 136}, key.Stream("die"))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.P < 0.05)
	// Output: true
}

// Do the waiting times of three clinics differ?
func ExampleGroups() {
	var hours []float64
	var clinic []int
	for i := range 300 {
		clinic = append(clinic, i%3)
		hours = append(hours, float64(i%50)+10*float64(i%3))
	}
	var key noise.Key // 32 secret random bytes
	result, err := hypothesis.Groups{Epsilon: noise.Eps(1)}.Test(hours, clinic, key.Stream("waiting"))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.P < 0.05)
	// Output: true
}
