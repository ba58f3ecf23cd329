// Package manyquestions asks very many questions about a small domain: sets of 64 cells, chosen by coins, and last the set of which the answers say that the holdout has too many rows.
// The mechanism cells and private multiplicative weights (Hardt and Rothblum, FOCS 2010; Dwork and Roth 2014, section 4.2) answer exponentially many; gaussian answers about n^2, and the
// server's default as many as are guessed rightly.
package manyquestions

import (
	"context"
	"fmt"

	"github.com/holdoutd/holdoutd/dp/pmw"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// domain is how many cells there are. A question is a set of them, as bits of one word.
const domain = 64

// confidence of everything that is promised.
const confidence = 0.95

// byWeights is the run.Row.Method of private multiplicative weights, which are no mechanism of the server.
const byWeights = "private weights"

// What is measured: run.Row.Set.
const (
	lastError    = "error of the last answer"
	largestError = "largest error of a run"
	anyMisses    = "any answer is farther off than promised"
	mended       = "how often the guess is mended" // of private weights
	mendedAgain  = "the guess is mended more than once"
	tokensSpent  = "tokens spent" // of a mechanism that guesses
	halfWidth    = "half-width"
	attackerName = "sets of cells, and the worst one" // run.Row.Condition of what is played
	anyAnalyst   = "any analyst"                      // of what is promised
)

// Experiment is very many questions about a small domain.
var Experiment = run.Experiment{
	Name:  "many-questions",
	Short: "how wide intervals are, and how far answers are off, after up to a million questions about 64 cells",
	Paper: `Theory: where every row is in one of m cells, all sets of cells have shares within sqrt((m ln 2 + ln(1/beta))/(2n)) of their probabilities together, or within sqrt((m-1)/n)/2 + sqrt(ln(1/beta)/(2n))
(docs/proofs/cells.md): the mechanism cells answers any number of questions exactly at one half-width. Private multiplicative weights (Hardt and Rothblum 2010) answer e^n questions, too: their error about the
table grows with the logarithm of the number only; but the step to the population is wide. gaussian answers about n^2 questions: its half-width grows as the fourth root of their number. The default's grows as the root of its
logarithm while guesses hold. An analyst asks k-1 random sets of cells, and last the set of those cells that the answers say are too frequent. Of exact answers this one is off by the sum over
cells of r_i sqrt(p_i (1-p_i)/(2 pi n)), with r_i the correlation of a cell's excess with what k noisy answers say of it.`,
	Flags: []run.Flag{
		{Name: "n", Usage: "rows of the holdout, and as many of the training part of a mechanism that compares (default 30000)"},
	},
	Small: run.Options{Quick: true, Repetitions: 5, Set: map[string]string{"n": "10000"}},
	Run:   measure,
}

// numbers of questions that are played.
var numbers = []int64{100, 1000, 10_000, 100_000, 1_000_000}

const (
	// fewQuestions take an analyst a few milliseconds, so that many can be compared with theory.
	fewQuestions = 1000
	// manyQuestions take an analyst of some mechanisms half a minute.
	manyQuestions = 1_000_000
)

// mechanisms that answer, beside private weights.
var mechanisms = []thresholdout.Name{thresholdout.Cells, thresholdout.Gaussian, thresholdout.Auto}

// outcome is what one analyst ends with.
type outcome struct {
	Last    float64 `json:"last"`
	Largest float64 `json:"largest"`
	Missed  bool    `json:"missed"`
	Mended  int     `json:"mended,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
}

// cell is who answers, and how many questions.
type cell struct {
	method    string
	n, k      int64
	guarantee thresholdout.Guarantee // of a mechanism
	settings  pmw.Settings           // of private weights
	runs      []outcome
}

// measure plays, and computes what is promised.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "many-questions", Seed: o.Seed, Quick: o.Quick}
	ks, repetitions := numbers, o.RepetitionsOr(40)
	if o.Quick {
		ks = []int64{1000, 10_000}
	}
	rows, err := o.Int("n", 30_000)
	if err != nil {
		return result, err
	}
	n := int64(rows)
	cells, err := cellsOf(n, ks)
	if err != nil {
		return result, err
	}
	promised, err := promisedOf(n, o.Quick)
	if err != nil {
		return result, err
	}
	few := max(2, repetitions/10)
	for i, part := range []struct {
		name     string
		from, to int64 // questions
		times    int
	}{
		{"analysts of few questions", 0, fewQuestions, 10 * repetitions},
		{"analysts", fewQuestions + 1, manyQuestions - 1, repetitions},
		{"analysts of a million questions", manyQuestions, mostQuestions, few},
	} {
		var those []*cell
		for _, c := range cells {
			if part.from <= c.k && c.k <= part.to {
				those = append(those, c)
			}
		}
		if err != nil || len(those) == 0 {
			continue
		}
		var runs []outcome
		var finished []bool
		runs, finished, err = run.Repeat(ctx, o, part.name, len(those)*part.times, func(_ context.Context, j int) (outcome, error) {
			return those[j%len(those)].play(seeds.Of(o.Seed, uint64(i), uint64(j)))
		})
		for j, r := range run.Dealt(runs, finished, len(those)) {
			those[j].runs = r
		}
	}
	result.Complete = err == nil
	for _, p := range promised {
		result.Rows = append(result.Rows, p.rows(n)...)
	}
	for _, c := range cells {
		result.Rows = append(result.Rows, c.rows()...)
	}
	if result.Complete {
		result.Checks, err = checksOf(cells, promised, n)
	}
	result.Notes = []string{
		fmt.Sprintf("A holdout of %d rows, each in one of %d cells, the i-th with a probability in proportion to 1/i. %d analysts for each answerer and number of questions, %d for up to %d questions, %d for a million. The probabilities are known to the analyst: "+
			"it looks for what is so in this holdout only. The error is of the answer from the law.", n, domain, repetitions, 10*repetitions, fewQuestions, few),
		"cells, gaussian and auto, which chose " + string(cells[len(cells)-1].guarantee.Mechanism) + fmt.Sprintf(" with the values in a training part of %d rows as guesses, are planned for the number of questions at 95%%. ", n) +
			byWeights + " have the epsilon and the settings with the least error from the law that pure privacy can promise; that they miss says that an answer is farther from the table than promised.",
	}
	result.Summary = tableOf(cells, promised)
	result.Figures = figuresOf(cells, promised)
	return result, err
}

func cellsOf(n int64, ks []int64) (cells []*cell, err error) {
	for _, k := range ks {
		if _, settings, ok := privateWidth(n, k); ok {
			cells = append(cells, &cell{method: byWeights, n: n, k: k, settings: settings})
		}
	}
	for _, m := range mechanisms {
		for _, k := range ks {
			c := &cell{n: n, k: k}
			if c.guarantee, err = planOf(m, n, k); err != nil {
				return nil, fmt.Errorf("experiments: many-questions: %w", err)
			}
			c.method = string(c.guarantee.Mechanism)
			cells = append(cells, c)
		}
	}
	return cells, nil
}

// planOf is the guarantee of a mechanism for so many questions.
func planOf(m thresholdout.Name, n, k int64) (thresholdout.Guarantee, error) {
	spec := thresholdout.Spec{Mechanism: m, N: n, Questions: k, Confidence: confidence}
	switch m {
	case thresholdout.Cells:
		spec.Cells = domain
	case thresholdout.Auto:
		spec.Training = n
	}
	return thresholdout.Plan(spec)
}
