package bounds

import "math"

// Laplace bounds the errors of Thresholdout in its Laplace form (arXiv 1506.02629, figure 1): the run is differentially
// private, and what a private run says about the sample carries over to the population by the tanh transfer bound
// (docs/proofs/tanh-transfer.md). Wide: comparison noise with heavy tails, and B releases at scale sigma.
type Laplace struct {
	N         int64   // units of the holdout
	Questions int64   // m
	Tokens    int64   // B
	Beta      float64 // 1-confidence
	Threshold float64 // T
	Sigma     float64 // scale: releases Lap(sigma), threshold Lap(2 sigma), comparisons Lap(4 sigma)
}

// Widths are the half-width and its two parts: how far answers are from the sample, and the sample from the population.
type Widths struct {
	HalfWidth, Sample, Posterior float64
}

// HalfWidth is that of every answer.
func (l Laplace) HalfWidth() Widths {
	best := Widths{HalfWidth: math.Inf(1)}
	at := func(logit float64) float64 {
		share := 1 / (1 + math.Exp(-logit)) // of beta, for the sample part
		w := Widths{Sample: l.sample(share * l.Beta), Posterior: l.posterior((1 - share) * l.Beta)}
		w.HalfWidth = w.Sample + w.Posterior
		if w.HalfWidth < best.HalfWidth {
			best = w
		}
		return w.HalfWidth
	}
	minimize(at, -6, 6)
	return best
}

// laplaceStep is the grid, in units of sigma, on which the tail of the comparison noise is summed; tails are taken at the
// left end of each cell, so the sum is an upper bound.
const laplaceStep = 1.0 / 64

// sample is the expected shortfall, at level b1, of the largest distance of an answer from the sample's mean:
// min over s of s + E(M-s)_+/b1, with P(M > t) <= m P(gamma* + eta > t-T) + B e^{-t/sigma}, gamma* the largest of B+1
// threshold noises (an analyst can burn epochs until gamma is large).
func (l Laplace) sample(b1 float64) float64 {
	m, tokens := float64(l.Questions), float64(l.Tokens)
	tail := l.comparisonTail()
	at := func(t float64) float64 { // t in units of sigma
		p := tokens * math.Exp(-t)
		if x := t - l.Threshold/l.Sigma; x < 0 {
			p += m
		} else if i := int(x / laplaceStep); i < len(tail) {
			p += m * tail[i]
		}
		return min(1, p)
	}
	// The best s is where P(M > s) = b1; the integral from there on.
	end := l.Threshold/l.Sigma + float64(len(tail))*laplaceStep
	integral, s := 0.0, end
	for s > 0 {
		p := at(s - laplaceStep)
		if p >= b1 {
			break
		}
		integral += p * laplaceStep
		s -= laplaceStep
	}
	return l.Sigma * (s + integral/b1)
}

// comparisonTail returns P(gamma* + eta > i*laplaceStep), gamma* the largest of B+1 Lap(2), eta Lap(4), all in units of
// sigma, up to where it no longer matters.
func (l Laplace) comparisonTail() []float64 {
	epochs := float64(l.Tokens + 1)
	reach := 4 * (math.Log(float64(l.Questions)*epochs/l.Beta) + 40)
	cells := int(reach / laplaceStep)
	// P(gamma* > x) for x = i*step - reach/2 … reach; integrate against the density of eta by the recursion of an
	// exponential: each half of the Laplace density is a one-pole filter.
	survival := func(x float64) float64 { // of gamma*
		var below float64
		if x >= 0 {
			below = math.Log1p(-math.Exp(-x/2) / 2)
		} else {
			below = math.Log(0.5) + x/2
		}
		return -math.Expm1(epochs * below)
	}
	// right(u) = E over eta > 0: (1/8) Int_0^inf e^{-e/4} S(u-e) de, left(u) = (1/8) Int_0^inf e^{-e/4} S(u+e) de.
	total := 2 * cells
	start := -reach
	decay := math.Exp(-laplaceStep / 4)
	weight := (1 - decay) / 2
	right := make([]float64, total+1)
	right[0] = 0.5 // S(-inf) = 1 bounds it
	for i := 1; i <= total; i++ {
		right[i] = decay*right[i-1] + weight*survival(start+float64(i-1)*laplaceStep)
	}
	tail := make([]float64, cells)
	left := 0.5 * survival(reach)
	for i := total; i >= 0; i-- {
		u := start + float64(i)*laplaceStep
		left = decay*left + weight*survival(u)
		if k := i - cells; k >= 0 && k < cells {
			tail[k] = right[i] + left
		}
	}
	return tail
}

// posterior is min over eps of tanh(eps/4) + delta(eps)/eta for the run's zCDP, rho = B/(sigma n)^2.
func (l Laplace) posterior(eta float64) float64 {
	scale := l.Sigma * float64(l.N)
	rho := float64(l.Tokens) / (scale * scale)
	at := func(logEps float64) float64 {
		eps := math.Exp(logEps)
		return math.Tanh(eps/4) + ZCDPDelta(rho, eps)/eta
	}
	middle := math.Log(rho + 2*math.Sqrt(rho*math.Log(1/eta)))
	_, w := minimize(at, middle-3, middle+3)
	return w
}

// ZCDPDelta is the delta of a rho-zCDP mechanism at eps: the minimum over alpha of
// exp((alpha-1)(alpha rho - eps) + alpha ln(1-1/alpha))/(alpha-1) (Canonne, Kamath, Steinke, arXiv 2004.00010, corollary 13).
func ZCDPDelta(rho, eps float64) float64 {
	if rho == 0 {
		return 0
	}
	at := func(logMore float64) float64 {
		a := 1 + math.Exp(logMore)
		return (a-1)*(a*rho-eps) + a*math.Log1p(-1/a) - math.Log(a-1)
	}
	_, least := minimize(at, math.Log(0.01), math.Log((eps+1)/(2*rho)+2))
	return min(1, math.Exp(least))
}
