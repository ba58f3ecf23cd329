package moments

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// A measured answer says about where the holdout's own mean h is: m = h + U, with U uniform on [-r,r), drawn for this answer and then forgotten. That is to say in which cell of the width 2r, of a lattice with a random
// offset, h lies. What it said is priced by how surprising the cell is, given a guess that was public before (docs/proofs/measured.md).

// Measurement is how one question is measured, from public facts and earlier answers alone.
type Measurement struct {
	Check         // its guess; and of rank 1 the variance and the units, as ranks of a failure say them
	Half  int64   // r, in steps of 2^-30, at least 1
	Scale float64 // a of the logistic law that the weights of the cells have about the guess
}

// Cell is all that a measured answer says of the holdout.
type Cell struct {
	At    int64 // m, in steps: between -Half and 2^30 + Half
	Loss  int   // how much is known of the variance and of the units, as of a failure
	Empty bool  // no unit of the holdout is in question: At is about the guess, and the interval all that is possible
}

// Weights of what a measured answer may say.
const (
	logisticWeight = 0.95 // of the cells' law about the guess; the rest is spread over all cells alike, so that no surprise costs more than ln(20 c)
	steadyWeight   = 0.9  // of a variance within rank 1, where others are possible
	// logisticScale makes a logistic law about as wide as the normal one of this deviation: the best for guesses that are right is between .5 and .6.
	logisticScale = 0.55
)

// Resolutions of cells: half a cell in standard deviations of the holdout's mean. Wider cells say less and cost later answers less.
const (
	Resolution         = 1.0       // without a wish
	FinestResolution   = 1.0 / 3   // below, intervals get wider again
	CoarsestResolution = 64.0      // wider cells say next to nothing
	averaged           = 64        // G: parts of a cell over which a bound is averaged
	outward            = 2         // steps by which the ends of a cell are moved: half a step for the rounding of h, one for the cell's closed end
	mostHalf           = grid >> 1 // one cell on each side is all of [0,1]
)

// Measure is how a question is measured whose check is c, planned by t: in cells of so many standard deviations to half a cell.
func Measure(t Training, c Check, resolution float64) (Measurement, error) {
	if err := t.check(); err != nil {
		return Measurement{}, err
	}
	if err := c.Valid(); err != nil {
		return Measurement{}, err
	}
	if !(resolution >= FinestResolution && resolution <= CoarsestResolution) {
		return Measurement{}, fmt.Errorf("moments: half a cell of %v standard deviations; between %v and %v is possible", resolution, FinestResolution, CoarsestResolution)
	}
	units := float64(c.N)
	if t.Partial {
		units *= float64(t.Units) / float64(t.All)
	}
	units = max(units, 1)
	deviation := max(math.Sqrt(t.Second/units), 1/units)
	between := math.Sqrt(t.Second * (1/units + 1/float64(max(t.Units, 1)))) // of the guess minus h
	return Measurement{
		Check: c,
		Half:  int64(min(max(math.Round(resolution*deviation*grid), 1), mostHalf)),
		Scale: logisticScale * max(between, deviation),
	}, nil
}

// Valid says what is wrong with a measurement.
func (m Measurement) Valid() error {
	if err := m.Check.Valid(); err != nil {
		return err
	}
	if m.Half < 1 || m.Half > mostHalf || !(m.Scale > 0) || math.IsInf(m.Scale, 1) {
		return fmt.Errorf("moments: cells of %d steps to each side, with weights of the scale %v", m.Half, m.Scale)
	}
	return nil
}

// Locate is what is said of the holdout's sums. offset is U, uniform on the whole numbers from -Half to Half-1. It is the only place where the holdout is looked at.
func (m Measurement) Locate(s Sums, offset int64) (Cell, error) {
	if err := m.Valid(); err != nil {
		return Cell{}, err
	}
	if err := m.fits(s); err != nil {
		return Cell{}, err
	}
	if offset < -m.Half || offset >= m.Half {
		return Cell{}, fmt.Errorf("moments: an offset of %d for cells of %d steps to each side", offset, m.Half)
	}
	last := m.losses() - 1
	if s.Units == 0 || m.Silent() {
		return Cell{At: m.Guess + offset, Loss: last, Empty: true}, nil
	}
	c := Cell{At: (s.Sum+s.Units/2)/s.Units + offset}
	for c.Loss < last && !m.lost(s, c.Loss) {
		c.Loss++
	}
	return c, nil
}

// cells is how many cells meet [0,1] at most, whatever the offset.
func (m Measurement) cells() float64 { return math.Ceil(grid/(2*float64(m.Half))) + 1 }

// Price is what a measured answer adds to the levels of later questions: minus the logarithm of the weight of what it said.
func (m Measurement) Price(c Cell) Nats {
	at := func(steps int64) float64 { return float64(steps-m.Guess) / grid / m.Scale }
	weight := logisticWeight*logisticBetween(at(c.At-m.Half), at(c.At+m.Half)) + (1-logisticWeight)/m.cells()
	price := -math.Log(weight)
	if t := m.losses(); t > 1 {
		if c.Loss == 0 {
			price -= math.Log(steadyWeight)
		} else {
			price += math.Log(float64(t-1) / (1 - steadyWeight))
		}
	}
	return nats(price*(1+levelSlack) + priceSlack)
}

// priceSlack is more than the rounding of a weight.
const priceSlack = 1e-9

// logisticBetween is F(b) - F(a), F(x) = 1/(1+e^-x), for a < b: with all digits in both tails.
func logisticBetween(a, b float64) float64 {
	if a > 0 {
		a, b = -b, -a
	}
	return math.Exp(a) * math.Expm1(b-a) / ((1 + math.Exp(a)) * (1 + math.Exp(b)))
}

// Expected is what is said where the holdout has just what the guess is, and varies as rank 1 allows, without an offset.
func (m Measurement) Expected() Cell {
	return Cell{At: m.Guess, Empty: m.Silent(), Loss: m.expectedLoss()}
}

// Typical is what is said where the guess is off by the one standard deviation that guesses are off by: its price is about the mean price of guesses that are right.
func (m Measurement) Typical() Cell {
	c := m.Expected()
	off := int64(min(m.Scale/logisticScale*grid, grid))
	if c.At > grid/2 {
		off = -off
	}
	c.At += off
	return c
}

func (m Measurement) expectedLoss() int {
	if m.Silent() {
		return m.losses() - 1
	}
	return 0
}

// Value is the answer: the holdout's mean, moved by at most half a cell.
func (m Measurement) Value(c Cell) float64 { return float64(min(max(c.At, 0), grid)) / grid }

// Interval is the answer's. Each end misses with probability at most e^-level over all that the answer might say, the offset among it. It is a function of what was said and of public facts alone. Ends are rounded
// outward, with a step of the grid for the rounding of the units' values.
func (m Measurement) Interval(c Cell, level float64) (low, high float64) {
	if c.Empty || !(level >= 0) {
		return 0, 1
	}
	from, to := c.At-m.Half-outward, c.At+m.Half+outward
	low, high = m.low(from, c.Loss, level), 1-m.low(grid-to, c.Loss, level)
	return max(0, low-gridError), min(1, high+gridError)
}

// low is the low end where the cell begins at from, in steps.
func (m Measurement) low(from int64, loss int, level float64) float64 {
	if from+2*m.Half <= 0 {
		return 0
	}
	if m.OneChain() && m.N <= exactUnits {
		// E(Bin(n,p)/n - u)_+ <= 2 r e^-level, and h is no farther beyond u, on average, than Bin(n,p)/n is (Hoeffding 1956).
		n, cell := float64(m.N), 2*float64(m.Half)/grid
		return binomial.LowOfExcess(n, float64(from)/grid*n, level*(1+levelSlack)-math.Log(n*cell))
	}
	variance, units := 1.0, float64(m.N)
	if !m.OneChain() {
		t := float64(m.losses() - 1)
		switch {
		case loss == 0 && t > 0:
			level -= math.Log(steadyWeight)
		case t > 0:
			level += math.Log(t / (1 - steadyWeight))
		}
		switch {
		case loss < m.losses()-1:
			variance, units = float64(m.varianceAt(loss))/squares, float64(m.unitsAt(loss))
		case m.Partial:
			return 0
		}
	}
	return lowOver(float64(from)/grid, 2*float64(m.Half)/grid, variance, units, level)
}

// lowOver is the largest x with the average over the cell from u on, of this width, of bounds of P(h >= u', V <= variance, at least n units) for the expectation x, at most e^-level: a left sum of a falling function, which is too large
// and so on the safe side. It is rounded down.
func lowOver(u, width, variance, n, level float64) float64 {
	if !(n > 0) {
		return 0
	}
	limit := math.Exp(-level*(1+levelSlack)) * averaged * (1 - levelSlack)
	holds := func(x float64) bool {
		sum := 0.0
		for i := range averaged {
			sum += reaches(u+width*float64(i)/averaged, variance, n, x)
			if sum > limit {
				return false
			}
		}
		return true
	}
	low, high := 0.0, min(max(u+width, 0), 1)
	for range cellBisections {
		if mid := low + (high-low)/2; holds(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return max(0, low-endSlack)
}

const cellBisections = 60

// reaches is at least P(h >= u, V <= variance, at least n units) where the expectation is x: e^(-n kl(p || p x/u)) of [Low], which does not rise in u.
func reaches(u, variance, n, x float64) float64 {
	switch {
	case u > 1:
		return 0
	case !(u > x):
		return 1
	case x <= 0:
		return 0
	}
	second := min(u*u+variance, u)
	return math.Exp(-n * bounds.KL(min(u*u/second, 1), u*x/second) * (1 - levelSlack))
}

// Widest is how far, at most, an end of a measured answer's interval at a level is from its value: a cell, and Hoeffding's deviation at the worst of its levels. Where the exact excess is read, E(h-u)_+ is at most
// the integral of e^(-2 n x^2) from the deviation d on, at most e^(-2 n d^2) sqrt(pi/(8n)): beside cells that are far narrower than h's deviation that is the wider one. Of a condition the holdout may have no unit, and the
// interval is all that is possible.
func (m Measurement) Widest(level float64) float64 {
	if m.Partial || !(level >= 0) {
		return 1
	}
	n := float64(m.N)
	worst := level + math.Log(failureRanks/(1-steadyWeight))
	if m.OneChain() {
		worst = level + max(0, math.Log(math.Sqrt(math.Pi/(8*n))*grid/(2*float64(m.Half))))
	}
	return min(1, 2*float64(m.Half)/grid+math.Sqrt(worst*(1+levelSlack)/(2*n))+2/n+2*gridError)
}
