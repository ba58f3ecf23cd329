package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// Names of the methods that Plan compares.
const (
	MethodNonAdaptive  = "non-adaptive"
	MethodSplitting    = thresholdout.MethodSplitting
	MethodBNSSSU       = "bnsssu"
	MethodDFHPRR       = "dfhprr"
	MethodRZ           = "rz"
	MethodXR           = "xr"
	MethodJLNRSS20     = "jlnrss20"
	MethodJLNRSSPlus   = "jlnrss-plus"
	MethodJLNRSSGDP    = thresholdout.MethodPublished
	MethodTanh         = "tanh-transfer"
	MethodConstant     = thresholdout.MethodConstant
	MethodScheduled    = thresholdout.MethodScheduled
	MethodRounds       = thresholdout.MethodRounds
	MethodGuessCheck   = thresholdout.MethodGuessCheck
	MethodThresholdout = thresholdout.MethodThresholdout
	MethodCells        = thresholdout.MethodCells
)

// What a method assumes beside independent units.
const (
	// AssumesNothing: the half-width holds for any analyst who asks one question after the other.
	AssumesNothing = "nothing"

	assumesBatch     = "all questions are fixed before any answer is seen"
	assumesAlike     = "units are alike: drawn from one population"
	assumesRounds    = "questions come in rounds, those of a round fixed before any of its answers is seen"
	assumesCells     = "every question is constant on each declared cell"
	assumesAgreement = "nothing to be valid; to stay this narrow, training means that agree with the holdout"
)

// method is one way to answer and bound k questions.
type method struct {
	name      string
	mechanism thresholdout.Name // that plans it; "" where it is a formula alone
	described
	applies func(r Request) bool
	at      func(r Request, k int64) (promise, error)
}

// described is what a person wants to know of a method or an interval.
type described struct {
	formula, assumes, source string
	published                string // "yes", or what of it is; "" for a bound of this project
}

// promise is what a method has for a number of questions; its half-width is +Inf where it has none.
type promise struct {
	halfWidth, sigma float64
	parts            map[string]float64
	assumes          string
	rounds           int64
}

// order is that of a plan: what needs an assumption first and last, between them by age. Others come after these.
var order = []string{MethodNonAdaptive, MethodSplitting, MethodDFHPRR, MethodBNSSSU, MethodRZ, MethodXR, MethodJLNRSS20, MethodJLNRSSPlus, MethodJLNRSSGDP,
	MethodTanh, MethodConstant, MethodScheduled, MethodRounds, MethodGuessCheck, MethodThresholdout, MethodCells}

// methods are the bounds of the literature and the methods of all mechanisms, in the order in which a plan lists them.
func methods() []method {
	all := slices.Clone(formulas)
	for _, kind := range thresholdout.Kinds() {
		for _, m := range kind.Methods {
			all = append(all, methodOf(kind, m))
		}
	}
	place := func(m method) int {
		if i := slices.Index(order, m.name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b method) int { return cmp.Compare(place(a), place(b)) })
	return all
}

// methodOf is a method of a mechanism: what a holdout that is created with it gets.
func methodOf(kind thresholdout.Kind, m thresholdout.Method) method {
	compares, celled := thresholdout.Does[thresholdout.Compares](kind), thresholdout.Does[thresholdout.Celled](kind)
	assumes := AssumesNothing
	switch {
	case thresholdout.Does[thresholdout.Slices](kind):
		assumes = assumesAlike
	case celled:
		assumes = assumesCells
	case m.InRounds:
		assumes = assumesRounds
	case compares:
		assumes = assumesAgreement
	}
	return method{name: m.Name, mechanism: kind.Name, described: described{m.Formula, assumes, m.Source, m.Published},
		applies: func(r Request) bool {
			return (!compares || r.Training > 0) && (!m.InRounds || r.Rounds > 0) && (!celled || r.Cells > 0)
		},
		at: func(r Request, k int64) (promise, error) {
			spec := thresholdout.Spec{Mechanism: kind.Name, N: r.N, Questions: k, Confidence: r.Confidence,
				Published: m.Published != "" && slices.Contains(kind.Takes, thresholdout.ParamBounds)}
			if celled {
				spec.Cells = r.Cells
			}
			if compares {
				spec.Training = r.Training
			}
			if kind.HasTokens() && !thresholdout.Does[thresholdout.Promises](kind) {
				spec.Tokens = r.tokens(k)
			}
			if r.HalfWidth != 0 && slices.Contains(kind.Takes, thresholdout.ParamHalfWidth) {
				spec.HalfWidth = thresholdout.MaxSigma // who asks for one gets a holdout in which nothing widens answers: no tokens for broken promises
			}
			if m.InRounds {
				spec.Rounds = min(r.Rounds, k)
			}
			if m.Sigma != nil {
				var err error
				if spec.Sigma, err = m.Sigma(spec.N, k, spec.Confidence); err != nil {
					return promise{}, err
				}
			}
			p, err := created(spec)
			if !compares {
				p.assumes = assumes
			}
			if m.InRounds {
				p.rounds = spec.Rounds
				p.assumes = fmt.Sprintf("%s, the questions of a round fixed before any of its answers is seen", plural(spec.Rounds, "round"))
			}
			return p, err
		}}
}

// created is what a holdout with these settings promises of its last answer with no token spent. A guarantee that cannot be given promises
// nothing: its half-width is infinite.
func created(spec thresholdout.Spec) (promise, error) {
	g, err := thresholdout.Plan(spec)
	var refused *thresholdout.ParamError
	if errors.As(err, &refused) {
		return promise{halfWidth: math.Inf(1), assumes: AssumesNothing}, nil
	}
	if err != nil {
		return promise{}, err
	}
	of, ok := g.Promised(0)
	if !ok {
		return promise{}, fmt.Errorf("compare: the mechanism %s promises no interval", g.Mechanism)
	}
	p := promise{halfWidth: of.HalfWidth, sigma: of.Sigma, parts: of.Parts}
	if g.UsesTraining() {
		last, _ := g.Promised(g.Tokens)
		p.assumes = spentTokens(g.Tokens, last.HalfWidth)
	}
	return p, nil
}

// spentTokens says for a mechanism that compares with training: intervals hold for any analyst; how narrow they stay does not.
func spentTokens(tokens int64, after float64) string {
	return fmt.Sprintf("%s: each of %s that does not widens later intervals, at the end to ±%.3g", assumesAgreement, plural(tokens, "question"), after)
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
