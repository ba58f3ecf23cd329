package lineage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestOrdinary: ordinary tables of different things, and of the same thing at another time, have no rows in common. It notices ids that are taken for rows: two tables with row numbers, days or customers in common agree in
// these, and by chance in what has few values.
func TestOrdinary(t *testing.T) {
	laws := map[string]func(seed uint64) []dataset.Column{
		"constant columns beside a number": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			return []dataset.Column{numbered("a", func() float64 { return 7 }, 3000), numbered("b", func() float64 { return 1e9 }, 3000), numbered("x", func() float64 { return math.Round(100 * r.Float64()) }, 3000)}
		},
		"daily prices": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			p := 100.0
			var c []dataset.Column
			day := float64(s) * 3000
			c = append(c, numbered("day", func() float64 { day++; return day }, 3000))
			for _, n := range []string{"open", "high", "low", "close"} {
				c = append(c, numbered(n, func() float64 { p = math.Round(100*p*(1+0.001*r.NormFloat64())) / 100; return p }, 3000))
			}
			return append(c, numbered("volume", func() float64 { return math.Round(1e6 * r.ExpFloat64()) }, 3000))
		},
		"daily prices of the same days": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			p := 100.0
			var c []dataset.Column
			day := 0.
			c = append(c, numbered("day", func() float64 { day++; return day }, 3000))
			for _, n := range []string{"open", "high", "low", "close"} {
				c = append(c, numbered(n, func() float64 { p = math.Round(100*p*(1+0.001*r.NormFloat64())) / 100; return p }, 3000))
			}
			return append(c, numbered("volume", func() float64 { return math.Round(1e6 * r.ExpFloat64()) }, 3000))
		},
		"one-hot": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			var c []dataset.Column
			for i := range 60 {
				c = append(c, numbered(fmt.Sprint("h", i), func() float64 { return float64(r.IntN(12) / 11) }, 3000))
			}
			return c
		},
		"survey": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			var c []dataset.Column
			mood := make([]float64, 3000)
			for i := range mood {
				mood[i] = r.NormFloat64()
			}
			for k := range 25 {
				i := -1
				c = append(c, numbered(fmt.Sprint("q", k), func() float64 {
					i++
					return math.Round(min(5, max(1, 3+mood[i]+0.7*r.NormFloat64())))
				}, 3000))
			}
			return c
		},
		"iris": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			kind := make([]int, 75)
			for i := range kind {
				kind[i] = i % 3
			}
			var c []dataset.Column
			for k := range 4 {
				i := -1
				c = append(c, numbered(fmt.Sprint("m", k), func() float64 {
					i++
					return math.Round(10*(3+float64(k)*float64(kind[i])*0.8+0.3*r.NormFloat64())) / 10
				}, 75))
			}
			texts := make([]string, 75)
			for i := range texts {
				texts[i] = fmt.Sprint("species ", kind[i])
			}
			return append(c, dataset.NewText("species", texts, nil))
		},
		"digits": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			shape := rand.New(rand.NewPCG(99, 1))
			var proto [10][64]float64
			for d := range proto {
				for p := range proto[d] {
					proto[d][p] = max(0, 10*shape.NormFloat64())
				}
			}
			digit := make([]int, 900)
			for i := range digit {
				digit[i] = r.IntN(10)
			}
			var c []dataset.Column
			for p := range 64 {
				i := -1
				c = append(c, numbered(fmt.Sprint("p", p), func() float64 {
					i++
					m := proto[digit[i]][p]
					if m == 0 {
						return 0
					}
					return math.Round(min(16, max(0, m+2*r.NormFloat64())))
				}, 900))
			}
			return c
		},
		"black and white images": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			shape := rand.New(rand.NewPCG(99, 1))
			var proto [5][784]bool
			for d := range proto {
				for p := range proto[d] {
					proto[d][p] = shape.IntN(5) == 0
				}
			}
			digit := make([]int, 1000)
			for i := range digit {
				digit[i] = r.IntN(5)
			}
			var c []dataset.Column
			for p := range 784 {
				i := -1
				c = append(c, numbered(fmt.Sprint("p", p), func() float64 {
					i++
					if proto[digit[i]][p] != (r.IntN(20) == 0) {
						return 255
					}
					return 0
				}, 1000))
			}
			return c
		},
		"two months of a system": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			at := 1.7e9 + float64(s)*2.6e6
			hosts, paths := make([]string, 5000), make([]string, 5000)
			for i := range hosts {
				hosts[i], paths[i] = fmt.Sprint("host-", r.IntN(30)), fmt.Sprint("/path/", int(50*r.ExpFloat64()))
			}
			when := numbered("t", func() float64 { at += math.Round(500 * r.ExpFloat64()); return 1e6 * at }, 5000)
			when.Kind = dataset.Time
			return []dataset.Column{when, dataset.NewText("host", hosts, nil), dataset.NewText("path", paths, nil),
				numbered("status", func() float64 { return []float64{200, 200, 200, 304, 404, 500}[r.IntN(6)] }, 5000),
				numbered("bytes", func() float64 { return math.Round(1000 * r.ExpFloat64()) }, 5000), numbered("ms", func() float64 { return math.Round(20 * r.ExpFloat64()) }, 5000)}
		},
		"same ids, new measurements": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			id := 0.0
			c := []dataset.Column{numbered("id", func() float64 { id++; return id }, 3000)}
			for i := range 3 {
				c = append(c, numbered(fmt.Sprint("m", i), r.NormFloat64, 3000))
			}
			return c
		},
		"same ids, one new number": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			id := 0.0
			return []dataset.Column{numbered("id", func() float64 { id++; return id }, 3000), numbered("m", r.NormFloat64, 3000)}
		},
		"same ids, one new flag": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			id := 0.0
			return []dataset.Column{numbered("id", func() float64 { id++; return id }, 3000), numbered("m", func() float64 { return float64(r.IntN(2)) }, 3000)}
		},
		"row numbers and a category": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			id := 0.0
			return []dataset.Column{numbered("row", func() float64 { id++; return id }, 3000), numbered("m", func() float64 { return float64(r.IntN(5)) }, 3000), numbered("k", func() float64 { return float64(r.IntN(20)) }, 3000)}
		},
		"row numbers and two numbers": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			id := 0.0
			return []dataset.Column{numbered("row", func() float64 { id++; return id }, 3000), numbered("m", r.NormFloat64, 3000), numbered("k", func() float64 { return float64(r.IntN(20)) }, 3000)}
		},
		"a grid": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			i, j := -1, -1
			return []dataset.Column{numbered("lat", func() float64 { i++; return float64(i/60) * 0.25 }, 3600), numbered("lon", func() float64 { j++; return float64(j%60) * 0.25 }, 3600),
				numbered("temperature", func() float64 { return math.Round(10*(15+5*r.NormFloat64())) / 10 }, 3600), numbered("rain", func() float64 { return max(0, math.Round(10*r.NormFloat64())) }, 3600)}
		},
		"right and wrong answers": func(s uint64) []dataset.Column { // which follow one ability
			r := rand.New(rand.NewPCG(s, 1))
			ability := make([]float64, 3000)
			for i := range ability {
				ability[i] = 2 * r.NormFloat64()
			}
			var c []dataset.Column
			for k := range 20 {
				i := -1
				c = append(c, numbered(fmt.Sprint("item", k), func() float64 {
					i++
					if r.Float64() < 1/(1+math.Exp(float64(k%10)/3-1.5-ability[i])) {
						return 1
					}
					return 0
				}, 3000))
			}
			return c
		},
		"days of stores": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			i, j := -1, -1
			c := []dataset.Column{numbered("day", func() float64 { i++; return float64(i / 30) }, 3000), numbered("store", func() float64 { j++; return float64(1000 + j%30) }, 3000)}
			for k := range 3 {
				c = append(c, numbered(fmt.Sprint("flag", k), func() float64 { return float64(r.IntN(2)) }, 3000))
			}
			return c
		},
		"hours of a day": func(s uint64) []dataset.Column {
			r := rand.New(rand.NewPCG(s, 1))
			i, j := -1, -1
			return []dataset.Column{numbered("day of year", func() float64 { i++; return float64(i / 24) }, 24*365), numbered("hour", func() float64 { j++; return float64(j % 24) }, 24*365),
				numbered("load", func() float64 { return math.Round(1000 + 200*r.NormFloat64()) }, 24*365)}
		},
	}
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				if got := overlap(t, law(100+2*seed), law(101+2*seed)); got != (Overlap{}) {
					t.Errorf("seed %d: two tables without a common row have in common: %+v", seed, got)
				}
			}
		})
	}
}

// TestIDs: beside a column of row numbers that two tables share, what they agree in by chance is no common row, and the same rows are: whatever stands beside the numbers.
func TestIDs(t *testing.T) {
	for _, values := range [][]int{{2}, {5}, {20}, {100}, {1000}, {2, 2, 2}, {5, 5, 5}, {5, 20}, {2, 2, 2, 2, 2, 2, 2, 2}, {10, 10, 10, 10}, {1000, 1000, 2, 2}} {
		for _, rows := range []int{400, 3000} {
			made := func(seed uint64) []dataset.Column {
				r, row := rand.New(rand.NewPCG(seed, 1)), -1.0
				all := []dataset.Column{numbered("row", func() float64 { row++; return row }, rows)}
				for k, v := range values {
					all = append(all, numbered(fmt.Sprint("c", k), func() float64 { return float64(10_000*k + r.IntN(v)) }, rows))
				}
				return all
			}
			for seed := range uint64(3) {
				if got := overlap(t, made(10+seed), made(20+seed)); got != (Overlap{}) {
					t.Errorf("%d rows, beside the number columns of %v values: independent tables have in common: %+v", rows, values, got)
				}
			}
			again := every(rowsOf(made(1), rand.New(rand.NewPCG(3, 3)).Perm(rows)), func(c *dataset.Column) { c.Name += " again" })
			if got := overlap(t, made(1), again); got.OfOld < 0.9 || got.OfNew < 0.9 {
				t.Errorf("%d rows, beside the number columns of %v values: of the same rows are found: %+v", rows, values, got)
			}
		}
	}
}
