// Package pairs has quantiles, areas under the ROC curve, their differences and Kendall's tau as one question each of guess-and-check: statements
// about counts of the holdout, and the intervals that follow from them at a level E (package moments, [moments.Urn]).
//
// All are pure functions. [Quantile.Outcome] and [Check.Outcome] compare exact counts with what was planned; intervals are made from
// outcomes and public facts alone. Bins, points, halves and the order of classes are public: fixed before the holdout is looked at.
//
// The proofs are in docs/proofs/pairs.md; they were made for this project and are not peer-reviewed.
package pairs
