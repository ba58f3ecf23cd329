package bounds

import (
	"math"
)

// Attack is what the strongest attack known reaches against the mechanism of [LastExact] with scale s: the (1-beta)-quantile of the largest error
// of k answers, when k-1 questions ask how single columns of random bits agree with a label and the last asks for the
// classifier that they suggest (the single-adaptive analyst of Rogers et al., AISTATS 2020, with the best weights). No bound for
// this mechanism can be narrower.
func Attack(n, k int64, beta, s float64) (float64, error) {
	if err := check(n, k, beta); err != nil {
		return 0, err
	}
	if k == 1 {
		s = 1 // no answer bears it
	}
	if err := checkNoise(s); err != nil {
		return 0, err
	}
	return attack(float64(n), lastExact(float64(n), k, s), beta), nil
}

// attack solves for the half-width at which the intervals of all answers hold with probability 1-beta, in the normal
// approximation: a column's answer has standard deviation sqrt(sigma^2 + 1/(4n)) around 1/2, and the last one is moved by
// Phi(sqrt(sum r_j/n)) - 1/2, r_j = 1/(1+4 n sigma_j^2) the share of an answer's variance that is the sample's.
func attack(n float64, cuts []stretch, beta float64) float64 {
	signal := 0.0
	for i, c := range cuts {
		count := c.count
		if i == len(cuts)-1 {
			count--
		}
		signal += count / (1 + 4*n*c.low*c.high)
	}
	moved := phi(math.Sqrt(signal/n)) - 0.5
	held := func(w float64) float64 { // ln of the probability that all intervals hold
		log := 0.0
		for i, c := range cuts {
			count := c.count
			if i == len(cuts)-1 {
				count--
			}
			log += count * math.Log1p(-math.Erfc(w/math.Sqrt(2*(c.low*c.high+1/(4*n)))))
		}
		last := cuts[len(cuts)-1].low
		sd := math.Sqrt(last*last + 1/(4*n))
		return log + math.Log(phi((w-moved)/sd)-phi((-w-moved)/sd))
	}
	lo, hi := 0.0, 1e3/math.Sqrt(n)
	for hi-lo > 1e-9*hi {
		if w := (lo + hi) / 2; held(w) < math.Log1p(-beta) {
			lo = w
		} else {
			hi = w
		}
	}
	return hi
}
