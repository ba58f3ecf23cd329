package attacks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Runs of one analyst. With none that misses, the fewest bound the probability by a seventh; the most do so by a fiftieth.
const (
	leastRuns = 20
	mostRuns  = 200
)

// eachAnswer is about how many nanoseconds an answer takes beside the sums: keyed noise, the step, and most of it the interval.
const eachAnswer = 20_000

// oracle is the mechanism; of one that promises nothing its answers have the intervals of questions that are fixed beforehand, as a textbook has them.
func oracle(g thresholdout.Guarantee, seed uint64) analysts.Oracle {
	switch {
	case g.TakesSubmissions():
		return &analysts.Board{Guarantee: g}
	case unprotected(g):
		return &analysts.NonAdaptive{Holdout: *analysts.NewHoldout(g, seed)}
	}
	return analysts.NewHoldout(g, seed)
}

// allot is how many runs of each analyst there are time for, by how many nanoseconds each takes; 0 for those who take too long. What cheap ones leave is
// for the others. The cheapest always plays.
func allot(costs []float64, work float64) []int {
	runs, order := make([]int, len(costs)), make([]int, len(costs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[a], costs[b]) })
	for place, i := range order {
		share := work / float64(len(order)-place)
		count := int(min(share/costs[i], mostRuns))
		if place == 0 {
			count = max(count, leastRuns)
		}
		if count >= leastRuns {
			runs[i] = count
			work -= float64(count) * costs[i]
		}
	}
	return runs
}

// intervals lets each analyst play on fresh holdouts.
func (r Request) intervals(ctx context.Context, work float64) ([]Interval, []string, error) {
	g, all := r.Guarantee, analysts.Against(r.Guarantee)
	training := int64(0)
	if g.UsesTraining() {
		training = g.Training
	}
	costs := make([]float64, len(all))
	for i, a := range all {
		costs[i] = float64(g.Questions) * (eachAnswer + a.Each*float64(g.N+training))
	}
	runs := allot(costs, work)
	type game struct{ analyst, run int }
	var games []game
	var notes, left []string
	for i, a := range all {
		if runs[i] == 0 {
			left = append(left, a.Name)
		}
		for run := range runs[i] {
			games = append(games, game{i, run})
		}
	}
	if len(left) > 0 {
		notes = append(notes, fmt.Sprintf("there was no time for: %s; give more minutes", strings.Join(left, "; ")))
	}
	played := make([]analysts.Game, len(games))
	err := r.each(ctx, "intervals", len(games), func(i int) error {
		seed := seeds.Of(r.Seed, 1, uint64(games[i].analyst), uint64(games[i].run))
		var err error
		played[i], err = analysts.Play(all[games[i].analyst], oracle(g, seeds.Of(seed, 1)), seeds.Of(seed, 2), g.N, training)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	level := math.Log(float64(len(all)+mostClaims) / FalseAlarm)
	var results []Interval
	for i, a := range all {
		if runs[i] == 0 {
			continue
		}
		var of []analysts.Game
		for j, p := range played {
			if games[j].analyst == i {
				of = append(of, p)
			}
		}
		results = append(results, tally(g, a.Name, of, level))
	}
	slices.SortStableFunc(results, func(a, b Interval) int {
		return cmp.Or(cmp.Compare(b.Low, a.Low), cmp.Compare(b.Reach, a.Reach), cmp.Compare(b.Error, a.Error))
	})
	return results, notes, nil
}

// tally is what an analyst's games come to.
func tally(g thresholdout.Guarantee, name string, games []analysts.Game, level float64) Interval {
	result := Interval{Analyst: name, Runs: len(games)}
	var worst, reach []float64
	for _, p := range games {
		if p.Missed {
			result.Missed++
		}
		if p.Worst >= result.WorstRun {
			result.WorstRun = p.Worst
		}
		result.Questions = max(result.Questions, p.Questions)
		worst, reach = append(worst, p.Worst), append(reach, p.Reach)
	}
	result.Low, result.High = rate(result.Missed, result.Runs, .05)
	result.Error, result.Reach = middle(worst), middle(reach)
	if result.Reach > 0 {
		result.HalfWidth = result.Error / result.Reach
	}
	allowed := 1 - g.Confidence
	result.Broken = binomial.Low(float64(result.Runs), float64(result.Missed), level) > allowed
	if !unprotected(g) {
		result.Allowed = &allowed
	}
	return result
}

// middle is the median: the upper one of an even number.
func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
