package runtest

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/run"
)

const (
	// expectationsFile has the rows of a small run, which are pooled from runs with other seeds than the test's.
	expectationsFile = "testdata/expectations.json"
	// storedRuns are pooled in it.
	storedRuns = 10
	// storedFalseAlarm is the probability with which the comparison fails for one experiment whose distribution is as it was.
	storedFalseAlarm = 1e-6
)

// checkExpectations: the rows of a small run agree with the stored ones. Means are compared by their spreads with Student's quantile,
// rates by Clopper-Pearson intervals, each at storedFalseAlarm over the number of rows.
func checkExpectations(t *testing.T, e run.Experiment, rows []run.Row) {
	if *update {
		storeExpectations(t, e)
	}
	text, err := os.ReadFile(expectationsFile)
	if err != nil {
		t.Fatalf("%v; go test with -update stores them", err)
	}
	var want []run.Row
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	compareRows(t, rows, want)
}

// storeExpectations pools the rows of small runs with other seeds than a test's.
func storeExpectations(t *testing.T, e run.Experiment) {
	t.Helper()
	var pooled []run.Row
	for i := range uint64(storedRuns) {
		r, err := e.Run(t.Context(), Small(e, 20150807+i))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			pooled = r.Rows
			continue
		}
		for j, row := range r.Rows {
			pooled[j] = pool(pooled[j], row)
		}
	}
	if err := os.MkdirAll(filepath.Dir(expectationsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(pooled, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(expectationsFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pool is the row of two rows' repetitions together, without an interval.
func pool(a, b run.Row) run.Row {
	m, n := float64(a.Repetitions), float64(b.Repetitions)
	mean := (m*a.Mean + n*b.Mean) / (m + n)
	squares := (m-1)*a.SD*a.SD + (n-1)*b.SD*b.SD + m*(a.Mean-mean)*(a.Mean-mean) + n*(b.Mean-mean)*(b.Mean-mean)
	a.Mean, a.SD = mean, math.Sqrt(squares/(m+n-1))
	a.Repetitions += b.Repetitions
	a.Low, a.High, a.Kurtosis = a.Mean, a.Mean, 0
	return a
}

func compareRows(t *testing.T, got, want []run.Row) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%d rows, %d are stored", len(got), len(want))
	}
	alpha := storedFalseAlarm / float64(len(want))
	for i, w := range want {
		g := got[i]
		if g.Condition != w.Condition || g.Method != w.Method || g.N != w.N || g.Set != w.Set || g.Rate != w.Rate {
			t.Fatalf("row %d is %+v, stored is %+v", i, g, w)
		}
		if !compatible(g, w, alpha) {
			t.Errorf("%s, %s, n %d, k %d, %s: %.5g of %d, stored %.5g (sd %.3g) of %d", g.Condition, g.Method, g.N, g.K, g.Set, g.Mean,
				g.Repetitions, w.Mean, w.SD, w.Repetitions)
		}
	}
}

// compatible reports whether two rows may have one distribution; if they have, it says no with probability about alpha.
func compatible(a, b run.Row, alpha float64) bool {
	if a.Rate {
		interval := func(r run.Row) (low, high float64) {
			return run.RateInterval(int64(math.Round(r.Mean*float64(r.Repetitions))), int64(r.Repetitions), alpha/2)
		}
		lowA, highA := interval(a)
		lowB, highB := interval(b)
		return lowA <= highB && lowB <= highA
	}
	spread := max(a.SD, b.SD) // of few runs a spread is found too small as easily as too large
	freedom := float64(max(1, max(a.Repetitions, b.Repetitions)-1))
	z := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - alpha/2)
	limit := z * spread * math.Sqrt(1/float64(max(1, a.Repetitions))+1/float64(max(1, b.Repetitions)))
	return math.Abs(a.Mean-b.Mean) <= limit+1e-9*math.Abs(b.Mean)
}
