package leaderboard

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
)

// theory is the final loss by theory with so many submissions kept. Noise of deviation s makes a score tell less about the labels,
// by the correlation 1/sqrt(1 + 4 N s^2) of a noisy score with the score, and so each kept submission agrees less.
func (c *cell) theory(kept float64) float64 {
	told := 1.0
	if c.method == boardGaussian {
		told = 0
		noise := analysts.ScheduledNoise(c.guarantee)
		for j := range c.guarantee.Questions - 1 {
			s := noise(j)
			told += 1 / math.Sqrt(1+4*float64(c.n)*s*s) / float64(c.guarantee.Questions-1)
		}
	}
	return distuv.UnitNormal.Survival(told * math.Sqrt(2*kept/(math.Pi*float64(c.n))))
}

func (c *cell) row(set string) run.Row {
	return run.Row{Condition: attackName, Method: c.method, N: int64(c.n), K: int64(c.k), Set: set}
}

// final is the row of the final loss.
func (c *cell) final() run.Row {
	return run.Measured(c.row(boardFinal), c.runs, func(r outcome) float64 { return r.Final })
}

func (c *cell) kept() run.Row {
	return run.Measured(c.row(boardKept), c.runs, func(r outcome) float64 { return float64(r.Kept) })
}

func (c *cell) shown() run.Row {
	return run.Measured(c.row(boardShown), c.runs, func(r outcome) float64 { return r.Shown })
}

// missed and finds are rates of runs; both are of intervals.
func (c *cell) missed() run.Row {
	r := c.row(boardMiss)
	r.Rate, r.Confidence = true, c.guarantee.Confidence
	return run.Measured(r, c.runs, func(r outcome) float64 { return run.Indicator(r.Missed) })
}

func (c *cell) finds() run.Row {
	r := c.row(boardFinds)
	r.Rate, r.Confidence = true, c.guarantee.Confidence
	return run.Measured(r, c.runs, func(r outcome) float64 { return run.Indicator(r.Low > 0.5 || r.High < 0.5) })
}

func (c *cell) rows() []run.Row {
	if len(c.runs) == 0 {
		return nil
	}
	rows := []run.Row{c.final(), c.shown(), run.Measured(c.row(boardBest), c.runs, func(r outcome) float64 { return r.Best }), c.kept()}
	if c.method == boardGaussian {
		rows = append(rows, c.missed(), c.finds())
	}
	return rows
}

// references are final losses of a separate program with the steps of the published attack, from 100 repetitions.
var references = []struct {
	method string
	n, k   int
	loss   float64
}{
	{boardExact, 4000, 100, 0.4636}, {boardExact, 4000, 400, 0.42916},
	{boardRounded, 4000, 100, 0.4636}, {boardRounded, 4000, 400, 0.42916},
	{boardLadder, 4000, 100, 0.48829}, {boardLadder, 4000, 400, 0.48553},
}

const (
	referenceTolerance = 0.003 // of the reference
	// theoryTolerance is for the normal law in place of sums of coins, and for |I| in place of its mean.
	theoryTolerance = 0.001
	// ladderLoss is where no Ladder's final loss may be: its few moves gain a standard error each.
	ladderLoss = 0.475
)

func checksOf(cells []*cell) []run.Check {
	var checks run.Checks
	for _, c := range cells {
		of := fmt.Sprintf("%s, k = %d: ", c.method, c.k)
		final := c.final()
		for _, r := range references {
			if r.method == c.method && r.n == c.n && r.k == c.k {
				checks.Equal(of+"final loss against the reference", r.loss, referenceTolerance, final)
			}
		}
		if c.method == boardLadder {
			if c.n == 4000 {
				checks.AtLeast(of+"final loss", ladderLoss, final)
			}
			continue
		}
		checks.Equal(of+"final loss against theory", c.theory(c.kept().Mean), theoryTolerance, final)
		if c.method == boardGaussian {
			checks.AtMost(of+boardMiss, 1-c.guarantee.Confidence, c.missed())
			checks.AtMost(of+boardFinds, 1-c.guarantee.Confidence, c.finds())
		}
	}
	return checks.Decide()
}

func tableOf(cells []*cell) [][]string {
	table := [][]string{{"BOARD", "LABELS", "K", "KEPT", "FINAL LOSS", "95% INTERVAL", "THEORY", "SHOWN", "HALF-WIDTH", "REPETITIONS"}}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		final, kept, theory, width := c.final(), c.kept(), "", ""
		if c.method != boardLadder {
			theory = fmt.Sprintf("%.4f", c.theory(kept.Mean))
		}
		if c.method == boardGaussian {
			width = fmt.Sprintf("%.4f", c.guarantee.HalfWidth)
		}
		table = append(table, []string{c.method, fmt.Sprint(c.n), fmt.Sprint(c.k), fmt.Sprintf("%.1f", kept.Mean), fmt.Sprintf("%.4f", final.Mean),
			fmt.Sprintf("%.4f to %.4f", final.Low, final.High), theory, fmt.Sprintf("%.4f", c.shown().Mean), width, fmt.Sprint(final.Repetitions)})
	}
	return table
}
