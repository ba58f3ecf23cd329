package bounds

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/minimum"
)

// Prices by reference runs (docs/proofs/account.md, section 7): where m is fixed beforehand, an answer may be compared with one of
// more noise, by a factor of sqrt(1+e) in its standard deviation, on m rows. That is cheaper for answers that are nearly exact, and lets the
// answer itself tell how small the variance is. The prices add up to [Capped].Released, with Information's and the others'.

// NearlyExactInformation is the price in nats of a mean, or a vector, with Gaussian noise sigma under an account with m: Information's
// (n/m-1)I = x/2, or (1 + ln x)/2 where x > 1. It depends on nothing but what was asked. variance as for Information.
func NearlyExactInformation(n, m, variance, sigma float64) float64 {
	plain := Information(n, variance, sigma)
	lambda := n/m - 1
	if x := 2 * lambda * plain; x > 1 {
		return (1 + math.Log(x)) / (2 * lambda)
	}
	return plain
}

// ObservedInformation is the price in nats of a [0,1] mean whose answer was given, with Gaussian noise sigma, under an account with m:
// its variance is at most q(1-q), and the answer tells about q. more, e in the proof, must be chosen before the answer, >= 0; see ObservedMore.
// The price may be above Information's: an account uses one or the other, chosen before the answer.
func ObservedInformation(n, m, sigma, more, answer float64) float64 {
	lambda := n/m - 1
	if more == 0 {
		return Information(n, 0.25, sigma)
	}
	b := more / (2 * sigma * sigma * (1 + more))
	c := lambda / (2 * sigma * sigma * (1 + more) * (n - 1))
	a := min(max(answer, 0), 1)
	skew := 1 - 2*a
	// C a(1-a) + C^2 (1-2a)^2/(4(B+C)) is the most of -B y^2 + C q(1-q) over all q = a+y; it is at most C/4.
	observed := min(c*a*(1-a)+c*c*skew*skew/(4*(b+c)), c/4)
	return (math.Log1p(more)/2 + observed) / lambda
}

// ObservedMore is the e that makes ObservedInformation least for an answer that is expected near the given mean, by the
// training part for example; 0 where Information's price is not above it.
func ObservedMore(n, m, sigma, expected float64) float64 {
	price := func(logMore float64) float64 {
		return ObservedInformation(n, m, sigma, math.Exp(logMore), expected)
	}
	x, least := minimum.Scanned(price, math.Log(1e-12), math.Log(1e12), 56, 1e-3)
	if least >= Information(n, 0.25, sigma) {
		return 0
	}
	return math.Exp(x)
}
