package widths

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// apartOf is the question whose half-widths are computed apart: a share of all rows, of which no more than counts is known.
const apartOf = "share late"

// counted are the rows of one split that are late: what the half-widths of the share of late flights follow from. The formulas are written again here, from the proofs and not from the code.
type counted struct {
	n, late                float64 // of the holdout
	training, lateTraining float64
	slice, lateSlice       float64 // of the rows of the first question under split
}

func countedOf(f flights, order []int, size int) counted {
	count := func(rows []int) (n, lates float64) {
		for _, row := range rows {
			lates += run.Indicator(late(f, row))
		}
		return float64(len(rows)), lates
	}
	var c counted
	c.n, c.late = count(order[:size])
	c.training, c.lateTraining = count(order[size:])
	c.slice, c.lateSlice = count(order[:size/budget])
	return c
}

// level is the logarithm of 1/e, e the probability with which one side of one of all questions' intervals may miss: Bonferroni over questions and sides, of this share of one minus the confidence.
func level(share float64) float64 { return math.Log(2 * budget / (share * (1 - confidence))) }

// wholly is the share of the error that an answer from guesses, or from rows of its own, has; plain is that of gaussian's plain answers, which keep a tenth for others; compared is one of thresholdout's three parts.
const (
	wholly   = 1.0
	plain    = 0.9
	compared = 1.0 / 3
)

// gaussianApart are half-widths of 110 answers by the adaptive Hoeffding bound at 95%, of so many rows. A separate program has them, experiments/guaranteed/reference.py:
//
//	cd experiments/guaranteed && python3 -c 'from reference import gaussian; print(gaussian(1500, 110), gaussian(30000, 110))'
var gaussianApart = map[float64]float64{1500: 0.14877495001642896, 30000: 0.03326305784886421}

// band is between which half-widths one has to be; the zero band where nothing is computed.
type band struct{ Low, High float64 }

// apartTolerance is how far half-widths may be off: one row more or less moves an end by less than a part in a hundred, and margins are rounded to steps of 2^-30.
const apartTolerance = 0.01

// againstFormulas holds the half-widths of a share to the formulas, of each way at the splits at which they are farthest below and above. Where chance moves a band, it moves the half-width alike.
func (f findings) againstFormulas() (all []checks.Comparison) {
	q := slices.IndexFunc(questions, func(q question) bool { return q.name == apartOf })
	for way, name := range ways() {
		beneath, above, seen := math.Inf(1), 0.0, 0
		for _, run := range f.runs {
			if m := run[q*len(ways())+way]; m.Apart.High > 0 {
				beneath, above, seen = min(beneath, m.Half/m.Apart.Low), max(above, m.Half/m.Apart.High), seen+1
			}
		}
		if seen == 0 {
			continue // a size of which a separate program has no number
		}
		all = append(all,
			checks.NotBelow(fmt.Sprintf("%s: half-width by %s over the least by formulas, at its smallest", apartOf, name), 1-apartTolerance, beneath).
				Also(func(float64) string {
					return fmt.Sprintf("half-widths that are below %.3g of these", (1-apartTolerance)/beneath)
				}),
			checks.NotAbove(fmt.Sprintf("%s: half-width by %s over the largest by formulas, at its largest", apartOf, name), 1+apartTolerance, above).
				Also(func(float64) string {
					return fmt.Sprintf("half-widths that are above %.3g times these", (1+apartTolerance)/above)
				}))
	}
	return all
}

// of is the band of a way.
func (c counted) of(way string) band {
	exactly := func(half float64) band { return band{half, half} }
	switch way {
	case textbook:
		return exactly(c.normal(1 - confidence))
	case bonferroni:
		return exactly(c.normal((1 - confidence) / budget))
	case "guess_and_check":
		from, to := c.passed()
		if to == 0 {
			return band{}
		}
		return exactly((c.above(to, level(wholly)) + c.above(1-from, level(wholly)) - 1) / 2)
	case byRange:
		from, to := c.passed()
		if to == 0 {
			return band{}
		}
		e := level(wholly)
		half := func(level float64) float64 { return (chernoff(c.n, to, level) + chernoff(c.n, 1-from, level) - 1) / 2 }
		return band{half(e - math.Log(math.Sqrt(4*math.Pi*e))), half(e)} // the overshoot theorem takes no more off the exponent than the normal law would (docs/proofs/overshoot.md)
	case oneRound:
		return exactly(ofCounts(c.n, c.late, level(plain)))
	case "split":
		return exactly(ofCounts(c.slice, c.lateSlice, level(wholly)))
	case "gaussian": // is never narrower than the batch, and a cut by Chernoff's inequality makes it narrower than planned
		return band{ofCounts(c.n, c.late, level(plain)), gaussianApart[c.n]}
	case "thresholdout": // never narrower than an exact comparison, and the share's variance makes it narrower than that of one half
		return band{ofCounts(c.n, c.late, level(compared)), c.ofComparisons()}
	}
	return band{}
}

// normal is the textbook's half-width at a two-sided level.
func (c counted) normal(miss float64) float64 {
	p := c.late / c.n
	return -distuv.UnitNormal.Quantile(miss/2) * math.Sqrt(p*(1-p)/(c.n-1))
}

// passed is between what the holdout's share is said to be: the training part's guess and Wilson's margin, of one or of two times z, whichever holds (docs/proofs/two-moments.md, section 5).
func (c counted) passed() (from, to float64) {
	g, s := c.lateTraining/c.training, 1/c.n+1/c.training
	v := g * (1 - g)
	y2 := min(1, 1-3*v)
	for _, times := range []float64{1, 2} {
		z := times * min(max(-distuv.UnitNormal.Quantile(0.15/budget), 2), 4.5)
		d := z*math.Sqrt(s*v+z*z*s*s*y2/4) + z*z*s*math.Sqrt(y2)/2
		if from, to = g-d, g+d; math.Abs(c.late/c.n-g) <= d {
			return from, to
		}
	}
	return 0, 0 // a failure, whose interval is about a cell: see of
}

// ofComparisons is the half-width of thresholdout's first answer about a share of one half: the threshold, the noise of all comparisons and what sampling adds (docs/proofs/adaptive-hoeffding.md, section 6).
func (c counted) ofComparisons() float64 {
	u := -distuv.UnitNormal.Quantile(-math.Expm1(math.Log1p(-compared*(1-confidence)) / budget))
	sigma := math.Sqrt(math.Sqrt(tokens/2/(8*(c.n-1))) / (u * math.Sqrt(2*c.n)))
	return 1.5*math.Sqrt(1/c.n+1/c.training) + u*sigma + math.Sqrt(level(compared)/(2*c.n))
}

// above is Clopper's and Pearson's upper end where the share of n is at most so much.
func (c counted) above(share, level float64) float64 { return upper(c.n, math.Floor(share*c.n), level) }

// upper is the probability at which so few of n or fewer have the probability e^-level.
func upper(n, count, level float64) float64 {
	if count >= n {
		return 1
	}
	return distuv.Beta{Alpha: count + 1, Beta: n - count}.Quantile(-math.Expm1(-level))
}

// ofCounts is half of Clopper's and Pearson's interval.
func ofCounts(n, count, level float64) float64 {
	return (upper(n, count, level) + upper(n, n-count, level) - 1) / 2
}

// chernoff is the largest x >= a with n kl(a||x) <= level.
func chernoff(n, a, level float64) float64 {
	low, high := a, 1.0
	for range 60 {
		if x := (low + high) / 2; n*(a*math.Log(a/x)+(1-a)*math.Log((1-a)/(1-x))) <= level {
			low = x
		} else {
			high = x
		}
	}
	return low
}
