package estimate

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

var (
	rowReplaced = unit.Protection{Unit: unit.Row{}}
	rowAdded    = unit.Protection{Unit: unit.Row{}, Neighbours: unit.AddedOrRemoved}
	userAdded   = unit.Protection{Unit: unit.User{Most: 2}, Neighbours: unit.AddedOrRemoved}
	userChanged = unit.Protection{Unit: unit.User{Most: 2}}
	// silent is noise that rounds to 0, for what an estimate is without it.
	silent = Gaussian{MaxMu}
)

func pure(eps float64) Noise { return Laplace{noise.Eps(eps)} }

// TestReferences: what the estimators are without noise, and the threshold of bounds, as public code has it.
func TestReferences(t *testing.T) {
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name     string
		Inputs   map[string]any
		Expected json.RawMessage
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range all {
		seen[r.Name]++
		in := func(name string) float64 { return r.Inputs[name].(float64) }
		switch r.Name {
		case "bounded_mean_noiseless", "bounded_variance_noiseless":
			var values []float64
			for _, v := range r.Inputs["data"].([]any) {
				values = append(values, v.(float64))
			}
			var want float64
			if err := json.Unmarshal(r.Expected, &want); err != nil {
				t.Fatal(err)
			}
			var got Estimate
			// MaxMu hides nothing of a count; on a grid of 2^30 steps it leaves noise of a thousand of them, shared.
			guard := Guard{rowAdded, silent}
			if r.Name == "bounded_mean_noiseless" {
				got, err = CentredMean{Guard: guard, Low: in("lower"), High: in("upper")}.Release(Table{Values: values}, noise.Seeded(1))
			} else {
				got, err = Variance{Guard: guard, Low: in("lower"), High: in("upper")}.Release(Table{Values: values}, noise.Seeded(1))
			}
			if err != nil || math.Abs(got.Value-want) > 1e-4 || got.Low > want || got.High < want {
				t.Errorf("%s: %v, %v, want %v", r.Name, got, err, want)
			}
		case "quantile_tree_noiseless":
			var values, ranks, want []float64
			for i := range 101 {
				values = append(values, float64(i)/100)
			}
			for _, v := range r.Inputs["ranks"].([]any) {
				ranks = append(ranks, v.(float64))
			}
			if err := json.Unmarshal(r.Expected, &want); err != nil {
				t.Fatal(err)
			}
			got, err := Quantiles{Guard: Guard{rowAdded, silent}, Low: in("lower"), High: in("upper")}.Release(Table{Values: values}, ranks, noise.Seeded(1))
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if math.Abs(v-want[i]) > 1e-9 {
					t.Errorf("quantile %v is %v, want %v", ranks[i], v, want[i])
				}
			}
		case "approx_bounds_threshold":
			var want float64
			if err := json.Unmarshal(r.Expected, &want); err != nil {
				t.Fatal(err)
			}
			e := Bounds{Guard: Guard{rowAdded, pure(in("eps"))}, Least: 0, Greatest: int(in("num_bins")) - 1}
			// The reference is continuous; whole noise reaches the next whole number, or the one after.
			if got := float64(e.threshold(in("success_probability"))); got < want || got > want+2 {
				t.Errorf("a threshold of %v, continuous noise has %v", got, want)
			}
		}
	}
	for name, n := range map[string]int{"bounded_mean_noiseless": 1, "bounded_variance_noiseless": 1, "quantile_tree_noiseless": 1, "approx_bounds_threshold": 3} {
		if seen[name] != n {
			t.Errorf("%d references of %s, want %d", seen[name], name, n)
		}
	}
}

// TestReach: reach is what the noise goes beyond with probability beta, and no whole number less would do; by the law for Laplace, and by 40,000 draws of
// each (false alarm 1e-6, both ways: noise ten percent too narrow or too wide is noticed at a beta of 0.1 with a probability above 0.999).
func TestReach(t *testing.T) {
	for _, eps := range []float64{.01, .5, 1, 3} {
		for _, d := range []uint64{1, 7, 1 << 20} {
			of, l := unit.Sensitivity{L1: d}, Laplace{noise.Eps(eps)}
			a := math.Exp(-l.Epsilon.Float() / float64(d))
			beyond := func(k float64) float64 { return 2 * math.Pow(a, k+1) / (1 + a) }
			for _, beta := range []float64{.1, 1e-3, 1e-9} {
				k := l.reach(of, beta)
				if beyond(k) > beta*(1+1e-7) || k > 0 && d < 1<<20 && beyond(k-1) <= beta*(1-1e-7) {
					t.Errorf("epsilon %v, sensitivity %d: %v is exceeded with %v, not %v", eps, d, k, beyond(k), beta)
				}
			}
		}
	}
	const draws = 40_000
	for name, n := range map[string]Noise{"Laplace": pure(.001), "Gaussian": Gaussian{.001}, "classical": must1(ClassicalGaussian(.1, .01)), "analytic": must1(AnalyticGaussian(.1, .01))} {
		of, s, outside := unit.Sensitivity{L1: 1000, L2: 1000}, noise.Seeded(3), 0
		limit := n.reach(of, .1)
		for range draws {
			if x := float64(n.draw(s, of)); math.Abs(x) > limit {
				outside++
			}
		}
		if err := stattest.Frequency(outside, draws, .1, falseAlarm); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if x := pure(1e-3).draw(noise.Seeded(4), unit.Sensitivity{L1: 1 << 40}); x == 0 {
		t.Error("a sensitivity that no exact law is drawn for has no noise")
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// people are values of users with one to four rows each.
func people() Table {
	var t Table
	for user := range uint64(120) {
		for row := range 1 + user%4 {
			t.Values = append(t.Values, float64(user%11)+float64(row)/8)
			t.Owners = append(t.Owners, unit.Owner{User: user})
		}
	}
	return t
}

// TestCoverage: intervals of 90% miss no more often than one time in ten, of 800 releases each (false alarm 1e-6), by what the estimators are of the rows
// that were kept: the same release with noise that rounds to 0 and the same stream's rows. Power: intervals of two thirds of the width miss so often that
// the check fails, with a probability above 0.999, wherever the interval has one source of noise; so it is demanded of those.
func TestCoverage(t *testing.T) {
	const runs, confidence = 800, .9
	table := people()
	type release func(g Guard, s *noise.Stream) (Estimate, error)
	estimators := map[string]release{
		"sum": func(g Guard, s *noise.Stream) (Estimate, error) {
			return Sum{Guard: g, Low: -3, High: 8, Confidence: confidence}.Release(table, s)
		},
		"count": func(g Guard, s *noise.Stream) (Estimate, error) {
			return Count{Guard: g, Confidence: confidence}.Release(table, s)
		},
		"mean": func(g Guard, s *noise.Stream) (Estimate, error) {
			return CentredMean{Guard: g, Low: -3, High: 8, Confidence: confidence}.Release(table, s)
		},
		"variance": func(g Guard, s *noise.Stream) (Estimate, error) {
			return Variance{Guard: g, Low: -3, High: 8, Confidence: confidence}.Release(table, s)
		},
	}
	for name, estimate := range estimators {
		for noiseName, n := range map[string]Noise{"Laplace": pure(.8), "Gaussian": Gaussian{.6}} {
			for protection, p := range map[string]unit.Protection{"replaced rows": rowReplaced, "added rows": rowAdded, "added users": userAdded, "replaced users": userChanged} {
				missed, short := 0, 0
				for i := range uint64(runs) {
					// The stream's first use is for which rows are kept, so two runs of one seed keep the same.
					truth, err := estimate(Guard{p, silent}, noise.Seeded(i))
					if err != nil {
						t.Fatal(err)
					}
					got, err := estimate(Guard{p, n}, noise.Seeded(i))
					if err != nil {
						t.Fatal(err)
					}
					blur := 1e-3 // what is left of the silent noise
					if truth.Value < got.Low-blur || truth.Value > got.High+blur {
						missed++
					}
					if half := (got.High - got.Low) / 3; math.Abs(truth.Value-(got.High+got.Low)/2) > half {
						short++
					}
				}
				if err := stattest.AtMost(missed, runs, 1-confidence, falseAlarm); err != nil {
					t.Errorf("%s, %s, %s: %v", name, noiseName, protection, err)
				}
				if tight := name == "sum" || p.PublicRows() && name == "mean"; tight && stattest.AtMost(short, runs, 1-confidence, falseAlarm) == nil {
					t.Errorf("%s, %s, %s: intervals of two thirds of the width went unnoticed (%d missed)", name, noiseName, protection, short)
				}
			}
		}
	}
}

// TestHistogram: each number counts in its bin, those beyond the edges at the ends and NaN nowhere. Of 2,000 histograms no more have an interval that misses
// than was asked for (false alarm 1e-6), and more would, if each interval had the confidence by itself.
func TestHistogram(t *testing.T) {
	table := Table{Values: []float64{-5, 0, .5, 1, 1.99, 2, 3, 3, 99, math.Inf(1), math.Inf(-1), math.NaN()}}
	edges, want := []float64{0, 1, 2, 2.5, 3}, []float64{4, 2, 1, 4}
	for i, e := range must1(Histogram{Guard: Guard{rowReplaced, silent}, Edges: edges}.Release(table, noise.Seeded(1))) {
		if math.Round(e.Value) != want[i] {
			t.Errorf("bin %d has %v, want %v", i, e.Value, want[i])
		}
	}
	const runs, beta = 2000, .2
	for name, n := range map[string]Noise{"Laplace": pure(.3), "Gaussian": Gaussian{.2}} {
		s, missed, single := noise.Seeded(88), 0, 0
		alone := n.reach(rowReplaced.Cells(1), beta)
		for range runs {
			out, far := false, false
			for i, e := range must1(Histogram{Guard: Guard{rowReplaced, n}, Edges: edges, Confidence: 1 - beta}.Release(table, s)) {
				out = out || want[i] < e.Low || want[i] > e.High
				far = far || math.Abs(e.Value-want[i]) > alone
			}
			if out {
				missed++
			}
			if far {
				single++
			}
		}
		if err := stattest.AtMost(missed, runs, beta, falseAlarm); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if stattest.AtMost(single, runs, beta, falseAlarm) == nil {
			t.Errorf("%s: intervals that hold one by one went unnoticed", name)
		}
	}
}

// TestCoverageOfQuotients: where all numbers are far from the middle, the noise of the count matters as much as that of the sum. Of 4,000 intervals of 99%
// no more miss than one in a hundred (false alarm 1e-6); intervals that took the noisy count for the true one would miss one time in twenty, and be noticed
// with a probability above 0.999.
func TestCoverageOfQuotients(t *testing.T) {
	const runs = 4000
	table, s := Table{Values: slices.Repeat([]float64{7.5}, 300)}, noise.Seeded(12)
	for _, n := range []Noise{Gaussian{.4}, pure(.5)} {
		missed, variances := 0, 0
		for range runs {
			got := must1(CentredMean{Guard: Guard{rowAdded, n}, Low: -3, High: 8, Confidence: .99}.Release(table, s))
			if got.Low > 7.5 || got.High < 7.5 {
				missed++
			}
			got = must1(Variance{Guard: Guard{rowAdded, n}, Low: -3, High: 8, Confidence: .99}.Release(table, s))
			if got.Low > 1e-6 {
				variances++
			}
		}
		for _, m := range []int{missed, variances} {
			if err := stattest.AtMost(m, runs, .01, falseAlarm); err != nil {
				t.Errorf("%+v: %v", n, err)
			}
		}
	}
}

// TestPopulation: of 2,000 samples of 50 rows from a population of mean 0.3 an interval of 90% that is for the population misses it no more often than it
// may (false alarm 1e-6); one that is for the sample's mean alone would miss it far more often, which the test demands to see.
func TestPopulation(t *testing.T) {
	const runs, rows = 2000, 50
	s := noise.Seeded(11)
	for _, p := range []unit.Protection{rowReplaced, rowAdded} {
		missed, sample := 0, 0
		for range runs {
			values := make([]float64, rows)
			for i := range values {
				if s.Below(10) < 3 {
					values[i] = 1
				}
			}
			e := CentredMean{Guard: Guard{p, pure(20)}, High: 1, Confidence: .9, Population: true}
			got := must1(e.Release(Table{Values: values}, s))
			if got.Low > .3 || got.High < .3 {
				missed++
			}
			e.Population = false
			if got = must1(e.Release(Table{Values: values}, s)); got.Low > .3 || got.High < .3 {
				sample++
			}
		}
		if err := stattest.AtMost(missed, runs, .1, falseAlarm); err != nil {
			t.Error(err)
		}
		if stattest.AtMost(sample, runs, .1, falseAlarm) == nil {
			t.Errorf("an interval for the sample missed the population's mean %d times only", sample)
		}
	}
	if _, err := (CentredMean{Guard: Guard{userAdded, pure(1)}, High: 1, Population: true}).Release(people(), s); !errors.Is(err, ErrSettings) {
		t.Errorf("users' rows as independent: %v", err)
	}
}

// TestAttack: the auditor refutes no estimator at epsilon 1 by 20,000 runs on each of two neighbouring tables (false alarm 1e-6 each), by value and by the
// lowest digit; of those that have one source of noise it proves most of it. Without bounding a user's rows the same attack refutes.
func TestAttack(t *testing.T) {
	set := audit.Settings{Runs: 20_000, Confidence: 1 - 1e-6}
	one := func(values ...float64) Table { return Table{Values: values} }
	owned := func(t Table, users ...uint64) Table {
		for _, u := range users {
			t.Owners = append(t.Owners, unit.Owner{User: u})
		}
		return t
	}
	many := owned(one(1, 1, 1, 1, 1, 1, 0), 1, 1, 1, 1, 1, 1, 2)
	few := owned(one(0), 2)
	tight := Guard{rowReplaced, pure(1)}
	added := Guard{rowAdded, pure(1)}
	users := Guard{userAdded, pure(1)}
	for i, c := range []struct {
		name    string
		release func(t Table, s *noise.Stream) float64
		a, b    Table
		least   float64
		refuted bool
	}{
		{"sum", func(t Table, s *noise.Stream) float64 {
			return must1(Sum{Guard: tight, Low: -.3, High: .8}.Release(t, s)).Value
		}, one(.1, .8), one(.1, -.3), .7, false},
		{"sum of a user", func(t Table, s *noise.Stream) float64 { return must1(Sum{Guard: users, High: 1}.Release(t, s)).Value }, many, few, .65, false},
		{"sum of a user, rows not bounded", func(t Table, s *noise.Stream) float64 {
			return must1(Sum{Guard: added, High: 1}.Release(t, s)).Value
		}, many, few, 0, true},
		{"count", func(t Table, s *noise.Stream) float64 { return must1(Count{Guard: added}.Release(t, s)).Value }, one(1, 2), one(1), .8, false},
		{"histogram", func(t Table, s *noise.Stream) float64 {
			all := must1(Histogram{Guard: tight, Edges: []float64{0, 1, 2}}.Release(t, s))
			return all[0].Value - all[1].Value // a replaced row moves both
		}, one(.5, .5), one(.5, 1.5), .45, false},
		{"histogram of a user, rows not bounded", func(t Table, s *noise.Stream) float64 {
			return must1(Histogram{Guard: added, Edges: []float64{0, 1, 2}}.Release(t, s))[1].Value
		}, many, few, 0, true},
		{"centred mean", func(t Table, s *noise.Stream) float64 {
			return must1(CentredMean{Guard: added, Low: -1, High: 3}.Release(t, s)).Value
		}, one(0, 3, 3), one(0, 3), 0, false},
		{"mean of replaced rows", func(t Table, s *noise.Stream) float64 {
			return must1(CentredMean{Guard: tight, Low: -1, High: 3}.Release(t, s)).Value
		}, one(1, 3), one(1, -1), .3, false},
		{"variance", func(t Table, s *noise.Stream) float64 {
			return must1(Variance{Guard: added, Low: 0, High: 1}.Release(t, s)).Value
		}, one(.5, 0, 1, 1), one(.5, 0, 1), 0, false},
		{"median", func(t Table, s *noise.Stream) float64 {
			return must1(Quantiles{Guard: tight, High: 1}.Release(t, []float64{.5}, s))[0]
		}, one(.2, .2, .9), one(.2, .9, .9), 0, false},
		{"bounds", func(t Table, s *noise.Stream) float64 {
			r, err := Bounds{Guard: added, Least: 0, Greatest: 3, Success: .5}.Release(t, s)
			if errors.Is(err, ErrFew) {
				return -99
			}
			return r.High - 100*r.Low
		}, one(8, 8, 8, 8), one(8, 8, 8), .2, false},
		{"unbounded mean", func(t Table, s *noise.Stream) float64 {
			got, _, err := UnboundedMean{Guard: added, Least: 0, Greatest: 3}.Release(t, s)
			if errors.Is(err, ErrFew) {
				return -99
			}
			return got.Value
		}, one(slices.Repeat([]float64{4}, 50)...), one(slices.Repeat([]float64{4}, 49)...), 0, false},
	} {
		report, err := audit.Numbers(audit.Claim{Epsilon: 1}, set, noise.Seeded(uint64(i)), func(s *noise.Stream) float64 { return c.release(c.a, s) }, func(s *noise.Stream) float64 { return c.release(c.b, s) })
		if err != nil {
			t.Fatal(err)
		}
		if report.Refuted() != c.refuted || report.Epsilon < c.least {
			t.Errorf("%s: %v", c.name, report)
		}
	}
}

// TestQuantilesAreInOrder: of any numbers and noise a larger rank never has a smaller quantile, and all are in the range.
func TestQuantilesAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-3, 12), 0, 60).Draw(t, "values")
		ranks := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 8).Draw(t, "ranks")
		slices.Sort(ranks)
		got, err := Quantiles{Guard: Guard{rowAdded, pure(rapid.Float64Range(.01, 20).Draw(t, "eps"))}, Low: -2, High: 10}.Release(Table{Values: values}, ranks, noise.Seeded(rapid.Uint64().Draw(t, "seed")))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(got) || got[0] < -2 || got[len(got)-1] > 10 {
			t.Fatalf("quantiles %v of ranks %v", got, ranks)
		}
	})
}

// TestQuantilesAreNear: of 20,000 numbers at epsilon 1 no quantile is off by more than 0.02 in rank: noise of a path is of some 64 rows with 16 nodes a level.
func TestQuantilesAreNear(t *testing.T) {
	var values []float64
	for i := range 20_000 {
		values = append(values, 5*math.Pow(float64(i)/20_000, 2))
	}
	ranks := []float64{.02, .1, .25, .5, .75, .9, .98}
	for seed := range uint64(20) {
		got := must1(Quantiles{Guard: Guard{rowReplaced, pure(1)}, High: 100}.Release(Table{Values: values}, ranks, noise.Seeded(seed)))
		for i, x := range got {
			if off := math.Abs(math.Sqrt(min(x, 5)/5) - ranks[i]); off > .02 {
				t.Errorf("seed %d: quantile %v is %v, of rank %v", seed, ranks[i], x, math.Sqrt(x/5))
			}
		}
	}
}

// TestCells: every number is in the cell that it counts in, or beyond the last; neighbouring cells share an edge.
func TestCells(t *testing.T) {
	e := Bounds{Least: -3, Greatest: 4}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64().Draw(t, "x")
		at, ok := e.cell(x)
		low, high := e.edges(at)
		inside := x >= low && x <= high
		if x > 16 || x < -16 {
			inside = x > 16 == (at == 2*e.bins()-1) && x < -16 == (at == 0)
		}
		if !ok || !inside {
			t.Fatalf("%v counts in cell %d, [%v, %v]", x, at, low, high)
		}
	})
	for at := range 2*e.bins() - 1 {
		_, high := e.edges(at)
		if low, _ := e.edges(at + 1); low != high {
			t.Errorf("cell %d ends at %v, the next begins at %v", at, high, low)
		}
	}
	for x, want := range map[float64]int{0: 8, .125: 8, .13: 9, .25: 9, 16: 15, -.1: 7, -16: 0, math.Inf(1): 15, math.Inf(-1): 0} {
		if at, _ := e.cell(x); at != want {
			t.Errorf("%v counts in cell %d, want %d", x, at, want)
		}
	}
}

// TestBounds: the range holds what is frequent and leaves out what is not: of 1,000 numbers around 100 and three of a million; of nothing there is none.
// With the probability Success, no empty cell is taken: in 2,000 runs at 0.5, on a table of nothing, the noise finds a range no more often than every other
// time (false alarm 1e-6), and often enough that a threshold twice as high would be noticed.
func TestBounds(t *testing.T) {
	var values []float64
	for i := range 1000 {
		values = append(values, 90+float64(i)/50)
	}
	values = append(values, 1e6, 1e6, 1e6, math.NaN(), math.Inf(1))
	e := Bounds{Guard: Guard{rowReplaced, pure(1)}, Least: -10, Greatest: 40}
	s := noise.Seeded(5)
	for range 50 {
		if r, err := e.Release(Table{Values: values}, s); err != nil || (r != Range{64, 128}) {
			t.Errorf("bounds %v, %v", r, err)
		}
		if r, err := e.Release(Table{Values: values[1000:]}, s); !errors.Is(err, ErrFew) {
			t.Errorf("bounds of five numbers: %v, %v", r, err)
		}
	}
	const runs = 2000
	found := 0
	e.Success = .5
	for range runs {
		if _, err := e.Release(Table{}, s); err == nil {
			found++
		}
	}
	if err := stattest.AtMost(found, runs, .5, falseAlarm); err != nil || found < runs/5 {
		t.Errorf("noise found a range %d times of %d: %v", found, runs, err)
	}
}

// TestUnboundedMean: without a range the mean of 5,000 numbers at epsilon 1 is as near as with one that is a few times too wide, and the interval holds the
// mean of the numbers clamped to what was found.
func TestUnboundedMean(t *testing.T) {
	var values []float64
	for i := range 5000 {
		values = append(values, 1000+float64(i%100))
	}
	s, missed := noise.Seeded(6), 0
	for range 300 {
		got, r, err := UnboundedMean{Guard: Guard{rowAdded, pure(1)}, Least: -20, Greatest: 60, Confidence: .9}.Release(Table{Values: values}, s)
		if err != nil {
			t.Fatal(err)
		}
		clamped := 0.
		for _, x := range values {
			clamped += min(max(x, r.Low), r.High) / 5000
		}
		if clamped < got.Low || clamped > got.High {
			missed++
		}
		if r.Low != 512 || r.High != 2048 || math.Abs(got.Value-1049.5) > 10 {
			t.Errorf("%v in %v", got, r)
		}
	}
	if err := stattest.AtMost(missed, 300, .1, falseAlarm); err != nil {
		t.Error(err)
	}
}

// TestGrid: every number, whatever it is, is a whole number of steps between those of the range's ends, and near to itself.
func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
		high := low + rapid.Float64Range(1e-6, 1e6).Draw(t, "width")
		g, err := gridFor(low, high)
		if err != nil {
			t.Fatal(err)
		}
		x := rapid.Float64().Draw(t, "x")
		at := g.of(x)
		if at < g.of(low) || at > g.of(high) || max(at, -at) > 1<<gridBits {
			t.Fatalf("%v in [%v, %v] is %d", x, low, high, at)
		}
		if x >= low && x <= high && math.Abs(float64(at)*g.step-x) > g.step/2 {
			t.Fatalf("%v is %v", x, float64(at)*g.step)
		}
	})
}

// TestSharing: what is shared is not more than the whole.
func TestSharing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(2, 5).Draw(t, "parts")
		eps := rapid.Float64Range(1e-3, 10).Draw(t, "eps")
		whole := Laplace{noise.Eps(eps)}
		if one := whole.share(1 / float64(parts)).(Laplace).Epsilon.Float(); float64(parts)*one > whole.Epsilon.Float()*(1+1e-15) || float64(parts)*one < whole.Epsilon.Float()*(1-1e-6) {
			t.Fatalf("%d parts of %v are %v", parts, eps, one)
		}
		g := Gaussian{account.GDP(eps)}
		if one := float64(g.share(1 / float64(parts)).(Gaussian).Mu); float64(parts)*one*one > eps*eps*(1+1e-15) || float64(parts)*one*one < eps*eps*(1-1e-12) {
			t.Fatalf("%d parts of mu %v are %v", parts, eps, one)
		}
	})
}

// TestEvents: an accountant says of a release what its noise promises, and of its parts together no more.
func TestEvents(t *testing.T) {
	for _, n := range []Noise{pure(.7), Gaussian{.4}} {
		whole := must1(account.NewRenyi().With(n.Event())).Epsilon(1e-6)
		parts := must1(account.NewRenyi().With(account.All{Events: []account.Event{n.share(.25).Event(), n.share(.375).Event(), n.share(.375).Event()}})).Epsilon(1e-6)
		if parts > whole*(1+1e-9) {
			t.Errorf("%+v: the parts have epsilon %v, the whole %v", n, parts, whole)
		}
	}
	if got := must1(account.Basic{}.With(pure(.7).Event())).Epsilon(0); got > .7 || got < .7*(1-1e-6) {
		t.Errorf("epsilon %v", got)
	}
	if got := must1(account.GDP(0).With(Gaussian{.4}.Event())).(account.GDP); math.Abs(float64(got)-.4) > 1e-15 {
		t.Errorf("mu %v", float64(got))
	}
}

// TestGaussians: the classical mechanism is refused where its proof ends, is private where it is given, and the analytic one is never more noise.
func TestGaussians(t *testing.T) {
	for _, c := range [][2]float64{{8, .001}, {1.01, 1e-6}, {.5, .41}, {0, .1}, {.5, 0}, {math.NaN(), .1}} {
		if g, err := ClassicalGaussian(c[0], c[1]); !errors.Is(err, ErrSettings) {
			t.Errorf("the classical mechanism for %v: %v, %v", c, g, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		eps, delta := rapid.Float64Range(.01, 1).Draw(t, "eps"), math.Exp(-rapid.Float64Range(1, 40).Draw(t, "-ln delta"))
		classical, analytic := must1(ClassicalGaussian(eps, delta)), must1(AnalyticGaussian(eps, delta))
		if classical.Mu > analytic.Mu || analytic.Mu.Delta(eps) > delta {
			t.Fatalf("(%v, %v): classical mu %v, analytic %v", eps, delta, float64(classical.Mu), float64(analytic.Mu))
		}
	})
}

func TestRefused(t *testing.T) {
	good := Guard{rowReplaced, pure(1)}
	table := Table{Values: []float64{1, 2}}
	nan := math.NaN()
	for name, release := range map[string]func(s *noise.Stream) error{
		"no unit": func(s *noise.Stream) error {
			_, err := Sum{Guard: Guard{Noise: pure(1)}, High: 1}.Release(table, s)
			return err
		},
		"no noise": func(s *noise.Stream) error {
			_, err := Count{Guard: Guard{Protection: rowAdded}}.Release(table, s)
			return err
		},
		"no epsilon": func(s *noise.Stream) error {
			_, err := Count{Guard: Guard{rowAdded, Laplace{}}}.Release(table, s)
			return err
		},
		"mu 0": func(s *noise.Stream) error {
			_, err := Count{Guard: Guard{rowAdded, Gaussian{}}}.Release(table, s)
			return err
		},
		"mu NaN": func(s *noise.Stream) error {
			_, err := Count{Guard: Guard{rowAdded, Gaussian{account.GDP(nan)}}}.Release(table, s)
			return err
		},
		"one edge": func(s *noise.Stream) error {
			_, err := Histogram{Guard: good, Edges: []float64{1}}.Release(table, s)
			return err
		},
		"edges that do not grow": func(s *noise.Stream) error {
			_, err := Histogram{Guard: good, Edges: []float64{0, 1, 1}}.Release(table, s)
			return err
		},
		"an edge that is no number": func(s *noise.Stream) error {
			_, err := Histogram{Guard: good, Edges: []float64{0, nan}}.Release(table, s)
			return err
		},
		"range": func(s *noise.Stream) error { _, err := Sum{Guard: good, Low: 1, High: 1}.Release(table, s); return err },
		"range NaN": func(s *noise.Stream) error {
			_, err := CentredMean{Guard: good, Low: nan, High: 1}.Release(table, s)
			return err
		},
		"too wide": func(s *noise.Stream) error { _, err := Sum{Guard: good, High: 1e305}.Release(table, s); return err },
		"squares too wide": func(s *noise.Stream) error {
			_, err := Variance{Guard: good, High: 1e200}.Release(table, s)
			return err
		},
		"confidence": func(s *noise.Stream) error {
			_, err := Sum{Guard: good, High: 1, Confidence: 1}.Release(table, s)
			return err
		},
		"rank": func(s *noise.Stream) error {
			_, err := Quantiles{Guard: good, High: 1}.Release(table, []float64{1.1}, s)
			return err
		},
		"quantiles' range": func(s *noise.Stream) error {
			_, err := Quantiles{Guard: good, High: math.Inf(1)}.Release(table, []float64{.5}, s)
			return err
		},
		"quantiles' confidence": func(s *noise.Stream) error {
			_, err := Quantiles{Guard: good, High: 1, Confidence: 1}.Intervals(table, []float64{.5}, s)
			return err
		},
		"quantiles of a population of users": func(s *noise.Stream) error {
			_, err := Quantiles{Guard: Guard{userAdded, pure(1)}, High: 1, Population: true}.Intervals(people(), []float64{.5}, s)
			return err
		},
		"exponents": func(s *noise.Stream) error {
			_, err := Bounds{Guard: good, Least: 3, Greatest: 2}.Release(table, s)
			return err
		},
		"success": func(s *noise.Stream) error {
			_, err := Bounds{Guard: good, Greatest: 2, Success: 1}.Release(table, s)
			return err
		},
		"share": func(s *noise.Stream) error {
			_, _, err := UnboundedMean{Guard: good, Greatest: 2, Share: 1}.Release(table, s)
			return err
		},
		"drowned": func(s *noise.Stream) error {
			_, err := Sum{Guard: Guard{unit.Protection{Unit: unit.User{Most: 1 << 20}}, pure(1e-6)}, High: 1}.Release(Table{}, s)
			return err
		},
		"analytic, delta 0":  func(s *noise.Stream) error { _, err := AnalyticGaussian(1, 0); return err },
		"analytic, infinite": func(s *noise.Stream) error { _, err := AnalyticGaussian(math.Inf(1), .1); return err },
	} {
		if err := release(noise.Seeded(1)); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (CentredMean{Guard: good, High: 1}).Release(Table{}, noise.Seeded(1)); !errors.Is(err, ErrRows) {
		t.Errorf("the mean of no rows: %v", err)
	}
	if _, err := (Count{Guard: Guard{userAdded, pure(1)}}).Release(table, noise.Seeded(1)); !errors.Is(err, ErrRows) {
		t.Errorf("users' rows without owners: %v", err)
	}
}

// spy is noise that is none, and notes what part of the budget each draw was made with and for what sensitivity.
type spy struct {
	part  float64
	draws *[]drawn
}

type drawn struct {
	part float64
	of   unit.Sensitivity
}

func (n spy) Event() account.Event                    { return nil }
func (n spy) check(unit.Sensitivity) error            { return nil }
func (n spy) reach(unit.Sensitivity, float64) float64 { return 0 }
func (n spy) deviation(unit.Sensitivity) float64      { return 1 }
func (n spy) beyond(_ unit.Sensitivity, k float64) float64 {
	if k < 0 {
		return 1
	}
	return 0
}
func (n spy) logMoment(_ unit.Sensitivity, x float64) float64 { return x * x / 2 }
func (n spy) share(part float64) Noise                        { return spy{n.part * part, n.draws} }
func (n spy) draw(_ *noise.Stream, of unit.Sensitivity) int64 {
	*n.draws = append(*n.draws, drawn{n.part, of})
	return 0
}

// TestBudget: the parts of a release sum to its whole budget, and each number has the noise of its own sensitivity. A part that is spent twice, or a
// sensitivity of another number, is noticed.
func TestBudget(t *testing.T) {
	table := people()
	cells := userAdded.Cells(1)
	for name, c := range map[string]struct {
		release func(g Guard) error
		want    []drawn
	}{
		"sum": {func(g Guard) error {
			_, err := Sum{Guard: g, Low: -4, High: 2}.Release(table, noise.Seeded(1))
			return err
		}, []drawn{{1, userAdded.Sum(-1<<29, 1<<28)}}},
		"count": {func(g Guard) error { _, err := Count{Guard: g}.Release(table, noise.Seeded(1)); return err }, []drawn{{1, userAdded.Count()}}},
		"mean": {func(g Guard) error {
			_, err := CentredMean{Guard: g, Low: 0, High: 4}.Release(table, noise.Seeded(1))
			return err
		},
			[]drawn{{.5, userAdded.Sum(-1<<29, 1<<29)}, {.5, userAdded.Count()}}},
		"variance": {func(g Guard) error {
			_, err := Variance{Guard: g, Low: 0, High: 4}.Release(table, noise.Seeded(1))
			return err
		},
			[]drawn{{1. / 3, userAdded.Sum(-1<<29, 1<<29)}, {1. / 3, userAdded.Sum(0, 1<<29)}, {1. / 3, userAdded.Count()}}},
		"histogram": {func(g Guard) error {
			_, err := Histogram{Guard: g, Edges: []float64{0, 1, 2, 3}}.Release(table, noise.Seeded(1))
			return err
		}, []drawn{{1, cells}, {1, cells}, {1, cells}}},
		"unbounded mean": {func(g Guard) error {
			_, _, err := UnboundedMean{Guard: g, Least: 0, Greatest: 1}.Release(table, noise.Seeded(1))
			return err
		},
			[]drawn{{.25, cells}, {.25, cells}, {.25, cells}, {.25, cells}, {.375, userAdded.Sum(-1<<28, 1<<28)}, {.375, userAdded.Count()}}},
	} {
		var draws []drawn
		if err := c.release(Guard{userAdded, spy{1, &draws}}); err != nil {
			t.Fatal(err)
		}
		if name == "unbounded mean" { // its range depends on what was found
			draws[4].of, draws[5].of = c.want[4].of, c.want[5].of
		}
		if !slices.Equal(draws, c.want) {
			t.Errorf("%s: %v, want %v", name, draws, c.want)
		}
	}
	var draws []drawn
	must1(Quantiles{Guard: Guard{userAdded, spy{1, &draws}}, High: 10}.Release(table, []float64{.1, .5, .9}, noise.Seeded(1)))
	seen := len(draws)
	must1(Quantiles{Guard: Guard{userAdded, spy{1, &draws}}, High: 10}.Intervals(table, []float64{.1, .5, .9}, noise.Seeded(1)))
	for _, d := range draws {
		if (d != drawn{1, userAdded.Cells(treeHeight)}) {
			t.Errorf("a node has noise of %v", d)
		}
	}
	if seen == 0 || seen > 3*treeHeight*treeBranching {
		t.Errorf("three ranks looked at %d nodes", seen)
	}
}

// TestAnyTable: whatever the rows are, also none, one, and numbers that are none, and whatever the range and the noise, each estimator refuses its
// settings, or says finite numbers in the order that they promise. No error depends on the values of rows.
func TestAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, -1, 1}))
		end := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{-math.MaxFloat64, -1e300, -1e-300, 0, 5e-324, 1, 1 + 0x1p-52, 1e9, 1e300, math.Inf(1)}))
		values := rapid.SliceOfN(number, 0, 3).Draw(t, "values")
		table, others := Table{Values: values}, Table{Values: make([]float64, len(values))}
		for i := range values {
			owner := unit.Owner{User: uint64(i / 2)}
			table.Owners, others.Owners = append(table.Owners, owner), append(others.Owners, owner)
		}
		low, high := end.Draw(t, "low"), end.Draw(t, "high")
		n := rapid.SampledFrom([]Noise{pure(1), pure(64), pure(noise.MinEpsilon), Gaussian{MinMu}, Gaussian{1}, Gaussian{MaxMu}, Laplace{noise.Epsilon{Num: 1, Den: 1 << 54}}}).Draw(t, "noise")
		g := Guard{rapid.SampledFrom([]unit.Protection{rowReplaced, rowAdded, userAdded, userChanged, {Unit: unit.User{Most: unit.MaxRows}}}).Draw(t, "protection"), n}
		seed := rapid.Uint64().Draw(t, "seed")
		rank := rapid.SampledFrom([]float64{0, 5e-324, .5, 1 - 0x1p-53, 1}).Draw(t, "rank")
		check := func(name string, release func(t Table, s *noise.Stream) (Estimate, error)) {
			e, err := release(table, noise.Seeded(seed))
			if _, other := release(others, noise.Seeded(seed)); !errors.Is(err, ErrFew) && !errors.Is(other, ErrFew) && (err == nil) != (other == nil) {
				t.Fatalf("%s: %v of some values, and %v of others", name, err, other)
			}
			if err == nil && !(e.Low <= e.High && math.Abs(e.Low) <= math.MaxFloat64 && math.Abs(e.High) <= math.MaxFloat64 && math.Abs(e.Value) <= math.MaxFloat64) {
				t.Fatalf("%s says %+v", name, e)
			}
		}
		check("a sum", Sum{Guard: g, Low: low, High: high}.Release)
		check("a count", Count{Guard: g}.Release)
		check("a histogram", func(t Table, s *noise.Stream) (e Estimate, err error) {
			all, err := Histogram{Guard: g, Edges: []float64{low, high}}.Release(t, s)
			if err == nil {
				e = all[0]
			}
			return e, err
		})
		check("a mean", CentredMean{Guard: g, Low: low, High: high}.Release)
		check("a population's mean", CentredMean{Guard: g, Low: low, High: high, Population: true}.Release)
		check("a variance", Variance{Guard: g, Low: low, High: high}.Release)
		check("a quantile", func(t Table, s *noise.Stream) (e Estimate, err error) {
			all, err := Quantiles{Guard: g, Low: low, High: high}.Release(t, []float64{rank}, s)
			if err == nil {
				e = Estimate{all[0], low, high}
			}
			return e, err
		})
		check("an interval of a quantile", func(t Table, s *noise.Stream) (e Estimate, err error) {
			all, err := Quantiles{Guard: g, Low: low, High: high, Population: g.Unit == unit.Row{}}.Intervals(t, []float64{rank}, s)
			if err == nil {
				e = all[0]
			}
			return e, err
		})
		check("bounds", func(t Table, s *noise.Stream) (Estimate, error) {
			r, err := Bounds{Guard: g, Least: MinExponent, Greatest: MaxExponent}.Release(t, s)
			return Estimate{r.Low, r.Low, r.High}, err
		})
		check("a mean without a range", func(t Table, s *noise.Stream) (Estimate, error) {
			e, _, err := UnboundedMean{Guard: g, Least: MinExponent, Greatest: MaxExponent}.Release(t, s)
			return e, err
		})
	})
}
