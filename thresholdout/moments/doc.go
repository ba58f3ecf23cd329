// Package moments has the intervals of guess-and-check by two moments: how far the expectation of a question may be, given what an
// answer says of the holdout's mean, variance and number of units. A question whose values vary little gets a narrow interval; a mean
// among the units that satisfy a condition is one question.
//
// Everything here is a pure function of public numbers, but for the Outcome methods, which compare exact sums of the holdout with
// planned margins in integers, and the batches, after which nothing is chosen. An interval is made from the outcome and public facts; the sums
// are not among its arguments. So equal outcomes give equal answers, whatever the sums are.
//
// The proofs are in docs/proofs/two-moments.md, groups-and-weights.md, several-means.md and final-batch.md; they were made for this project and are not peer-reviewed.
//
// # The way of a question
//
//  1. [Plan] makes a [Check] from the training part: the guess, two ranks of margins, and the cells of a failure.
//  2. [Urn.Level] is the level E of the next question, from three counts and the prices of earlier failures.
//  3. [Check.Outcome] compares the holdout's [Sums] with the margins. The outcome is recorded before anything leaves.
//  4. [Check.Interval] is the answer's interval at E. [Check.Price] is what a failure adds to later levels.
//
// [DifferenceCheck] and [WeightedCheck] are checks of other shapes, with the same levels. [Check.WithHalfWidth] is the check of a half-width that was
// asked for. [Batch], [BatchDifference] and [FractionInterval] read answers of a batch fixed beforehand, or of the last round; what their bets must
// come to follows from how far such a product overshoots (docs/proofs/overshoot.md).
package moments
