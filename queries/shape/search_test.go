package shape

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSidesOfP: a rung is above where its interval is at p or over it, below where it is under p, and open where p is in it, its high end
// too: a distribution function that is p there is at p.
func TestSidesOfP(t *testing.T) {
	s := Search{P: 0.25}
	for _, c := range []struct {
		low, high float64
		want      side
	}{
		{0.25, 0.3, isAbove}, {0.26, 0.3, isAbove}, {0.2, 0.25, isOpen}, {0.1, math.Nextafter(0.25, 0), isBelow}, {math.Nextafter(0.25, 0), 0.3, isOpen}, {0, 1, isOpen},
	} {
		if got := s.side(Part{Value: (c.low + c.high) / 2, Low: c.low, High: c.high, Bounded: true}); got != c.want {
			t.Errorf("[%v, %v]: %v, want %v", c.low, c.high, got, c.want)
		}
	}
}

// TestCrossing: between two rungs that were asked, and between the last one and the end of the range, the distribution function is a
// straight line; out of order values are pooled.
func TestCrossing(t *testing.T) {
	for _, c := range []struct {
		p     float64
		asked []askedRung
		want  int
	}{
		{0.5, []askedRung{{rung: 10, value: 0.1}, {rung: 50, value: 0.9}}, 30},
		{0.8, []askedRung{{rung: 10, value: 0.1}, {rung: 50, value: 0.9}}, 45},
		{0.1, []askedRung{{rung: 10, value: 0.1}, {rung: 50, value: 0.9}}, 10},
		{0.9, []askedRung{{rung: 10, value: 0.1}, {rung: 50, value: 0.9}}, 50},
		{0.95, []askedRung{{rung: 10, value: 0.1}, {rung: 50, value: 0.9}}, 75},
		{0.55, []askedRung{{rung: 10, value: 0.1}}, 55},
		{0.05, []askedRung{{rung: 9, value: 0.1}}, 4},
		{0.5, []askedRung{{rung: 20, value: 0.7}, {rung: 30, value: 0.3}}, 20},                         // pooled to 0.5 at both
		{0.6, []askedRung{{rung: 20, value: 0.6}, {rung: 30, value: 0.4}, {rung: 40, value: 0.7}}, 35}, // 0.5 up to 30
	} {
		s := Search{Low: 0, High: 100, Resolution: 1, Rungs: 100, Steps: 7, P: c.p}
		if got := s.crossing(c.asked); got != c.want {
			t.Errorf("p=%v after %+v: rung %d, want %d", c.p, c.asked, got, c.want)
		}
	}
}

// TestSearchInterval: with intervals of ±w on the distribution function, what it is within w of p for cannot be excluded. On
// average over places the interval is at most twice as wide as that, and at most half as wide as that of bisection to the end.
func TestSearchInterval(t *testing.T) {
	const w, runs, steps, rungs = 0.02, 300, 10, 1023
	r := rand.New(rand.NewPCG(7, 8))
	s := Search{0, rungs, 1, rungs, steps, 0.4}
	width, bisected, far := 0.0, 0.0, 0.0
	for range runs {
		low, spread := 300*r.Float64(), 200+400*r.Float64() // uniform between low and low+spread
		ask := func(rung, function int) Part {
			v := min(max((s.At(rung)-low)/spread, 0), 1) + w/3*r.NormFloat64()
			return Part{Function: function, Value: v, Low: v - w, High: v + w, Bounded: true}
		}
		var parts []Part
		for range steps {
			function := s.Next(parts)
			parts = append(parts, ask(s.rung(function-firstOf(len(parts))), function))
		}
		got := s.combine(Outcome{N: 10, Parts: parts})
		width += (*got.High - *got.Low) / (2 * w * spread) / runs
		far += math.Abs(*got.Value-(low+0.4*spread)) / (w * spread) / runs

		below, most := -1, rungs
		for from, to := -1, rungs; to-from > 1; {
			rung := (from + to) / 2
			p := ask(rung, 0)
			switch s.side(p) {
			case isBelow:
				below = max(below, rung)
			case isAbove:
				most = min(most, rung)
			}
			if p.Value < s.P {
				from = rung
			} else {
				to = rung
			}
		}
		bisected += (s.At(most) - s.At(below)) / (2 * w * spread) / runs
	}
	if width > 2 || width > bisected/2 || far > 0.4 {
		t.Errorf("the interval is %.2f times as wide as where F is within w, %.2f times by bisection; the value is %.2f w away", width, bisected, far)
	}
}
