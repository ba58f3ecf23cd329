// Package shape is what a query compiles to: a [Plan] of row functions, the program by which their means are released, and the way
// from what was released to the answer. It knows no JSON, no expressions and no type of query.
//
// A plan declares what it is. Its [Shape] says how the means make the answer, as a value that can be looked at:
//
//	Affine     one mean, moved to a range, perhaps times the number of units      mean, fraction, count, sum, accuracy, loss, compare
//	Share      a/(a+b) of two means, moved to a range                             the same with where, with row votes, with weights
//	Contrast   the difference of two shares                                       difference
//	Moments    a formula of several means                                         variance, correlation, slope, rmse, r2
//	Shares     the shares of rows in each of several categories                   frequencies, histogram, confusion
//	Groups     a Share in each of several categories                              groups
//	Each       many means, each by itself                                         screen, gradient
//	Bins       a reliability diagram                                              calibration
//	Curve      the area under a curve through binned shares                       auc
//	Search     a bisection, whose steps depend on what was released               quantile, median
//	Selection  which of many means is the largest                                 argmax
//	Fit, Independence  shares of cells against expected ones, or against their margins: test
//
// Beside its shape a plan may have [Equations]: pairs of row functions of whose means the answer, or each of its items, is the quotient. A
// mechanism that prices an answer by its variance can release these instead.
//
// A [Decision] makes a verdict of an answer's interval, a [Test] a p-value. Intervals come from those of the parts by interval
// arithmetic (package interval), so that an answer's interval holds whenever those of all its parts do.
package shape
