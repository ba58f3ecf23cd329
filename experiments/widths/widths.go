// Package widths measures how wide the intervals of usual questions are, beside those of a textbook, on the flights of the demo. Each
// question is the first one of a holdout that may be asked many more. Every interval is also held against the value in the whole table, of
// which the holdout is a random part.
package widths

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/experiments/tables"
	"github.com/holdoutd/holdoutd/internal/printed"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What is measured: run.Row.Set.
const (
	halfWidth = "half-width"            // in the question's units
	ratio     = "half-width / textbook" // of an interval for this question alone, fixed beforehand
	cost      = "questions"             // that the answer costs
	misses    = "non-coverage"          // rate of intervals without the whole table's value
)

const (
	confidence = 0.95
	budget     = 110 // questions, as in the README
	tokens     = 20
	quickEvery = 20 // of how many rows one is in a quick run
)

// Ways to an interval: run.Row.Method.
const (
	textbook   = "textbook, one question"
	bonferroni = "textbook, Bonferroni"
	byRange    = "guess_and_check, by the range alone"
	oneRound   = "gaussian, one round"
)

// method is a mechanism that the questions are asked of.
type method struct {
	name string
	spec thresholdout.Spec
	// means has every answer made of means of which the range alone is known: what intervals are that do not follow a question's own variance.
	means bool
}

var methods = []method{
	{byRange, thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, Tokens: tokens}, true},
	{"guess_and_check", thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, Tokens: tokens}, false},
	{"gaussian", thresholdout.Spec{Mechanism: thresholdout.Gaussian}, false},
	{oneRound, thresholdout.Spec{Mechanism: thresholdout.Gaussian, Rounds: 1}, false},
	{"split", thresholdout.Spec{Mechanism: thresholdout.Split}, false},
	{"thresholdout", thresholdout.Spec{Mechanism: thresholdout.Thresholdout, Tokens: tokens}, false},
}

// measured is what one question got from one method, on one holdout.
type measured struct {
	Half, Ratio, Cost, Miss float64
	Refused                 bool // the method does not answer such a question
}

// Experiment is how wide intervals are.
var Experiment = run.Experiment{
	Name:  "widths",
	Short: "how wide the intervals of usual questions are, beside those of a textbook",
	Paper: `An interval for many adaptive questions is wider than a textbook's for one question that was fixed beforehand; how much wider is the price of
reuse. By the range alone (Hoeffding, Chernoff) a question pays for the worst variance that its range allows. By two moments (docs/proofs/two-moments.md)
it pays for its own.`,
	Flags: []run.Flag{
		{Name: "file", Usage: "a Parquet file with the columns of the flights, instead of the 100,000 of the demo"},
		{Name: "held-out", Usage: "how many rows are held out; default: three tenths of them"},
	},
	Small: run.Options{Quick: true, Repetitions: 2},
	Run:   perform,
}

// perform asks every question of every method, as the first question of fresh holdouts.
func perform(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "widths", Seed: o.Seed, Quick: o.Quick}
	all, err := flightsIn(o.Text("file"))
	if err != nil {
		return result, err
	}
	if o.Quick {
		var some []int
		for row := 0; row < all.Rows(); row += quickEvery {
			some = append(some, row)
		}
		if all, err = tables.Take(all, some); err != nil {
			return result, err
		}
	}
	size, err := o.Int("held-out", 3*all.Rows()/10)
	if err != nil || size >= all.Rows() {
		return result, cmp.Or(err, fmt.Errorf("experiments: --held-out %d leaves no training part of %d rows", size, all.Rows()))
	}
	repetitions := o.RepetitionsOr(20)
	if o.Quick {
		repetitions = o.RepetitionsOr(3)
	}
	truth := flightsOf(all)
	var guarantees []thresholdout.Guarantee
	for _, m := range methods {
		spec := m.spec
		spec.N, spec.Training, spec.Questions, spec.Confidence = int64(size), int64(all.Rows()-size), budget, confidence
		g, err := thresholdout.Plan(spec)
		if err != nil {
			return result, fmt.Errorf("experiments: %s: %w", m.name, err)
		}
		guarantees = append(guarantees, g)
	}
	holdouts, finished, err := run.Repeat(ctx, o, "holdouts", repetitions, func(ctx context.Context, i int) ([]measured, error) {
		return askAll(ctx, all, truth, guarantees, size, seeds.Of(o.Seed, uint64(i)))
	})
	result.Complete = err == nil
	done := run.Finished(holdouts, finished)
	if len(done) == 0 {
		return result, err
	}
	f := findings{runs: done, n: int64(size)}
	result.Rows = f.rows()
	result.Checks = f.checks()
	result.Summary = f.table()
	result.Notes = []string{fmt.Sprintf("%d random splits of %s flights, %s held out. Each question is the first of a holdout that answers %d at %v%% together; "+
		"the textbook's interval is for one question, fixed beforehand, by the sample's own variance. The target is the value in the whole table.", len(done), printed.Thousands(int64(all.Rows())), printed.Thousands(int64(size)), budget, 100*confidence)}
	result.Figures = []run.Figure{{Name: "widths", Draw: f.figure, Caption: fmt.Sprintf("How many times a textbook's interval for one question the half-width is. The textbook's own interval for %d questions fixed "+
		"beforehand (Bonferroni), guess_and_check by the range alone, and guess_and_check as it answers.", budget)}}
	return result, err
}

// flightsIn are the flights of a file, or those of the demo.
func flightsIn(file string) (*dataset.Table, error) {
	if file == "" {
		return tables.FlightRows()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return tables.Rows(file, string(text))
}

// askAll splits the flights and asks everything: the measures of the first question by each method, then of the second, ….
func askAll(ctx context.Context, all *dataset.Table, truth flights, guarantees []thresholdout.Guarantee, size int, seed uint64) ([]measured, error) {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(all.Rows())
	parts := [2]*engine.Table{}
	for i, rows := range [][]int{order[:size], order[size:]} {
		part, err := tables.Take(all, rows)
		if err != nil {
			return nil, err
		}
		if parts[i], err = engine.NewTable(part, nil, 1); err != nil {
			return nil, err
		}
	}
	z := distuv.UnitNormal.Quantile(1 - (1-confidence)/2)
	var out []measured
	for _, q := range questions {
		target, _ := q.statistic(truth, order, z)
		_, plain := q.statistic(truth, order[:size], z)
		_, corrected := q.statistic(truth, order[:size], distuv.UnitNormal.Quantile(1-(1-confidence)/(2*budget)))
		out = append(out, measured{Half: plain, Ratio: 1, Cost: 1}, measured{Half: corrected, Ratio: corrected / plain, Cost: 1})
		for i, m := range methods {
			r, err := m.ask(ctx, q, guarantees[i], all.Schema(), parts[0], parts[1], seed)
			var refused *session.WrongError
			switch {
			case errors.As(err, &refused):
				out = append(out, measured{Refused: true})
				continue
			case err != nil:
				return nil, fmt.Errorf("experiments: %s, %s: %w", q.name, m.name, err)
			}
			half := (r.high - r.low) / 2
			out = append(out, measured{Half: half, Ratio: half / plain, Cost: float64(r.cost), Miss: run.Indicator(target < r.low || target > r.high)})
		}
	}
	return out, nil
}

// asked is the interval of an answer, and the questions that it cost.
type asked struct {
	low, high float64
	cost      int64
}

// ask asks a question as the first one of a new holdout.
func (m method) ask(ctx context.Context, q question, guarantee thresholdout.Guarantee, schema dataset.Schema, holdout, training *engine.Table, seed uint64) (a asked, err error) {
	query, err := queries.Parse([]byte(q.query))
	if err != nil {
		return a, err
	}
	plan, err := query.Compile(ctx, schema)
	if err != nil {
		return a, err
	}
	if m.means {
		r, err := ofRange(ctx, guarantee, plan, holdout, training)
		if err != nil {
			return a, err
		}
		outcome, err := plan.Release(guarantee.N, r)
		if err != nil {
			return a, err
		}
		result := plan.Combine(outcome)
		return intervalOf(result.Low, result.High, r.state)
	}
	local := &session.Local{Session: session.Session{Guarantee: guarantee, Noise: session.Seeded(seed), RandomSplit: true}, Schema: schema, Holdout: holdout, Training: training}
	answer, err := local.Play(ctx, query, plan)
	if err != nil {
		return a, err
	}
	if answer.Interval == nil {
		return intervalOf(nil, nil, local.State)
	}
	return intervalOf(answer.Interval.Low, answer.Interval.High, local.State)
}

func intervalOf(low, high *float64, s thresholdout.State) (asked, error) {
	if low == nil || high == nil {
		return asked{}, errors.New("the answer has no interval")
	}
	return asked{*low, *high, s.Questions}, nil
}
