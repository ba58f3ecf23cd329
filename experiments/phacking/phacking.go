// Package phacking lets an analyst test 200 subgroups of real flights for being late, and choose as it goes. Labels are shuffled, so that
// every discovery is false, or real. Plain tests and Bonferroni's correction are compared with the intervals of the mechanisms, and with
// the queries of type test that a server answers (Dwork et al., arXiv 1411.2664).
//
// The 200,000 flights are drawn with replacement from the demo's 100,000. Their number was raised until gaussian found the risk group.
package phacking

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/experiments/tables"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What the labels are: run.Row.Condition.
const (
	labelsShuffled = "labels shuffled"
	labelsReal     = "real labels"
)

// Ways of testing, run.Row.Method, beside the mechanisms. These two share what the analyst sees: exact answers.
const (
	testPlain      = "plain test"
	testBonferroni = "Bonferroni"
)

// testQueries is the way of a user of a server: queries of type test, asked of the server's default mechanism.
const testQueries = "test queries"

// What is measured: run.Row.Set.
const (
	falseDiscoveries   = "false discoveries"
	anyFalseDiscovery  = "any false discovery"
	riskGroupFalse     = "the risk group is a false discovery"
	trueDiscoveries    = "true discoveries"
	riskGroupDeviation = "the risk group's excess, in standard errors"
	unlikeVerdict      = "any verdict is not that of its p-value"
	riskGroupGuess     = "the risk group's excess in the training part, in standard errors" // of test queries
)

const (
	testCount = 200
	level     = 0.05
)

// mechanisms that are asked beside exact answers: a fresh slice of the flights for each question, noise, and guesses, the last of which is the server's default.
var mechanisms = []thresholdout.Name{thresholdout.Split, thresholdout.Gaussian, thresholdout.Thresholdout, thresholdout.GuessAndCheck}

// Experiment is adaptive subgroup tests.
var Experiment = run.Experiment{
	Name:  "p-hacking",
	Short: "how many false discoveries 200 adaptive subgroup tests make on real data with shuffled labels",
	Paper: `Theory: an analyst tests whether groups of flights are late more often than all. Where labels are shuffled nothing is to be found. A plain test at 5%
finds something nearly always among 200 groups. Bonferroni's correction is right for groups that are chosen beforehand; but the last group is made of the answers
(flights with a positive sum of the excesses of their hour, weekday, month, distance and airports). Over a table with f free excesses it deviates by about sqrt(f/pi) standard errors, 5.4 here, where the corrected test
takes 3.7 for a discovery. The mechanisms promise that with probability 95% none of their intervals misses, whatever is asked: so at most one run in twenty has
any false discovery (arXiv 1411.2664; docs/GUARANTEES.md). Queries of type test ask the default mechanism for the share of late flights in a group,
and reject where its interval, which follows the group's own variance, excludes that of all flights: that too is right for any analyst, and finds more.`,
	Flags: []run.Flag{
		{Name: "n", Usage: "flights in the holdout, and as many in the training part of mechanisms that compare (default 200000)"},
	},
	Small: run.Options{Quick: true, Repetitions: 5, Set: map[string]string{"n": "20000"}},
	Run:   measure,
}

// outcome is what one analyst finds.
type outcome struct {
	False     [2]int  `json:"false"` // false discoveries: by the plain test and by Bonferroni's; under a mechanism by its intervals, and 0
	True      [2]int  `json:"true"`
	Risk      [2]bool `json:"risk"` // the last test is a false discovery
	Deviation float64 `json:"deviation"`
	Unlike    bool    `json:"unlike,omitempty"` // a test's verdict is not that of its p-value
	Guess     float64 `json:"guess,omitempty"`  // the deviation of test queries' risk group in the training part
}

// cell is a condition with a mechanism.
type cell struct {
	condition string
	guarantee thresholdout.Guarantee
	tests     bool // it is asked in queries of type test
	runs      []outcome
}

// measure tests subgroups of flights.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "p-hacking", Seed: o.Seed, Quick: o.Quick}
	n, err := o.Int("n", 200000)
	if err != nil {
		return result, err
	}
	repetitions := o.RepetitionsOr(100)
	if o.Quick {
		repetitions = o.RepetitionsOr(20)
	}
	table, err := tables.FlightGroups()
	if err != nil {
		return result, err
	}
	population := wholePart(table)
	var cells []*cell
	for _, condition := range []string{labelsShuffled, labelsReal} {
		for _, m := range append([]thresholdout.Name{thresholdout.Naive}, mechanisms...) {
			spec := thresholdout.Spec{Mechanism: m, N: int64(n), Questions: testCount}
			if m == thresholdout.Thresholdout || m == thresholdout.GuessAndCheck {
				spec.Training = int64(n)
			}
			p, err := thresholdout.Plan(spec)
			if err != nil {
				return result, fmt.Errorf("experiments: p-hacking: %w", err)
			}
			cells = append(cells, &cell{condition: condition, guarantee: p})
		}
		p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Auto, N: int64(n), Training: int64(n), Questions: testCount})
		if err != nil {
			return result, fmt.Errorf("experiments: p-hacking: %w", err)
		}
		cells = append(cells, &cell{condition: condition, guarantee: p, tests: true})
	}
	runs, finished, err := run.Repeat(ctx, o, "analysts", len(cells)*repetitions, func(_ context.Context, i int) (outcome, error) {
		return cells[i%len(cells)].play(table, population, seeds.Of(o.Seed, uint64(i)))
	})
	for i, r := range run.Dealt(runs, finished, len(cells)) {
		cells[i].runs = r
	}
	result.Complete = err == nil
	for _, c := range cells {
		result.Rows = append(result.Rows, c.rows()...)
	}
	if result.Complete {
		result.Checks, err = checksOf(cells, result.Rows, table, int64(n))
	}
	result.Notes = notesOf(table, cells, n, repetitions)
	result.Summary = [][]string{{"LABELS", "METHOD", "FLIGHTS", "MEASURE", "MEAN", "95% INTERVAL", "REPETITIONS"}}
	for _, r := range result.Rows {
		result.Summary = append(result.Summary, []string{r.Condition, r.Method, fmt.Sprint(r.N), r.Set, fmt.Sprintf("%.3f", r.Mean),
			fmt.Sprintf("%.3f to %.3f", r.Low, r.High), fmt.Sprint(r.Repetitions)})
	}
	result.Figures = figuresOf(result.Rows)
	return result, err
}

func notesOf(table *tables.Groups, cells []*cell, n, repetitions int) []string {
	notes := []string{
		fmt.Sprintf("%d flights are drawn with replacement from %d real ones; %.4f are more than %d minutes late. With shuffled labels a flight has the lateness of another draw. "+
			"%d repetitions of each.", n, len(table.Late), table.Rate, tables.LateMinutes, repetitions),
		fmt.Sprintf("%d tests: of %d single groups by hour, weekday, month, tenth of the distance, origin and destination; of what is common to the most promising two, in turn; "+
			"last of the risk group. Row function: 1 or 0 for a late or another flight of the group, the known rate outside. The plain test is of a mean with the known rate, P below %v; "+
			"Bonferroni's has a level of %v. Through a mechanism, a discovery is an interval that excludes the rate. With real labels a discovery is false whose direction is.",
			testCount, table.Count(), level, level/testCount),
		fmt.Sprintf("%s are {\"type\":\"test\",\"test\":\"proportion\"} about the flights of a group (where), with the known rate as null hypothesis (equals), asked in the query language of %s, which auto chose; "+
			"a discovery is the verdict yes.", testQueries, cells[len(cells)-1].guarantee.Mechanism),
	}
	for _, c := range cells {
		if c.guarantee.Mechanism == thresholdout.Gaussian && c.condition == labelsShuffled {
			notes = append(notes, fmt.Sprintf("Half-width of gaussian: %.4f.", c.guarantee.HalfWidth))
		}
	}
	return notes
}

// hacker is one analyst at work.
type hacker struct {
	table      *tables.Groups
	population *part
	shuffled   bool
	holdout    *part
	training   *part
	oracle     analysts.Oracle
	tester     *tester // asks instead, in queries
	guarantee  thresholdout.Guarantee
	run        outcome
}

// play lets the analyst do all tests.
func (c *cell) play(table *tables.Groups, population *part, seed uint64) (outcome, error) {
	h := hacker{table: table, population: population, shuffled: c.condition == labelsShuffled, guarantee: c.guarantee,
		oracle: analysts.NewHoldout(c.guarantee, seeds.Of(seed, 3))}
	h.holdout = drawPart(table, seeds.Of(seed, 1), int(c.guarantee.N), h.shuffled)
	if c.guarantee.Training > 0 {
		h.training = drawPart(table, seeds.Of(seed, 2), int(c.guarantee.Training), h.shuffled)
	}
	var err error
	if c.tests {
		if h.tester, err = newTester(c.guarantee, table, h.holdout, h.training, seeds.Of(seed, 3)); err != nil {
			return h.run, err
		}
	}
	err = h.hack()
	return h.run, err
}

// hack asks about single groups, about pairs of the most promising, and about the risk group.
func (h *hacker) hack() error {
	type tested struct {
		groups    []int
		deviation float64
	}
	var singles []tested
	weights := make([]float64, h.table.Count())
	test := func(groups []int) (deviation, excess float64, err error) {
		return h.test(subgroup{
			counts: func(p *part, from, to int) (int, int) { return p.counts(groups, from, to) },
			where:  func() string { return h.tester.all(groups) },
		})
	}
	for g := range weights {
		deviation, excess, err := test([]int{g})
		if err != nil {
			return err
		}
		weights[g] = excess
		singles = append(singles, tested{[]int{g}, deviation})
	}
	slices.SortFunc(singles, func(a, b tested) int { return cmp.Or(cmp.Compare(b.deviation, a.deviation), a.groups[0]-b.groups[0]) })
	asked := len(singles)
	for far := 1; asked < testCount-1 && far < len(singles); far++ {
		for near := range far {
			a, b := singles[near].groups[0], singles[far].groups[0]
			if attributeA, _ := h.table.Attribute(a); asked < testCount-1 {
				if attributeB, _ := h.table.Attribute(b); attributeA == attributeB {
					continue
				}
				if _, _, err := test([]int{a, b}); err != nil {
					return err
				}
				asked++
			}
		}
	}
	before := h.run.False
	deviation, _, err := h.test(subgroup{
		counts: func(p *part, from, to int) (int, int) { return p.riskCounts(weights, from, to) },
		where:  func() string { return h.tester.positive(weights) },
	})
	h.run.Deviation = deviation
	if h.tester != nil && h.training != nil {
		members, lateMembers := h.training.riskCounts(weights, 0, h.training.n)
		whole, _ := h.population.riskCounts(weights, 0, h.population.n)
		h.run.Guess = h.deviation(float64(lateMembers)/float64(max(1, members))-h.table.Rate, float64(whole)/float64(h.population.n))
	}
	for i := range before {
		h.run.Risk[i] = h.run.False[i] > before[i]
	}
	return err
}

// subgroup is flights that a test is about.
type subgroup struct {
	counts func(p *part, from, to int) (members, lateMembers int)
	where  func() string // as a condition of the query language
}

// test asks about a group, and counts what is a discovery. The group's share is public: attributes are known of every flight. It returns
// the deviation in standard errors and the group's excess, as told.
func (h *hacker) test(g subgroup) (deviation, excess float64, err error) {
	rate := h.table.Rate
	members, lateMembers := g.counts(h.population, 0, h.population.n)
	share := float64(members) / float64(h.population.n)
	if h.tester != nil {
		return h.query(g, share, float64(lateMembers)/float64(max(1, members)))
	}
	truth := rate
	if !h.shuffled {
		truth = (float64(lateMembers) + float64(h.population.n-members)*rate) / float64(h.population.n)
	}
	mean := func(p *part, from, to int) thresholdout.Mean {
		members, lateMembers := g.counts(p, from, to)
		return meanOf(to-from, members, lateMembers, rate)
	}
	told, interval, err := h.oracle.Ask(analysts.Question{Truth: truth,
		Holdout:  func(from, to int64) thresholdout.Mean { return mean(h.holdout, int(from), int(to)) },
		Training: func() thresholdout.Mean { return mean(h.training, 0, h.training.n) }})
	if err != nil || members == 0 {
		return 0, 0, err
	}
	deviation = (told - rate) / math.Sqrt(share*rate*(1-rate)/float64(h.guarantee.N))
	if interval != nil {
		h.discover(0, interval.Low > rate || interval.High < rate, told, truth)
		return deviation, (told - rate) / share, nil
	}
	p := 2 * distuv.UnitNormal.Survival(math.Abs(deviation))
	h.discover(0, p < level, told, truth)
	h.discover(1, p < level/testCount, told, truth)
	return deviation, (told - rate) / share, nil
}

// query is the same by a query of type test, whose effect is the group's own rate.
func (h *hacker) query(g subgroup, share, truth float64) (deviation, excess float64, err error) {
	rate := h.table.Rate
	if h.shuffled {
		truth = rate
	}
	v, err := h.tester.test(g.where())
	if err != nil || !v.valued || share == 0 {
		return 0, 0, err
	}
	h.run.Unlike = h.run.Unlike || v.found != v.pValued
	h.discover(0, v.found, v.value, truth)
	excess = v.value - rate
	return h.deviation(excess, share), excess, nil
}

// deviation is a group's own excess in standard errors, where nothing is to be found.
func (h *hacker) deviation(excess, share float64) float64 {
	return excess / math.Sqrt(h.table.Rate*(1-h.table.Rate)/(share*float64(h.guarantee.N)))
}

// discover counts a discovery by one of the ways of testing: it is true if the truth is on the side that was told.
func (h *hacker) discover(way int, found bool, told, truth float64) {
	switch rate := h.table.Rate; {
	case !found:
	case (told-rate)*(truth-rate) > 0:
		h.run.True[way]++
	default:
		h.run.False[way]++
	}
}
