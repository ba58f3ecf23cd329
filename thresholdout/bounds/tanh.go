package bounds

import (
	"math"
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

// TanhPosterior is min over eps of tanh(eps/4) + delta(eps)/eta for a mu-GDP transcript: with probability 1-eta no query's
// posterior mean is further from its population's.
func TanhPosterior(mu, eta float64) float64 {
	return overEps(mu, 1/eta, func(eps float64) float64 { return math.Tanh(eps / 4) })
}
