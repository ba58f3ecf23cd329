package leaderboard

import (
	_ "embed"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// theory is the final loss by theory with so many submissions kept. Noise of deviation s makes a score tell less about the labels,
// by the correlation 1/sqrt(1 + 4 N s^2) of a noisy score with the score, and so each kept submission agrees less.
func (c *cell) theory(kept float64) float64 {
	told := 1.0
	switch c.method {
	case boardChecked: // what is shown is the training part's
		told = 0
	case boardGaussian:
		told = 0
		noise := analysts.ScheduledNoise(c.guarantee)
		for j := range c.guarantee.Questions - 1 {
			s := noise(j)
			told += 1 / math.Sqrt(1+4*float64(c.n)*s*s) / float64(c.guarantee.Questions-1)
		}
	}
	return distuv.UnitNormal.Survival(told * math.Sqrt(2*kept/(math.Pi*float64(c.n))))
}

// hasIntervals reports whether the board is a mechanism that promises.
func (c *cell) hasIntervals() bool {
	return c.method == boardGaussian || c.method == boardChecked || c.method == boardForced
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
	if c.hasIntervals() {
		rows = append(rows, c.missed(), c.finds())
	}
	return rows
}

//go:embed reference.json
var referenceText []byte

// theoryError is for the normal law in place of sums of coins, and for |I| in place of its mean.
const theoryError = 0.001

func comparisons(cells []*cell) ([]checks.Comparison, error) {
	reference, err := run.ParseReference(referenceText)
	if err != nil {
		return nil, err
	}
	var all []checks.Comparison
	for _, c := range cells {
		of := fmt.Sprintf("%s, k = %d: ", c.method, c.k)
		final := c.final().Sample()
		for _, r := range []run.Row{c.final(), c.kept()} {
			if r.Method == boardRounded {
				r.Method = boardExact // scores of 4,000 labels are not changed by it
			}
			all = append(all, reference.Compare(of+r.Set, r)...)
		}
		if c.method == boardLadder {
			continue
		}
		all = append(all, checks.Equal(of+"final loss against theory", c.theory(c.kept().Mean), theoryError, final))
		if !c.hasIntervals() {
			all = append(all, checks.SpreadIs(of+"spread of the final loss against theory", theorySpread(float64(c.k), float64(c.n)), final),
				checks.Equal(of+"submissions kept", float64(c.k)*atMostHalf(c.n), 0, c.kept().Sample()))
			continue
		}
		all = append(all, checks.RateAtMost(of+boardMiss, 1-c.guarantee.Confidence, c.missed().Count()), checks.RateAtMost(of+boardFinds, 1-c.guarantee.Confidence, c.finds().Count()))
	}
	return all, nil
}

// theorySpread is the standard deviation of the final loss with exact scores, by the delta method at phi = the normal density of theory's argument. The vote's
// mean over the N labels is known from the scores that were shown: around it a share of signs varies by (1/4 - phi^2)/N. The scores themselves, half-normal,
// add phi^2 (1 - 2/pi)/N, and the number of submissions that are kept, binomial, adds phi^2/(4 pi) 2/N.
func theorySpread(k, n float64) float64 {
	loss := distuv.UnitNormal.Survival(math.Sqrt(k / (math.Pi * n)))
	phi := distuv.UnitNormal.Prob(math.Sqrt(k / (math.Pi * n)))
	return math.Sqrt((loss*(1-loss) - phi*phi + phi*phi*(1-2/math.Pi) + phi*phi/(2*math.Pi)) / n)
}

// atMostHalf is the probability that at most half of n fair coins fall on one side.
func atMostHalf(n int) float64 {
	if n%2 != 0 {
		return 0.5
	}
	half := float64(n) / 2
	middle, _ := math.Lgamma(float64(n) + 1)
	side, _ := math.Lgamma(half + 1)
	return 0.5 + 0.5*math.Exp(middle-2*side-float64(n)*math.Ln2)
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
		if c.hasIntervals() {
			width = fmt.Sprintf("%.4f", run.Measured(c.row(""), c.runs, func(r outcome) float64 { return (r.High - r.Low) / 2 }).Mean)
		}
		table = append(table, []string{c.method, fmt.Sprint(c.n), fmt.Sprint(c.k), fmt.Sprintf("%.1f", kept.Mean), fmt.Sprintf("%.4f", final.Mean),
			fmt.Sprintf("%.4f to %.4f", final.Low, final.High), theory, fmt.Sprintf("%.4f", c.shown().Mean), width, fmt.Sprint(final.Repetitions)})
	}
	return table
}
