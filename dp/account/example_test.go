package account_test

import (
	"fmt"

	"github.com/holdoutd/holdoutd/dp/account"
)

// A hundred Gaussian answers about the mean of 10,000 rows in [0,1] (a replaced row moves it by 1/10,000), sigma 0.002.
func ExampleComposeGDP() {
	one := account.GaussianGDP(1./10_000, 0.002)
	all := make([]account.GDP, 100)
	for i := range all {
		all[i] = one
	}
	total := account.ComposeGDP(all...)
	fmt.Printf("mu %.2f, epsilon %.3f at delta 1e-6\n", float64(total), total.Epsilon(1e-6))
	// Output: mu 0.50, epsilon 2.254 at delta 1e-6
}

func ExampleGaussianSigma() {
	fmt.Printf("%.4f\n", account.GaussianSigma(1, 1, 1e-5))
	// Output: 3.7306
}

// A thousand steps of DP-SGD, each with one percent of the examples.
func ExampleRDP_SubsampledGaussian() {
	training := account.NewRDP()
	training.SubsampledGaussian(0.01, 1.1, 1000)
	eps, order := training.Epsilon(1e-5)
	fmt.Printf("epsilon %.4f, from order %.1f\n", eps, order)
	// Output: epsilon 1.7118, from order 9.6
}

func ExampleGDPFilter() {
	filter := account.GDPFilter(account.LargestGDP(1, 1e-6))
	for filter.Spend(0.01) { // each of them could be chosen after seeing the last
	}
	fmt.Println(filter.Count(), "Gaussian answers")
	// Output: 560 Gaussian answers
}

// A hundred counts with Laplace noise, each of epsilon 0.1, by the distribution of their losses.
func ExamplePLD() {
	one, err := account.LaplacePLD(10)
	if err != nil {
		panic(err)
	}
	all, err := one.Times(100)
	if err != nil {
		panic(err)
	}
	fmt.Printf("epsilon %.4f at delta 1e-6; plainly added up it is 10\n", all.Epsilon(1e-6))
	// Output: epsilon 4.6927 at delta 1e-6; plainly added up it is 10
}

// An analyst stops when she likes; what is lost by then?
func ExampleOdometer() {
	o := account.NewOdometer(0.01, 1e-6)
	for range 5 {
		o.Spend(account.GaussianZCDP(1, 20))
	}
	fmt.Printf("rho %.5f, epsilon at most %.2f\n", float64(o.Spent()), o.Epsilon())
	// Output: rho 0.00625, epsilon at most 0.78
}
