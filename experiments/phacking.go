package experiments

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// Conditions of PHacking, Row.Condition.
const (
	LabelsShuffled = "labels shuffled"
	LabelsReal     = "real labels"
)

// Ways of testing, Row.Method. The first two share what the analyst sees: exact answers.
const (
	testPlain      = "plain test"
	testBonferroni = "Bonferroni"
)

// Measures of PHacking, Row.Set.
const (
	FalseDiscoveries   = "false discoveries"
	AnyFalseDiscovery  = "any false discovery"
	RiskGroupFalse     = "the risk group is a false discovery"
	TrueDiscoveries    = "true discoveries"
	RiskGroupDeviation = "the risk group's excess, in standard errors"
)

const (
	hackingTests = 200
	hackingLevel = 0.05
)

var pHackingExperiment = Experiment{
	Name:  "p-hacking",
	Short: "how many false discoveries 200 adaptive subgroup tests make on real data with shuffled labels",
	Paper: `Theory: an analyst tests whether groups of flights are late more often than all. Where labels are shuffled nothing is to be found. A plain test at 5%
finds something nearly always among 200 groups. Bonferroni's correction is right for groups that are chosen beforehand; but the last group is made of the answers
(flights with a positive sum of the excesses of their hour, weekday, month, distance and airports). Over a table with f free excesses it deviates by about sqrt(f/pi) standard errors, 5.4 here, where the corrected test
takes 3.7 for a discovery. The mechanisms promise that with probability 95% none of their intervals misses, whatever is asked: so at most one run in twenty has
any false discovery (arXiv 1411.2664; docs/GUARANTEES.md).`,
	Flags: []Flag{
		{Name: "n", Usage: "flights in the holdout, and as many in the training part of thresholdout (default 200000)"},
	},
	Small: Options{Quick: true, Repetitions: 5, Set: map[string]string{"n": "20000"}},
	Run:   PHacking,
}

// hackingRun is what one analyst finds.
type hackingRun struct {
	False     [2]int  `json:"false"` // discoveries; by the plain test and by Bonferroni's, or by intervals and 0
	True      [2]int  `json:"true"`
	Risk      [2]bool `json:"risk"` // the last test is a false discovery
	Deviation float64 `json:"deviation"`
}

// hackingCell is a condition with a mechanism.
type hackingCell struct {
	condition string
	params    thresholdout.Params
	runs      []hackingRun
}

// PHacking tests subgroups of flights.
func PHacking(ctx context.Context, o Options) (Result, error) {
	result := Result{Experiment: "p-hacking", Seed: o.Seed, Quick: o.Quick}
	n, err := o.Int("n", 200000)
	if err != nil {
		return result, err
	}
	repetitions := o.repetitions(100)
	if o.Quick {
		repetitions = o.repetitions(20)
	}
	table, err := subgroups()
	if err != nil {
		return result, err
	}
	population := table.all()
	var cells []*hackingCell
	for _, condition := range []string{LabelsShuffled, LabelsReal} {
		for _, m := range []thresholdout.Mechanism{thresholdout.Naive, thresholdout.Gaussian, thresholdout.Thresholdout} {
			p := thresholdout.Params{Mechanism: m, N: int64(n), Questions: hackingTests}
			if m == thresholdout.Thresholdout {
				p.Training = int64(n)
			}
			if p, err = thresholdout.New(p); err != nil {
				return result, fmt.Errorf("experiments: p-hacking: %w", err)
			}
			cells = append(cells, &hackingCell{condition: condition, params: p})
		}
	}
	runs, finished, err := Repeat(ctx, o, "analysts", len(cells)*repetitions, func(_ context.Context, i int) (hackingRun, error) {
		return cells[i%len(cells)].play(table, population, seedOf(o.Seed, uint64(i)))
	})
	for i, r := range runs {
		if finished[i] {
			c := cells[i%len(cells)]
			c.runs = append(c.runs, r)
		}
	}
	result.Complete = err == nil
	for _, c := range cells {
		result.Rows = append(result.Rows, c.rows()...)
	}
	if result.Complete {
		result.Checks = hackingChecks(result.Rows, table, int64(n))
	}
	result.Notes = hackingNotes(table, cells, n, repetitions)
	result.Summary = [][]string{{"LABELS", "METHOD", "FLIGHTS", "MEASURE", "MEAN", "95% INTERVAL", "REPETITIONS"}}
	for _, r := range result.Rows {
		result.Summary = append(result.Summary, []string{r.Condition, r.Method, fmt.Sprint(r.N), r.Set, fmt.Sprintf("%.3f", r.Mean),
			fmt.Sprintf("%.3f to %.3f", r.Low, r.High), fmt.Sprint(r.Repetitions)})
	}
	result.Figures = hackingFigures(result.Rows)
	return result, err
}

func hackingNotes(table *subgroupTable, cells []*hackingCell, n, repetitions int) []string {
	notes := []string{
		fmt.Sprintf("%d flights are drawn with replacement from %d real ones; %.4f are more than %d minutes late. With shuffled labels a flight has the lateness of another draw. "+
			"%d repetitions of each.", n, len(table.late), table.rate, late, repetitions),
		fmt.Sprintf("%d tests: of %d single groups by hour, weekday, month, tenth of the distance, origin and destination; of what is common to the most promising two, in turn; "+
			"last of the risk group. Row function: 1 or 0 for a late or another flight of the group, the known rate outside. The plain test is of a mean with the known rate, P below %v; "+
			"Bonferroni's has a level of %v. Through a mechanism, a discovery is an interval that excludes the rate. With real labels a discovery is false whose direction is.",
			hackingTests, table.groups(), hackingLevel, hackingLevel/hackingTests),
	}
	for _, c := range cells {
		if c.params.Mechanism == thresholdout.Gaussian && c.condition == LabelsShuffled {
			notes = append(notes, fmt.Sprintf("Half-width of gaussian: %.4f.", c.params.HalfWidth))
		}
	}
	return notes
}

// hacker is one analyst at work.
type hacker struct {
	table      *subgroupTable
	population *subgroupPart
	shuffled   bool
	holdout    *subgroupPart
	training   *subgroupPart
	oracle     Oracle
	params     thresholdout.Params
	run        hackingRun
}

// play lets the analyst do all tests.
func (c *hackingCell) play(table *subgroupTable, population *subgroupPart, seed uint64) (hackingRun, error) {
	h := hacker{table: table, population: population, shuffled: c.condition == LabelsShuffled, params: c.params,
		oracle: newHoldout(c.params, seedOf(seed, 3))}
	h.holdout = table.draw(seedOf(seed, 1), int(c.params.N), h.shuffled)
	if c.params.Training > 0 {
		h.training = table.draw(seedOf(seed, 2), int(c.params.Training), h.shuffled)
	}
	err := h.hack()
	return h.run, err
}

// hack asks about single groups, about pairs of the most promising, and about the risk group.
func (h *hacker) hack() error {
	type tested struct {
		groups    []int
		deviation float64
	}
	var singles []tested
	weights := make([]float64, h.table.groups())
	test := func(groups []int) (deviation, excess float64, err error) {
		return h.test(func(p *subgroupPart) (int, int) { return p.counts(groups) })
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
	for far := 1; asked < hackingTests-1 && far < len(singles); far++ {
		for near := range far {
			a, b := singles[near].groups[0], singles[far].groups[0]
			if attributeA, _ := h.table.attribute(a); asked < hackingTests-1 {
				if attributeB, _ := h.table.attribute(b); attributeA == attributeB {
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
	deviation, _, err := h.test(func(p *subgroupPart) (int, int) { return p.riskCounts(weights) })
	h.run.Deviation = deviation
	for i := range before {
		h.run.Risk[i] = h.run.False[i] > before[i]
	}
	return err
}

// test asks about a group, and counts what is a discovery. The group's share is public: attributes are known of every flight. It returns
// the deviation in standard errors and the group's excess, as told.
func (h *hacker) test(counts func(p *subgroupPart) (members, lateMembers int)) (deviation, excess float64, err error) {
	rate := h.table.rate
	members, lateMembers := counts(h.population)
	share := float64(members) / float64(h.population.n)
	truth := rate
	if !h.shuffled {
		truth = (float64(lateMembers) + float64(h.population.n-members)*rate) / float64(h.population.n)
	}
	mean := func(p *subgroupPart) thresholdout.Mean {
		members, lateMembers := counts(p)
		return p.mean(members, lateMembers, rate)
	}
	told, interval, err := h.oracle.Ask(Question{Truth: truth,
		Holdout:  func(int64, int64) thresholdout.Mean { return mean(h.holdout) },
		Training: func() thresholdout.Mean { return mean(h.training) }})
	if err != nil || members == 0 {
		return 0, 0, err
	}
	deviation = (told - rate) / math.Sqrt(share*rate*(1-rate)/float64(h.params.N))
	if interval != nil {
		h.discover(0, interval.Low > rate || interval.High < rate, told, truth)
		return deviation, (told - rate) / share, nil
	}
	p := 2 * distuv.UnitNormal.Survival(math.Abs(deviation))
	h.discover(0, p < hackingLevel, told, truth)
	h.discover(1, p < hackingLevel/hackingTests, told, truth)
	return deviation, (told - rate) / share, nil
}

// discover counts a discovery by one of the ways of testing: it is true if the truth is on the side that was told.
func (h *hacker) discover(way int, found bool, told, truth float64) {
	switch rate := h.table.rate; {
	case !found:
	case (told-rate)*(truth-rate) > 0:
		h.run.True[way]++
	default:
		h.run.False[way]++
	}
}
