package holdout

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
)

func numberColumn(name string, n int, f func(i int) float64) dataset.Column {
	c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number}, Numbers: make([]float64, n)}
	for i := range c.Numbers {
		c.Numbers[i] = f(i)
	}
	return c
}

// warningsOf are the warnings of dependence of columns in memory.
func warningsOf(t *testing.T, columns []dataset.Column, g grouping, unit unitRule, label string, after func()) []Warning {
	t.Helper()
	found, err := dependenceWarnings(columns, g, unit, label, after)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// effectOf is the design effect of a grouping on values.
func effectOf(values []float64, of []uint32, groups int) float64 {
	one := measure{column: &dataset.Column{Field: dataset.Field{Kind: dataset.Number}, Numbers: values}}
	both := [lanes]measure{one, one}
	ns, means := meansOf(both, len(values))
	return groupsDiffer(both, ns, means, of, groups)[1].effect
}

// clustered is rows of 200 days, whose values share a day's effect of the given size.
func clustered(n int, effect float64) []dataset.Column {
	r := rand.New(rand.NewPCG(1, 2))
	days := make([]float64, 200)
	for i := range days {
		days[i] = r.NormFloat64()
	}
	date := numberColumn("date", n, func(i int) float64 { return (float64(i%200) + 0.3) * microsecondsPerDay })
	date.Kind = dataset.Time
	return []dataset.Column{
		date,
		numberColumn("x", n, func(i int) float64 { return effect*days[i%200] + r.NormFloat64() }),
		numberColumn("id", n, func(i int) float64 { return float64(i) }),
	}
}

// TestDependenceWarning: the design effect of m rows a day with intraclass correlation rho is 1+(m-1)rho; here m = 50
// and rho = 1/2, so 25.5 with a relative spread of about sqrt(2/200)=0.1. Seeds are fixed.
func TestDependenceWarning(t *testing.T) {
	w := warningsOf(t, clustered(10_000, 1), groupByRow(10_000), unitRule{}, "", func() {})
	if len(w) != 1 || w[0].Unit != "day(date)" || w[0].Column != "date" || w[0].Code != "dependent-rows" {
		t.Fatalf("warnings: %+v", w)
	}
	if w[0].Effect < 18 || w[0].Effect > 35 || !strings.Contains(w[0].Detail, "unit=day(date)") {
		t.Errorf("warning: %+v", w[0])
	}
	if w := warningsOf(t, clustered(10_000, 0), groupByRow(10_000), unitRule{}, "", func() {}); len(w) != 0 {
		t.Errorf("independent rows: %+v", w)
	}
}

// TestDependenceWithUnits: a grouping that is the unit is not proposed again; a coarser one that holds units is.
func TestDependenceWithUnits(t *testing.T) {
	columns := clustered(10_000, 1)
	order, _, err := groupBy(columns[0], true).groupInOrder(allUnits(nil, 200), placing{rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	for c := range columns { // rows of a unit together, as stored
		old := columns[c].Numbers
		columns[c].Numbers = make([]float64, len(old))
		for i, row := range order {
			columns[c].Numbers[i] = old[row]
		}
	}
	unit := unitRule{Column: "date", Day: true}
	g := groupBy(columns[0], true)
	if w := warningsOf(t, columns, g, unit, "", func() {}); len(w) != 0 {
		t.Errorf("the unit itself: %+v", w)
	}
	month := numberColumn("month_no", 10_000, func(i int) float64 { return math.Floor(float64(i) / 400) })
	trend := numberColumn("trend", 10_000, func(i int) float64 { return math.Sin(math.Floor(float64(i) / 400)) })
	if w := warningsOf(t, append(columns, month, trend), g, unit, "trend", func() {}); len(w) != 1 || w[0].Unit != "month_no" || w[0].Effect < 4 {
		t.Errorf("months of days: %+v", w)
	}
}

func TestDesignEffect(t *testing.T) {
	// Two groups, values -1 and 1 within: between (2*-1)^2 + (2*1)^2 = 8, within all 4.
	if got := effectOf([]float64{-1, -1, 1, 1}, []uint32{0, 0, 1, 1}, 2); got != 2 {
		t.Errorf("design effect %v, want 2", got)
	}
	if got := effectOf([]float64{5, 5, math.NaN()}, []uint32{0, 1, 1}, 2); got != 0 {
		t.Errorf("a constant: %v", got)
	}
	if got := effectOf([]float64{1e308, -1e308, 1e308}, []uint32{0, 1, 1}, 2); got != 0 {
		t.Errorf("overflow: %v", got)
	}
}

// TestComparedTogether: measures that are gone through together, some at a time, have to the last bit the design effects and p-values that each has alone, by the formulas
// as they stand in the documentation of groupsDiffer: with nulls, conditions, constants, and units of several rows.
func TestComparedTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 3))
		n := 1 + r.IntN(3*measuredRows)
		nulls := r.Float64() * float64(r.IntN(2))
		var columns []dataset.Column
		for i := range 1 + r.IntN(5) {
			name, scale := string(rune('a'+i)), math.Pow(10, float64(r.IntN(20)-10))
			if r.IntN(3) == 0 {
				c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Bool}, Bools: make([]uint8, n)}
				for row := range c.Bools {
					c.Bools[row] = uint8(r.IntN(3)) // 2: null
				}
				columns = append(columns, c)
				continue
			}
			columns = append(columns, numberColumn(name, n, func(int) float64 {
				if r.Float64() < nulls {
					return math.NaN()
				}
				return math.Floor(scale * r.NormFloat64() / r.Float64())
			}))
		}
		g := groupByRow(n)
		if r.IntN(2) == 0 { // units of one to five rows
			offsets := []uint32{0}
			for int(offsets[len(offsets)-1]) < n {
				offsets = append(offsets, min(uint32(n), offsets[len(offsets)-1]+1+uint32(r.IntN(5))))
			}
			g = groupTogether(nil, offsets)
		}
		candidates := make([]candidate, 1+r.IntN(3))
		for i := range candidates {
			c := candidate{of: make([]uint32, g.n), groups: 1 + r.IntN(30)}
			for u := range c.of {
				c.of[u] = uint32(r.IntN(c.groups))
			}
			candidates[i] = c
		}
		measures := measuresOf(columns, "b")
		asked := make([][]bool, len(measures))
		for m := range asked {
			asked[m] = make([]bool, len(candidates))
			for i := range asked[m] {
				asked[m][i] = r.IntN(4) > 0
			}
		}
		got, err := compare(measures, candidates, asked, g, func() {})
		if err != nil {
			t.Fatal(err)
		}
		for m := range measures {
			measures[m].estimateMedian()
			values := alone(&measures[m], g)
			for i, c := range candidates {
				var want difference
				if asked[m][i] {
					want.effect, want.p = differAlone(values, c.of, c.groups)
				}
				if same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }; !same(got[m][i].effect, want.effect) || !same(got[m][i].p, want.p) {
					t.Fatalf("measure %d of %d (%s), candidate %d: %v, want %v", m, len(measures), measures[m].column.Name, i, got[m][i], want)
				}
			}
		}
	})
}

// alone are the values of a measure, one for each unit.
func alone(m *measure, g grouping) []float64 {
	values := make([]float64, m.column.Len())
	for row := range values {
		switch c := m.column; {
		case c.Null(row):
			values[row] = math.NaN()
		case c.Kind == dataset.Bool:
			values[row] = float64(c.Bools[row])
		case m.above && c.Numbers[row] > m.median:
			values[row] = 1
		case !m.above:
			values[row] = c.Numbers[row]
		}
	}
	if g.of == nil {
		return values
	}
	sums, counts := make([]float64, g.n), make([]float64, g.n)
	for row, v := range values {
		if v == v {
			sums[g.of[row]] += v
			counts[g.of[row]]++
		}
	}
	for u := range sums {
		sums[u] /= counts[u]
	}
	return sums
}

// differAlone is groupsDiffer of one measure, in the plainest way.
func differAlone(x []float64, of []uint32, groups int) (effect, p float64) {
	n, mean := 0.0, 0.0
	for _, v := range x {
		if v == v {
			n++
			mean += (v - mean) / n
		}
	}
	sums, square, fourth := make([]groupSums, groups), 0.0, 0.0
	for i, v := range x {
		if v == v {
			d := v - mean
			sums[of[i]].sums[0] += d
			sums[of[i]].sizes[0]++
			square += d * d
			fourth += d * d * d * d
		}
	}
	return designEffect(sums, 0, n, square, fourth)
}

func TestFirstRows(t *testing.T) {
	c := []dataset.Column{numberColumn("u", 10, func(i int) float64 { return math.Floor(float64(i) / 3) })}
	g := groupBy(c[0], false)
	for limit := 3; limit < 12; limit++ {
		cut, h := firstRows(c, g, limit)
		if rows := len(cut[0].Numbers); rows > limit || rows != len(h.of) || h.n != len(h.first) || h.of[rows-1] != uint32(h.n-1) {
			t.Errorf("limit %d: %d rows, %d units", limit, rows, h.n)
		}
	}
	if cut, h := firstRows(c, groupByRow(10), 4); len(cut[0].Numbers) != 4 || h.n != 4 {
		t.Error("rows as units")
	}
}

// TestNoWarningOfIndependentColumns: tables whose columns are independent of each other, with heavy tails, rare conditions, skewed group sizes and few
// groups, where chance is largest. A warning has a probability of at most about 0.001 for each table, so more than two of 150 have one of
// 0.0005; seeds are fixed. It would notice pairs that are compared with no level, with one level each, or by a normal law whatever the tails are.
func TestNoWarningOfIndependentColumns(t *testing.T) {
	alarms := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 8))
		n := 400 + r.IntN(1500)
		var columns []dataset.Column
		for i, groups := range []int{20, 22, 25, 40, 90, n / 3} {
			texts := make([]string, n)
			for row := range texts {
				group := r.IntN(groups)
				if i%2 == 1 { // few large groups and many small ones
					group = int(float64(groups) * math.Pow(r.Float64(), 3))
				}
				texts[row] = string(rune('A' + group))
			}
			columns = append(columns, dataset.NewText(string(rune('a'+i)), texts, func(int) bool { return false }))
		}
		for i, draw := range []func() float64{
			r.NormFloat64, func() float64 { return math.Exp(2 * r.NormFloat64()) }, func() float64 { return r.NormFloat64() / r.Float64() },
			func() float64 { return float64(r.IntN(50) / 49) }, func() float64 { return float64(r.IntN(500) / 499) }, func() float64 { return math.Floor(4 * r.ExpFloat64()) },
		} {
			for copies := range 4 {
				columns = append(columns, numberColumn(string(rune('m'+i))+string(rune('0'+copies)), n, func(int) float64 { return draw() }))
			}
		}
		for _, w := range warningsOf(t, columns, groupByRow(n), unitRule{}, "", func() {}) {
			alarms++
			t.Logf("seed %d: %s", seed, w.Detail)
		}
	}
	if alarms > 2 {
		t.Errorf("%d of 150 tables of independent columns have a warning", alarms)
	}
}

// TestOneRecommendation: flights are alike by day, by destination and by origin, and the owner is told one unit, with how many units it leaves;
// numbers that are no ids are no groupings, however well they go along with another column.
func TestOneRecommendation(t *testing.T) {
	columns := clustered(10_000, 1)
	r := rand.New(rand.NewPCG(3, 4))
	of := make([]int, 10_000)
	effects := make([]float64, 50)
	for i := range effects {
		effects[i] = 3 * r.NormFloat64()
	}
	texts := make([]string, len(of))
	for i := range of {
		of[i] = r.IntN(len(effects))
		texts[i] = string(rune('A' + of[i]))
		columns[1].Numbers[i] += effects[of[i]]
	}
	columns = append(columns, dataset.NewText("origin", texts, func(int) bool { return false }),
		numberColumn("logins", 10_000, func(i int) float64 { return float64(of[i]) }))
	w := warningsOf(t, columns, groupByRow(10_000), unitRule{}, "x", func() {})
	if len(w) != 1 || w[0].Unit != "day(date)" || !strings.Contains(w[0].Detail, "about 200 units for every 10000 rows") || !strings.Contains(w[0].Detail, "Also alike are rows with the same origin (") {
		t.Errorf("%+v", w)
	}
	if w := warningsOf(t, columns[1:2:2], groupByRow(10_000), unitRule{}, "", func() {}); len(w) != 0 {
		t.Errorf("without groupings: %+v", w)
	}
	for name, is := range map[string]bool{"id": true, "customer_id": true, "customerID": true, "userId": true, "order no": true, "paid": false, "logins": false, "PAID": false, "nps": false} {
		if namedAsID(name) != is {
			t.Errorf("%s: %v", name, !is)
		}
	}
}
