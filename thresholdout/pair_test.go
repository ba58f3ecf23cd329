package thresholdout

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// drawPairs are the sums of n units whose scores follow their label by shift, in ten bins.
func drawPairs(t *testing.T, r *rand.Rand, n int, shift float64) PairSums {
	t.Helper()
	with, without := make([]int64, 10), make([]int64, 10)
	for range n {
		if r.Float64() < 0.3 {
			with[min(int(10*math.Pow(r.Float64(), 1-shift)), 9)]++
		} else {
			without[min(int(10*r.Float64()), 9)]++
		}
	}
	s, err := pairs.AUC(with, without)
	if err != nil {
		t.Fatal(err)
	}
	return PairSums{All: int64(n), Sums: s, Monotone: true}
}

// drawQuantile are the counts of n units at so many rungs, whose values are a power of uniform ones.
func drawQuantile(r *rand.Rand, n, rungs int, power float64) QuantileSums {
	at := make([]int64, rungs)
	for range n {
		at[int(math.Pow(r.Float64(), power)*float64(rungs))]++
	}
	q := QuantileSums{All: int64(n), P: 0.4, Exact: true, Units: int64(n) * grid}
	sum := int64(0)
	for _, c := range at {
		q.Below = append(q.Below, sum*grid)
		sum += c
		q.Upto = append(q.Upto, sum*grid)
	}
	return q
}

// TestOutcomesAreAnswers: over many holdouts of all kinds, one question has no more different answers than its two passes and what the price of a failure pays for, and equal
// findings have equal answers, whatever the sums are. It would notice an answer with the holdout's own value, or variance, in it; a coverage experiment does not.
func TestOutcomesAreAnswers(t *testing.T) {
	g, err := Plan(Spec{Mechanism: GuessAndCheck, N: 2000, Training: 4000, Questions: 100, Tokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	state := State{Questions: 7, Tokens: 2, Memory: account{Wide: 1, Paid: 3 << 20}}
	for name, drawn := range map[string]func(r *rand.Rand, n int, other float64) Statistic{
		"pairs":    func(r *rand.Rand, n int, other float64) Statistic { return drawPairs(t, r, n, 0.9*other) },
		"quantile": func(r *rand.Rand, n int, other float64) Statistic { return drawQuantile(r, n, 200, math.Exp(3*other)) },
		"clustered": func(r *rand.Rand, n int, other float64) Statistic {
			return drawClustered(t, r, n, 0.9*other, n == 4000)
		},
	} {
		r := rand.New(rand.NewPCG(5, 17)) // of each kind its own, for they come in any order
		draw := func(n int, other float64) Statistic { return drawn(r, n, other) }
		training := draw(4000, 0)
		check, err := g.own.(*guessAndCheck).plan(state, StatisticInput{Training: training})
		if err != nil {
			t.Fatal(err)
		}
		answers, failures := map[string]string{}, 0
		for i := range 400 {
			in := StatisticInput{Training: training, Holdout: draw(2000, float64(i)/400*r.Float64())}
			found, err := check.Find(in.Holdout)
			if err != nil {
				t.Fatal(err)
			}
			out, next, err := StepStatistic(g, state, in)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				value, interval, err := g.ExpectedStatistic(state, in)
				if err != nil || out.Tokens > 0 || value != out.Value || !reflect.DeepEqual(interval, out.Interval) {
					t.Errorf("%s: %v %+v is foreseen, %v %+v answered: %v", name, value, interval, out.Value, out.Interval, err)
				}
			}
			failed := int64(0)
			if found.Failed() {
				failed = 1
				failures++
			}
			if after := accountOf(next); out.Tokens != failed || (after.Paid > 3<<20) != found.Failed() || (after.Wide > 1) != found.Wide() {
				t.Fatalf("%s: %+v is answered with %d tokens and remembered as %+v", name, found, out.Tokens, after)
			}
			if !(out.Interval.Low <= out.Value && out.Value <= out.Interval.High) {
				t.Fatalf("%s: %v is not in %+v", name, out.Value, out.Interval)
			}
			text, err := json.Marshal([]any{out.Value, out.Interval, out.Source, out.Margin})
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprintf("%v %v %+v", found.Failed(), found.Wide(), outcomeOf(found))
			if before, ok := answers[key]; ok && before != string(text) {
				t.Fatalf("%s: %s is answered by %s and by %s", name, key, before, text)
			}
			answers[key] = string(text)
		}
		distinct := map[string]bool{}
		for _, text := range answers {
			distinct[text] = true
		}
		if most := 2 + math.Exp(float64(check.Dearest())/(1<<20)); float64(len(distinct)) > most || failures < 50 || len(distinct) < 10 {
			t.Errorf("%s: %d answers, %d failures; %v are paid for", name, len(distinct), failures, most)
		}
	}
}

// outcomeOf is all that a finding knows of the holdout.
func outcomeOf(f Finding) any {
	switch f := f.(type) {
	case pairFinding:
		return f.Outcome
	case quantileFinding:
		return f.QuantileOutcome
	case clusteredFinding:
		return f.Outcome
	}
	return nil
}

// TestQuantileAtLevels: a quantile's answer is known at its own level and at lower ones, and at no higher one; a statistic of pairs is known at all, and wider at higher ones.
func TestQuantileAtLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 17))
	by := Planning{N: 2000, Questions: 100, Deviations: 3, Level: 9}
	q, err := drawQuantile(r, 4000, 200, 1).Plan(by)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := q.Expected().Interval(9); !ok {
		t.Error("no interval at the level that was planned for")
	}
	if _, ok := q.Expected().Interval(9.001); ok {
		t.Error("counts at a level are not enough at a higher one")
	}
	p, err := drawPairs(t, r, 4000, 0).Plan(by)
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for _, level := range []float64{1, 5, 9, 15, 30} {
		i, ok := p.Expected().Interval(level)
		if !ok || !(i.High-i.Low > last) {
			t.Errorf("at %v: %+v", level, i)
		}
		last = i.High - i.Low
	}
}

// TestPairSumsAreRefused: sums of other units, of another question, and guesses that are out of range.
func TestPairSumsAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 17))
	p, q := drawPairs(t, r, 100, 0), drawQuantile(r, 100, 20, 1)
	for name, s := range map[string]Statistic{
		"pairs of fewer units":      PairSums{All: 99, Sums: p.Sums},
		"more units than there are": PairSums{All: 50, Sums: p.Sums},
		"no sums":                   PairSums{All: 100},
		"halves that are not whole": PairSums{All: 100, Sums: p.Sums, Whole: true},
		"counts of fewer units":     QuantileSums{All: 99, P: 0.4, Units: q.Units, Below: q.Below, Upto: q.Upto},
		"no rungs":                  QuantileSums{All: 100, P: 0.4, Units: q.Units},
		"no quantile":               QuantileSums{All: 100, Units: q.Units, Below: q.Below, Upto: q.Upto},
		"a share of all units":      QuantileSums{All: 100, P: 0.4, Exact: true, Units: q.Units - 1, Below: q.Below, Upto: q.Upto},
	} {
		if err := s.Fits(100); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	by := Planning{N: 100, Questions: 100, Deviations: 3, Level: 9}
	for name, s := range map[string]Statistic{"pairs": p, "quantile": q} {
		c, err := s.Plan(by)
		if err != nil {
			t.Fatal(err)
		}
		for _, beyond := range []float64{-0.1, 1.1, math.NaN()} {
			guessed := by
			guessed.Guess = &Guess{Value: &beyond}
			if _, err := s.Plan(guessed); err == nil {
				t.Errorf("%s: took the guess %v", name, beyond)
			}
		}
		others := []Statistic{RootSums{}, PairSums{All: 100, Sums: p.Sums}, QuantileSums{All: 100, P: 0.5, Exact: true, Units: q.Units, Below: q.Below, Upto: q.Upto},
			QuantileSums{All: 100, P: 0.4, Units: q.Units, Below: q.Below, Upto: q.Upto}}
		for _, other := range others {
			if found, err := c.Find(other); err == nil {
				t.Errorf("%s: found %+v in %+v", name, found, other)
			}
		}
	}
}

// TestSilentPairs: where the training part has too few units of a class for a plan, the question says nothing, whatever the holdout has, for no token.
func TestSilentPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 17))
	none, err := pairs.AUC(make([]int64, 10), []int64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5})
	if err != nil {
		t.Fatal(err)
	}
	training := PairSums{All: 50, Sums: none, Monotone: true}
	if _, ok := training.Value(); ok {
		t.Error("an area without positives")
	}
	c, err := training.Plan(Planning{N: 60, Questions: 10, Deviations: 2, Level: 5})
	if err != nil {
		t.Fatal(err)
	}
	other := training
	other.All = 60
	for _, holdout := range []PairSums{drawPairs(t, r, 60, 0), drawPairs(t, r, 60, 0.9), other} {
		found, err := c.Find(holdout)
		if err != nil {
			t.Fatal(err)
		}
		if i, ok := found.Interval(5); !ok || i.Low != 0 || i.High != 1 || found.Failed() || found.Wide() || found.Value() != 0.5 {
			t.Errorf("%+v says %+v", found, i)
		}
	}
}
