package moments

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/binomial"
)

// measurement is one about a yes/no mean, or about one of which the variance is known, in cells of so many steps to each side.
func measurement(t testing.TB, n, half int64, training Training) Measurement {
	t.Helper()
	c, err := PlanWith(training, n, 3)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Measure(training, c, Resolution)
	if err != nil {
		t.Fatal(err)
	}
	m.Half = half
	return m
}

func yesNo(p float64) Training {
	v := p * (1 - p)
	return Training{All: 1000, Units: 1000, Mean: p, Second: v, Fourth: v * (1 - 3*v), Guess: p, Binary: true}
}

// TestMeasuredNumbers: ends and prices by an independent computation (mpmath), which adds no steps of the grid.
func TestMeasuredNumbers(t *testing.T) {
	const near = 1e-7
	for _, c := range []struct {
		n                             int64
		value, half, level, low, high float64
	}{
		{12_000, 0.77, 0.00384, 7.378, 0.7558009729469014, 0.783830801011862},
		{1000, 0.77, 0.0133, 6.685, 0.722548685705179, 0.8135649699469845},
		{5000, 0.04, 0.0028, 8.2, 0.03004090369491057, 0.051678195801818316},
		{60_000, 0.9991, 0.00015, 7.5, 0.9985550708425195, 0.9994999646476902},
	} {
		m := measurement(t, c.n, int64(c.half*grid), yesNo(c.value))
		low, high := m.Interval(Cell{At: int64(c.value * grid)}, c.level)
		if math.Abs(low-c.low) > near || math.Abs(high-c.high) > near || low > c.low || high < c.high {
			t.Errorf("%+v: %v to %v", c, low, high)
		}
	}
	for _, c := range []struct {
		n                                       float64
		value, half, variance, level, low, high float64
	}{
		{12_000, 0.31, 0.0011, 0.0144, 7.5, 0.305146380997797, 0.31500541950868644},
		{2000, 0.6, 0.006, 0.04, 6.4, 0.5799429173136229, 0.6196315482961121},
	} {
		low := lowOver(c.value-c.half, 2*c.half, c.variance, c.n, c.level)
		high := 1 - lowOver(1-c.value-c.half, 2*c.half, c.variance, c.n, c.level)
		if math.Abs(low-c.low) > near || math.Abs(high-c.high) > near {
			t.Errorf("%+v: %v to %v", c, low, high)
		}
	}
	for _, c := range []struct{ value, guess, half, scale, want float64 }{ // of 1024 cells
		{0.7712, 0.77, 0.0038, 0.0033, 0.7300436316211955},
		{0.751, 0.77, 0.0038, 0.0033, 4.767842710381322},
		{0.5004, 0.5, 0.0005, 0.0009, 1.402764243593609},
	} {
		m := Measurement{Check: Check{Guess: int64(c.guess * grid), Binary: true, Ranks: []Rank{{Variance: squares}}}, Half: int64(c.half * grid), Scale: c.scale}
		price := m.Price(Cell{At: int64(c.value * grid)}).Float() + math.Log(logisticWeight*logisticBetween((c.value-c.half-c.guess)/c.scale, (c.value+c.half-c.guess)/c.scale)+0.05/m.cells()) -
			math.Log(logisticWeight*logisticBetween((c.value-c.half-c.guess)/c.scale, (c.value+c.half-c.guess)/c.scale)+0.05/1024)
		if math.Abs(price-c.want) > 3e-6 || price < c.want-1e-7 {
			t.Errorf("%+v: the price is %v", c, price)
		}
	}
}

// TestMeasuredEndsAreExact: over all samples of yes/no units and all offsets an end misses with probability at most e^-level, by sums over all counts; and nearly as often, so that no end is wider than it need be. The least place
// whose end is above the truth is looked for, since ends rise with the place.
func TestMeasuredEndsAreExact(t *testing.T) {
	const level = 3.0
	worst := 0.0
	for _, n := range []int64{1, 2, 7, 40} {
		for _, half := range []int64{grid / 100, grid / 11, grid / 3} {
			m := measurement(t, n, half, yesNo(0.4))
			for i := 1; i < 60; i++ {
				p := float64(i) / 60
				below, above := -half-1, int64(grid)+half // an end above p is at above, if anywhere
				if low, _ := m.Interval(Cell{At: above}, level); low <= p {
					continue
				}
				for above-below > 1 {
					mid := below + (above-below)/2
					if low, _ := m.Interval(Cell{At: mid}, level); low > p {
						above = mid
					} else {
						below = mid
					}
				}
				missed := 0.0
				for count := range n + 1 {
					h := (count*grid + n/2) / n
					offsets := min(max(half-(above-h), 0), 2*half) // whole numbers from above-h to half-1
					missed += math.Exp(logTerm(n, count, p)) * float64(offsets) / float64(2*half)
				}
				worst = max(worst, missed*math.Exp(level))
				if missed > math.Exp(-level) {
					t.Errorf("%d units, cells of %d, p %v: the low end misses with probability %v", n, half, p, missed)
				}
			}
		}
	}
	t.Logf("the worst case misses %.4f times what it may", worst)
	if worst < 0.99 {
		t.Errorf("no case misses more than %v of what it may: the ends are wider than they need be", worst)
	}
}

func logTerm(n, count int64, p float64) float64 {
	return binomial.LogProbability(float64(n), float64(count), p)
}

// TestMeasuredMirror: an answer about 1-A is the mirror of one about A, but for two steps.
func TestMeasuredMirror(t *testing.T) {
	for _, training := range []Training{yesNo(0.3), {All: 900, Units: 900, Mean: 0.3, Second: 0.01, Fourth: 0.0003, Guess: 0.3}} {
		other := training
		other.Mean, other.Guess = 1-training.Mean, 1-training.Guess
		a, b := measurement(t, 500, grid/50, training), measurement(t, 500, grid/50, other)
		for _, at := range []int64{grid / 4, grid / 3, grid / 2} {
			low, high := a.Interval(Cell{At: at}, 6)
			l, h := b.Interval(Cell{At: grid - at}, 6)
			if math.Abs(low-(1-h)) > 4*gridError || math.Abs(high-(1-l)) > 4*gridError {
				t.Errorf("at %v: %v to %v, its mirror %v to %v", float64(at)/grid, low, high, 1-h, 1-l)
			}
		}
	}
}

// TestMeasuredMeansCover: of values that are not 0 or 1, two kinds of unit among them, ends miss with probability at most e^-level over all counts of the values, all offsets and all ranks of the variance. It is summed over every sample.
func TestMeasuredMeansCover(t *testing.T) {
	const n, level = 16, 2.0
	values := []int64{0, grid / 4, grid}
	for _, law := range [][3]float64{{0.6, 0.3, 0.1}, {0.2, 0.75, 0.05}, {0.02, 0.97, 0.01}, {0.5, 0, 0.5}, {0.9, 0.09, 0.01}} {
		truth := law[1]/4 + law[2]
		second := law[1]/16 + law[2] - truth*truth
		training := Training{All: 50, Units: 50, Mean: truth, Second: second, Fourth: second * second * 3, Guess: truth}
		m := measurement(t, n, grid/40, training)
		m.Ranks = []Rank{{Away: grid, Variance: int64(1.2 * second * squares), Units: n}}
		if second < 0.1 && m.losses() < 2 {
			t.Fatal("nothing is said of the variance")
		}
		low, high := 0.0, 0.0
		for zeros := range int64(n + 1) {
			for quarters := range n + 1 - zeros {
				ones := n - zeros - quarters
				probability := math.Exp(logMultinomial(zeros, quarters, ones, law))
				if probability < 1e-12 {
					continue
				}
				var s Sums
				for i, count := range []int64{zeros, quarters, ones} {
					for range count {
						s.Units++
						s.Sum += values[i]
						s.Squares.AddSquare(values[i])
					}
				}
				const offsets = 16
				for i := range int64(offsets) {
					cell, err := m.Locate(s, -m.Half+(2*i+1)*m.Half/offsets)
					if err != nil {
						t.Fatal(err)
					}
					switch l, h := m.Interval(cell, level); {
					case l > truth:
						low += probability / offsets
					case h < truth:
						high += probability / offsets
					}
				}
			}
		}
		t.Logf("%v: %.3f below and %.3f above, of what may be", law, low*math.Exp(level), high*math.Exp(level))
		if max(low, high) > math.Exp(-level) {
			t.Errorf("%v: ends miss with probability %v and %v", law, low, high)
		}
	}
}

func logMultinomial(a, b, c int64, law [3]float64) float64 {
	sum := 0.0
	n, _ := math.Lgamma(float64(a + b + c + 1))
	for i, count := range []int64{a, b, c} {
		g, _ := math.Lgamma(float64(count + 1))
		sum -= g
		if count > 0 {
			sum += float64(count) * math.Log(law[i])
		}
	}
	return n + sum
}

// TestPricesAreWeights: whatever the offset, the weights of all that an answer may say add up to at most 1, and nearly to that where the guess is not at an end of the range.
func TestPricesAreWeights(t *testing.T) {
	for _, half := range []int64{grid / 7, grid / 300, grid / 5000} {
		for _, training := range []Training{yesNo(0.4), yesNo(0.001), {All: 900, Units: 900, Mean: 0.3, Second: 0.01, Fourth: 0.0003, Guess: 0.9}, {All: 900, Units: 300, Mean: 0.3, Second: 0.01, Fourth: 0.0003, Guess: 0.3, Partial: true}} {
			m := measurement(t, 2000, half, training)
			for _, offset := range []int64{0, half / 3, half, 2*half - 1} {
				sum, ranks := 0.0, m.losses()
				for at := -half + offset; at-half < grid; at += 2 * half {
					for loss := range ranks {
						sum += math.Exp(-m.Price(Cell{At: at, Loss: loss}).Float())
					}
				}
				if sum > 1 || training.Guess == 0.4 && sum < 0.97 {
					t.Errorf("half a cell of %d steps, offset %d, %d ranks: the weights add up to %v", half, offset, ranks, sum)
				}
			}
			dearest := math.Log(20*m.cells()) + 1e-5
			if ranks := m.losses(); ranks > 1 {
				dearest += math.Log(10 * float64(ranks-1))
			}
			for _, cell := range []Cell{{At: -half}, {At: grid + half - 1, Loss: m.losses() - 1}, m.Expected()} {
				if price := m.Price(cell).Float(); price > dearest || price < 0 {
					t.Errorf("the price %v of %+v, the dearest is %v", price, cell, dearest)
				}
			}
		}
	}
}

// TestLocate: the cell is about the holdout's mean, and holds it; no unit in question tells nothing.
func TestLocate(t *testing.T) {
	training := Training{All: 900, Units: 300, Mean: 0.3, Second: 0.01, Fourth: 0.0003, Guess: 0.3, Partial: true}
	m := measurement(t, 100, grid/20, training)
	s := Of([]int64{grid / 4, grid / 2, grid / 8})
	for _, offset := range []int64{-m.Half, -1, 0, m.Half - 1} {
		cell, err := m.Locate(s, offset)
		if err != nil || cell.Empty {
			t.Fatal(cell, err)
		}
		if h := s.Sum / 3; cell.At-m.Half > h || cell.At+m.Half < h {
			t.Errorf("the cell about %d does not hold %d", cell.At, h)
		}
	}
	empty, err := m.Locate(Sums{}, 5)
	if low, high := m.Interval(empty, 3); err != nil || !empty.Empty || empty.At != m.Guess+5 || low != 0 || high != 1 {
		t.Errorf("of no unit: %+v %v, %v to %v", empty, err, low, high)
	}
	for _, offset := range []int64{-m.Half - 1, m.Half} {
		if _, err := m.Locate(s, offset); err == nil {
			t.Errorf("an offset of %d is taken", offset)
		}
	}
	if _, err := m.Locate(Sums{Units: 101, Sum: 1}, 0); err == nil {
		t.Error("more units than there are")
	}
}

// TestMeasuredRanks: each rank is read at its own level, by hand.
func TestMeasuredRanks(t *testing.T) {
	const level = 6.0
	training := Training{All: 900, Units: 900, Mean: 0.4, Second: 0.001, Fourth: 0.00001, Guess: 0.4}
	m := measurement(t, 5000, grid/500, training)
	if m.losses() != failureRanks {
		t.Fatalf("%d ranks", m.losses())
	}
	last := float64(m.losses() - 1)
	for loss := range m.losses() {
		variance, paid := float64(m.varianceAt(loss))/squares, math.Log(last/0.1)
		if loss == 0 {
			paid = math.Log(1 / 0.9)
		}
		if loss == m.losses()-1 {
			variance = 1
		}
		at := int64(4 * grid / 10)
		low, _ := m.Interval(Cell{At: at, Loss: loss}, level)
		if want := lowOver(float64(at-m.Half-outward)/grid, 2*float64(m.Half)/grid, variance, 5000, level+paid) - gridError; low != want {
			t.Errorf("rank %d: the low end is %v, want %v", loss, low, want)
		}
	}
}

// TestMeasuredWidestOfNarrowCells: nor beside cells that are narrow since the training values do not vary, where the holdout's do.
func TestMeasuredWidestOfNarrowCells(t *testing.T) {
	for _, n := range []int64{20, 10_000_000} {
		for _, half := range []int64{1, 36, grid / 1000} {
			m := measurement(t, n, half, yesNo(0))
			for _, level := range []float64{1, 7} {
				c := Cell{At: grid / 2}
				low, high := m.Interval(c, level)
				if v := m.Value(c); max(high-v, v-low) > m.Widest(level) {
					t.Errorf("%d units, cells of %d steps at %v: %v in %v to %v, at most %v", n, half, level, v, low, high, m.Widest(level))
				}
			}
		}
	}
}

// TestMeasuredWidest: no end is farther from the value than is said beforehand.
func TestMeasuredWidest(t *testing.T) {
	for _, training := range []Training{yesNo(0.5), {All: 900, Units: 900, Mean: 0.5, Second: 0.05, Fourth: 0.005, Guess: 0.5}} {
		for _, n := range []int64{3, 400} {
			m := measurement(t, n, grid/30, training)
			for _, level := range []float64{1, 5, 20} {
				for at := -m.Half; at < grid+m.Half; at += grid / 37 {
					for loss := range m.losses() {
						c := Cell{At: at, Loss: loss}
						low, high := m.Interval(c, level)
						if v := m.Value(c); max(high-v, v-low) > m.Widest(level) || low > v || high < v {
							t.Fatalf("%d units at %v, rank %d: %v in %v to %v, at most %v", n, level, loss, v, low, high, m.Widest(level))
						}
					}
				}
			}
		}
	}
}
