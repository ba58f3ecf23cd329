package attack

import (
	"encoding/json"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// answers are the answers whose noise is known beforehand: by which state each is given, and with which standard deviation, or scale where the noise is Laplace's.
type answers struct {
	any     bool
	forced  bool // they come from the holdout only where the training part is far off, for a token each
	laplace bool
	n       int64
	states  []thresholdout.State // of each such answer, where it does not depend on earlier ones; nil where forced
	sigma   func(j int64) float64
	count   int64 // how many there are, the first of the run
}

// noiseOf is the noise that the guarantee promises.
func noiseOf(g thresholdout.Guarantee) answers {
	a := answers{n: g.N, sigma: func(int64) float64 { return 0 }}
	promise, ok := g.Promised(0)
	if !ok || promise.Sigma == 0 {
		return a
	}
	if _, fresh := g.Own().(thresholdout.Fresh); !fresh {
		a.forced, a.count = true, min(g.Questions, g.Tokens)
		a.sigma = func(int64) float64 { return promise.Sigma }
		a.laplace = formOf(g) == thresholdout.FormLaplace
		a.any = a.count > 0
		return a
	}
	a.sigma = func(j int64) float64 {
		_, sigma, ok := g.FreshNoise(thresholdout.State{}, stateAt(g, j))
		if !ok {
			return 0
		}
		return sigma
	}
	for a.count < g.Questions && a.sigma(a.count) > 0 {
		a.count++
	}
	a.any = a.count > 0
	return a
}

// stateAt is the state before question j of a run in which all questions of a round are asked.
func stateAt(g thresholdout.Guarantee, j int64) thresholdout.State {
	s := thresholdout.State{Questions: j}
	for g.Rounds > 0 && s.Rounds < g.Rounds && j >= g.RoundSize(s.Rounds) {
		j -= g.RoundSize(s.Rounds)
		s.Rounds++
	}
	if g.Rounds > 0 {
		s.InRound = j
	}
	return s
}

// information is how many nats the noisy values of so many answers tell of the holdout's units at most, where the units are independent: docs/AUDIT.md, section 2.
func (a answers) information(count int64) float64 {
	n, total := float64(a.n), 0.0
	for j := range count {
		s := a.sigma(j)
		total += n / (8 * s * s * (n - 1) * (n - 1))
	}
	return total
}

// weight is how strongly answer j counts in a likelihood ratio: the reciprocal of its noise's variance.
func (a answers) weight(j int64) float64 { return 1 / (a.sigma(j) * a.sigma(j)) }

// formOf is the form of thresholdout: "" of other mechanisms.
func formOf(g thresholdout.Guarantee) thresholdout.Form {
	var has struct {
		Form thresholdout.Form `json:"form"`
	}
	if text, err := json.Marshal(g); err != nil || json.Unmarshal(text, &has) != nil {
		return ""
	}
	return has.Form
}
