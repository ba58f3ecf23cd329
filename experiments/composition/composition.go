// Package composition asks what one total guarantee leaves for each of k questions, by every account of dp/account: basic and advanced composition (Dwork, Rothblum and Vadhan 2010),
// the best one for any private answers (Kairouz, Oh and Viswanath, arXiv 1311.0776), zCDP (Bun and Steinke, arXiv 1605.02065), Rényi divergence with its first conversion to (epsilon, delta)
// (Mironov, arXiv 1702.07476) and its present one (Canonne, Kamath and Steinke, arXiv 2004.00010), and distributions of the privacy loss; and what Gaussian noise does instead of Laplace's
// (Dong, Roth and Su, arXiv 1905.02383). Mechanisms are then composed in earnest, and what they lose is measured beside what the accounts say.
package composition

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

//go:embed reference.json
var referenceText []byte

// What is computed or measured: run.Row.Set.
const (
	epsilonOfOne = "epsilon of one question"
	noiseOfOne   = "standard deviation of an answer's noise"
	widthOfAll   = "half-width of the noise of all answers"
	firstBetter  = "fewest questions at which it has less noise than basic composition"
	deltaByLaw   = "delta by the losses"   // E (1 - e^{epsilon-L})_+ over drawn losses L
	deltaByGuess = "delta by the attack"   // P(S) - e^epsilon Q(S), S what a test calls the first table
	claimedBy    = "delta by "             // an account's
	meanLoss     = "mean loss"             // of all k answers
	withinWidth  = "runs within the width" // whose answers' noise is all within widthOfAll
)

const (
	// rows is the size of the holdout whose means are asked for: one row moves a mean in [0,1] by 1/rows.
	rows = 30_000
	// confidence is that of widthOfAll.
	confidence = 0.95
)

// total is a guarantee for all questions together.
type total struct{ eps, delta float64 }

func (t total) String() string { return fmt.Sprintf("(%v, %v)", t.eps, t.delta) }

var (
	usual   = total{1, 1e-6}
	lecture = total{1, 1e-9} // of the delta that gives the lecture's numbers
	totals  = []total{usual, lecture}
)

// lectureQuestions is how many questions the lecture's example has, and what it says of them.
const (
	lectureQuestions = 50_000
	lectureBasic     = 2e-5
	lectureAdvanced  = 7e-4
	lectureFactor    = 35
)

// Experiment is what composition leaves for each question.
var Experiment = run.Experiment{
	Name:  "composition",
	Short: "what one total guarantee leaves for each of k questions, by every account, and what composed mechanisms really lose",
	Paper: `Of k private answers epsilons add up (basic composition); with a little delta they add up as a root of squares (advanced composition: Dwork, Rothblum and Vadhan 2010). In a lecture's
example 50,000 questions under a total epsilon of 1 may have 0.00002 each by the former and 0.0007 by the latter, 35 times as much. Kairouz, Oh and Viswanath (arXiv 1311.0776) have the best
composition of private answers of which nothing else is known; no account may promise more. Every account is an upper bound of what composed mechanisms lose, and the best one is equal to it.`,
	Small: run.Options{Quick: true, Repetitions: 1000},
	Run:   measure,
}

// questions are the numbers of questions.
func questions(quick bool) []int {
	if quick {
		return []int{1, 100, lectureQuestions}
	}
	var ks []int
	for decade := 1; decade < 1_000_000; decade *= 10 {
		for _, digit := range []int{1, 2, 3, 5, 7} {
			ks = append(ks, digit*decade)
		}
	}
	return append(ks, 1_000_000)
}

// plan is what one total leaves for each of k questions, by every method in their order.
type plan struct {
	total total
	k     int
	known bool
	Parts []part
}

// part is what a method leaves for one question, and the noise that an answer then has.
type part struct {
	Epsilon float64 // 0 for Gaussian noise, which has none
	SD      float64 // in parts of the range [0,1] of a mean over rows
	Width   float64
	First   int // firstBetter, in the plans of one question
}

func (p plan) of(method string) part {
	for i, m := range methods {
		if m.name == method && i < len(p.Parts) {
			return p.Parts[i]
		}
	}
	return part{}
}

// planOf is the plan of a total and a number of questions; the zero plan where it is not known.
func planOf(plans []plan, t total, k int) plan {
	for _, p := range plans {
		if p.total == t && p.k == k && p.known {
			return p
		}
	}
	return plan{}
}

func newPlans(quick bool) (plans []plan) {
	for _, t := range totals {
		for _, k := range questions(quick) {
			plans = append(plans, plan{total: t, k: k})
		}
	}
	return plans
}

func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "composition", Seed: o.Seed, Quick: o.Quick}
	repetitions := 100_000
	if o.Quick {
		repetitions = 20_000
	}
	repetitions = o.RepetitionsOr(repetitions)
	reference, err := run.ParseReference(referenceText)
	if err != nil {
		return result, err
	}
	plans, games, answers := newPlans(o.Quick), newGames(o.Quick, repetitions), []*answered(nil)
	values, finished, err := run.Repeat(ctx, o, "plans", len(plans), func(_ context.Context, i int) ([]part, error) {
		return newPlan(plans[i].total, plans[i].k)
	})
	for i := range plans {
		plans[i].Parts, plans[i].known = values[i], finished[i]
	}
	if err == nil {
		err = playAll(ctx, o, games)
	}
	if err == nil {
		answers, err = answerAll(ctx, o, max(repetitions/20, 100))
	}
	result.Complete = err == nil
	result.Rows = rowsOf(plans, games, answers)
	if result.Complete {
		result.Compare(comparisons(reference, plans, games, answers))
	}
	result.Summary = tableOf(plans)
	result.Notes = []string{
		fmt.Sprintf("Each question is the mean of numbers in [0,1] over %s rows, and neighbours differ in one row. The half-width holds the noise of all k answers with probability %v; the rows' own error is not in it. "+
			"The lecture's 7e-4 and 35 are those of a total delta of 1e-9, from the first term of advanced composition alone, rounded: sqrt(2k ln(1/delta)) eps = 1 gives %.3g.", figure.Thousands(rows), confidence, firstTerm(lecture, lectureQuestions)),
		"The distribution of losses is kept in steps of 1e-4, and what rounding may be off by counts as lost: with a delta of 1e-9 that is too much for many questions, so that this account is shown for 1e-6 only, and it says a little too much where a question has an epsilon of a few steps.",
		fmt.Sprintf("Each mechanism is composed %s times or more on either of two neighbouring tables. The attack calls a draw the first table's where the loss by the mechanism's stated law is above epsilon; "+
			"the difference of the rates at which it does so bounds delta from below whatever the law is.", figure.Thousands(int64(repetitions))),
	}
	if slices.Contains(finished, true) {
		result.Figures = figures(plans, games)
	}
	return result, err
}

// arithmetic is a row of a number that chance does not move.
func arithmetic(r run.Row, value float64) run.Row {
	r.Repetitions = 1
	r.Summarise([]float64{value})
	r.Low, r.High = value, value
	return r
}

func rowsOf(plans []plan, games []*game, answers []*answered) []run.Row {
	var all []run.Row
	for _, p := range plans {
		for i, m := range methods {
			if !p.known || !m.covers(p.total) {
				continue
			}
			row := run.Row{Condition: "total " + p.total.String(), Method: m.name, N: rows, K: int64(p.k)}
			add := func(set string, value float64) {
				row.Set = set
				all = append(all, arithmetic(row, value))
			}
			if m.isLaplace() {
				add(epsilonOfOne, p.Parts[i].Epsilon)
			}
			add(noiseOfOne, p.Parts[i].SD)
			row.Confidence = confidence
			add(widthOfAll, p.Parts[i].Width)
			if row.Confidence = 0; p.k == 1 && m.name != basic {
				add(firstBetter, float64(p.Parts[i].First))
			}
		}
	}
	for _, f := range forms {
		all = append(all, arithmetic(run.Row{Condition: "total " + lecture.String(), Method: f.name, N: rows, K: lectureQuestions, Set: epsilonOfOne}, f.epsilon(lecture, lectureQuestions)))
	}
	for _, g := range games {
		all = append(all, g.rows()...)
	}
	for _, a := range answers {
		if a.within.Runs > 0 {
			all = append(all, a.row())
		}
	}
	return all
}

// shownQuestions are those of the table.
var shownQuestions = []int{10, 100, 1000, lectureQuestions, 1_000_000}

// tableOf says what each question may have, with the factor over basic composition, and the noise of its answer.
func tableOf(plans []plan) [][]string {
	table := [][]string{{"TOTAL", "QUESTIONS", "BY", "EPSILON OF ONE", "TIMES BASIC", "NOISE SD", "HALF-WIDTH OF ALL", "BETTER THAN BASIC FROM"}}
	short := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	for _, t := range totals {
		for _, k := range shownQuestions {
			p := planOf(plans, t, k)
			if !p.known {
				continue
			}
			for i, m := range methods {
				if !m.covers(t) {
					continue
				}
				of, from := p.Parts[i], ""
				eps := "-"
				if m.isLaplace() {
					eps = short(of.Epsilon)
				}
				if one := planOf(plans, t, 1); one.known && m.name != basic {
					from = figure.Thousands(int64(one.Parts[i].First))
				}
				table = append(table, []string{t.String(), figure.Thousands(int64(k)), m.name, eps, short(p.of(basic).SD / of.SD), short(of.SD), short(of.Width), from})
			}
		}
	}
	return table
}

// laplaceSD and laplaceWidth are of Laplace noise that makes a mean eps-private; widths are of k answers together.
func laplaceSD(eps float64) float64 { return math.Sqrt2 / eps / rows }

func laplaceWidth(eps float64, k int) float64 { return -math.Log(missEach(k)) / eps / rows }

// missEach is the probability with which each of k answers may be beyond the half-width.
func missEach(k int) float64 { return -math.Expm1(math.Log(confidence) / float64(k)) }
