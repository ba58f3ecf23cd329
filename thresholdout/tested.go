package thresholdout

import "math"

// A test asks whether the answer can be told from its null hypothesis. A check that is planned for the whole guarantee leaves room for differences of training part and holdout that are
// rare, and its interval may then hold a null that is many standard errors off. So where the guess is a clear effect that the planned margin is too wide for, the question is checked at two margins: the largest at which the
// interval of a pass excludes the null, and the planned one. If the holdout is within the first, the p-value is below one minus the confidence. If it is within the second alone, the answer is what it would have
// been, as a wide pass, which later levels pay for. Nothing else costs more than it did; most questions see no such effect, and keep their margins.
//
// The margins follow from the training part, the null hypothesis and the level, all of which are public (docs/proofs/two-moments.md, section 5).

// testedCheck is a check that can be planned so.
type testedCheck interface {
	Check
	// planned is its narrowest margin.
	planned() int64
	// tested is the check with the margin away, and then the planned one.
	tested(away int64) Check
}

// leastTested is how many standard deviations of training minus holdout the narrower margin must leave room for: half of the good guesses are within the upper quartile of the normal law. A wide pass costs later
// levels about the logarithm of the number of questions, so that more of them would cost other questions more than this one gains.
const leastTested = 0.67

// told is the check c, or its tested form where the null hypothesis can then be told from a guess that passes.
func told(c Check, form testedCheck, by Planning) Check {
	own := by.Guess
	if own == nil || own.Null == nil || own.HalfWidth != 0 {
		return c
	}
	excludes := func(f Finding) bool {
		i, ok := f.Interval(by.Level)
		return ok && (i.Low > *own.Null+nullSlack || i.High < *own.Null-nullSlack)
	}
	planned := form.planned()
	least := int64(math.Ceil(float64(planned) * leastTested / by.Deviations))
	if excludes(c.Expected()) || least >= planned || !excludes(form.tested(least).Expected()) {
		return c
	}
	room, beyond := least, planned
	for beyond-room > 1+planned/4096 {
		if mid := room + (beyond-room)/2; excludes(form.tested(mid).Expected()) {
			room = mid
		} else {
			beyond = mid
		}
	}
	return form.tested(room)
}

// withinOrTold is a check at the half-width that the analyst asks for, or else one by which a null hypothesis is told.
func withinOrTold(c interface {
	widthCheck
	testedCheck
}, by Planning) (Check, error) {
	at, err := within(c, by)
	if err != nil {
		return nil, err
	}
	return told(at, c, by), nil
}

// nullSlack is more than an answer's interval is wider than that of what is released, for the steps of the grid.
const nullSlack = 4 * gridError
