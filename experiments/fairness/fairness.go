// Package fairness lets an analyst close the gap between two groups' accuracies on a holdout: it tries adjustments of the rule for one group, one after another, and follows
// those that narrowed the gap as shown. No adjustment changes anything on the law. That a gap is measured on few rows of a subgroup, and that looking for a small one overfits, is
// what adaptive data analysis is about (Dwork et al., arXiv 1411.2664; of subgroups: Kearns, Neel, Roth, Wu, arXiv 1711.05144).
package fairness

import (
	"context"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What is measured: run.Row.Set.
const (
	gapShown     = "gap shown of the last rule"
	gapFresh     = "its gap on fresh rows"
	shownClosed  = "shown as closed"
	freshClosed  = "closed on fresh rows"
	lastMisses   = "the last interval misses the law's gap"
	anyMisses    = "any interval misses"
	tokensSpent  = "tokens spent"
	lowerEnd     = "lower end of the last interval"
	upperEnd     = "upper end of the last interval"
	attackerName = "adjusts one group's rule" // run.Row.Condition of all rows
)

// The law: either group is half of the population. The rule is right about 80% of group A. Half of group B is undecided: whatever the rule says there is right half of the time. It is
// right about 94% of the rest of B, and so about 72% of B.
const (
	groupShare = 0.5
	rightA     = 0.80
	undecided  = 0.5 // of group B
	rightB     = 0.94
	lawGap     = rightA - (undecided/2 + (1-undecided)*rightB)
)

// closed is up to which gap a rule passes for fair: two points.
const closed = 0.02

// tries are how many adjustments an analyst tries before the last rule: one for so many rows of the holdout.
var tries = []int{400, 200, 100, 50, 25}

// Experiment is the tuning of a gap.
var Experiment = run.Experiment{
	Name:  "fairness",
	Short: "whether a gap between two groups that was tuned away on a holdout is gone",
	Paper: `Theory: a rule is right about 80% of group A and 72% of group B. Of half of B nothing is known, so that no rule for them is right more often than a coin. An analyst tries k random adjustments of the
rule for them, sees the gap of each, and lets the last rule follow every adjustment by as much as it narrowed the gap. With exact answers the last rule is shown to be right about
Phi(sqrt(k/m)) of the m undecided rows of the holdout, so that its gap looks closed with an adjustment for each 25 rows, while on the law it is 8 points as before. The textbook's interval misses it.
Noise of deviation s in an answer leaves Phi(k/sqrt(sum of m + (2 n s)^2)). The mechanisms promise that with probability 95% no interval of a run misses, whatever is tried
(arXiv 1411.2664; docs/GUARANTEES.md).`,
	Flags: []run.Flag{
		{Name: "n", Usage: "rows of the holdout, and as many of the training part of a mechanism that compares (default 40000)"},
	},
	Small: run.Options{Quick: true, Repetitions: 10, Set: map[string]string{"n": "2000"}},
	Run:   measure,
}

// mechanisms that answer: exact answers, noise, and what a server takes where its owner names none.
var mechanisms = []thresholdout.Name{thresholdout.Naive, thresholdout.Gaussian, thresholdout.Auto}

// outcome is what one analyst ends with.
type outcome struct {
	Shown  float64 `json:"shown"` // gap of the last rule
	Low    float64 `json:"low"`   // its interval: the mechanism's, or the textbook's
	High   float64 `json:"high"`
	Fresh  float64 `json:"fresh"` // gap of the last rule on as many fresh rows
	Missed bool    `json:"missed"`
	Tokens int64   `json:"tokens"`
}

// cell is a mechanism with a number of tries.
type cell struct {
	k         int
	guarantee thresholdout.Guarantee
	runs      []outcome
}

// measure lets analysts tune the gap away.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "fairness", Seed: o.Seed, Quick: o.Quick}
	rowsATry, repetitions := tries, o.RepetitionsOr(200)
	if o.Quick {
		rowsATry, repetitions = []int{100, 25}, o.RepetitionsOr(60)
	}
	n, err := o.Int("n", 40_000)
	if err != nil {
		return result, err
	}
	cells, err := cellsOf(int64(n), rowsATry)
	if err != nil {
		return result, err
	}
	runs, finished, err := run.Repeat(ctx, o, "analysts", len(cells)*repetitions, func(_ context.Context, i int) (outcome, error) {
		return cells[i%len(cells)].play(seeds.Of(o.Seed, uint64(i)))
	})
	for i, r := range run.Dealt(runs, finished, len(cells)) {
		cells[i].runs = r
	}
	result.Complete = err == nil
	for _, c := range cells {
		result.Rows = append(result.Rows, c.rows()...)
	}
	if result.Complete {
		result.Checks, err = checksOf(cells)
	}
	result.Notes = []string{
		fmt.Sprintf("A holdout of %d rows, %d analysts for each mechanism and number of tries. A row is of group A or B by a coin. The question is the share of rows that are of A and right, or of B and wrong: "+
			"the gap is twice that, less 1, and so is its interval. It costs one question.", n, repetitions),
		fmt.Sprintf("An adjustment decides each undecided row of B as a coin does that belongs to row and adjustment. The last rule sums the coins, each weighted by how much the gap of its adjustment was below the "+
			"average, and decides by the sign. A gap passes for closed up to %v. On the law every rule has the gap %.2f.", closed, lawGap),
		"With exact answers the last interval is the textbook's, 1.96 standard errors. The mechanisms' intervals are for all questions together at 95%. auto is the server's default; it chose " +
			string(cells[len(cells)-1].guarantee.Mechanism) + ", whose guesses are the values in a training part of as many rows.",
	}
	result.Summary = tableOf(cells)
	result.Figures = figuresOf(cells)
	return result, err
}

func cellsOf(n int64, rowsATry []int) (cells []*cell, err error) {
	for _, m := range mechanisms {
		for _, rows := range rowsATry {
			k := int(n) / rows
			spec := thresholdout.Spec{Mechanism: m, N: n, Questions: int64(k + 1)}
			if m == thresholdout.Auto {
				spec.Training = n
			}
			c := &cell{k: k}
			if c.guarantee, err = thresholdout.Plan(spec); err != nil {
				return nil, fmt.Errorf("experiments: fairness: %w", err)
			}
			cells = append(cells, c)
		}
	}
	return cells, nil
}

// textbook is half of the interval of one gap that was fixed beforehand: 1.96 standard errors of twice a share.
func (c *cell) textbook(share float64) float64 {
	return 2 * 1.96 * math.Sqrt(share*(1-share)/float64(c.guarantee.N))
}
