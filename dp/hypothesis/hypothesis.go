// Package hypothesis has tests of hypotheses that are differentially private: of a share, of the shares of categories, whether groups differ, and whether
// two categories are independent. A statistic gets exact discrete noise (dp/noise), and the null distribution has that noise, too: computed or simulated,
// so that a test at a level is wrong no more often than the level, at any number of rows. Tests that take a noisy statistic for a true one, or trust a
// limit, do not have that.
//
// Neighbours differ in one replaced row; how many rows there are is public, and of [Groups] also which group each is in. A test is epsilon-private. The
// p-value is computed from the noisy statistic alone and may be shown; [Independence] has none and says yes or no.
package hypothesis

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// Errors of this package, wrapped.
var (
	ErrSettings = errors.New("hypothesis: bad settings")
	ErrRows     = errors.New("hypothesis: bad rows")
)

// Limits. MaxRows keeps a rank statistic within 2^45.
const (
	MaxRows       = 1 << 22
	MaxCategories = 1 << 12
	// DefaultDraws of a null distribution that is simulated: the least p-value is 1/(draws+1).
	DefaultDraws = 999
	MaxDraws     = 1 << 20
)

// Result is what a test says.
type Result struct {
	Statistic float64 // with noise
	P         float64 // the probability of such a statistic, or a more extreme one, under the hypothesis
}

// Alternative is which statistics are extreme.
type Alternative uint8

const (
	// TwoSided counts twice the smaller tail.
	TwoSided Alternative = iota
	// Greater tests against a larger share.
	Greater
	// Less tests against a smaller share.
	Less
)

// Binomial tests whether each row has a property with probability Share: the noisy number of rows that do, against the law of a binomial variable with the
// same noise, exactly (the statistic of Awan and Slavković, arXiv 1805.09236, without what makes it the most powerful).
type Binomial struct {
	Share       float64 // in (0,1)
	Epsilon     noise.Epsilon
	Alternative Alternative
}

// Test is of successes among rows rows.
func (b Binomial) Test(successes, rows int, s *noise.Stream) (Result, error) {
	if !(b.Share > 0 && b.Share < 1) || b.Alternative > Less {
		return Result{}, fmt.Errorf("%w: share %v, alternative %d", ErrSettings, b.Share, b.Alternative)
	}
	if err := b.Epsilon.Check(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if rows < 1 || rows > MaxRows || successes < 0 || successes > rows {
		return Result{}, fmt.Errorf("%w: %d of %d", ErrRows, successes, rows)
	}
	noisy := int64(successes) + b.Epsilon.Laplace(s, 1)
	r := Result{Statistic: float64(noisy)}
	greater, less := b.tails(noisy, rows)
	switch b.Alternative {
	case Greater:
		r.P = greater
	case Less:
		r.P = less
	default:
		r.P = min(1, 2*min(greater, less))
	}
	return r, nil
}

// tails are P(K+Z >= at) and P(K+Z <= at) for binomial K and two-sided geometric Z.
func (b Binomial) tails(at int64, rows int) (greater, less float64) {
	eps := b.Epsilon.Float()
	a := math.Exp(-eps)
	beyond := func(m int64) float64 { // P(Z >= m)
		if m >= 1 {
			return math.Exp(-eps*float64(m)) / (1 + a)
		}
		return 1 - math.Exp(-eps*float64(1-m))/(1+a)
	}
	for k := range int64(rows) + 1 {
		p := math.Exp(binomial.LogProbability(float64(rows), float64(k), b.Share))
		greater += p * beyond(at-k)
		less += p * beyond(k-at) // Z is symmetric
	}
	return min(1, greater), min(1, less)
}

// GoodnessOfFit tests whether the rows fall in categories with the probabilities Shares: noisy counts, by the quadratic form
//
//	u' (diag(p) - p p' + (v/n) I)^-1 u,  u = (counts - n p)/sqrt(n), v the noise's variance
//
// (Kifer and Rogers, arXiv 1610.07662; Gaboardi, Lim, Rogers and Vadhan, arXiv 1602.03090), against its law by simulation of counts and noise.
type GoodnessOfFit struct {
	Shares  []float64 // of each category, above 0; they sum to 1
	Epsilon noise.Epsilon
	Draws   int // 0 is DefaultDraws
}

// Test is of how many rows fall in each category.
func (g GoodnessOfFit) Test(counts []int64, s *noise.Stream) (Result, error) {
	sum := 0.
	for _, p := range g.Shares {
		if !(p > 0 && p <= 1) {
			return Result{}, fmt.Errorf("%w: a share of %v", ErrSettings, p)
		}
		sum += p
	}
	draws, err := drawsOf(g.Draws)
	if err != nil {
		return Result{}, err
	}
	if len(g.Shares) < 2 || len(g.Shares) > MaxCategories || math.Abs(sum-1) > 1e-9 {
		return Result{}, fmt.Errorf("%w: %d shares that sum to %v", ErrSettings, len(g.Shares), sum)
	}
	if err := g.Epsilon.Check(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	rows := int64(0)
	for _, n := range counts {
		if n < 0 || n > MaxRows {
			return Result{}, fmt.Errorf("%w: a count of %d", ErrRows, n)
		}
		rows += n
	}
	if len(counts) != len(g.Shares) || rows < 1 || rows > MaxRows {
		return Result{}, fmt.Errorf("%w: %d counts of %d rows for %d categories", ErrRows, len(counts), rows, len(g.Shares))
	}
	observed := g.statistic(g.noisy(counts, s), rows, g.variance())
	null, r := make([]int64, len(counts)), rand.New(s)
	return observed.against(draws, func() float64 {
		multinomial(null, rows, g.Shares, r)
		return float64(g.statistic(g.noisy(null, s), rows, g.variance()))
	}), nil
}

// noisy counts: a row that is replaced leaves one category and enters another, which is a sensitivity of 2.
func (g GoodnessOfFit) noisy(counts []int64, s *noise.Stream) []float64 {
	out := make([]float64, len(counts))
	for i, n := range counts {
		out[i] = float64(n + g.Epsilon.Laplace(s, 2))
	}
	return out
}

// variance of two-sided geometric noise of e^{-eps/2}: 2a/(1-a)².
func (g GoodnessOfFit) variance() float64 {
	half := g.Epsilon.Float() / 2
	return 2 * math.Exp(-half) / (math.Expm1(-half) * math.Expm1(-half))
}

// statistic by Sherman and Morrison: with A = diag(p) + v/n the form is u'A^-1 u + (u'A^-1 p)²/(1 - p'A^-1 p).
func (g GoodnessOfFit) statistic(counts []float64, rows int64, variance float64) statistic {
	n := float64(rows)
	var form, mixed, rest float64
	for i, p := range g.Shares {
		u, a := (counts[i]-n*p)/math.Sqrt(n), p+variance/n
		form += u * u / a
		mixed += u * p / a
		rest += p * (variance / n) / a // 1 - p'A^-1 p = sum of p (1 - p/a), without cancellation
	}
	return statistic(form + mixed*mixed/rest)
}

// multinomial draws counts of rows rows by shares, category by category.
func multinomial(dst []int64, rows int64, shares []float64, r *rand.Rand) {
	left, rest := rows, 1.
	for i, p := range shares {
		dst[i] = left
		if i+1 < len(shares) && p < rest {
			dst[i] = 0
			if left > 0 {
				dst[i] = int64(distuv.Binomial{N: float64(left), P: min(1, p/rest), Src: r}.Rand())
			}
		}
		left, rest = left-dst[i], rest-p
	}
}

// Groups tests whether the values of some groups have one distribution, whatever it is: the test of Kruskal and Wallis with absolute deviations of rank sums,
//
//	sum over groups of |2 R_g - n_g (n+1)|
//
// (Couch, Kazan, Shi, Bray and Groce, arXiv 1809.01635), where ties are broken at random. A replaced value moves at most n-1 ranks by 1 and its own by as
// many, so the statistic by at most 4(n-1): the noise is for that. Where the hypothesis is true all orders of the rows are alike, so the null distribution
// is that of random orders with the same noise. It is what an analysis of variance is for, without its assumptions; values need no bounds.
type Groups struct {
	Epsilon noise.Epsilon
	Draws   int // 0 is DefaultDraws
}

// Test is of a value and a group, from 0, of each row; each group from 0 to the largest has a row. NaN is below all numbers.
func (g Groups) Test(values []float64, groups []int, s *noise.Stream) (Result, error) {
	draws, err := drawsOf(g.Draws)
	if err != nil {
		return Result{}, err
	}
	if err := g.Epsilon.Check(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	n := len(values)
	if n < 2 || n > MaxRows || len(groups) != n {
		return Result{}, fmt.Errorf("%w: %d values and %d groups, want as many, and 2 to %d", ErrRows, n, len(groups), MaxRows)
	}
	moved := 4 * uint64(n-1)
	if !g.Epsilon.Draws(moved) {
		return Result{}, fmt.Errorf("%w: epsilon %v for %d rows: noise is not drawn on so fine a grid", ErrSettings, g.Epsilon, n)
	}
	sizes, err := sizesOf(groups)
	if err != nil {
		return Result{}, err
	}
	order, keys := make([]int, n), make([]uint64, n)
	for i := range order {
		order[i], keys[i] = i, s.Uint64()
	}
	slices.SortFunc(order, func(a, b int) int {
		if c := compare(values[a], values[b]); c != 0 {
			return c
		}
		return compare(keys[a], keys[b])
	})
	labels := make([]int, n) // the group of each rank
	for rank, row := range order {
		labels[rank] = groups[row]
	}
	noisy := func() float64 { return float64(deviations(labels, sizes) + g.Epsilon.Laplace(s, moved)) }
	observed, r := statistic(noisy()), rand.New(s)
	return observed.against(draws, func() float64 {
		r.Shuffle(n, func(i, j int) { labels[i], labels[j] = labels[j], labels[i] })
		return noisy()
	}), nil
}

func compare[T float64 | uint64](a, b T) int {
	switch {
	case a < b || a != a && b == b:
		return -1
	case a > b || b != b && a == a:
		return 1
	}
	return 0
}

func sizesOf(groups []int) ([]int64, error) {
	if least, most := slices.Min(groups), slices.Max(groups); least < 0 || most < 1 || most >= MaxCategories {
		return nil, fmt.Errorf("%w: groups %d to %d, want from 0, at least two, and at most %d", ErrRows, least, most, MaxCategories)
	}
	sizes := make([]int64, slices.Max(groups)+1)
	for _, of := range groups {
		sizes[of]++
	}
	for of, n := range sizes {
		if n == 0 {
			return nil, fmt.Errorf("%w: group %d has no row", ErrRows, of)
		}
	}
	return sizes, nil
}

// deviations are the absolute deviations of twice the rank sums from what they are on average.
func deviations(labels []int, sizes []int64) int64 {
	sums := make([]int64, len(sizes))
	for rank, of := range labels {
		sums[of] += 2 * int64(rank+1)
	}
	total := int64(0)
	for of, sum := range sums {
		off := sum - sizes[of]*int64(len(labels)+1)
		total += max(off, -off)
	}
	return total
}

func drawsOf(draws int) (int, error) {
	if draws == 0 {
		return DefaultDraws, nil
	}
	if draws < 1 || draws > MaxDraws {
		return 0, fmt.Errorf("%w: %d draws, want 1 to %d", ErrSettings, draws, MaxDraws)
	}
	return draws, nil
}

// statistic is one of which large values are extreme.
type statistic float64

// against simulates the null distribution: with the statistic itself among the draws a p-value of at most p has a probability of at most p (Phipson and Smyth 2010).
func (x statistic) against(draws int, null func() float64) Result {
	as := 1
	for range draws {
		if null() >= float64(x) {
			as++
		}
	}
	return Result{float64(x), float64(as) / float64(draws+1)}
}
