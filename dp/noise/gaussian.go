package noise

import (
	"fmt"
	"math"
	"math/big"
)

// MaxVariance is the largest numerator of a discrete Gaussian's variance.
const MaxVariance = uint64(1) << 62

// DiscreteGaussian returns an integer X with P(X = x) proportional to e^{-x²/(2 num/den)}, exactly: Algorithm 3 of Canonne, Kamath and Steinke (arXiv
// 2004.00010). num and den are from 1, num at most MaxVariance. Added to an integer of sensitivity D it is D² den/(2 num)-concentrated private (their
// Theorem 4), as the continuous Gaussian is.
//
// Its variance is at most num/den, and less than a millionth of that below it already at num/den = 1. It differs from [RoundedNormal]: that is a continuous
// Gaussian, rounded, and private by post-processing; this one is an integer from the start, and sums of it are not discrete Gaussians.
func DiscreteGaussian(s *Stream, num, den uint64) int64 {
	if num < 1 || den < 1 || num > MaxVariance {
		panic(fmt.Sprintf("noise: a variance of %d/%d is not in (0, 2^62]", num, den))
	}
	t := rootOf(num/den) + 1
	// A discrete Laplace y of scale t is kept with probability e^{-(|y| - v/t)²/(2v)}, v = num/den: of (|y| t den - num)² / (2 num den t²).
	n, d, scale := new(big.Int).SetUint64(num), new(big.Int).SetUint64(den), new(big.Int).SetUint64(t)
	below := new(big.Int).Mul(scale, scale)
	below.Mul(below, n).Mul(below, d).Lsh(below, 1)
	for distance := new(big.Int); ; {
		y := DiscreteLaplace(s, t)
		distance.SetInt64(max(y, -y))
		distance.Mul(distance, scale).Mul(distance, d).Sub(distance, n)
		if s.expMinusBig(distance.Mul(distance, distance), below) {
			return y
		}
	}
}

// rootOf is the whole part of the square root.
func rootOf(v uint64) uint64 {
	r := uint64(math.Sqrt(float64(v)))
	for r > 0 && r > v/r {
		r--
	}
	for r+1 <= v/(r+1) {
		r++
	}
	return r
}
