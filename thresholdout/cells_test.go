package thresholdout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestCellsWidths: the half-width is the smaller one of the two formulas, computed here by hand, and the same for the first and the last of any number of questions; Chernoff's interval lies within it, and is narrower
// for rare values. It is what the decision's table says.
func TestCellsWidths(t *testing.T) {
	for _, c := range []struct {
		n, cells int64
		sets     bool
		want     string
	}{{30_000, 96, true, "0.034"}, {30_000, 1000, false, "0.098"}, {30_000, 10_000, false, "0.296"}, {1_000_000, 1000, false, "0.017"}, {5000, 8, true, "0.029"}} {
		m, n, beta := float64(c.cells), float64(c.n), 0.05
		width := min(math.Sqrt((m*math.Ln2+math.Log(1/beta))/(2*n)), math.Sqrt((m-1)/n)/2+math.Sqrt(math.Log(1/beta)/(2*n)))
		for _, questions := range []int64{0, 1, 1 << 40} {
			g := must(t, Spec{Mechanism: Cells, N: c.n, Cells: c.cells, Questions: questions})
			if math.Abs(g.HalfWidth-width) > 1e-12 || fmt.Sprintf("%.3f", g.HalfWidth) != c.want || g.own.(*cells).Sets != c.sets {
				t.Errorf("%d cells of %d units: %v, by sets %v; want %v", c.cells, c.n, g.HalfWidth, g.own.(*cells).Sets, width)
			}
			if count, ok := g.DeclaredCells(); !ok || count != c.cells || questions == 0 && g.Questions != DefaultCellsQuestions {
				t.Errorf("%d cells, %v, %d questions", count, ok, g.Questions)
			}
			for _, s := range []State{{}, {Questions: g.Questions - 1}} {
				out, next, err := Step(g, s, Input{Holdout: mean(0.5, c.n)}, nil)
				if err != nil || next != (State{Questions: s.Questions + 1}) || out.Value != 0.5 || out.Source != FromHoldout || out.Tokens != 0 {
					t.Fatalf("%+v, %+v, %v", out, next, err)
				}
				if i := out.Interval; math.Abs(i.High-0.5-width) > 0.02*width || i.High > 0.5+width+gridError || math.Abs(i.High+i.Low-1) > 1e-9 {
					t.Errorf("[%v, %v] around one half, half-width %v", i.Low, i.High, width)
				}
			}
			rare, _, err := Step(g, State{}, Input{Holdout: mean(0.01, c.n)}, nil)
			if err != nil || c.sets != (rare.Interval.High < 0.01+0.7*width) || c.sets != (rare.Interval.Bound == "cells+chernoff") {
				t.Errorf("a rare value: %+v, %v", rare.Interval, err)
			}
			if _, _, err := Step(g, State{Questions: g.Questions}, Input{Holdout: mean(0.5, c.n)}, nil); err != ErrNoQuestions {
				t.Error(err)
			}
		}
	}
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Mechanism: Cells, N: 5000}, "cells: is missing"},
		{Spec{Mechanism: Cells, N: 5000, Cells: 1}, "cells: 1 cells"},
		{Spec{Mechanism: Cells, N: 5000, Cells: math.MaxInt64}, "not between"},
		{Spec{Mechanism: Cells, N: 1000, Cells: 1000}, "which says nothing"},
		{Spec{Mechanism: Gaussian, N: 5000, Cells: 8}, "cells does"},
		{Spec{Mechanism: Cells, N: 5000, Cells: 8, Tokens: 3}, "tokens: the mechanism cells does not take it"},
	} {
		if _, err := Plan(c.spec.WithBudget()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
	if g := must(t, Spec{Mechanism: Cells, N: 5000, Cells: 24}.WithBudget()); g.Questions != DefaultCellsQuestions || !strings.Contains(g.SayBudget(), "widens no interval") {
		t.Errorf("%d questions; %s", g.Questions, g.SayBudget())
	}
}

// cellWorld is a population of units that divide themselves among cells, and a sample of it: each unit has so many rows, drawn from its own law, which is one of two. units are the cells of their rows.
type cellWorld struct {
	expected []float64
	units    [][]int
}

func (w *cellWorld) draw(r *rand.Rand, cells, n, rows int, even bool) {
	laws := make([][]float64, 2)
	for k := range laws {
		laws[k] = make([]float64, cells)
		total := 0.0
		for i := range laws[k] {
			laws[k][i] = 1
			if !even {
				laws[k][i] = r.ExpFloat64() * r.ExpFloat64()
			}
			total += laws[k][i]
		}
		for i := range laws[k] {
			laws[k][i] /= total
		}
	}
	w.expected, w.units = make([]float64, cells), make([][]int, n)
	for j := range w.units {
		law := laws[j%2] // units that are not identically distributed
		for i, p := range law {
			w.expected[i] += p / float64(n)
		}
		for range rows {
			x, at := r.Float64(), 0
			for x > law[at] && at < cells-1 {
				x -= law[at]
				at++
			}
			w.units[j] = append(w.units[j], at)
		}
	}
}

// mean is the exact mean of a function of the cell over the units, each unit's on the grid, and its expectation.
func (w *cellWorld) mean(of []float64) (Mean, float64) {
	sum, expected := int64(0), 0.0
	for _, unit := range w.units {
		value := 0.0
		for _, cell := range unit {
			value += of[cell]
		}
		sum += int64(math.Round(value / float64(len(unit)) * float64(grid)))
	}
	for i, p := range w.expected {
		expected += p * of[i]
	}
	return Mean{Sum: sum, N: int64(len(w.units))}, expected
}

// TestCellsAdversary: an analyst asks for each cell, and then for the sets that these answers make the worst: those that look too common beside what is true, which is the worst that anybody can guess. All intervals hold
// together in as many samples as the confidence says, for units of one row and of several, of one law and of two, by either bound, and with values between 0 and 1: each at a false-alarm probability of 1e-6. Of
// half the half-width most samples would have missed, so the test would notice one.
func TestCellsAdversary(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 9))
	halved := 0.0
	for _, c := range []struct {
		cells, n, rows int
		even, sets     bool
	}{{4, 300, 1, true, true}, {4, 300, 1, false, true}, {12, 500, 3, true, true}, {60, 1000, 1, false, true}, {400, 2000, 1, true, false}, {400, 1500, 2, false, false}} {
		const confidence, samples = 0.8, 200
		g := must(t, Spec{Mechanism: Cells, N: int64(c.n), Cells: int64(c.cells), Confidence: confidence})
		if g.own.(*cells).Sets != c.sets {
			t.Fatalf("%+v: by sets %v", c, g.own.(*cells).Sets)
		}
		missed, half := 0, 0
		for range samples {
			var w cellWorld
			w.draw(r, c.cells, c.n, c.rows, c.even)
			s, miss, miss2 := State{}, false, false
			ask := func(of []float64) float64 {
				m, truth := w.mean(of)
				out, next, err := Step(g, s, Input{Holdout: m}, nil)
				if err != nil {
					t.Fatal(err)
				}
				s = next
				miss = miss || truth < out.Interval.Low || truth > out.Interval.High
				miss2 = miss2 || math.Abs(truth-out.Value) > g.HalfWidth/2
				return out.Value
			}
			high, low, graded := make([]float64, c.cells), make([]float64, c.cells), make([]float64, c.cells)
			for i := range c.cells {
				one := make([]float64, c.cells)
				one[i] = 1
				if ask(one) > w.expected[i] {
					high[i] = 1
				}
				low[i], graded[i] = 1-high[i], 0.1+0.9*high[i]
			}
			ask(high)
			ask(low)
			ask(graded)
			if miss {
				missed++
			}
			if miss2 {
				half++
			}
		}
		if err := stattest.AtMost(missed, samples, 1-confidence, 1e-6); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		halved = max(halved, float64(half)/samples)
		t.Logf("%+v: ±%.3f missed in %d of %d, of half of it in %d", c, g.HalfWidth, missed, samples, half)
	}
	if halved < 0.9 {
		t.Errorf("half the half-width is missed in %v of the samples at most: the test would not notice it", halved)
	}
}

// TestCellsLevels: at the guarantee's own level an answer's interval is the one that was given, and at higher levels intervals lie within those of lower ones, for means anywhere and by either bound: so p-values are read. None is at a level that nothing is read at.
func TestCellsLevels(t *testing.T) {
	for _, count := range []int64{2, 24, 110, 600} {
		g := must(t, Spec{Mechanism: Cells, N: 5000, Cells: count})
		for _, value := range []float64{0, 0.001, 0.02, 0.5, 0.97, 1} {
			out, _, err := Step(g, State{}, Input{Holdout: mean(value, 5000)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if low, high, ok := g.IntervalAt(State{}, out, g.Level()); !ok || math.Abs(low-out.Interval.Low) > 1e-12 || math.Abs(high-out.Interval.High) > 1e-12 {
				t.Errorf("%d cells, %v: [%v, %v] at its own level, %+v", count, value, low, high, out.Interval)
			}
			before := [2]float64{0, 1}
			for _, level := range []float64{1e-9, 1e-4, 0.01, 0.05, 0.3, 0.9, 1 - 1e-9} {
				low, high, ok := g.IntervalAt(State{}, out, level)
				if !ok || low < before[0] || high > before[1] || low > out.Value || high < out.Value {
					t.Errorf("%d cells, %v, level %v: [%v, %v] is not within %v", count, value, level, low, high, before)
				}
				before = [2]float64{low, high}
			}
			for _, level := range []float64{0, 1e-10, 1} {
				if _, _, ok := g.IntervalAt(State{}, out, level); ok {
					t.Errorf("an interval at level %v", level)
				}
			}
		}
	}
}
