package weights

import (
	_ "embed"
	"fmt"
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/pmw"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// referenceFile is what reference.py wrote: a separate program's promises, means and crossings.
//
//go:embed reference.json
var referenceFile []byte

// promise is an error that none of k answers exceeds with probability 1-beta; 1 where weights promise nothing.
func promise(method string, k float64) float64 {
	each := -math.Expm1(math.Log1p(-beta) / k) // how likely one answer may be beyond it
	switch method {
	case laplace:
		return k / epsilon / rows * -math.Log(each)
	case gaussian:
		return sigma(k) * -distuv.UnitNormal.Quantile(each/2)
	}
	plan, err := pmw.Plan(domain, rows, epsilon, k, beta)
	if err != nil {
		return 1
	}
	return plan.Accuracy(k, beta)
}

// mean is that of the largest of k errors of noise: of Laplace noise the k-th harmonic number times the scale; of Gaussian noise the integral of the probability that the largest is beyond x.
func mean(method string, k int) float64 {
	if method == laplace {
		harmonic := 0.0
		for i := k; i > 0; i-- {
			harmonic += 1 / float64(i)
		}
		return float64(k) / epsilon / rows * harmonic
	}
	beyond := func(x float64) float64 {
		return -math.Expm1(float64(k) * math.Log1p(-2*distuv.UnitNormal.Survival(x)))
	}
	return sigma(float64(k)) * quad.Fixed(beyond, 0, 12, 400, nil, 0)
}

// crossing is the number of questions from which on weights promise less than this noise: by halving the logarithm, since one promise grows as its logarithm and the other as a power.
func crossing(method string) float64 {
	low, high := math.Log(10), math.Log(1e9)
	for range 60 {
		if middle := (low + high) / 2; promise(method, math.Exp(middle)) > promise(weighted, math.Exp(middle)) {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Exp(high)
}

// fails reports whether a run broke the promise: an answer beyond it, or none.
func (p played) fails(promised float64) bool { return p.Spent || p.Error > promised }

func (c *cell) rows() []run.Row {
	r := run.Row{Condition: c.asks, Method: c.method, N: rows, K: int64(c.k), Set: largestError}
	all := []run.Row{run.Measured(r, c.runs, func(p played) float64 { return p.Error })}
	if c.method == weighted {
		r.Set = mendings
		all = append(all, run.Measured(r, c.runs, func(p played) float64 { return float64(p.Mended) }))
	}
	return all
}

// comparisons: with the separate program, of errors with promises, of noise with its law, and of who errs less.
func comparisons(cells []*cell, reference run.Reference) []checks.Comparison {
	all := apart(cells, reference)
	for _, asks := range []string{random, worst} {
		all = append(all, kept(cells, asks))
	}
	for _, method := range []string{laplace, gaussian} {
		all = append(all, lawOf(cells, method)...)
	}
	all = append(all, released(cells), slow(cells))
	return append(all, better(cells)...)
}

// tolerance of numbers that two programs compute, as a share of them: an epsilon is rounded down to 24 binary digits (noise.Eps), which is up to 2e-7 of it.
const tolerance = 1e-6

// apart compares what is planned, promised and expected with the separate program: the farthest off of each kind, as a share.
func apart(cells []*cell, reference run.Reference) []checks.Comparison {
	known := map[string]float64{}
	key := func(method, set string, k int) string { return fmt.Sprintf("%s, %s, %d", method, set, k) }
	for _, r := range reference.Rows {
		known[key(r.Method, r.Set, int(r.K))] = r.Mean
	}
	off := map[string]float64{}
	see := func(method, set string, k int, got float64) {
		want, ok := known[key(method, set, k)]
		if !ok {
			want = math.Inf(1) // a number that the program does not have disagrees
		}
		off[set] = max(off[set], math.Abs(got-want)/min(want, math.MaxFloat64))
	}
	for _, c := range cells {
		see(c.method, "promise", c.k, promise(c.method, float64(c.k)))
		if c.method == weighted {
			see(c.method, "updates", c.k, float64(c.plan.Updates))
			see(c.method, "threshold", c.k, c.plan.Threshold)
		} else {
			see(c.method, "mean", c.k, mean(c.method, c.k))
		}
	}
	for _, method := range []string{laplace, gaussian} {
		see(method, "crossing", 0, crossing(method))
	}
	var all []checks.Comparison
	for _, set := range []string{"promise", "updates", "threshold", "mean", "crossing"} {
		all = append(all, checks.Exactly("the "+set+" of each, as a share of a separate program's, from it", 0, tolerance, off[set]))
	}
	return all
}

// kept: an answer beyond the promise, or none, in no more runs than was said.
func kept(cells []*cell, asks string) checks.Comparison {
	count := checks.Count{}
	for _, c := range cells {
		for _, p := range c.runs {
			if c.asks == asks && p.fails(promise(weighted, float64(c.k))) {
				count.Events++
			}
		}
		if c.asks == asks {
			count.Runs += len(c.runs)
		}
	}
	return checks.RateAtMost(weighted+", "+asks+": runs with an answer beyond the promise, or with updates spent", beta, count)
}

// lawOf: the largest errors of noise have the mean that theory says, and are beyond the promise as often as it says.
func lawOf(cells []*cell, method string) []checks.Comparison {
	var means []checks.Comparison
	count := checks.Count{}
	for _, c := range cells {
		if c.method != method {
			continue
		}
		ratios := make([]float64, len(c.runs))
		for i, p := range c.runs {
			ratios[i] = p.Error / mean(method, c.k)
			if count.Runs++; p.fails(promise(method, float64(c.k))) {
				count.Events++
			}
		}
		means = append(means, checks.Equal(fmt.Sprintf("k = %d", c.k), 1, gridError, checks.Of(ratios)))
	}
	return []checks.Comparison{checks.Worst(method+": the largest error over theory's mean", means), checks.RateIs(method+": runs with an error beyond the promise", beta, count)}
}

// gridError is what whole steps of noise leave open: half of a step in the least mean that is expected, of 25 rows.
const gridError = 0.5 / unit / 25

// released: answers that mend the guess have noise of a third of epsilon, shared by the planned updates. Runs without such answers say nothing.
func released(cells []*cell) checks.Comparison {
	var ratios []float64
	for _, c := range cells {
		for _, p := range c.runs {
			if p.Answers > 0 {
				ratios = append(ratios, p.Noise/float64(p.Answers)/(3*float64(c.plan.Updates)/epsilon/rows))
			}
		}
	}
	return checks.Equal(weighted+": mean error of the answers that mend the guess, over theory's", 1, 0, checks.Of(ratios))
}

// slow: the promise grows with ln k at most. With the updates of the smallest k the margin is affine in ln(6k/beta), with no term below 0, so that promises grow no faster than that; the plan is at least as good.
func slow(cells []*cell) checks.Comparison {
	steepest, first := 0.0, float64(cells[0].k)
	for _, c := range cells {
		k := float64(c.k)
		steepest = max(steepest, promise(weighted, k)/promise(weighted, first)/(math.Log(6*k/beta)/math.Log(6*first/beta)))
	}
	return checks.NotAbove(weighted+": growth of the promise from the least k, over that of ln(6k/0.05)", 1, steepest)
}

// clear is how far from a crossing of promises k has to be, as a factor, for the measured errors to tell the two apart.
const clear = 3

// better: where k is far before the crossing of the promises noise errs less as measured, whoever asks the weights; far beyond it weights do.
func better(cells []*cell) []checks.Comparison {
	var all []checks.Comparison
	for i, c := range cells {
		if c.method == weighted {
			continue
		}
		at, k := crossing(c.method), float64(c.k)
		sign, who := 1., "less the larger of both that weights have"
		if k < at/clear {
			sign, who = -1, "below the smaller of both that weights have, by"
		} else if k < at*clear {
			continue
		}
		first := i - i%4 // of the four cells of this k
		differences := make([]float64, min(len(c.runs), len(cells[first].runs), len(cells[first+1].runs)))
		for j := range differences {
			a, b := cells[first].runs[j].Error, cells[first+1].runs[j].Error
			differences[j] = min(sign*(c.runs[j].Error-a), sign*(c.runs[j].Error-b))
		}
		all = append(all, checks.Above(fmt.Sprintf("k = %d: largest error of %s %s", c.k, c.method, who), 0, checks.Of(differences)))
	}
	return all
}

func tableOf(cells []*cell) [][]string {
	table := [][]string{{"WHO ANSWERS", "WHO ASKS", "QUESTIONS", "LARGEST ERROR", "95% INTERVAL", "PROMISED", "UPDATES", "PLANNED"}}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		rows, mended, planned := c.rows(), "", ""
		if c.method == weighted {
			mended, planned = fmt.Sprintf("%.1f", rows[1].Mean), fmt.Sprint(c.plan.Updates)
		}
		table = append(table, []string{c.method, c.asks, fmt.Sprint(c.k), fmt.Sprintf("%.3g", rows[0].Mean), fmt.Sprintf("%.3g to %.3g", rows[0].Low, rows[0].High),
			fmt.Sprintf("%.3g", promise(c.method, float64(c.k))), mended, planned})
	}
	for _, method := range []string{laplace, gaussian} {
		table = append(table, []string{method, "promises more error than " + weighted + " from", fmt.Sprintf("%.4g", crossing(method)), "", "", "", "", ""})
	}
	return table
}
