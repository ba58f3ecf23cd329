package leaderboard

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
)

// theory is the final loss by theory with so many submissions kept. Noise of deviation s makes a score tell less about the labels,
// by the correlation 1/sqrt(1 + 4 N s^2) of a noisy score with the score, and so each kept submission agrees less.
// The default tells of the training part, whatever the attack learns.
func (c *cell) theory(kept float64) float64 {
	if c.method == boardDefault {
		return 0.5
	}
	return c.climbed(kept)
}

// climbed is the same on the labels that the scores are of.
func (c *cell) climbed(kept float64) float64 {
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

func (c *cell) trained() run.Row {
	return run.Measured(c.row(boardTrain), c.runs, func(r outcome) float64 { return r.Trained })
}

// ends are the mean ends of the last interval.
func (c *cell) ends() (low, high float64) {
	for _, r := range c.runs {
		low, high = low+r.Low/float64(len(c.runs)), high+r.High/float64(len(c.runs))
	}
	return low, high
}

// promises reports whether the board shows intervals.
func (c *cell) promises() bool { return c.method == boardGaussian || c.method == boardDefault }

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
	if c.promises() {
		rows = append(rows, c.missed(), c.finds())
	}
	if c.method == boardDefault {
		rows = append(rows, c.trained(), run.Measured(c.row(boardSpent), c.runs, func(r outcome) float64 { return float64(r.Tokens) }))
	}
	return rows
}

//go:embed reference.json
var referenceText []byte

// reference is what the attack ends with, as an independent program found it: see reference.py.
type reference struct {
	Cells []struct {
		Method      string     `json:"method"`
		N           int        `json:"n"`
		K           int        `json:"k"`
		Repetitions int        `json:"repetitions"`
		Final       run.Stored `json:"final"`
	} `json:"cells"`
}

const (
	// theoryTolerance is for the normal law in place of sums of coins, and for |I| in place of its mean.
	theoryTolerance = 0.001
	// ladderLoss is where no Ladder's final loss may be: its few moves gain a standard error each.
	ladderLoss = 0.475
)

func checksOf(cells []*cell) ([]run.Check, error) {
	var known reference
	if err := json.Unmarshal(referenceText, &known); err != nil {
		return nil, fmt.Errorf("experiments: reference: %w", err)
	}
	var checks run.Checks
	for _, c := range cells {
		of := fmt.Sprintf("%s, k = %d: ", c.method, c.k)
		final := c.final()
		like, lost, at := c.method, func(o outcome) float64 { return o.Final }, "final loss"
		switch c.method {
		case boardRounded:
			like = boardExact
		case boardDefault: // on whose training part the attack climbs as on exact scores
			like, lost, at = boardExact, func(o outcome) float64 { return o.Trained }, "final loss on the training part"
		}
		for _, r := range known.Cells {
			if r.Method == like && r.N == c.n && r.K == c.k {
				values := make([]float64, len(c.runs))
				for i, o := range c.runs {
					values[i] = lost(o)
				}
				r.Final.Repetitions = r.Repetitions
				checks.Stored(c.method, []run.Pair{{At: fmt.Sprintf("k = %d, %s", c.k, at), Values: values, Stored: r.Final}})
			}
		}
		if c.method == boardLadder {
			if c.n == 4000 {
				checks.AtLeast(of+"final loss", ladderLoss, final)
			}
			continue
		}
		checks.Equal(of+"final loss against theory", c.theory(c.kept().Mean), theoryTolerance, final)
		if c.method == boardDefault {
			checks.Equal(of+boardTrain+" against theory", c.climbed(c.kept().Mean), theoryTolerance, c.trained())
		}
		if c.promises() {
			checks.AtMost(of+boardMiss, 1-c.guarantee.Confidence, c.missed())
			checks.AtMost(of+boardFinds, 1-c.guarantee.Confidence, c.finds())
		}
	}
	return checks.Decide(), nil
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
		if c.promises() {
			low, high := c.ends()
			width = fmt.Sprintf("%.4f", (high-low)/2)
		}
		table = append(table, []string{c.method, fmt.Sprint(c.n), fmt.Sprint(c.k), fmt.Sprintf("%.1f", kept.Mean), fmt.Sprintf("%.4f", final.Mean),
			fmt.Sprintf("%.4f to %.4f", final.Low, final.High), theory, fmt.Sprintf("%.4f", c.shown().Mean), width, fmt.Sprint(final.Repetitions)})
	}
	return table
}
