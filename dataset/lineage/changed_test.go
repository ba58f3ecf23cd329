package lineage

//holdoutd:race

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

// onNumbers changes every number.
func onNumbers(columns []dataset.Column, change func(float64) float64) []dataset.Column {
	return every(columns, func(c *dataset.Column) {
		if c.Kind == dataset.Number {
			for i, v := range c.Numbers {
				c.Numbers[i] = change(v)
			}
		}
	})
}

// digits rounds to so many significant ones.
func digits(n int) func(float64) float64 {
	return func(v float64) float64 {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64) // it was written a moment ago
		return rounded
	}
}

// standardised are numbers less their mean, by their standard deviation.
func standardised(values []float64) []float64 {
	sum, squares, n := 0.0, 0.0, 0.0
	for _, v := range values {
		if v == v {
			sum, squares, n = sum+v, squares+v*v, n+1
		}
	}
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = (v - sum/n) / math.Sqrt(squares/n-sum/n*sum/n)
	}
	return all
}

// ranked are the places of numbers in their order.
func ranked(values []float64) []float64 {
	at, all := make([]int, len(values)), make([]float64, len(values))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	for rank, i := range at {
		if all[i] = float64(rank); math.IsNaN(values[i]) {
			all[i] = math.NaN()
		}
	}
	return all
}

// TestChanged has what docs/decisions/0011-lineage.md says of rows that were changed in their numbers, texts or times: which of them are found, and that others are not. What begins to be found, or is not found any more, is to be said
// there.
func TestChanged(t *testing.T) {
	const rows = 8_000
	mixed, r := people(1, rows), rand.New(rand.NewPCG(5, 5))
	var numbers []dataset.Column
	for i := range 10 {
		numbers = append(numbers, numbered(fmt.Sprint("x", i), r.NormFloat64, rows))
	}
	numeric := func(change func([]float64) []float64) func([]dataset.Column) []dataset.Column {
		return func(of []dataset.Column) []dataset.Column {
			return every(of, func(c *dataset.Column) {
				if c.Kind == dataset.Number {
					c.Numbers = change(c.Numbers)
				}
			})
		}
	}
	each := func(change func(float64) float64) func([]dataset.Column) []dataset.Column {
		return func(of []dataset.Column) []dataset.Column { return onNumbers(of, change) }
	}
	derived := func(name string, of func(i int) float64) dataset.Column {
		i := -1
		return numbered(name, func() float64 { i++; return of(i) }, rows)
	}
	texts := func(columns []dataset.Column, at int, change func(string) string) []dataset.Column {
		all, values := slices.Clone(columns), make([]string, rows)
		for i := range values {
			values[i] = change(columns[at].Dictionary.Text(int(columns[at].Codes[i]) - 1))
		}
		all[at] = dataset.NewText(columns[at].Name, values, nil)
		return all
	}
	none := -1.0
	for name, test := range map[string]struct {
		change         func([]dataset.Column) []dataset.Column
		mixed, numbers float64 // shares that must be found at least; none: nothing is; 0: it is not tried
	}{
		"digits 6":      {each(digits(6)), 0.85, 0.7},
		"digits 5":      {each(digits(5)), 0.6, none},
		"digits 3":      {each(digits(3)), none, none},
		"3 decimals":    {each(func(v float64) float64 { return math.Round(1e3*v) / 1e3 }), 0.55, none},
		"times 2":       {each(func(v float64) float64 { return 2 * v }), none, none},
		"plus 1":        {each(func(v float64) float64 { return v + 1 }), none, none},
		"logarithms":    {each(func(v float64) float64 { return math.Log1p(math.Abs(v)) }), none, none},
		"ranks":         {numeric(ranked), none, none},
		"standardised":  {numeric(standardised), none, none},
		"nulls are 0":   {each(func(v float64) float64 { return map[bool]float64{true: v}[v == v] }), 0.75, 0.99},
		"numbers alone": {func(of []dataset.Column) []dataset.Column { return of[1:6] }, 0.4, 0.4},
		"texts alone":   {func(of []dataset.Column) []dataset.Column { return slices.Concat(of[:1], of[6:9]) }, 0.9, 0},
		"categories":    {func(of []dataset.Column) []dataset.Column { return of[6:9] }, none, 0},
		"ids hashed": {func(of []dataset.Column) []dataset.Column {
			return texts(of, 0, func(s string) string { return "#" + s })
		}, 0.55, 0},
		"texts rewritten": {func(of []dataset.Column) []dataset.Column {
			for _, at := range []int{0, 6, 7} {
				of = texts(of, at, func(s string) string { return "a " + s })
			}
			return of
		}, 0.5, 0},
		"one-hot": {func(of []dataset.Column) []dataset.Column {
			all := slices.Concat(of[:6], of[8:])
			for _, c := range of[6:8] {
				for code := range c.Dictionary.Len() {
					all = append(all, derived(fmt.Sprint(c.Name, code), func(i int) float64 { return map[bool]float64{true: 1}[int(c.Codes[i]) == code+1] }))
				}
			}
			return all
		}, 0.8, 0},
		"times in parts": {func(of []dataset.Column) []dataset.Column {
			all, seen := slices.Clone(of[:9]), of[9]
			for part, take := range []func(time.Time) int{time.Time.Year, time.Time.YearDay, time.Time.Hour, time.Time.Minute, time.Time.Second} {
				all = append(all, derived(fmt.Sprint("part", part), func(i int) float64 { return float64(take(time.UnixMicro(int64(seen.Numbers[i])).UTC())) }))
			}
			return all
		}, 0.5, 0},
	} {
		for law, of := range map[string][]dataset.Column{"mixed": mixed, "numbers": numbers} {
			least := map[string]float64{"mixed": test.mixed, "numbers": test.numbers}[law]
			if least == 0 {
				continue
			}
			got := overlap(t, of, test.change(of))
			t.Logf("%s, %s: %.2f of the old, %.2f of the new", name, law, got.OfOld, got.OfNew)
			if least == none && got != (Overlap{}) || least > 0 && (got.OfOld < least || got.OfNew < least) {
				t.Errorf("%s, of %s: %+v are found, want %v at least, or nothing for %v", name, law, got, least, none)
			}
		}
	}
}
