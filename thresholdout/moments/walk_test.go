package moments

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestTranscriptsArePaidFor walks the states of a run, over every string of outcomes: the probabilities e^-E of all strings of a length add up to at
// most beta/(2k), whatever the prices of failures, and to nearly as much. Red when a failure's cells or ranks are not multiplied in, when a
// wide pass or a failure is not counted, and for a weight that is not the urn's.
func TestTranscriptsArePaidFor(t *testing.T) {
	for _, k := range []int64{1, 2, 7, 110, 400} {
		for _, says := range []int64{1, 4, 240} { // how many different things a failure may say
			u := Urn{Questions: k, Beta: 0.05}
			price := nats(math.Log(float64(says)))
			// strings[f][w] is the logarithm of how many strings have so many failures and wide passes.
			strings := map[[2]int64]float64{{0, 0}: 0}
			for asked := range k {
				sum := 0.0
				for s, log := range strings {
					sum += math.Exp(log - u.Level(asked, s[0], s[1], Nats(s[0])*price) + math.Log(2*float64(k)/u.Beta))
				}
				if sum > 1+1e-9 || sum < 1-1e-3 {
					t.Fatalf("k=%d, %d things to say, after %d questions: strings are paid for with %v times their share", k, says, asked, sum)
				}
				next := map[[2]int64]float64{}
				add := func(f, w int64, log float64) {
					key := [2]int64{f, w}
					if old, ok := next[key]; ok {
						high, low := max(old, log), min(old, log)
						log = high + math.Log1p(math.Exp(low-high))
					}
					next[key] = log
				}
				for s, log := range strings {
					if s[0]+s[1] > 24 { // fewer strings are a smaller sum: those with many failures and wide passes are left out
						continue
					}
					add(s[0], s[1], log)
					add(s[0], s[1]+1, log)
					add(s[0]+1, s[1], log+math.Log(float64(says)))
				}
				strings = next
			}
		}
	}
}

// TestOutcomesAreCounted: over every sample of a small holdout a check has at most two passes and as many different failures as its price
// pays for. An outcome that told more of the sums than it pays for would be one more.
func TestOutcomesAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 6).Draw(t, "n")
		c := drawCheck(t, n)
		values := []int64{0, grid / 7, grid / 2, grid - 5, grid}
		seen := map[Outcome]bool{}
		failures := 0
		var walk func(i int, left int64, s Sums)
		walk = func(i int, left int64, s Sums) {
			if i == len(values) {
				if left > 0 && !c.Partial {
					return
				}
				o, err := c.Outcome(s)
				if err != nil {
					t.Fatal(err)
				}
				if !seen[o] && o.Failed() {
					failures++
				}
				seen[o] = true
				return
			}
			for k := int64(0); k <= left; k++ {
				walk(i+1, left-k, s)
				s.Units++
				s.Sum += values[i]
				s.Squares.AddSquare(values[i])
			}
		}
		walk(0, n, Sums{})
		if most := math.Exp(float64(c.Dearest()) / natsPerUnit); float64(failures) > most+1e-3 {
			t.Fatalf("%d different failures, %v are paid for: %+v", failures, most, c)
		}
	})
}

// drawCheck is any valid check of n units.
func drawCheck(t *rapid.T, n int64) Check {
	c := Check{N: n, Partial: rapid.Bool().Draw(t, "partial"), Guess: rapid.Int64Range(0, grid).Draw(t, "guess"), Cells: int64(1) << rapid.IntRange(0, 6).Draw(t, "log cells")}
	away, variance, units := rapid.Int64Range(0, grid/4).Draw(t, "away"), rapid.Int64Range(0, squares/4).Draw(t, "variance"), n
	if c.Partial {
		units = rapid.Int64Range(0, n).Draw(t, "units")
	}
	if c.Binary = !c.Partial && rapid.Bool().Draw(t, "binary"); c.Binary {
		variance = squares
	}
	c.Ranks = []Rank{{Away: away, Variance: variance, Units: units, Shift: rapid.Int64Range(-away, away).Draw(t, "shift")}}
	if rapid.Bool().Draw(t, "two ranks") {
		if c.Partial {
			units /= 2
		}
		c.Ranks = append(c.Ranks, Rank{Away: 2 * away, Variance: squares, Units: units})
	}
	return c
}

// TestSharesAddUp reads back the levels at which the outcomes of a question are read: the chain of passes and those of failures miss with at most
// e^-E together. Red when the pass is read at E itself, or a failure without ln 10 or without ln T.
func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCheck(t, rapid.Int64Range(1000, 100000).Draw(t, "n"))
		c.Binary = false
		c.Guess, c.Cells = grid/2+int64(grid/8), 16
		c.Ranks = c.Ranks[:1]
		c.Ranks[0].Away = min(c.Ranks[0].Away, grid/8)
		c.Ranks[0].Units = max(c.Ranks[0].Units, c.N/2)
		c.Ranks[0].Variance = max(c.Ranks[0].Variance, 1<<40)
		level := rapid.Float64Range(1, 15).Draw(t, "level")
		read := func(o Outcome) float64 {
			from, _, v, n := c.said(o)
			low, _ := c.Interval(o, level)
			lo, hi := 0.0, level+8 // of the levels that have this end the largest
			for range 60 {
				if mid := (lo + hi) / 2; BestTilts.Overshot(from, v, n, mid)-gridError >= low {
					lo = mid
				} else {
					hi = mid
				}
			}
			return hi
		}
		pass := math.Exp(level - read(Outcome{Rank: 1}))
		failed := 0.0
		for loss := range c.losses() {
			if _, _, _, n := c.said(Outcome{Cell: 9, Loss: loss}); n > 0 {
				failed += math.Exp(level - read(Outcome{Cell: 9, Loss: loss}))
			}
		}
		total := pass + failed
		if c.OneChain() {
			total = max(pass, failed) // one event
		}
		if total > 1+1e-4 || total < 0.7 {
			t.Fatalf("the chains' shares add up to %v (passes %v, failures %v): %+v", total, pass, failed, c)
		}
	})
}

// TestUrnFormula: the levels that the design was chosen by.
func TestUrnFormula(t *testing.T) {
	paid := func(failed int64) Nats { return Nats(failed) * nats(math.Log(60*4)) }
	for _, c := range []struct {
		k, asked, failed, wide int64
		want, precision        float64
	}{
		{110, 0, 0, 0, 8.39, 0.005}, {110, 109, 0, 0, 10.56, 0.005}, {110, 109, 1, 0, 21.14, 0.005}, {110, 109, 5, 1, 63.65, 0.01},
		{110, 109, 20, 2, 188, 0.5}, {1000, 0, 0, 0, 10.60, 0.005},
	} {
		if got := (Urn{Questions: c.k, Beta: 0.05}).Level(c.asked, c.failed, c.wide, paid(c.failed)); math.Abs(got-c.want) > c.precision {
			t.Errorf("k=%d after %d questions, %d failures, %d wide passes: level %.4f, want %v", c.k, c.asked, c.failed, c.wide, got, c.want)
		}
	}
	u := Urn{Questions: 110, Beta: 0.05}
	for _, bad := range []float64{u.Level(110, 0, 0, 0), u.Level(-1, 0, 0, 0), u.Level(5, 6, 0, 0), u.Level(5, 3, 3, 0), u.Level(5, 1, 0, -1), Urn{Beta: 0.05}.Level(0, 0, 0, 0), Urn{Questions: 110, Beta: 1}.Level(0, 0, 0, 0)} {
		if !math.IsInf(bad, 1) {
			t.Errorf("the level of a run that is none is %v", bad)
		}
	}
}

// TestDifferenceSharesAddUp: the chains of a difference's outcomes miss with at most e^-E together: passes are one, and failures are one for each rank and
// each cell of the group with fewer. (The cells of two groups are not one chain: neither of (a,b+1) and (a+1,b) implies the other.)
func TestDifferenceSharesAddUp(t *testing.T) {
	const level = 12.0
	g := Check{N: 5000, Partial: true, Guess: grid / 2, Ranks: []Rank{{Away: grid / 50, Variance: squares / 16, Units: 2000}}, Cells: 8}
	h := g
	h.Cells = 32
	c := DifferenceCheck{First: g, Second: h}
	read := func(o DifferenceOutcome) float64 {
		low, _ := c.Interval(o, level)
		first, second := g.group(o.Rank, o.Cells[0], o.Loss), h.group(o.Rank, o.Cells[1], o.Loss)
		lo, hi := 0.0, level+8
		for range 40 {
			if mid := (lo + hi) / 2; overshotDifference(first, second, mid)-2*gridError >= low {
				lo = mid
			} else {
				hi = mid
			}
		}
		return hi
	}
	total := math.Exp(level - read(DifferenceOutcome{Rank: 1}))
	for loss := range failureRanks {
		if loss == failureRanks-1 { // says nothing
			total += 0.1 / failureRanks
			continue
		}
		total += 8 * math.Exp(level-read(DifferenceOutcome{Cells: [2]int64{6, 5}, Loss: loss}))
	}
	if total > 1+1e-4 || total < 0.7 {
		t.Errorf("the chains' shares add up to %v", total)
	}
}
