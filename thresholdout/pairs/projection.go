package pairs

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Matchings is the interval of the expectation A of a pair kernel in [0,1] between two classes, where the mean over all pairs is between from and to
// and each class has at least m units. Each end misses with probability at most e^-level, given the labels, whatever the statement: it is one event a
// side for all outcomes.
func Matchings(from, to, m, level float64) (low, high float64) {
	return moments.Low(from, 1, m, level), moments.High(to, 1, m, level)
}

// Statement is what a pass at rank 1 says of a pair kernel k(x,y) in [0,1]: of class 1, whose planned size is the smaller one, there are at least N1
// units, of class 0 N0; the units' means over the other class have a variance of at most V1 and V0; and the variance over all pairs is at
// most Rest above that of class 1's means.
type Statement struct {
	N1, N0, V1, V0, Rest float64
	Monotone             bool // an AUC: k falls in y for every x
	OneSide              bool // a pass is read at what one of its ends alone can miss by, as of [moments.Check]
}

// deviation is w: the standard deviation of E[k(x,y)|y] over class 0 is at most w, but for a probability of e^-level.
func (s Statement) deviation(level float64) float64 {
	s0 := math.Sqrt(s.V0)
	w := min(0.5, 0.5-moments.Low(0.5-s0, s.Rest, s.N1, level))
	if s.Monotone {
		w = min(w, s0+math.Sqrt(level/(8*s.N1)))
	}
	return w
}

// low is a number below A, but for probabilities of e^-level and e^-other, where the mean over all pairs is at least u:
//
//	min over s in [0,1] of low( low(u, V1, N1, s level), w^2, N0, (1-s) level ).
//
// ok is false where the proof's condition fails, for tiny counts: then nothing is known from it.
func (s Statement) low(u, level, other float64) (low float64, ok bool) {
	if !(u > 0 && s.N1 > 0 && s.N0 > 0) {
		return 0, true
	}
	w := s.deviation(other)
	inner := func(share float64) float64 { return moments.Low(u, s.V1, s.N1, share*level) }
	at := func(share float64) float64 { return moments.Low(inner(share), w*w, s.N0, (1-share)*level) }
	const golden = 0.6180339887498949
	a, b := 0.0, 1.0
	x, y := b-golden*(b-a), a+golden*(b-a)
	fx, fy := at(x), at(y)
	for b-a > 1e-9 {
		if fx <= fy {
			b, y, fy = y, x, fx
			x = b - golden*(b-a)
			fx = at(x)
		} else {
			a, x, fx = x, y, fy
			y = a + golden*(b-a)
			fy = at(y)
		}
	}
	// The least that may be between a and b, by both terms' monotony.
	low = moments.Low(inner(b), w*w, s.N0, (1-a)*level)
	if t := inner((a + b) / 2); t > 0 && low > 0 {
		stake := moments.Stake(t, w*w, low)
		if !(stake < 1 && stake/(low*(1-stake)) <= largestOdds) {
			return 0, false
		}
	}
	return low, true
}

// largestOdds is up to where the proof shows that the worst place of the inner mean is one: a = lam/(A(1-lam)).
const largestOdds = 3.9

// Levels at which an outcome of a pair question is read, beyond E: shares .8, .05, .05 and .1 of each side. A pass at rank 1 misses on one side only, so that its .8 may be of both.
var (
	passLevel      = math.Log(5.0 / 4)
	failedLevel    = math.Log(20)
	deviationLevel = math.Log(20)
	matchingsLevel = math.Log(10)
)

// Interval is the common part of the projection's interval and of the matchings', for a pass whose statement holds, or a failure's cell.
func (s Statement) Interval(from, to, level float64, failed bool) (low, high float64) {
	low, high = Matchings(from, to, min(s.N1, s.N0), level+matchingsLevel)
	beyond := passLevel
	switch {
	case failed:
		beyond = failedLevel
	case s.OneSide:
		beyond -= math.Ln2
	}
	if l, ok := s.low(from, max(level+beyond, 0), level+deviationLevel); ok {
		low = max(low, l)
	}
	if h, ok := s.mirror().low(1-to, max(level+beyond, 0), level+deviationLevel); ok {
		high = min(high, 1-h)
	}
	return low, high
}

// mirror is the statement about 1-k. Means and variances are the same; 1-k rises in y for an AUC, and covariances stay at or above 0.
func (s Statement) mirror() Statement { return s }
