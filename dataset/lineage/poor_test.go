package lineage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// poorTables are tables whose rows differ, and not by a few of their values: which column has a value tells them apart.
func poorTables(seed uint64) map[string][]dataset.Column {
	const rows = 6000
	r := rand.New(rand.NewPCG(seed, 5))
	several := func(n int, name string, draw func(k int) float64) (all []dataset.Column) {
		for k := range n {
			all = append(all, numbered(fmt.Sprint(name, k), func() float64 { return draw(k) }, rows))
		}
		return all
	}
	texts := func(name string, values int) dataset.Column {
		of := make([]string, rows)
		for i := range of {
			of[i] = fmt.Sprint(name, " ", r.IntN(values))
		}
		return dataset.NewText(name, of, nil)
	}
	uniform := func(n int) func(int) float64 { return func(int) float64 { return float64(r.IntN(n)) } }
	serial := seed * 1e6
	categories := []dataset.Column{}
	for k := range 20 {
		categories = append(categories, texts(fmt.Sprint("category", k), 4))
	}
	return map[string][]dataset.Column{
		"40 answers, age and zip":       append(several(40, "q", uniform(5)), several(1, "age", uniform(60))[0], several(1, "zip", uniform(900))[0]),
		"60 flags":                      several(60, "f", uniform(2)),
		"60 flags and a zip":            append(several(60, "f", uniform(2)), several(1, "zip", uniform(900))[0]),
		"60 flags and a measurement":    append(several(60, "f", uniform(2)), several(1, "weight", func(int) float64 { return r.NormFloat64() })[0]),
		"64 pixels and a serial number": append(several(64, "p", uniform(17)), several(1, "serial", func(int) float64 { serial++; return float64(serial) })[0]),
		"200 SNPs, patient and bmi":     append(several(200, "rs", func(int) float64 { return float64(r.IntN(2) + r.IntN(2)) }), several(1, "patient", uniform(3000))[0], several(1, "bmi", func(int) float64 { return float64(r.IntN(300)) / 10 })[0]),
		"20 categories":                 categories,
		"an adult": {several(1, "age", uniform(70))[0], texts("workclass", 8), texts("education", 16), texts("marital", 7), texts("occupation", 14), texts("relationship", 6), texts("race", 5), texts("sex", 2),
			several(1, "hours", uniform(80))[0], texts("country", 40)},
	}
}

// TestPoorTables: rows of flags, grades, categories and pixels are recognised when rows are shuffled and a column comes or goes, or two; and a table of the same law has none of them. It notices tokens that do not know which
// column a value is of, and such that hang on each column.
func TestPoorTables(t *testing.T) {
	fresh := poorTables(2)
	for name, old := range poorTables(1) {
		r := rand.New(rand.NewPCG(3, 3))
		rows := table(t, old).Rows()
		shuffled := rowsOf(old, r.Perm(rows))
		column := func(name string, draw func() float64) dataset.Column { return numbered(name, draw, rows) }
		constant := column("batch", func() float64 { return 7 })
		fold := column("fold", func() float64 { return float64(r.IntN(5)) })
		score := column("score", r.Float64)
		for _, c := range []struct {
			what  string
			now   []dataset.Column
			least float64
		}{
			{"shuffled", shuffled, 0.9},
			{"a constant column", append(slices.Clone(shuffled), constant), 0.9},
			{"a fold", append(slices.Clone(shuffled), fold), 0.9},
			{"predictions", append(slices.Clone(shuffled), score), 0.9},
			{"a fold and predictions", append(slices.Clone(shuffled), fold, score), 0.9},
			{"without the first column", shuffled[1:], 0.9},
			{"without the last column", shuffled[:len(shuffled)-1], 0.9},
			{"without one, and with a fold", append(slices.Clone(shuffled[1:]), fold), 0.9},
			{"a third of the rows and a fold", append(rowsOf(old, r.Perm(rows)[:rows/3]), numbered("fold", func() float64 { return float64(r.IntN(5)) }, rows/3)), 0.9},
		} {
			o := overlap(t, old, c.now)
			if o.OfNew < c.least {
				t.Errorf("%s, %s: %.2f of the rows are recognised, want %.2f", name, c.what, o.OfNew, c.least)
			}
		}
		if o := overlap(t, old, fresh[name]); o != (Overlap{}) {
			t.Errorf("%s: of fresh rows %+v are taken for known", name, o)
		}
	}
}

// TestEarlierSketches: a sketch of the first version, without names, is compared by what it has.
func TestEarlierSketches(t *testing.T) {
	old := people(1, 3000)
	s, err := New(testKey, table(t, old), nil)
	if err != nil {
		t.Fatal(err)
	}
	var read Sketch
	if err := read.UnmarshalBinary(s.encode(1)); err != nil {
		t.Fatal(err)
	}
	var watch Watch
	watch.Add(&read)
	now, err := New(testKey, table(t, old), &watch)
	if err != nil {
		t.Fatal(err)
	}
	if o := Compare(&read, now); o.OfNew < 0.99 || o.OfOld < 0.99 {
		t.Errorf("of the same rows are recognised %+v", o)
	}
}

// TestComputedFeatures: rows are recognised beside many columns that were computed of theirs. It notices a row that is lost where the other one holds three times as much.
func TestComputedFeatures(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	var old []dataset.Column
	for k := range 8 {
		old = append(old, numbered(fmt.Sprint("x", k), func() float64 { return math.Exp(r.NormFloat64()) }, 4000))
	}
	now := slices.Clone(old)
	for name, of := range map[string]func(float64) float64{"square": func(x float64) float64 { return x * x }, "log": math.Log, "root": math.Sqrt, "inverse": func(x float64) float64 { return 1 / x }} {
		for _, c := range old {
			at := 0
			now = append(now, numbered(c.Name+" "+name, func() float64 { at++; return of(c.Numbers[at-1]) }, 4000))
		}
	}
	if o := overlap(t, old, now); o.OfNew < 0.1 || o.OfOld < 0.1 {
		t.Errorf("of rows beside computed columns are recognised %+v", o)
	}
}
