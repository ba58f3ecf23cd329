package hypothesis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// MaxCells is how many pairs of categories a test of independence can have: it counts them again for each draw.
const MaxCells = 1 << 16

// Independence tests whether two categories of each row are independent, by the statistic
//
//	T = sum over pairs (a,b) of |n n_ab - n_a n_b|
//
// of the n_ab rows with the categories a and b among n. It is a permutation test with noise on every statistic (Kim and Schrab, arXiv 2310.19043): T of the
// table and T of Draws tables in which the second categories are in random orders each get noise of their own of the same law, and the hypothesis is
// rejected where at most Level of all of these are as large as the first, itself included.
//
// Level: where the categories are independent, the table and those in random orders have one law together whatever their order, and so have their noisy
// statistics. So a true hypothesis is rejected with a probability of at most Level, at any number of rows.
//
// Privacy of what Test returns, of a bit (this argument is written for this T): let one row be replaced, and the orders and the noise of all but the first
// statistic be as they are. T moves by at most 6n: two counts n_ab by 1, and as much of the row and column sums. T in an order moves by at most 8n, for
// there the row's two categories stand in two pairs. So does the statistic that the first one must exceed, which is one of them by size. Their difference
// moves by at most 14n, and the first one's noise is for that. The bit alone is covered: how many of the statistics are larger tells more, and is not
// returned.
type Independence struct {
	Epsilon noise.Epsilon
	Level   float64 // in (0,1)
	Draws   int     // 0 is DefaultDraws; with fewer than 1/Level - 1 nothing is ever rejected, which is refused
}

// independenceMoves is by how many times the number of rows the statistic moves against the one that it must exceed.
const independenceMoves = 14

// Test is of the two categories of each row, each from 0 to the largest, and reports whether the hypothesis is rejected: whether they depend on each other.
// Which categories there are is public.
func (test Independence) Test(first, second []int, s *noise.Stream) (rejected bool, err error) {
	draws, err := drawsOf(test.Draws)
	if err != nil {
		return false, err
	}
	if !(test.Level > 0 && test.Level < 1) {
		return false, fmt.Errorf("%w: a level of %v, want one between 0 and 1", ErrSettings, test.Level)
	}
	as := int(math.Floor(test.Level * float64(draws+1))) // how many may be as large
	if as < 1 {
		return false, fmt.Errorf("%w: %d draws reject nothing at the level %v: at least %.0f are needed", ErrSettings, draws, test.Level, math.Ceil(1/test.Level)-1)
	}
	if err := test.Epsilon.Check(); err != nil {
		return false, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	n := len(first)
	if n < 2 || n > MaxRows || len(second) != n {
		return false, fmt.Errorf("%w: %d and %d categories, want as many, and 2 to %d", ErrRows, n, len(second), MaxRows)
	}
	moves := independenceMoves * uint64(n)
	if !test.Epsilon.Draws(moves) {
		return false, fmt.Errorf("%w: epsilon %v for %d rows: noise is not drawn on so fine a grid", ErrSettings, test.Epsilon, n)
	}
	p, err := newPairs(first, second)
	if err != nil {
		return false, err
	}
	noisy := func() int64 { return p.statistic() + test.Epsilon.Laplace(s, moves) }
	observed, larger, r := noisy(), 1, rand.New(s)
	for range draws { // all of them, also where it is decided: how long it takes is no second answer
		r.Shuffle(n, func(i, j int) { p.second[i], p.second[j] = p.second[j], p.second[i] })
		if noisy() >= observed {
			larger++
		}
	}
	return larger <= as, nil
}

// pairs are the rows of a test of independence, with room to count them.
type pairs struct {
	first, second []int
	rows, columns []int64 // how many rows have each category
	counts        []int64 // of each pair
}

func newPairs(first, second []int) (*pairs, error) {
	p := &pairs{first: first, second: slices.Clone(second)}
	for _, side := range []struct {
		of   []int
		sums *[]int64
	}{{first, &p.rows}, {second, &p.columns}} {
		least, most := slices.Min(side.of), slices.Max(side.of)
		if least < 0 || most >= MaxCategories {
			return nil, fmt.Errorf("%w: categories %d to %d, want from 0, and at most %d", ErrRows, least, most, MaxCategories)
		}
		*side.sums = make([]int64, most+1)
		for _, c := range side.of {
			(*side.sums)[c]++
		}
	}
	if cells := len(p.rows) * len(p.columns); cells > MaxCells {
		return nil, fmt.Errorf("%w: %d pairs of categories, at most %d", ErrRows, cells, MaxCells)
	}
	p.counts = make([]int64, len(p.rows)*len(p.columns))
	return p, nil
}

// statistic is at most 2 n², which MaxRows keeps within 2^45.
func (p *pairs) statistic() (sum int64) {
	clear(p.counts)
	for i, a := range p.first {
		p.counts[a*len(p.columns)+p.second[i]]++
	}
	n := int64(len(p.first))
	for a, row := range p.rows {
		for b, column := range p.columns {
			off := n*p.counts[a*len(p.columns)+b] - row*column
			sum += max(off, -off)
		}
	}
	return sum
}
