package estimate

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
)

// CentredMean is the mean of numbers, each clamped to [Low, High]: the sum of their distances from the middle over the number of rows. Where that number is
// public all noise is on the sum; else half of the budget goes to a count, and the middle makes the sum half as sensitive as one of the numbers themselves.
// Where there is no row the interval says nothing.
type CentredMean struct {
	Guard
	Low, High  float64
	Confidence float64 // of the interval; 0 is DefaultConfidence
	// Population makes the interval one of the mean of those from whom the rows were drawn, independently, of their clamped values: by Hoeffding's
	// inequality, with half of what the interval may miss by. For the unit Row.
	Population bool
}

// Release is the mean with noise, clamped to [Low, High].
func (e CentredMean) Release(t Table, s *noise.Stream) (Estimate, error) {
	values, err := e.kept(t, s)
	if err != nil {
		return Estimate{}, err
	}
	return e.of(values, s)
}

func (e CentredMean) of(values []float64, s *noise.Stream) (Estimate, error) {
	beta, err := asked(e.Confidence)
	if err != nil {
		return Estimate{}, err
	}
	if e.Population {
		if (e.Unit != unit.Row{}) {
			return Estimate{}, fmt.Errorf("%w: an interval for a population is of rows that are independent, and rows of a user are not", ErrSettings)
		}
		beta /= 2
	}
	m, err := e.Guard.moments(e.Low, e.High, 1, values, beta, s)
	if err != nil {
		return Estimate{}, err
	}
	middle, blur := e.Low+(e.High-e.Low)/2, m.grids[0].step+math.Max(math.Abs(e.Low), math.Abs(e.High))*0x1p-51
	inside := func(x float64) float64 { return min(max(x, e.Low), e.High) }
	low, high := m.mean(0)
	low, high = low-blur, high+blur
	if e.Population {
		sampling := (e.High - e.Low) * math.Sqrt(math.Log(2/beta)/(2*m.least))
		low, high = low-sampling, high+sampling
	}
	return Estimate{inside(middle + m.value(0)), inside(middle + low), inside(middle + high)}, nil
}

// Variance is the mean squared distance of numbers from their mean, each clamped to [Low, High]: noise is on the number of rows, unless it is public, on
// the sum of distances from the middle of the range, and on the sum of their squares.
type Variance struct {
	Guard
	Low, High  float64
	Confidence float64
}

// Release is the variance with noise, clamped to what a variance of such numbers can be: from 0 to (High-Low)²/4.
func (e Variance) Release(t Table, s *noise.Stream) (Estimate, error) {
	beta, err := asked(e.Confidence)
	if err != nil {
		return Estimate{}, err
	}
	values, err := e.kept(t, s)
	if err != nil {
		return Estimate{}, err
	}
	m, err := e.Guard.moments(e.Low, e.High, 2, values, beta, s)
	if err != nil {
		return Estimate{}, err
	}
	half := (e.High - e.Low) / 2
	inside := func(x float64) float64 { return min(max(x, 0), half*half) }
	low1, high1 := m.mean(0)
	low2, high2 := m.mean(1)
	// What rounding to grids, and of the distance from the middle, moves: each number by a step and by its own last bits.
	blur := m.grids[0].step + max(math.Abs(e.Low), math.Abs(e.High))*0x1p-51
	least, greatest := 0., max(low1*low1, high1*high1) // of the squared mean
	if low1 > 0 || high1 < 0 {
		least = min(low1*low1, high1*high1)
	}
	blur = 4*half*blur + m.grids[1].step
	return Estimate{inside(m.value(1) - m.value(0)*m.value(0)), inside(low2 - greatest - blur), inside(high2 - least + blur)}, nil
}

// moments are noisy sums of powers of the distance from the middle of a range, and how many rows there are.
type moments struct {
	grids        []grid
	sums, reach  []float64 // in steps of the grids
	count        float64
	least, great float64 // between which the number of rows lies, from 1
}

// moments makes the noise of the first powers, such that all intervals together miss with probability at most beta. The budget goes to equal shares to the
// sums and, unless it is public, to the count.
func (g Guard) moments(low, high float64, powers int, values []float64, beta float64, s *noise.Stream) (m moments, err error) {
	if err := g.check(); err != nil {
		return m, err
	}
	if !(low < high) || math.IsInf(high-low, 0) {
		return m, fmt.Errorf("%w: range [%v, %v]", ErrSettings, low, high)
	}
	if g.PublicRows() && len(values) == 0 {
		return m, fmt.Errorf("%w: there are none", ErrRows)
	}
	middle, half := low+(high-low)/2, (high-low)/2
	shares := powers
	if !g.PublicRows() {
		shares++
	}
	n := g.Noise
	if shares > 1 {
		n = n.share(1 / float64(shares))
	}
	beta /= float64(shares)
	var sensitivities []unit.Sensitivity
	for power := 1; power <= powers; power++ {
		from, to := -half, half
		if power == 2 {
			from, to = 0, half*half
		}
		grid, err := gridFor(from, to)
		if err != nil {
			return m, err
		}
		of := grid.sensitivity(g.Protection)
		if err := n.check(of); err != nil {
			return m, err
		}
		m.grids, sensitivities = append(m.grids, grid), append(sensitivities, of)
	}
	of := g.Protection.Count()
	if err := n.check(of); err != nil {
		return m, err
	}
	for i, grid := range m.grids {
		sum := int64(0)
		for _, x := range values {
			if x != x {
				x = low
			}
			y := min(max(x, low), high) - middle
			if i == 1 {
				y *= y
			}
			sum += grid.of(y)
		}
		m.sums = append(m.sums, float64(g.noisy(sum, sensitivities[i], n, s)))
		m.reach = append(m.reach, n.reach(sensitivities[i], beta))
	}
	m.count = float64(len(values))
	m.least, m.great = m.count, m.count
	if !g.PublicRows() {
		reach := n.reach(of, beta)
		m.count = float64(g.noisy(int64(len(values)), of, n, s))
		m.least, m.great = max(1, m.count-reach), max(1, m.count+reach)
	}
	return m, nil
}

// value is a noisy mean power.
func (m moments) value(i int) float64 { return m.sums[i] / max(1, m.count) * m.grids[i].step }

// mean is between what the mean power lies, if there is a row.
func (m moments) mean(i int) (low, high float64) {
	low, high = m.sums[i]-m.reach[i], m.sums[i]+m.reach[i]
	if low >= 0 {
		low /= m.great
	} else {
		low /= m.least
	}
	if high >= 0 {
		high /= m.least
	} else {
		high /= m.great
	}
	return low * m.grids[i].step, high * m.grids[i].step
}
