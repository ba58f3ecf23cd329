// Package reconstruction lets attackers learn single rows of a holdout from its answers: a secret column (Dinur, Nissim, Revealing information while preserving privacy,
// PODS 2003) and whether somebody's row is in the holdout (Homer et al., PLoS Genetics 4, 2008; Dwork et al., Robust traceability from trace amounts, FOCS 2015). It plays them
// against exact answers, against noise and against guesses, beside what theory says of each.
package reconstruction

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/experiments/attacks"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What is measured: run.Row.Set.
const (
	secretsFound = "secrets found"                           // share of a secret column
	rowTold      = "row told from another"                   // share of pairs of games
	answersSeen  = "answers from the holdout that were seen" // of those asked for
)

// Who asks: run.Row.Condition.
const (
	columnAttacker = "knows all but a column"
	rowAttacker    = "knows a row"
)

// Experiment is attacks on single rows.
var Experiment = run.Experiment{
	Name:  "reconstruction",
	Short: "how much of a secret column, and of who is in the holdout, answers give away",
	Paper: `Theory: exact answers to as many random questions as there are rows give away a secret column nearly whole, and noise smaller than the square root of the number of rows does not
help (Dinur, Nissim, PODS 2003). The best linear estimate from k of n exact answers finds a share of Phi(sqrt(k/(n-k))); with noise, that of the ratio of signal to noise that is left (Tse, Hanly 1999).
Who knows the population's means tells a row of the holdout from another one by k exact answers with a probability of Phi(sqrt(k/(2n))) (Homer et al. 2008). Under gaussian, what anybody can find is at most
what the noise allows (Gaussian differential privacy, arXiv 1905.02383). Under guess_and_check an answer comes from the holdout only where a guess was wrong: with 20 tokens an attacker sees 20.`,
	Flags: []run.Flag{
		{Name: "n", Usage: "rows of the holdout (default 1000; 500 with --quick)"},
	},
	Small: run.Options{Quick: true, Repetitions: 5, Set: map[string]string{"n": "200"}},
	Run:   measure,
}

// mechanisms that are attacked.
var mechanisms = []thresholdout.Name{thresholdout.Naive, thresholdout.Gaussian, thresholdout.GuessAndCheck}

// partsOf are the numbers of questions, over those of rows.
func partsOf(quick bool) []float64 {
	if quick {
		return []float64{0.25, 0.75, 2}
	}
	return []float64{0.1, 0.25, 0.5, 0.75, 1.25, 2}
}

// pairsPerRun are pairs of games about a row for each reconstruction. Under gaussian each answer's interval takes longer than the attack.
func pairsPerRun(quick bool) int {
	if quick {
		return 4
	}
	return 15
}

// cell is a mechanism with a number of questions.
type cell struct {
	guarantee thresholdout.Guarantee
	noisy     bool    // answers without noise are not counted: what the noise allows is said of the others
	allowed   float64 // the largest share of secrets that anybody can find; 1 where nothing protects a row
	columns   []attacks.Found
	pairs     []told
}

// told is of two games, about a row that is in the holdout and about another one: whether the row that is in the holdout had the larger score, and the probability of that by theory.
type told struct {
	Right    bool    `json:"right"`
	Expected float64 `json:"expected"`
}

func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "reconstruction", Seed: o.Seed, Quick: o.Quick}
	n, repetitions := 1000, o.RepetitionsOr(40)
	if o.Quick {
		n, repetitions = 500, o.RepetitionsOr(10)
	}
	n, err := o.Int("n", n)
	if err != nil {
		return result, err
	}
	cells, err := cellsOf(int64(n), partsOf(o.Quick))
	if err != nil {
		return result, err
	}
	found, finished, err := run.Repeat(ctx, o, "secret columns", len(cells)*repetitions, func(_ context.Context, i int) (attacks.Found, error) {
		c := cells[i%len(cells)]
		return attacks.Reconstruct(c.guarantee, c.noisy, seeds.Of(o.Seed, 1, uint64(i)))
	})
	for i, columns := range run.Dealt(found, finished, len(cells)) {
		cells[i].columns = columns
	}
	if err == nil {
		var pairs []told
		pairs, finished, err = run.Repeat(ctx, o, "rows", len(cells)*repetitions*pairsPerRun(o.Quick), func(_ context.Context, i int) (told, error) {
			return cells[i%len(cells)].tell(seeds.Of(o.Seed, 2, uint64(i)))
		})
		for i, p := range run.Dealt(pairs, finished, len(cells)) {
			cells[i].pairs = p
		}
	}
	result.Complete = err == nil
	for _, c := range cells {
		result.Rows = append(result.Rows, c.rows()...)
	}
	if result.Complete {
		result.Checks = checksOf(cells)
	}
	result.Notes = []string{
		fmt.Sprintf("A holdout of %d rows. A question asks in how many rows a secret yes or no agrees with coins that the attacker threw; all other columns are known. %d runs of each mechanism and number "+
			"of questions. The estimate is the best linear one, by conjugate gradients.", n, repetitions),
		fmt.Sprintf("Whether a row is in the holdout is asked in %d pairs of games of each: a question's values are coins, of which the attacker knows the row's. It is told where the game with the row in the "+
			"holdout has the larger score.", repetitions*pairsPerRun(o.Quick)),
		"gaussian is planned for the number of questions at 95%; its last answer, which has no noise, is left out of the reconstruction, as what the noise allows is said of the others. guess_and_check has 20 tokens, and " +
			"every guess of the attacker is wrong on purpose.",
	}
	result.Summary = tableOf(cells)
	result.Figures = figuresOf(cells)
	return result, err
}

func cellsOf(n int64, parts []float64) (cells []*cell, err error) {
	for _, m := range mechanisms {
		for _, part := range parts {
			spec := thresholdout.Spec{Mechanism: m, N: n, Questions: int64(math.Round(part * float64(n)))}
			if m == thresholdout.GuessAndCheck {
				spec.Training = n
			}
			c := &cell{}
			if c.guarantee, err = thresholdout.Plan(spec); err != nil {
				return nil, fmt.Errorf("experiments: reconstruction: %w", err)
			}
			if c.allowed, c.noisy, err = attacks.Allowed(c.guarantee); err != nil {
				return nil, err
			}
			cells = append(cells, c)
		}
	}
	return cells, nil
}

// tell plays a pair of games.
func (c *cell) tell(seed uint64) (told, error) {
	var games [2]attacks.Told
	for in := range games {
		var err error
		if games[in], err = attacks.Tell(c.guarantee, in == 1, seeds.Of(seed, uint64(in))); err != nil {
			return told{}, err
		}
	}
	return told{games[1].Score > games[0].Score, distuv.UnitNormal.CDF(games[1].Separation / math.Sqrt2)}, nil
}

func (c *cell) row(condition, set string) run.Row {
	return run.Row{Condition: condition, Method: string(c.guarantee.Mechanism), N: c.guarantee.N, K: c.guarantee.Questions, Confidence: c.guarantee.Confidence, Set: set}
}

func (c *cell) found() run.Row {
	return run.Measured(c.row(columnAttacker, secretsFound), c.columns, func(f attacks.Found) float64 { return f.Right })
}

func (c *cell) tells() run.Row {
	r := c.row(rowAttacker, rowTold)
	r.Rate = true
	return run.Measured(r, c.pairs, func(t told) float64 { return run.Indicator(t.Right) })
}

func (c *cell) rows() (rows []run.Row) {
	if len(c.columns) > 0 {
		rows = append(rows, c.found(), run.Measured(c.row(columnAttacker, answersSeen), c.columns, func(f attacks.Found) float64 { return float64(f.Answers) }))
	}
	if len(c.pairs) > 0 {
		rows = append(rows, c.tells())
	}
	return rows
}

// Slacks are what theory, which is of large holdouts and normal laws, leaves out: of a share of secrets, and of the probability that a row is told.
const secretsSlack, toldSlack = 0.01, 0.01

func checksOf(cells []*cell) []run.Check {
	var checks run.Checks
	for _, c := range cells {
		of := fmt.Sprintf("%s, %d questions about %d rows: ", c.guarantee.Mechanism, c.guarantee.Questions, c.guarantee.N)
		checks.Equal(of+secretsFound, c.columns[0].Expected, secretsSlack, c.found())
		if c.noisy {
			checks.AtMost(of+secretsFound+", beside what the noise allows", c.allowed, c.found())
		}
		checks.Equal(of+rowTold, c.pairs[0].Expected, toldSlack, c.tells())
	}
	return checks.Decide()
}

func tableOf(cells []*cell) [][]string {
	table := [][]string{{"MECHANISM", "ROWS", "QUESTIONS", "SECRETS FOUND", "95% INTERVAL", "THEORY", "ALLOWED", "ROW TOLD", "THEORY"}}
	for _, c := range cells {
		if len(c.columns) == 0 || len(c.pairs) == 0 {
			continue
		}
		found, allowed := c.found(), "1"
		if c.noisy {
			allowed = fmt.Sprintf("%.3f", c.allowed)
		}
		table = append(table, []string{string(c.guarantee.Mechanism), fmt.Sprint(c.guarantee.N), fmt.Sprint(c.guarantee.Questions), fmt.Sprintf("%.3f", found.Mean),
			fmt.Sprintf("%.3f to %.3f", found.Low, found.High), fmt.Sprintf("%.3f", c.columns[0].Expected), allowed,
			fmt.Sprintf("%.3f", c.tells().Mean), fmt.Sprintf("%.3f", c.pairs[0].Expected)})
	}
	return table
}

func figuresOf(cells []*cell) []run.Figure {
	for _, c := range cells {
		if len(c.columns) == 0 || len(c.pairs) == 0 {
			return nil
		}
	}
	return []run.Figure{{Name: "reconstruction", Caption: "Left: the share of a secret column that an attacker finds, against the number of questions over that of rows. Right: how often one who knows the population's means " +
		"tells a row of the holdout from another one. Marks are measured, with 95% intervals, and lines are theory. One half is chance.",
		Row: func() ([]*plot.Plot, error) { return drawFound(cells) }}}
}
