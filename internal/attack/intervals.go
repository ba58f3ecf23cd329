package attack

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Intervals is what one analyst did to the intervals.
type Intervals struct {
	Attack string `json:"attack"`
	// Missed counts the games in which any interval missed its target.
	Missed Rate `json:"missed"`
	// Promised is the largest probability of that; nil where no intervals are promised.
	Promised *float64 `json:"promised"`
	Broken   bool     `json:"broken"`
	// Noticed is the least number of such games that would have refuted the promise; 0 where no number would have: too few games.
	Noticed int `json:"noticed,omitempty"`
	// Reach are quantiles over games (0, 1/4, 1/2, 3/4, 1) of a game's largest error as a part of its interval's half-width; an interval misses beyond 1.
	Reach [5]float64 `json:"reach"`
	// Error is the largest error of an answer, the mean over games.
	Error float64 `json:"error"`
}

// promisesIntervals reports whether answers have intervals.
func promisesIntervals(g thresholdout.Guarantee) bool {
	kind, _ := thresholdout.KindOf(g.Mechanism)
	return !kind.Unprotected
}

// attacksOn are the analysts that are known to get furthest, for this guarantee.
func attacksOn(g thresholdout.Guarantee, noise answers) (all []analysts.Analyst) {
	discounted := analysts.Discounted(g, noise.sigma)
	if g.Rounds > 0 {
		return []analysts.Analyst{
			{Name: "a vote in each round", Play: analysts.InRounds(discounted)},
			{Name: "a vote in each round, log-odds", Play: analysts.InRounds(analysts.LogOdds)},
		}
	}
	if g.UsesTraining() {
		all = append(all, analysts.Analyst{Name: "knows training", Play: analysts.KnowsTraining(analysts.LogOdds)})
		if noise.any {
			all = append(all, analysts.Analyst{Name: "knows training, discounted", Play: analysts.KnowsTraining(discounted)})
		}
	}
	if noise.any && !noise.forced {
		all = append(all, analysts.Analyst{Name: "single-adaptive, discounted", Play: analysts.SingleAdaptive(discounted)})
	}
	for _, a := range analysts.All {
		switch a.Name {
		case "single-adaptive", "quadratic", "boosting", "greedy selection", "random walk":
			all = append(all, a)
		}
	}
	return all
}

// playIntervals lets each analyst play in turn, so that all play as often but for one game.
func (set Settings) playIntervals(ctx context.Context, all []analysts.Analyst, level float64, until time.Time) ([]Intervals, error) {
	games := make([][]analysts.Game, len(all))
	most := MaxGames * len(all)
	if set.Games > 0 {
		most, until = set.Games*len(all), farFuture
	}
	type played struct {
		by   int
		game analysts.Game
	}
	g := set.plays
	err := repeat(ctx, len(all), most, until, func(i int) (played, error) {
		by, seed := i%len(all), run.SeedOf(set.Seed, 1, uint64(i))
		game, err := analysts.Play(all[by], analysts.NewHoldout(g, run.SeedOf(seed, 1)), run.SeedOf(seed, 2), g.N, g.Training)
		if err != nil {
			return played{}, fmt.Errorf("attack: %s: %w", all[by].Name, err)
		}
		return played{by, game}, nil
	}, func(p played) { games[p.by] = append(games[p.by], p.game) })
	if err != nil {
		return nil, err
	}
	found := make([]Intervals, len(all))
	for i, a := range all {
		found[i] = set.interval(a.Name, games[i], level)
	}
	slices.SortStableFunc(found, func(a, b Intervals) int {
		return cmp.Or(cmp.Compare(b.Missed.share(), a.Missed.share()), cmp.Compare(b.Reach[4], a.Reach[4]), cmp.Compare(b.Error, a.Error))
	})
	return found, nil
}

// farFuture is a time that never comes: where the number of games is named, it counts.
var farFuture = time.Unix(1<<40, 0)

// interval is what an analyst's games come to.
func (set Settings) interval(attack string, games []analysts.Game, level float64) Intervals {
	i := Intervals{Attack: attack}
	missed, reaches := 0, make([]float64, len(games))
	for j, game := range games {
		if game.Missed {
			missed++
		}
		reaches[j] = game.Reach
		i.Error += game.Worst / float64(len(games))
	}
	i.Missed = rateOf(missed, len(games), level)
	slices.Sort(reaches)
	if n := len(reaches); n > 0 {
		for q := range i.Reach {
			i.Reach[q] = reaches[int(math.Round(float64(q)/4*float64(n-1)))]
		}
	}
	if !promisesIntervals(set.Guarantee) {
		return i
	}
	promised := set.Guarantee.Beta()
	i.Promised = &promised
	i.Broken = i.Missed.Low > promised
	i.Noticed = leastRefuting(len(games), promised, level)
	return i
}

// leastRefuting is the least number of events in so many games that shows their probability to be above the promise; 0 where all of them are too few.
func leastRefuting(games int, promise, level float64) int {
	for events := 1; events <= games; events++ {
		if binomial.Low(float64(games), float64(events), level) > promise {
			return events
		}
	}
	return 0
}
