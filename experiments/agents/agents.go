// Package agents lets an agent tune an ensemble on real data by asking a holdout for scores, and compares what it claims with the score on
// rows held back: the use that Thresholdout (Dwork et al., doi 10.1126/science.aaa9375) and guess-and-check (Rogers et al., AISTATS 2020)
// are made for. Under Thresholdout the agents on flights and digits run out of tokens, after 874 and 860 of 1,000 configurations on average.
package agents

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
	claimedScore           = "claimed score"
	freshScore             = "score on fresh data"
	claimExcess            = "claimed less fresh"
	claimRefuted           = "claim refuted by fresh data"
	lowerEnd               = "lower end of the claim's interval"
	upperEnd               = "upper end of the claim's interval"
	configurationsAnswered = "configurations answered"
	tokensSpent            = "tokens spent"
)

// Experiment is agents that tune.
var Experiment = run.Experiment{
	Name:  "agents",
	Short: "what an agent that tunes 1,000 configurations claims of its ensemble, and how it does on data held back",
	Paper: `Theory: the best of many answers is better than the truth, and an agent that tunes on answers adapts to the holdout's rows. A plain 95% interval
around the best score then misses far more often than in 5% of runs. The intervals of Thresholdout (doi 10.1126/science.aaa9375, arXiv 1506.02629) and guess-and-check (Rogers et al., AISTATS 2020) hold for all answers
together with probability 95%, whatever is asked; what they tell is the validation score as long as the holdout agrees within a threshold, so it can be too good by
as much, and the interval says by how much.`,
	Flags: []run.Flag{
		{Name: "configurations", Usage: "that each agent tries, at most 1000 (default 1000; 200 with --quick)"},
	},
	Small: run.Options{Quick: true, Repetitions: 3, Set: map[string]string{"configurations": "20"}},
	Run:   measure,
}

// cell is one condition: a data set with a mechanism.
type cell struct {
	problem        *task
	guarantee      thresholdout.Guarantee
	configurations int
	runs           []outcome
}

// measure lets agents tune on real data.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "agents", Seed: o.Seed, Quick: o.Quick}
	configurations, repetitions := maxConfigurations, o.RepetitionsOr(30)
	if o.Quick {
		configurations, repetitions = 200, o.RepetitionsOr(10)
	}
	configurations, err := o.Int("configurations", configurations)
	if err != nil {
		return result, err
	}
	if configurations > maxConfigurations {
		return result, fmt.Errorf("experiments: --configurations is at most %d, not %d", maxConfigurations, configurations)
	}
	problems, err := tasks()
	if err != nil {
		return result, err
	}
	var cells []*cell
	for _, problem := range problems {
		for _, m := range []thresholdout.Name{thresholdout.Naive, thresholdout.Thresholdout, thresholdout.GuessAndCheck} {
			spec := thresholdout.Spec{Mechanism: m, N: int64(problem.part), Questions: int64(configurations)}
			if m != thresholdout.Naive {
				spec.Training = int64(problem.part)
			}
			p, err := thresholdout.Plan(spec)
			if err != nil {
				return result, fmt.Errorf("experiments: agents: %w", err)
			}
			cells = append(cells, &cell{problem: problem, guarantee: p, configurations: configurations})
		}
	}
	runs, finished, err := run.Repeat(ctx, o, "agents", len(cells)*repetitions, func(_ context.Context, i int) (outcome, error) {
		c := cells[i%len(cells)]
		return tune(c.problem, c.guarantee, seeds.Of(o.Seed, uint64(i)), configurations)
	})
	for i, r := range run.Dealt(runs, finished, len(cells)) {
		cells[i].runs = r
	}
	result.Complete = err == nil
	for _, c := range cells {
		result.Rows = append(result.Rows, c.rows()...)
	}
	if result.Complete {
		result.Checks = checksOf(cells)
	}
	result.Notes = notesOf(problems, configurations, repetitions)
	result.Summary = tableOf(cells)
	result.Figures = figuresOf(cells)
	return result, err
}

func notesOf(problems []*task, configurations, repetitions int) []string {
	notes := []string{fmt.Sprintf("An agent tries %d configurations: it picks a kind of model as a bandit (the kind with the best record, or now and then any), draws the rest at random, "+
		"fits on rows of its own, asks the holdout for the accuracy of its ensemble with this model, and keeps the model if the answer is no worse than its best so far. It claims the best answer. "+
		"%d repetitions of each data set and mechanism, every one with another split of the rows.", configurations, repetitions)}
	for _, p := range problems {
		notes = append(notes, fmt.Sprintf("%s: %d rows each to fit on, to validate on (the training part of the mechanisms) and in the holdout, %d held back.", p.name, p.part, p.fresh))
	}
	return append(notes, "Without noise (naive) the claim's interval is the plain one, 1.96 standard errors. A claim is refuted where its interval excludes the score on fresh data by more than 1.96 standard errors of the latter. "+
		"Where tokens are spent, the agent has to stop. "+
		"The agent's weights were chosen on these data so that exact answers mislead it clearly: how often the naive claim is refuted is a property of this agent.")
}

// refuted reports whether the fresh score is outside the claim's interval beyond its own error.
func (c *cell) refuted(r outcome) bool {
	fresh := last(r.Fresh)
	own := 1.96 * math.Sqrt(fresh*(1-fresh)/float64(c.problem.fresh))
	return fresh+own < r.Low || fresh-own > r.High
}

func last(values []float64) float64 { return values[len(values)-1] }

func (c *cell) row(set string, rate bool, of func(r outcome) float64) run.Row {
	return run.Measured(run.Row{Condition: c.problem.name, Method: string(c.guarantee.Mechanism), N: c.guarantee.N, K: int64(c.configurations), Confidence: c.guarantee.Confidence,
		Set: set, Rate: rate}, c.runs, of)
}

func (c *cell) claimed() run.Row {
	return c.row(claimedScore, false, func(r outcome) float64 { return last(r.Claimed) })
}

func (c *cell) fresh() run.Row {
	return c.row(freshScore, false, func(r outcome) float64 { return last(r.Fresh) })
}

func (c *cell) excess() run.Row {
	return c.row(claimExcess, false, func(r outcome) float64 { return last(r.Claimed) - last(r.Fresh) })
}

func (c *cell) refutedRate() run.Row {
	return c.row(claimRefuted, true, func(r outcome) float64 { return run.Indicator(c.refuted(r)) })
}

func (c *cell) low() run.Row {
	return c.row(lowerEnd, false, func(r outcome) float64 { return r.Low })
}

func (c *cell) high() run.Row {
	return c.row(upperEnd, false, func(r outcome) float64 { return r.High })
}

func (c *cell) rows() []run.Row {
	if len(c.runs) == 0 {
		return nil
	}
	rows := []run.Row{c.claimed(), c.fresh(), c.excess(), c.refutedRate(), c.low(), c.high(),
		c.row(configurationsAnswered, false, func(r outcome) float64 { return float64(r.Asked) })}
	if c.guarantee.HasTokens() {
		rows = append(rows, c.row(tokensSpent, false, func(r outcome) float64 { return float64(r.Tokens) }))
	}
	return rows
}

func tableOf(cells []*cell) [][]string {
	table := [][]string{{"DATA", "MECHANISM", "HOLDOUT", "CLAIMED", "FRESH DATA", "CLAIMED LESS FRESH", "CLAIM'S INTERVAL", "REFUTED", "ANSWERED", "REPETITIONS"}}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		asked := c.row(configurationsAnswered, false, func(r outcome) float64 { return float64(r.Asked) })
		excess := c.excess()
		table = append(table, []string{c.problem.name, string(c.guarantee.Mechanism), fmt.Sprint(c.guarantee.N), fmt.Sprintf("%.4f", c.claimed().Mean), fmt.Sprintf("%.4f", c.fresh().Mean),
			fmt.Sprintf("%.4f (%.4f to %.4f)", excess.Mean, excess.Low, excess.High), fmt.Sprintf("%.3f to %.3f", c.low().Mean, c.high().Mean), fmt.Sprintf("%.3f", c.refutedRate().Mean),
			fmt.Sprintf("%.0f", asked.Mean), fmt.Sprint(len(c.runs))})
	}
	return table
}

func checksOf(cells []*cell) []run.Check {
	var checks run.Checks
	var excesses []float64 // of naive reuse: together they show what a few runs of one table do not
	for _, c := range cells {
		of := fmt.Sprintf("%s, %s: ", c.problem.name, c.guarantee.Mechanism)
		if c.guarantee.Mechanism != thresholdout.Naive {
			checks.AtMost(of+claimRefuted, 1-c.guarantee.Confidence, c.refutedRate())
			continue
		}
		scale := 0.5 / math.Sqrt(float64(c.guarantee.N))
		for _, r := range c.runs {
			excesses = append(excesses, (last(r.Claimed)-last(r.Fresh))/scale)
		}
	}
	checks.Above("naive, all data: claimed less fresh, in standard errors of a score on the holdout", 0, run.Measured(run.Row{}, excesses, func(v float64) float64 { return v }))
	return checks.Decide()
}
