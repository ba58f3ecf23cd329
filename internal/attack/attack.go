// Package attack attacks the settings of a holdout on simulated data of the same size, and holds what it measures against what they promise. It sees no row of a holdout: the rows are
// drawn by a generator, so that what is true of them is known. The mechanisms are the server's own.
//
// Three games are played. In the first, analysts who follow the answers look for intervals that miss their targets. In the second, an analyst scores units by how well they fit the
// answers, and tells the holdout's from strangers (tracing). In the third, an analyst who knows every other row tells from the answers whether a few rows are in the holdout (a membership audit). It can refute
// a promise, and never prove one: an attack that nobody knows is not among them, and questions are yes/no means.
package attack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// ErrSettings is wrapped by errors of settings.
var ErrSettings = errors.New("attack: bad settings")

// Defaults and limits of Settings.
const (
	DefaultTime = time.Minute

	// DefaultConfidence: one sound holdout of a thousand is refuted by chance.
	DefaultConfidence = 0.999

	// MaxGames of one attack: with more an error of a percent would be noticed, and a minute does not hold them.
	MaxGames = 100_000

	// MaxWork is the largest units times questions of a game: about an hour of one processor.
	MaxWork = 1 << 43
)

// Settings are what is attacked, and how hard.
type Settings struct {
	Guarantee  thresholdout.Guarantee
	Confidence float64       // that nothing sound is refuted, in (0,1); 0 is DefaultConfidence
	Time       time.Duration // for all games together; a game that has begun is finished. 0 is DefaultTime
	Games      int           // of each attack; 0: as many as fit the time. The same seed and number give the same report
	Seed       uint64

	// plays is what answers in the games; the zero Guarantee stands for Guarantee. Tests attack a faulty one with it.
	plays thresholdout.Guarantee
}

// Report is what was measured, beside what is promised.
type Report struct {
	Guarantee  thresholdout.Guarantee `json:"guarantee"`
	Confidence float64                `json:"confidence"` // of the report: that nothing sound is refuted
	Seed       uint64                 `json:"seed"`
	Intervals  []Intervals            `json:"intervals"` // by attack, the strongest first
	Tracing    *Tracing               `json:"tracing,omitempty"`
	OneRow     *OneRow                `json:"one_row,omitempty"`
	Refuted    bool                   `json:"refuted"` // some promise is broken, but for the probability 1-Confidence
	// Powerless says that no game could have refuted anything: too few were played.
	Powerless bool `json:"powerless,omitempty"`
}

// Rate is how often something happened, and what its probability is at least and at most (Clopper and Pearson), each end with the error that the report has for it.
type Rate struct {
	Events int     `json:"events"`
	Of     int     `json:"of"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// rateOf is the rate of so many events, with ends at level ln(1/alpha).
func rateOf(events, of int, level float64) Rate {
	if of == 0 {
		return Rate{High: 1}
	}
	n, x := float64(of), float64(events)
	return Rate{events, of, binomial.Low(n, x, level), binomial.High(n, x, level)}
}

// share is the estimate of the probability.
func (r Rate) share() float64 {
	if r.Of == 0 {
		return 0
	}
	return float64(r.Events) / float64(r.Of)
}

// withDefaults fills in and refuses.
func (set Settings) withDefaults() (Settings, error) {
	if set.Confidence == 0 {
		set.Confidence = DefaultConfidence
	}
	if set.Time == 0 {
		set.Time = DefaultTime
	}
	if set.plays.Own() == nil {
		set.plays = set.Guarantee
	}
	g := set.Guarantee
	switch {
	case g.Own() == nil:
		return set, fmt.Errorf("%w: no guarantee", ErrSettings)
	case !(set.Confidence > 0 && set.Confidence < 1):
		return set, fmt.Errorf("%w: a confidence of %v, want one between 0 and 1", ErrSettings, set.Confidence)
	case set.Games < 0 || set.Games > MaxGames:
		return set, fmt.Errorf("%w: %d games, want 1 to %d", ErrSettings, set.Games, MaxGames)
	case set.Time < 0:
		return set, fmt.Errorf("%w: a time of %v", ErrSettings, set.Time)
	case float64(g.N)*float64(g.Questions) > MaxWork:
		return set, fmt.Errorf("%w: %d questions about %d units are more than a game can simulate; name fewer questions: what they promise is no weaker", ErrSettings, g.Questions, g.N)
	}
	return set, nil
}

// Shares of the time. What is left of one goes to the next.
const (
	intervalsShare = 0.6
	tracingShare   = 0.15
)

// Run plays all games. It ends early with the context's error.
func Run(ctx context.Context, set Settings) (Report, error) {
	set, err := set.withDefaults()
	if err != nil {
		return Report{}, err
	}
	g := set.Guarantee
	report := Report{Guarantee: g, Confidence: set.Confidence, Seed: set.Seed}
	noise := noiseOf(g)
	all := attacksOn(g, noise)
	findings := 0.0 // the probability of error is divided among them
	if promisesIntervals(g) {
		findings += float64(len(all))
	}
	if noise.any {
		findings += 2
	}
	level := math.Log(max(1, findings) / (1 - set.Confidence))
	begun := time.Now()
	until := func(share float64) time.Time {
		return begun.Add(time.Duration(share * float64(set.Time)))
	}
	if report.Intervals, err = set.playIntervals(ctx, all, level, until(intervalsShare)); err != nil {
		return report, err
	}
	if report.Tracing, err = set.trace(ctx, noise, level, until(intervalsShare+tracingShare)); err != nil {
		return report, err
	}
	if noise.any {
		if report.OneRow, err = set.playOneRow(ctx, noise, level, until(1)); err != nil {
			return report, err
		}
	}
	report.judge()
	return report, nil
}

// judge says whether anything is refuted, or could have been.
func (r *Report) judge() {
	able, promised := false, false
	for _, i := range r.Intervals {
		r.Refuted = r.Refuted || i.Broken
		promised = promised || i.Promised != nil
		able = able || i.Noticed > 0
	}
	if t := r.Tracing; t != nil && t.Promised != nil {
		r.Refuted, promised, able = r.Refuted || t.Broken, true, able || t.Games > 1
	}
	if o := r.OneRow; o != nil {
		r.Refuted, promised, able = r.Refuted || o.Broken, true, able || o.Of > 0
	}
	r.Powerless = promised && !able
}

// repeat plays games 0, 1, … on all processors until the time is over or so many are played, at least `least` of them. What a game finds is given to found in the order of the games, so that a report does not depend on which
// game ended first; where the time is over, games after the first that was not begun are not counted.
func repeat[T any](ctx context.Context, least, most int, until time.Time, play func(i int) (T, error), found func(T)) error {
	var mu sync.Mutex
	next, failed := 0, error(nil)
	results := map[int]T{}
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				mu.Lock()
				i := next
				stop := failed != nil || i >= most || i >= least && !time.Now().Before(until)
				if err := ctx.Err(); err != nil && !stop {
					failed, stop = err, true
				}
				if !stop {
					next++
				}
				mu.Unlock()
				if stop {
					return
				}
				result, err := play(i)
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				results[i] = result
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if failed != nil {
		return failed
	}
	for i := range next {
		found(results[i])
	}
	return nil
}
