package compare

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
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

// What a method assumes beside independent units.
const (
	// AssumesNothing: the half-width holds for any analyst who asks one question after the other.
	AssumesNothing = "nothing"

	assumesBatch = "all questions are fixed before any answer is seen"
	assumesAlike = "units are alike: drawn from one population"
)

// method is one way to answer and bound k questions.
type method struct {
	name      string
	mechanism thresholdout.Name // that plans it; "" where it is a formula alone
	published bool
	applies   func(r Request) bool
	at        func(r Request, k int64) (promise, error)
}

// promise is what a method has for a number of questions; its half-width is +Inf where it has none.
type promise struct {
	halfWidth, sigma float64
	parts            map[string]float64
	assumes          string
	rounds           int64
}

func always(Request) bool         { return true }
func inRounds(r Request) bool     { return r.Rounds > 0 }
func withTraining(r Request) bool { return r.Training > 0 }

// formula is a bound of the literature with its own best noise, which no holdout is created with.
func formula(f func(n, k int64, beta float64) (bounds.Transfer, error)) func(Request, int64) (promise, error) {
	return func(r Request, k int64) (promise, error) {
		t, err := f(r.N, k, r.beta())
		return promise{halfWidth: t.HalfWidth, sigma: t.Sigma, assumes: AssumesNothing,
			parts: map[string]float64{"noise": t.Noise, "sampling_and_adaptivity": t.Adaptivity}}, err
	}
}

// methods in the order in which a plan lists them: what needs an assumption first and last, between them by age.
var methods = []method{
	{MethodNonAdaptive, "", true, always, nonAdaptive},
	{MethodSplitting, thresholdout.Split, true, always, splitting},
	{MethodDFHPRR, "", true, always, formula(bounds.DFHPRR)},
	{MethodBNSSSU, "", true, always, formula(bounds.BNSSSU)},
	{MethodRZ, "", true, always, formula(bounds.RZ)},
	{MethodXR, "", true, always, formula(bounds.XR)},
	{MethodJLNRSS20, "", true, always, formula(bounds.JLNRSS20)},
	{MethodJLNRSSPlus, "", true, always, formula(bounds.JLNRSSPlus)},
	{MethodJLNRSSGDP, thresholdout.Gaussian, true, always, publishedNoise},
	{MethodTanh, "", false, always, formula(bounds.TanhTransfer)},
	{MethodConstant, thresholdout.Gaussian, false, always, constantNoise},
	{MethodScheduled, thresholdout.Gaussian, false, always, scheduledNoise},
	{MethodRounds, thresholdout.Gaussian, false, inRounds, roundsOf},
	{MethodGuessCheck, thresholdout.GuessAndCheck, false, withTraining, comparing(thresholdout.GuessAndCheck)},
	{MethodThresholdout, thresholdout.Thresholdout, false, withTraining, comparing(thresholdout.Thresholdout)},
}

// created is what a holdout with these settings promises of its last answer, with so many tokens spent as are named, one promise for each.
// A guarantee that cannot be given promises nothing: its half-width is infinite.
func (r Request) created(spec thresholdout.Spec, k int64, tokens ...int64) ([]promise, error) {
	spec.N, spec.Questions, spec.Confidence = r.N, k, r.Confidence
	promises := make([]promise, len(tokens))
	p, err := thresholdout.Plan(spec)
	var refused *thresholdout.ParamError
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	for i, spent := range tokens {
		promises[i] = promise{halfWidth: math.Inf(1), assumes: AssumesNothing}
		if refused != nil {
			continue
		}
		of, ok := p.Promised(spent)
		if !ok {
			return nil, fmt.Errorf("compare: the mechanism %s promises no interval", p.Mechanism)
		}
		promises[i].halfWidth, promises[i].sigma, promises[i].parts = of.HalfWidth, of.Sigma, of.Parts
	}
	return promises, nil
}

// plain is what a mechanism without tokens promises.
func (r Request) plain(spec thresholdout.Spec, k int64) (promise, error) {
	promises, err := r.created(spec, k, 0)
	if err != nil {
		return promise{}, err
	}
	return promises[0], nil
}

func nonAdaptive(r Request, k int64) (promise, error) {
	w := bounds.Exact(float64(r.N), float64(k), r.beta(), 0)
	return promise{halfWidth: w, parts: map[string]float64{"sampling": w}, rounds: 1, assumes: assumesBatch}, nil
}

func splitting(r Request, k int64) (promise, error) {
	p, err := r.plain(thresholdout.Spec{Mechanism: thresholdout.Split}, k)
	p.assumes = assumesAlike
	return p, err
}

func publishedNoise(r Request, k int64) (promise, error) {
	return r.plain(thresholdout.Spec{Mechanism: thresholdout.Gaussian, Published: true}, k)
}

// constantNoise is what an owner gets who names the best constant noise.
func constantNoise(r Request, k int64) (promise, error) {
	sigma, err := thresholdout.BestSigma(r.N, k, r.Confidence)
	if err != nil {
		return promise{}, err
	}
	return r.plain(thresholdout.Spec{Mechanism: thresholdout.Gaussian, Sigma: sigma}, k)
}

func scheduledNoise(r Request, k int64) (promise, error) {
	return r.plain(thresholdout.Spec{Mechanism: thresholdout.Gaussian}, k)
}

func roundsOf(r Request, k int64) (promise, error) {
	rounds := min(r.Rounds, k)
	p, err := r.plain(thresholdout.Spec{Mechanism: thresholdout.Gaussian, Rounds: rounds}, k)
	p.rounds = rounds
	p.assumes = fmt.Sprintf("%s, the questions of a round fixed before any of its answers is seen", plural(rounds, "round"))
	return p, err
}

// comparing is a mechanism that compares with a training part, with no token spent.
func comparing(m thresholdout.Name) func(Request, int64) (promise, error) {
	return func(r Request, k int64) (promise, error) {
		tokens := r.tokens(k)
		of, err := r.created(thresholdout.Spec{Mechanism: m, Training: r.Training, Tokens: tokens}, k, 0, tokens)
		if err != nil {
			return promise{}, err
		}
		p := of[0]
		p.assumes = surprises(tokens, of[1].halfWidth)
		return p, nil
	}
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
