package bounds

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/minimum"
)

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

var laplaces memo[Laplace, Widths]

// HalfWidth is that of every answer.
func (l Laplace) HalfWidth() Widths {
	if w, ok := laplaces.remembered(l); ok {
		return w
	}
	best := Widths{HalfWidth: math.Inf(1)}
	tail := l.comparisonTail()
	at := func(logit float64) float64 {
		share := 1 / (1 + math.Exp(-logit)) // of beta, for the sample part
		w := Widths{Sample: l.sample(tail, share*l.Beta), Posterior: l.posterior((1 - share) * l.Beta)}
		w.HalfWidth = w.Sample + w.Posterior
		if w.HalfWidth < best.HalfWidth {
			best = w
		}
		return w.HalfWidth
	}
	minimum.Brent(at, -6, 6, rough)
	laplaces.remember(l, best)
	return best
}

// sample is the expected shortfall, at level b1, of the largest distance of an answer from the sample's mean:
// min over s of s + E(M-s)_+/b1, with P(M > t) <= m P(gamma* + eta > t-T) + B e^{-t/sigma}, gamma* the largest of B+1
// threshold noises (an analyst can burn epochs until gamma is large). The best s is where P(M > s) = b1; any s is valid.
func (l Laplace) sample(tail laplaceTail, b1 float64) float64 {
	m, tokens, threshold := float64(l.Questions), float64(l.Tokens), l.Threshold/l.Sigma // all in units of sigma
	lo, hi := 0.0, tail.end()
	for range 60 {
		x := (lo + hi) / 2
		p, _ := tail.at(x)
		if m*p+tokens*math.Exp(-threshold-x) > b1 {
			lo = x
		} else {
			hi = x
		}
	}
	_, beyond := tail.at(hi)
	return l.Sigma * (threshold + hi + (m*beyond+tokens*math.Exp(-threshold-hi))/b1)
}

// laplaceTail is P(gamma* + eta > i laplaceStep) and its integral from there on, in units of sigma.
type laplaceTail struct{ p, beyond []float64 }

const (
	laplaceStep = 1.0 / 32
	// laplaceAbove covers interpolation of ln P by lines. ln P is concave, as gamma* and eta have log-concave densities; its slope is between -1/4 and 0 and
	// that of the density's logarithm between -1/4 and 1/4, so that its second derivative is at least -1/8.
	laplaceAbove = 1 + laplaceStep*laplaceStep/64
)

func (t laplaceTail) end() float64 { return float64(len(t.p)-1) * laplaceStep }

// at interpolates P and its integral at x, 0 <= x <= end, from above.
func (t laplaceTail) at(x float64) (p, beyond float64) {
	i := min(int(x/laplaceStep), len(t.p)-2)
	slope := math.Log(t.p[i]/t.p[i+1]) / laplaceStep
	p = t.p[i] * math.Exp(-slope*(x-float64(i)*laplaceStep))
	return p * laplaceAbove, (t.beyond[i+1] + (p-t.p[i+1])/slope) * laplaceAbove
}

// comparisonTail is that of gamma* + eta, gamma* the largest of B+1 Lap(2), eta Lap(4), all in units of sigma. Each half of
// eta's density is an exponential, so that its convolution goes from one point of the grid to the next by a
// factor and the integral over one cell, by Gauss's rule of four points.
func (l Laplace) comparisonTail() laplaceTail {
	epochs := float64(l.Tokens + 1)
	cells := int(4 * (math.Log(float64(l.Questions)*epochs/l.Beta) + 40) / laplaceStep)
	survival := func(x float64) float64 { // of gamma*
		var below float64
		if x >= 0 {
			below = math.Log1p(-math.Exp(-x/2) / 2)
		} else {
			below = -math.Ln2 + x/2
		}
		return -math.Expm1(epochs * below)
	}
	nodes, weights := [4]float64{}, [4]float64{}
	quad.Legendre{}.FixedLocations(nodes[:], weights[:], 0, laplaceStep)
	decay := math.Exp(-laplaceStep / 4)
	// rising[i] is (1/8) Int over cell i of e^{-(right end - x)/4} P(gamma* > x) dx, falling[i] with the distance from its left end.
	rising, falling := make([]float64, 2*cells), make([]float64, 2*cells)
	for i := range rising {
		for k, node := range nodes {
			s := weights[k] * survival(float64(i-cells)*laplaceStep+node) / 8
			rising[i] += s * math.Exp((node-laplaceStep)/4)
			falling[i] += s * math.Exp(-node/4)
		}
	}
	tail := laplaceTail{p: make([]float64, cells+1), beyond: make([]float64, cells+1)}
	right := 0.5 // eta > 0 with P(gamma* > x) = 1 before the grid
	for i := range cells {
		right = decay*right + rising[i]
	}
	for i := range cells {
		tail.p[i] = right
		right = decay*right + rising[cells+i]
	}
	tail.p[cells] = right
	left := survival(float64(cells)*laplaceStep) / 2 // eta < 0; at most this beyond the grid
	tail.p[cells] += left
	tail.beyond[cells] = 4 * tail.p[cells] * (1 + 1e-6) // the slope is nearly -1/4 there, 40 and more units of eta from 0
	for i := cells - 1; i >= 0; i-- {
		left = decay*left + falling[cells+i]
		tail.p[i] += left
		tail.beyond[i] = tail.beyond[i+1] + (tail.p[i]-tail.p[i+1])*laplaceStep/math.Log(tail.p[i]/tail.p[i+1])
	}
	return tail
}

// posterior is min over eps of tanh(eps/4) + delta(eps)/eta for the run's zCDP, rho = B/(sigma n)^2.
func (l Laplace) posterior(eta float64) float64 {
	scale := l.Sigma * float64(l.N)
	rho := float64(l.Tokens) / (scale * scale)
	if rho == 0 {
		return 0
	}
	at := func(logEps float64) float64 {
		eps := math.Exp(logEps)
		return math.Tanh(eps/4) + account.ZCDP(rho).Delta(eps)/eta
	}
	middle := math.Log(rho + 2*math.Sqrt(rho*math.Log(1/eta)))
	_, w := minimum.Brent(at, middle-3, middle+3, precise)
	return w
}
