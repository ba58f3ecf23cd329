package holdout

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

func numberColumn(name string, n int, f func(i int) float64) dataset.Column {
	c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number}, Numbers: make([]float64, n)}
	for i := range c.Numbers {
		c.Numbers[i] = f(i)
	}
	return c
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
	w := dependenceWarnings(clustered(10_000, 1), groupByRow(10_000), unitRule{}, "", func() {})
	if len(w) != 1 || w[0].Unit != "day(date)" || w[0].Column != "date" || w[0].Code != "dependent-rows" {
		t.Fatalf("warnings: %+v", w)
	}
	if w[0].Effect < 18 || w[0].Effect > 35 || !strings.Contains(w[0].Detail, "unit=day(date)") {
		t.Errorf("warning: %+v", w[0])
	}
	if w := dependenceWarnings(clustered(10_000, 0), groupByRow(10_000), unitRule{}, "", func() {}); len(w) != 0 {
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
	if w := dependenceWarnings(columns, g, unit, "", func() {}); len(w) != 0 {
		t.Errorf("the unit itself: %+v", w)
	}
	month := numberColumn("month_no", 10_000, func(i int) float64 { return math.Floor(float64(i) / 400) })
	trend := numberColumn("trend", 10_000, func(i int) float64 { return math.Sin(math.Floor(float64(i) / 400)) })
	if w := dependenceWarnings(append(columns, month, trend), g, unit, "trend", func() {}); len(w) != 1 || w[0].Unit != "month_no" || w[0].Effect < 4 {
		t.Errorf("months of days: %+v", w)
	}
}

func TestDesignEffect(t *testing.T) {
	// Two groups, values -1 and 1 within: between (2*-1)^2 + (2*1)^2 = 8, within all 4.
	if got, _ := groupsDiffer([]float64{-1, -1, 1, 1}, []uint32{0, 0, 1, 1}, 2); got != 2 {
		t.Errorf("design effect %v, want 2", got)
	}
	if got, _ := groupsDiffer([]float64{5, 5, math.NaN()}, []uint32{0, 1, 1}, 2); got != 0 {
		t.Errorf("a constant: %v", got)
	}
	if got, _ := groupsDiffer([]float64{1e308, -1e308, 1e308}, []uint32{0, 1, 1}, 2); got != 0 {
		t.Errorf("overflow: %v", got)
	}
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
		for _, w := range dependenceWarnings(columns, groupByRow(n), unitRule{}, "", func() {}) {
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
	w := dependenceWarnings(columns, groupByRow(10_000), unitRule{}, "x", func() {})
	if len(w) != 1 || w[0].Unit != "day(date)" || !strings.Contains(w[0].Detail, "about 200 units for every 10000 rows") || !strings.Contains(w[0].Detail, "Also alike are rows with the same origin (") {
		t.Errorf("%+v", w)
	}
	if w := dependenceWarnings(columns[1:2:2], groupByRow(10_000), unitRule{}, "", func() {}); len(w) != 0 {
		t.Errorf("without groupings: %+v", w)
	}
	for name, is := range map[string]bool{"id": true, "customer_id": true, "customerID": true, "userId": true, "order no": true, "paid": false, "logins": false, "PAID": false, "nps": false} {
		if namedAsID(name) != is {
			t.Errorf("%s: %v", name, !is)
		}
	}
}
