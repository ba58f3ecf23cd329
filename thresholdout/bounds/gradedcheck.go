package bounds

import (
	"math"
)

// GradedCheck is the account of guess-and-check with a graded check by equal weights (docs/proofs/two-moments.md, section 4): a guess is answered with the
// narrowest of Widths widths that passes; if none does, the question fails, costs a token and is answered from the
// holdout. Every outcome but a pass at the narrowest width is written into the transcript, and paid for by the union over
// transcripts.
// Failures with Gaussian noise are forced runs: their information is bounded as in docs/proofs/adaptive-hoeffding.md, section 6.
// No mechanism uses it now: guess_and_check pays by the urn of package moments.
type GradedCheck struct {
	N         int64   // units of the holdout
	Questions int64   // k
	Tokens    int64   // B, failures that may be answered
	Beta      float64 // 1-confidence
	Widths    int     // how many widths a guess is checked at, at least 1
	Cells     int64   // a failure tells which of so many cells the mean is in; 0 for a Gaussian release
	Sigma     float64 // the noise of a Gaussian release
}

// Level is E: for a holdout mean h of the next question and its expectation p, n kl(h||p) exceeds E with h below p, in any run
// with so many questions asked, failures and passes at wider widths, with a probability that together with all other runs, both
// sides and the noise of releases is at most beta. Hoeffding's tolerance is sqrt(E/2n); [ChernoffInterval] inverts E itself.
//
// The runs' weights: 1/(k (B+1)) for each pair of an index and a number of failures, shared among the C(asked, failed) places of
// the failures and the cells of each; 1/((w+1)(w+2)) for w wide passes, shared among their places and widths.
func (g GradedCheck) Level(asked, failed, wide int64) float64 {
	sides := 2.0
	if g.Cells == 0 {
		sides = 4 // half of beta is kept for the noise of releases
	}
	level := math.Log(sides*float64(g.Questions)*float64(g.Tokens+1)/g.Beta) + logBinomial(asked, failed)
	if g.Widths > 1 {
		level += math.Log(float64(wide+1)*float64(wide+2)) + logBinomial(asked-failed, wide) + float64(wide)*math.Log(float64(g.Widths-1))
	}
	switch {
	case failed == 0:
		return level
	case g.Cells > 0:
		return level + float64(failed)*math.Log(float64(g.Cells))
	}
	n := float64(g.N)
	t := deviation(n, level, float64(failed)*information(n, g.Sigma))
	return 2 * n * t * t
}

// ReleaseError is how far a failure's answer is from the holdout mean: half a cell, or what all Gaussian releases stay within with
// probability 1-beta/2.
func (g GradedCheck) ReleaseError() float64 {
	if g.Cells > 0 {
		return 1 / (2 * float64(g.Cells))
	}
	return g.Sigma * MaxNormalQuantile(float64(max(g.Tokens, 1)), g.Beta/2)
}

// PlannedRelease is the account for failures whose answers are within about release of the holdout mean: cells or Gaussian noise,
// whichever has the lower level at the last question when half of the tokens are spent. It depends on public facts only.
func (g GradedCheck) PlannedRelease(release float64) GradedCheck {
	rounded, gaussian := g, g
	rounded.Cells, rounded.Sigma = int64(Cells(min(release, 0.5))), 0
	gaussian.Cells, gaussian.Sigma = 0, release/MaxNormalQuantile(float64(max(g.Tokens, 1)), g.Beta/2)
	half := (g.Tokens + 1) / 2
	if asked := g.Questions - 1; gaussian.Level(asked, min(half, asked), 0) < rounded.Level(asked, min(half, asked), 0) {
		return gaussian
	}
	return rounded
}
