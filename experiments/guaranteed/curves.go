package guaranteed

import (
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// curve is one way to be sure of answers: how many it is sure of.
type curve struct {
	name  string
	rival string // of analysts.Rivals, where an attack makes all answers come from the holdout and the curve is about such answers
	apart apart  // how it is held to the separate program's
	// most is the largest number of questions all of whose answers are within w, at 95%, about n units.
	most func(n int64, w float64) (int64, error)
}

// apart is between which counts of the separate program a curve lies, and how much lower it may be.
type apart struct {
	low, high string // run.Row.Set
	least     float64
}

var (
	same = apart{countedApart, countedApart, 1 - tolerance}
	// between: the overshoot theorem (docs/proofs/overshoot.md) has a factor less than Chernoff's inequality, which is at best the normal law's.
	between = apart{byChernoff, byNormalLaw, 1 - tolerance}
)

// Names of the curves.
const (
	gaussian      = "gaussian"
	inRounds      = "gaussian, 5 rounds"
	split         = "split"
	guessing      = "guess_and_check, 20 tokens"
	guessesFail   = "guess_and_check, all guesses fail"
	comparing     = "thresholdout, 20 tokens"
	answersDiffer = "thresholdout, all answers differ"
	dwork         = "Dwork et al. 2015"
	bassily       = "Bassily et al. 2016"
	rogers        = "Rogers et al. 2020"
	jung          = "Jung et al. 2020"
)

const (
	confidence = 0.95
	rounds     = 5
	tokens     = thresholdout.DefaultTokens
)

// curves are what holdoutd offers first, by the plans that it makes; then the bounds of the literature, by its planner.
var curves = []curve{
	{gaussian, "gaussian", same, planned(func(n int64, w float64) thresholdout.Spec {
		return thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: n, HalfWidth: w}
	})},
	{inRounds, "", same, method(compare.MethodRounds)},
	{guessing, "", between, spent(thresholdout.GuessAndCheck, tokens)},
	{guessesFail, "guess_and_check", between, spent(thresholdout.GuessAndCheck, bounds.MaxQuestions)},
	{comparing, "", between, spent(thresholdout.Thresholdout, tokens)},
	{answersDiffer, "thresholdout", between, spent(thresholdout.Thresholdout, bounds.MaxQuestions)},
	{split, "split", same, method(compare.MethodSplitting)},
	{dwork, "", same, method(compare.MethodDFHPRR)},
	{bassily, "", same, method(compare.MethodBNSSSU)},
	{rogers, "", same, method(compare.MethodRZ)},
	{"Xu and Raginsky 2017", "", same, method(compare.MethodXR)},
	{jung, "", same, method(compare.MethodJLNRSS20)},
	{"Jung et al., free constants", "", same, method(compare.MethodJLNRSSPlus)},
	{"Jung et al., exact accounting", "", same, method(compare.MethodJLNRSSGDP)},
}

func curveOf(rival string) (curve, bool) {
	for _, c := range curves {
		if c.rival == rival {
			return c, true
		}
	}
	return curve{}, false
}

// planned asks the mechanism itself how many questions it can promise a half-width.
func planned(spec func(n int64, w float64) thresholdout.Spec) func(int64, float64) (int64, error) {
	return func(n int64, w float64) (int64, error) {
		s := spec(n, w)
		s.Confidence = confidence
		g, err := thresholdout.Plan(s)
		var refused *thresholdout.ParamError
		switch {
		case errors.As(err, &refused): // too narrow for a single one
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("experiments: guaranteed: %w", err)
		}
		return g.Questions, nil
	}
}

// method is the planner's half-width by a method, inverted.
func method(name string) func(int64, float64) (int64, error) {
	return func(n int64, w float64) (int64, error) {
		r := compare.Request{N: n, Confidence: confidence, Rounds: rounds, HalfWidth: w}
		return bounds.LargestWithin(w, func(k int64) (float64, error) { return compare.HalfWidthOf(name, r, k) })
	}
}

// spent is the largest number of questions of which the last one is answered within w although all tokens are spent: what is promised whatever the
// analyst asks. The training part has as many units as the holdout.
func spent(name thresholdout.Name, tokens int64) func(int64, float64) (int64, error) {
	return func(n int64, w float64) (int64, error) {
		return bounds.LargestWithin(w, func(k int64) (float64, error) {
			g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: name, N: n, Training: n, Questions: k, Tokens: min(tokens, k), Confidence: confidence})
			if err != nil {
				return 0, fmt.Errorf("experiments: guaranteed: %w", err)
			}
			last, ok := g.Promised(g.Tokens)
			if !ok {
				return 0, fmt.Errorf("experiments: guaranteed: %s promises nothing", name)
			}
			return last.HalfWidth, nil
		})
	}
}
