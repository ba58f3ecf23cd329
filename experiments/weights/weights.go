// Package weights measures private multiplicative weights (dp/pmw; Hardt and Rothblum, FOCS 2010): the largest error of k questions about a table of a small domain, beside that of noise on
// each answer under one total guarantee, and beside what each promises.
package weights

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/pmw"
	"github.com/holdoutd/holdoutd/experiments/run"
)

const (
	domain  = 256 // rows of eight bits
	rows    = 100_000
	epsilon = 1.   // of all questions together; neighbours differ in one replaced row
	delta   = 1e-6 // of Gaussian noise; the others have none
	beta    = 0.05 // a promise is of the largest of k errors, at most, with probability 1-beta
	// unit is how many steps of noise there are to a row: fine enough for the law of real numbers, and no finer than noise is drawn for a millionth of epsilon.
	unit = 1 << 10
)

// Who answers: run.Row.Method.
const (
	weighted = "multiplicative weights"
	laplace  = "Laplace noise"
	gaussian = "Gaussian noise"
)

// Who asks: run.Row.Condition. What noise adds does not depend on the questions.
const (
	random = "random subsets"
	worst  = "the most wrong subset" // each question is the one that the public guess is most wrong about: nobody who does not know the table asks so well
	anyone = "any questions"
)

// What is measured: run.Row.Set.
const (
	largestError = "largest error"
	mendings     = "updates"
)

// Experiment is the error of private multiplicative weights.
var Experiment = run.Experiment{
	Name:  "weights",
	Short: "the largest error of k questions by private multiplicative weights and by noise on each answer",
	Paper: `Hardt and Rothblum (FOCS 2010; Dwork and Roth 2014, section 4.2): a public guess of the table answers exponentially many questions, and is mended by a noisy answer where it is wrong. The
largest error that dp/pmw promises grows with the logarithm of the number of questions k at most; the guess is mended at most 2 ln(elements)/mistake² times. With noise on each answer and the same total epsilon, shared by
basic composition, the largest error grows as k ln k (Laplace: a mean of H_k scales, the k-th harmonic number); with a delta, as sqrt(k ln k) (Gaussian, the exact account of arXiv 1905.02383). So noise is better for few questions, and weights for many.`,
	Small: run.Options{Quick: true, Repetitions: 3},
	Run:   measure,
}

// cell is one who asks k questions of one who answers.
type cell struct {
	asks, method string
	k            int
	plan         pmw.Settings // of multiplicative weights
	runs         []played
}

// played is what came of one run.
type played struct {
	Error   float64 // the largest; a question that was not answered counts as 1
	Mended  int
	Spent   bool    // a question was not answered
	Noise   float64 // of answers that mended the guess: the sum of their absolute errors
	Answers int     // how many those are
}

func newCells(quick bool) ([]*cell, error) {
	numbers := []int{10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000}
	if quick {
		numbers = []int{10, 100, 1000, 20_000}
	}
	var cells []*cell
	for _, k := range numbers {
		plan, err := pmw.Plan(domain, rows, epsilon, float64(k), beta)
		if err != nil {
			return nil, fmt.Errorf("experiments: weights: %d questions: %w", k, err)
		}
		cells = append(cells, &cell{asks: random, method: weighted, k: k, plan: plan}, &cell{asks: worst, method: weighted, k: k, plan: plan},
			&cell{asks: anyone, method: laplace, k: k}, &cell{asks: anyone, method: gaussian, k: k})
	}
	return cells, nil
}

// measure plays every cell on fresh tables.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "weights", Seed: o.Seed, Quick: o.Quick}
	repetitions := o.RepetitionsOr(30)
	cells, err := newCells(o.Quick)
	if err != nil {
		return result, err
	}
	reference, err := run.ParseReference(referenceFile)
	if err != nil {
		return result, err
	}
	runs, finished, err := run.Repeat(ctx, o, "questions", len(cells)*repetitions, func(_ context.Context, i int) (played, error) {
		return cells[i%len(cells)].play(run.SeedOf(o.Seed, uint64(i)))
	})
	for i, r := range run.Dealt(runs, finished, len(cells)) {
		cells[i].runs = r
	}
	result.Complete = err == nil
	for _, c := range cells {
		if len(c.runs) > 0 {
			result.Rows = append(result.Rows, c.rows()...)
		}
	}
	if result.Complete {
		result.Compare(comparisons(cells, reference))
	}
	result.Summary, result.Figures = tableOf(cells), figuresOf(cells)
	result.Notes = []string{
		fmt.Sprintf("A table of %d rows of %d elements: half of the rows at one element, a quarter at another, and so on. Errors are from the table's own shares: what sampling adds for a population is not in them. "+
			"The total epsilon is %v; multiplicative weights and Laplace noise have no delta, Gaussian noise has %v. %d repetitions.", rows, domain, epsilon, delta, repetitions),
		fmt.Sprintf("A promise is an error that none of k answers exceeds with probability %v. Errors of noise are not cut at 1, so that they can be compared with theory: whoever always answers 1/2 errs by 1/2 at most, and needs no table.", 1-beta),
	}
	return result, err
}

// play asks k questions about a fresh table, or draws k answers' noise.
func (c *cell) play(seed uint64) (played, error) {
	s := noise.Seeded(seed)
	if c.method != weighted {
		return played{Error: c.noise(s)}, nil
	}
	r := rand.New(noise.Seeded(run.SeedOf(seed, 1)))
	counts := table(r)
	weights, err := c.plan.Start(counts, s)
	if err != nil {
		return played{}, err
	}
	question, p := make([]uint32, domain), played{}
	truth := ask(question, c.asks, counts, weights, r)
	for range c.k {
		a, err := weights.Ask(question)
		if errors.Is(err, pmw.ErrSpent) {
			p.Error, p.Spent = 1, true
			break
		}
		if err != nil {
			return p, err
		}
		off := math.Abs(a.Value - truth)
		p.Error = max(p.Error, off)
		if a.Updated && truth > 0.1 && truth < 0.9 { // farther from 0 and 1 than noise reaches: elsewhere an answer may be cut
			p.Noise += off
			p.Answers++
		}
		if a.Updated || c.asks == random {
			truth = ask(question, c.asks, counts, weights, r)
		}
	}
	p.Mended = c.plan.Updates - weights.Left()
	return p, nil
}

// table has half of the rows at one element, a quarter at another, and so on; which elements, chance says.
func table(r *rand.Rand) []int64 {
	counts, left := make([]int64, domain), int64(rows)
	for _, i := range r.Perm(domain) {
		counts[i] = (left + 1) / 2
		left -= counts[i]
	}
	return counts
}

// ask sets the next question, and returns the share of the rows that it is about.
func ask(question []uint32, who string, counts []int64, weights *pmw.Run, r *rand.Rand) float64 {
	var guess []float64
	if who == worst {
		guess = weights.Guess()
	}
	total, coins := int64(0), uint64(0)
	for i := range question {
		if i%64 == 0 && who == random {
			coins = r.Uint64()
		}
		in := coins>>(i%64)&1 == 1
		if who == worst {
			in = float64(counts[i])/rows > guess[i]
		}
		if question[i] = 0; in {
			question[i] = pmw.One
			total += counts[i]
		}
	}
	return float64(total) / rows
}

// noise is the largest of the errors that noise makes of k answers, in shares of the rows.
func (c *cell) noise(s *noise.Stream) float64 {
	largest := int64(0)
	deviation := sigma(float64(c.k)) * rows * unit
	draw := func() int64 { return noise.RoundedNormal(s, deviation) }
	if c.method == laplace {
		each := noise.Eps(epsilon / float64(c.k)) // basic composition: account.Pure.Basic
		draw = func() int64 { return each.Laplace(s, unit) }
	}
	for range c.k {
		x := draw()
		largest = max(largest, x, -x)
	}
	return float64(largest) / (rows * unit)
}

// sigma is the deviation of Gaussian noise on each of k means: k of them are as one of a sensitivity that is sqrt(k) times as large.
func sigma(k float64) float64 {
	return account.GaussianSigma(math.Sqrt(k)/rows, epsilon, delta)
}
