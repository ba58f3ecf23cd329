package bounds

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/minimum"
	"github.com/holdoutd/holdoutd/dp/normal"
)

// PCap bounds the probability that one side of the interval [answer - width, answer + width] misses, for an answer with Gaussian
// noise sigma (0: none) to a question chosen after released nats, with the integer m fixed beforehand, 1 <= m < n
// (docs/proofs/adaptive-hoeffding.md, section 5). It is at most 1, falls with width and rises with released, and with sigma where it is
// below 1/4 (at less width, noise may bring an answer near by luck); it is 1 for what is no account: width < 0, sigma < 0, released < 0, m out of range, or NaN. [Capped.HalfWidth] is its inverse.
//
// Where one m serves a whole holdout, everything else may be chosen on the way (docs/proofs/account.md, section 4).
func PCap(width, sigma, released float64, n, m int64) float64 {
	if !(width >= 0 && sigma >= 0 && !math.IsInf(sigma, 1) && released >= 0 && m >= 1 && m < n) {
		return 1
	}
	return min(1, math.Exp(logCapped(float64(n), width, sigma, sigma, released, float64(m))))
}

// logCapped is ln of pcap for every noise between low and high. With m fixed, the tail is e^{(n/m-1)I} times Hoeffding's for n-m
// units, so that the expectation over the noise is Miss's for n-m units with nothing released. The two factors may be far
// out of a float64's range while their product is not.
func logCapped(n, w, low, high, released, m float64) float64 {
	return (n/m-1)*released + logMissFresh(n-m, w, low, high)
}

// logMissFresh is ln of missBetween with nothing released, for w >= 0 and noise between low and high.
func logMissFresh(n, w, low, high float64) float64 {
	if high == 0 {
		return -2 * n * w * w
	}
	if low == high { // ln of phi(-d) + e^(-A d^2/c) phi(d/sqrt c)/sqrt c
		d, c := w/high, 1+4*n*high*high
		return logSum(logPhi(-d), -2*n*w*w/c-math.Log(c)/2+logPhi(d/math.Sqrt(c)))
	}
	// Z < 0 with the smallest noise, Z > d and 0 < Z < d with the largest.
	c := 1 + 4*n*low*low
	below := -2*n*w*w/c - math.Log(c)/2 + logPhi(-4*n*low*w/math.Sqrt(c))
	d := w / high
	c = 1 + 4*n*high*high
	between := phi(d/math.Sqrt(c)) - phi(-4*n*high*w/math.Sqrt(c))
	return logSum(below, logSum(logPhi(-d), -2*n*w*w/c-math.Log(c)/2+math.Log(between)))
}

// logSum is ln(e^a + e^b).
func logSum(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) || math.IsInf(a, 1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// logPhi is ln of the standard normal distribution function, without underflow.
func logPhi(x float64) float64 { return normal.LogUpper(-x) }

// Capped is the account of one interval for choices made on the way. With one M for the whole holdout, what is asked (scalar, vector,
// selection), noise, variances, widths and shares may all depend on earlier answers, if on every way each of the two kinds of
// shares adds up to at most a part of beta that is fixed for that kind: they are probabilities under two different laws, and
// what one kind leaves the other may not use. With an M for each answer, shares are fixed beforehand (docs/proofs/account.md,
// section 4).
type Capped struct {
	N         float64 // units
	M         float64 // an integer, 1 <= M < N; see CappedM
	Share     float64 // of beta, for both sides of this answer's interval: for events about the rows
	Mechanism float64 // of beta, for events about the mechanism's own noise given the rows; see MeanInterval
	Released  float64 // I before the question was chosen
}

// CappedM is the best M when about I nats will be out: the integer next to n sqrt(I)/(sqrt(ln(2/share)) + sqrt I).
func CappedM(n, share, released float64) float64 {
	i, level := math.Sqrt(released), math.Sqrt(math.Log(2/share))
	return min(max(math.Round(n*i/(level+i)), 1), n-1)
}

// Place is where an answer is given: its noise, and what was released before.
type Place struct{ Sigma, Released float64 }

// deviation is about the half-width of an answer with this share and m = xn, as if sampling were normal: n-m units and the noise, at the level ln(2/share) + (1/x-1) I.
func (p Place) deviation(n, variance, share, x float64) float64 {
	return math.Sqrt(2 * (p.Sigma*p.Sigma + variance/(n*(1-x))) * (math.Log(2/share) + (1/x-1)*p.Released))
}

// best is the x = m/n of the narrowest answer there, and its half-width.
func (p Place) best(n, variance, share float64) (x, width float64) {
	x, width = minimum.Brent(func(logOdds float64) float64 { return p.deviation(n, variance, share, odds(logOdds)) }, math.Log(1/n), math.Log(n), 1e-3)
	return odds(x), width
}

// odds is the number in (0,1) with these logarithmic odds.
func odds(log float64) float64 { return 1 / (1 + math.Exp(-log)) }

// whole is the integer next to xn that is an M.
func whole(n, x float64) float64 { return min(max(math.Round(n*x), 1), n-1) }

// SharedM is the M with which answers at all places are nearly as narrow as with the best M of each: the largest of their ratios is least.
func SharedM(n, share float64, places ...Place) float64 {
	widths := make([]float64, len(places))
	for i, p := range places {
		_, widths[i] = p.best(n, 0.25, share)
	}
	x, _ := minimum.Brent(func(logOdds float64) float64 {
		most := 0.0
		for i, p := range places {
			most = max(most, p.deviation(n, 0.25, share, odds(logOdds))/widths[i])
		}
		return most
	}, math.Log(1/n), math.Log(n), 1e-3)
	return whole(n, odds(x))
}

func (c Capped) check() error {
	if !(c.N >= MinUnits && c.M >= 1 && c.M < c.N && c.M == math.Trunc(c.M) && c.Share > 0 && c.Share < 1 && c.Mechanism >= 0 && c.Mechanism < 1 && c.Released >= 0) {
		return fmt.Errorf("bounds: no capped account with %+v", c)
	}
	return nil
}

// HalfWidth is that of an answer with Gaussian noise sigma, the least W with 2 PCap(W, sigma, Released, N, M) = Share, from above; for
// each of d coordinates of one release, that of Share/d. sigma 0 is an exact answer, after which nothing is chosen. An error
// says that c is no account.
func (c Capped) HalfWidth(sigma float64) (float64, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	exact := math.Sqrt(c.Level(c.Share) / (2 * c.N))
	if sigma == 0 {
		return exact, nil
	}
	if err := checkNoise(sigma); err != nil {
		return 0, err
	}
	wanted := math.Log(c.Share / 2)
	hi := exact + sigma*MaxNormalQuantile(1, min(c.Share, 0.5)) // more than enough, nearly; doubled until it is
	lo := 0.0
	for logCapped(c.N, hi, sigma, sigma, c.Released, c.M) > wanted {
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1e-13*hi {
		if w := (lo + hi) / 2; logCapped(c.N, w, sigma, sigma, c.Released, c.M) > wanted {
			lo = w
		} else {
			hi = w
		}
	}
	return hi, nil
}

// Level is L with e^((n/m-1) I) (e^-L)^(1-m/n) = share/2: an event of probability e^-L over a fresh sample has, after I nats,
// probability at most share/2.
func (c Capped) Level(share float64) float64 {
	return c.N/(c.N-c.M)*math.Log(2/share) + c.N/c.M*c.Released
}
