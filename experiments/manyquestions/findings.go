package manyquestions

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// theory is by how much the last question's share of the holdout is off, on average: cells whose excess correlates by r with what the answers say of it are picked by its sign. Noise of no
// mechanism that guesses is known, and private weights are asked otherwise: ok is false.
func (c *cell) theory() (off float64, ok bool) {
	asked, noise := float64(c.k-1), 0.0
	switch thresholdout.Name(c.method) {
	case thresholdout.Cells:
	case thresholdout.Gaussian:
		deviation := analysts.ScheduledNoise(c.guarantee)
		for j := range c.k - 1 {
			s := deviation(j)
			noise += s * s
		}
	default:
		return 0, false
	}
	all := 0.0
	for _, p := range law {
		all += p * (1 - p) / float64(c.n)
	}
	for _, p := range law {
		// The sum of an answer's deviation, with the sign of whether the cell is asked about: half of the cell's excess for each question, beside those of the others and noise.
		v := p * (1 - p) / float64(c.n)
		signal := asked * asked * v / 4
		off += math.Sqrt(signal/(signal+asked*(all-v)/4+noise)) * math.Sqrt(v/(2*math.Pi))
	}
	return off, true
}

// row is one measured number.
func (c *cell) row(set string, rate bool, of func(o outcome) float64) run.Row {
	return run.Measured(run.Row{Condition: attackerName, Method: c.method, N: c.n, K: c.k, Confidence: confidence, Set: set, Rate: rate}, c.runs, of)
}

func (c *cell) last() run.Row {
	return c.row(lastError, false, func(o outcome) float64 { return o.Last })
}

func (c *cell) largest() run.Row {
	return c.row(largestError, false, func(o outcome) float64 { return o.Largest })
}

func (c *cell) missed() run.Row {
	return c.row(anyMisses, true, func(o outcome) float64 { return run.Indicator(o.Missed) })
}

// spent is how often weights were mended, or how many tokens a mechanism took.
func (c *cell) spent() run.Row {
	if c.method == byWeights {
		return c.row(mended, false, func(o outcome) float64 { return float64(o.Mended) })
	}
	return c.row(tokensSpent, false, func(o outcome) float64 { return float64(o.Tokens) })
}

func (c *cell) again() run.Row {
	return c.row(mendedAgain, true, func(o outcome) float64 { return run.Indicator(o.Mended > 1) })
}

// spends reports whether there is anything to spend.
func (c *cell) spends() bool { return c.method == byWeights || c.guarantee.NeedsTokens() }

func (c *cell) rows() []run.Row {
	if len(c.runs) == 0 {
		return nil
	}
	rows := []run.Row{c.last(), c.largest(), c.missed()}
	if c.spends() {
		rows = append(rows, c.spent())
	}
	if c.method == byWeights {
		rows = append(rows, c.again())
	}
	return rows
}

//go:embed reference.json
var referenceText []byte

// reference is what an independent program computes and finds: see reference.py.
type reference struct {
	N      int64 `json:"n"`
	Widths []struct {
		Method string  `json:"method"`
		K      int64   `json:"k"`
		Width  float64 `json:"width"`
	} `json:"widths"`
	Cells []struct {
		Method      string                `json:"method"`
		K           int64                 `json:"k"`
		Repetitions int                   `json:"repetitions"`
		Numbers     map[string]run.Stored `json:"numbers"` // by what is measured
		Again       float64               `json:"again"`   // share of runs in which the guess is mended more than once
	} `json:"cells"`
}

const (
	// widthTolerance is for epsilons, which are rounded to fractions of two words, and for thresholds in whole steps.
	widthTolerance = 1e-6
	// theorySlack, as a part, is for cells of few rows, whose excess is no normal variable, and for excesses that add up to nothing.
	theorySlack = 0.02
	// storedErrors are as many standard errors as a stored share may be off.
	storedErrors = 5
)

func checksOf(cells []*cell, promised []promise, n int64) ([]run.Check, error) {
	var known reference
	if err := json.Unmarshal(referenceText, &known); err != nil {
		return nil, fmt.Errorf("experiments: reference: %w", err)
	}
	var checks run.Checks
	if known.N == n {
		for _, w := range known.Widths {
			for _, p := range promised {
				if width, ok := p.at(w.K); ok && p.method == w.Method {
					checks.Arithmetic(fmt.Sprintf("%s, %d questions: %s (NumPy)", w.Method, w.K, halfWidth), w.Width, widthTolerance, width)
				}
			}
		}
	}
	for _, c := range cells {
		of := fmt.Sprintf("%s, %d questions: ", c.method, c.k)
		checks.AtMost(of+anyMisses, 1-confidence, c.missed())
		if off, ok := c.theory(); ok && thresholdout.Name(c.method) == thresholdout.Cells {
			checks.Equal(of+lastError+", by theory", off, theorySlack*off, c.last())
		} else if ok { // the last answer of gaussian has no noise
			checks.Equal(of+lastError+", by theory", off, 2*theorySlack*off, c.last())
		}
		for _, r := range known.Cells {
			if known.N != n || r.Method != c.method || r.K != c.k {
				continue
			}
			var pairs []run.Pair
			for _, m := range []struct {
				set string
				of  func(o outcome) float64
			}{{lastError, func(o outcome) float64 { return o.Last }}, {largestError, func(o outcome) float64 { return o.Largest }}} {
				stored := r.Numbers[m.set]
				stored.Repetitions = r.Repetitions
				pair := run.Pair{At: m.set, Stored: stored}
				for _, o := range c.runs {
					pair.Values = append(pair.Values, m.of(o))
				}
				pairs = append(pairs, pair)
			}
			checks.Stored(fmt.Sprintf("%s, %d questions", c.method, c.k), pairs)
			if runs := float64(r.Repetitions); c.method == byWeights {
				checks.Equal(of+mendedAgain, r.Again, storedErrors*math.Sqrt(max(r.Again*(1-r.Again), 1/runs)/runs), c.again())
			}
		}
	}
	return checks.Decide(), nil
}

func tableOf(cells []*cell, promised []promise) [][]string {
	table := [][]string{{"ANSWERS", "QUESTIONS", "HALF-WIDTH", "LAST ERROR", "THEORY", "LARGEST ERROR", "ANY MISSES", "SPENT", "REPETITIONS"}}
	for _, p := range promised {
		for i, k := range p.k {
			table = append(table, []string{p.method, fmt.Sprint(k), fmt.Sprintf("%.4f", p.width[i]), "", "", "", "", "", ""})
		}
	}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		theory, spent := "", ""
		if off, ok := c.theory(); ok {
			theory = fmt.Sprintf("%.4f", off)
		}
		if c.spends() {
			spent = fmt.Sprintf("%.2f", c.spent().Mean)
		}
		table = append(table, []string{c.method, fmt.Sprint(c.k), "", fmt.Sprintf("%.4f", c.last().Mean), theory, fmt.Sprintf("%.4f", c.largest().Mean), fmt.Sprintf("%.3f", c.missed().Mean), spent, fmt.Sprint(len(c.runs))})
	}
	return table
}
