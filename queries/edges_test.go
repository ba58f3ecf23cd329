package queries

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// TestHingeIsTheLeast: the bound of a count of s or more is the least of E(B-t)+/(s-t) over all t below s, found here by trying, from the
// binomial law itself; the least over fractions of one is nowhere below it, for it is at a whole t.
func TestHingeIsTheLeast(t *testing.T) {
	for _, n := range []int64{5, 20, 60} {
		for _, null := range []float64{0.05, 0.3, 0.5, 0.9} {
			f := freshness{units: n}
			c := f.counts(null)
			b := distuv.Binomial{N: float64(n), P: null}
			mass := make([]float64, n+1)
			for k := range mass {
				mass[k] = b.Prob(float64(k))
			}
			at := 0
			for s := math.Floor(float64(n)*null) + 1; s <= float64(n); s += 0.5 {
				var got float64
				got, at = c.hinge(s, at)
				least := 1.0
				for x := s - 0.25; x > -2; x -= 0.25 {
					over := 0.0
					for k, m := range mass {
						over += max(float64(k)-x, 0) * m
					}
					least = min(least, over/(s-x))
				}
				if got < least*(1-1e-9) || got > least*(1+1e-9)+c.outside {
					t.Errorf("n=%d, null %v, s=%v: %v, the least is %v", n, null, s, got, least)
				}
			}
		}
	}
}

// TestSidesOfP: a rung is above where its interval is at p or over it, below where it is under p, and open where p is in it, its high end
// too: a distribution function that is p there is at p.
func TestSidesOfP(t *testing.T) {
	l := ladder{p: 0.25}
	for _, c := range []struct {
		low, high float64
		want      side
	}{
		{0.25, 0.3, isAbove}, {0.26, 0.3, isAbove}, {0.2, 0.25, isOpen}, {0.1, math.Nextafter(0.25, 0), isBelow}, {math.Nextafter(0.25, 0), 0.3, isOpen}, {0, 1, isOpen},
	} {
		if got := l.side(Part{Value: (c.low + c.high) / 2, Low: c.low, High: c.high, Bounded: true}); got != c.want {
			t.Errorf("[%v, %v]: %v, want %v", c.low, c.high, got, c.want)
		}
	}
}
