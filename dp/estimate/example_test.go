package estimate_test

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
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

// What 400 people spent in a month: each can have any number of purchases, of which five are kept; nobody's purchases can be told from the answers. No
// range of amounts is declared.
func ExampleUnboundedMean() {
	var purchases estimate.Table
	for user := range uint64(400) {
		for i := range 1 + user%9 {
			purchases.Values = append(purchases.Values, 10+float64((user+3*i)%40))
			purchases.Owners = append(purchases.Owners, unit.Owner{User: user})
		}
	}
	guard := estimate.Guard{Protection: unit.Protection{Unit: unit.User{Most: 5}, Neighbours: unit.AddedOrRemoved}, Noise: estimate.Laplace{Epsilon: noise.Eps(2)}}
	var key noise.Key // 32 secret random bytes
	mean, clamped, err := estimate.UnboundedMean{Guard: guard, Least: -7, Greatest: 20}.Release(purchases, key.Stream("mean purchase"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f, from %.1f to %.1f, amounts clamped to [%v, %v]\n", mean.Value, mean.Low, mean.High, clamped.Low, clamped.High)
	// Output: 29.2, from 28.6 to 29.7, amounts clamped to [8, 64]
}

// Quantiles of ages at one price, however many are asked for.
func ExampleQuantiles() {
	var ages estimate.Table
	for i := range 5000 {
		ages.Values = append(ages.Values, float64(18+i%60))
	}
	guard := estimate.Guard{Protection: unit.Protection{Unit: unit.Row{}, Neighbours: unit.AddedOrRemoved}, Noise: estimate.Gaussian{Mu: 0.5}}
	var key noise.Key // 32 secret random bytes
	quartiles, err := estimate.Quantiles{Guard: guard, Low: 0, High: 120}.Release(ages, []float64{0.25, 0.5, 0.75}, key.Stream("quartiles of age"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.0f\n", quartiles)
	// Output: [33 47 62]
}

// The median income of 20,000 people, with an interval for those from whom they were drawn: its price is that of the median alone.
func ExampleQuantiles_Intervals() {
	var incomes estimate.Table
	for i := range 20_000 {
		incomes.Values = append(incomes.Values, 100*math.Pow(float64(i)/20_000, 2)) // a quarter of 100 is in the middle
	}
	guard := estimate.Guard{Protection: unit.Protection{Unit: unit.Row{}}, Noise: estimate.Laplace{Epsilon: noise.Eps(1)}}
	var key noise.Key // 32 secret random bytes
	median, err := estimate.Quantiles{Guard: guard, High: 200, Population: true}.Intervals(incomes, []float64{0.5}, key.Stream("median income"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f, from %.1f to %.1f\n", median[0].Value, median[0].Low, median[0].High)
	// Output: 25.0, from 23.8 to 26.1
}
