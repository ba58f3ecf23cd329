package guaranteed

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// What the separate program counts: run.Row.Set of reference.json.
const (
	countedApart = "questions"
	byChernoff   = "questions by Chernoff"       // which the overshoot theorem is narrower than
	byNormalLaw  = "questions by the normal law" // which no bound by it is narrower than
)

const (
	// tolerance is how far a count may be from that of the separate program: a part in a hundred is one in four hundred of a half-width, as counts grow with its fourth power. Its own searches, and stretches of many
	// questions that are bounded together, cost less.
	tolerance = 0.01
	// modelError is how far theory may be off of where an attack breaks a half-width: see experiment adaptivity.
	modelError = 0.05
)

func comparisons(reference run.Reference, counted, theories []point, cells []*cell) []checks.Comparison {
	all := againstReference(reference, counted)
	all = append(all, belowAttacks(counted, theories)...)
	for _, r := range analysts.Rivals {
		for _, w := range widths {
			all = append(all, againstTheory(cells, r, w))
		}
	}
	for _, r := range analysts.Rivals {
		all = append(all, atTheGuarantee(cells, r), errorsAtTheGuarantee(cells, r))
	}
	return all
}

// againstReference holds each curve to the separate program's, at the sizes at which it is farthest below and above. Counts next to each other are the same.
func againstReference(reference run.Reference, counted []point) []checks.Comparison {
	var all []checks.Comparison
	for _, c := range curves {
		for _, w := range widths {
			beneath, above := math.Inf(1), math.Inf(-1)
			for _, p := range counted {
				if p.name == c.name && p.w == w {
					beneath = min(beneath, ratio(reference, p, c.apart.low, 1))
					above = max(above, ratio(reference, p, c.apart.high, -1))
				}
			}
			what := fmt.Sprintf("%s within %s", c.name, named(w))
			all = append(all, checks.NotBelow(fmt.Sprintf("%s: least ratio to the %s of a separate program", what, c.apart.low), c.apart.least, beneath).
				Also(func(float64) string { return fmt.Sprintf("counts that are below %.3g of these", c.apart.least/beneath) }),
				checks.NotAbove(fmt.Sprintf("%s: largest ratio to its %s", what, c.apart.high), 1+tolerance, above).
					Also(func(float64) string {
						return fmt.Sprintf("counts that are above %.3g times these", (1+tolerance)/above)
					}))
		}
	}
	return all
}

// ratio of a count to the reference's, where one more, or less, is the same. Where the reference has none it is far off.
func ratio(reference run.Reference, p point, set string, one float64) float64 {
	want := run.Find(reference.Rows, named(p.w), p.name, p.n, set)
	switch {
	case want.Repetitions == 0 && one > 0:
		return 0
	case want.Repetitions == 0:
		return math.MaxFloat64
	}
	if math.Abs(p.value-want.Mean) <= 1 {
		return 1
	}
	return (p.value + one) / max(want.Mean, 1)
}

// belowAttacks: no more questions are guaranteed than theory says break the half-width.
func belowAttacks(counted, theories []point) []checks.Comparison {
	var all []checks.Comparison
	for _, c := range curves {
		if c.rival == "" {
			continue
		}
		worst, at := 0.0, int64(0)
		for _, t := range theories {
			if t.name != c.rival {
				continue
			}
			// Two questions are the fewest of an attack; where fewer are guaranteed there is nothing to compare.
			if k, known := valueAt(counted, c.name, t.w, t.n); known && k >= 2 && k/t.value > worst {
				worst, at = k/t.value, t.n
			}
		}
		all = append(all, checks.NotAbove(fmt.Sprintf("%s: questions guaranteed over those at which theory says that the attack breaks the half-width, at its largest (n = %d)", c.name, at), 1, worst).
			Also(func(float64) string { return fmt.Sprintf("counts that are %.2g times these", 1/worst) }))
	}
	return all
}

// againstTheory holds the measured numbers to theory's: a weaker attack, or other noise than was planned, shows.
func againstTheory(cells []*cell, r analysts.Rival, w float64) checks.Comparison {
	var means []float64
	within, freedom, variance := 0.0, 0, 0.0
	for _, c := range cells {
		if c.rival.Name != r.Name || c.w != w || c.promised {
			continue
		}
		var logs []float64
		for _, k := range c.breaks() {
			logs = append(logs, math.Log(k/c.theory))
		}
		means = append(means, stat.Mean(logs, nil))
		if len(logs) > 1 {
			within += float64(len(logs)-1) * stat.Variance(logs, nil)
			freedom += len(logs) - 1
		}
		variance += 1 / float64(len(logs))
	}
	count := float64(len(means))
	standard := math.Sqrt(within/float64(max(1, freedom))*variance) / count
	return checks.Estimate(fmt.Sprintf("attack on %s within %s: logarithm of the questions measured over theory's", attacked(r.Name), named(w)), 0, modelError, stat.Mean(means, nil), standard, freedom)
}

// errorsAtTheGuarantee holds the mean of the largest errors at the number that is guaranteed to theory's: there noise is much of an error, so that less noise than was planned shows, too, which no rate of misses tells.
func errorsAtTheGuarantee(cells []*cell, r analysts.Rival) checks.Comparison {
	sum, variance, freedom, count := 0.0, 0.0, 0, 0.0
	for _, c := range cells {
		if c.rival.Name != r.Name || !c.promised {
			continue
		}
		errors := make([]float64, len(c.runs))
		for i, worst := range c.runs {
			errors[i] = worst[0] / c.theory
		}
		s := checks.Of(errors)
		sum, variance, freedom, count = sum+s.Mean, variance+s.SD*s.SD/float64(max(1, s.Runs)), freedom+max(0, s.Runs-1), count+1
	}
	return checks.Estimate(fmt.Sprintf("attack on %s with as many questions as are guaranteed: largest error over theory's", attacked(r.Name)), 1, modelError, sum/count, math.Sqrt(variance)/count, freedom)
}

// atTheGuarantee: with as many questions as are guaranteed, runs with an answer beyond the half-width are no more than one minus the confidence. A raw holdout has to be
// broken by as many questions as gaussian guarantees.
func atTheGuarantee(cells []*cell, r analysts.Rival) checks.Comparison {
	var events checks.Count
	reach, ofCells := 0.0, 0.0
	for _, c := range cells {
		if c.rival.Name == r.Name && c.promised {
			events.Events += c.missed()
			events.Runs += len(c.runs)
			reach += c.reach()
			ofCells++
		}
	}
	if _, ok := curveOf(r.Name); !ok {
		return checks.RateAbove("attack on a raw holdout with as many questions as gaussian guarantees: rate of runs with an error beyond the half-width", 1-confidence, events)
	}
	reached := reach / max(1, ofCells)
	return checks.RateAtMost(fmt.Sprintf("%s with as many questions as are guaranteed: rate of runs with an error beyond the half-width", r.Name), 1-confidence, events).
		Also(func(float64) string {
			return fmt.Sprintf("half-widths below %.2g of these, which is the mean of the largest errors", reached)
		})
}
