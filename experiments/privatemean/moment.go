package privatemean

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/experiments/run"
)

// The lectures' theorem: where E[x²] <= σ² is all that is known of a law, values are clamped to ±τ with τ = σ√(nε)/2, and the mean with Laplace noise has a squared error of
// at most σ²/n + 4σ²/(nε). A proof for replaced rows: |x| - τ <= x²/(4τ), so that the bias is at most σ²/(4τ) = σ/(2√(nε)); the noise has variance 2(2τ/(nε))² = 2σ²/(nε); and
// clamping adds no variance. Together that is σ²/n + 2.25σ²/(nε). Here σ is 1.
const (
	momentEpsilon = 0.1
	momentBound   = 4    // of the theorem, in σ²/(nε)
	momentProof   = 2.25 // what the proof needs of it
)

// momentThreshold is the theorem's τ.
func momentThreshold(n int) float64 { return math.Sqrt(float64(n)*momentEpsilon) / 2 }

// momentLimit is the theorem's squared error.
func momentLimit(n int) float64 {
	return 1/float64(n) + momentBound/(float64(n)*momentEpsilon)
}

const hardest = "hardest law" // of all, for bias

// hardestLaw is 2τ with probability 1/(4τ²) and else 0: the second moment is 1, and the bias as large as any law's.
func hardestLaw(n int) population {
	value := math.Sqrt(float64(n) * momentEpsilon)
	p := 1 / (value * value)
	return population{hardest, func(r *rand.Rand) float64 { return value * run.Indicator(r.Float64() < p) }, value * p, func(_, high float64) (mean, variance float64) {
		shown := min(value, high)
		return shown * p, shown * shown * p * (1 - p)
	}}
}

var normalLaw = population{"normal law", (*rand.Rand).NormFloat64, 0, func(_, high float64) (float64, float64) {
	if math.IsInf(high, 1) {
		return 0, 1
	}
	n := distuv.UnitNormal
	return 0, 1 - 2*n.Survival(high) - 2*high*n.Prob(high) + 2*high*high*n.Survival(high)
}}

// signs are rows of norm 1, whose numbers are alike but for their signs.
func signs(dim int) population {
	size := 1 / math.Sqrt(float64(dim))
	return population{"signs", func(r *rand.Rand) float64 { return size * (1 - 2*float64(r.IntN(2))) }, 0, func(_, _ float64) (float64, float64) { return 0, size * size }}
}

// momentGroups are both laws, clamped as the theorem says and without privacy.
func momentGroups(n int) (groups []*group) {
	for _, law := range []population{hardestLaw(n), normalLaw} {
		tau := momentThreshold(n)
		groups = append(groups, &group{part: byMoment, population: law, n: n, cells: []*cell{
			{method: laplace, mean: estimate.Mean{Dim: 1, Low: -tau, High: tau, Epsilon: momentEpsilon}},
			{method: plain, mean: estimate.Mean{Dim: 1, Low: math.Inf(-1), High: math.Inf(1)}}}})
	}
	return groups
}

// moments compare with the theorem: no squared error is above its limit, and that of the hardest law is the proof's.
func (m findings) moments(checks *run.Checks) {
	var needed []float64 // of each repetition: what the hardest law needs of momentBound, on average over sizes
	sizes := 0.
	for _, g := range m.groups {
		if g.part != byMoment {
			continue
		}
		private := g.cells[0]
		checks.AtMost(fmt.Sprintf("%s, n = %d: squared error of the mean clamped to sigma sqrt(n epsilon)/2, beside sigma^2/n + 4 sigma^2/(n epsilon)", g.name, g.n), momentLimit(g.n), g.row(private))
		if g.name != hardest {
			continue
		}
		n := float64(g.n)
		sampling := (1 - 1/(n*momentEpsilon)) / (4 * n) // of 0 and τ, with the law's probability
		sizes++
		for i, e := range private.errors {
			if i == len(needed) {
				needed = append(needed, 0)
			}
			needed[i] += (e - sampling) * n * momentEpsilon
		}
	}
	if sizes > 0 && len(needed) > 1 {
		checks.Equal("hardest law: what bias and noise need of the theorem's 4 sigma^2/(n epsilon)", momentProof, 0,
			run.Measured(run.Row{}, needed, func(v float64) float64 { return v / sizes }))
	}
}

// momentFigure has the theorem's line, and both laws below it.
func (m findings) momentFigure() (*plot.Plot, error) {
	limit := &curve{label: "any law: the theorem's limit"}
	series := []*curve{limit, {label: "hardest law"}, {label: "normal law"}, {label: "hardest law, no privacy"}}
	for _, g := range m.groups {
		if g.part != byMoment {
			continue
		}
		at := series[2]
		if g.name == hardest {
			at = series[1]
			limit.theory = append(limit.theory, plotter.XY{X: float64(g.n), Y: math.Sqrt(momentLimit(g.n))})
			series[3].add(g, g.cells[1], float64(g.n))
		}
		at.add(g, g.cells[0], float64(g.n))
	}
	p, err := drawCurves(fmt.Sprintf("Only E[x²] ≤ 1 is known: mean clamped to √(n epsilon)/2, epsilon %v", momentEpsilon), "rows, n", series, 1)
	if err == nil {
		p.Legend.Top, p.Legend.Left = false, true // curves fall: there is room below their beginning
	}
	return p, err
}
