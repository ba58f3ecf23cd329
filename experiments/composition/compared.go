package composition

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

const (
	// tolerance is how far an account may be from the separate program's: searches on either side end before.
	tolerance = 1e-6
	// lossesBelow and lossesAbove are how far the account by distributions of losses may be below and above: it is in steps of 1e-4, and of a question whose epsilon is two
	// steps and a half a loss that is divided between two steps has 4% more variance than it should. The separate program has steps of its own, which are finer.
	lossesBelow = 0.04
	lossesAbove = 1e-5
)

func comparisons(reference run.Reference, plans []plan, games []*game, answers []*answered) []checks.Comparison {
	all := lectureComparisons(plans)
	all = append(all, plansApart(reference, plans)...)
	all = append(all, orderOfAccounts(plans)...)
	for _, g := range games {
		all = append(all, g.comparisons(reference)...)
	}
	for _, a := range answers {
		all = append(all, checks.RateIs(fmt.Sprintf("rate of runs in which the noise of all %d answers is within the stated half-width: %s", askedTogether, a.method), confidence, a.within))
	}
	return all
}

// lectureComparisons are of the numbers that the lecture has, rounded as they are.
func lectureComparisons(plans []plan) []checks.Comparison {
	of, each := planOf(plans, lecture, lectureQuestions).of(basic).Epsilon, firstTerm(lecture, lectureQuestions)
	return []checks.Comparison{
		checks.Exactly("the lecture's epsilon of each of 50,000 questions, by basic composition", lectureBasic, 1e-13, of),
		checks.Exactly("the same by the first term of advanced composition, which the lecture rounds to one digit", lectureAdvanced, 0.5e-4, each),
		checks.Exactly("how many times as much that is, which the lecture rounds to a whole number", lectureFactor, 0.5, each/of),
	}
}

// apart is what the separate program has; false where it has nothing.
func apart(reference run.Reference, condition, method string, k int, set string) (float64, bool) {
	for _, r := range reference.Rows {
		if r.Condition == condition && r.Method == method && r.K == int64(k) && r.Set == set {
			return r.Mean, true
		}
	}
	return 0, false
}

// difference is how far a value is from the separate program's, relative to that; far off where it has none.
func difference(reference run.Reference, condition, method string, k int, set string, got float64) float64 {
	want, ok := apart(reference, condition, method, k, set)
	switch {
	case !ok:
		return math.MaxFloat64
	case want == got:
		return 0
	}
	return got/want - 1
}

// plansApart holds every number of the plans to the separate program's, at the places at which it is farthest below and above. A larger epsilon and a smaller noise are above.
func plansApart(reference run.Reference, plans []plan) []checks.Comparison {
	var all []checks.Comparison
	for _, t := range totals {
		condition := "total " + t.String()
		for i, m := range methods {
			if !m.covers(t) {
				continue
			}
			below, above := 0.0, 0.0
			see := func(d float64) { below, above = max(below, -d), max(above, d) }
			for _, p := range plans {
				if p.total != t {
					continue
				}
				of := p.Parts[i]
				if m.isLaplace() {
					see(difference(reference, condition, m.name, p.k, epsilonOfOne, of.Epsilon))
				}
				see(1/(1+difference(reference, condition, m.name, p.k, noiseOfOne, of.SD)) - 1)
				see(1/(1+difference(reference, condition, m.name, p.k, widthOfAll, of.Width)) - 1)
			}
			mayBelow, mayAbove := tolerance, tolerance
			if m.name == lossLaw {
				mayBelow, mayAbove = lossesBelow, lossesAbove
			}
			what := fmt.Sprintf("what each question may have of %s by %s, against a separate program", condition, m.name)
			all = append(all, checks.Exactly(what+": farthest below", 0, mayBelow, below), checks.Exactly(what+": farthest above", 0, mayAbove, above))
			if m.name != basic {
				first := planOf(plans, t, 1).Parts[i].First
				want, _ := apart(reference, condition, m.name, 1, firstBetter)
				all = append(all, checks.Exactly(fmt.Sprintf("fewest questions at which a %s has less noise by %s than by basic composition, against a separate program", condition, m.name), want, 0, float64(first)))
			}
		}
	}
	far := 0.0
	for _, f := range forms {
		far = max(far, math.Abs(difference(reference, "total "+lecture.String(), f.name, lectureQuestions, epsilonOfOne, f.epsilon(lecture, lectureQuestions))))
	}
	return append(all, checks.Exactly("the textbooks' forms of advanced composition, against a separate program: farthest off", 0, tolerance, far))
}

// orderOfAccounts: no account of private answers leaves a question more than the best one does; and Gaussian noise by its exact account is never more than by zCDP.
func orderOfAccounts(plans []plan) []checks.Comparison {
	var all []checks.Comparison
	for _, pair := range []struct{ less, more string }{{basic, optimal}, {advanced, optimal}, {concentrated, optimal}, {renyiFirst, renyi}, {gaussianZCDP, gaussianGDP}} {
		worst := 0.0
		for _, p := range plans {
			worst = max(worst, p.of(pair.more).SD/p.of(pair.less).SD)
		}
		all = append(all, checks.NotAbove(fmt.Sprintf("noise by %s over noise by %s, at its largest", pair.more, pair.less), 1, worst))
	}
	return all
}

// comparisons of a game: what accounts say, what is lost, and what an attack shows of it.
func (g *game) comparisons(reference run.Reference) []checks.Comparison {
	all := []checks.Comparison{checks.Equal(fmt.Sprintf("%v: mean loss", g), g.meanOfOne()*float64(g.k), 0, g.losses())}
	far, least := 0.0, math.Inf(1)
	var exact claim
	for _, c := range g.claims {
		if c.Exact {
			exact = c
		}
	}
	var equals, attacks []checks.Comparison
	for i, eps := range g.at {
		equals = append(equals, checks.Equal(fmt.Sprintf("at epsilon %v", eps), exact.Deltas[i], 0, g.byLaw(i)))
	}
	for _, c := range g.claims {
		var bounds []checks.Comparison
		for i, eps := range g.at {
			allowed := tolerance
			if c.Account == lossLaw {
				allowed = 1e-3 // steps of 1e-4, on either side of the separate program's
			}
			d := difference(reference, fmt.Sprintf("epsilon %v each%s", g.each, g.atEpsilon(i)), g.mechanism, g.k, claimedBy+c.Account, c.Deltas[i])
			far = max(far, min(math.Abs(d), math.MaxFloat64*allowed)/allowed)
			if c.Deltas[i] < 1 {
				bounds = append(bounds, checks.AtMost(fmt.Sprintf("at epsilon %v", eps), c.Deltas[i], g.byAttack(i)))
			}
			least = min(least, c.Deltas[i]/exact.Deltas[i])
		}
		if len(bounds) > 0 {
			attacks = append(attacks, checks.Worst(fmt.Sprintf("%v: delta that the attack shows, against %s", g, c.Account), bounds))
		}
	}
	all = append(all, checks.Exactly(fmt.Sprintf("%v: deltas by all accounts, against a separate program: farthest off, in tolerances", g), 0, 1, far),
		checks.Exactly(fmt.Sprintf("%v: least delta of an account over %s, which none may be below", g, exact.Account), 1, leastTolerance, min(least, 1)),
		checks.Worst(fmt.Sprintf("%v: delta by the losses, against %s", g, exact.Account), equals),
		checks.Equal(fmt.Sprintf("%v: delta that the attack shows at epsilon %v, which is all there is", g, g.at[0]), exact.Deltas[0], 0, g.byAttack(0)))
	return append(all, attacks...)
}

// leastTolerance is for the steps of distributions of losses, beside an account of Laplace noise that is as good.
const leastTolerance = 1e-4
