package bounds

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/minimum"
)

// Prices and widths that the proofs have and no mechanism uses: what is used is compared with them.

// RangeVariance is the largest variance of values in [low, high]: 1/4 for a [0,1] row function.
func RangeVariance(low, high float64) float64 { return (high - low) * (high - low) / 4 }

// PairedVariance is that of the difference of two published predictions' losses, values in [0,1] that differ on at most a share d of
// the rows: d.
func PairedVariance(d float64) float64 { return d }

// PairedRange is the range that such a difference has for Hoeffding's inequality: its mean's half-width is PairedRange(d) times that of a
// [0,1] mean with noise sigma/PairedRange(d). The target is the mean of the rows' expectations given their features
// (docs/proofs/account.md, section 6).
func PairedRange(d float64) float64 { return 2 * math.Sqrt(d) }

// Comparison is the price of one bit: whether q(S) plus logistic noise of scale 1/eta is above a number, or which of two
// candidates' scores is larger. variance is a sure bound of the row variance of q or of the difference: 1/4 for a [0,1] mean.
func Comparison(n, variance, eta float64) float64 { return eta * eta * variance / (8 * (n - 1)) }

// AdaptiveTail bounds the probability that q(S) is more than t above (or below) its expectation, for a [0,1] query chosen after I
// nats were released.
func AdaptiveTail(n, t, released float64) float64 {
	return math.Exp(logAdapted(n, 2*n*t*t, released))
}

// AdaptivePValue turns the p-value p of a test that was chosen after I nats were released into one that is valid: under the
// null hypothesis it is at most u with probability at most u. p must be valid for tests fixed beforehand. The number itself
// may be shown in the last round only, since it is an answer without noise.
func AdaptivePValue(n, p, released float64) float64 {
	if p <= 0 {
		return 0
	}
	return math.Exp(logAdapted(n, -math.Log(p), released))
}

// NoiseWidth is the half-width of all answers of a list with noise sigma[j], fixed beforehand for each; the last may be 0, an answer
// without noise, after which nothing is chosen.
func NoiseWidth(n int64, sigma []float64, beta float64) (float64, error) {
	answers, err := listed(n, sigma, beta)
	if err != nil {
		return 0, err
	}
	return solve(4/math.Sqrt(float64(n)), func(w float64) float64 {
		total := 0.0
		for _, a := range answers {
			total += a.miss(float64(n), w)
		}
		return math.Log(total / beta)
	}), nil
}

// AnswerWidths are half-widths of the same answers that differ: each misses with probability at most beta/k, so that early ones, before
// which little was released, are narrower.
func AnswerWidths(n int64, sigma []float64, beta float64) ([]float64, error) {
	answers, err := listed(n, sigma, beta)
	if err != nil {
		return nil, err
	}
	share := beta / float64(len(sigma))
	widths := make([]float64, len(sigma))
	guess := 4 / math.Sqrt(float64(n))
	for j, a := range answers {
		widths[j] = solve(guess, func(w float64) float64 { return math.Log(a.miss(float64(n), w) / share) })
		guess = widths[j]
	}
	return widths, nil
}

// ChernoffWidth is how far above (or below) a population mean of p the mean of n values gets with probability at most b: the w
// with n kl(p+w||p) = ln(1/b), or 1-p where even a mean of 1 is not that surprising. It is the tolerance of the moment generating
// function in Rogers et al. (AISTATS 2020).
func ChernoffWidth(n, p, b float64, above bool) float64 {
	if !above {
		p = 1 - p
	}
	level := math.Log(1 / b)
	lo, hi := 0.0, 1-p
	if p <= 0 || p >= 1 || n*KL(1, p) <= level {
		return max(hi, 0)
	}
	for hi-lo > 1e-15 {
		w := (lo + hi) / 2
		if w <= lo || w >= hi {
			break
		}
		if n*KL(p+w, p) > level {
			hi = w
		} else {
			lo = w
		}
	}
	return hi
}

// ClopperPearson is the exact interval for a probability from successes in trials: each end misses with probability at most
// beta/2.
func ClopperPearson(successes, trials int64, beta float64) (low, high float64, err error) {
	if err := check(max(trials, MinUnits), 1, beta); err != nil {
		return 0, 0, err
	}
	x := float64(successes)
	low, high = binomialEnds(float64(trials), x, x, math.Log(2/beta))
	return low, high, nil
}

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

// tanhPrice is T(p) = p(1-p)(e^eps-1)/(1+p(e^eps-1)), how much more likely than p an event may be under the posterior of an eps-private
// transcript; at most tanh(eps/4).
func tanhPrice(p, eps float64) float64 {
	e := math.Expm1(eps)
	return p * (1 - p) * e / (1 + p*e)
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

func listed(n int64, sigma []float64, beta float64) ([]listedAnswer, error) {
	if err := check(n, int64(len(sigma)), beta); err != nil {
		return nil, err
	}
	answers := make([]listedAnswer, len(sigma))
	released := 0.0
	for j, s := range sigma {
		if last := j == len(sigma)-1; s == 0 && last {
			answers[j] = listedAnswer{0, released}
			break
		}
		if err := checkNoise(s); err != nil {
			return nil, fmt.Errorf("bounds: answer %d of %d: %w", j+1, len(sigma), err)
		}
		answers[j] = listedAnswer{s, released}
		released += information(float64(n), s)
	}
	return answers, nil
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

// listedAnswer is one answer of a list, with what was released before it.
type listedAnswer struct{ sigma, released float64 }

// miss bounds the probability that its interval of half-width w misses, on either side.
func (a listedAnswer) miss(n, w float64) float64 {
	if a.sigma == 0 {
		return 2 * math.Exp(logAdapted(n, 2*n*w*w, a.released))
	}
	return miss(n, []stretch{{count: 1, low: a.sigma, high: a.sigma, released: max(a.released, minInformation), fresh: a.released == 0}}, w)
}
