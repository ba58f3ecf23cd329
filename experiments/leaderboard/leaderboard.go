// Package leaderboard is the attack of A. Blum and M. Hardt, The Ladder: a reliable leaderboard for machine learning competitions
// (arXiv 1502.04585): random submissions, and last the majority of those that looked good. It plays against boards
// that show exact, rounded or noisy scores, against their parameter-free Ladder, and against the server's default.
package leaderboard

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Boards, run.Row.Method: what is shown of a submission's loss.
const (
	boardExact    = "exact scores"
	boardRounded  = "rounded to 1e-5"
	boardLadder   = "ladder" // the parameter-free form, which is not the server's
	boardGaussian = "gaussian"
	boardDefault  = "guess_and_check" // what a server takes where its owner names no mechanism
)

// What is measured: run.Row.Set.
const (
	boardFinal = "loss of the final submission"         // on the public labels
	boardShown = "shown for the final submission"       // by the board
	boardKept  = "submissions that the attack put in"   // |I|
	boardBest  = "shown as the best of all submissions" // what the competition would announce
	boardFinds = "the last interval excludes a half"    // of a board with intervals
	boardMiss  = "any interval misses"                  // of a board with intervals
	boardTrain = "its loss on the training part"        // of a board that compares
	boardSpent = "tokens spent"                         // of a board that compares
)

// Experiment is the attack on a leaderboard.
var Experiment = run.Experiment{
	Name:  "leaderboard",
	Short: "how far random submissions climb on a leaderboard of exact, rounded or noisy scores, on the Ladder, and on the server's default",
	Paper: `A. Blum and M. Hardt, The Ladder: a reliable leaderboard for machine learning competitions (arXiv 1502.04585): an attacker without any data
submits k random vectors of labels, keeps those that are shown with a loss of at most 1/2, and submits their majority. On a public set of N = 4000 labels exact or finely rounded scores let
it climb without bound: with |I| vectors kept its loss is about 1 - Phi(sqrt(2 |I|/(pi N))), that is 0.4645 for k = 100 and 0.4292 for k = 400, while every submission is truly right half of the time. Against the parameter-free Ladder, where
it keeps what moves the board to 1/2 or below, it stays near a half. The losses that are compared with come from an independent NumPy program (experiments/leaderboard/reference.py).
Noise of deviation s in the scores multiplies the argument of Phi by 1/sqrt(1 + 4 N s^2). The server's default shows the score in a training part of as many labels while the public labels agree with it: what the attack
learns is of those, and its loss on the public labels stays a half, unless a check fails, which tells what the public labels say and costs a token.`,
	Flags: []run.Flag{
		{Name: "n", Usage: "labels of the public set (default 4000)"},
	},
	Small: run.Options{Quick: true, Repetitions: 10},
	Run:   measure,
}

// attackName is the run.Row.Condition of all rows.
const attackName = "boosting"

// submissions are how many an attack makes before its last one.
var submissions = []int{25, 50, 100, 200, 400, 800}

// outcome is what one attack comes to.
type outcome struct {
	Final  float64 `json:"final"`
	Shown  float64 `json:"shown"`
	Best   float64 `json:"best"`
	Kept   int     `json:"kept"`
	Low    float64 `json:"low,omitempty"` // interval of Shown, where there is one
	High   float64 `json:"high,omitempty"`
	Missed bool    `json:"missed,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	// Trained is the final submission's loss on the training part, of a board that compares.
	Trained float64 `json:"trained,omitempty"`
}

// cell is a board with a number of submissions.
type cell struct {
	method    string
	n, k      int
	guarantee thresholdout.Guarantee // of a holdout's board
	runs      []outcome
}

// open is a new board.
func (c *cell) open(seed uint64) board {
	switch c.method {
	case boardLadder:
		return &ladderBoard{n: int64(c.n)}
	case boardGaussian, boardDefault:
		return &holdoutBoard{holdout: *analysts.NewHoldout(c.guarantee, seed)}
	case boardRounded:
		return &holdoutBoard{holdout: *analysts.NewHoldout(c.guarantee, 0), step: 1e-5}
	}
	return &holdoutBoard{holdout: *analysts.NewHoldout(c.guarantee, 0)}
}

// measure lets the attack play against each board.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "leaderboard", Seed: o.Seed, Quick: o.Quick}
	n, err := o.Int("n", 4000)
	if err != nil {
		return result, err
	}
	ks, repetitions := submissions, o.RepetitionsOr(100)
	if o.Quick {
		ks = []int{100, 400}
	}
	var cells []*cell
	for _, method := range []string{boardExact, boardRounded, boardLadder, boardGaussian, boardDefault} {
		for _, k := range ks {
			c := &cell{method: method, n: n, k: k}
			p := thresholdout.Spec{Mechanism: thresholdout.Naive, N: int64(n), Questions: int64(k + 1)}
			switch method {
			case boardGaussian:
				p.Mechanism = thresholdout.Gaussian
			case boardDefault:
				p.Mechanism, p.Training = thresholdout.Auto, int64(n)
			}
			if c.guarantee, err = thresholdout.Plan(p); err != nil {
				return result, fmt.Errorf("experiments: leaderboard: %w", err)
			}
			cells = append(cells, c)
		}
	}
	runs, finished, err := run.Repeat(ctx, o, "attacks", len(cells)*repetitions, func(_ context.Context, i int) (outcome, error) {
		return cells[i%len(cells)].attack(seeds.Of(o.Seed, uint64(i)))
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
	result.Notes = []string{fmt.Sprintf("The attack against each board on %d labels, %d repetitions for every number of submissions, each with submissions of its own. "+
		"Labels do not matter to submissions of fair coins: each errs on each label with probability 1/2. The last submission is the majority of those kept; ties are coins.", n, repetitions),
		"gaussian is planned for k + 1 questions at 95% confidence for all of its intervals together; the attack keeps what is shown with at most 1/2, as with exact scores.",
		"guess_and_check, which auto chooses, is planned alike, with a training part of as many labels, whose loss is the guess of each submission's."}
	result.Summary = tableOf(cells)
	result.Figures = figuresOf(cells)
	return result, err
}

// labels are those that a board scores on, or the training part's of a board that compares: what the attack does there.
type labels struct {
	coins  *rand.PCG
	n      int
	errors []byte  // of the submission
	votes  []int32 // of the kept submissions for an error, less those against
}

func newLabels(n int, seed uint64) *labels {
	return &labels{rand.NewPCG(seed, 0), n, make([]byte, (n+63)/64*8), make([]int32, n)}
}

// draw makes a submission of coins.
func (l *labels) draw() {
	for i := 0; i < len(l.errors); i += 8 {
		binary.LittleEndian.PutUint64(l.errors[i:], l.coins.Uint64())
	}
	for i := l.n; i < 8*len(l.errors); i++ {
		l.errors[i/8] &^= 1 << (i % 8) // beyond the last label
	}
}

// keep counts the submission's votes.
func (l *labels) keep() {
	for i := range l.votes {
		l.votes[i] += int32(l.errors[i/8]>>(i%8)&1)*2 - 1
	}
}

// majority makes the submission that of those kept; ties are coins.
func (l *labels) majority() {
	l.draw()
	for i, v := range l.votes {
		switch {
		case v > 0:
			l.errors[i/8] |= 1 << (i % 8)
		case v < 0:
			l.errors[i/8] &^= 1 << (i % 8)
		}
	}
}

func (l *labels) loss() float64 { return float64(countErrors(l.errors)) / float64(l.n) }

// attack plays once.
func (c *cell) attack(seed uint64) (outcome, error) {
	b := c.open(seeds.Of(seed, 1))
	public := newLabels(c.n, seeds.Of(seed, 2))
	all, training := []*labels{public}, (*labels)(nil)
	if c.guarantee.UsesTraining() {
		training = newLabels(int(c.guarantee.Training), seeds.Of(seed, 3))
		all = append(all, training)
	}
	out := outcome{Best: 1}
	see := func() (bool, error) {
		var trained []byte
		if training != nil {
			trained = training.errors
		}
		shown, interval, keep, err := b.submit(public.errors, trained)
		if err != nil {
			return false, err
		}
		out.Shown, out.Best = shown, min(out.Best, shown)
		if interval != nil {
			out.Low, out.High = interval.Low, interval.High
			out.Missed = out.Missed || 0.5 < interval.Low || 0.5 > interval.High
		}
		return keep, nil
	}
	for range c.k {
		for _, l := range all {
			l.draw()
		}
		keep, err := see()
		if err != nil {
			return out, err
		}
		if keep {
			out.Kept++
			for _, l := range all {
				l.keep()
			}
		}
	}
	for _, l := range all {
		l.majority()
	}
	out.Final = public.loss()
	if training != nil {
		out.Trained = training.loss()
	}
	_, err := see()
	if holdout, ok := b.(*holdoutBoard); ok {
		out.Tokens = holdout.holdout.State.Tokens
	}
	return out, err
}
