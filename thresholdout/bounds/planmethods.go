package bounds

import (
	"fmt"
	"math"
)

// Names of the methods that Plan compares.
const (
	MethodNonAdaptive  = "non-adaptive"
	MethodSplitting    = "splitting"
	MethodBNSSSU       = "bnsssu"
	MethodDFHPRR       = "dfhprr"
	MethodRZ           = "rz"
	MethodXR           = "xr"
	MethodJLNRSS20     = "jlnrss20"
	MethodJLNRSSPlus   = "jlnrss-plus"
	MethodJLNRSSGDP    = "jlnrss-gdp"
	MethodTanh         = "tanh-transfer"
	MethodConstant     = "adaptive-hoeffding"
	MethodScheduled    = "adaptive-hoeffding-scheduled"
	MethodRounds       = "adaptive-hoeffding-rounds"
	MethodGuessCheck   = "guess-and-check"
	MethodThresholdout = "thresholdout"
)

// assumesNothing: the half-width holds for any analyst who asks one question after the other.
const assumesNothing = "nothing"

// method is one way to answer and bound k questions.
type method struct {
	name      string
	mechanism string
	published bool
	applies   func(r Request) bool
	at        func(r Request, k int64) (promise, error)
}

// promise is what a method has for a number of questions.
type promise struct {
	halfWidth, sigma float64
	parts            map[string]float64
	assumes          string
	rounds           int64
}

func always(Request) bool         { return true }
func inRounds(r Request) bool     { return r.Rounds > 0 }
func withTraining(r Request) bool { return r.Training > 0 }
func published(f transferFunc) func(Request, int64) (promise, error) {
	return func(r Request, k int64) (promise, error) {
		t, err := f(r.N, k, r.beta())
		return promise{halfWidth: t.HalfWidth, sigma: t.Sigma, assumes: assumesNothing,
			parts: map[string]float64{"noise": t.Noise, "sampling_and_adaptivity": t.Adaptivity}}, err
	}
}

type transferFunc func(n, k int64, beta float64) (Transfer, error)

// methods in the order in which a plan lists them: what needs an assumption first and last, between them by age.
var methods = []method{
	{MethodNonAdaptive, "gaussian", true, always, nonAdaptive},
	{MethodSplitting, "split", true, always, splitting},
	{MethodDFHPRR, "gaussian", true, always, published(DFHPRR)},
	{MethodBNSSSU, "gaussian", true, always, published(BNSSSU)},
	{MethodRZ, "gaussian", true, always, published(RZ)},
	{MethodXR, "gaussian", true, always, published(XR)},
	{MethodJLNRSS20, "gaussian", true, always, published(JLNRSS20)},
	{MethodJLNRSSPlus, "gaussian", true, always, published(JLNRSSPlus)},
	{MethodJLNRSSGDP, "gaussian", true, always, published(JLNRSSGDP)},
	{MethodTanh, "gaussian", false, always, published(TanhTransfer)},
	{MethodConstant, "gaussian", false, always, constantNoise},
	{MethodScheduled, "gaussian", false, always, scheduledNoise},
	{MethodRounds, "gaussian", false, inRounds, roundsOf},
	{MethodGuessCheck, "guess_and_check", false, withTraining, guessAndCheck},
	{MethodThresholdout, "thresholdout", false, withTraining, thresholdout},
}

func nonAdaptive(r Request, k int64) (promise, error) {
	if err := check(r.N, k, r.beta()); err != nil {
		return promise{}, err
	}
	w := Exact(float64(r.N), float64(k), r.beta(), 0)
	return promise{halfWidth: w, parts: map[string]float64{"sampling": w}, rounds: 1,
		assumes: "all questions are fixed before any answer is seen"}, nil
}

func splitting(r Request, k int64) (promise, error) {
	b, err := Splitting(r.N, k, r.beta())
	return promise{halfWidth: b.HalfWidth, parts: map[string]float64{"sampling": b.HalfWidth}, assumes: assumesNothing}, err
}

func constantNoise(r Request, k int64) (promise, error) {
	b, err := AdaptiveHoeffding(r.N, k, r.beta())
	return gaussianWidth(b), err
}

func scheduledNoise(r Request, k int64) (promise, error) {
	b, err := AdaptiveHoeffdingScheduled(r.N, k, r.beta())
	return gaussianWidth(b), err
}

// gaussianWidth has the parts of the last answer, to which most was released before.
func gaussianWidth(b Bound) promise {
	return promise{halfWidth: b.HalfWidth, sigma: b.Sigma, assumes: assumesNothing,
		parts: map[string]float64{"sampling_and_noise": b.HalfWidth - b.Adaptivity, "adaptivity": b.Adaptivity}}
}

func roundsOf(r Request, k int64) (promise, error) {
	rounds := min(r.Rounds, k)
	b, err := AdaptiveHoeffdingRounds(r.N, k, rounds, r.beta())
	if err != nil {
		return promise{}, err
	}
	adaptivity := min(b.Adaptivity, b.HalfWidth)
	return promise{halfWidth: b.HalfWidth, sigma: b.Sigma[0], rounds: rounds,
		assumes: fmt.Sprintf("%s, the questions of a round fixed before any of its answers is seen", plural(rounds, "round")),
		parts:   map[string]float64{"sampling_and_noise": b.HalfWidth - adaptivity, "adaptivity": adaptivity}}, nil
}

// disagreement is three standard deviations of the difference of a training and a holdout mean at their largest: a good guess is
// off by more about three times in a thousand.
func disagreement(r Request) float64 {
	return 1.5 * math.Sqrt(1/float64(r.N)+1/float64(r.Training))
}

func guessAndCheck(r Request, k int64) (promise, error) {
	if err := check(r.N, k, r.beta()); err != nil {
		return promise{}, err
	}
	// What the mechanism plans: two widths, releases as near as the narrower one, for a mean of one half.
	g := GradedCheck{N: r.N, Questions: k, Tokens: r.tokens(k), Beta: r.beta(), Widths: 2}
	guess := min(disagreement(r), 0.5)
	g = g.PlannedRelease(guess)
	at := func(failed int64) float64 {
		_, high := ChernoffInterval(float64(r.N), 0.5+guess, g.Level(k-1, failed, 0))
		return high - 0.5
	}
	w := at(0)
	return promise{halfWidth: w, sigma: g.Sigma, assumes: surprises(g.Tokens, at(min(g.Tokens, k-1))),
		parts: map[string]float64{"sampling_and_adaptivity": w - guess, "disagreement": guess}}, nil
}

func thresholdout(r Request, k int64) (promise, error) {
	if err := check(r.N, k, r.beta()); err != nil {
		return promise{}, err
	}
	t := ForcedRuns{N: r.N, Questions: k, Tokens: r.tokens(k), Beta: r.beta(), Threshold: min(1, disagreement(r))}
	t.Comparison = t.TunedNoise()
	t.Release = t.Comparison
	return promise{halfWidth: t.Pass(k-1, 0), sigma: t.Release, assumes: surprises(t.Tokens, t.Pass(k-1, t.Tokens)),
		parts: map[string]float64{"threshold": t.Threshold, "noise": t.ComparisonNoise(), "sampling": t.Sampling(k-1, 0)}}, nil
}

// surprises says for a mechanism that compares with training: intervals hold for any analyst; how narrow they stay does not.
func surprises(tokens int64, after float64) string {
	return fmt.Sprintf("nothing to be valid; to stay this narrow, training means that agree with the holdout: each of %s that does not widens later intervals, at the end to ±%.3g",
		plural(tokens, "question"), after)
}

func plural(count int64, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return thousands(count) + " " + noun + "s"
}

// thousands writes 4231 as 4,231.
func thousands(count int64) string {
	s := fmt.Sprint(count)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
