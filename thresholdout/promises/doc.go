// Package promises has the checks and intervals of Gaussian answers that are priced by a promised bound of the question's own variance: a small
// mean, a share of rows on which two models disagree, or a row variance. A promise is a statement about the holdout. It is checked there
// exactly, for free while it holds; then the answer has noise 2 sqrt(V) sigma_j instead of sigma_j, at the same price. A broken one
// costs a token, and its answer has full noise.
//
// Everything is a pure function. [Promise.Holds] is the only one that looks at the holdout, through exact sums; it is a bit of the
// transcript, and nothing else about the statistic may leave.
//
// The proofs are in docs/proofs/promises.md; they were made for this project and are not peer-reviewed.
//
// # The way of a question
//
//  1. The plan, at creation: bounds.PromisedSchedule, with B tokens for broken promises.
//  2. The promise is the analyst's, or [Default] from the training part. It is part of the question's identity: another promise is another
//     question, with fresh noise and the full price.
//  3. [Promise.Holds] decides. Broken: the count f rises first. Both outcomes are debited in one record with the answer, before
//     anything leaves; at f = B no more promises are taken. Questions of a batch are checked in the order in which they were submitted.
//  4. The release is the mean plus [Promise.Noise] where it held, plain noise where it broke.
//  5. [Promise.Interval] with the half-width W_f where it held; around the answer ± W_f, with f counting the answer's own broken
//     promise, where it broke or where there was none.
package promises
