package session

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// kindOfUnit is what a unit may be: in the first group or not, with one of three values.
type kindOfUnit struct {
	first bool
	value float64
}

// plainTest is a test that has a plain p-value, and what its null hypothesis is about: the expectations of how many of each kind there are tell it.
type plainTest struct {
	body   string // with a place for the null, if it has one
	effect func(expected []float64, kinds []kindOfUnit) float64
}

// ratio is the mean of what a unit has over the units that count.
func ratio(expected []float64, kinds []kindOfUnit, counts func(k kindOfUnit) bool, of func(value float64) float64) float64 {
	sum, n := 0.0, 0.0
	for i, k := range kinds {
		if counts(k) {
			sum, n = sum+expected[i]*of(k.value), n+expected[i]
		}
	}
	return sum / n
}

func everyUnit(kindOfUnit) bool     { return true }
func firstGroup(k kindOfUnit) bool  { return k.first }
func secondGroup(k kindOfUnit) bool { return !k.first }
func itself(x float64) float64      { return x }
func isOne(x float64) float64       { return math.Floor(x) }

func meanOver(counts func(kindOfUnit) bool, of func(float64) float64) func([]float64, []kindOfUnit) float64 {
	return func(expected []float64, kinds []kindOfUnit) float64 { return ratio(expected, kinds, counts, of) }
}

func between(of func(float64) float64) func([]float64, []kindOfUnit) float64 {
	return func(expected []float64, kinds []kindOfUnit) float64 {
		return ratio(expected, kinds, firstGroup, of) - ratio(expected, kinds, secondGroup, of)
	}
}

var plainTests = []plainTest{
	{`"test":"proportion","of":"x == 1.0","equals":%v`, meanOver(everyUnit, isOne)},
	{`"test":"mean","of":"x","range":[0,1],"equals":%v`, meanOver(everyUnit, itself)},
	{`"test":"proportion","of":"x == 1.0","where":"first","equals":%v`, meanOver(firstGroup, isOne)},
	{`"test":"mean","of":"x","range":[0,1],"where":"first","equals":%v`, meanOver(firstGroup, itself)},
	{`"test":"two-proportions","of":"x == 1.0","between":["first"],"equals":%v`, between(isOne)},
	{`"test":"two-sample","of":"x","range":[0,1],"between":["first"],"equals":%v`, between(itself)},
}

// TestEveryPlainPValueExactly asks every test with a plain p-value, of every table of a few units, under each mechanism that gives one without noise. Units differ, each with a law of its own over the kinds. So P(p <= u) is known
// exactly: it is at most u. (All units are one slice of split: which of units that differ a slice has is another matter.) Shares of cells, and noise, are enumerated in queries/shape, TestPlainPValuesOfUnitsThatDiffer.
func TestEveryPlainPValueExactly(t *testing.T) {
	groups := []kindOfUnit{{true, 0}, {true, 1}, {false, 0}, {false, 1}, {true, 0.5}}
	for _, c := range []struct {
		spec    thresholdout.Spec
		n       int
		kinds   []kindOfUnit
		tests   []plainTest
		designs int
		trained []int // the training part's units; where guesses are good no outcome excludes the truth
	}{
		{thresholdout.Spec{Mechanism: thresholdout.Gaussian, Questions: 20, Rounds: 1}, 5, groups, plainTests, 2, []int{3, 2, 3, 2, 3}},
		{thresholdout.Spec{Mechanism: thresholdout.Split, Questions: 1}, 5, groups, plainTests, 2, []int{3, 2, 3, 2, 3}},
		{thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, Questions: 20}, 80, groups[:2], plainTests[:4], 5, []int{500, 50}}, // an outcome says little of few units
	} {
		r := rand.New(rand.NewPCG(30, 11))
		_, training := tableOf(t, c.trained, c.kinds)
		spec := c.spec
		spec.N, spec.Training = int64(c.n), training.Units()
		g, err := thresholdout.Plan(spec)
		if err != nil {
			t.Fatal(err)
		}
		worst, below := 0.0, 0
		for range c.designs {
			law, expected := tablesOf(r, c.n, len(c.kinds))
			for _, test := range c.tests {
				null := test.effect(expected, c.kinds)
				if !(math.Abs(null) < 0.999 && (null > 1e-3 || strings.Contains(test.body, "between"))) {
					continue
				}
				for _, alternative := range []string{"two-sided", []string{"greater", "less"}[r.IntN(2)]} {
					body := fmt.Sprintf(`{"type":"test",`+test.body+`,"alternative":%q}`, null, alternative)
					probable := map[float64]float64{}
					for _, at := range law {
						schema, holdout := tableOf(t, at.counts, c.kinds)
						l := &Local{Session: Session{Guarantee: g, Noise: Seeded(1), RandomSplit: true}, Schema: schema, Holdout: holdout, Training: training, Compile: []queries.Option{queries.Grouped(false)}}
						a, err := l.Ask(t.Context(), []byte(body))
						if err != nil || a.Plain == nil && a.PValue != nil && *a.PValue < 1 {
							t.Fatalf("%s under %s: %s, %v", body, spec.Mechanism, text(a), err)
						}
						if a.Plain != nil {
							probable[*a.Plain] += at.probability
						}
					}
					total := 0.0
					for _, p := range slices.Sorted(maps.Keys(probable)) {
						total += probable[p]
						if p == 1 || total < 1e-12 {
							continue
						}
						below++
						worst = max(worst, total/p)
						if total > p*(1+1e-6) {
							t.Errorf("%s under %s: p <= %v with probability %v", body, spec.Mechanism, p, total)
						}
					}
				}
			}
		}
		t.Logf("%s: largest probability divided by p %.3f, at %d p-values", spec.Mechanism, worst, below)
		if below < 50 {
			t.Errorf("%s: %d p-values are below 1: the designs are too tame", spec.Mechanism, below)
		}
	}
}

// tableOf is a table with so many units of each kind.
func tableOf(t *testing.T, counts []int, kinds []kindOfUnit) (dataset.Schema, *engine.Table) {
	x, first := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}}, dataset.Column{Field: dataset.Field{Name: "first", Kind: dataset.Bool}}
	for i, c := range counts {
		for range c {
			x.Numbers = append(x.Numbers, kinds[i].value)
			first.Bools = append(first.Bools, map[bool]uint8{true: 1}[kinds[i].first])
		}
	}
	table, err := dataset.FromColumns(x, first)
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return table.Schema(), source
}

// counted is one table, up to the order of its rows.
type counted struct {
	counts      []int
	probability float64
}

// tablesOf are all tables of n units of which each has a law of its own, and how many of each kind are expected.
func tablesOf(r *rand.Rand, n, kinds int) (tables []counted, expected []float64) {
	states := map[string]counted{"": {make([]int, kinds), 1}}
	expected = make([]float64, kinds)
	for range n {
		own, sum := make([]float64, kinds), 0.0
		for k := range own {
			own[k] = []float64{0, 0, r.Float64(), math.Exp(-5 * r.Float64())}[r.IntN(4)]
			sum += own[k]
		}
		if sum == 0 {
			own[r.IntN(kinds)], sum = 1, 1
		}
		next := map[string]counted{}
		for k := range own {
			own[k] /= sum
			expected[k] += own[k]
		}
		for _, at := range slices.Sorted(maps.Keys(states)) {
			for k, p := range own {
				if p == 0 {
					continue
				}
				counts := slices.Clone(states[at].counts)
				counts[k]++
				to := next[fmt.Sprint(counts)]
				next[fmt.Sprint(counts)] = counted{counts, to.probability + states[at].probability*p}
			}
		}
		states = next
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		tables = append(tables, states[name])
	}
	return tables, expected
}
