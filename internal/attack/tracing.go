package attack

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
)

// Tracing is how well an analyst tells the holdout's units from strangers by the answers: a unit is said to be in the holdout if its score is above a limit that was fixed in a game that is not counted.
type Tracing struct {
	Games     int   `json:"games"`
	Questions int64 `json:"questions"` // of each game
	// Advantage is the share of the holdout's units that are found, less the share of strangers that are accused: the mean over games. Low is its lower end, by Student's t over games.
	Advantage float64 `json:"advantage"`
	Low       float64 `json:"low"`
	// Promised is the largest advantage that anybody can have of these answers, on average over units that are independent; nil where none is known but 1.
	Promised *float64 `json:"promised"`
	Broken   bool     `json:"broken"`
	// Found is the share of the holdout's units that are found at the limits at which Accused of the strangers are.
	Accused []float64 `json:"accused"`
	Found   []float64 `json:"found"`
}

// accused are the rates of false alarms at which curves are drawn.
var accused = []float64{0, .01, .02, .05, .1, .15, .2, .3, .4, .5, .6, .7, .8, .9, 1}

// tracedAtMost keeps the questions of a game within its time: one that is traced by the first ten thousand answers is traced.
const tracedAtMost = 10_000

// trace plays the game.
func (set Settings) trace(ctx context.Context, noise answers, level float64, until time.Time) (*Tracing, error) {
	g := set.plays
	asked := min(g.Questions, tracedAtMost)
	if noise.any {
		asked = min(noise.count, tracedAtMost)
	}
	weight := analysts.LogOdds
	if noise.any {
		weight = analysts.Discounted(g, noise.sigma)
	}
	play := func(seed uint64) (members, strangers []float64, err error) {
		members, strangers, err = analysts.Trace(analysts.NewHoldout(g, run.SeedOf(seed, 1)), run.SeedOf(seed, 2), g.N, g.Training, weight,
			func(j int64) bool { return j < asked })
		if err != nil {
			return nil, nil, fmt.Errorf("attack: tracing: %w", err)
		}
		return members, strangers, nil
	}
	members, _, err := play(run.SeedOf(set.Seed, 2))
	if err != nil {
		return nil, err
	}
	limit := stat.Mean(members, nil) / 2 // strangers have mean 0, and both have the same spread
	t := &Tracing{Questions: asked, Accused: accused, Found: make([]float64, len(accused))}
	var advantages []float64
	type scored struct {
		advantage float64
		found     []float64
	}
	most := MaxGames
	if set.Games > 0 {
		most, until = max(2, set.Games), farFuture
	}
	err = repeat(ctx, 2, most, until, func(i int) (scored, error) {
		members, strangers, err := play(run.SeedOf(set.Seed, 3, uint64(i)))
		if err != nil {
			return scored{}, err
		}
		s := scored{above(members, limit) - above(strangers, limit), make([]float64, len(accused))}
		slices.Sort(strangers)
		for j, share := range accused {
			s.found[j] = 1
			if k := int(share * float64(len(strangers))); k < len(strangers) {
				s.found[j] = above(members, strangers[len(strangers)-1-k])
			}
		}
		return s, nil
	}, func(s scored) {
		advantages = append(advantages, s.advantage)
		for j, f := range s.found {
			t.Found[j] += f
		}
	})
	if err != nil {
		return nil, err
	}
	t.Games = len(advantages)
	for j := range t.Found {
		t.Found[j] /= float64(t.Games)
	}
	mean, sd := stat.MeanStdDev(advantages, nil)
	freedom := float64(t.Games - 1)
	t.Advantage = mean
	t.Low = max(-1, mean-distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(-math.Expm1(-level))*sd/math.Sqrt(float64(t.Games)))
	if noise.any && !noise.forced { // what it tells that an answer was forced has no bound here
		promised := min(1, math.Sqrt(noise.information(asked)/(2*float64(g.N))))
		t.Promised = &promised
		t.Broken = t.Low > promised
	}
	return t, nil
}

// above is the share of the scores above a limit.
func above(scores []float64, limit float64) float64 {
	count := 0
	for _, s := range scores {
		if s > limit {
			count++
		}
	}
	return float64(count) / float64(len(scores))
}
