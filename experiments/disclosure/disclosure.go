// Package disclosure attacks single rows of a holdout by its answers: it reconstructs a column of secret bits from random questions
// (Dinur and Nissim, PODS 2003; Dwork, McSherry and Talwar, STOC 2007) and from packed ones, and finds out who is among the rows
// (Homer et al., PLoS Genetics 2008; Dwork, Smith, Steinke, Ullman and Vadhan, FOCS 2015). Exact answers fall, and rounded ones. Those of the mechanisms give away what
// theory says of their noise and their tokens. The mechanisms promise intervals and no privacy: what they give away is a fact about them, which is measured here.
package disclosure

import (
	"context"
	"fmt"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Attacks: run.Row.Condition.
const (
	reconstruction = "reconstruction"    // random questions about a secret bit, solved as linear equations
	packing        = "packed questions"  // 29 secret bits in the digits of one mean
	membership     = "membership"        // is this row, which the attacker has, one of them?
	targets        = 100                 // rows that membership is asked of, and as many others
	tokens         = 20                  // of the mechanisms that compare with a training part
	roundedTo      = 0.01                // the step of rounded answers
	bitsRight      = "secret bits right" // run.Row.Set
	toldRight      = "members told from others"
)

// Who answers: run.Row.Method.
const (
	exact        = "exact answers"
	rounded      = "rounded to 0.01"
	gaussian     = "gaussian"
	throughCheck = "thresholdout, 20 tokens"
	byGuess      = "guess_and_check, 20 tokens"
)

var methods = []string{exact, rounded, gaussian, throughCheck, byGuess}

// Experiment is what answers tell of single rows.
var Experiment = run.Experiment{
	Name:  "disclosure",
	Short: "how many secret bits, and which members, the answers of exact, rounded and honest holdouts give away",
	Paper: `Dinur and Nissim (PODS 2003): whoever knows which rows are in a table, and asks for the means of a secret bit over random halves of it, reconstructs the bits
of nearly all rows from answers that err by less than about 1/sqrt(n): from exact ones all of n bits by n questions. The share of bits that the best linear attack gets
right from k questions is Phi(sqrt(b)), b = sum over questions of 1/(v + n/(1 + b)), where v is the variance of 2n times an answer's error (Tse and Hanly, IEEE Trans. Inf. Theory 45, 1999; Zhang, Chong and Tse 2001).
Homer et al. (2008), Dwork et al. (FOCS 2015): the answers about k attributes tell whether a row is among them, since an answer leans to its rows: a target is told rightly with probability Phi(d/2), d^2 = sum of 1/(n (1 + 4 n s^2)) for errors of
deviation s. Where all answers have normal noise of deviations s, no attack whatever gets a bit or a member right with probability above Phi(m/2), m^2 = sum of 1/(n s)^2 (Dong, Roth and Su 2022).`,
	Small: run.Options{Quick: true, Repetitions: 2},
	Run:   measure,
}

// cell is an attack on one who answers, with a number of questions.
type cell struct {
	attack, method string
	n, k           int
	guarantee      thresholdout.Guarantee
	runs           []float64 // the share that the attack got right in each run
}

// newCell plans who answers. Under gaussian the attack leaves out the last question, which has no noise: nothing follows it.
func newCell(attack, method string, n, k int) (*cell, error) {
	spec := thresholdout.Spec{Mechanism: thresholdout.Naive, N: int64(n), Questions: int64(k)}
	switch method {
	case gaussian:
		spec.Mechanism, spec.Questions = thresholdout.Gaussian, int64(k+1)
	case throughCheck:
		spec.Mechanism, spec.Training, spec.Tokens = thresholdout.Thresholdout, int64(n), int64(min(tokens, k))
	case byGuess:
		spec.Mechanism, spec.Training, spec.Tokens = thresholdout.GuessAndCheck, int64(n), int64(min(tokens, k))
	}
	p, err := thresholdout.Plan(spec)
	if err != nil {
		return nil, fmt.Errorf("experiments: disclosure: %s, n %d, k %d: %w", method, n, k, err)
	}
	return &cell{attack: attack, method: method, n: n, k: k, guarantee: p}, nil
}

// newCells has every attack on all who answer.
func newCells(quick bool) ([]*cell, error) {
	n, numbers := 1000, []int{250, 500, 1000, 2000, 4000}
	if quick {
		n, numbers = 200, []int{100, 200, 800}
	}
	var cells []*cell
	for _, attack := range []string{reconstruction, packing, membership} {
		ks := numbers
		if attack == packing {
			ks = []int{(n + packed - 1) / packed}
		}
		for _, method := range methods {
			for _, k := range ks {
				c, err := newCell(attack, method, n, k)
				if err != nil {
					return nil, err
				}
				cells = append(cells, c)
			}
		}
	}
	return cells, nil
}

// measure lets every attack play against all who answer.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "disclosure", Seed: o.Seed, Quick: o.Quick}
	repetitions := o.RepetitionsOr(20)
	cells, err := newCells(o.Quick)
	if err != nil {
		return result, err
	}
	runs, finished, err := run.Repeat(ctx, o, "attacks", len(cells)*repetitions, func(_ context.Context, i int) (float64, error) {
		return cells[i%len(cells)].play(run.SeedOf(o.Seed, uint64(i)))
	})
	for i, r := range run.Dealt(runs, finished, len(cells)) {
		cells[i].runs = r
	}
	result.Complete = err == nil
	for _, c := range cells {
		if len(c.runs) > 0 {
			result.Rows = append(result.Rows, c.row())
		}
	}
	if result.Complete {
		result.Compare(comparisons(cells))
	}
	result.Summary, result.Figures = tableOf(cells), figuresOf(cells)
	result.Notes = []string{
		fmt.Sprintf("A holdout of %d rows. The attacker knows which rows it has, and in a question about membership the target's attributes. In a reconstruction a question is, for each row, a coin's toss, or its opposite where the secret bit is 0; in a packed question "+
			"each of %d rows has its bit at a binary digit of its own; about members it is one of k attributes, coins too, and %d members and as many others are told apart. %d repetitions.", cells[0].n, packed, targets, repetitions),
		fmt.Sprintf("The attacker makes the training part useless: functions are 0 on its rows, so that thresholdout and guess_and_check answer from the holdout until their %d tokens are spent. Under gaussian the holdout is planned for one question more, its last, "+
			"which has no noise and is not asked.", tokens),
	}
	return result, err
}

// play is one attack on new rows: the share of bits or of targets that it gets right.
func (c *cell) play(seed uint64) (float64, error) {
	h := analysts.NewHoldout(c.guarantee, run.SeedOf(seed, 1))
	coins := newCoins(run.SeedOf(seed, 2))
	switch c.attack {
	case packing:
		return c.unpack(h, coins)
	case membership:
		return c.trace(h, coins)
	}
	return c.reconstruct(h, coins)
}
