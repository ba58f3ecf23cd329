// Package bounds has the half-widths of intervals that hold for many adaptively chosen questions at once, and the best
// noise for each. Everything is in units of a row function with values in [0,1]; n is the number of independent units of the
// holdout, k the number of questions, beta = 1-confidence the probability that any of the k intervals misses.
//
// The proofs are in docs/proofs/adaptive-hoeffding.md; numeric checks are loaded from testdata/reference_numbers.json.
package bounds

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/minimum"
	"github.com/holdoutd/holdoutd/dp/normal"
)

// Limits of what the functions accept: beyond, float64 no longer tells n from n-1 or a question from none.
const (
	MinUnits     = 2
	MaxUnits     = 1 << 40
	MaxQuestions = 1 << 40
)

// Bound is the half-width of each of k simultaneous intervals.
type Bound struct {
	HalfWidth  float64
	Sigma      float64 // the noise: constant, or the scale s of the schedule
	Scheduled  bool
	Adaptivity float64 // the part sqrt(I/(2n)) that earlier answers cost the last one; the rest is sampling and noise
}

// The exponent of the adaptive max-information theorem is that of the best real m; m is an integer, and rounding it costs a
// little of a half-width, by which half-widths are multiplied: TestRounding integrates the tail with the best integer.
// Where I >= minInformation it is below 1e-4 from fewUnits on, and below 5e-4 down to roundingUnits. Any upper bound of the
// information serves in its place, so a smaller positive I is replaced by minInformation; below roundingUnits units the
// half-width comes from pcap, which has no rounding.
const (
	minInformation = 0.01
	roundingUnits  = 100
	fewUnits       = 200
)

func rounding(n float64) float64 {
	if n < fewUnits {
		return 1 + 1e-3
	}
	return 1 + 2e-4
}

// information is one answer's share of I in nats: 1/(8 sigma^2 (n-1)).
func information(n, sigma float64) float64 { return 1 / (8 * sigma * sigma * (n - 1)) }

// phi is the standard normal distribution function; accurate in the lower tail.
func phi(x float64) float64 { return normal.Upper(-x) }

// Miss bounds the probability that one side of the interval of one Gaussian answer misses, when I nats have been released
// before the question was chosen: pbar(W, sigma, I) of the proof, the expectation over the noise of the adaptive tail.
func Miss(n, w, sigma, released float64) float64 {
	d := (w - math.Sqrt(released/(2*n))) / sigma
	if d <= 0 {
		return 1
	}
	a := 2 * n * sigma * sigma
	c := 1 + 2*a
	return phi(-d) + math.Exp(-a*d*d/c)/math.Sqrt(c)*phi(d/math.Sqrt(c))
}

// missBetween bounds Miss for every noise between low and high: the tail falls with its argument, so the larger sigma
// counts where the noise adds to the deviation (Z > 0) and the smaller where it takes from it.
func missBetween(n, w, low, high, released float64) float64 {
	if low == high {
		return Miss(n, w, high, released)
	}
	shift := w - math.Sqrt(released/(2*n))
	if shift <= 0 {
		return 1
	}
	d := shift / high
	a := 2 * n * high * high
	c := 1 + 2*a
	above := phi(-d) + math.Exp(-a*d*d/c)/math.Sqrt(c)*(phi(d/math.Sqrt(c))-phi(-2*a*d/math.Sqrt(c)))
	d = shift / low
	a = 2 * n * low * low
	c = 1 + 2*a
	below := math.Exp(-a*d*d/c) / math.Sqrt(c) * phi(-2*a*d/math.Sqrt(c))
	return above + below
}

// stretch is a run of questions that are treated alike: their noise lies between low and high, and before the last of
// them was chosen at most released nats were out.
type stretch struct {
	count     float64
	low, high float64
	released  float64
	fresh     bool // nothing at all had been released
	exact     bool // no noise: the last question, after which nothing is chosen
}

// constant cuts k questions with the same noise.
func constant(n float64, k int64, sigma float64) []stretch {
	return scaled(cut(k, func(float64) float64 { return 1 }), n, sigma)
}

// Scheduled noise: sigma_j = s(1-u_j), u_j the root of 6u^2-8u^3+3u^4 = (j-1/2)/k. Early answers bear more noise, for
// little has been released before them.
func scheduled(n float64, k int64, s float64) []stretch {
	return scaled(cut(k, schedule(k)), n, s)
}

// lastExact is the same schedule, but for the last question, which bears no noise: nothing is chosen after it.
func lastExact(n float64, k int64, s float64) []stretch {
	return scaled(freed(cut(k, schedule(k))), n, s)
}

// freed takes the noise from the last question, which is a stretch of its own.
func freed(cuts []stretch) []stretch {
	last := &cuts[len(cuts)-1]
	last.low, last.high, last.exact = 0, 0, true
	return cuts
}

// schedule is the shape of the scheduled noise of k questions.
func schedule(k int64) func(j float64) float64 {
	return func(j float64) float64 { return shape(j, float64(k)) }
}

// ScheduledSigma returns sigma_j of the schedule with scale s, 1 <= j <= k.
func ScheduledSigma(s float64, j, k int64) float64 { return s * shape(float64(j), float64(k)) }

// shape returns 1-u_j by Newton's method kept inside a bracket; the polynomial rises from 0 to 1 on [0,1].
func shape(j, k float64) float64 {
	q := (j - 0.5) / k
	lo, hi := 0.0, 1.0
	u := math.Sqrt(q / 6)
	if q > 0.5 {
		u = 1 - math.Cbrt((1-q)/4)
	}
	for range 100 {
		f := u*u*(6+u*(-8+3*u)) - q
		if f > 0 {
			hi = u
		} else {
			lo = u
		}
		next := u - f/(12*u*(1-u)*(1-u))
		if !(next > lo && next < hi) {
			next = (lo + hi) / 2
		}
		if math.Abs(next-u) <= 1e-15 {
			return 1 - next
		}
		u = next
	}
	return 1 - u
}

// cut makes the stretches of k questions whose noise has the given shape, which must not increase with j, at the scale 1: of what is
// released the part 1/(8(n-1)) is left out.
func cut(k int64, shape func(j float64) float64) []stretch {
	var cuts []stretch
	released := 0.0
	for from := int64(0); from < k; {
		to := from + 1
		if k > exactQuestions { // the schedule changes quickly at both ends and slowly between them
			to = min(k, from+max(1, min(from, k-from)/stretchShare))
		}
		high, low := shape(float64(from+1)), shape(float64(to)) // questions from+1 to to
		each := 1 / (low * low)
		before := released + float64(to-from-1)*each
		cuts = append(cuts, stretch{count: float64(to - from), low: low, high: high, released: before, fresh: to == 1})
		released = before + each
		from = to
	}
	return cuts
}

// sketch is about cut, with few stretches: each is its middle question. It bounds nothing; the noise that is best for it is best for
// the questions to a part in ten thousand, and the half-width, which is flat there, to far less.
func sketch(k int64, shape func(j float64) float64) []stretch {
	var cuts []stretch
	released := 0.0
	for from := int64(0); from < k; {
		to := min(k, from+max(1, min(from, k-from)/sketchShare))
		middle, count := shape((float64(from+1)+float64(to))/2), float64(to-from)
		each := 1 / (middle * middle)
		cuts = append(cuts, stretch{count: count, low: middle, high: middle, released: released + (count-1)/2*each, fresh: to == 1})
		released += count * each
		from = to
	}
	return cuts
}

// scaled is stretches of scale 1 for noise of scale s about n units.
func scaled(unit []stretch, n, s float64) []stretch {
	cuts := make([]stretch, len(unit))
	for i, c := range unit {
		c.low, c.high = s*c.low, s*c.high
		c.released = max(c.released*information(n, s), minInformation)
		cuts[i] = c
	}
	return cuts
}

const (
	// exactQuestions is up to how many questions each is its own stretch.
	exactQuestions = 1 << 14
	// stretchShare: beyond that, a stretch is this part of the distance to the nearer end; it costs below 1e-3 of a width.
	stretchShare = 512
	// sketchedQuestions is from how many questions on the best noise is searched for on a sketch, with sketchShare in the
	// place of stretchShare: a search takes hundreds of passes over the stretches, the half-width itself ten.
	sketchedQuestions = 1 << 11
	// sketchedFew is the same for few units, where a term takes longer.
	sketchedFew = 1 << 6
	sketchShare = 32
)

// miss bounds the probability that any interval of half-width w misses.
func miss(n float64, cuts []stretch, w float64) float64 {
	total := 0.0
	for _, c := range cuts {
		switch {
		case c.exact && c.fresh:
			total += math.Exp(-2 * n * w * w)
		case c.exact:
			total += math.Exp(logAdapted(n, 2*n*w*w, c.released))
		case c.fresh:
			total += Miss(n, w, c.high, 0)
		case n >= roundingUnits:
			total += c.count * missBetween(n, w/rounding(n), c.low, c.high, c.released)
		default:
			total += c.count * bestCapped(n, w, c.low, c.high, c.released)
		}
	}
	return 2 * total
}

// bestCapped is the expectation, over noise between low and high, of the tail at the best of some integers m for each value of it, at most 1:
//
//	E min over m of min(1, e^{(n/m-1) I - 2 (n-m) t^2}),  t = max(0, w - sigma Z).
//
// The next larger m' is as good as m where t^2 = n I/(2 m m'), with m' = n for the tail that is 1; so each m has an interval of t for itself, in which the expectation
// is that of a normal density. The tail falls with t: of Z > 0 the larger noise counts, of Z < 0 the smaller.
func bestCapped(n, w, low, high, released float64) float64 {
	total := 2 * phi(-farNoise)
	upTo := w + farNoise*low // of t; beyond, and before the least, noise is rare
	least := w - farNoise*high
	for m := 1.0; m < n && upTo > max(least, 0); {
		next := min(math.Floor(m*closeM)+1, n)
		from := math.Sqrt(n * released / (2 * m * next))
		lead := (n/m - 1) * released
		if upTo > w && from < upTo { // Z < 0
			total += heldBetween(n-m, w, low, lead, max(from, w), upTo)
		}
		if from < w {
			total += heldBetween(n-m, w, high, lead, max(from, least), min(upTo, w))
		}
		m, upTo = next, min(upTo, from)
	}
	if upTo >= w {
		return 1
	}
	return min(1, total+phi((upTo-w)/high))
}

const (
	// farNoise: noise beyond so many standard deviations is counted as a miss; it has a probability of 1e-23.
	farNoise = 10
	// closeM is the ratio of one m to the next. Every m is valid; a tail whose m is off by a fortieth is larger by a part in a hundred.
	closeM = 1.05
)

// heldBetween is e^lead times the expectation of e^{-2 n t^2} where t = w - sigma Z is between two numbers.
func heldBetween(n, w, sigma, lead, from, to float64) float64 {
	c := 1 + 4*n*sigma*sigma
	// Of Z: e^{-2n(w-sigma z)^2 - z^2/2} is e^{-2nw^2/c} times a normal density around 4nw sigma/c with the variance 1/c.
	centre, root := 4*n*w*sigma/c, math.Sqrt(c)
	least, most := ((w-to)/sigma-centre)*root, ((w-from)/sigma-centre)*root
	if least > 0 { // accurate in the upper tail, too
		least, most = -most, -least
	}
	mass := logPhi(most) // in logarithms: the factors may be far out of a float64's range while their product is not
	mass += math.Log(-math.Expm1(logPhi(least) - mass))
	return math.Exp(lead - 2*n*w*w/c - math.Log(c)/2 + mass)
}

// width solves miss(w) = beta for w, from above: what it returns never misses more often than beta. guess is where to look
// first.
func width(n float64, cuts []stretch, beta, guess float64) float64 {
	return solve(guess, func(w float64) float64 { return math.Log(miss(n, cuts, w) / beta) })
}

// solve finds from above where excess, which falls with the half-width, is 0. False position on the logarithm of the
// probability, which is smooth; the Illinois rule keeps both ends moving.
func solve(guess float64, excess func(w float64) float64) float64 {
	lo, hi := guess, guess
	atLo := excess(guess)
	atHi := atLo
	step := 1.02
	for ; atHi > 0; step *= step { // look further and further up
		lo, atLo = hi, atHi
		if hi *= step; hi > widest {
			return math.Inf(1)
		}
		atHi = excess(hi)
	}
	for ; !(atLo > 0); step *= step { // or down
		hi, atHi = lo, atLo
		if lo /= step; lo < narrowest {
			return hi
		}
		atLo = excess(lo)
	}
	for side := 0; hi-lo > 1e-10*hi; {
		w := hi - atHi*(hi-lo)/(atHi-atLo)
		if !(w > lo && w < hi) || math.IsInf(atHi, 0) {
			w = (lo + hi) / 2
		}
		switch at := excess(w); {
		case at <= 0:
			if at > -1e-9 {
				return w
			}
			hi, atHi = w, at
			if side == -1 {
				atLo /= 2
			}
			side = -1
		default:
			lo, atLo = w, at
			if side == 1 {
				atHi /= 2
			}
			side = 1
		}
	}
	return hi
}

// The search for a half-width gives up where it is far beyond 1 and says nothing, and far below what n units allow.
const (
	widest    = 1e6
	narrowest = 1e-12
)

// hopeless: with so many questions for each squared unit even the released information alone, sqrt(I/(2n)), or the noise that
// keeps it small are above 10; the half-width is given as infinite without a search.
func hopeless(n, k float64) bool { return k > 1e4*n*n }

// ConstantNoise is the half-width of k answers with the same Gaussian noise sigma.
func ConstantNoise(n, k int64, beta, sigma float64) (Bound, error) {
	if err := check(n, k, beta); err != nil {
		return Bound{}, err
	}
	if !(sigma > 0) || math.IsInf(sigma, 0) {
		return Bound{}, fmt.Errorf("bounds: sigma %v is not a positive number", sigma)
	}
	cuts := constant(float64(n), k, sigma)
	w := width(float64(n), cuts, beta, 4/math.Sqrt(float64(n)))
	return Bound{HalfWidth: w, Sigma: sigma, Adaptivity: adaptivity(float64(n), cuts, w)}, nil
}

// AdaptiveHoeffding is the narrowest half-width with constant noise, with that noise.
func AdaptiveHoeffding(n, k int64, beta float64) (Bound, error) {
	return best(search{n: n, k: k, beta: beta}, func(float64) float64 { return 1 })
}

// AdaptiveHoeffdingScheduled is the narrowest half-width with the noise schedule; Sigma is its scale s.
func AdaptiveHoeffdingScheduled(n, k int64, beta float64) (Bound, error) {
	return best(search{n: n, k: k, beta: beta, scheduled: true}, schedule(k))
}

// LastExact is the narrowest half-width with the noise schedule for all questions but the last, which is answered without noise: after it nothing
// is chosen. Sigma is the schedule's scale; 0 for a single question.
func LastExact(n, k int64, beta float64) (Bound, error) {
	if k == 1 {
		err := check(n, k, beta)
		return Bound{HalfWidth: Exact(float64(n), 1, beta, 0), Scheduled: true}, err
	}
	return best(search{n: n, k: k, beta: beta, scheduled: true, lastExact: true}, schedule(k))
}

func best(key search, shape func(j float64) float64) (Bound, error) {
	n, k, beta := key.n, key.k, key.beta
	if err := check(n, k, beta); err != nil {
		return Bound{}, err
	}
	if b, ok := searches.remembered(key); ok {
		return b, nil
	}
	if hopeless(float64(n), float64(k)) {
		return Bound{HalfWidth: math.Inf(1), Sigma: 1, Scheduled: key.scheduled}, nil
	}
	// W sqrt(n) at its best grows like k^(1/4); so does the noise, which brackets the minimum.
	units := float64(n)
	scale := math.Pow(float64(k), 0.25) / math.Sqrt(units)
	guess := 2 * scale
	fine := cut(k, shape)
	searched := fine
	sketched := k > sketchedQuestions || n < roundingUnits && k > sketchedFew
	if sketched {
		searched = sketch(k, shape)
	}
	if key.lastExact {
		fine, searched = freed(fine), freed(searched)
	}
	at := func(logSigma float64) float64 {
		if w := width(units, scaled(searched, units, math.Exp(logSigma)), beta, guess); !math.IsInf(w, 0) {
			guess = w // the next is near
			return w
		}
		return math.Inf(1)
	}
	x, w := minimum.Brent(at, math.Log(scale/2)-2.5, math.Log(scale/2)+2.5, precise)
	b := Bound{HalfWidth: w, Sigma: math.Exp(x), Scheduled: key.scheduled}
	cuts := scaled(fine, units, b.Sigma)
	if sketched {
		b.HalfWidth = width(units, cuts, beta, guess)
	}
	b.Adaptivity = adaptivity(units, cuts, b.HalfWidth)
	searches.remember(key, b)
	return b, nil
}

// adaptivity is the last answer's, at most w: a half-width that says nothing has no more parts.
func adaptivity(n float64, cuts []stretch, w float64) float64 {
	last := cuts[len(cuts)-1]
	if last.fresh {
		return 0
	}
	return min(math.Sqrt(last.released/(2*n)), w)
}

func check(n, k int64, beta float64) error {
	switch {
	case n < MinUnits || n > MaxUnits:
		return fmt.Errorf("bounds: %d units; between %d and %d are possible", n, MinUnits, int64(MaxUnits))
	case k < 1 || k > MaxQuestions:
		return fmt.Errorf("bounds: %d questions; between 1 and %d are possible", k, int64(MaxQuestions))
	case !(beta > 0 && beta < 1):
		return fmt.Errorf("bounds: a confidence of %v is not strictly between 0 and 1", 1-beta)
	}
	return nil
}
