package moments

import "math"

// Sample is what the interval of a batch is made from: moments of the sample itself, over the units with B = 1, or over all units where B is a weight. They
// are computed from exact sums. The zero Sample has no units, and says nothing.
type Sample struct {
	Mean     float64 // h, the sum of A divided by that of B
	Variance float64 // the mean square of A - hB
	Units    float64

	// Of a weight B: its mean, its mean square and the mean of (A-hB)B, and how far a unit's A-rB may be from what it is without the grid. Where B is 1 at every unit they are 1, 1, 0 and 0.
	size, square, mixed, rounding float64

	// The third and the fourth moment of A - hB, where they are known, and what they may be off by.
	third, fourth           float64
	thirdError, fourthError float64
	known                   bool
}

// NewSample is a sample of units that count alike, of which no more is known than a mean and a variance.
func NewSample(mean, variance, units float64) Sample {
	return Sample{Mean: mean, Variance: variance, Units: units, size: 1, square: 1}
}

// Sample are the mean and the variance of the sums, for a batch.
func (s Sums) Sample() Sample {
	if s.Units == 0 {
		return Sample{}
	}
	mean, variance := s.moments()
	return NewSample(mean, variance, float64(s.Units))
}

// squareError is how far the square of a value may be from A^2 that the sums of A^3 and A^4 are made with: the square of the unrounded value, rounded to
// a step.
const squareError = 2.0 / grid

// SampleWith is Sample with the sums of A^3 and A^4 in steps of 2^-60. A^2 in them may have been rounded to a step of the grid.
func (s Sums) SampleWith(third, fourth Wide) Sample {
	x := s.Sample()
	if s.Units == 0 {
		return x
	}
	h, v := x.Mean, x.Variance
	second, t, f := v+h*h, third.Float()/x.Units, fourth.Float()/x.Units
	x.third = t - 3*h*v - h*h*h
	x.fourth = f - 4*h*t + 6*h*h*second - 3*h*h*h*h
	// |A (A^2 + e) - A^3| <= |e| A, and |(A^2 + e)^2 - A^4| <= 2 |e| A^2 + e^2; the rest is far more than the rounding of the lines above.
	x.thirdError = squareError*h + 1e-15*(t+h*h*h+h*v)
	x.fourthError = squareError*(2*second+squareError) + 4*h*x.thirdError + 1e-15*(f+h*t+h*h*second)
	x.known = true
	return x
}

// Sample are the moments of the weighted sums.
func (s WeightedSums) Sample() Sample {
	if s.Units < 1 || s.B < 1 {
		return Sample{}
	}
	n := float64(s.Units)
	h := float64(s.A) / float64(s.B)
	a2, ab, b2 := s.SquareA.Float()/n, s.Mixed.Float()/n, s.SquareB.Float()/n
	return Sample{Mean: h, Variance: max(0, a2-2*h*ab+h*h*b2) + weightedSlack, Units: n, size: float64(s.B) / n / grid, square: b2, mixed: ab - h*b2, rounding: weightError}
}

// mirror is the sample of B-A.
func (s Sample) mirror() Sample {
	s.Mean, s.mixed, s.third = 1-s.Mean, -s.mixed, -s.third
	return s
}

// grown is the logarithm of what a bet of the stake lam against the expectation r has become at least, per unit, for stake = lam/r: the mean of
// ln(1 + stake (A - rB)).
func (s Sample) grown(r, stake float64) float64 {
	lam := min(stake*r, largestStake)
	gap := s.Mean - r
	shift, second := offGrid(gap*s.size, s.Variance+2*gap*s.mixed+gap*gap*s.square, s.rounding)
	// X = 1 + (A-rB)/r >= 0 has the mean u and the mean square w; the lemma of two moments is about X at r = 1.
	u := 1 + shift/r
	w := max(1+2*shift/r+second/(r*r), u*u)
	if !(u > 0) || s.rounding > 0 && !(shift > 0) { // where the mean of A-rB may be below 0 a smaller one is not known to be worse
		return math.Log1p(-lam)
	}
	p, y := u*u/w, w/u
	grown := p * math.Log1p(lam*(y-1))
	if p < 1 {
		grown += (1 - p) * math.Log1p(-lam)
	}
	if s.known && lam < mostOfSeries {
		grown = max(grown, s.series(gap, lam/r, lam))
	}
	return grown
}

// offGrid are a mean that is at least as low and a mean square that is at least as high as those of A-rB are without the grid, which moves each unit's by at most rounding.
func offGrid(mean, square, rounding float64) (least, most float64) {
	if rounding == 0 {
		return mean, square
	}
	root := math.Sqrt(max(square, 0)) + rounding
	return mean - rounding, root * root
}

// mostOfSeries is up to which stake four moments say more than two.
const mostOfSeries = 0.9

// series bounds the mean of ln(1+x), x = stake (A - r) >= -lam, by four moments:
//
//	ln(1+x) >= x - x^2/2 + x^3/3 - k x^4,   k = the integral of t^3/(1 - lam t) over t in [0,1],
//
// for the remainder of the series is x^4 times the integral of t^3/(1 + x t), which falls as x rises.
func (s Sample) series(gap, stake, lam float64) float64 {
	v, third, fourth := s.Variance, s.third, s.fourth
	m2 := v + gap*gap
	m3 := third + 3*gap*v + gap*gap*gap - s.thirdError
	m4 := fourth + 4*gap*third + 6*gap*gap*v + gap*gap*gap*gap + s.fourthError + 4*math.Abs(gap)*s.thirdError
	c := stake
	return c * (gap - c*(m2/2-c*(m3/3-c*remainder(lam)*m4)))
}

// remainder is the integral of t^3/(1 - lam t) over t in [0,1], from above.
func remainder(lam float64) float64 {
	if lam < 0.05 {
		return 0.25 + lam*(0.2+lam*(1.0/6+lam*(1.0/7+lam/8/(1-lam))))
	}
	return (-math.Log1p(-lam) - lam - lam*lam/2 - lam*lam*lam/3) / (lam * lam * lam * lam) * (1 + 1e-9)
}
