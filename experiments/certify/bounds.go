package certify

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
)

// boundMisses is the share of runs in which either end of a bound is on the wrong side of the mean.
const boundMisses = "bound misses"

// Coverage of the Monte-Carlo bounds, on draws whose mean is known.
const (
	boundRuns  = 4000
	boundDraws = 200
	boundAlpha = 0.025 // of either end
)

// boundCase are draws of one kind with one mean.
type boundCase struct {
	bound  certify.Bound
	scores bool
	mean   float64
}

func boundCases() (all []boundCase) {
	for bound := certify.ClopperPearson; bound <= certify.EmpiricalBernstein; bound++ {
		for _, scores := range []bool{false, true} {
			for _, mean := range []float64{0.05, 0.5, 0.9} {
				if !scores || bound != certify.ClopperPearson {
					all = append(all, boundCase{bound, scores, mean})
				}
			}
		}
	}
	return all
}

// misses counts runs in which an end is on the wrong side. Scores are powers of uniform draws.
func (c boundCase) misses(seed uint64) (misses int, err error) {
	random := rand.New(rand.NewPCG(seed, 3))
	for range boundRuns {
		sum, squares := 0.0, 0.0
		for range boundDraws {
			u, v := random.Float64(), 0.0
			if c.scores {
				v = math.Pow(u, 1/c.mean-1)
			} else if u < c.mean {
				v = 1
			}
			sum += v
			squares += v * v
		}
		low, high, err := c.bound.Ends(sum, squares, boundDraws, boundAlpha)
		if err != nil {
			return 0, err
		}
		if low > c.mean || high < c.mean {
			misses++
		}
	}
	return misses, nil
}

// boundCoverage measures how often bounds miss, and checks that it is no more than they may.
func boundCoverage(ctx context.Context, o run.Options, checks *run.Checks) (rows []run.Row, err error) {
	cases := boundCases()
	misses, finished, err := run.Repeat(ctx, o, "bounds", len(cases), func(_ context.Context, i int) (int, error) {
		return cases[i].misses(seeds.Of(o.Seed, 4, uint64(i)))
	})
	for i, c := range cases {
		if !finished[i] {
			continue
		}
		of := "labels"
		if c.scores {
			of = "scores"
		}
		rate := float64(misses[i]) / boundRuns
		r := run.Row{Condition: fmt.Sprintf("%s of mean %v", of, c.mean), Method: c.bound.String(), N: boundDraws, Confidence: 1 - 2*boundAlpha, Set: boundMisses,
			Mean: rate, SD: math.Sqrt(rate * (1 - rate)), Repetitions: boundRuns, Rate: true}
		r.Low, r.High = run.RateInterval(int64(misses[i]), boundRuns, 0.05)
		rows = append(rows, r)
		checks.AtMost(fmt.Sprintf("%s, %s: rate at which the bound misses", r.Method, r.Condition), 2*boundAlpha, r)
	}
	return rows, err
}
