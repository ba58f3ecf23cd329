package queries

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/shape"
)

// TestQuantileMeansWhatItSays: without noise the answer is the least value of the resolution that is not below the quantile, counted
// from the rows directly.
func TestQuantileMeansWhatItSays(t *testing.T) {
	for _, bounded := range []bool{true, false} {
		for _, more := range []string{"", `,"null":100`, `,"where":"w"`} {
			t.Run(fmt.Sprint(bounded, more), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					prob := rapid.SampledFrom([]float64{0.01, 0.25, 0.5, 0.9, 0.99}).Draw(t, "p")
					resolution := rapid.SampledFrom([]float64{5, 7, 10, 24, 119, 239}).Draw(t, "resolution")
					kind := fmt.Sprintf(`{"type":"quantile","p":%v,"resolution":%v,`, prob, resolution)
					if prob == 0.5 {
						kind = fmt.Sprintf(`{"type":"median","resolution":%v,`, resolution)
					}
					grouped := rapid.Bool().Draw(t, "grouped")
					units := drawPeople(t, "units", grouped)
					q, err := Parse([]byte(kind + ofV + more + "}"))
					if err != nil {
						t.Fatal(err)
					}
					p, err := q.Compile(context.Background(), people, Grouped(grouped))
					if err != nil {
						t.Fatal(err)
					}
					parts := exactParts(p, units)
					if !bounded {
						unbounded(parts)
					}
					for i := range parts { // above the rounding of this test's sums, which could put a mean of p below p
						parts[i].Low, parts[i].High = parts[i].Low+1e-12, parts[i].High+1e-12
					}
					got := released(t, p, &exact{parts: parts, most: -1})
					if (got.Low != nil) != bounded {
						t.Fatal("an interval out of nothing, or none")
					}
					want, ok := quantileIn(units, more, prob)
					if !ok {
						return // no rows to ask about
					}
					rung := -60.0
					for ; rung < want; rung = min(rung+resolution, 180) {
					}
					if *got.Value != rung || bounded && (*got.Low > want || *got.High < want || *got.High-*got.Low > resolution+1e-9) {
						t.Fatalf("%v in [%v, %v], want %v for the quantile %v", *got.Value, show(got.Low), show(got.High), rung, want)
					}
				})
			})
		}
	}
}

// quantileIn is the least x among the rows' values at which their distribution function reaches p.
func quantileIn(units []unit, more string, p float64) (float64, bool) {
	null := -60.0
	if strings.Contains(more, "null") {
		null = 100
	}
	values, total := map[float64]float64{}, 0.0
	for _, u := range units {
		for _, r := range u {
			if !strings.Contains(more, "where") || whereW(r) {
				values[column("v", null)(r)] += 1 / float64(len(u))
				total += 1 / float64(len(u))
			}
		}
	}
	var sorted []float64
	for x := range values {
		sorted = append(sorted, x)
	}
	slices.Sort(sorted)
	sum := 0.0
	for _, x := range sorted {
		if sum += values[x] / total; sum >= p-1e-9 {
			return x, true
		}
	}
	return 0, false
}

// TestSearchSteps: whatever is released, every function of a search belongs to the step in which it is asked, and what is asked is
// asked once as long as something new is to be found out.
func TestSearchSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.IntRange(2, 300).Draw(t, "cells")
		q, err := Parse(fmt.Appendf(nil, `{"type":"median","of":"v","range":[0,%d],"resolution":1}`, cells))
		if err != nil {
			t.Fatal(err)
		}
		p, err := q.Compile(context.Background(), people)
		if err != nil {
			t.Fatal(err)
		}
		if want := int(math.Ceil(math.Log2(float64(cells) + 1))); p.Numbers() != want {
			t.Fatalf("%d steps for %d cells, want %d", p.Numbers(), cells, want)
		}
		var parts []Part
		for step := range p.Numbers() {
			function := p.Shape.(shape.Search).Next(parts)
			if p.Step(function) != step {
				t.Fatalf("function %d of step %d is asked in step %d", function, p.Step(function), step)
			}
			value, width := rapid.Float64Range(0, 1).Draw(t, "value"), rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(t, "width")
			parts = append(parts, Part{Function: function, Value: value, Low: value - width, High: value + width, Bounded: true})
		}
		for f := range p.Functions {
			if f > 0 && p.Step(f) < p.Step(f-1) || f < 2<<p.Step(f)-2-p.Step(f) {
				t.Fatalf("function %d is in step %d", f, p.Step(f))
			}
		}
		r := p.Combine(Outcome{N: 10, Parts: parts})
		if *r.Low > *r.Value || *r.Value > *r.High || *r.Low < 0 || *r.High > float64(cells) || *r.Low == *r.High && *r.High > 0 {
			t.Fatalf("%v in [%v, %v]", *r.Value, *r.Low, *r.High)
		}
	})
}

func TestQuantileOfOneUnit(t *testing.T) {
	p := compiled(t, `{"type":"median","of":"v","range":[0,10],"resolution":1}`, people)
	for value, want := range map[float64]float64{-3: 0, 0: 0, 0.5: 1, 3: 3, 10: 10, 99: 10} {
		var parts []Part
		for range p.Numbers() {
			function := p.Shape.(shape.Search).Next(parts)
			m := exactParts(&Plan{Functions: p.Functions[function:][:1]}, []unit{{reference.Row{"v": value}}})
			m[0].Function = function
			parts = append(parts, m...)
		}
		if got := p.Combine(Outcome{N: 1, Parts: parts}); *got.Value != want {
			t.Errorf("%v of %v, want %v", *got.Value, value, want)
		}
	}
}
