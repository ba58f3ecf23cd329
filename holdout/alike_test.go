package holdout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// customers are rows of customers, most of whom have one or two: about what a random split leaves of two to four to the training part. All but minutes is the customer's.
func customers(seed uint64, key string) []dataset.Column {
	r := rand.New(rand.NewPCG(seed, 6))
	var of []int
	for c := range 3000 {
		of = append(of, slices.Repeat([]int{c}, 1+r.IntN(2))...)
	}
	r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	age, income, paid := make([]float64, 3000), make([]float64, 3000), make([]float64, 3000)
	for c := range age {
		age[c], income[c], paid[c] = float64(18+r.IntN(60)), 100*math.Round(30*math.Exp(r.NormFloat64())), float64(r.IntN(2))
	}
	n := len(of)
	plans := make([]string, n)
	for row := range plans {
		plans[row] = []string{"a", "b", "c", "d"}[int(age[of[row]])/20]
	}
	return []dataset.Column{
		numberColumn(key, n, func(i int) float64 { return float64(70000 + of[i]) }),
		numberColumn("age", n, func(i int) float64 { return age[of[i]] }),
		numberColumn("income", n, func(i int) float64 { return income[of[i]] }),
		numberColumn("income_eur", n, func(i int) float64 { return 0.9 * income[of[i]] }),
		numberColumn("income_log", n, func(i int) float64 { return math.Log(income[of[i]]) }),
		numberColumn("left", n, func(i int) float64 { return paid[of[i]] }),
		numberColumn("minutes", n, func(int) float64 { return math.Round(60 * r.ExpFloat64()) }),
		dataset.NewText("plan", plans, func(i int) bool { return i%50 == 0 }),
	}
}

// TestAlikeThroughout: customers who come again are warned of by what they have in common, however few rows each has left and whatever the column is called; amounts from which others are
// computed, and four plans with nulls, are no units. The false alarm of one table is at most FalseWarning; seeds are fixed.
func TestAlikeThroughout(t *testing.T) {
	for i, key := range []string{"customer_id", "acct", "k", "Kunde"} {
		columns := customers(uint64(i), key)
		for _, label := range []string{"", "left"} {
			w := warningsOf(t, columns, groupByRow(columns[0].Len()), unitRule{}, label, func() {})
			if len(w) != 1 || w[0].Unit != key || !strings.Contains(w[0].Detail, "knows the others") {
				t.Errorf("%s, label %q: %+v", key, label, w)
			}
			if w := warningsOf(t, columns[1:], groupByRow(columns[0].Len()), unitRule{}, label, func() {}); len(w) != 0 {
				t.Errorf("without %s, label %q: %+v", key, label, w)
			}
		}
		texts := make([]string, columns[0].Len())
		for row := range texts {
			texts[row] = fmt.Sprint("c", columns[0].Numbers[row])
		}
		named := dataset.NewText("who", texts, func(int) bool { return false })
		if w := warningsOf(t, append([]dataset.Column{named}, columns[1:]...), groupByRow(len(texts)), unitRule{}, "", func() {}); len(w) != 1 || w[0].Unit != "who" {
			t.Errorf("as texts: %+v", w)
		}
	}
}

// TestOneAlikeColumn: an article that decides its price, and nothing else, is no unit that a model knows again, but it is where it decides the label.
func TestOneAlikeColumn(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	n := 3000
	articles, price := make([]string, n), make([]float64, n)
	for row := range articles {
		a := r.IntN(2000)
		articles[row], price[row] = fmt.Sprint("article ", a), float64(a*7919%1000)
	}
	columns := []dataset.Column{
		dataset.NewText("article", articles, func(int) bool { return false }),
		numberColumn("price", n, func(i int) float64 { return price[i] }),
		numberColumn("bought", n, func(int) float64 { return float64(r.IntN(2)) }),
	}
	if w := warningsOf(t, columns, groupByRow(n), unitRule{}, "bought", func() {}); len(w) != 0 {
		t.Errorf("a price: %+v", w)
	}
	if w := warningsOf(t, columns, groupByRow(n), unitRule{}, "price", func() {}); len(w) != 1 || w[0].Unit != "article" {
		t.Errorf("a label: %+v", w)
	}
}

// wideNumbers are columns of whole numbers that say nothing about each other.
func wideNumbers(columns, rows int) []dataset.Column {
	r, all := rand.New(rand.NewPCG(1, 2)), make([]dataset.Column, columns)
	for i := range all {
		all[i].Name, all[i].Kind, all[i].Numbers = fmt.Sprintf("c%d", i), dataset.Number, make([]float64, rows)
		for row := range rows {
			all[i].Numbers[row] = float64(r.IntN(rows / 2))
		}
	}
	return all
}

// TestFewKeysAreTried: of a wide table the first whole numbers are held against all columns, and not all against all.
func TestFewKeysAreTried(t *testing.T) {
	tried := 0
	candidatesOf(wideNumbers(3*keyColumns, 200), groupByRow(200), unitRule{}, "", func() { tried++ })
	if tried != keyColumns {
		t.Errorf("%d columns are tried, not %d", tried, keyColumns)
	}
}

func BenchmarkWideKeys(b *testing.B) {
	columns := wideNumbers(2000, 6000)
	for b.Loop() {
		candidatesOf(columns, groupByRow(6000), unitRule{}, "", func() {})
	}
}
