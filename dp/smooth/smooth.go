// Package smooth has mechanisms whose noise is as large as the table at hand needs, and not as the worst table would: smooth sensitivity with four kinds of
// noise, propose-test-release, and sample and aggregate (Nissim, Raskhodnikova and Smith, STOC 2007; Dwork and Lei, STOC 2009). Neighbours differ in one
// replaced value.
//
// The noise is scaled by a number that depends on the table, so that it cannot be drawn as an integer of a fixed law: it is computed in floating point. What
// that costs is bounded, and paid: see rounding.go.
package smooth

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Errors of this package, wrapped.
var (
	ErrSettings = errors.New("smooth: bad settings")
	ErrValues   = errors.New("smooth: bad values")
	// ErrRefused: the table is too near to one of a larger sensitivity. This, too, is an answer with noise, and costs what an answer does.
	ErrRefused = errors.New("smooth: the proposed sensitivity is not certain enough here")
)

// Grid is the share of a range that released numbers are rounded to. Noise is for a sensitivity of at least as much, which is as smooth.
const Grid = 0x1p-24

// Limits of epsilon. Below MinEpsilon what rounding costs is no longer small beside it. MaxApproximate is of laws with a delta: the formulas for their
// noise are private up to it, with room, for any delta, and at 16 they are not (a test computes it).
const (
	MinEpsilon     = 1. / 64
	MaxEpsilon     = 64
	MaxApproximate = 4
)

// Range is what values are clamped to; it is declared, and not read off the data.
type Range struct{ Low, High float64 }

func (r Range) check() error {
	if !(r.Low < r.High) || math.IsInf(r.High-r.Low, 0) || r.step() < 0x1p-1000 {
		return fmt.Errorf("%w: a range from %v to %v", ErrSettings, r.Low, r.High)
	}
	return nil
}

// sorted are the values, clamped and in order. NaN counts as Low.
func (r Range) sorted(values []float64) ([]float64, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrValues)
	}
	out := make([]float64, len(values))
	for i, v := range values {
		if v != v {
			v = r.Low
		}
		out[i] = min(max(v, r.Low), r.High)
	}
	slices.Sort(out)
	return out, nil
}

// step is of the grid.
func (r Range) step() float64 { return (r.High - r.Low) * Grid }

// rounded is a number on the grid, clamped to the range.
func (r Range) rounded(x float64) float64 {
	return min(max(math.Round(x/r.step())*r.step(), r.Low), r.High)
}

// padded is value i of x, from 1; before the first it is Low, after the last High.
func (r Range) padded(x []float64, i int) float64 {
	switch {
	case i < 1:
		return r.Low
	case i > len(x):
		return r.High
	}
	return x[i-1]
}

// middle is the place of the median, from 1: of an even number of values the lower one.
func middle(n int) int { return (n + 1) / 2 }

// Median is the smooth sensitivity of the median at beta: the largest of e^{-beta k} times the local sensitivity of tables that differ in k values,
//
//	max over i <= m <= j of (x_j - x_i) e^{-beta (j-i-1)}
//
// (Nissim, Raskhodnikova and Smith, Proposition 3.4). It takes n log n steps: the best j for an i does not go down as i goes up.
func (r Range) Median(values []float64, beta float64) (sensitivity, median float64, err error) {
	x, err := r.sorted(values)
	if err != nil {
		return 0, 0, err
	}
	if !(beta > 0) || math.IsInf(beta, 1) {
		return 0, 0, fmt.Errorf("%w: beta is %v, want more than 0 and finite", ErrSettings, beta)
	}
	m, n := middle(len(x)), len(x)
	at := func(i, j int) float64 {
		return (r.padded(x, j) - r.padded(x, i)) * math.Exp(-beta*float64(j-i-1))
	}
	best := 0.0
	var search func(i0, i1, j0, j1 int)
	search = func(i0, i1, j0, j1 int) {
		if i0 > i1 {
			return
		}
		i := (i0 + i1) / 2
		most, place := -1.0, j0
		for j := max(j0, i+1); j <= j1; j++ {
			if s := at(i, j); s > most {
				most, place = s, j
			}
		}
		best = max(best, most)
		search(i0, i-1, j0, place)
		search(i+1, i1, place, j1)
	}
	search(0, m, m, n+1) // farther out than one place the padding only shrinks
	return best, r.padded(x, m), nil
}

// Noise is what makes a release private that has a smooth sensitivity.
type Noise struct {
	Law     Law
	Epsilon float64
	Delta   float64 // of Laplace and Gaussian noise; else 0
	// Degrees are those of freedom of Student's t: 1 is Cauchy's law, from 3 on there is a variance. 0 counts as 3.
	Degrees int
}

// Law is a law of noise.
type Law uint8

const (
	// StudentT is epsilon-private (after Bun and Steinke, arXiv 1906.02830, with what the law loses exactly): of d degrees of freedom, a shift by s scales
	// loses s (d+1)/(2 sqrt(d)) at the most, at the root of d, and a scale that changes by the factor e^t loses d t, far out. Half of epsilon is for
	// either.
	StudentT Law = iota
	// Laplace is (epsilon, delta)-private, epsilon up to MaxApproximate (Nissim, Raskhodnikova and Smith, section 2).
	Laplace
	// Gaussian is (epsilon, delta)-private, epsilon up to MaxApproximate (the same).
	Gaussian
	// LaplaceLogNormal is (epsilon²/2)-concentrated private (Bun and Steinke).
	LaplaceLogNormal
)

func (n Noise) check() error {
	switch {
	case !(n.Epsilon >= MinEpsilon && n.Epsilon <= MaxEpsilon):
		return fmt.Errorf("%w: epsilon is %v, want %v to %v", ErrSettings, n.Epsilon, MinEpsilon, MaxEpsilon)
	case (n.Law == Laplace || n.Law == Gaussian) && n.Epsilon > MaxApproximate:
		return fmt.Errorf("%w: epsilon is %v, want at most %v for this law", ErrSettings, n.Epsilon, MaxApproximate)
	case n.Law > LaplaceLogNormal:
		return fmt.Errorf("%w: law %d", ErrSettings, n.Law)
	case (n.Law == Laplace || n.Law == Gaussian) && !(n.Delta > 0 && n.Delta < 1):
		return fmt.Errorf("%w: delta is %v, want one between 0 and 1 for this law", ErrSettings, n.Delta)
	case (n.Law == StudentT || n.Law == LaplaceLogNormal) && n.Delta != 0:
		return fmt.Errorf("%w: delta is %v, and this law has none", ErrSettings, n.Delta)
	case n.Degrees < 0 || n.Degrees > 64 || n.Degrees != 0 && n.Law != StudentT:
		return fmt.Errorf("%w: %d degrees of freedom, want 1 to 64 for Student's t, and none for other laws", ErrSettings, n.Degrees)
	}
	return nil
}

func (n Noise) degrees() float64 {
	if n.Degrees == 0 {
		return 3
	}
	return float64(n.Degrees)
}

// Beta is how smooth the sensitivity must be for this noise: half of epsilon goes to it where the law leaves a choice.
func (n Noise) Beta() float64 { return n.strict().beta() }

func (n Noise) beta() float64 {
	switch n.Law {
	case Laplace:
		return n.Epsilon / (2 * math.Log(2/n.Delta))
	case Gaussian:
		return n.Epsilon / (4 * (1 + math.Log(2/n.Delta)))
	case LaplaceLogNormal:
		return n.Epsilon / 4
	}
	return n.Epsilon / 2 / n.degrees()
}

// scale is what the noise of law is multiplied by, for a sensitivity of 1.
func (n Noise) scale() float64 {
	switch n.Law {
	case Laplace:
		return 2 / n.Epsilon
	case Gaussian:
		return 5 * math.Sqrt(2*math.Log(2/n.Delta)) / n.Epsilon
	case LaplaceLogNormal:
		sigma := n.sigma()
		return 1 / (math.Exp(-1.5*sigma*sigma) * (n.Epsilon - n.beta()/sigma))
	}
	d := n.degrees()
	return (d + 1) / (2 * math.Sqrt(d)) / (n.Epsilon / 2)
}

// sigma of the lognormal factor.
func (n Noise) sigma() float64 { return max(2*n.beta()/n.Epsilon, .5) }

// draw is one value of the law.
func (n Noise) draw(s *noise.Stream) float64 {
	switch n.Law {
	case Laplace:
		return exponential(s)
	case Gaussian:
		return normal(s)
	case LaplaceLogNormal:
		return exponential(s) * math.Exp(n.sigma()*normal(s))
	}
	square := 0.0
	for square == 0 {
		for range int(n.degrees()) {
			z := normal(s)
			square += z * z
		}
	}
	return normal(s) / math.Sqrt(square/n.degrees())
}

// Release is the median with noise by its smooth sensitivity, clamped to the range. The guarantee needs a stream of a secret key that is used for nothing else.
func (n Noise) Release(r Range, values []float64, s *noise.Stream) (float64, error) {
	if err := n.check(); err != nil {
		return 0, err
	}
	sensitivity, median, err := r.Median(values, n.Beta())
	if err != nil {
		return 0, err
	}
	return r.rounded(median + max(sensitivity, r.step())*n.strict().scale()*n.draw(s)), nil
}

// Aggregate is sample and aggregate: the rows, in a random order that is no function of them, are cut into blocks, each block gives one value (an estimate
// that was computed in any way), and the median of these is released. A replaced row changes one value, so that nothing need be known of how the values are
// computed.
func (n Noise) Aggregate(r Range, rows, blocks int, value func(rows []int) float64, s *noise.Stream) (float64, error) {
	if blocks < 1 || blocks > rows {
		return 0, fmt.Errorf("%w: %d blocks of %d rows", ErrSettings, blocks, rows)
	}
	order := make([]int, rows)
	for i := range order {
		order[i] = i
	}
	for i := range order {
		j := i + int(s.Below(uint64(rows-i)))
		order[i], order[j] = order[j], order[i]
	}
	values := make([]float64, blocks)
	for b := range values {
		values[b] = value(order[b*rows/blocks : (b+1)*rows/blocks])
	}
	return n.Release(r, values, s)
}

// Proposal is propose-test-release for a median: somebody proposes a bound of its local sensitivity, and where the table is far from all tables that exceed
// it, noise for that bound is enough. It is (2·Epsilon, Delta)-private: Epsilon is of the test and again of the release.
type Proposal struct {
	Bound   float64       // of how much one replaced value moves the median, from Grid of the range to all of it
	Epsilon noise.Epsilon // from MinEpsilon
	Delta   float64
}

// Release is the median with Laplace noise of scale Bound/Epsilon, clamped to the range; the error wraps ErrRefused where the test, which has noise of its
// own, did not pass.
func (p Proposal) Release(r Range, values []float64, s *noise.Stream) (float64, error) {
	if err := p.Epsilon.Check(); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	x, err := r.sorted(values)
	if err != nil {
		return 0, err
	}
	if !(p.Bound >= r.step() && p.Bound <= r.High-r.Low) || p.Epsilon.Float() < MinEpsilon || !(p.Delta > 0 && p.Delta < 1) {
		return 0, fmt.Errorf("%w: a bound of %v at epsilon %v and delta %v: want a bound from %v of the range to all of it, an epsilon from %v, and a delta between 0 and 1", ErrSettings, p.Bound, p.Epsilon, p.Delta, Grid, MinEpsilon)
	}
	far := r.distance(x, p.Bound)
	if float64(int64(far)+p.Epsilon.Laplace(s, 1)) <= math.Log(1/p.Delta)/p.Epsilon.Float() {
		return 0, ErrRefused
	}
	return r.rounded(r.padded(x, middle(len(x))) + p.Bound/(p.Epsilon.Float()-Rounding)*exponential(s)), nil
}

// distance is how many values must be replaced until the local sensitivity of the median exceeds a bound; more than all of them where it never does.
func (r Range) distance(x []float64, bound float64) int {
	m, n := middle(len(x)), len(x)
	// With k values replaced the sensitivity is the largest x_j - x_i of i <= m <= j = i+k+1: the nearest pair that is wider than the bound decides.
	nearest, i := n+1, 0
	for j := m; j <= n+1; j++ {
		for i+1 <= min(m, j-1) && r.padded(x, j)-r.padded(x, i+1) > bound {
			i++
		}
		if r.padded(x, j)-r.padded(x, i) > bound {
			nearest = min(nearest, j-i-1)
		}
	}
	return nearest
}
