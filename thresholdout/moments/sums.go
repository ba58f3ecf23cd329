package moments

import (
	"fmt"
	"math/big"
	"math/bits"
)

// Steps of the grid on which values are stored, and of their squares.
const (
	grid    = 1 << 30
	squares = 1 << 60
)

// gridError is what rounding the units' values to the grid moves a mean by at most: half a step for a row's number and half a step for the mean over a unit's
// rows. What floating point adds to it, 2^-22 of a step, is far less than endSlack.
const gridError = 1.0 / grid

// weightError is more than what rounding to the grid moves A - rB of one unit by, whatever r in [0,1], where B is a weight: of A as much as a mean, of B half a step for the unit. A ratio moves by as much divided by the mean of B
// (docs/proofs/groups-and-weights.md, section 3); a thousandth is for floating point.
const weightError = 1.5 * gridError * 1.001

// Wide is an unsigned sum of 128 bits: of up to 2^64 squares on their grid.
type Wide struct{ Hi, Lo uint64 }

// AddSquare adds x^2, for a value x in steps of the grid, 0 <= x <= 2^30.
func (w *Wide) AddSquare(x int64) { w.AddProduct(x, x) }

// AddProduct adds x y, each in steps of the grid between 0 and 2^30.
func (w *Wide) AddProduct(x, y int64) {
	var carry uint64
	w.Lo, carry = bits.Add64(w.Lo, uint64(x)*uint64(y), 0)
	w.Hi += carry
}

// AddSums adds the product of two sums, neither negative.
func (w *Wide) AddSums(x, y int64) {
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	w.Plus(Wide{hi, lo})
}

// Plus adds the sum of other units.
func (w *Wide) Plus(other Wide) {
	var carry uint64
	w.Lo, carry = bits.Add64(w.Lo, other.Lo, 0)
	w.Hi += other.Hi + carry
}

// Float is the sum in units of the values, rounded.
func (w Wide) Float() float64 {
	f, _ := new(big.Float).SetInt(w.big()).Float64()
	return f / squares
}

func (w Wide) big() *big.Int {
	x := new(big.Int).SetUint64(w.Hi)
	return x.Or(x.Lsh(x, 64), new(big.Int).SetUint64(w.Lo))
}

// Sums are the exact sums of a question over the units of one part.
type Sums struct {
	Units   int64 // how many units have B = 1; all units of the part for a mean
	Sum     int64 // of A over them, in steps of 2^-30
	Squares Wide  // of A^2 over them, in steps of 2^-60; never rounded
}

// Of are the sums of values in steps of the grid.
func Of(values []int64) (s Sums) {
	for _, x := range values {
		s.Units++
		s.Sum += x
		s.Squares.AddSquare(x)
	}
	return s
}

// maxUnits keeps a sum of values within 62 bits, as everywhere in the server.
const maxUnits = 1 << 32

// check refuses sums that no units have: n sum A^2 >= (sum A)^2, and A^2 <= A.
func (s Sums) check() error {
	if s.Units < 0 || s.Units > maxUnits || s.Sum < 0 || s.Sum > s.Units*grid {
		return fmt.Errorf("moments: a sum of %d steps over %d units; each unit has between 0 and %d", s.Sum, s.Units, int64(grid))
	}
	if s.spread().Sign() < 0 || s.Squares.big().Cmp(new(big.Int).Lsh(big.NewInt(s.Sum), 30)) > 0 {
		return fmt.Errorf("moments: the sum of squares fits no %d values between 0 and 1 with this sum", s.Units)
	}
	return nil
}

// Check is an error where no values have such sums.
func (s Sums) Check() error { return s.check() }

// Moments are the mean and the variance, each a correct rounding of the exact fraction or the float next to it. There must be a unit.
func (s Sums) Moments() (mean, variance float64) { return s.moments() }

// spread is n sum A^2 - (sum A)^2 in steps of 2^-60: n^2 times the variance.
func (s Sums) spread() *big.Int {
	n, sum := big.NewInt(s.Units), big.NewInt(s.Sum)
	x := new(big.Int).Mul(n, s.Squares.big())
	return x.Sub(x, sum.Mul(sum, sum))
}

// near says whether the mean is at most away steps from guess.
func (s Sums) near(guess, away int64) bool {
	// |Sum - n guess| <= n away; each product is at most 2^62, as a shifted guess is between -1 and 2.
	d := s.Sum - s.Units*guess
	return max(d, -d) <= s.Units*away
}

// steady says whether the variance is at most variance, in steps of 2^-60.
func (s Sums) steady(variance int64) bool {
	n := big.NewInt(s.Units)
	limit := new(big.Int).Mul(n, n)
	return s.spread().Cmp(limit.Mul(limit, big.NewInt(variance))) <= 0
}

// Steady says whether the variance over the units is at most variance, in steps of 2^-60, exactly; an error says that no units have such sums.
func (s Sums) Steady(variance int64) (bool, error) {
	if err := s.check(); err != nil {
		return false, err
	}
	return s.Units > 0 && s.steady(variance), nil
}

// moments are the mean and the variance, each a correct rounding of the exact fraction or the float next to it.
func (s Sums) moments() (mean, variance float64) {
	n := big.NewInt(s.Units)
	mean = float64(s.Sum) / float64(s.Units) / grid
	v, _ := new(big.Rat).SetFrac(s.spread(), new(big.Int).Lsh(n.Mul(n, n), 60)).Float64()
	return mean, v
}
