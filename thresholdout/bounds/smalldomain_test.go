package bounds

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dp/pmw"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// cellsWidth is how far the means of all functions of a cell with values in [0,1] are from their expectations, together, with probability 1-beta.
func cellsWidth(n, cells, beta float64) float64 {
	return min(1, CellsBySets(int64(n), int64(cells), beta), CellsBySpread(int64(n), int64(cells), beta))
}

// describedWidth is that of multiplicative weights without noise, by the length of the transcript: a guess that is off by more than d is mended by one of c
// cells, at most ln(cells)/(2 d²) times. The best of some d and c.
func describedWidth(n, cells, k, beta float64) float64 {
	best := 1.0
	for exponent := 0.; exponent <= 16; exponent += .5 {
		updates := math.Floor(math.Exp2(exponent))
		d := math.Sqrt(math.Log(cells) / (2 * updates))
		for _, c := range []float64{10, 20, 50, 100, 200, 500, 1000} {
			places := 0.0 // of so many of k: at most half of them have the most
			if u := min(updates, math.Floor(k/2)); u > 0 {
				a, _ := math.Lgamma(k + 1)
				b, _ := math.Lgamma(u + 1)
				rest, _ := math.Lgamma(k - u + 1)
				places = a - b - rest
			}
			level := math.Log(2*k*(updates+1)/beta) + places + updates*math.Log(c)
			best = min(best, max(d, .5/c)+math.Sqrt(level/(2*n)))
		}
	}
	return best
}

// privateWidth is less than any that follows for dp/pmw from its privacy: the error of its answers about the table, and what pure epsilon lets a mean
// move on average.
func privateWidth(n, cells, k, beta float64) float64 {
	best := 1.0
	for exponent := -4.; exponent <= 2; exponent += .5 {
		eps := math.Exp2(exponent)
		set, err := pmw.Plan(int(cells), int64(n), eps, k, beta)
		if err != nil {
			continue
		}
		best = min(best, set.Accuracy(k, beta)+math.Tanh(eps/4))
	}
	return best
}

// TestSmallDomainsOnThePage recomputes the table of the decision that multiplicative weights are no mechanism of the server.
func TestSmallDomainsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/decisions/0009-pmw.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for name, c := range map[string]struct{ n, cells, k float64 }{
		"30,000 | 96 | 1,000":               {30_000, 96, 1e3},
		"30,000 | 10,000 | 1,000,000":       {30_000, 10_000, 1e6},
		"1,000,000 | 100,000 | 100,000,000": {1e6, 100_000, 1e8},
	} {
		gaussian, err := AdaptiveHoeffdingScheduled(int64(c.n), int64(c.k), .05)
		if err != nil {
			t.Fatal(err)
		}
		row := fmt.Sprintf("| %s | %.3f | %.3f | %.3f | %.3f |", name, cellsWidth(c.n, c.cells, .05), describedWidth(c.n, c.cells, c.k, .05), privateWidth(c.n, c.cells, c.k, .05), min(1, gaussian.HalfWidth))
		if strings.Contains(string(page), row) {
			rows++
		} else {
			t.Errorf("not on the page: %s", row)
		}
	}
	if rows < 3 {
		t.Errorf("%d rows", rows)
	}
}

// TestCellsWidth: of populations of a few cells, the largest deviation over all functions of a cell, which is half the sum of the cells' own, leaves the
// width no more often than beta, at a false-alarm probability of 1e-6 each. Six tenths of it are left in most samples of some population.
func TestCellsWidth(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 18))
	most := 0.0
	for _, cells := range []int{2, 5, 40, 200} {
		for _, even := range []bool{true, false} {
			const n, beta, samples = 400, .1, 400
			law, total := make([]float64, cells), 0.0
			for i := range law {
				law[i] = 1
				if !even {
					law[i] = random.ExpFloat64()
				}
				total += law[i]
			}
			width, missed, near := cellsWidth(n, float64(cells), beta), 0, 0
			for range samples {
				counts := make([]float64, cells)
				for range n {
					x, at := random.Float64()*total, 0
					for x > law[at] && at < cells-1 {
						x -= law[at]
						at++
					}
					counts[at]++
				}
				deviation := 0.0
				for i, count := range counts {
					deviation += math.Abs(count/n-law[i]/total) / 2
				}
				if deviation > width {
					missed++
				}
				if deviation > .6*width {
					near++
				}
			}
			if err := stattest.AtMost(missed, samples, beta, 1e-6); err != nil {
				t.Errorf("%d cells: %v", cells, err)
			}
			most = max(most, float64(near)/samples)
		}
	}
	if most < .5 {
		t.Errorf("only %.2f of the samples are near the width: the test would not notice one that is too small", most)
	}
}
