// Package account adds up what differentially private releases spend and says it in (epsilon, delta).
//
// Three currencies, each of which composes exactly or simply, also when a release is chosen after seeing the earlier ones:
//
//   - [GDP], mu of Gaussian differential privacy: Gaussian noise and nothing else, exact;
//   - [ZCDP], rho of concentrated differential privacy: Gaussian and pure mechanisms together;
//   - [RDP], Rényi differential privacy order by order: subsampled Gaussians, which is DP-SGD.
//
// [Pure] is k-fold composition of one pure guarantee. A [Filter] admits releases until a budget is spent, when their sizes
// depend on earlier answers.
//
// What two tables must have in common to be neighbours is the caller's: sensitivity is over replaced rows, or over added
// and removed ones, and the guarantee is then about the same. Only [RDP.SubsampledGaussian] fixes it: added or removed.
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
