package estimate

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// ErrFew says that no power of two has enough numbers below it to be seen through the noise. It is an answer, and costs what an answer does.
var ErrFew = errors.New("estimate: too few numbers for bounds")

// Bounds finds a range that holds nearly all numbers, where none is known: each number counts in one cell by its sign and its power of two, from 2^Least to
// 2^Greatest, and the range goes from the lowest cell to the highest one whose noisy count is above what noise alone reaches (Wilson et al., arXiv
// 1909.01917, section 5.1.2: approximate bounds). Cells with fewer rows are left outside: some tens over epsilon, which is about how many a mean by
// clamping should clamp.
type Bounds struct {
	Guard
	Least, Greatest int     // exponents; numbers beyond them count as at the ends
	Success         float64 // with which probability no empty cell is taken for one with rows; 0 is DefaultSuccess, and down to 1-1e-6 where that finds no range
}

// Limits of Bounds.
const (
	MinExponent    = -1000
	MaxExponent    = 960 // a sum of as many rows as there can be of 2^960 is finite
	DefaultSuccess = 1 - 1e-9
	leastSuccess   = 1 - 1e-6
)

// Range is what numbers are clamped to.
type Range struct{ Low, High float64 }

func (e Bounds) check() error {
	switch {
	case e.Least < MinExponent || e.Greatest > MaxExponent || e.Least >= e.Greatest:
		return fmt.Errorf("%w: exponents from %d to %d, want from %d to %d", ErrSettings, e.Least, e.Greatest, MinExponent, MaxExponent)
	case e.Success != 0 && !(e.Success > 0 && e.Success < 1):
		return fmt.Errorf("%w: a success probability of %v", ErrSettings, e.Success)
	}
	if err := e.Guard.check(); err != nil {
		return err
	}
	return e.Noise.check(e.Protection.Cells(1))
}

// bins of each sign: the first is of all numbers up to 2^Least.
func (e Bounds) bins() int { return e.Greatest - e.Least + 1 }

// threshold is what the noise of all cells together exceeds with probability at most 1-success.
func (e Bounds) threshold(success float64) int64 {
	each := -math.Expm1(math.Log(success) / float64(2*e.bins())) // of one cell: 1 - success^(1/cells)
	return int64(e.Noise.reach(e.Protection.Cells(1), 2*each)) + 1
}

// cell is where a number counts: from 0, the most negative numbers, to 2·bins-1. NaN counts nowhere.
func (e Bounds) cell(x float64) (at int, ok bool) {
	if x != x {
		return 0, false
	}
	fraction, exponent := math.Frexp(math.Abs(x))
	if fraction == .5 { // 2^k is the end of its cell
		exponent--
	}
	bin := min(max(exponent-e.Least, 0), e.bins()-1)
	if x == 0 {
		bin = 0
	}
	if math.IsInf(x, 0) {
		bin = e.bins() - 1
	}
	if x < 0 {
		return e.bins() - 1 - bin, true
	}
	return e.bins() + bin, true
}

// edges of a cell.
func (e Bounds) edges(cell int) (low, high float64) {
	bin := cell - e.bins()
	if cell < e.bins() {
		bin = e.bins() - 1 - cell
	}
	high = math.Ldexp(1, e.Least+bin)
	if bin > 0 {
		low = high / 2
	}
	if cell < e.bins() {
		low, high = -high, -low
	}
	return low, high
}

// Release finds the range. The error wraps ErrFew where there is none.
func (e Bounds) Release(t Table, s *noise.Stream) (Range, error) {
	if err := e.check(); err != nil {
		return Range{}, err
	}
	values, err := e.kept(t, s)
	if err != nil {
		return Range{}, err
	}
	return e.of(values, s)
}

func (e Bounds) of(values []float64, s *noise.Stream) (Range, error) {
	counts := make([]int64, 2*e.bins())
	for _, x := range values {
		if at, ok := e.cell(x); ok {
			counts[at]++
		}
	}
	of := e.Protection.Cells(1)
	for i, n := range counts {
		counts[i] = e.noisy(n, of, e.Noise, s)
	}
	success := e.Success
	if success == 0 {
		success = DefaultSuccess
	}
	for first := true; first || e.Success == 0 && success > leastSuccess; success, first = 1-10*(1-success), false {
		threshold := e.threshold(success)
		lowest, highest := -1, -1
		for i, n := range counts {
			if n >= threshold {
				if lowest < 0 {
					lowest = i
				}
				highest = i
			}
		}
		if lowest >= 0 {
			low, _ := e.edges(lowest)
			_, high := e.edges(highest)
			return Range{low, high}, nil
		}
	}
	return Range{}, ErrFew
}

// UnboundedMean is the mean of numbers of which no range is known: a part of the budget finds one ([Bounds]), and the rest is a [CentredMean] of the
// numbers clamped to it. What lies outside of the range makes a bias that the interval does not know.
type UnboundedMean struct {
	Guard
	Least, Greatest int
	Share           float64 // of the budget for the range; 0 is DefaultShare
	Confidence      float64
}

// DefaultShare is of the budget for finding a range: a count for each power of two is seen with little, and the mean has use for the rest.
const DefaultShare = 0.25

// Release is the mean, and the range that numbers were clamped to.
func (e UnboundedMean) Release(t Table, s *noise.Stream) (Estimate, Range, error) {
	share := e.Share
	if share == 0 {
		share = DefaultShare
	}
	if !(share > 0 && share < 1) {
		return Estimate{}, Range{}, fmt.Errorf("%w: a share of %v for the range", ErrSettings, e.Share)
	}
	if _, err := asked(e.Confidence); err != nil {
		return Estimate{}, Range{}, err
	}
	if err := e.Guard.check(); err != nil {
		return Estimate{}, Range{}, err
	}
	bounds := Bounds{Guard: Guard{e.Protection, e.Noise.share(share)}, Least: e.Least, Greatest: e.Greatest}
	if err := bounds.check(); err != nil {
		return Estimate{}, Range{}, err
	}
	values, err := e.kept(t, s)
	if err != nil {
		return Estimate{}, Range{}, err
	}
	r, err := bounds.of(values, s)
	if err != nil {
		return Estimate{}, Range{}, err
	}
	mean, err := CentredMean{Guard: Guard{e.Protection, e.Noise.share(1 - share)}, Low: r.Low, High: r.High, Confidence: e.Confidence}.of(values, s)
	return mean, r, err
}
