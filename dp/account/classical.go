package account

import (
	"fmt"
	"math"
)

// MaxClassicalDelta is the largest delta of the classical theorem: its proof has sqrt(2 ln(1.25/delta)) at least 3/2.
const MaxClassicalDelta = 0.4

// ClassicalSigma is the textbook's standard deviation of Gaussian noise, sqrt(2 ln(1.25/delta)) sensitivity/eps (Dwork and Roth 2014, Theorem A.1). The
// theorem is for eps below 1, and by continuity at 1; beyond it the formula is refused, for it is not private: at eps = 8 and delta = 0.001 it has less
// noise than any private Gaussian. [GaussianSigma] holds everywhere and is never larger.
func ClassicalSigma(sensitivity, eps, delta float64) (float64, error) {
	must(sensitivity >= 0, "sensitivity %v is negative", sensitivity)
	if !(eps > 0 && eps <= 1 && delta > 0 && delta <= MaxClassicalDelta) {
		return 0, fmt.Errorf("account: the classical Gaussian mechanism is proved for epsilon up to 1 and delta up to %v, not for (%v, %v); GaussianSigma has no such limit", MaxClassicalDelta, eps, delta)
	}
	return math.Sqrt(2*math.Log(1.25/delta)) * sensitivity / eps * (1 + 1e-15), nil
}
