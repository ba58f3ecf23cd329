package thresholdout

import "github.com/holdoutd/holdoutd/thresholdout/bounds"

// MaxRounds bounds the rounds of a guarantee: beyond, asking one by one is as narrow to a part in a hundred.
const MaxRounds = 64

// planRounds: questions in batches, each chosen before any of its answers is seen.
func planRounds(s Spec) (Mechanism, error) {
	s = s.orDefault(DefaultQuestions)
	switch {
	case s.Rounds < 1 || s.Rounds > min(MaxRounds, s.Questions):
		return nil, wrong("rounds", "%d rounds for %d questions; between 1 and %d are possible; beyond, leave rounds out", s.Rounds, s.Questions, min(MaxRounds, s.Questions))
	case s.Published:
		return nil, wrong("rounds", "no published bound knows of rounds")
	case s.Sigma != 0:
		return nil, wrong("sigma", "each round has a noise of its own, which is planned")
	}
	m := newGaussian(s)
	r, err := bounds.AdaptiveHoeffdingRounds(s.N, s.Questions, s.Rounds, m.plainBeta())
	if err != nil {
		return nil, err
	}
	m.RoundSigma, m.HalfWidth = r.Sigma, r.HalfWidth
	m.divide()
	return m, nil
}
