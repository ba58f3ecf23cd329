package bounds

import (
	"fmt"
	"testing"
)

func BenchmarkScheduledCold(b *testing.B) {
	for _, k := range []int64{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			for n := int64(1_000_000); b.Loop(); n++ { // another n each time: nothing is remembered
				if _, err := AdaptiveHoeffdingScheduled(n, k, 0.05); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScheduledWarm(b *testing.B) {
	for b.Loop() {
		if _, err := AdaptiveHoeffdingScheduled(1_000_000, 10_000, 0.05); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLaplace(b *testing.B) {
	laplace := Laplace{N: 1_000_000, Questions: 10_000, Tokens: 20, Beta: 0.05, Threshold: 0.01, Sigma: 0.001}
	b.Run("10000/warm", func(b *testing.B) {
		for b.Loop() {
			laplace.HalfWidth()
		}
	})
	b.Run("10000/cold", func(b *testing.B) {
		for l := laplace; b.Loop(); l.N++ {
			l.HalfWidth()
		}
	})
}

func ExampleAdaptiveHoeffdingScheduled() {
	b, err := AdaptiveHoeffdingScheduled(100_000, 1000, 0.05)
	fmt.Printf("±%.4f with noise from %.4f, %v\n", b.HalfWidth, ScheduledSigma(b.Sigma, 1, 1000), err)
	// Output: ±0.0311 with noise from 0.0072, <nil>
}
