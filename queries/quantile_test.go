package queries

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/reference"
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
					p, err := q.Compile(people, Grouped(grouped))
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
		p, err := q.Compile(people)
		if err != nil {
			t.Fatal(err)
		}
		if want := int(math.Ceil(math.Log2(float64(cells) + 1))); p.Numbers() != want {
			t.Fatalf("%d steps for %d cells, want %d", p.Numbers(), cells, want)
		}
		var parts []Part
		for step := range p.Numbers() {
			function := p.search.next(parts)
			if p.Step(function) != step {
				t.Fatalf("function %d of step %d is asked in step %d", function, p.Step(function), step)
			}
			value, width := rapid.Float64Range(0, 1).Draw(t, "value"), rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(t, "width")
			parts = append(parts, Part{Function: function, Value: value, Low: value - width, High: value + width, Bounded: true})
		}
		for f := range p.Functions {
			if f > 0 && p.Step(f) < p.Step(f-1) || f < firstOf(p.Step(f)) {
				t.Fatalf("function %d is in step %d", f, p.Step(f))
			}
		}
		r := p.Combine(Outcome{N: 10, Parts: parts})
		if *r.Low > *r.Value || *r.Value > *r.High || *r.Low < 0 || *r.High > float64(cells) || *r.Low == *r.High && *r.High > 0 {
			t.Fatalf("%v in [%v, %v]", *r.Value, *r.Low, *r.High)
		}
	})
}

// TestQuantileInterval: with intervals of ±w on the distribution function, what it is within w of p for cannot be excluded. On
// average over places the interval is at most twice as wide as that, and at most half as wide as that of bisection to the end.
func TestQuantileInterval(t *testing.T) {
	const w, runs, steps, rungs = 0.02, 300, 10, 1023
	r := rand.New(rand.NewPCG(7, 8))
	l := ladder{0, rungs, 1, rungs, steps, 0.4}
	width, bisected, far := 0.0, 0.0, 0.0
	for range runs {
		low, spread := 300*r.Float64(), 200+400*r.Float64() // uniform between low and low+spread
		ask := func(rung, function int) Part {
			v := min(max((l.at(rung)-low)/spread, 0), 1) + w/3*r.NormFloat64()
			return Part{Function: function, Value: v, Low: v - w, High: v + w, Bounded: true}
		}
		var parts []Part
		for range steps {
			function := l.next(parts)
			parts = append(parts, ask(l.rung(function-firstOf(len(parts))), function))
		}
		got := l.combine(Outcome{N: 10, Parts: parts})
		width += (*got.High - *got.Low) / (2 * w * spread) / runs
		far += math.Abs(*got.Value-(low+0.4*spread)) / (w * spread) / runs

		below, most := -1, rungs
		for from, to := -1, rungs; to-from > 1; {
			rung := (from + to) / 2
			p := ask(rung, 0)
			switch l.side(p) {
			case isBelow:
				below = max(below, rung)
			case isAbove:
				most = min(most, rung)
			}
			if p.Value < l.p {
				from = rung
			} else {
				to = rung
			}
		}
		bisected += (l.at(most) - l.at(below)) / (2 * w * spread) / runs
	}
	if width > 2 || width > bisected/2 || far > 0.4 {
		t.Errorf("the interval is %.2f times as wide as where F is within w, %.2f times by bisection; the value is %.2f w away", width, bisected, far)
	}
}

func TestQuantileOfOneUnit(t *testing.T) {
	p := compiled(t, `{"type":"median","of":"v","range":[0,10],"resolution":1}`, people)
	for value, want := range map[float64]float64{-3: 0, 0: 0, 0.5: 1, 3: 3, 10: 10, 99: 10} {
		var parts []Part
		for range p.Numbers() {
			function := p.search.next(parts)
			m := exactParts(&Plan{Functions: p.Functions[function:][:1]}, []unit{{reference.Row{"v": value}}})
			m[0].Function = function
			parts = append(parts, m...)
		}
		if got := p.Combine(Outcome{N: 1, Parts: parts}); *got.Value != want {
			t.Errorf("%v of %v, want %v", *got.Value, value, want)
		}
	}
}
