package attack

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// OneRow is what the noise hides of single rows from an analyst who knows all others: the membership game of Gaussian differential privacy (Dong, Roth and Su 2022), against a group of rows, so that few runs see much.
// Two holdouts differ in Group rows; the analyst asks for the mean of a question that is 1 on these and says of which holdout the answers are.
type OneRow struct {
	Group   int64 `json:"group"`   // rows
	Answers int64 `json:"answers"` // that are looked at, spread over the run
	// Of is how many runs there were with the rows, and as many without.
	Of      int  `json:"of"`
	Found   Rate `json:"found"`   // said to be in, of runs with the rows
	Accused Rate `json:"accused"` // said to be in, of runs without
	// Measure is "mu", of Gaussian differential privacy, or "advantage", found less accused, where the noise is Laplace's. The answers lose at least Low; Measured is the estimate.
	Measure  string  `json:"measure"`
	Measured float64 `json:"measured"`
	Low      float64 `json:"low"`
	Promised float64 `json:"promised"` // of these answers, for the group
	Broken   bool    `json:"broken"`
	// MuOfRow is what the noise of the whole run promises of a single row, by all its answers with noise; 0 where the noise is Laplace's.
	MuOfRow float64 `json:"mu_of_row,omitempty"`

	with, without []float64 // the statistics, for the figure: standard normal around Promised and 0 if the noise is as promised
}

const (
	// groupMu is how far apart the two holdouts are made, if there are rows enough: about where a change of the noise is seen best.
	groupMu = 1.5
	// answersAtMost is how many answers of a run are looked at.
	answersAtMost = 64
	// rowRuns is the most runs of either kind: an error of the noise of a tenth is seen with them.
	rowRuns = 5000
)

// playOneRow plays the game.
func (set Settings) playOneRow(ctx context.Context, noise answers, level float64, until time.Time) (*OneRow, error) {
	g := set.plays
	places := spread(noise, answersAtMost)
	precision := 0.0
	for _, j := range places {
		precision += noise.weight(j)
	}
	root := math.Sqrt(precision)
	group := int64(max(1, min(math.Round(groupMu*float64(g.N)/root), float64(g.N/4))))
	shift := float64(group) / float64(g.N)
	o := &OneRow{Group: group, Answers: int64(len(places)), Measure: "mu", Promised: shift * root}
	if noise.laplace {
		// Each answer's divergence is at most the square of its shift over its scale, halved; Pinsker's inequality.
		o.Measure, o.Promised = "advantage", min(1, shift*root/2)
	} else {
		whole := 0.0
		for j := range noise.count {
			whole += noise.weight(j)
		}
		o.MuOfRow = math.Sqrt(whole) / float64(g.N)
	}
	limit := shift * root / 2
	half := g.N / 2
	play := func(seed uint64, rows int64) (float64, error) {
		h := session.Simulated{Guarantee: g, Seed: seed}
		holdout := thresholdout.Mean{Sum: (half + rows) * rowfn.One, N: g.N}
		middle := float64(half) / float64(g.N)
		statistic := 0.0
		for _, j := range places {
			if !noise.forced {
				h.State = stateAt(g, j)
			}
			out, err := h.Mean(thresholdout.Input{Holdout: holdout, Training: thresholdout.Mean{N: g.Training}})
			if err != nil {
				return 0, fmt.Errorf("attack: one row: %w", err)
			}
			ratio := out.Value - middle - shift/2 // the logarithm of a likelihood ratio, but for a factor
			if noise.laplace {
				ratio = max(-shift/2, min(ratio, shift/2))
			}
			statistic += (ratio + shift/2) * noise.weight(j)
		}
		return statistic / root, nil
	}
	most := rowRuns
	if set.Games > 0 {
		most, until = min(rowRuns, 20*set.Games), farFuture
	}
	err := repeat(ctx, 10, most, until, func(i int) ([2]float64, error) {
		seed := run.SeedOf(set.Seed, 4, uint64(i))
		with, err := play(run.SeedOf(seed, 1), group)
		if err != nil {
			return [2]float64{}, err
		}
		without, err := play(run.SeedOf(seed, 2), 0)
		return [2]float64{with, without}, err
	}, func(r [2]float64) { o.with, o.without = append(o.with, r[0]), append(o.without, r[1]) })
	if err != nil {
		return nil, err
	}
	o.Of = len(o.with)
	count := func(statistics []float64) (c int) {
		for _, s := range statistics {
			if s > limit {
				c++
			}
		}
		return c
	}
	o.Found, o.Accused = rateOf(count(o.with), o.Of, level+math.Ln2), rateOf(count(o.without), o.Of, level+math.Ln2)
	if noise.laplace {
		o.Measured, o.Low = o.Found.share()-o.Accused.share(), o.Found.Low-o.Accused.High
	} else {
		o.Measured = apart(o.Found.share(), o.Accused.share(), o.Of)
		o.Low = distuv.UnitNormal.Quantile(o.Found.Low) - distuv.UnitNormal.Quantile(o.Accused.High)
	}
	o.Low = max(0, o.Low)
	o.Broken = o.Low > o.Promised
	return o, nil
}

// apart is mu by two rates; one of 0 or 1 counts as half a run from it.
func apart(found, accused float64, runs int) float64 {
	least := 0.5 / float64(runs)
	within := func(p float64) float64 { return distuv.UnitNormal.Quantile(max(least, min(p, 1-least))) }
	return within(found) - within(accused)
}

// spread are so many of the answers with noise, evenly; of answers that follow each other the first.
func spread(noise answers, most int64) (places []int64) {
	count := min(noise.count, most)
	for i := range count {
		if noise.forced {
			places = append(places, i)
		} else {
			places = append(places, i*noise.count/count)
		}
	}
	return slices.Compact(places)
}
