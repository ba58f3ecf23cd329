package manyquestions

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/pmw"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// Methods of what is promised, beside the mechanisms: run.Row.Method.
const (
	byDescription = "weights without noise" // by the length of the transcript: docs/decisions/0009-pmw.md
	whileHolding  = "guess_and_check, while guesses hold"
	weightsAbove  = "private weights: more than"
)

// promise is the half-widths of one method, of so many questions each.
type promise struct {
	method string
	k      []int64
	width  []float64
}

// mostQuestions is where the figure of what is promised ends.
const mostQuestions = 1_000_000_000

// uselessWidth is the half-width from which on an interval around one half says nothing.
const uselessWidth = 0.5

// promisedOf are the half-widths for 10 questions, 100, ….
func promisedOf(n int64, quick bool) ([]promise, error) {
	step := int64(10)
	if quick {
		step = 100
	}
	all := []promise{{method: string(thresholdout.Cells)}, {method: whileHolding}, {method: string(thresholdout.Gaussian)}, {method: byDescription}, {method: weightsAbove}}
	for k := int64(10); k <= mostQuestions; k *= step {
		for i := range all {
			width, err := all[i].of(n, k)
			if err != nil {
				return nil, fmt.Errorf("experiments: many-questions: %s: %w", all[i].method, err)
			}
			if width < 1 {
				all[i].k, all[i].width = append(all[i].k, k), append(all[i].width, width)
			}
		}
	}
	return all, nil
}

func (p promise) of(n, k int64) (float64, error) {
	switch p.method {
	case byDescription:
		return describedWidth(float64(n), domain, float64(k), 1-confidence), nil
	case weightsAbove:
		width, _, _ := privateWidth(n, k)
		return width, nil
	case whileHolding:
		return compare.HalfWidthOf(compare.MethodGuessCheck, compare.Request{N: n, Training: n, Confidence: confidence}, k)
	}
	g, err := planOf(thresholdout.Name(p.method), n, k)
	return g.HalfWidth, err
}

// at is the half-width of so many questions; ok is false where it was not computed, or says nothing.
func (p promise) at(k int64) (float64, bool) {
	for i, q := range p.k {
		if q == k {
			return p.width[i], true
		}
	}
	return 0, false
}

func (p promise) rows(n int64) (rows []run.Row) {
	for i, k := range p.k {
		rows = append(rows, run.Row{Condition: anyAnalyst, Method: p.method, N: n, K: k, Confidence: confidence, Set: halfWidth, Mean: p.width[i], Low: p.width[i], High: p.width[i], Repetitions: 1})
	}
	return rows
}

// describedWidth is the half-width of multiplicative weights without noise, by the length of the transcript: a guess that is off by more than d is mended by one of c cells of its
// answer, at most ln(cells)/(2 d²) times. The best of some d and c.
func describedWidth(n, cells, k, beta float64) float64 {
	best := 1.0
	for exponent := 0.; exponent <= 16; exponent += .5 {
		updates := math.Floor(math.Exp2(exponent))
		d := math.Sqrt(math.Log(cells) / (2 * updates))
		for _, c := range []float64{10, 20, 50, 100, 200, 500, 1000} {
			level := math.Log(2*k*(updates+1)/beta) + logChoose(k, min(updates, math.Floor(k/2))) + updates*math.Log(c)
			best = min(best, max(d, .5/c)+math.Sqrt(level/(2*n)))
		}
	}
	return best
}

// logChoose is ln C(k,u), for a u up to k/2.
func logChoose(k, u float64) float64 {
	if u == 0 {
		return 0
	}
	all, _ := math.Lgamma(k + 1)
	taken, _ := math.Lgamma(u + 1)
	left, _ := math.Lgamma(k - u + 1)
	return all - taken - left
}

// privateWidth is less than any half-width that follows for dp/pmw from its privacy: the error of its answers about the table, and what pure epsilon lets a mean move on average
// (docs/proofs/tanh-transfer.md). The settings are those of the best of some epsilons; ok is false where nothing below 1 is promised.
func privateWidth(n, k int64) (width float64, best pmw.Settings, ok bool) {
	width = 1
	for exponent := -4.; exponent <= 2; exponent += .5 {
		eps := math.Exp2(exponent)
		set, err := pmw.Plan(domain, n, eps, float64(k), 1-confidence)
		if err != nil {
			continue
		}
		if w := set.Accuracy(float64(k), 1-confidence) + math.Tanh(eps/4); w < width {
			width, best, ok = w, set, true
		}
	}
	return width, best, ok
}
