// Package account adds up what differentially private releases spend and says it in (epsilon, delta).
//
// Three currencies, each of which composes exactly or simply, also when a release is chosen after seeing the earlier ones:
//
//   - [GDP], mu of Gaussian differential privacy: Gaussian noise and nothing else, exact;
//   - [ZCDP], rho of concentrated differential privacy: Gaussian and pure mechanisms together;
//   - [RDP], Rényi differential privacy order by order: subsampled Gaussians, which is DP-SGD.
//
// [PLD] is the distribution of the privacy loss itself, numerically: the narrowest account of anything that it can be made of.
// [Pure] is k-fold composition of one pure guarantee. A [Filter] admits releases until a budget is spent, when their sizes
// depend on earlier answers, and an [Odometer] says what is lost where there is no budget.
//
// An [Event] is a release as data, and an [Accountant] interprets events: each of the above does, and refuses what it has no proof for. [Tradeoff] and
// [Precision] say what a guarantee means to somebody who tests whether a unit is in the table, [Posterior] what it means to somebody who believes it.
//
// What two tables must have in common to be neighbours is the caller's: sensitivity is over replaced rows, or over added
// and removed ones, and the guarantee is then about the same. Sampling fixes it: [RDP.SubsampledGaussian] to added or
// removed rows, [RDP.FixedSizeGaussian] to replaced ones.
//
// Numbers are float64 and computed to a relative error of about 1e-12 (1e-11 for a delta below 1e-100), by methods that do not cancel; where a
// search ends between two numbers, the one that promises less is returned. Impossible parameters (a negative sigma, a
// delta outside [0,1], NaN) panic: they are mistakes of a program, not of data.
//
// The attack bounds of this module do not go through (epsilon, delta): see thresholdout/bounds.
package account

import "fmt"

// must panics unless ok.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("account: " + fmt.Sprintf(format, args...))
	}
}

func mustDelta(delta float64) { must(delta >= 0 && delta <= 1, "delta %v is not in [0,1]", delta) }

func mustEpsilon(eps float64) { must(eps >= 0, "epsilon %v is negative", eps) }
