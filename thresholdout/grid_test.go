package thresholdout

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// A table that is fixed is a law of units that are not alike, and its own ratio is the target. So every interval must have the ratio in it that the table has without the grid, at any level.

// fineSteps are how many a number of a gridUnit may be within a step of the grid.
const fineSteps = 1 << 10

// gridUnit is so many units alike: of rows, in some of which a condition holds, with numbers there in steps of 1/fineSteps of the grid's.
type gridUnit struct {
	copies, rows, votes int64 // it counts by its rows out of so many votes, where these are more
	numbers             []int64
}

// stored are A and B in steps, rounded as the kernel does it: each number, then the unit.
func (u gridUnit) stored() (a, b int64) {
	per := max(u.rows, u.votes)
	rounded := func(s int64) int64 { return (2*s + per) / (2 * per) }
	for _, x := range u.numbers {
		a += (x + fineSteps/2) / fineSteps
	}
	return rounded(a), rounded(int64(len(u.numbers)) * grid)
}

// add adds what copies of the unit have without the grid.
func (u gridUnit) add(a, b *big.Rat) {
	sum := int64(0)
	for _, x := range u.numbers {
		sum += x
	}
	per := big.NewRat(u.copies, max(u.rows, u.votes))
	a.Add(a, new(big.Rat).Mul(per, big.NewRat(sum, fineSteps*grid)))
	b.Add(b, per.Mul(per, big.NewRat(int64(len(u.numbers)), 1)))
}

// times is a sum of so many products.
func times(copies, x, y int64) (w moments.Wide) {
	w.AddSums(copies, x*y)
	return w
}

// weightedTable are the sums of a table, and its ratio without the grid.
func weightedTable(units []gridUnit) (w WeightedSums, ratio float64) {
	above, below := new(big.Rat), new(big.Rat)
	for _, u := range units {
		a, b := u.stored()
		w.Units += u.copies
		w.A += a * u.copies
		w.B += b * u.copies
		w.SquareA.Plus(times(u.copies, a, a))
		w.Mixed.Plus(times(u.copies, a, b))
		w.SquareB.Plus(times(u.copies, b, b))
		u.add(above, below)
	}
	ratio, _ = above.Quo(above, below).Float64()
	return w, ratio
}

// rootTable are the sums of a table of which each unit counts once, by the mean of its numbers, if it has any; and the mean without the grid.
func rootTable(units []gridUnit) (r RootSums, mean float64) {
	r.Partial = true
	sum := new(big.Rat)
	for _, u := range units {
		r.All += u.copies
		if len(u.numbers) == 0 {
			continue
		}
		u.rows, u.votes = int64(len(u.numbers)), 0
		a, _ := u.stored()
		r.Units += u.copies
		r.Sum += a * u.copies
		r.Squares.Plus(times(u.copies, a, a))
		u.add(sum, new(big.Rat))
	}
	mean, _ = sum.Quo(sum, big.NewRat(r.Units, 1)).Float64()
	return r, mean
}

// covered is an error where an interval of a fixed table has not its own value in it, read as a last answer or checked with next to no margins, at a level. Margins are whole steps: guesses that are
// so many steps off leave more or less of one.
func covered(s LastStatistic, n int64, level, truth float64, guesses ...int64) error {
	r, err := s.ReadLast(s, LastPlanning{N: n, Questions: 1, Level: level, Chernoff: true})
	if err != nil {
		return err
	}
	if low, high := r.Interval(level); low > truth || high < truth {
		return fmt.Errorf("a last answer at level %v: [%v, %v], the table has %v", level, low, high, truth)
	}
	value, _ := s.Value()
	for _, off := range guesses {
		guess := Guess{}
		if at := value + float64(off)/float64(grid); off != 0 && at >= 0 && at <= 1 {
			guess.Value = &at
		}
		c, err := s.Plan(Planning{N: n, Questions: 1, Deviations: 1e-6, Level: level, Guess: &guess})
		if err != nil {
			return err
		}
		f, err := c.Find(s)
		if err != nil {
			return err
		}
		if i, ok := f.Interval(level); !ok || i.Low > truth || i.High < truth {
			return fmt.Errorf("a check at level %v with a guess that is %d steps off: %+v, the table has %v", level, off, i, truth)
		}
	}
	return nil
}

// TestRatiosWithoutTheGrid: units of 10 to 100 rows, a condition in one of them, one constant number there. Each of A and B is rounded, so that the ratio is off by up to some ten steps of the grid, more than
// the interval of a million of such units is wide on the side of 0.
func TestRatiosWithoutTheGrid(t *testing.T) {
	for _, c := range []struct{ n, rows, steps int64 }{
		{1_000_000, 20, 30}, {1_000_000, 20, 1010}, {1_000_000, 20, 10_030}, {1_000_000, 100, 150}, {400_000, 20, 30}, {100_000, 20, 30}, {4_000_000, 10, 15}, {4_000_000, 10, 20_015},
	} {
		var guesses []int64
		for off := range 2*c.rows + 3 {
			guesses = append(guesses, off-c.rows-1)
		}
		for _, number := range []int64{c.steps, grid - c.steps} {
			w, ratio := weightedTable([]gridUnit{{copies: c.n, rows: c.rows, numbers: []int64{number * fineSteps}}})
			for _, level := range []float64{0.01, 3.69, 8.39} {
				if err := covered(w, c.n, level, ratio, guesses...); err != nil {
					t.Errorf("%d units of %d rows, one with %d steps: %v", c.n, c.rows, number, err)
				}
			}
		}
	}
}

// TestLargestRounding: 2^31 units alike whose rows, and then they themselves, are all rounded to the same side, as far as units of some 60 rows can be: A - rB is off by up to 1.29 steps. Where nothing varies an
// interval at a low level is narrower than a step, so that it has the ratio only if all of that is allowed for. Red where 1.2 are allowed for.
func TestLargestRounding(t *testing.T) {
	const n = 1 << 31
	largest := 0.0
	for _, near := range []float64{0.03, 0.5, 0.97} {
		for _, rows := range []int64{59, 60, 61, 97} {
			for _, side := range []float64{-1, 1} {
				var worst gridUnit
				most := -1.0
				for where := rows / 2; where < rows; where += rows/2 - 1 {
					for k := range 2 * rows {
						u := gridUnit{copies: n, rows: rows, numbers: make([]int64, where)}
						for i := range u.numbers {
							u.numbers[i] = (int64(near*float64(grid))+k)*fineSteps + fineSteps/2 - int64((1-side)/2) // half a step up, or nearly as much down
						}
						a, b := u.stored()
						_, r := weightedTable([]gridUnit{u})
						if off := side * (float64(a) - r*float64(b)); off > most {
							worst, most = u, off
						}
					}
				}
				largest = max(largest, most)
				w, ratio := weightedTable([]gridUnit{worst})
				for _, level := range []float64{1e-3, 0.1} {
					if err := covered(w, n, level, ratio, 0); err != nil {
						t.Errorf("%d of %d rows near %v, off by %v steps: %v", len(worst.numbers), rows, near, side*most, err)
					}
				}
			}
		}
	}
	t.Logf("A - rB is off by up to %.3f steps", largest)
	if largest < 1.29 {
		t.Errorf("A - rB is off by no more than %v steps: the search is too weak", largest)
	}
}

// TestTablesWithoutTheGrid: tables of up to 2^32 units that vary by next to nothing, near an end of the range or anywhere: ratios by weights, means and differences.
func TestTablesWithoutTheGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Numbers vary by a power of two of steps, or not at all, about one that is a power of two of steps from an end.
		power := func(name string, most int) int64 {
			e := rapid.IntRange(-1, most).Draw(t, name)
			if e < 0 {
				return 0
			}
			return rapid.Int64Range(1<<e, 2<<e).Draw(t, name)
		}
		table := func(name string, copies int64) (units []gridUnit) {
			middle, spread := power(name+" from its end", 39), power(name+" spread", 12)
			if rapid.Bool().Draw(t, name+" mirrored") {
				middle = grid*fineSteps - middle
			}
			for i := range rapid.IntRange(1, 3).Draw(t, name+" kinds") {
				u := gridUnit{copies: copies >> (i * 3), rows: rapid.Int64Range(1, 60).Draw(t, "rows"), votes: rapid.SampledFrom([]int64{0, 7, 60, 1000}).Draw(t, "votes")}
				for range rapid.Int64Range(min(1, int64(1-i)), min(u.rows, 8)).Draw(t, "where") {
					u.numbers = append(u.numbers, min(max(middle+rapid.Int64Range(-spread, spread).Draw(t, "number"), 0), grid*fineSteps))
				}
				if u.copies > 0 {
					units = append(units, u)
				}
			}
			return units
		}
		copies := int64(1) << rapid.IntRange(10, 30).Draw(t, "log copies")
		level := math.Exp(rapid.Float64Range(-7, 3.5).Draw(t, "log level"))
		off := rapid.Int64Range(-60, 60).Draw(t, "guess is off")
		first := table("first", copies)
		w, ratio := weightedTable(first)
		one, mean := rootTable(first)
		if err := covered(w, w.Units, level, ratio, off); err != nil {
			t.Fatalf("ratio of %+v: %v", first, err)
		}
		if err := covered(one, one.All, level, mean, off); err != nil {
			t.Fatalf("mean of %+v: %v", first, err)
		}
		other, less := rootTable(table("second", copies))
		one.All += other.All
		other.All = one.All
		if err := covered(DifferenceSums{one, other}, one.All, level, (1+mean-less)/2, off); err != nil {
			t.Fatalf("difference from %+v: %v", first, err)
		}
	})
}
