// Package attacks plays the strongest analysts that are known against one guarantee, before anybody else does: against its intervals, for who is in the
// holdout, and for a secret column of it. All that is attacked is simulated data under the mechanism as the product runs it: each answer is
// [thresholdout.Step]'s. What an attacker got stands beside what the guarantee allows, each with its confidence.
//
// An attack that fails proves nothing. One that succeeds says that these settings, or the program, do not keep what is promised.
package attacks

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Request says what is attacked, and how hard.
type Request struct {
	Guarantee thresholdout.Guarantee
	Seed      uint64
	Minutes   float64 // of one processor, about; 0 is DefaultMinutes
	// Progress is told how many of a part's games are finished; nil is nobody. It is not called by two at once.
	Progress func(part string, done, total int)
}

// DefaultMinutes of work of one processor.
const DefaultMinutes = 1

// MaxMinutes is a day.
const MaxMinutes = 24 * 60

// MaxQuestions are how many are played: with more, one run takes minutes.
const MaxQuestions = 1_000_000

// FalseAlarm is the probability with which an audit of a guarantee that keeps its promises says that one is broken.
const FalseAlarm = 1e-3

// Verdict is what an audit comes to.
type Verdict string

// Verdicts.
const (
	Held        Verdict = "held"        // no attacker broke what is promised
	Broken      Verdict = "broken"      // an attacker broke it, but for the probability FalseAlarm
	Unprotected Verdict = "unprotected" // nothing is promised, and the attackers broke what a textbook would say
	Undecided   Verdict = "undecided"   // nothing is promised, and the attackers did not get far in these few questions
)

// Report is what the attackers got.
type Report struct {
	Mechanism  thresholdout.Name `json:"mechanism"`
	N          int64             `json:"n"`
	Training   int64             `json:"training,omitempty"`
	Questions  int64             `json:"questions"`
	Tokens     int64             `json:"tokens,omitempty"`
	Rounds     int64             `json:"rounds,omitempty"`
	Confidence float64           `json:"confidence"`
	Seed       uint64            `json:"seed"`
	Minutes    float64           `json:"minutes"`

	Verdict    Verdict `json:"verdict"`
	Says       string  `json:"says"`        // the verdict in a sentence or two
	FalseAlarm float64 `json:"false_alarm"` // the probability of a wrong verdict "broken"

	Intervals      []Interval      `json:"intervals"`  // each analyst against the intervals, the one who got furthest first
	Membership     []Membership    `json:"membership"` // who tells one row of the holdout from a row that is not in it
	Reconstruction *Reconstruction `json:"reconstruction,omitempty"`
	Notes          []string        `json:"notes,omitempty"` // what was not tried, and why
}

// Interval is what one analyst did to the intervals.
type Interval struct {
	Analyst   string   `json:"analyst"`
	Runs      int      `json:"runs"`      // each on a fresh holdout
	Questions int64    `json:"questions"` // of the longest run: where guesses are wrong, tokens end it
	Missed    int      `json:"missed"`    // runs in which any interval missed its target
	Low       float64  `json:"low"`       // of the probability to miss: a 95% interval of Clopper and Pearson
	High      float64  `json:"high"`
	Allowed   *float64 `json:"allowed"`    // that probability, at most; null where nothing is promised
	Error     float64  `json:"error"`      // the largest error of an answer, in the middle run
	WorstRun  float64  `json:"worst_run"`  // the largest error of any run
	HalfWidth float64  `json:"half_width"` // Error over Reach: about how far intervals reached there
	Reach     float64  `json:"reach"`      // the largest error over its half-width, in the middle run: at 1 an interval misses
	Broken    bool     `json:"broken"`     // misses more often than allowed, or than a textbook's intervals may
}

// shares of the work.
const (
	intervalsShare      = .5
	membershipShare     = .4
	reconstructionShare = .1
)

// NoCells says why a guarantee about declared cells is not attacked.
const NoCells = "the attackers ask about columns of their own, and cells answers questions about declared cells alone. Its intervals hold for all of these at once (docs/proofs/cells.md), " +
	"and its answers are exact: whoever asks enough knows the share of the held-out units in every cell"

// Audit plays the attacks. The same request gives the same report. It stops when ctx ends, with its error; errors of a request are *[RequestError].
func Audit(ctx context.Context, r Request) (Report, error) {
	if r.Minutes == 0 {
		r.Minutes = DefaultMinutes
	}
	if !(r.Minutes > 0 && r.Minutes <= MaxMinutes) {
		return Report{}, &RequestError{"minutes", fmt.Sprintf("%v is not more than 0 and at most %v", r.Minutes, MaxMinutes)}
	}
	g := r.Guarantee
	if g.Own() == nil {
		return Report{}, &RequestError{"guarantee", "there is none; plan one"}
	}
	report := Report{Mechanism: g.Mechanism, N: g.N, Training: g.Training, Questions: g.Questions, Tokens: g.Tokens, Rounds: g.Rounds, Confidence: g.Confidence,
		Seed: r.Seed, Minutes: r.Minutes, FalseAlarm: FalseAlarm}
	if _, celled := g.DeclaredCells(); celled {
		return Report{}, &RequestError{"mechanism", NoCells}
	}
	if g.Questions > MaxQuestions {
		return Report{}, &RequestError{"questions", fmt.Sprintf("%d are more than are played; the most is %d", g.Questions, MaxQuestions)}
	}
	work := r.Minutes * 60e9
	var err error
	if report.Intervals, report.Notes, err = r.intervals(ctx, work*intervalsShare); err != nil {
		return report, err
	}
	if !g.TakesSubmissions() {
		m, notes, err := r.membership(ctx, work*membershipShare)
		if err != nil {
			return report, err
		}
		report.Membership, report.Notes = m, append(report.Notes, notes...)
		if report.Reconstruction, notes, err = r.reconstruct(ctx, work*reconstructionShare); err != nil {
			return report, err
		}
		report.Notes = append(report.Notes, notes...)
	}
	report.judge(unprotected(g))
	return report, nil
}

// RequestError says which member of a request is wrong, and what to do.
type RequestError struct{ Field, Detail string }

func (e *RequestError) Error() string { return "attacks: " + e.Field + ": " + e.Detail }

// unprotected reports whether nothing is promised.
func unprotected(g thresholdout.Guarantee) bool {
	kind, _ := thresholdout.KindOf(g.Mechanism)
	return kind.Unprotected
}

// judge makes the verdict.
func (r *Report) judge(unprotected bool) {
	brokenIntervals := slices.ContainsFunc(r.Intervals, func(i Interval) bool { return i.Broken })
	brokenNoise := slices.ContainsFunc(r.Membership, func(m Membership) bool { return m.Broken })
	first := r.Intervals[0]
	got := fmt.Sprintf("The strongest against the intervals, %q, made one miss in %d of %d runs", first.Analyst, first.Missed, first.Runs)
	switch {
	case unprotected && brokenIntervals:
		r.Verdict = Unprotected
		r.Says = fmt.Sprintf("%s promises nothing. %s: a textbook's intervals may in %.3g%% of them.", r.Mechanism, got, 100*(1-r.Confidence))
	case unprotected:
		r.Verdict = Undecided
		r.Says = fmt.Sprintf("%s promises nothing. %s, which a textbook's intervals may, too: so few questions about so many units are no danger yet.", r.Mechanism, got)
	case brokenIntervals:
		r.Verdict = Broken
		r.Says = fmt.Sprintf("The promise is broken. %s, more than the %.3g%% that are allowed.", got, 100*(1-r.Confidence))
	case brokenNoise:
		r.Verdict = Broken
		r.Says = "The noise is less than it should be: a test tells a row of the holdout better than the noise allows."
	default:
		r.Verdict = Held
		r.Says = fmt.Sprintf("No attacker broke what is promised. %s, and %.3g%% are allowed. Its largest error was %.2g of the half-width, in the middle run.", got, 100*(1-r.Confidence), first.Reach)
	}
}

// rate is the interval of Clopper and Pearson of a probability, both ends at once with probability of error alpha.
func rate(events, runs int, alpha float64) (low, high float64) {
	level := math.Log(2 / alpha)
	return binomial.Low(float64(runs), float64(events), level), binomial.High(float64(runs), float64(events), level)
}

// each calls work for each index from 0 below count, on all cores, until all is done or ctx is.
func (r Request) each(ctx context.Context, part string, count int, work func(i int) error) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	finished := make(chan struct{}, runtime.GOMAXPROCS(0))
	told := make(chan struct{})
	go func() {
		defer close(told)
		done := 0
		for range finished {
			if done++; r.Progress != nil {
				r.Progress(part, done, count)
			}
		}
	}()
	for i := range count {
		group.Go(func() error {
			if err := inner.Err(); err != nil {
				return err
			}
			err := work(i)
			finished <- struct{}{}
			return err
		})
	}
	err := group.Wait()
	close(finished)
	<-told
	if err == nil {
		err = ctx.Err()
	}
	return err
}
