package fairness

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// naive reports whether answers are exact, and the last interval is the textbook's.
func (c *cell) naive() bool { return c.guarantee.Mechanism == thresholdout.Naive }

// theory is the gap that is shown of the last rule: it is right about Phi(k/sqrt(sum of m + (2 n s)^2)) of the m undecided rows, s being an answer's noise. Noise of no mechanism that
// guesses is known: ok is false.
func (c *cell) theory() (gap float64, ok bool) {
	n := float64(c.guarantee.N)
	rows := n * (1 - groupShare) * undecided
	variance := float64(c.k) * rows
	switch c.guarantee.Mechanism {
	case thresholdout.Naive:
	case thresholdout.Gaussian:
		noise := analysts.ScheduledNoise(c.guarantee)
		for j := range c.k {
			s := 2 * n * noise(int64(j))
			variance += s * s
		}
	default:
		return 0, false
	}
	return lawGap - undecided*(distuv.UnitNormal.CDF(float64(c.k)/math.Sqrt(variance))-0.5), true
}

func (c *cell) row(set string, rate bool, of func(o outcome) float64) run.Row {
	r := run.Row{Condition: attackerName, Method: string(c.guarantee.Mechanism), N: c.guarantee.N, K: int64(c.k), Set: set, Rate: rate}
	if set == anyMisses {
		r.Confidence = c.guarantee.Confidence
	}
	return run.Measured(r, c.runs, of)
}

func (c *cell) shown() run.Row {
	return c.row(gapShown, false, func(o outcome) float64 { return o.Shown })
}

func (c *cell) fresh() run.Row {
	return c.row(gapFresh, false, func(o outcome) float64 { return o.Fresh })
}

func (c *cell) saidClosed() run.Row {
	return c.row(shownClosed, true, func(o outcome) float64 { return run.Indicator(o.Shown <= closed) })
}

func (c *cell) missed() run.Row {
	return c.row(lastMisses, true, func(o outcome) float64 { return run.Indicator(lawGap < o.Low || lawGap > o.High) })
}

func (c *cell) anyMissed() run.Row {
	return c.row(anyMisses, true, func(o outcome) float64 { return run.Indicator(o.Missed) })
}

func (c *cell) low() run.Row { return c.row(lowerEnd, false, func(o outcome) float64 { return o.Low }) }
func (c *cell) high() run.Row {
	return c.row(upperEnd, false, func(o outcome) float64 { return o.High })
}

func (c *cell) rows() []run.Row {
	if len(c.runs) == 0 {
		return nil
	}
	rows := []run.Row{c.shown(), c.low(), c.high(), c.saidClosed(), c.fresh(),
		c.row(freshClosed, true, func(o outcome) float64 { return run.Indicator(o.Fresh <= closed) }), c.missed()}
	if !c.naive() {
		rows = append(rows, c.anyMissed())
	}
	if c.guarantee.NeedsTokens() {
		rows = append(rows, c.row(tokensSpent, false, func(o outcome) float64 { return float64(o.Tokens) }))
	}
	return rows
}

//go:embed reference.json
var referenceText []byte

// reference is what an independent program is shown at last by exact answers: see reference.py.
type reference struct {
	Cells []struct {
		N           int64      `json:"n"`
		K           int        `json:"k"`
		Repetitions int        `json:"repetitions"`
		Shown       run.Stored `json:"shown"`
	} `json:"cells"`
}

const (
	// theorySlack is for the normal law in place of sums of coins, and for the number of undecided rows in place of its mean.
	theorySlack = 0.0005
	// missedAtLeast is how often the textbook's interval has to miss where a gap of 8 points is shown as closed.
	missedAtLeast = 0.9
)

func checksOf(cells []*cell) ([]run.Check, error) {
	var known reference
	if err := json.Unmarshal(referenceText, &known); err != nil {
		return nil, fmt.Errorf("experiments: reference: %w", err)
	}
	var checks run.Checks
	most := 0
	for _, c := range cells {
		most = max(most, c.k)
	}
	for _, c := range cells {
		of := fmt.Sprintf("%s, %d adjustments, %d rows: ", c.guarantee.Mechanism, c.k, c.guarantee.N)
		checks.Equal(of+gapFresh, lawGap, 0, c.fresh())
		if expected, ok := c.theory(); ok {
			checks.Equal(of+gapShown+", by theory", expected, theorySlack, c.shown())
		}
		if !c.naive() {
			checks.AtMost(of+anyMisses, 1-c.guarantee.Confidence, c.anyMissed())
			continue
		}
		for _, r := range known.Cells {
			if r.N != c.guarantee.N || r.K != c.k {
				continue
			}
			values := make([]float64, len(c.runs))
			for i, o := range c.runs {
				values[i] = o.Shown
			}
			r.Shown.Repetitions = r.Repetitions
			checks.Stored(of+"gap shown", []run.Pair{{At: "exact answers", Values: values, Stored: r.Shown}})
		}
		if c.k == most && len(c.runs) >= enoughRuns {
			checks.AtLeast(of+shownClosed, missedAtLeast, c.saidClosed())
			checks.AtLeast(of+lastMisses, missedAtLeast, c.missed())
		}
	}
	return checks.Decide(), nil
}

// enoughRuns are the fewest that show that something happens nearly always.
const enoughRuns = 20

func tableOf(cells []*cell) [][]string {
	table := [][]string{{"MECHANISM", "ROWS", "TRIES", "GAP SHOWN", "INTERVAL", "THEORY", "FRESH ROWS", "SHOWN AS CLOSED", "LAST INTERVAL MISSES", "ANY MISSES", "REPETITIONS"}}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		theory, missed := "", ""
		if expected, ok := c.theory(); ok {
			theory = fmt.Sprintf("%.4f", expected)
		}
		if !c.naive() {
			missed = fmt.Sprintf("%.3f", c.anyMissed().Mean)
		}
		table = append(table, []string{string(c.guarantee.Mechanism), fmt.Sprint(c.guarantee.N), fmt.Sprint(c.k), fmt.Sprintf("%.4f", c.shown().Mean),
			fmt.Sprintf("%.3f to %.3f", c.low().Mean, c.high().Mean), theory, fmt.Sprintf("%.4f", c.fresh().Mean), fmt.Sprintf("%.3f", c.saidClosed().Mean),
			fmt.Sprintf("%.3f", c.missed().Mean), missed, fmt.Sprint(len(c.runs))})
	}
	return table
}

// methodsOf are the mechanisms of the cells, in their order.
func methodsOf(cells []*cell) (names []thresholdout.Name) {
	for _, c := range cells {
		if len(names) == 0 || names[len(names)-1] != c.guarantee.Mechanism {
			names = append(names, c.guarantee.Mechanism)
		}
	}
	return names
}
