package thresholdout

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// attack is the single-adaptive attack: fair coins in every column, one question about the mean of each, then one about the
// rows' agreement with the answers, each column weighted by how far its answer is from 1/2. Every true mean is 1/2. It
// returns whether any interval misses, and whether any answer is farther than naiveWidth from the truth.
func attack(t *testing.T, p Guarantee, run uint64, naiveWidth float64) (missed, naiveMissed bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(run, 1))
	holdout, training := coins(r, p.N, p.Questions-1), coins(r, p.Training, p.Questions-1)
	state, weights := State{}, make([]float64, p.Questions-1)
	ask := func(in Input) Output {
		out, next, err := Step(p, state, in, Seeded{Seed: run, Question: state.Questions})
		if err != nil {
			t.Fatal(err)
		}
		state = next
		missed = missed || out.Interval.Low > 0.5 || out.Interval.High < 0.5
		naiveMissed = naiveMissed || math.Abs(out.Value-0.5) > naiveWidth
		return out
	}
	for j := range weights {
		out := ask(Input{Holdout: column(holdout, j), Training: column(training, j)})
		weights[j] = out.Value - 0.5
		if p.Mechanism == Thresholdout && state.Tokens == p.Tokens-1 {
			break // one is kept for the last question
		}
	}
	ask(Input{Holdout: agreement(holdout, weights), Training: agreement(training, weights)})
	return missed, naiveMissed
}

func coins(r *rand.Rand, n, columns int64) [][]int8 {
	rows := make([][]int8, n)
	for i := range rows {
		rows[i] = make([]int8, columns)
		for j := range rows[i] {
			rows[i][j] = int8(r.Uint32() & 1)
		}
	}
	return rows
}

func column(rows [][]int8, j int) Mean {
	m := Mean{N: int64(len(rows))}
	for _, row := range rows {
		m.Sum += int64(row[j]) * grid
	}
	return m
}

// agreement is the mean of 1[sum of weight times (2 coin - 1) > 0]: true mean 1/2, as the score is symmetric.
func agreement(rows [][]int8, weights []float64) Mean {
	m := Mean{N: int64(len(rows))}
	for _, row := range rows {
		score := 0.0
		for j, w := range weights {
			score += w * float64(2*row[j]-1)
		}
		if score > 0 {
			m.Sum += grid
		}
	}
	return m
}

// TestCoverage: under the attack no more than 5% of runs have a miss (false alarm 1e-6), while widths that ignore
// adaptivity, those of one question, are missed almost always: the attack works.
func TestCoverage(t *testing.T) {
	const runs = 60
	for name, p := range map[string]Spec{
		"gaussian":            {Mechanism: Gaussian, N: 1000, Questions: 151},
		"gaussian, constant":  {Mechanism: Gaussian, N: 1000, Questions: 151, Sigma: 0.03},
		"thresholdout":        {Mechanism: Thresholdout, N: 1000, Training: 1000, Questions: 151, Tokens: 40},
		"thresholdout, small": {Mechanism: Thresholdout, N: 1000, Training: 1000, Questions: 151, Tokens: 100, Threshold: 0.005, Sigma: 0.01},
	} {
		p := must(t, p)
		single := math.Sqrt(math.Log(2/0.05) / (2 * float64(p.N)))
		missed, naive := 0, 0
		for run := range uint64(runs) {
			m, n := attack(t, p, run, single)
			if m {
				missed++
			}
			if n {
				naive++
			}
		}
		if err := stattest.AtMost(missed, runs, 0.05, falseAlarm); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := stattest.AtMost(naive, runs, 0.05, falseAlarm); err == nil {
			t.Errorf("%s: widths for one question were missed only %d times of %d", name, naive, runs)
		}
	}
}
