// Package estimate has differentially private estimators: sums, counts, means, variances, quantiles, and bounds where no range is known, each with an interval.
//
// Whose data are protected is a type (dp/unit): one row, a user, a user's rows within a window; sensitivities are computed from it. Values are clamped to a
// range that is declared, or that a release of its own has found, and rounded to integers on a grid of about 2^-30 of it. Sums of integers are exact, so
// their sensitivity is too, and the noise added to them is an integer drawn exactly (dp/noise): nothing is assumed of floating point, and no released
// number has digits that a secret has left there.
//
// [Mean] is of vectors, where one row is replaced by another and the number of rows is public.
package estimate

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/normal"
)

// Mean is the mean of rows of Dim numbers, each clamped to [Low, High], or where Norm is set of rows that are shrunk to this Euclidean norm.
//
// The clamp makes a bias where numbers lie outside; the noise grows with High - Low. Which range is best is a matter of
// the tails and of rows times epsilon: see the experiment private-mean. The error of a mean of ranges grows as Dim, and under a norm as its root.
type Mean struct {
	Dim       int // numbers of a row, from 1
	Low, High float64
	Norm      float64 // of a row, instead of Low and High, which are 0: with Gaussian noise

	Epsilon float64
	Delta   float64 // 0 for Laplace noise, else Gaussian
}

// Limits of Mean.
const (
	MaxRows    = 1 << 31 // so that a sum of 2^30 a row fits an int64 with room
	MaxDim     = 1 << 20
	MinEpsilon = 1e-6 // per number of a row under Laplace noise: the scale of the noise stays below 2^52
	gridBits   = 30
	maxNorm    = 1e300 // and twice of it is finite
)

// Errors of Mean, wrapped.
var (
	ErrSettings = errors.New("estimate: bad settings")
	ErrRows     = errors.New("estimate: bad rows")
)

// Check says what is wrong with the settings; every error wraps ErrSettings.
func (m Mean) Check() error {
	width := m.High - m.Low
	switch {
	case m.Dim < 1 || m.Dim > MaxDim:
		return fmt.Errorf("%w: %d numbers in a row", ErrSettings, m.Dim)
	case m.Norm != 0 && !(m.Norm > 0 && m.Norm < maxNorm && width == 0 && m.Low == 0):
		return fmt.Errorf("%w: norm %v, with the range [%v, %v]; a norm is from 0 to %v and has no range beside it", ErrSettings, m.Norm, m.Low, m.High, maxNorm)
	case m.Norm != 0 && m.Delta == 0:
		return fmt.Errorf("%w: a norm has Gaussian noise, for a delta above 0", ErrSettings)
	case m.Norm == 0 && !(width > 0 && width < math.Inf(1)):
		return fmt.Errorf("%w: range [%v, %v]", ErrSettings, m.Low, m.High)
	case !(m.Epsilon >= MinEpsilon*float64(m.Dim) && m.Epsilon < math.Inf(1)):
		return fmt.Errorf("%w: epsilon %v, at least %v for each number of a row", ErrSettings, m.Epsilon, MinEpsilon)
	case !(m.Delta >= 0 && m.Delta < 1):
		return fmt.Errorf("%w: delta %v is not in [0,1)", ErrSettings, m.Delta)
	}
	return nil
}

// Release returns the noisy mean of len(x)/Dim rows (row-major): unbiased for the mean of the clamped values, so that it
// can lie outside [Low, High]. NaN counts as Low. The guarantee needs a stream of a secret key that is used for nothing
// else.
func (m Mean) Release(x []float64, s *noise.Stream) ([]float64, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	rows := len(x) / m.Dim
	if rows < 1 || rows*m.Dim != len(x) || rows > MaxRows {
		return nil, fmt.Errorf("%w: %d numbers for rows of %d", ErrRows, len(x), m.Dim)
	}
	sums := make([]int64, m.Dim)
	m.sum(sums, x)
	unit := m.grid() / float64(rows)
	draw, released := m.noise(s), make([]float64, m.Dim)
	for k, sum := range sums {
		released[k] = m.Low + float64(sum+draw())*unit
	}
	return released, nil
}

// grid is the unit of the integers.
func (m Mean) grid() float64 {
	if m.Norm > 0 {
		return m.Norm / (1 << gridBits)
	}
	return (m.High - m.Low) / (1 << gridBits)
}

// sum adds the rows' integers to dst. A replaced row moves each by at most 2^30, or all together by m.moves().
func (m Mean) sum(dst []int64, x []float64) {
	if m.Norm > 0 {
		m.sumOfShrunk(dst, x)
		return
	}
	scale := (1 << gridBits) / (m.High - m.Low)
	for len(x) > 0 {
		for k := range dst {
			share := (x[k] - m.Low) * scale
			switch {
			case !(share > 0): // NaN too
			case share >= 1<<gridBits:
				dst[k] += 1 << gridBits
			default:
				dst[k] += int64(math.Round(share))
			}
		}
		x = x[len(dst):]
	}
}

// sumOfShrunk adds the integers of rows that are shrunk to the norm. NaN counts as 0, and an infinite number is all of its row.
func (m Mean) sumOfShrunk(dst []int64, x []float64) {
	row := make([]float64, len(dst)) // over its largest number, so that no square overflows
	for len(x) > 0 {
		largest := 0.
		for _, v := range x[:len(row)] {
			largest = max(largest, sizeOf(v))
		}
		squares := 0.
		for k, v := range x[:len(row)] {
			switch {
			case v != v || largest == 0:
				row[k] = 0
			case math.IsInf(largest, 1):
				row[k] = 0
				if math.IsInf(v, 0) {
					row[k] = math.Copysign(1, v)
				}
			default:
				row[k] = v / largest
			}
			squares += row[k] * row[k]
		}
		if squares > 0 {
			factor := min(largest/m.Norm, 1/math.Sqrt(squares)) * (1 << gridBits)
			for k, v := range row {
				dst[k] += int64(math.Round(v * factor))
			}
		}
		x = x[len(row):]
	}
}

// sizeOf is the size of a number, 0 for NaN.
func sizeOf(v float64) float64 {
	if v != v {
		return 0
	}
	return math.Abs(v)
}

// moves is how far a replaced row moves the sum of integers, in Euclidean norm: it leaves and another one comes. Rounding moves each coordinate by a half. A
// norm as computed is off by less than Dim + 16 parts of 2^53, which is less than Dim + 16 parts of 2^22 of a unit.
func (m Mean) moves() float64 {
	if m.Norm > 0 {
		dim := float64(m.Dim)
		return 2 * ((1 << gridBits) + math.Sqrt(dim)/2 + (dim+16)*0x1p-22)
	}
	return math.Sqrt(float64(m.Dim)) * (1 << gridBits)
}

// noise returns what draws the noise of a coordinate, in units of the grid.
func (m Mean) noise(s *noise.Stream) func() int64 {
	scale := m.scale()
	if m.Delta == 0 {
		return func() int64 { return noise.DiscreteLaplace(s, uint64(scale)) }
	}
	return func() int64 { return noise.RoundedNormal(s, scale) }
}

// scale is that of the noise of one coordinate of the sum, in units of the grid: a whole number for Laplace noise, whose
// sensitivity is in the sum of the coordinates' moves; for Gaussian noise it is in the root of their squares.
func (m Mean) scale() float64 {
	if m.Delta == 0 {
		return math.Ceil(float64(m.Dim) * (1 << gridBits) / m.Epsilon * (1 + 1e-15)) // the quotient is rounded, maybe down
	}
	return account.GaussianSigma(m.moves(), m.Epsilon, m.Delta) * (1 + 1e-11) // of a search's last digits
}

// NoiseSD is the standard deviation of the noise in each coordinate of a released mean of that many rows.
func (m Mean) NoiseSD(rows int) float64 {
	sd := m.scale()
	if m.Delta == 0 {
		sd *= math.Sqrt2 // the discrete law's variance is below this by a relative 1/(12 scale^2)
	}
	return sd * m.grid() / float64(rows)
}

// NoiseHalfWidth is how far the noise in one coordinate reaches, either way, with probability 1-beta. Sampling and
// clamping come on top.
func (m Mean) NoiseHalfWidth(rows int, beta float64) float64 {
	reach := m.scale() * m.grid() / float64(rows)
	if m.Delta == 0 {
		return -math.Log(beta) * reach
	}
	return normal.UpperQuantile(beta/2) * reach
}
