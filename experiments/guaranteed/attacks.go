package guaranteed

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
)

// attackSizes are those at which attacks are measured, for the half-widths in their order: a quick run has the first of each. Work grows as n k, and of the mechanisms that
// compare with training as k.
var attackSizes = map[string][][]int64{
	"naive":           {{3000, 10000, 30000}, {1000, 3000, 10000}},
	"split":           {{30000, 100000}, {10000, 30000}},
	"gaussian":        {{3000, 10000, 30000}, {1000, 3000, 10000}},
	"thresholdout":    {{3000, 10000}, {1000, 3000}},
	"guess_and_check": {{3000, 30000}, {1000, 10000}},
}

// promisedSizes are those at which attacks are played with as many questions as are guaranteed, for the half-widths in their order. A raw holdout is broken there by as many questions as gaussian guarantees.
var promisedSizes = []int64{30000, 10000}

// around are the numbers of questions at which an attack is measured, over theory's at which it breaks the half-width.
var around = []float64{0.8, 1, 1.25}

// groups of runs have an estimate each, by which the error of their mean is known.
const groups = 20

// cell is an attack on one mechanism, with some numbers of questions.
type cell struct {
	rival    analysts.Rival
	w        float64
	n        int64
	ks       []int64
	promised bool        // ks is the number that is guaranteed
	theory   float64     // the number of questions at which the attack breaks the half-width; with promised, the mean of a run's largest error
	runs     [][]float64 // the largest error at each of ks, of each run
}

func newCells(quick bool, counted []point) ([]*cell, error) {
	var cells []*cell
	for _, r := range analysts.Rivals {
		for i, w := range widths {
			of := attackSizes[r.Name][i]
			if quick {
				of = of[:1]
			}
			for _, n := range of {
				theory, err := r.Breaks(n, w)
				if err != nil {
					return nil, err
				}
				c := &cell{rival: r, w: w, n: n, theory: theory}
				for _, times := range around {
					c.ks = append(c.ks, int64(math.Round(times*theory)))
				}
				cells = append(cells, c)
			}
		}
	}
	for _, r := range analysts.Rivals {
		c, ok := curveOf(r.Name)
		if !ok { // a raw holdout guarantees nothing
			c, _ = curveOf(gaussian)
		}
		for i, w := range widths {
			n := promisedSizes[i]
			k, known := valueAt(counted, c.name, w, n)
			if !known || k < 2 {
				return nil, fmt.Errorf("experiments: guaranteed: %s guarantees %v questions about %d units", c.name, k, n)
			}
			theory, err := r.Worst(n, int64(k))
			if err != nil {
				return nil, err
			}
			cells = append(cells, &cell{rival: r, w: w, n: n, ks: []int64{int64(k)}, promised: true, theory: theory})
		}
	}
	return cells, nil
}

// play is one run at each number of questions: its largest error.
func (c *cell) play(seed uint64) ([]float64, error) {
	worst := make([]float64, len(c.ks))
	for i, k := range c.ks {
		game, err := c.rival.Game(c.n, k, run.SeedOf(seed, uint64(i)))
		if err != nil {
			return nil, err
		}
		worst[i] = game.Worst
	}
	return worst, nil
}

// breaks are estimates of the number of questions at which the mean of the largest error is the half-width: one of each group of runs, by the line through the logarithms.
func (c *cell) breaks() []float64 {
	var found []float64
	count := min(groups, len(c.runs))
	for g := range count {
		x, y := make([]float64, len(c.ks)), make([]float64, len(c.ks))
		for i, k := range c.ks {
			sum, runs := 0.0, 0
			for j := g; j < len(c.runs); j += count {
				sum += c.runs[j][i]
				runs++
			}
			x[i], y[i] = math.Log(float64(k)/c.theory), math.Log(sum/float64(runs)/c.w)
		}
		// The slope is theory's: that of three points close to each other is mostly noise.
		found = append(found, c.theory*math.Exp(stat.Mean(x, nil)-stat.Mean(y, nil)/c.slope()))
	}
	return found
}

// slope is how the logarithm of the largest error grows with that of the number of questions, by theory.
func (c *cell) slope() float64 {
	low, high := c.ks[0], c.ks[len(c.ks)-1]
	below, err := c.rival.Worst(c.n, low)
	if err != nil {
		return math.NaN()
	}
	above, err := c.rival.Worst(c.n, high)
	if err != nil {
		return math.NaN()
	}
	return math.Log(above/below) / math.Log(float64(high)/float64(low))
}

// missed is the number of runs with an error beyond the half-width.
func (c *cell) missed() int {
	count := 0
	for _, r := range c.runs {
		if r[0] > c.w {
			count++
		}
	}
	return count
}

// reach is the mean over runs of the largest error, in half-widths.
func (c *cell) reach() float64 {
	sum := 0.0
	for _, r := range c.runs {
		sum += r[0] / c.w
	}
	return sum / float64(max(1, len(c.runs)))
}

func (c *cell) row() run.Row {
	row := run.Row{Condition: named(c.w), Method: c.rival.Name, N: c.n, Confidence: confidence, Set: breakingQuestions}
	if c.promised {
		row.Set, row.K, row.Rate = missedRuns, c.ks[0], true
		return run.Measured(row, c.runs, func(r []float64) float64 { return run.Indicator(r[0] > c.w) })
	}
	values := c.breaks()
	row.Summarise(values)
	row.Repetitions = len(values)
	return row
}

// measuredAt is the row of the measured number at which an attack breaks a half-width.
func measuredAt(cells []*cell, rival string, w float64, n int64) (run.Row, bool) {
	for _, c := range cells {
		if c.rival.Name == rival && c.w == w && c.n == n && !c.promised && len(c.runs) > 0 {
			return c.row(), true
		}
	}
	return run.Row{}, false
}
