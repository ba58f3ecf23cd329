package estimate_test

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/account"
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

// Statistics of a table, for a page that anyone may read: a budget is declared first, and each release is paid before it is made.
func ExampleHistogram() {
	var ages estimate.Table
	for i := range 20_000 {
		ages.Values = append(ages.Values, float64(18+i%50+i%7))
	}
	var key noise.Key // 32 secret random bytes
	budget := account.GDPFilter(0.5)
	guard := func(mu account.GDP) estimate.Guard {
		if !budget.Spend(float64(mu)) {
			panic("more than was declared")
		}
		return estimate.Guard{Protection: unit.Protection{Unit: unit.Row{}}, Noise: estimate.Gaussian{Mu: mu}}
	}
	mean, err := estimate.CentredMean{Guard: guard(0.2), Low: 0, High: 120}.Release(ages, key.Stream("mean of age"))
	if err != nil {
		panic(err)
	}
	variance, err := estimate.Variance{Guard: guard(0.2), Low: 0, High: 120}.Release(ages, key.Stream("variance of age"))
	if err != nil {
		panic(err)
	}
	median, err := estimate.Quantiles{Guard: guard(0.3), Low: 0, High: 120}.Release(ages, []float64{0.5}, key.Stream("median of age"))
	if err != nil {
		panic(err)
	}
	bins, err := estimate.Histogram{Guard: guard(0.2), Edges: []float64{0, 30, 50, 120}}.Release(ages, key.Stream("histogram of age"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("mean %.1f, variance %.0f, median %.0f\n", mean.Value, variance.Value, median[0])
	for _, bin := range bins {
		fmt.Printf("from %.0f to %.0f\n", bin.Low, bin.High)
	}
	fmt.Printf("%d releases, with 0.5-GDP declared: (%.2f, 1e-6)-private\n", budget.Count(), account.GDP(0.5).Epsilon(1e-6))
	// Output:
	// mean 45.5, variance 213, median 45
	// from 3571 to 3605
	// from 7980 to 8014
	// from 8369 to 8403
	// 4 releases, with 0.5-GDP declared: (2.25, 1e-6)-private
}
