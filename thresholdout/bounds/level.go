package bounds

import (
	"fmt"
	"math"
)

// Half-widths of noise that is given, at any probability of error. A family of intervals for one noise is nested: whatever beta is
// read, the same answers and the same noise serve, and the intervals hold together with probability 1-beta. This is what
// p-values are made of (docs/proofs/p-values.md).

type givenNoise struct {
	n, k  int64
	beta  float64
	sigma float64
}

var knownSchedules, knownLastExact, knownConstants memo[givenNoise, float64]

// ScheduledNoise is the half-width of k answers with the noise schedule of scale s.
func ScheduledNoise(n, k int64, beta, s float64) (float64, error) {
	return ofGiven(&knownSchedules, givenNoise{n, k, beta, s}, scheduled)
}

// LastExactNoise is the half-width of k answers with the noise schedule of scale s but for the last, which bears none.
func LastExactNoise(n, k int64, beta, s float64) (float64, error) {
	if k == 1 {
		err := check(n, k, beta)
		return Exact(float64(n), 1, beta, 0), err
	}
	return ofGiven(&knownLastExact, givenNoise{n, k, beta, s}, lastExact)
}

// GivenNoise is the half-width of k answers with constant noise sigma; it is [ConstantNoise]'s, remembered.
func GivenNoise(n, k int64, beta, sigma float64) (float64, error) {
	return ofGiven(&knownConstants, givenNoise{n, k, beta, sigma}, constant)
}

func ofGiven(known *memo[givenNoise, float64], key givenNoise, noise func(float64, int64, float64) []stretch) (float64, error) {
	if err := check(key.n, key.k, key.beta); err != nil {
		return 0, err
	}
	if err := checkNoise(key.sigma); err != nil {
		return 0, err
	}
	if w, ok := known.remembered(key); ok {
		return w, nil
	}
	n := float64(key.n)
	w := width(n, noise(n, key.k, key.sigma), key.beta, 4/math.Sqrt(n))
	known.remember(key, w)
	return w, nil
}

// RoundsNoise is the half-width of k questions in rounds whose noise is given: as many scales as rounds, the last one 0.
func RoundsNoise(n, k int64, beta float64, sigma []float64) (float64, error) {
	if err := check(n, k, beta); err != nil {
		return 0, err
	}
	rounds := int64(len(sigma))
	if rounds < 1 || rounds > min(k, mostRounds) || sigma[rounds-1] != 0 {
		return 0, fmt.Errorf("bounds: noise %v for rounds of %d questions; one scale for each round is needed, the last one 0", sigma, k)
	}
	for _, s := range sigma[:rounds-1] {
		if err := checkNoise(s); err != nil {
			return 0, err
		}
	}
	return newRoundPlan(float64(n), k, rounds, beta).width(sigma[:rounds-1]), nil
}
