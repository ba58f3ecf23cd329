// Package choose has private choices: one of several candidates whose scores are whole numbers, the higher the better, such that replacing one row of the
// data changes each score by a sensitivity at most. Draws are exact (dp/noise). Scores that are not whole numbers are rounded to a grid first, and the
// sensitivity is one of that grid, with 1 more for the rounding.
package choose

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// ErrSettings is wrapped by all errors.
var ErrSettings = errors.New("choose: bad settings")

// MaxScore bounds scores, either way: a larger one counts as this. Scores are secrets, and no error tells of one; clamped ones have no larger a sensitivity.
const MaxScore = int64(1) << 61

// Rule is what a choice is protected by.
type Rule struct {
	Epsilon     noise.Epsilon
	Sensitivity uint64 // of each score, from 1, and such that its double is one that Epsilon draws noise for
	// Monotone says that a row that is replaced moves all scores the same way, as with added and removed rows counts do: the same choice then costs half as
	// much, so twice the epsilon is used inside.
	Monotone bool
}

// among are the scores, clamped.
func (r Rule) among(scores []int64) ([]int64, error) {
	if err := r.Epsilon.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if r.Sensitivity > 1<<62 || !r.Epsilon.Draws(2*r.Sensitivity) {
		return nil, fmt.Errorf("%w: a sensitivity of %d at epsilon %d/%d: want from 1, and so that noise is drawn for its double (noise.Epsilon.Draws)", ErrSettings, r.Sensitivity, r.Epsilon.Num, r.Epsilon.Den)
	}
	if len(scores) == 0 {
		return nil, fmt.Errorf("%w: there is nothing to choose from", ErrSettings)
	}
	clamped := make([]int64, len(scores))
	for i, score := range scores {
		clamped[i] = min(max(score, -MaxScore), MaxScore)
	}
	return clamped, nil
}

// per is what a loss is divided by: twice the sensitivity, or once.
func (r Rule) per() uint64 {
	if r.Monotone {
		return r.Sensitivity
	}
	return 2 * r.Sensitivity
}

// Exponential is the exponential mechanism (McSherry and Talwar, FOCS 2007): candidate i with probability proportional to e^{eps·score_i/(2·sensitivity)}.
// It is eps-private, and (eps²/8)-concentrated private (its losses have a range of eps: arXiv 2004.07223). Its score is within 2·sensitivity·(ln k + t)/eps
// of the best of k with probability 1-e^-t.
func (r Rule) Exponential(s *noise.Stream, scores []int64) (int, error) {
	scores, err := r.among(scores)
	if err != nil {
		return 0, err
	}
	most := slices.Max(scores)
	for {
		i := int(s.Below(uint64(len(scores))))
		if r.Epsilon.Keep(s, uint64(most-scores[i]), r.per()) {
			return i, nil
		}
	}
}

// Top is k different candidates, the best first, k from 1: the exponential mechanism k times, each time among those that are left. That is the law of the k
// largest of the scores after Gumbel noise of scale 2·sensitivity/eps was added once to each (Durfee and Rogers, NeurIPS 2019); with k = 1 it is
// Exponential. It is (k·eps)-private, and k·eps²/8 of zCDP.
func (r Rule) Top(s *noise.Stream, scores []int64, k int) ([]int, error) {
	scores, err := r.among(scores)
	if err != nil {
		return nil, err
	}
	if k < 1 || k > len(scores) {
		return nil, fmt.Errorf("%w: the best %d of %d candidates", ErrSettings, k, len(scores))
	}
	left := make([]int, len(scores))
	for i := range left {
		left[i] = i
	}
	for at := range k { // left[:at] are chosen
		most := scores[left[at]]
		for _, i := range left[at:] {
			most = max(most, scores[i])
		}
		for {
			j := at + int(s.Below(uint64(len(left)-at)))
			if i := left[j]; r.Epsilon.Keep(s, uint64(most-scores[i]), r.per()) {
				left[at], left[j] = i, left[at]
				break
			}
		}
	}
	return left[:k], nil
}

// PermuteAndFlip looks at the candidates in a random order and takes each with probability e^{eps·(score-best)/(2·sensitivity)}, until one is taken
// (McKenna and Sheldon, arXiv 2010.12603). It is eps-private, and never worse than Exponential: its expected loss is at most that one's, and down to half
// of it. It is report-noisy-max with exponential noise.
func (r Rule) PermuteAndFlip(s *noise.Stream, scores []int64) (int, error) {
	scores, err := r.among(scores)
	if err != nil {
		return 0, err
	}
	order, most := make([]int, len(scores)), slices.Max(scores)
	for i := range order {
		order[i] = i
	}
	for i := range order {
		j := i + int(s.Below(uint64(len(order)-i)))
		order[i], order[j] = order[j], order[i]
		if at := order[i]; r.Epsilon.Keep(s, uint64(most-scores[at]), r.per()) {
			return at, nil
		}
	}
	panic("choose: the best candidate was not taken") // it is, with probability 1
}

// NoisyMax is report-noisy-max: two-sided geometric noise of scale 2·sensitivity/eps on each score, and the candidate whose noisy score is the largest; of
// equal ones the first (Dwork and Roth 2014, Claim 3.9, whose proof moves one noise by whole steps and so holds for integers, too). It is eps-private. The
// noisy scores must not be looked at.
func (r Rule) NoisyMax(s *noise.Stream, scores []int64) (int, error) {
	scores, err := r.among(scores)
	if err != nil {
		return 0, err
	}
	chosen, most := 0, int64(0)
	for i, score := range scores {
		noisy := score + r.Epsilon.Laplace(s, r.per())
		if i == 0 || noisy > most {
			chosen, most = i, noisy
		}
	}
	return chosen, nil
}
