package holdout

import (
	"math"
	"slices"
	"testing"
)

// TestSpreadIsTold: a question whose interval would be wider than its values are spread says so in explain, with their standard deviation in the training part, of all rows or
// of those that are asked about; one whose interval is narrower does not. It would notice a spread of all rows where some are asked about, one that is not in the
// answer's units, and a silent ±52 around 6.
func TestSpreadIsTold(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Questions: 50, Sigma: 0.05}, visits(t, 2000, 1)) // the same width for every mean: about 0.13 of its range
	x, late := numbers(t, training(t, s, card.ID), "x"), func(v float64) bool { return v < 0.2 }
	deviation := func(in func(float64) bool) float64 {
		n, sum, square := 0.0, 0.0, 0.0
		for _, v := range x {
			if in(v) {
				n, sum, square = n+1, sum+v, square+v*v
			}
		}
		return math.Sqrt(square/n - sum/n*sum/n)
	}
	all := deviation(func(float64) bool { return true })
	for query, c := range map[string]struct {
		spread float64
		told   bool
	}{
		`{"type":"mean","of":"x","range":[0,1]}`:                 {all, false},
		`{"type":"mean","of":"x","range":[-5,5]}`:                {all, true},
		`{"type":"mean","of":"100.0 * x","range":[-500,500]}`:    {100 * all, true},
		`{"type":"mean","of":"x","range":[-9,9],"where":"late"}`: {deviation(late), true},
	} {
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(query))
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		said := slices.ContainsFunc(e.Warnings, func(w Warning) bool { return w.Code == uninformative })
		if said != c.told || (*e.HalfWidth >= c.spread) != c.told {
			t.Errorf("%s: ±%.3g of values spread by %.3g: told %v", query, *e.HalfWidth, c.spread, said)
		}
		h, release, err := s.tables.take(t.Context(), card.ID)
		must(t, err)
		q, err := s.parse([]byte(query), func() string { return "" }, nil)
		must(t, err)
		asked, err := h.question(t.Context(), q)
		must(t, err)
		if got, ok, err := h.spread(t.Context(), asked.Plan); err != nil || !ok && c.spread > 0 || math.Abs(got-c.spread) > 1e-6*(1+c.spread) {
			t.Errorf("%s: spread %v (%v), want %v: %v", query, got, ok, c.spread, err)
		}
		release()
	}
}
