package estimate

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// sized is noise of a scale, or of a deviation.
func sized(kind string, size float64) (Noise, unit.Sensitivity) {
	switch {
	case kind == "gaussian":
		return Gaussian{account.GDP(1 / size)}, unit.Sensitivity{L1: 1, L2: 1}
	case size < 1:
		return Laplace{noise.Epsilon{Num: uint64(math.Round(1 / size)), Den: 1}}, unit.Sensitivity{L1: 1, L2: 1}
	}
	return Laplace{noise.Epsilon{Num: 1, Den: 1}}, unit.Sensitivity{L1: uint64(size), L2: size}
}

// TestLaw: how far sums of noise and of sampling go is never said to be less than it is, by a separate program that convolves the laws term by term
// (testdata/reach.py), and is little more; the bound of Chernoff is above it, and at small probabilities at most 1.75 times as far, beside what is said of
// rounding.
func TestLaw(t *testing.T) {
	data, err := os.ReadFile("testdata/reach.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Noise           string
		Size            float64
		Counts, Weights [2]float64
		Rows, Rank      float64
		More            bool
		Beta, Reach     float64
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("%d entries", len(all))
	}
	for _, c := range all {
		n, of := sized(c.Noise, c.Size)
		l := law{noise: n, of: of, counts: c.Counts, weights: c.Weights, rows: c.Rows, rank: c.Rank, more: c.More}
		exact, bound := l.exact(c.Beta), l.chernoff(c.Beta)
		// Rounding up to the grid moves each part by at most a cell, of which a deviation has 256.
		most := c.Reach + (c.Counts[0]+c.Counts[1]+2)*l.deviation()/cellsOfOneDev + max(c.Weights[0], c.Weights[1])*1e-6
		if exact < c.Reach-1e-9 || exact > most*(1+1e-3) && !math.IsInf(exact, 1) {
			t.Errorf("%+v: %v, want at most %v", c, exact, most)
		}
		loose := 1.75*c.Reach + (c.Counts[0]*c.Weights[0]+c.Counts[1]*c.Weights[1])/2 // what is said of the rounding of normal variables
		if bound < c.Reach-1e-9 || c.Beta < .01 && c.Size > 1 && bound > loose || math.IsInf(exact, 1) && c.Size > 1 {
			t.Errorf("%+v: the bound is %v, the law says %v", c, bound, exact)
		}
	}
}

// TestMoments: what a noise says of its tail, deviation and moment are those of its draws' law, summed. A bound for the moment of a rounded normal variable
// may be above.
func TestMoments(t *testing.T) {
	for _, c := range []struct {
		kind string
		size float64
	}{{"laplace", 4}, {"laplace", .5}, {"laplace", 300}, {"gaussian", 6}, {"gaussian", .3}} {
		n, of := sized(c.kind, c.size)
		x := .4 / c.size
		sum, square, moment := 0., 0., 0.
		for k := -math.Ceil(60*c.size) - 3; k <= 60*c.size+3; k++ {
			p := n.beyond(of, k-1) - n.beyond(of, k)
			if q := n.beyond(of, -k-1) - n.beyond(of, -k); p < 0 || math.Abs(p-q) > 1e-15 {
				t.Fatalf("%+v: P(%v) = %v, P(%v) = %v", c, k, p, -k, q)
			}
			sum, square, moment = sum+p, square+k*k*p, moment+math.Exp(x*k)*p
		}
		deviation, log := n.deviation(of), n.logMoment(of, x)
		// The variance of a rounded normal variable is that of the normal one and 1/12, but where it is as narrow as the rounding.
		if math.Abs(sum-1) > 1e-12 || c.size > .4 && math.Abs(math.Sqrt(square)/deviation-1) > 1e-6 {
			t.Errorf("%+v: mass %v, deviation %v, not %v", c, sum, math.Sqrt(square), deviation)
		}
		if exact := math.Log(moment); log < exact*(1-1e-9) || c.kind == "laplace" && log > exact*(1+1e-6) {
			t.Errorf("%+v: the moment is %v, not %v", c, log, exact)
		}
	}
}

// TestIntervalsHold: with next to no noise and a confidence of 1 - 1e-11 an interval holds every quantile, whatever the table and the rank, and is no wider
// than from the quantile of eight rows less to the one of eight rows more, and a leaf.
func TestIntervalsHold(t *testing.T) {
	const leaf = 12. / treeLeaves
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-3, 12), rapid.SampledFrom([]float64{-2, 0, 1, 10, math.NaN()})), 1, 12).Draw(t, "values")
		var values []float64
		for range rapid.SampledFrom([]int{1, 20}).Draw(t, "copies") {
			values = append(values, some...)
		}
		rank := rapid.OneOf(rapid.Float64Range(.01, .99), rapid.SampledFrom([]float64{0, .25, .5, 1})).Draw(t, "rank")
		p := rapid.SampledFrom([]unit.Protection{rowReplaced, rowAdded}).Draw(t, "neighbours")
		got := must1(Quantiles{Guard: Guard{p, pure(64)}, Low: -2, High: 10, Confidence: 1 - 1e-11}.Intervals(Table{Values: values}, []float64{rank}, noise.Seeded(1)))[0]
		low, high := quantilesOf(values, rank, -2, 10)
		if got.Low > low || got.High < high || got.Value < got.Low || got.Value > got.High {
			t.Fatalf("[%v, %v] for %v to %v, and %v", got.Low, got.High, low, high, got.Value)
		}
		least, greatest := -2., 10.
		if off := 8 / float64(len(values)); rank-off > 0 {
			least, _ = quantilesOf(values, rank-off, -2, 10)
		}
		if off := 8 / float64(len(values)); rank+off < 1 {
			_, greatest = quantilesOf(values, rank+off, -2, 10)
		}
		if got.Low < least-1.01*leaf || got.High > greatest+1.01*leaf {
			t.Fatalf("[%v, %v] for %v to %v: a leaf is %v", got.Low, got.High, least, greatest, leaf)
		}
	})
}

// quantilesOf are the least and the greatest quantile of clamped values.
func quantilesOf(values []float64, rank, low, high float64) (least, greatest float64) {
	var all []float64
	for _, x := range values {
		if x != x {
			x = low
		}
		all = append(all, min(max(x, low), high))
	}
	slices.Sort(all)
	n := float64(len(all))
	// By a hair inside: a product that rounding has moved across a whole number is no other quantile.
	return all[min(len(all)-1, max(0, int(math.Ceil(n*rank-1e-9))-1))], all[min(len(all)-1, int(math.Floor(n*rank+1e-9)))]
}

// intervalAlarm of each statistical check of intervals; seeds are fixed.
const intervalAlarm = 1e-9

// TestEndsMissAsOftenAsSaid: an edge of the tree, at each level, below which there are exactly as many rows as the rank says, is passed by an end of the
// interval no more often than it may be wrong at one edge, with 0.03 here. The quantile is next to it, and no other edge can be passed wrongly. With rows
// from a population sampling is in the account, and there it is more than the noise. Noise of a path that is forgotten passes an edge of the last level
// five times as often, and sampling that is, ten times. That an interval is not too wide is TestLaw's.
func TestEndsMissAsOftenAsSaid(t *testing.T) {
	const each, rows = .03, 400
	s := noise.Seeded(21)
	r := rand.New(s)
	last, lasts := 0, 0 // at the last level, by noise alone
	for _, c := range []struct {
		name       string
		neighbours unit.Protection
		population bool
		noises     [2]Noise
	}{
		{"public", rowReplaced, false, [2]Noise{pure(2), Gaussian{1}}}, {"secret", rowAdded, false, [2]Noise{pure(2), Gaussian{1}}},
		{"public, population", rowReplaced, true, [2]Noise{pure(20), Gaussian{10}}}, {"secret, population", rowAdded, true, [2]Noise{pure(20), Gaussian{10}}},
	} {
		passed, total := 0, 0
		for level := range treeHeight {
			runs := 6
			if level == treeHeight-1 && !c.population {
				runs = 36
			}
			width := 1 // of a node of this level
			for range treeHeight - 1 - level {
				width *= treeBranching
			}
			// Two places next to an edge: within the node of all digits 7 up to this level.
			edge := 0
			for range level {
				edge = edge*treeBranching + 7
			}
			edge = (edge*treeBranching + 8) * width
			here := 0
			for run := range 4 * runs {
				n, lower, rank := c.noises[run%2], run/2%2 == 0, []float64{.25, .5, .75}[r.IntN(3)]
				below := int(rank * rows)
				if c.population {
					below = 0
					for range rows {
						if r.Float64() < rank {
							below++
						}
					}
				}
				tree := quantileTree{guard: Guard{c.neighbours, n}, of: c.neighbours.Cells(treeHeight), stream: s, rows: rows, before: make([]int64, treeLeaves+1), noisy: map[int]float64{}}
				for leaf := range tree.before { // the rows lie in the leaves on either side of the edge
					switch {
					case leaf > edge:
						tree.before[leaf] = rows
					case leaf == edge:
						tree.before[leaf] = int64(below)
					}
				}
				e := tree.edges(rank, .5, c.population)
				if want := .5 / (2 * treeHeight); e.beta > want || e.beta < want*.9-1e-15 {
					t.Fatalf("an edge may be wrong with %v, not %v", e.beta, want)
				}
				e.beta = each
				leaf := e.leaf(lower)
				if lower && leaf > edge || !lower && leaf < edge {
					t.Fatalf("%s, %T, level %d: an end at %d, which is further than what can be wrong", c.name, n, level, leaf)
				}
				if leaf == edge {
					here++
				}
			}
			passed, total = passed+here, total+4*runs
			if runs > 6 {
				last, lasts = last+here, lasts+4*runs
			}
		}
		if err := stattest.AtMost(passed, total, each, intervalAlarm); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		t.Logf("%s: %d of %d", c.name, passed, total)
	}
	if err := stattest.AtMost(last, lasts, each, intervalAlarm); err != nil {
		t.Errorf("the last level: %v", err)
	}
}
