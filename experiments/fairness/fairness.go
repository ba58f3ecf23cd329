// Package fairness lets a team close a gap: a model of real flights is less often right about a subgroup than about all others. The team adjusts the model for the subgroup, asks the holdout after every change, keeps what seems to
// help, and reports the gap that is left. Exact answers, with plain intervals and with Bonferroni's, are compared with the mechanisms (Dwork et al., arXiv 1411.2664).
package fairness

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What there is to be found: run.Row.Condition.
const (
	nothingToFind = "labels of the subgroup are coins"
	realLabels    = "real labels"
)

// Ways to a gap with an interval, run.Row.Method, beside the mechanisms. These two are of the same exact answers.
const (
	plainInterval      = "exact, plain interval"
	bonferroniInterval = "exact, Bonferroni"
)

// comparing is added to the name of a mechanism that is asked what each rule gains, in place of the accuracy with it.
const comparing = ", by comparisons"

// What is measured: run.Row.Set.
const (
	gapTold      = "gap, as told"
	lowerEnd     = "lower end of its interval"
	upperEnd     = "upper end of its interval"
	gapLeft      = "gap that is left"
	lastMisses   = "the interval misses the gap that is left"
	falselyClose = "told to be closed, and is not"
	trulyClosed  = "told to be closed, and is"
	shrunk       = "what the gap has truly shrunk by"
	anyMisses    = "any interval misses"
	rulesKept    = "rules kept"
	firstWidth   = "half-width of the first accuracy of the subgroup"
	asked        = "questions"
	tokensSpent  = "tokens"
)

const (
	confidence = 0.95
	// closed is the largest gap that counts as closed. A team tells that it is where its interval has nothing beyond.
	closed = 0.05
)

// Experiment is a gap that is closed on the holdout.
var Experiment = run.Experiment{
	Name:  "fairness",
	Short: "how often a subgroup's gap in accuracy is told to be closed that was tuned on the holdout and is not closed",
	Paper: `Theory: a model is right about half of the subgroup's m flights in the holdout. A rule turns its decision for some of them, and is kept if the answer is better.
Rules do not overlap, so that rule g is kept if the model is wrong about more of its flights than right. Exact answers then tell an accuracy of sum E[max(right, wrong)]/m, also
where nothing can be found: 1/2 + sum sqrt(q/(2 pi m)) for rules about shares q of the subgroup. Both the gap that is told and the one that is left follow from binomial laws alone.
The mechanisms promise that with probability 95% none of their intervals misses, whatever is kept: so at most one team in twenty tells that a gap is closed which is not
(arXiv 1411.2664; docs/GUARANTEES.md).`,
	Flags: []run.Flag{
		{Name: "n", Usage: "flights in the holdout, and as many in the training part of thresholdout and guess_and_check (default 150000; 20000 with --quick)"},
		{Name: "rules", Usage: "how many rules are tried, those about the most flights first (default 155, which is all)"},
	},
	Small: run.Options{Quick: true, Repetitions: 2, Set: map[string]string{"n": "10000", "rules": "8"}},
	Run:   measure,
}

// ways are how holdouts are asked. Those that are useful let a team show a real gain at the default size.
var ways = []struct {
	mechanism        thresholdout.Name
	compares, useful bool
}{{thresholdout.Naive, false, true}, {thresholdout.Gaussian, false, false}, {thresholdout.Thresholdout, false, false}, {thresholdout.GuessAndCheck, false, true},
	{thresholdout.Gaussian, true, false}, {thresholdout.Thresholdout, true, true}, {thresholdout.GuessAndCheck, true, true}}

// cell is a condition with a way of asking.
type cell struct {
	condition string
	guarantee thresholdout.Guarantee
	compares  bool
	rules     int
	runs      []outcome
}

// measure lets teams adjust the model.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "fairness", Seed: o.Seed, Quick: o.Quick}
	n, repetitions := usefulRows, o.RepetitionsOr(200)
	if o.Quick {
		n, repetitions = 20000, o.RepetitionsOr(20)
	}
	n, err := o.Int("n", n)
	if err != nil {
		return result, err
	}
	people, err := flights()
	if err != nil {
		return result, err
	}
	rules, err := o.Int("rules", people.rules())
	if err != nil || rules > people.rules() {
		return result, cmp.Or(err, fmt.Errorf("experiments: --rules is at most %d, not %d", people.rules(), rules))
	}
	var cells []*cell
	for _, condition := range []string{nothingToFind, realLabels} {
		for _, w := range ways {
			c, err := newCell(condition, w.mechanism, w.compares, rules, int64(n))
			if err != nil {
				return result, fmt.Errorf("experiments: fairness: %w", err)
			}
			cells = append(cells, c)
		}
	}
	runs, finished, err := run.Repeat(ctx, o, "teams", len(cells)*repetitions, func(_ context.Context, i int) (outcome, error) {
		return cells[i%len(cells)].play(people, run.SeedOf(o.Seed, uint64(i)))
	})
	for i, r := range run.Dealt(runs, finished, len(cells)) {
		cells[i].runs = r
	}
	result.Complete = err == nil
	for _, c := range cells {
		result.Rows = append(result.Rows, c.rows()...)
	}
	if result.Complete {
		all, failed := comparisons(result.Rows, people, int64(n), rules)
		if failed != nil {
			return result, failed
		}
		result.Compare(all)
	}
	result.Notes = notesOf(people, cells, n, rules, repetitions)
	result.Summary = [][]string{{"CONDITION", "METHOD", "FLIGHTS", "MEASURE", "MEAN", "95% INTERVAL", "REPETITIONS"}}
	for _, r := range result.Rows {
		result.Summary = append(result.Summary, []string{r.Condition, r.Method, fmt.Sprint(r.N), r.Set, fmt.Sprintf("%.4f", r.Mean),
			fmt.Sprintf("%.4f to %.4f", r.Low, r.High), fmt.Sprint(r.Repetitions)})
	}
	result.Figures = figuresOf(result.Rows)
	return result, err
}

func notesOf(people *population, cells []*cell, n, rules, repetitions int) []string {
	t := people.truth(false)
	notes := []string{
		fmt.Sprintf("%d flights are drawn with replacement from %d real ones. The model says late in the hours in which most flights are; it is right about %.4f of the subgroup, the %.4f of them that leave from %s, and about %.4f of "+
			"the others. Where labels of the subgroup are coins, it is right about half of it, whatever is done. %d repetitions of each.", n, people.whole.n, t.turned(make([]bool, people.rules())), t.share,
			strings.Join(subgroupAirports, ", "), t.others, repetitions),
		fmt.Sprintf("A rule turns the model's decision for the flights of the subgroup in one hour of one weekday. %d rules are tried in turn. A team asks for the subgroup's accuracy with the rule, and keeps the rule if more is told "+
			"than before; or by comparisons for what the rule adds, and keeps it if that is above 0. Then it tells the gap, with an interval of both accuracies. A gap counts as told to be closed where the interval has nothing above %v.", rules, closed),
		"Under guess_and_check and thresholdout the accuracy among the flights of the subgroup is one question. Under gaussian it is asked as a mean over all flights, with the promise that no more than the subgroup's share of them count, and divided by the share.",
	}
	for _, c := range cells {
		if c.condition == nothingToFind && c.guarantee.Mechanism == thresholdout.Gaussian && !c.compares {
			notes = append(notes, fmt.Sprintf("Without the promise the half-width of the subgroup's accuracy under gaussian would be %.4f over the share, %.4f.", c.guarantee.HalfWidth, c.guarantee.HalfWidth/t.share))
		}
	}
	return notes
}

// newCell plans a holdout for two questions beside the rules; of exact answers each is two means.
func newCell(condition string, m thresholdout.Name, compares bool, rules int, n int64) (*cell, error) {
	spec := thresholdout.Spec{Mechanism: m, N: n, Questions: int64(rules) + 2, Confidence: confidence}
	switch m {
	case thresholdout.Naive:
		spec.Questions *= 2
	case thresholdout.Thresholdout, thresholdout.GuessAndCheck:
		spec.Training = n
	}
	if compares {
		spec.Questions++
	}
	p, err := thresholdout.Plan(spec)
	return &cell{condition: condition, guarantee: p, compares: compares, rules: rules}, err
}
