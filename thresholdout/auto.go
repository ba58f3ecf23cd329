package thresholdout

var autoKind = Kind{
	Name:  Auto,
	Says:  "guess_and_check if its planned intervals are narrower or tokens are given, else gaussian",
	Takes: []string{ParamTokens, ParamRounds, ParamHalfWidth, ParamSigma, ParamBounds, ParamSealed},
	Plan:  planAuto,
}

// planAuto chooses the mechanism of a guarantee that names none, from public facts alone:
//
// guess_and_check where there is a training part to guess from and its owner gave tokens or sealed units, or its planned half-width is the
// narrower one; else gaussian. The intervals of both hold for any analyst. gaussian answers every question; guess_and_check
// assumes that guesses from training are good in order not to run out of tokens. A half-width or a noise that the owner asks
// for is a promise about every answer, which gaussian alone can make.
//
// Where only published bounds are wanted it is gaussian under the best of these, or split, whichever is narrower. Questions in
// rounds are gaussian's alone.
//
// After a split by time, training and holdout differ by drift: such a caller names a mechanism himself.
func planAuto(s Spec) (Mechanism, error) {
	s.Mechanism = Gaussian
	checks := s.Rounds == 0 && s.Training > 0 && s.HalfWidth == 0 && s.Sigma == 0 && !s.Published
	if s.Sealed != 0 && !checks {
		return nil, wrong(ParamSealed, "auto seals units for guess_and_check, which needs a training part and plans no rounds, half_width, sigma and published bounds; leave sealed or these out")
	}
	if s.Published {
		return autoPublished(s)
	}
	if s.Rounds != 0 || s.Training < 1 || s.HalfWidth != 0 || s.Sigma != 0 {
		if s.Tokens != 0 {
			return nil, wrong(ParamTokens, "auto takes tokens for guess_and_check, which needs a training part and plans no rounds, half_width and sigma; name the mechanism")
		}
		return planned(s)
	}
	guessing := s
	guessing.Mechanism = GuessAndCheck
	g, err := planned(guessing)
	if err != nil || s.Tokens != 0 || s.Sealed != 0 {
		return g, err
	}
	m, err := planned(s)
	if err != nil || m.Common().HalfWidth > g.Common().HalfWidth {
		return g, nil
	}
	return m, nil
}

func autoPublished(s Spec) (Mechanism, error) {
	if s.Tokens != 0 {
		return nil, wrong("tokens", "no published bound is used for a mechanism with tokens")
	}
	m, err := planned(s)
	if err != nil || s.HalfWidth != 0 || s.Sigma != 0 || s.Rounds != 0 {
		return m, err
	}
	s.Mechanism = Split
	sliced, err := planned(s)
	if err != nil || m.Common().HalfWidth < sliced.Common().HalfWidth {
		return m, nil
	}
	return sliced, nil
}
