package bounds

import (
	"fmt"
	"math"
)

// NoiseWidth is the half-width of all answers of a list with noise sigma[j], fixed beforehand for each; the last may be 0, an answer
// without noise, after which nothing is chosen.
func NoiseWidth(n int64, sigma []float64, beta float64) (float64, error) {
	answers, err := listed(n, sigma, beta)
	if err != nil {
		return 0, err
	}
	return solve(4/math.Sqrt(float64(n)), func(w float64) float64 {
		total := 0.0
		for _, a := range answers {
			total += a.miss(float64(n), w)
		}
		return math.Log(total / beta)
	}), nil
}

// AnswerWidths are half-widths of the same answers that differ: each misses with probability at most beta/k, so that early ones, before
// which little was released, are narrower.
func AnswerWidths(n int64, sigma []float64, beta float64) ([]float64, error) {
	answers, err := listed(n, sigma, beta)
	if err != nil {
		return nil, err
	}
	share := beta / float64(len(sigma))
	widths := make([]float64, len(sigma))
	guess := 4 / math.Sqrt(float64(n))
	for j, a := range answers {
		widths[j] = solve(guess, func(w float64) float64 { return math.Log(a.miss(float64(n), w) / share) })
		guess = widths[j]
	}
	return widths, nil
}

// listedAnswer is one answer of a list, with what was released before it.
type listedAnswer struct{ sigma, released float64 }

func listed(n int64, sigma []float64, beta float64) ([]listedAnswer, error) {
	if err := check(n, int64(len(sigma)), beta); err != nil {
		return nil, err
	}
	answers := make([]listedAnswer, len(sigma))
	released := 0.0
	for j, s := range sigma {
		if last := j == len(sigma)-1; s == 0 && last {
			answers[j] = listedAnswer{0, released}
			break
		}
		if err := checkNoise(s); err != nil {
			return nil, fmt.Errorf("bounds: answer %d of %d: %w", j+1, len(sigma), err)
		}
		answers[j] = listedAnswer{s, released}
		released += information(float64(n), s)
	}
	return answers, nil
}

// miss bounds the probability that its interval of half-width w misses, on either side.
func (a listedAnswer) miss(n, w float64) float64 {
	if a.sigma == 0 {
		return 2 * math.Exp(logAdapted(n, 2*n*w*w, a.released))
	}
	return miss(n, []stretch{{count: 1, low: a.sigma, high: a.sigma, released: max(a.released, minInformation), fresh: a.released == 0}}, w)
}
