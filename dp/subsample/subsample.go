// Package subsample answers questions about a table by the votes of rows that are drawn from it, and adds no noise: what hides a row is that hardly any
// vote is its own (Blanc, "Subsampling suffices for adaptive data analysis", STOC 2023, arXiv 2302.08661). What is bounded is how much a transcript can say
// of the table as a whole, its mutual information, whoever asks what. So answers generalise: they are near to the population, also of questions that were
// chosen by earlier answers.
//
// It is not differentially private: a vote that is a row's own says what that row says. Of n rows one is read by a vote with probability 1/n, so that k
// votes are (0, k/n)-private, which protects nobody. A question reads few rows, however large the table is. Its intervals are wider than those of noise at
// the price of the same information: see [Settings.HalfWidth].
package subsample

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/minimum"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// ErrSettings is wrapped by all errors.
var ErrSettings = errors.New("subsample: bad settings")

// One is the weight of a row that votes yes for certain.
const One = 1 << 30

// Limits.
const (
	MaxRows      = 1 << 40
	MaxQuestions = 1 << 30
	MaxVotes     = 1 << 30
)

// Asked are questions that are alike: each is any function of a subsample that is drawn afresh, without replacement.
type Asked struct {
	Times    float64 // how many of them, or how many are expected at most
	Rows     int64   // of the subsample, from 1
	Outcomes int64   // how many answers there are to it, from 1
}

// Information is how many nats all answers together say at most of a table of so many rows that were drawn independently from one population, however each
// question was chosen from the answers before it: 4/n times the sum of Rows·(Outcomes-1) (Blanc, Theorem 2). A vote is a question of one row and two
// outcomes.
func Information(rows int64, asked ...Asked) (nats float64, err error) {
	if rows < 1 || rows > MaxRows {
		return 0, fmt.Errorf("%w: %d rows, want 1 to %d", ErrSettings, rows, int64(MaxRows))
	}
	for _, a := range asked {
		if !(a.Times >= 0 && a.Times <= MaxQuestions*MaxVotes) || a.Rows < 1 || a.Rows > rows || a.Outcomes < 1 || a.Outcomes > MaxVotes {
			return 0, fmt.Errorf("%w: %v questions of %d rows with %d outcomes; want 0 to 2^60 of them, of 1 to %d rows, with 1 to 2^30 outcomes", ErrSettings, a.Times, a.Rows, a.Outcomes, rows)
		}
		nats += 4 * a.Times * float64(a.Rows) * float64(a.Outcomes-1) / float64(rows)
	}
	return nats, nil
}

// Settings of a table's questions about means. All are public.
type Settings struct {
	Rows      int64 // n, of the table
	Questions int64 // k, at most
	Votes     int64 // m, of each question
}

// Check refuses settings that are none.
func (set Settings) Check() error {
	if set.Rows < 1 || set.Rows > MaxRows || set.Questions < 1 || set.Questions > MaxQuestions || set.Votes < 1 || set.Votes > MaxVotes {
		return fmt.Errorf("%w: %d questions of %d votes each about %d rows; want from 1, and at most 2^30, 2^30 and 2^40", ErrSettings, set.Questions, set.Votes, set.Rows)
	}
	return nil
}

// Plan are the settings with the narrowest half-width that all answers together have with probability 1-beta, and that half-width.
func Plan(rows, questions int64, beta float64) (Settings, float64, error) {
	set := func(log float64) Settings {
		return Settings{rows, questions, int64(min(max(math.Round(math.Exp(log)), 1), MaxVotes))}
	}
	if err := set(0).Check(); err != nil {
		return Settings{}, 0, err
	}
	if !(beta > 0 && beta < 1) {
		return Settings{}, 0, fmt.Errorf("%w: a failure probability of %v, want above 0 and below 1", ErrSettings, beta)
	}
	log, _ := minimum.Scanned(func(log float64) float64 { return set(log).halfWidth(beta) }, 0, math.Log(MaxVotes), 100, 1e-3)
	best := set(log)
	return best, best.halfWidth(beta), nil
}

// Answer is how many of the votes are yes: each is of a row that is drawn uniformly and votes yes with the probability weight/One. Their share is the
// answer, an unbiased one of the table's mean weight. weight is asked for a row from 0 to Rows-1 as often as there are votes; a weight above One counts as One. The
// guarantee needs a stream of a secret key that is used for nothing else, and at most as many answers as there are questions. The settings must be good.
func (set Settings) Answer(s *noise.Stream, weight func(row int64) uint32) (yes int64) {
	if err := set.Check(); err != nil {
		panic(err)
	}
	for range set.Votes {
		row := int64(s.Below(uint64(set.Rows)))
		if s.Below(One) < uint64(weight(row)) {
			yes++
		}
	}
	return yes
}

// HalfWidth is how far off any of the answers is from its mean in the population, at most, with probability 1-beta over rows and votes, whoever asks. Rows
// are independent, of one population. It is at most 1; the settings must be good, and beta between 0 and 1.
//
// With a part of beta votes miss their table's mean by more than one piece of the width (Hoeffding's inequality, for each question). Of all answers one
// misses its population by most. Which one, and in which direction, is a function of the transcript. Were the table independent of it, it would miss that
// population's mean in that direction by t or more with a probability of at most p = e^{-2nt²}. It is not independent, and does with a probability b. By the
// data processing inequality kl(b||p) is at most the information.
func (set Settings) HalfWidth(beta float64) float64 {
	if err := set.Check(); err != nil {
		panic(err)
	}
	if !(beta > 0 && beta < 1) {
		panic(fmt.Sprintf("subsample: a failure probability of %v", beta))
	}
	return set.halfWidth(beta)
}

func (set Settings) halfWidth(beta float64) float64 {
	nats := 4 * float64(set.Questions) * float64(set.Votes) / float64(set.Rows)
	_, width := minimum.Scanned(func(logit float64) float64 {
		share := 1 / (1 + math.Exp(-logit))
		votes := math.Sqrt(math.Log(2*float64(set.Questions)/(beta*(1-share))) / (2 * float64(set.Votes)))
		return votes + set.table(beta*share, nats)
	}, -12, 12, 48, 1e-3)
	return min(1, width)
}

// table is the t with kl(b||p) = nats for p = e^{-2nt²}.
func (set Settings) table(b, nats float64) float64 {
	// In y = -ln p: kl = b y + b ln b + (1-b)(ln(1-b) - ln(1-e^-y)) grows in y from -ln b on.
	kl := func(y float64) float64 {
		return b*(y+math.Log(b)) + (1-b)*(math.Log1p(-b)-math.Log1p(-math.Exp(-y)))
	}
	low, high := -math.Log(b), 1-math.Log(b)
	for kl(high) < nats {
		high *= 2
	}
	for range 100 {
		if middle := (low + high) / 2; kl(middle) < nats {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(high / (2 * float64(set.Rows)))
}
