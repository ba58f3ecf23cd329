package bounds

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/minimum"
)

// TanhTransfer is the half-width of k Gaussian answers by the tanh transfer bound, in its single-event form
// (docs/proofs/tanh-transfer.md): sigma ES_beta(k) + min over eps of tanh(eps/4) + delta(eps)/beta.
func TanhTransfer(n, k int64, beta float64) (Transfer, error) {
	if err := check(n, k, beta); err != nil {
		return Transfer{}, err
	}
	rows, questions := float64(n), float64(k)
	shortfall := MaxNormalShortfall(questions, beta)
	return bestTransfer("tanh-transfer", n, k, beta, func(logSigma float64) (float64, float64) {
		sigma := math.Exp(logSigma)
		return sigma * shortfall, TanhPosterior(math.Sqrt(questions)/(rows*sigma), beta)
	})
}

// TanhTransferTwoEvents is the bound with separate probabilities b1 for noise and beta-b1 for the population. It is a little wider, and the
// form that also serves unequal noise: see TanhNoise.
func TanhTransferTwoEvents(n, k int64, beta float64) (Transfer, error) {
	rows, questions := float64(n), float64(k)
	return bestTransfer("tanh-transfer-two-events", n, k, beta, func(logSigma float64) (noise, posterior float64) {
		sigma := math.Exp(logSigma)
		mu := math.Sqrt(questions) / (rows * sigma)
		at := func(logit float64) float64 {
			share := 1 / (1 + math.Exp(-logit))
			noise = sigma * MaxNormalShortfall(questions, share*beta)
			posterior = TanhPosterior(mu, (1-share)*beta)
			return noise + posterior
		}
		x, _ := minimum.Brent(at, -7, 7, 1e-4)
		at(x)
		return noise, posterior
	})
}

// TanhNoise are the half-widths of answers with noise sigma[j], fixed beforehand, when b1 of beta is for noise: sigma_j ES_b1(k)
// plus the posterior part at mu^2 = sum of 1/(n sigma_j)^2.
func TanhNoise(n int64, sigma []float64, beta, b1 float64) ([]float64, error) {
	if err := check(n, int64(len(sigma)), beta); err != nil {
		return nil, err
	}
	if err := check(n, 1, b1/beta); err != nil {
		return nil, err
	}
	mu := 0.0
	for _, s := range sigma {
		if err := checkNoise(s); err != nil {
			return nil, err
		}
		mu = math.Hypot(mu, 1/(float64(n)*s))
	}
	shortfall, posterior := MaxNormalShortfall(float64(len(sigma)), b1), TanhPosterior(mu, beta-b1)
	widths := make([]float64, len(sigma))
	for j, s := range sigma {
		widths[j] = s*shortfall + posterior
	}
	return widths, nil
}

// TanhPosterior is min over eps of tanh(eps/4) + delta(eps)/eta for a mu-GDP transcript: with probability 1-eta no query's
// posterior mean is further from its population's.
func TanhPosterior(mu, eta float64) float64 {
	return overEps(mu, 1/eta, func(eps float64) float64 { return math.Tanh(eps / 4) })
}

// TanhInterval is the interval for a mean in [0,1] from an answer of noise sigma_j = noise/ES_b1(k), by the bound's form that
// depends on the mean: all p with a-p <= noise + T(p) + delta/eta and p-a <= noise + T(1-p) + delta/eta, where T(p) =
// p(1-p)(e^eps-1)/(1+p(e^eps-1)). eps is one number fixed beforehand; slack is delta(eps)/eta.
func TanhInterval(answer, noise, eps, slack float64) (low, high float64) {
	t := func(p float64) float64 { return tanhPrice(p, eps) }
	// p+T(p) rises, since T' > -1: the smallest p that is possible from below is where it reaches answer-noise-slack.
	smallest := func(answer float64) float64 {
		lo, hi := 0.0, 1.0
		for range 60 {
			if p := (lo + hi) / 2; p+t(p) >= answer-noise-slack {
				hi = p
			} else {
				lo = p
			}
		}
		return lo
	}
	return smallest(answer), 1 - smallest(1-answer) // the other side is the same for 1-q
}

// tanhPrice is T(p) = p(1-p)(e^eps-1)/(1+p(e^eps-1)), how much more likely than p an event may be under the posterior of an eps-private
// transcript; at most tanh(eps/4).
func tanhPrice(p, eps float64) float64 {
	e := math.Expm1(eps)
	return p * (1 - p) * e / (1 + p*e)
}
