package thresholdout

import "math"

// A test asks whether the answer can be told from its null hypothesis. A check that is planned for the whole guarantee leaves room for differences of training part and holdout that are
// rare, and its interval may then hold a null that is many standard errors off. So where the guess is a clear effect that the planned margin is too wide for, the question is checked at two margins: one
// that leaves less room on the side of the null, as much as still excludes it, and the planned one. If the holdout is within the first, the p-value is below one minus the confidence. If it is within the second alone,
// the answer is what it would have been, as a wide pass, which later levels pay for. Nothing else costs more than it did; most questions see no such effect, and keep their margins.
//
// On the other side of the guess the first margin has all the room that is planned: an effect that is larger on the holdout is no reason to doubt it. Where even so little room is too much, what the first margin
// says beside, of the variance, of how many units there are and of each group, is said more closely, too: it is missed more often, and the end is nearer.
//
// The margins follow from the training part, the null hypothesis and the level, all of which are public (docs/proofs/two-moments.md, section 5).

// tested is how a check can be planned for a test.
type tested interface {
	// planned is the narrowest margin of the check, in steps.
	planned() int64
	// at is the check with two margins: so far below and above the guess, and as planned. Where it is close, the first says more closely what it says beside.
	at(close bool, below, above int64) Check
}

const (
	// leastTested is how many standard deviations of training minus holdout the first margin must leave room for on the side of the null: three good guesses in four are within it. A wide pass costs later
	// levels about the logarithm of the number of questions, so that more of them would cost other questions more than this one gains.
	leastTested = 0.67
	// leastClose is the same where the first margin is close: with what else it says, five good guesses in nine are within it. Without it there would be no p-value below 1 at all.
	leastClose = 0.33
	// closeDeviations is z of what a close margin says beside, in place of the guarantee's: the least that any guarantee has.
	closeDeviations = 2
)

// told is the check c, or its form for a test where the null hypothesis can then be told from a guess that passes.
func told(c Check, form tested, by Planning) Check {
	own := by.Guess
	if own == nil || own.Null == nil || own.HalfWidth != 0 {
		return c
	}
	excludes := func(f Finding) bool {
		i, ok := f.Interval(by.Level)
		return ok && (i.Low > *own.Null+nullSlack || i.High < *own.Null-nullSlack)
	}
	if excludes(c.Expected()) {
		return c
	}
	planned := form.planned()
	for _, plan := range []struct {
		close bool
		least float64
	}{{false, leastTested}, {true, leastClose}} {
		least := int64(math.Ceil(float64(planned) * plan.least / by.Deviations))
		for _, at := range []func(room int64) Check{
			func(room int64) Check { return form.at(plan.close, room, planned) },
			func(room int64) Check { return form.at(plan.close, planned, room) },
		} {
			if least < planned && excludes(at(least).Expected()) {
				return at(mostRoom(least, planned, func(room int64) bool { return excludes(at(room).Expected()) }))
			}
		}
	}
	return c
}

// mostRoom is the largest margin between least and planned that serves, as least does, to a part in some thousands.
func mostRoom(least, planned int64, serves func(room int64) bool) int64 {
	room, beyond := least, planned
	for beyond-room > 1+planned/4096 {
		if mid := room + (beyond-room)/2; serves(mid) {
			room = mid
		} else {
			beyond = mid
		}
	}
	return room
}

// spanOf is the margin that reaches so far below and above, of which one may be a step less than asked for, and where its middle is.
func spanOf(below, above int64) (away, shift int64) { return (below + above) / 2, (above - below) / 2 }

// reach is how far a margin reaches, at most, from the guess.
func reach(away, shift int64) int64 { return away + max(shift, -shift) }

// withinOrTold is a check at the half-width that the analyst asks for, or else one by which a null hypothesis is told.
func withinOrTold(c widthCheck, form tested, by Planning) (Check, error) {
	at, err := within(c, by)
	if err != nil {
		return nil, err
	}
	return told(at, form, by), nil
}

// nullSlack is more than an answer's interval is wider than that of what is released, for the steps of the grid.
const nullSlack = 4 * gridError
