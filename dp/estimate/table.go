package estimate

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
)

// Table is a number from each row, and whose row it is.
type Table struct {
	Values []float64
	Owners []unit.Owner // one for each row; nil where each row is protected by itself
}

// Guard is what an estimate is protected by: whose data, and by what noise for the whole release.
type Guard struct {
	unit.Protection
	Noise Noise
}

// Estimate is what is released. The interval holds what the estimate is of with at least the confidence that was asked for: for the rows that were kept, as
// they were clamped and rounded to the grid (2^-30 of the range). It is about the noise and nothing else, but where an estimate says more.
type Estimate struct {
	Value     float64
	Low, High float64
}

// Confidence of intervals where none is asked for.
const DefaultConfidence = 0.95

// asked is the probability with which an interval may miss.
func asked(confidence float64) (beta float64, err error) {
	if confidence == 0 {
		confidence = DefaultConfidence
	}
	if !(confidence > 0 && confidence < 1) {
		return 0, fmt.Errorf("%w: confidence %v is not between 0 and 1", ErrSettings, confidence)
	}
	return 1 - confidence, nil
}

func (g Guard) check() error {
	if err := g.Protection.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if g.Noise == nil {
		return fmt.Errorf("%w: no noise", ErrSettings)
	}
	return nil
}

// kept are the values of the rows that are kept.
func (g Guard) kept(t Table, s *noise.Stream) ([]float64, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if len(t.Values) > MaxRows {
		return nil, fmt.Errorf("%w: %d rows, at most %d", ErrRows, len(t.Values), MaxRows)
	}
	if (g.Unit == unit.Row{}) {
		return t.Values, nil
	}
	if len(t.Owners) != len(t.Values) {
		return nil, fmt.Errorf("%w: %d owners of %d rows", ErrRows, len(t.Owners), len(t.Values))
	}
	rows, err := g.Keep(t.Owners, s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	values := make([]float64, len(rows))
	for i, row := range rows {
		values[i] = t.Values[row]
	}
	return values, nil
}

// most bounds what a noisy sum can be: all that is said of larger ones is that they are. Sums are below it without noise, and noise that ends at
// noise.Saturation is beyond it.
const most = int64(1) << 61

// noisy is a whole number with noise.
func (g Guard) noisy(sum int64, of unit.Sensitivity, n Noise, s *noise.Stream) int64 {
	return min(max(sum+n.draw(s, of), -most), most)
}

// grid is a range of numbers as whole numbers of a step, which is a power of two: dividing by it is exact.
type grid struct {
	low, high float64
	step      float64
}

// gridFor has 2^30 steps to the farther end.
func gridFor(low, high float64) (grid, error) {
	if !(low < high) || math.IsInf(high-low, 0) {
		return grid{}, fmt.Errorf("%w: range [%v, %v]", ErrSettings, low, high)
	}
	_, exponent := math.Frexp(max(math.Abs(low), math.Abs(high)))
	g := grid{low, high, math.Ldexp(1, max(exponent-gridBits, -1074))}
	if g.step*(1<<gridBits) > math.MaxFloat64/MaxRows/2 {
		return grid{}, fmt.Errorf("%w: range [%v, %v] is so wide that a sum is not finite", ErrSettings, low, high)
	}
	return g, nil
}

// of is a number as a whole number of steps. NaN counts as low.
func (g grid) of(x float64) int64 {
	if x != x {
		x = g.low
	}
	return int64(math.Round(min(max(x, g.low), g.high) / g.step))
}

func (g grid) sum(values []float64) (sum int64) {
	for _, x := range values {
		sum += g.of(x)
	}
	return sum
}

func (g grid) sensitivity(p unit.Protection) unit.Sensitivity {
	return p.Sum(g.of(g.low), g.of(g.high))
}
