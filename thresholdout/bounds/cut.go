package bounds

import (
	"math"
)

// Cut is Chernoff's interval around one answer with Gaussian noise whose place, and so noise, released information and share, is fixed beforehand. It is narrower than Hoeffding's for
// means far from one half. The upper end for the answer a is the p for which
//
//	P(Z < -z) + e^{(n/m-1) I} E[ e^{-(n-m) kl(a - sigma Z || p)}; Z > -z, 0 <= a - sigma Z ] = share/2,
//
// kl being 0 where a - sigma Z >= p, and z a quantile of the noise; the lower end is 1 minus the upper end for 1-a. m is fixed beforehand, so that the theorem holds for each value of the noise
// and may be integrated over it, whatever p is (docs/proofs/account.md, section 6).
type Cut struct {
	N               float64 // units
	M               float64 // an integer, 1 <= M < N; 0 where nothing was released
	Sigma, Released float64
}

const (
	// rareNoise of a cut's share is for noise beyond the quantile z, which the theorem would charge e^{(n/m-1) I} times.
	rareNoise = 0.1
	// typicalMean is what the m of a cut is best for; it hardly depends on it.
	typicalMean = 0.02
	// cutDepth: the integrand is log-concave. It is integrated where it is above e^-cutDepth of its largest value, by Gauss and Legendre's rule; cutError, in logarithms, is more
	// than what that leaves out, and what the rule errs by (TestCutAgainstQuadrature).
	cutDepth = 40.0
	cutError = 1e-8
)

// NewCut is the cut of answers about n units with noise sigma, chosen when released nats were out. Its m is about the best for this share.
func NewCut(n, share, sigma, released float64) Cut {
	c := Cut{N: n, Sigma: sigma, Released: released}
	if released <= 0 {
		return c
	}
	p := 2 * typicalMean
	for range 4 { // the variance of a mean is that at the end
		x, w := Place{sigma, released}.best(n, p*(1-p), share)
		c.M, p = whole(n, x), min(typicalMean+w, 0.5)
	}
	return c
}

// Within is the common part of [low, high], in which the answer lies, with the interval around the answer that misses with at most this share. rounding is how far the answer may be from the noisy mean.
func (c Cut) Within(answer, rounding, share, low, high float64) (cutLow, cutHigh float64) {
	if !(share > 0) {
		return low, high
	}
	if mirrored := c.upper(1-answer+rounding, share/2, 1-low); mirrored < 1-low {
		low = max(low, 1-mirrored)
	}
	return low, min(high, c.upper(answer+rounding, share/2, high))
}

// upper is the upper end for the answer a, at most high.
func (c Cut) upper(a, share, high float64) float64 {
	far := 0.0
	if c.Sigma > 0 {
		far = MaxNormalQuantile(1, 2*rareNoise*share)
		share *= 1 - rareNoise
	}
	wanted := math.Log(share)
	a = min(max(a, 0), 1)
	excess := func(p float64) float64 { return c.log(a, p, far) - wanted }
	hi := high
	atHi := math.Inf(1)
	if hi < 1 {
		atHi = excess(hi)
	} else if hi, atHi = math.Nextafter(1, 0), excess(math.Nextafter(1, 0)); atHi > 0 {
		return high
	}
	if atHi > 0 || a >= hi {
		return high
	}
	// False position with the Illinois rule; what it returns never misses more often.
	lo, atLo := a, excess(a)
	for side := 0; hi-lo > 1e-10 && !(atHi > -1e-7); {
		p := hi - atHi*(hi-lo)/(atHi-atLo)
		if !(p > lo && p < hi) {
			p = (lo + hi) / 2
		}
		if at := excess(p); at <= 0 {
			hi, atHi = p, at
			if side == -1 {
				atLo /= 2
			}
			side = -1
		} else {
			lo, atLo = p, at
			if side == 1 {
				atHi /= 2
			}
			side = 1
		}
	}
	return hi
}

// log is ln of what the interval's end p misses with, but for noise beyond far.
func (c Cut) log(a, p, far float64) float64 {
	lead, rest := 0.0, c.N-c.M
	if c.M > 0 {
		lead = (c.N/c.M - 1) * c.Released
	}
	if c.Sigma == 0 {
		if a >= p {
			return lead
		}
		return lead - rest*KL(a, p)
	}
	total, from := math.Inf(-1), -far
	if kink := (a - p) / c.Sigma; kink > from { // up to there the mean is at least p
		total = lead + math.Log(phi(kink)-phi(from))
		from = kink
	}
	to := a / c.Sigma // beyond, no mean is so low
	if to <= from {
		return total
	}
	// h(z) = -(n-m) kl(a - sigma z || p) - z^2/2 is concave, its second derivative at most -1.
	odds := math.Log(p / (1 - p))
	q := func(z float64) float64 { return min(max(a-c.Sigma*z, 0), 1) }
	h := func(z float64) float64 { return -rest*KL(q(z), p) - z*z/2 }
	falls := func(z float64) bool {
		x := q(z)
		return x <= 0 || rest*c.Sigma*(math.Log(x/(1-x))-odds) < z
	}
	top := bisect(from, to, 40, falls)
	peak := h(top)
	// Curvature: where h is cutDepth below its peak it is nearer than sqrt(2 cutDepth).
	reach := math.Sqrt(2 * cutDepth)
	deep := func(z float64) bool { return h(z) < peak-cutDepth }
	right := bisect(top, min(to, top+reach), 20, deep)
	left := -bisect(-top, -max(from, top-reach), 20, func(z float64) bool { return deep(-z) })
	sum := 0.0
	for i, at := range legendre.at {
		sum += legendre.weight[i] * math.Exp(h(left+(right-left)*at)-peak)
	}
	return logSum(total, lead+peak+math.Log(sum*(right-left)/math.Sqrt(2*math.Pi))) + cutError
}

// bisect is about the least x in [from, to] for which after holds, from above; to where there is none.
func bisect(from, to float64, times int, after func(x float64) bool) float64 {
	if !after(to) {
		return to
	}
	for range times {
		if x := (from + to) / 2; after(x) {
			to = x
		} else {
			from = x
		}
	}
	return to
}
