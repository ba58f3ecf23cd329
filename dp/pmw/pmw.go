// Package pmw is private multiplicative weights: it answers exponentially many statistical questions about a table whose rows are of a small, declared
// domain (Hardt and Rothblum, FOCS 2010; Dwork and Roth 2014, section 4.2). It keeps a public guess of the table, a weight for each element of the domain.
// A question that the guess answers well costs nothing; one that it does not is answered from the table with noise, and the guess is mended by the answer.
// It can be mended only so often before it is right about everything.
//
// Its time is the size of the domain for each question: the method is for domains of thousands, not of many columns.
package pmw

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/sparse"
)

// Errors of this package, wrapped.
var (
	ErrSettings = errors.New("pmw: bad settings")
	ErrQuestion = errors.New("pmw: bad question")
	// ErrSpent: the guess was mended as often as was paid for, and the next question cannot be answered well for nothing.
	ErrSpent = errors.New("pmw: the guess was mended as often as was paid for")
)

// One is the weight in a question that stands for 1: a question gives each element of the domain a weight from 0 to One.
const One = 1 << 20

// Limits.
const (
	MaxDomain  = 1 << 22
	MaxUpdates = 1 << 16
	MaxRows    = 1 << 31
)

// leastShare keeps a guess above 0, from which no update would lead back. It is so small that the guess sums to 1 all the same.
const leastShare = 0x1p-1000

// Settings of a run. Neighbours differ in one replaced row; how many rows there are is public.
type Settings struct {
	Domain  int
	Rows    int64
	Epsilon float64 // of the whole run, however many questions are asked
	Updates int     // how often the guess can be mended
	// Threshold is from which mistake on a guess is mended, as a share of the rows.
	Threshold float64
	// Rate is by how much: a weight changes by a factor of e^{±Rate} at most. 0 counts as Threshold/2.
	Rate float64
}

// Plan are the settings that make the promised error of so many questions, at a failure probability beta, least: see [Settings.Accuracy].
func Plan(domain int, rows int64, epsilon float64, questions, beta float64) (Settings, error) {
	best, least := Settings{}, math.Inf(1)
	for exponent := 0.; exponent <= 16; exponent += .25 {
		set := Settings{Domain: domain, Rows: rows, Epsilon: epsilon, Updates: int(math.Exp2(exponent))}
		mistake := math.Sqrt(math.Log(float64(domain))/(2*float64(set.Updates))) * (1 + 1e-9)
		set.Threshold = mistake + set.margin(questions, beta)
		set.Rate = 4 * mistake
		if set.check() != nil {
			continue
		}
		if error := set.Accuracy(questions, beta); error < least {
			best, least = set, error
		}
	}
	if math.IsInf(least, 1) {
		return best, fmt.Errorf("%w: for a domain of %d elements, %d rows and epsilon %v no error below 1 can be promised; it needs more rows, or another mechanism", ErrSettings, domain, rows, epsilon)
	}
	return best, nil
}

func (set Settings) check() error {
	switch {
	case set.Domain < 2 || set.Domain > MaxDomain:
		return fmt.Errorf("%w: a domain of %d elements, want 2 to %d", ErrSettings, set.Domain, MaxDomain)
	case set.Rows < 1 || set.Rows > MaxRows:
		return fmt.Errorf("%w: %d rows, want 1 to %d", ErrSettings, set.Rows, MaxRows)
	case set.Updates < 1 || set.Updates > MaxUpdates:
		return fmt.Errorf("%w: %d updates, want 1 to %d", ErrSettings, set.Updates, MaxUpdates)
	case !(set.Threshold > 0 && set.Threshold < 1):
		return fmt.Errorf("%w: a threshold of %v, want a share above 0 and below 1", ErrSettings, set.Threshold)
	case !(set.Rate >= 0 && set.Rate <= 4):
		return fmt.Errorf("%w: a rate of %v, want 0 to 4", ErrSettings, set.Rate)
	}
	if err := set.vector().Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return nil
}

// vector are the settings of the comparisons: a third of epsilon for the answers, the rest shared as comparisons are sharpest.
func (set Settings) vector() sparse.Vector {
	v := sparse.Split(set.Epsilon*2/3, set.Updates, One, false)
	v.Release = noise.Eps(set.Epsilon / 3)
	return v
}

// margin is how far off comparisons and answers can be, as a share of the rows, of so many questions with probability 1-beta, each of which is compared
// twice (sparse.Vector.Accuracy). The guess and the threshold are rounded to whole numbers, which moves a comparison by less than 2.
func (set Settings) margin(questions, beta float64) float64 {
	comparison, answer := set.vector().Accuracy(2*questions, beta)
	return (max(comparison, answer) + 2) / (float64(set.Rows) * One)
}

// Accuracy is an error, as a share of the rows, that no answer exceeds with probability 1-beta, of so many questions, chosen one by one; 1 where none below
// 1 is promised, also of settings that are none.
//
// A guess that is not mended is off by at most Threshold + margin, and one that is mended was off by at least a = Threshold - margin, in the direction in
// which it is mended. By the potential argument of multiplicative weights each update then brings the relative entropy of the table to the guess, at most
// ln Domain, down by at least Rate·a - Rate²/8: the logarithm of what the weights are divided by is at most Rate times the question's answer from the
// guess, and Rate²/8 (Hoeffding's lemma, for weights in [0,1]). If Updates times that are more than ln Domain, the guess is right about all questions
// before the updates are spent.
func (set Settings) Accuracy(questions, beta float64) float64 {
	if set.check() != nil {
		return 1
	}
	margin, rate := set.margin(questions, beta), set.rate()
	if !(float64(set.Updates)*drop(rate, set.Threshold-margin) > math.Log(float64(set.Domain))) {
		return 1
	}
	return min(1, set.Threshold+margin)
}

// drop is by how much the relative entropy goes down at least, where a guess that was off by mistake is mended.
func drop(rate, mistake float64) float64 { return rate*mistake - rate*rate/8 }

func (set Settings) rate() float64 {
	if set.Rate == 0 {
		return set.Threshold / 2
	}
	return set.Rate
}

// Run is a run of questions. It is not safe for concurrent use.
type Run struct {
	set    Settings
	counts []int64
	guess  []float64 // sums to 1
	ask    *sparse.Run
}

// Start begins with the guess that all elements of the domain are as frequent. counts is how often each comes up in the table; they sum to Rows. The
// guarantee needs a stream of a secret key that is used for nothing else.
func (set Settings) Start(counts []int64, s *noise.Stream) (*Run, error) {
	if err := set.check(); err != nil {
		return nil, err
	}
	rows := int64(0)
	for i, n := range counts {
		if n < 0 || n > set.Rows {
			return nil, fmt.Errorf("%w: the count of element %d is below 0 or above the number of rows", ErrSettings, i)
		}
		rows += n
	}
	if len(counts) != set.Domain || rows != set.Rows {
		return nil, fmt.Errorf("%w: %d counts of %d rows for a domain of %d elements and %d rows", ErrSettings, len(counts), rows, set.Domain, set.Rows)
	}
	ask, err := set.vector().Start(s)
	if err != nil {
		return nil, err
	}
	r := &Run{set: set, counts: append([]int64(nil), counts...), guess: make([]float64, set.Domain), ask: ask}
	for i := range r.guess {
		r.guess[i] = 1 / float64(set.Domain)
	}
	return r, nil
}

// Answer is the share of the rows, weighted by the question.
type Answer struct {
	Value   float64
	Updated bool // the guess was mended, which cost one of the updates
}

// Left is how often the guess can still be mended.
func (r *Run) Left() int { return r.ask.Left() }

// Guess is the public guess of the table: the share of each element. It can be used for anything, also for questions that are not asked.
func (r *Run) Guess() []float64 { return append([]float64(nil), r.guess...) }

// Ask answers one question: a weight of each element of the domain, from 0 to One.
func (r *Run) Ask(weights []uint32) (Answer, error) {
	if len(weights) != r.set.Domain {
		return Answer{}, fmt.Errorf("%w: %d weights for a domain of %d elements", ErrQuestion, len(weights), r.set.Domain)
	}
	table, guessed := int64(0), 0.0
	for i, w := range weights {
		if w > One {
			return Answer{}, fmt.Errorf("%w: the weight of element %d is %d, want 0 to %d", ErrQuestion, i, w, One)
		}
		table += r.counts[i] * int64(w)
		guessed += r.guess[i] * float64(w)
	}
	if r.ask.Left() == 0 {
		return Answer{}, fmt.Errorf("%w: %d times", ErrSpent, r.set.Updates)
	}
	guess := int64(math.Round(guessed * float64(r.set.Rows)))
	threshold := int64(r.set.Threshold * float64(r.set.Rows) * One)
	for _, sign := range [2]int64{1, -1} {
		said, err := r.ask.Ask(sign*(table-guess), threshold)
		if err != nil {
			return Answer{}, err
		}
		if said.Above {
			r.mend(weights, float64(sign))
			value := (float64(guess) + float64(sign*said.Value)) / (float64(r.set.Rows) * One)
			return Answer{min(max(value, 0), 1), true}, nil
		}
	}
	return Answer{guessed / One, false}, nil
}

// mend makes elements of large weight more frequent, or less, and lets the guess sum to 1 again.
func (r *Run) mend(weights []uint32, sign float64) {
	total := 0.0
	for i, w := range weights {
		r.guess[i] *= math.Exp(sign * r.set.rate() * float64(w) / One)
		total += r.guess[i]
	}
	for i := range r.guess {
		r.guess[i] = max(r.guess[i]/total, leastShare)
	}
}
