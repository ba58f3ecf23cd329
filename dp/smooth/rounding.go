package smooth

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Rounding is what is taken off epsilon for floating point, and off the logarithm of delta: noise is drawn for the rest, so that what is released has the
// epsilon and the delta that were asked for.
//
// Proved to be private is a real number m + Y, Y = S c X, where m is the median, S the sensitivity, c a constant and X real with the law. Of it any function
// may be released: rounding the sum m + Y to a float64, to the grid and to the range is one, whatever its own errors are, for it is the same for all tables.
// So only that Y is computed matters.
//
// Normal and Laplace variables are drawn to 52 binary digits, exactly, and filled up within the last digit by a uniform variable of 53 more. The densities
// there are constant to e^(±2^-42), for no variable is above 2^10. So X is made of variables of its law, but for that factor, however small they are; without
// the filling, what divides in Student's t would have few digits where it is small, and the far cells of the grid wrong probabilities. What follows has a
// relative error of a few roundings each: sums of squares, roots, quotients and products have no cancellation, and exp takes at most 2^5 times its
// argument's. Y comes out as Y e^t for a t of at most 2^-47 either way.
//
// A released number stands for an interval of m + Y that is as wide as the grid, 2^-24 of the range, or wider. Its ends, as values of Y, are at most a range
// away from 0, and move by 2^-47 of that: by 2^-23 of the interval's width at each end. Where the density of Y is flat over the interval this changes its
// probability by a factor of at most 1 ± 2^-22. Where it falls steeply the part near the higher end counts: there an end that moves by 2^-47 of its distance
// from 0 changes it by 2^-47 times what a dilation of the law costs, which is d for Student's t, the distance in scales for Laplace's law, at most 2^26, and its
// square for the normal law, at most 2^20. So each probability is off by less than e^(±2^-20), on both tables: 2^-19 in all. Rounding is twice that.
//
// Of LaplaceLogNormal it is taken off epsilon, too, but a factor on probabilities is no multiple of the order: its divergences are those of laws that are
// this near.
const Rounding = 0x1p-18

// strict is the noise for what rounding leaves.
func (n Noise) strict() Noise {
	n.Epsilon -= Rounding
	n.Delta *= math.Exp(-Rounding)
	return n
}

// digits of the integers that noise is made of.
const digits = 52

// normal is a standard normal variable.
func normal(s *noise.Stream) float64 {
	return filled(noise.RoundedNormal(s, 1<<digits), s) / (1 << digits)
}

// exponential is two-sided.
func exponential(s *noise.Stream) float64 {
	return filled(noise.DiscreteLaplace(s, 1<<digits), s) / (1 << digits)
}

// filled is an integer plus a uniform variable between -1/2 and 1/2, to 53 digits of that: a small integer keeps them.
func filled(z int64, s *noise.Stream) float64 {
	return float64(z) + (float64(s.Uint64()>>11)+.5)*0x1p-53 - .5
}
