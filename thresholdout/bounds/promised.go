package bounds

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/minimum"
)

// Answers whose noise is 2 sqrt(V) sigma_j where a promised bound V of the row variance holds (docs/proofs/promises.md). They are priced as plain
// ones; what is more is a union over the patterns of held and broken promises.

// PromisedUnits is the least number of units for promises: with fewer, half-widths of plain answers come from pcap, which is no bound for an
// answer with a promise.
const PromisedUnits = roundingUnits

// promisedFirst is the share of the plain answers' beta for runs in which no promise was broken; the rest is shared equally among 1, 2, …
// broken ones.
const promisedFirst = 0.9

// PromisedMiss bounds the probability that one side of the interval of an answer misses, with a promise or without one, when I nats were
// released before the question was chosen: Miss, but noise towards the target gains nothing.
//
//	Phi(-d) + e^{-A d^2/c} c^{-1/2} (Phi(d/sqrt c) - Phi(-2 A d/sqrt c)) + e^{-2 n W0^2}/2
//
// with W0 = W - sqrt(I/(2n)), d = W0/sigma, A = 2 n sigma^2, c = 1+2A; 1 where W0 is not above 0.
func PromisedMiss(n, w, sigma, released float64) float64 { return promisedMiss(n, w, sigma, released) }

func promisedMiss(n, w, sigma, released float64) float64 {
	shift := w - math.Sqrt(released/(2*n))
	if !(shift > 0) {
		return 1
	}
	half := math.Exp(-2*n*shift*shift) / 2
	if sigma == 0 {
		return min(1, 2*half)
	}
	d := shift / sigma
	a := 2 * n * sigma * sigma
	c := 1 + 2*a
	return min(1, phi(-d)+math.Exp(-a*d*d/c)/math.Sqrt(c)*(phi(d/math.Sqrt(c))-phi(-2*a*d/math.Sqrt(c)))+half)
}

// Promised is the guarantee of k plain positions whose answers may bear promises, of which B may be broken.
type Promised struct {
	Scale  float64   // s of the noise schedule, see ScheduledSigma
	Widths []float64 // W_f by how many promises are broken, the answer's own among them: f = 0 … B
}

type promisedKey struct {
	n, k, tokens int64
	beta         float64
	exactLast    bool
}

var knownPromised memo[promisedKey, Promised]

// PromisedSchedule is the guarantee with the narrowest W_0. beta is the plain answers' probability of error; n is at least
// PromisedUnits; with exactLast the last question bears no noise, for nothing is chosen after it. The slice is shared: it is not to be changed.
func PromisedSchedule(n, k int64, beta float64, tokens int64, exactLast bool) (Promised, error) {
	if err := check(n, k, beta); err != nil {
		return Promised{}, err
	}
	if n < PromisedUnits {
		return Promised{}, fmt.Errorf("bounds: promises about %d units; at least %d are needed", n, PromisedUnits)
	}
	if tokens < 0 || tokens > MostPromiseTokens {
		return Promised{}, fmt.Errorf("bounds: %d broken promises; between 0 and %d are possible", tokens, int64(MostPromiseTokens))
	}
	key := promisedKey{n, k, tokens, beta, exactLast}
	if p, ok := knownPromised.remembered(key); ok {
		return p, nil
	}
	units := float64(n)
	scale := math.Pow(float64(k), 0.25) / math.Sqrt(units)
	guess := 2 * scale
	first := PromisedShare(0, tokens) * beta
	searched := cut(k, schedule(k))
	if k > sketchedQuestions {
		searched = sketch(k, schedule(k))
	}
	if exactLast {
		searched = freed(searched)
	}
	x, _ := minimum.Brent(func(log float64) float64 {
		w := promisedWidth(units, scaled(searched, units, math.Exp(log)), nil, first, guess)
		if !math.IsInf(w, 0) {
			guess = w
		}
		return w
	}, math.Log(scale/2)-2.5, math.Log(scale/2)+2.5, precise)
	p := Promised{Scale: math.Exp(x)}
	if k == 1 && exactLast { // it does not count
		p.Scale = 1
	}
	for f := range tokens + 1 {
		w, err := PromisedWidth(n, k, p.Scale, PromisedShare(f, tokens)*beta, f, exactLast)
		if err != nil {
			return Promised{}, err
		}
		p.Widths = append(p.Widths, w)
	}
	knownPromised.remember(key, p)
	return p, nil
}

// MostPromiseTokens keeps the list of widths short; each broken promise widens everybody's later intervals by about a fourth.
const MostPromiseTokens = 64

// PromisedShare is delta_f, the share of the plain answers' beta for runs in which f of at most tokens promises were broken.
func PromisedShare(f, tokens int64) float64 {
	switch {
	case tokens == 0:
		return 1
	case f == 0:
		return promisedFirst
	}
	return (1 - promisedFirst) / float64(tokens)
}

// PromisedWidth is W_f for a noise schedule that is given, from above: the W with
//
//	sum over i <= k of C(i-1+f, f) 2 PromisedMiss(W, sigma_i, I_{i-1}) = share.
//
// It bounds a plain answer and, times 2 sqrt(V) with the corrections of package promises, one with a promise that held.
func PromisedWidth(n, k int64, scale, share float64, f int64, exactLast bool) (float64, error) {
	if err := check(n, k, share); err != nil {
		return 0, err
	}
	if err := checkNoise(scale); err != nil {
		return 0, err
	}
	if n < PromisedUnits || f < 0 {
		return 0, fmt.Errorf("bounds: promises about %d units after %d broken ones; at least %d units are needed", n, f, PromisedUnits)
	}
	cuts := scheduled(float64(n), k, scale)
	if exactLast {
		cuts = lastExact(float64(n), k, scale)
	}
	patterns := make([]float64, len(cuts))
	position := int64(0)
	for i, c := range cuts {
		position += int64(c.count)
		patterns[i] = logBinomial(position-1+f, f) // at the stretch's last position, where there are most
	}
	return promisedWidth(float64(n), cuts, patterns, share, 4/math.Sqrt(float64(n))), nil
}

// promisedWidth solves for W; patterns are logarithms of how many there are of each stretch, none for one of each.
func promisedWidth(n float64, cuts []stretch, patterns []float64, share, guess float64) float64 {
	return solve(guess, func(w float64) float64 {
		total := 0.0
		for i, c := range cuts {
			narrow, released := w/rounding(n), c.released
			if c.fresh {
				narrow, released = w, 0
			}
			// Above the target the largest noise of the stretch counts; below it none helps.
			miss := c.count * promisedMiss(n, narrow, c.high, released)
			if patterns != nil {
				miss *= math.Exp(patterns[i])
			}
			total += miss
		}
		return math.Log(2 * total / share)
	})
}

// PromisedPatterns is by what the share of an interval outside the plain account is divided, as of a vector or a selection, when f of at most
// tokens promises are broken: C(last-1+f, f)/delta_f, last the last position that its step takes, not its first.
func PromisedPatterns(last, f, tokens int64) (float64, error) {
	if last < 1 || f < 0 || f > tokens {
		return 0, fmt.Errorf("bounds: no pattern has position %d and %d broken of %d promises", last, f, tokens)
	}
	return math.Exp(logBinomial(last-1+f, f)) / PromisedShare(f, tokens), nil
}
