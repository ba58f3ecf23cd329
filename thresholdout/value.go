package thresholdout

import "fmt"

// grid is the number of steps from 0 to 1 of a row function's values, and of released values.
const grid = int64(1) << 30

// gridError is more than what rounding costs: half a step each of a row's value, of a unit's mean and of the released value, and
// threshold and noise being whole steps of the sum's finer grid.
const gridError = 2.0 / float64(grid)

func (m Mean) check(units int64) error {
	if m.N != units {
		return fmt.Errorf("a mean over %d units, the guarantee is about %d", m.N, units)
	}
	if m.Sum < 0 || m.Sum > m.N*grid {
		return fmt.Errorf("the sum %d is not within 0 and %d", m.Sum, m.N*grid)
	}
	return nil
}

// steps is the scale of a number in [0,1] on the grid of sums of n units.
func steps(x float64, n int64) float64 { return x * float64(n) * float64(grid) }

// value is (Sum+noise)/(N*2^30), clipped to [0,1] and rounded half up to a multiple of 2^-30.
func (m Mean) value(noise int64) float64 {
	sum := min(max(m.Sum+noise, 0), m.N*grid) // |Sum| <= 2^61 and |noise| <= 2^62: no overflow
	return float64((sum+m.N/2)/m.N) / float64(grid)
}

// around is the interval value±width within [0,1].
func around(value, width float64, bound string, parts map[string]float64) *Interval {
	width += gridError
	return &Interval{Low: max(0, value-width), High: min(1, value+width), Bound: bound, Parts: parts}
}
