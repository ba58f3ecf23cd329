package moments

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// joint is a law of two values of a unit at once; both are among the same units.
type joint struct{ first, second law }

// each calls visit with the sums of both and the probability of every composition of n units.
func (j joint) each(n int64, visit func(s [2]Sums, probability float64)) {
	counts := make([]int64, len(j.first.weights))
	var walk func(i int, left int64, log float64)
	walk = func(i int, left int64, log float64) {
		w, factorial := j.first.weights[i], func(k int64) float64 { g, _ := math.Lgamma(float64(k + 1)); return g }
		least, most := int64(0), left
		if i == len(j.first.weights)-1 {
			least = left
		}
		if w == 0 {
			most = 0
		}
		for k := least; k <= most; k++ {
			counts[i] = k
			next := log + power(w, k) - factorial(k)
			if i < len(counts)-1 {
				walk(i+1, left-k, next)
				continue
			}
			var s [2]Sums
			for kind, count := range counts {
				s[0], s[1] = j.first.plus(s[0], kind, count), j.second.plus(s[1], kind, count)
			}
			visit(s, math.Exp(next))
		}
	}
	start, _ := math.Lgamma(float64(n + 1))
	walk(0, n, start)
}

// draw is a law of both values, a check of them, and a level: any, or with the first of both as an interval fears it most, and the second as sure to pass.
func drawJoint(r *rand.Rand, directedAt float64) (j joint, c JointCheck) {
	share := 0.05 + 0.9*r.Float64()
	c.Shares = []float64{share, 1 - share}
	if directedAt > 0 {
		l, first := directed(r, directedAt-math.Log(share), Check.Interval)
		second := l
		second.values = []int64{0, grid}
		wide := first
		wide.Guess, wide.Cells, wide.Ranks = grid/2, 4, nil
		for range first.Ranks {
			wide.Ranks = append(wide.Ranks, Rank{Away: grid, Variance: squares})
			if !first.Partial {
				wide.Ranks[len(wide.Ranks)-1].Units = first.N
			}
		}
		c.Checks = []Check{first, wide}
		return joint{l, second}, c
	}
	partial, n := r.IntN(2) == 0, 2+r.Int64N(6)
	j.first = randomLaw(r, partial)
	j.second = j.first
	j.second.values = make([]int64, len(j.first.values))
	for i := range j.second.values {
		j.second.values[i] = int64(r.Float64() * grid)
		if r.IntN(2) == 0 {
			j.second.values[i] = min(max(j.first.values[i], grid/4), 3*grid/4)
		}
	}
	first, second := randomCheck(r, n, partial, j.first.expectation()), randomCheck(r, n, partial, j.second.expectation())
	ranks := min(len(first.Ranks), len(second.Ranks))
	first.Ranks, second.Ranks = first.Ranks[:ranks], second.Ranks[:ranks]
	c.Checks = []Check{first, second}
	return j, c
}

// TestExactJoint enumerates every sample of small holdouts: of a question about two means at once, over all its outcomes together, each interval misses on a side with at
// most its share of e^-E, and a failure says one of no more things than it pays for. The same search must find a violation where a mean's
// share is forgotten, and where a pass is read as that of the mean's own narrower rank.
func TestExactJoint(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{4, 17}))
	faults := map[string]func(c JointCheck, i int, o JointOutcome, s Sums, level float64) (float64, float64){
		"": func(c JointCheck, i int, o JointOutcome, _ Sums, level float64) (float64, float64) {
			return c.Interval(i, o, level)
		},
		"the share is forgotten": func(c JointCheck, i int, o JointOutcome, _ Sums, level float64) (float64, float64) {
			return c.Checks[i].Interval(o.Of(i, c.Checks[i]), level)
		},
	}
	worst := map[string]float64{}
	for round := range 1500 {
		level := 0.1 + 3*r.Float64()
		at := 0.0
		if round%2 == 0 {
			at = level
		}
		j, c := drawJoint(r, at)
		truth := [2]float64{j.first.expectation(), j.second.expectation()}
		said := map[string]bool{}
		for name, interval := range faults {
			var below, above [2]float64
			j.each(c.Checks[0].N, func(s [2]Sums, probability float64) {
				o, err := c.Outcome(s[:])
				if err != nil {
					t.Fatal(err)
				}
				if o.Failed() {
					said[strings.Join([]string{string(rune(o.Cells[0])), string(rune(o.Cells[1])), string(rune(o.Loss))}, ",")] = true
				}
				for i := range truth {
					low, high := interval(c, i, o, s[i], level)
					if low > truth[i] {
						below[i] += probability
					}
					if high < truth[i] {
						above[i] += probability
					}
				}
			})
			for i := range truth {
				reached := max(below[i], above[i]) * math.Exp(level) / c.Shares[i]
				worst[name] = max(worst[name], reached)
				if name == "" && reached > 1+1e-9 {
					t.Fatalf("mean %d misses with %v times its share at E = %v: %+v, %+v", i, reached, level, j, c)
				}
			}
		}
		if most := math.Exp(float64(c.Dearest()) / natsPerUnit); float64(len(said)) > most+1e-3 {
			t.Fatalf("%d different failures, %v are paid for: %+v", len(said), most, c)
		}
	}
	t.Logf("largest probability times e^E, by its share: %v", worst)
	if worst[""] < 0.85 || worst["the share is forgotten"] <= 1+1e-6 {
		t.Errorf("the search is too weak: %v", worst)
	}
}

// TestJointOutcomeIsTrue: what an outcome says of each mean is true of the sums, at the edges of margins and cells, and where no unit satisfies a condition. It would
// notice a pass that one of the means does not pass, a failure's rank that one of them does not satisfy, and a cell for means that are not there.
func TestJointOutcomeIsTrue(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{5, 17}))
	passes, failures := 0, 0
	for range 2000 {
		j, c := drawJoint(r, 0)
		j.each(c.Checks[0].N, func(s [2]Sums, _ float64) {
			o, err := c.Outcome(s[:])
			if err != nil {
				t.Fatal(err)
			}
			for i, one := range c.Checks {
				from, to, variance, units := one.said(o.Of(i, one))
				if units == 0 {
					continue // nothing is said
				}
				mean, spread := s[i].moments()
				if mean < from-1e-12 || mean > to+1e-12 || spread > variance+1e-9 || float64(s[i].Units) < units {
					t.Fatalf("%+v says [%v, %v], %v and %v units of a mean of %v, %v and %d", o, from, to, variance, units, mean, spread, s[i].Units)
				}
			}
			if o.Failed() {
				failures++
			} else {
				passes++
			}
		})
	}
	if passes < 1000 || failures < 1000 {
		t.Errorf("%d passes and %d failures", passes, failures)
	}
}

// TestJointRefused: a question about several means is about the units of one holdout, and its shares are all there is.
func TestJointRefused(t *testing.T) {
	one := Check{N: 4, Cells: 2, Ranks: []Rank{{Variance: squares, Units: 4}}}
	other, two := one, one
	other.N, other.Ranks = 5, []Rank{{Variance: squares, Units: 5}}
	two.Ranks = []Rank{one.Ranks[0], one.Ranks[0]}
	for name, c := range map[string]JointCheck{
		"none":           {},
		"another's":      {[]Check{one, other}, []float64{0.5, 0.5}},
		"ranks":          {[]Check{one, two}, []float64{0.5, 0.5}},
		"more than all":  {[]Check{one, one}, []float64{0.7, 0.5}},
		"nothing of it":  {[]Check{one, one}, []float64{1, 0}},
		"a share less":   {[]Check{one, one}, []float64{1}},
		"no such margin": {[]Check{{N: 4, Cells: 0, Ranks: one.Ranks}}, []float64{1}},
	} {
		if c.Valid() == nil {
			t.Errorf("%s: %+v is valid", name, c)
		}
	}
	c := JointCheck{[]Check{one, one}, []float64{0.5, 0.5}}
	if _, err := c.Outcome([]Sums{ones(1, 4)}); err == nil {
		t.Error("sums of one mean for two")
	}
	if _, err := c.Outcome([]Sums{ones(1, 4), ones(1, 3)}); err == nil {
		t.Error("sums of a unit less")
	}
	if o, err := c.Outcome([]Sums{ones(0, 4), ones(0, 4)}); err != nil || o.Failed() {
		t.Errorf("%+v, %v", o, err)
	}
}
