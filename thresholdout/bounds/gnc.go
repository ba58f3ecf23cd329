package bounds

import "math"

// GuessAndCheck are the tolerances of guess-and-check (Rogers et al., AISTATS 2020) with weights planned for a guarantee that
// names its questions and tokens: a guess passes when it is within its half-width minus the tolerance of the holdout's mean;
// a failure costs a token and is answered from the holdout (docs/proofs/account.md).
type GuessAndCheck struct {
	N         int64 // units of the holdout
	Questions int64 // k
	Tokens    int64 // B, failures that may be answered
	Beta      float64
}

// transcripts is ln of the number of pass/fail prefixes of asked questions with failed failures.
func (g GuessAndCheck) transcripts(asked, failed int64) float64 { return logBinomial(asked, failed) }

// Level is ln(2/beta_{j,f}) when failures are answered by the midpoints of cells: beta_{j,f} = beta/(k (B+1) nu), nu = C(asked, failed) times the product
// of the cells of each failure. logCells is the sum of the logarithms of the cells (see Cells) of the failures so far.
func (g GuessAndCheck) Level(asked, failed int64, logCells float64) float64 {
	return math.Log(2*float64(g.Questions)*float64(g.Tokens+1)/g.Beta) + g.transcripts(asked, failed) + logCells
}

// Tolerance is Hoeffding's at a level: a guess whose distance from the holdout's mean is at most its half-width minus this passes.
func (g GuessAndCheck) Tolerance(level float64) float64 {
	return math.Sqrt(level / (2 * float64(g.N)))
}

// Grid is gamma, how far the released number of a failure may be from the holdout's mean so that its interval of half-width tau
// holds: tau - tolerance, or 0 when tau is too narrow, in which case the question is to be refused before a row is touched.
func (g GuessAndCheck) Grid(tau, level float64) float64 { return max(0, tau-g.Tolerance(level)) }

// Cells is the number of equal cells of [0,1] whose midpoints are within gamma of all in the cell: ceil(1/(2 gamma)).
func Cells(gamma float64) float64 { return max(1, math.Ceil(1/(2*gamma))) }

// GaussianTolerance is tol_{j,f} when failures are answered by the holdout's mean plus noise sigma: half of beta for sampling in all the
// forced runs, which have I_f = f/(8 sigma^2 (n-1)).
func (g GuessAndCheck) GaussianTolerance(asked, failed int64, sigma float64) float64 {
	n := float64(g.N)
	level := math.Log(4*float64(g.Questions)*float64(g.Tokens+1)/g.Beta) + g.transcripts(asked, failed)
	if failed == 0 {
		return math.Sqrt(level / (2 * n))
	}
	return deviation(n, level, float64(failed)*information(n, sigma))
}

// GaussianRelease is how far noise takes a failure's answer: the (1-beta/2)-quantile of the largest of B absolute normals, times
// sigma. The half-width of a failure is this plus GaussianTolerance.
func (g GuessAndCheck) GaussianRelease(sigma float64) float64 {
	if g.Tokens == 0 {
		return 0
	}
	return sigma * MaxNormalQuantile(float64(g.Tokens), g.Beta/2)
}
