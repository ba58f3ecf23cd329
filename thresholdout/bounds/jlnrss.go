package bounds

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/minimum"
)

// The bounds of Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi and Shenfeld (ITCS 2020, arXiv 1909.03577): an answer that is
// near the sample's mean is near the posterior's, and that is near the population's when the transcript is private.

// JLNRSS20 is their theorem 13 as their code computes it, with the accounting of their paper.
func JLNRSS20(n, k int64, beta float64) (Transfer, error) {
	rows, questions := float64(n), float64(k)
	return bestTransfer("jlnrss20", n, k, beta, func(logSigma float64) (float64, float64) {
		sigma := math.Exp(logSigma)
		rho := questions * zcdp(rows, sigma)
		// Their code takes one number for delta and for the probability that noise is large.
		noise := func(delta float64) float64 { return sigma*twoTailQuantile(math.Log(delta/questions)) + 3*delta/beta }
		privacy := func(delta float64) float64 { return math.Expm1(zcdpEps(rho, delta)) + 3*delta/beta }
		x, _ := minimum.Scanned(func(x float64) float64 { return noise(math.Exp(x)) + privacy(math.Exp(x)) }, math.Log(beta)-60, 0, 30, precise)
		return noise(math.Exp(x)), privacy(math.Exp(x))
	})
}

// JLNRSSPlus is their transfer theorem with its constants left free, the exact law of the largest noise, and the conversion of
// zCDP by Canonne, Kamath and Steinke (arXiv 2004.00010, corollary 13): the form that Marchant and Rubinstein (arXiv 2405.13375)
// compute under this name.
func JLNRSSPlus(n, k int64, beta float64) (Transfer, error) {
	rows, questions := float64(n), float64(k)
	return bestTransfer("jlnrss-plus", n, k, beta, func(logSigma float64) (float64, float64) {
		sigma := math.Exp(logSigma)
		rho := questions * zcdp(rows, sigma)
		return freeConstants(questions, sigma, beta, func(weight float64) float64 { return zcdpPosterior(rho, weight) })
	})
}

// JLNRSSGDP is JLNRSSPlus with the exact accounting of Gaussian answers: k of them are sqrt(k)/(n sigma)-GDP.
func JLNRSSGDP(n, k int64, beta float64) (Transfer, error) {
	rows, questions := float64(n), float64(k)
	return bestTransfer("jlnrss-gdp", n, k, beta, func(logSigma float64) (float64, float64) {
		sigma := math.Exp(logSigma)
		mu := math.Sqrt(questions) / (rows * sigma)
		return freeConstants(questions, sigma, beta, func(weight float64) float64 { return gdpPosterior(mu, weight) })
	})
}

// freeConstants minimises alpha + e^eps-1 + d + 2 c delta over all constants of the transfer theorem with b/d + 1/c = beta. The
// best c and d make d + 2 c delta = (sqrt b + sqrt(2 delta))^2/beta, which is the least of b/(share beta) +
// 2 delta/((1-share) beta) over a share in (0,1); for a given share, noise and privacy are minimised apart.
func freeConstants(k, sigma, beta float64, posterior func(weight float64) float64) (noise, privacy float64) {
	at := func(logit float64) float64 {
		share := 1 / (1 + math.Exp(-logit))
		_, noise = minimum.Brent(func(t float64) float64 { return sigma*t + MaxNormalTail(k, t)/(share*beta) },
			MaxNormalQuantile(k, 0.5), math.Sqrt(2*math.Log(k/beta)+80), precise)
		privacy = posterior(2 / ((1 - share) * beta))
		return noise + privacy
	}
	x, _ := minimum.Brent(at, -7, 7, 1e-4)
	at(x)
	return noise, privacy
}

// gdpPosterior is min over eps of e^eps-1 + weight delta(eps) for a mu-GDP mechanism.
func gdpPosterior(mu, weight float64) float64 {
	return overEps(mu, weight, func(eps float64) float64 { return math.Expm1(eps) })
}

// overEps is min over eps of price(eps) + weight delta(eps) for a mu-GDP mechanism.
func overEps(mu, weight float64, price func(eps float64) float64) float64 {
	log := math.Log(weight)
	_, least := minimum.Brent(func(x float64) float64 {
		eps := math.Exp(x)
		return price(eps) + math.Exp(log+account.GDP(mu).LogDelta(eps))
	}, math.Log(mu)-4, math.Log(mu*mu+mu*(math.Sqrt(2*max(log, 0))+8)), precise)
	return least
}

// zcdpPosterior is min of e^eps-1 + weight delta over alpha > 1, where eps = (2 alpha-1) rho + ln(1-1/alpha) is the one for
// which alpha gives the best delta, exp((alpha-1)(alpha rho-eps) + alpha ln(1-1/alpha))/(alpha-1).
func zcdpPosterior(rho, weight float64) float64 {
	log := math.Log(weight)
	at := func(x float64) float64 {
		a := 1 + math.Exp(x)
		term := math.Log1p(-1 / a)
		eps := (2*a-1)*rho + term
		if eps <= 0 {
			return math.Inf(1)
		}
		return math.Expm1(eps) + math.Exp(log+(a-1)*(a*rho-eps)+a*term-math.Log(a-1))
	}
	// eps near sqrt(2 rho ln weight) is at alpha near sqrt(ln weight/rho).
	middle := math.Log(math.Sqrt((max(log, 0) + 1) / rho))
	_, least := minimum.Scanned(at, min(middle, 0)-3, middle+3, 12, precise)
	return least
}
