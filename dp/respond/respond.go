// Package respond has randomized response: each person says something that may not be true, so that nobody who collects the answers has to be trusted, and the
// shares of a population can still be estimated (Warner 1965). This is local differential privacy: neighbours are two answers of one person.
//
// Answers are drawn exactly (dp/noise), for an epsilon that is a ratio of whole numbers ([noise.Epsilon]).
package respond

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// ErrSettings is wrapped by all errors of settings.
var ErrSettings = errors.New("respond: bad settings")

// Limits. MaxCategories bounds the number of answers that there are to choose from, and MaxPeople how often one is said: sums of so many fit an int64.
const (
	MaxCategories = 1 << 20
	MaxPeople     = 1 << 40
)

// Categories is randomized response over K answers, from 2: the true one with probability e^eps/(e^eps+K-1), each other one with 1/(e^eps+K-1). It is
// eps-private, and of all mechanisms that release one of the K answers the most truthful. With K = 2 it is Warner's.
type Categories struct {
	K       int
	Epsilon noise.Epsilon
}

// Check refuses settings that are none.
func (c Categories) Check() error {
	if c.K < 2 || c.K > MaxCategories {
		return fmt.Errorf("%w: %d answers, want 2 to %d", ErrSettings, c.K, MaxCategories)
	}
	if err := c.Epsilon.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return nil
}

// Truth is the probability of the true answer.
func (c Categories) Truth() float64 { return 1 / (1 + float64(c.K-1)*math.Exp(-c.Epsilon.Float())) }

// Say is what a person with this true answer, from 0 to K-1, says. The settings must be good.
func (c Categories) Say(s *noise.Stream, truth int) int {
	if truth < 0 || truth >= c.K {
		panic(fmt.Sprintf("respond: answer %d of %d", truth, c.K))
	}
	for { // a uniform answer is kept if it is true, or with probability e^-eps
		said := int(s.Below(uint64(c.K)))
		if said == truth || noise.BernoulliExp(s, c.Epsilon.Num, c.Epsilon.Den) {
			return said
		}
	}
}

// Estimate is an unbiased estimate of the share of each true answer, from how often each was said, and its worst standard deviation for a share
// of any size. Estimates can be below 0 and above 1; they sum to 1. There must be at least one answer.
func (c Categories) Estimate(said []int64) (shares, sd []float64, err error) {
	if err := c.Check(); err != nil {
		return nil, nil, err
	}
	n := int64(0)
	for i, count := range said {
		if count < 0 || count > MaxPeople {
			return nil, nil, fmt.Errorf("%w: answer %d was said %d times, want 0 to %d", ErrSettings, i, count, int64(MaxPeople))
		}
		n += count
	}
	if len(said) != c.K || n < 1 {
		return nil, nil, fmt.Errorf("%w: %d counts of %d answers together, want %d counts of at least one answer", ErrSettings, len(said), n, c.K)
	}
	p := c.Truth()
	q := (1 - p) / float64(c.K-1)
	for _, count := range said {
		share, deviation := debias(float64(count)/float64(n), p, q, n)
		shares, sd = append(shares, share), append(sd, deviation)
	}
	return shares, sd, nil
}

// debias solves observed = q + share(p-q). The variance of the observed share is at most (1/4)/n where 1/2 lies between q and p, else that at the nearer end.
func debias(observed, p, q float64, n int64) (share, sd float64) {
	worst := min(max(0.5, min(p, q)), max(p, q))
	return (observed - q) / (p - q), math.Sqrt(worst*(1-worst)/float64(n)) / (p - q)
}

// Unary is randomized response over K answers as K bits, of which the true one is 1: each bit is said or flipped by itself, so that the noise of an
// estimate does not grow with K.
type Unary struct {
	K       int
	Epsilon noise.Epsilon
	// Symmetric flips ones and zeros alike, with probability 1/(e^{eps/2}+1) (basic RAPPOR; Erlingsson, Pihur and Korolova, arXiv 1407.6981). Else ones are
	// said with probability 1/2 and zeros flipped with 1/(e^eps+1): the optimized unary encoding, which estimates rare answers best (Wang, Blocki, Li and
	// Jha, USENIX Security 2017).
	Symmetric bool
}

// Check refuses settings that are none.
func (u Unary) Check() error { return Categories{u.K, u.Epsilon}.Check() }

// Probabilities are those of saying 1 for a bit that is 1, and for one that is 0.
func (u Unary) Probabilities() (p, q float64) {
	eps := u.Epsilon.Float()
	if u.Symmetric {
		return 1 / (1 + math.Exp(-eps/2)), 1 / (1 + math.Exp(eps/2))
	}
	return 0.5, 1 / (1 + math.Exp(eps))
}

// Say is what a person with this true answer says: a bit for each answer.
func (u Unary) Say(s *noise.Stream, truth int) []bool {
	if truth < 0 || truth >= u.K {
		panic(fmt.Sprintf("respond: answer %d of %d", truth, u.K))
	}
	said := make([]bool, u.K)
	for i := range said {
		switch {
		case u.Symmetric:
			said[i] = (Categories{2, noise.Epsilon{Num: u.Epsilon.Num, Den: 2 * u.Epsilon.Den}}).Say(s, bit(i == truth)) == 1
		case i == truth:
			said[i] = s.Below(2) == 1
		default:
			said[i] = (Categories{2, u.Epsilon}).Say(s, 0) == 1
		}
	}
	return said
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Estimate is an unbiased estimate of the share of each true answer among n people, from how many said 1 for it, and its worst standard deviation.
func (u Unary) Estimate(ones []int64, n int64) (shares, sd []float64, err error) {
	if err := u.Check(); err != nil {
		return nil, nil, err
	}
	if len(ones) != u.K || n < 1 {
		return nil, nil, fmt.Errorf("%w: %d counts of %d people, want %d counts of at least one", ErrSettings, len(ones), n, u.K)
	}
	p, q := u.Probabilities()
	for i, count := range ones {
		if count < 0 || count > n {
			return nil, nil, fmt.Errorf("%w: %d of %d people said 1 for answer %d", ErrSettings, count, n, i)
		}
		share, deviation := debias(float64(count)/float64(n), p, q, n)
		shares, sd = append(shares, share), append(sd, deviation)
	}
	return shares, sd, nil
}
