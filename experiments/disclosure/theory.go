package disclosure

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// noise is the deviation of the error of an answer from the mean over the holdout, by how many were asked before.
func (c *cell) noise() func(int64) float64 {
	switch c.method {
	case rounded:
		return func(int64) float64 { return roundedTo / math.Sqrt(12) }
	case gaussian:
		return analysts.ScheduledNoise(c.guarantee)
	case throughCheck:
		return analysts.ConstantNoise(c.guarantee)
	case byGuess:
		// A failure names a cell, of which the middle is the value: of a guess of 0, whose values do not vary.
		check, err := moments.Plan(moments.Training{All: c.guarantee.Training, Units: c.guarantee.Training, Binary: true}, c.guarantee.N, c.guarantee.Questions)
		if err == nil {
			return func(int64) float64 { return 1 / float64(check.Cells) / math.Sqrt(12) }
		}
	}
	return func(int64) float64 { return 0 }
}

// answers is how many questions the attack is told about by the holdout.
func (c *cell) answers() int {
	if c.guarantee.NeedsTokens() {
		return min(c.k, tokens)
	}
	return c.k
}

// theory is the share that the attack gets right, by the noise that was planned.
func (c *cell) theory() float64 {
	switch c.attack {
	case packing:
		if c.method == exact {
			return c.legible()
		}
		return 0.5 // what an answer errs by is far more than the largest digit
	case membership:
		sum := 0.0
		for j, noise := 0, c.noise(); j < c.answers(); j++ {
			sum += c.weight(noise(int64(j))) / float64(c.n*c.n)
		}
		return distuv.UnitNormal.CDF(math.Sqrt(sum) / 2)
	}
	return distuv.UnitNormal.CDF(math.Sqrt(c.signal()))
}

// legible is the share of packed bits that exact answers give away. An answer is a mean of n rows in steps of 2^-30, so that the sum of the digits is known in steps of n, and read with an error e between -n/2 and n/2.
// Digit j of a number of fair coins is another one when e is added with probability d/2^j, where d is how far e is from the nearest multiple of 2^(j+1).
func (c *cell) legible() float64 {
	var wrong [packed]float64 // of each digit
	for e := -c.n / 2; e < c.n-c.n/2; e++ {
		for j := range wrong {
			period := 2 << j
			rest := max(e, -e) % period
			wrong[j] += float64(min(rest, period-rest)) / float64(int(1)<<j) / float64(c.n)
		}
	}
	misread := 0.0
	for row := range c.n {
		misread += wrong[row%packed]
	}
	return 1 - misread/float64(c.n)
}

// signal is the root b of b = sum of 1/(v + n/(1 + b)): how far the estimate of a bit is from 0, squared, in its variance. The sum less b is concave and positive at 0, so that there is one root. Bits are told for sure by
// as many exact answers as there are bits.
func (c *cell) signal() float64 {
	noise := c.noise()
	above := func(b float64) bool {
		sum := 0.0
		for j := range c.answers() {
			sum += 1 / (c.variance(noise(int64(j))) + float64(c.n)/(1+b))
		}
		return sum > b
	}
	low, high := 1e-9, 1e9
	for high/low > 1+1e-9 {
		if middle := math.Sqrt(low * high); above(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// limit is the share that no attack exceeds, where theory has one: under gaussian.
func (c *cell) limit() (float64, bool) {
	if c.method != gaussian {
		return 1, false
	}
	sum := 0.0
	for j, noise := 0, c.noise(); j < c.k; j++ {
		shift := 1 / (float64(c.n) * noise(int64(j)))
		sum += shift * shift
	}
	return distuv.UnitNormal.CDF(math.Sqrt(sum) / 2), true
}

func (c *cell) row() run.Row {
	set := bitsRight
	if c.attack == membership {
		set = toldRight
	}
	r := run.Row{Condition: c.attack, Method: c.method, N: int64(c.n), K: int64(c.k), Set: set}
	if c.guarantee.Mechanism != thresholdout.Naive {
		r.Confidence = c.guarantee.Confidence
	}
	return run.Measured(r, c.runs, func(share float64) float64 { return share })
}

// modelError is what theory, which is of the limit of many rows, leaves open: of a thousand, or of two hundred.
const modelError = 0.01

func comparisons(cells []*cell) []checks.Comparison {
	var all []checks.Comparison
	for _, c := range cells {
		of, share := fmt.Sprintf("%s, %s, k = %d: ", c.attack, c.method, c.k), c.row().Sample()
		all = append(all, checks.Equal(of+"share right against theory", c.theory(), modelError, share))
		if limit, known := c.limit(); known {
			all = append(all, checks.AtMost(of+"share right, against what no attack exceeds", limit, share))
		}
	}
	return all
}

func tableOf(cells []*cell) [][]string {
	table := [][]string{{"ATTACK", "WHO ANSWERS", "ROWS", "QUESTIONS", "ANSWERS FROM THE HOLDOUT", "RIGHT", "95% INTERVAL", "THEORY", "NO ATTACK ABOVE"}}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		r, limit := c.row(), ""
		if l, known := c.limit(); known {
			limit = fmt.Sprintf("%.4f", l)
		}
		table = append(table, []string{c.attack, c.method, fmt.Sprint(c.n), fmt.Sprint(c.k), fmt.Sprint(c.answers()), fmt.Sprintf("%.4f", r.Mean),
			fmt.Sprintf("%.4f to %.4f", r.Low, r.High), fmt.Sprintf("%.4f", c.theory()), limit})
	}
	return table
}
