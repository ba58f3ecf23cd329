package thresholdout

// automatic chooses the mechanism of a guarantee that names none, from public facts alone:
//
// guess_and_check where there is a training part to guess from and its owner gave tokens, or its planned half-width is the
// narrower one; else gaussian. The intervals of both hold for any analyst. gaussian answers every question; guess_and_check
// assumes that guesses from training are good in order not to run out of tokens. A half-width or a noise that the owner asks
// for is a promise about every answer, which gaussian alone can make.
//
// Where only published bounds are wanted it is gaussian under the best of these, or split, whichever is narrower. Questions in
// rounds are gaussian's alone.
//
// After a split by time, training and holdout differ by drift: such a caller names a mechanism himself.
func (p Params) automatic() (Params, error) {
	gaussian, guessing := p, p
	gaussian.Mechanism, guessing.Mechanism = Gaussian, GuessAndCheck
	if p.Published {
		return p.automaticPublished(gaussian)
	}
	if p.Rounds != 0 || p.Training < 1 || p.HalfWidth != 0 || p.Sigma != 0 {
		return New(gaussian)
	}
	guessing, err := New(guessing)
	if err != nil || p.Tokens != 0 {
		return guessing, err
	}
	gaussian, err = New(gaussian)
	if err != nil || gaussian.HalfWidth > guessing.HalfWidth {
		return guessing, nil
	}
	return gaussian, nil
}

func (p Params) automaticPublished(gaussian Params) (Params, error) {
	if p.Tokens != 0 {
		return p, wrong("tokens", "no published bound is used for a mechanism with tokens")
	}
	gaussian, err := New(gaussian)
	if err != nil || p.HalfWidth != 0 || p.Sigma != 0 || p.Rounds != 0 {
		return gaussian, err
	}
	split := p
	split.Mechanism = Split
	split, err = New(split)
	if err != nil || gaussian.HalfWidth < split.HalfWidth {
		return gaussian, nil
	}
	return split, nil
}
