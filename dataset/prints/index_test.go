package prints

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
)

// A seeker yields each row of the samples that can agree, and no other, whichever of its tokens lead to it: the same as a look at all of them. It would notice tokens that are left out of the index
// though a row needs them.
func TestSeekerMissesNone(t *testing.T) {
	yielded := 0
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.IntRange(1, 60).Draw(t, "values")
		token := rapid.Custom(func(t *rapid.T) uint64 {
			v := rapid.IntRange(1, values).Draw(t, "value")
			if rapid.Bool().Draw(t, "few") {
				v = 1 + v%3
			}
			return uint64(v) * 0x9E3779B97F4A7C15
		})
		row := rapid.SliceOfN(token, 1, 12)
		var all []*Prints
		for range rapid.IntRange(1, 2).Draw(t, "tables") {
			p := &Prints{}
			for range rapid.IntRange(1, 60).Draw(t, "rows") {
				p.rows = append(p.rows, printed{tokens: unique(row.Draw(t, "row"))})
			}
			all = append(all, p)
		}
		x := newIndex(all...)
		tokens := row.Draw(t, "tokens")
		if i := rapid.IntRange(-3, len(x.rows)-1).Draw(t, "near"); i >= 0 {
			tokens = append(tokens[:len(tokens)/2], x.rows[i].tokens...)
		}
		got, want := map[uint32]float32{}, map[uint32]float32{}
		newSeeker(x).each(tokens, func(row uint32, shared float32) { got[row] = shared })
		sorted := slices.Sorted(slices.Values(tokens))
		for i := range x.rows {
			r := &x.rows[i]
			any := false
			for j, token := range r.tokens {
				any = any || r.leads[j] && slices.Contains(tokens, token)
			}
			if shared, leading := r.shared(sorted); any && leading+r.common >= levels[0]*r.total {
				want[uint32(i)] = shared
			}
		}
		for row := range got {
			if _, is := want[row]; !is {
				t.Fatalf("row %d, which shares %v, cannot agree", row, got[row])
			}
		}
		for row, shared := range want {
			if shared < (levels[0]-ownMargin)*x.rows[row].total {
				continue // nothing counts it
			}
			if got[row] != shared {
				t.Fatalf("row %d shares %v, wanted %v", row, got[row], shared)
			}
			yielded++
		}
	})
	if yielded == 0 {
		t.Error("no row agreed")
	}
}

// What is remembered of a column is what would be computed: numbers that fall on one place do not get each other's tokens.
func TestRememberedCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]dataset.Kind{dataset.Number, dataset.Time}).Draw(t, "kind")
		few := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.Just(math.NaN()), rapid.Just(0.0)), 1, 200).Draw(t, "values")
		c := column{Column: &dataset.Column{Field: dataset.Field{Kind: kind}, Numbers: rapid.SliceOfN(rapid.SampledFrom(few), 1, 300).Draw(t, "numbers")}}
		h, plain := testKey.hasher().remembering(memoryNumbers/rapid.SampledFrom([]int{16, 64, 1 << memoryBits}).Draw(t, "places")), testKey.hasher()
		for row := range c.Numbers {
			if got, want := h.cell([]column{c}, 0, row), c.at(plain, row); got != want {
				t.Fatalf("row %d, %v: token %x, not %x", row, c.Numbers[row], got, want)
			}
		}
	})
}

// The digits do not hang on how the exponent is found: stored prints have those of the logarithm.
func TestExponent(t *testing.T) {
	old := func(x float64, n int) int64 {
		a := math.Abs(x)
		least, most := powers[n-1], powers[n]
		e := int(math.Floor(math.Log10(a)))
		m := scale(a, n-1-e)
		switch {
		case m < least:
			m = scale(a, n-e)
		case m >= most:
			m = scale(a, n-2-e)
		}
		whole := int64(math.Floor(float64(m + (1 - border))))
		if x < 0 {
			return -whole
		}
		return whole
	}
	check := func(t interface{ Fatalf(string, ...any) }, x float64) {
		if e, want := exponent(math.Abs(x)), int(math.Floor(math.Log10(math.Abs(x)))); e > want+1 || e < want-1 {
			t.Fatalf("the exponent of %v is %d, not %d", x, e, want)
		}
		for _, n := range []int{digits, longDigits} {
			h := testKey.hasher() // a token leaves trailing zeros out
			if got, want := significant(x, n), old(x, n); h.mantissa(got) != h.mantissa(want) {
				t.Fatalf("%d digits of %v are %d, not %d", n, x, got, want)
			}
		}
	}
	for e := -307; e <= 308; e++ {
		x := math.Pow(10, float64(e))
		for _, near := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, 2*x), 9.999995 * x, 1.5 * x} {
			if !math.IsInf(near, 0) {
				check(t, near)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64().Draw(t, "x")
		if math.Abs(x) > 1e-300 && !math.IsInf(x, 0) {
			check(t, x)
		}
	})
}
