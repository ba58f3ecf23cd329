package freedman

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/run"
)

// limits are what the second regression tends to as the table grows: its R2, its F statistic, and the share of its coefficients with P below
// 0.05.
type limits struct{ r2, f, significant float64 }

// screeningQuantile is the distance from 0 beyond which a regressor is kept: the normal law is that far out, on either side, with
// probability screeningLevel. It is l in docs/proofs/freedman-limits.md.
func screeningQuantile() float64 { return distuv.UnitNormal.Quantile(1 - screeningLevel/2) }

// secondMomentKept is what the kept regressors hold of a normal variable's variance of 1: E[Z^2; |Z| > l], about 0.72. It is g in the proof.
func secondMomentKept() float64 {
	l := screeningQuantile()
	return screeningLevel + 2*l*distuv.UnitNormal.Prob(l)
}

// newLimits are those for r regressors a row. A coefficient's t is slope Z + noise N with Z given |Z| > l, Z and N standard normal. For orthonormal regressors
// both regressions have the same coefficients, so that there is no noise.
func newLimits(design string, r float64) limits {
	a, g := screeningLevel, secondMomentKept()
	r2, slope, noise := g*r, math.Sqrt((1-a*r)/(1-g*r)), 0.0
	if design == independent {
		known := r * (1 - r) * g / (1 - g*r)
		r2 = known + a*r*(r-known)
		scale := (1 - a*r) / math.Sqrt(1-r2)
		slope, noise = scale*math.Sqrt(1-r)/(1-g*r), scale*math.Sqrt((r-known)/(1-a*r))
	}
	return limits{r2: r2, f: r2 / (a * r) * (1 - a*r) / (1 - r2), significant: significantShare(slope, noise)}
}

// significantShare is the probability that |slope Z + noise N| exceeds the normal quantile of 5%, given |Z| > l.
func significantShare(slope, noise float64) float64 {
	beyond := func(z float64) float64 {
		const q = 1.959964
		if noise == 0 {
			return run.Indicator(slope*z > q)
		}
		return distuv.UnitNormal.CDF((slope*z-q)/noise) + distuv.UnitNormal.CDF((-slope*z-q)/noise)
	}
	// The midpoint rule over what is left of the normal distribution beyond l, in its own probability.
	const steps = 100000
	sum := 0.0
	for i := range steps {
		sum += beyond(-distuv.UnitNormal.Quantile(screeningLevel / 2 * (float64(i) + 0.5) / steps))
	}
	return sum / steps
}

// voteHits is how often the vote hits a sign on the data it was made of.
func voteHits(r float64) float64 { return 0.5 + math.Atan(math.Sqrt(secondMomentKept()*r))/math.Pi }
