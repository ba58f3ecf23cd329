package promises

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// The rates of the tails: P(the holdout mean deviates by t or more to this side, and the promise holds) <= e^(-n R) over a fresh sample
// (docs/proofs/promises.md, section 4). They are infinite where no sample does.

// kl is the divergence of Bernoulli(q) from Bernoulli(p), infinite where p is 0 or 1 and q is not.
func kl(q, p float64) float64 {
	switch {
	case q == p:
		return 0
	case p <= 0 || p >= 1:
		return math.Inf(1)
	}
	return bounds.KL(q, p)
}

// disagreementRate is max over theta >= 0 of y theta - u ln cosh theta - ln(1+mu tanh theta): of a mean of at least y > mu, where the mean of
// |D| is at most u. The best T = tanh theta solves mu(1-u) T^2 - (u-mu y) T + (y-mu) = 0.
func disagreementRate(y, mu, u float64) float64 {
	if y <= mu {
		return 0
	}
	if y > u || mu <= -1 {
		return math.Inf(1)
	}
	b := u - mu*y
	root := math.Sqrt(max(0, b*b-4*mu*(1-u)*(y-mu)))
	t := min(2*(y-mu)/(b+root), 1-1e-16)
	// y atanh T + u/2 ln(1-T^2), without the cancellation next to T = 1.
	return max(0, (u+y)/2*math.Log1p(t)+(u-y)/2*math.Log1p(-t)-math.Log1p(mu*t))
}

// varianceRate is max over c of c t/b - psi(c) (v+t^2)/b^2, psi(c) = -ln(1-c)-c, over 0 <= c < 1 with c b >= 2 psi(c) (1-b): of a deviation
// of at least t of values in [0,1] whose variance is at most v. b is how far they can be on the other side of mu.
func varianceRate(t, v, b float64) float64 {
	if t <= 0 {
		return 0
	}
	if b <= 0 {
		return math.Inf(1) // mu is the least value: nothing deviates
	}
	c := min(t*b/(t*b+v+t*t), largestStake(b))
	return max(0, c*t/b-psi(c)*(v+t*t)/(b*b))
}

func psi(c float64) float64 {
	if c < 1e-4 {
		return c * c * (0.5 + c*(1.0/3+c/4))
	}
	return -math.Log1p(-c) - c
}

// largestStake is the root of c b = 2 psi(c) (1-b), from below; psi(c)/c rises from 0.
func largestStake(b float64) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		if c := (lo + hi) / 2; c*b >= 2*psi(c)*(1-b) {
			lo = c
		} else {
			hi = c
		}
	}
	return lo
}
