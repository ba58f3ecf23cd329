package thresholdout

// Outcome says in a word what a mechanism found. It is a function of what the answer tells anyway, and so costs nothing beside it.
type Outcome string

// Outcomes. The first three are those of guess_and_check, the next that of thresholdout when it answers from the training part.
const (
	Close         Outcome = "close"    // the guess passed at the narrowest margin
	Rough         Outcome = "rough"    // the guess passed at a wider margin alone, so the interval is wider
	Differs       Outcome = "differs"  // the holdout does not agree with the guess or the training part: a token was spent
	Agrees        Outcome = "agrees"   // the holdout agrees with the training part, within a noisy threshold
	PromiseKept   Outcome = "kept"     // what the question promised holds, and the value is the holdout's with less noise
	PromiseBroken Outcome = "broken"   // it does not: a token was spent, and the value is as if there had been no promise
	Measured      Outcome = "measured" // nothing was compared: the value is the holdout's, with the mechanism's noise, or moved within a cell
	Unknown       Outcome = "unknown"  // nothing was compared, since there are too few rows to compare with, or none: the value may be anything
	Selected      Outcome = "selected" // the mechanism chose among candidates, and says which alone
	Best          Outcome = "best"     // a submission that the board shows now
	Behind        Outcome = "behind"   // a submission that the board does not show
)

// Outcome is what the mechanism found of one question.
func (o Output) Outcome() Outcome {
	switch {
	case o.found != nil && o.found.Silent():
		return Unknown
	case o.found != nil && isMeasured(o.found):
		return Measured
	case o.found != nil && o.found.Failed():
		return Differs
	case o.found != nil && o.found.Wide():
		return Rough
	case o.found != nil:
		return Close
	case o.Promise != nil && o.Promise.Checked && o.Promise.Held:
		return PromiseKept
	case o.Promise != nil && o.Promise.Checked:
		return PromiseBroken
	case o.Tokens > 0:
		return Differs
	case o.Source != FromHoldout:
		return Agrees
	}
	return Measured
}

// Outcome is what a board made of a submission.
func (s Standing) Outcome() Outcome {
	if s.Best {
		return Best
	}
	return Behind
}
