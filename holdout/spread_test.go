package holdout

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/session"
)

// TestSpreadIsTold: a question whose interval would be wider than its values are spread says so in explain and in its answer, with their standard deviation in the training part, of all rows or
// of those that are asked about; one whose interval is narrower does not. It would notice a spread of all rows where some are asked about, one that is not in the
// answer's units, an answer that says nothing of it, one that goes by another width than its own, and a silent ±52 around 6.
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
		reply := ask(t, s, card.ID, query)
		var a session.Answer
		must(t, json.Unmarshal(reply.Body, &a))
		said = slices.ContainsFunc(a.Warnings, func(w Warning) bool { return w.Code == uninformative })
		half := max(*a.Interval.High-*a.Value, *a.Value-*a.Interval.Low)
		if said != c.told || said != (half > c.spread) {
			t.Errorf("%s: the answer is ±%.3g of values spread by %.3g: told %v", query, half, c.spread, said)
		}
		again, err := s.Explain(t.Context(), analyst, card.ID, []byte(query))
		must(t, err)
		for _, warnings := range [][]Warning{a.Warnings, again.Warnings} {
			if want := fmt.Sprintf("half-width of %.3g is more than the standard deviation of the values themselves (%.3g in the training part)", half, c.spread); c.told &&
				!slices.ContainsFunc(warnings, func(w Warning) bool { return strings.Contains(w.Detail, want) }) {
				t.Errorf("%s: %+v, want %s", query, warnings, want)
			}
		}
	}
}
