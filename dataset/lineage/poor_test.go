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
		"150 rare flags":                several(150, "r", func(int) float64 { return float64(r.IntN(16) / 15) }),
		"60 flags and a zip":            append(several(60, "f", uniform(2)), several(1, "zip", uniform(900))[0]),
		"60 flags and a measurement":    append(several(60, "f", uniform(2)), several(1, "weight", func(int) float64 { return r.NormFloat64() })[0]),
		"64 pixels and a serial number": append(several(64, "p", uniform(17)), several(1, "serial", func(int) float64 { serial++; return float64(serial) })[0]),
		"200 SNPs, patient and bmi":     append(several(200, "rs", func(int) float64 { return float64(r.IntN(2) + r.IntN(2)) }), several(1, "patient", uniform(3000))[0], several(1, "bmi", func(int) float64 { return float64(r.IntN(300)) / 10 })[0]),
		"20 categories":                 categories,
		"an adult": {several(1, "age", uniform(70))[0], texts("workclass", 8), texts("education", 16), texts("marital", 7), texts("occupation", 14), texts("relationship", 6), texts("race", 5), texts("sex", 2),
			several(1, "hours", uniform(80))[0], texts("country", 40)},
	}
}

// changesOf are what people do to a table, each with the share of its rows that are of the table it is made from.
func changesOf(old []dataset.Column, others []dataset.Column, seed uint64) map[string]struct {
	now []dataset.Column
	ofN float64
	ofO float64
} {
	r := rand.New(rand.NewPCG(seed, 3))
	rows := len(old[0].Numbers) + len(old[0].Codes)
	shuffled := rowsOf(old, r.Perm(rows))
	column := func(name string, draw func() float64) dataset.Column { return numbered(name, draw, rows) }
	constant := column("batch", func() float64 { return 7 })
	fold := column("fold", func() float64 { return float64(r.IntN(5)) })
	score := column("score", r.Float64)
	with := func(n int, draw func() float64) []dataset.Column {
		all := slices.Clone(shuffled)
		for k := range n {
			all = append(all, column(fmt.Sprint("new", k), draw))
		}
		return all
	}
	redrawn := func(n int) []dataset.Column { // columns of the same names with the values of other rows
		all := slices.Clone(shuffled)
		for _, at := range r.Perm(len(all))[:n] {
			all[at] = rowsOf(all[at:at+1], r.Perm(rows))[0]
		}
		return all
	}
	some := func(columns []dataset.Column, share float64) []dataset.Column {
		kept := slices.Clone(columns)
		r.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
		return kept[:int(math.Ceil(share*float64(len(kept))))]
	}
	part := func(share float64) []dataset.Column { return rowsOf(old, r.Perm(rows)[:int(share*float64(rows))]) }
	flag, number := func() float64 { return float64(r.IntN(2)) }, r.NormFloat64
	return map[string]struct {
		now []dataset.Column
		ofN float64
		ofO float64
	}{
		"shuffled":                       {shuffled, 1, 1},
		"a constant column":              {append(slices.Clone(shuffled), constant), 1, 1},
		"a fold":                         {append(slices.Clone(shuffled), fold), 1, 1},
		"predictions":                    {append(slices.Clone(shuffled), score), 1, 1},
		"a fold and predictions":         {append(slices.Clone(shuffled), fold, score), 1, 1},
		"three flags more":               {with(3, flag), 1, 1},
		"ten flags more":                 {with(10, flag), 1, 1},
		"three numbers more":             {with(3, number), 1, 1},
		"without the first column":       {shuffled[1:], 1, 1},
		"without the last column":        {shuffled[:len(shuffled)-1], 1, 1},
		"without one, and with a fold":   {append(slices.Clone(shuffled[1:]), fold), 1, 1},
		"two thirds of the columns":      {some(shuffled, 0.67), 1, 1},
		"and three flags more":           {append(some(shuffled, 0.67), with(3, flag)[len(shuffled):]...), 1, 1},
		"a column drawn anew":            {redrawn(1), 1, 1},
		"and a fold":                     {append(redrawn(1), fold), 1, 1},
		"a third of the rows and a fold": {append(part(1./3), numbered("fold", func() float64 { return float64(r.IntN(5)) }, rows/3)), 1, 1. / 3},
		"a tenth of the rows":            {part(0.1), 1, 0.1},
		"a tenth of them among fresh":    {joined(part(0.1), others), 1. / 11, 0.1},
		"all of them among fresh":        {joined(shuffled, others), 0.5, 1},
	}
}

// TestPoorTables: rows of flags, grades, categories and pixels are recognised when rows are shuffled and columns come or go; and a table of the same law, changed likewise, has none of them. It notices tokens that do not know which
// column a value is of, such that hang on each column, and chance that is taken for rows.
func TestPoorTables(t *testing.T) {
	fresh, others := poorTables(2), poorTables(3)
	for name, old := range poorTables(1) {
		t.Run(name, func(t *testing.T) {
			sketch := stored(t, old)
			for what, c := range changesOf(old, others[name], 3) {
				if o := against(t, sketch, c.now); o.OfNew < 0.85*c.ofN-0.02 || o.OfOld < 0.85*c.ofO-0.02 || o.OfNew > 1.2*c.ofN+0.05 || o.OfOld > 1.2*c.ofO+0.05 {
					t.Errorf("%s: of %.2f of the new rows and %.2f of the old ones are recognised %+v", what, c.ofN, c.ofO, o)
				}
			}
			for what, c := range changesOf(fresh[name], others[name], 3) {
				if o := against(t, sketch, c.now); o != (Overlap{}) {
					t.Errorf("%s: of fresh rows %+v are taken for known", what, o)
				}
			}
		})
	}
}

// TestMostlyFlags: of a table whose rows are sampled by all of their cells, or by a column that is not in the other one, rows are recognised though the other table samples other rows.
func TestMostlyFlags(t *testing.T) {
	const rows = 150_000 // more than are examined
	r := rand.New(rand.NewPCG(1, 2))
	made := func() (all []dataset.Column) {
		for k := range 30 {
			all = append(all, numbered(fmt.Sprint("f", k), func() float64 { return float64(r.IntN(3)) }, rows))
		}
		return all
	}
	old, fresh := made(), made()
	fold, score := numbered("fold", func() float64 { return float64(r.IntN(5)) }, rows), numbered("score", r.Float64, rows)
	more := append(rowsOf(old, r.Perm(rows)), fold, score)
	for name, c := range map[string][2][]dataset.Column{
		"a fold": {old, more[:31]}, "a fold and scores": {old, more}, "without scores": {more, old}, "without some flags": {more, more[5:]}, "other scores": {append(slices.Clone(old), renamed(fold, "old fold"), renamed(score, "old score")), more},
	} {
		if o := overlap(t, c[0], c[1]); o.OfOld < 0.9 || o.OfNew < 0.9 {
			t.Errorf("%s: recognised are %+v", name, o)
		}
	}
	if o := overlap(t, more, append(fresh, score)); o != (Overlap{}) {
		t.Errorf("of fresh rows %+v are taken for known", o)
	}
	answers := func() (all []dataset.Column) { // right and wrong ones, which follow one ability: many rows are alike
		ability := make([]float64, rows)
		for i := range ability {
			ability[i] = 2 * r.NormFloat64()
		}
		for k := range 30 {
			i := -1
			all = append(all, numbered(fmt.Sprint("item", k), func() float64 {
				i++
				return map[bool]float64{true: 1}[r.Float64() < 1/(1+math.Exp(float64(k%10)/3-1.5-ability[i]))]
			}, rows))
		}
		return all
	}
	if o := overlap(t, answers(), append(answers(), score)); o != (Overlap{}) {
		t.Errorf("of other people's answers %+v are taken for known", o)
	}
}

// TestDocuments: long texts are recognised by themselves, also renamed beside some features and named beside many; texts of the same words in another order are not.
func TestDocuments(t *testing.T) {
	const rows = 3000
	made := func(seed uint64) []dataset.Column {
		r, texts := rand.New(rand.NewPCG(seed, 8)), make([]string, rows)
		for i := range texts {
			for range 12 {
				texts[i] += fmt.Sprint("word", r.IntN(300), " ")
			}
		}
		return []dataset.Column{dataset.NewText("text", texts, nil), numbered("label", func() float64 { return float64(r.IntN(2)) }, rows)}
	}
	old, r := made(1), rand.New(rand.NewPCG(9, 9))
	with := func(of []dataset.Column, n int) []dataset.Column {
		all := rowsOf(of, r.Perm(rows))
		for k := range n {
			all = append(all, numbered(fmt.Sprint("feature", k), r.NormFloat64, rows))
		}
		return all
	}
	for name, c := range map[string]struct {
		now   []dataset.Column
		least float64
	}{
		"three features":  {with(old, 3), 0.9},
		"thirty features": {with(old, 30), 0.9},
		"renamed":         {with([]dataset.Column{renamed(old[0], "document"), renamed(old[1], "y")}, 3), 0.2},
	} {
		if o := overlap(t, old, c.now); o.OfOld < c.least || o.OfNew < c.least {
			t.Errorf("%s: recognised are %+v", name, o)
		}
	}
	for _, n := range []int{0, 3, 30} {
		if o := overlap(t, old, with(made(2), n)); o != (Overlap{}) {
			t.Errorf("of fresh texts %+v are taken for known", o)
		}
	}
}

// TestCopies: of a table that has its rows two or three times, a row is one row.
func TestCopies(t *testing.T) {
	once, others := poorTables(1)["60 flags"], poorTables(2)["60 flags"]
	if o := overlap(t, joined(once, joined(once, once)), joined(once, others)); o.OfOld < 0.9 || math.Abs(o.OfNew-0.5) > 0.05 {
		t.Errorf("of one half of the rows, which are all of the old ones, are recognised %+v", o)
	}
	for name, old := range map[string][]dataset.Column{"flags": once, "people": people(4, 3000)} {
		twice := joined(old, old)
		rows, at := table(t, twice).Rows(), -1
		twice = append(twice, numbered("copy", func() float64 { at++; return float64(at / (rows / 2)) }, rows))
		for what, now := range map[string][]dataset.Column{"": twice[:len(old)], ", with a mark": twice} {
			if o := overlap(t, old, now); o.OfOld < 0.9 || o.OfNew < 0.9 {
				t.Errorf("%s: of rows that come twice%s are recognised %+v", name, what, o)
			}
		}
	}
}

// TestEarlierSketches: sketches of the first two versions, without rows with names, are compared by what they have.
func TestEarlierSketches(t *testing.T) {
	old := people(1, 3000)
	s, err := New(testKey, table(t, old), nil)
	if err != nil {
		t.Fatal(err)
	}
	first := s.encode(withoutNames)
	second := slices.Clone(first)
	second[0] = withHalves
	for range halvesKinds { // a limit, and one token of a row with one cell
		second = append(second, slices.Repeat([]byte{0xff}, 8)...)
		second = append(second, 1, 0, 0, 0)
		second = append(second, slices.Repeat([]byte{7}, 8)...)
		second = append(second, 0, 0, 1, 9, 9, 9, 9)
	}
	for name, stored := range map[string][]byte{"first": first, "second": second} {
		var read Sketch
		if err := read.UnmarshalBinary(stored); err != nil {
			t.Fatal(name, err)
		}
		var watch Watch
		watch.Add(&read)
		now, err := New(testKey, table(t, old), &watch)
		if err != nil {
			t.Fatal(err)
		}
		if o := Compare(&read, now); o.OfNew < 0.99 || o.OfOld < 0.99 {
			t.Errorf("%s: of the same rows are recognised %+v", name, o)
		}
	}
}

// TestComputedFeatures: rows are recognised beside many columns that were computed of theirs, also where all have other names. It notices a row that is lost where the other one holds three times as much.
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
	if o := overlap(t, old, now); o.OfNew < 0.9 || o.OfOld < 0.9 {
		t.Errorf("of rows beside computed columns are recognised %+v", o)
	}
	for k := range now {
		now[k].Name = fmt.Sprint("v", k)
	}
	if o := overlap(t, old, now); o.OfNew < 0.1 || o.OfOld < 0.1 {
		t.Errorf("of renamed rows beside computed columns are recognised %+v", o)
	}
}
