package moments

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// oneSided is a check as version 4 of guess_and_check has it.
func oneSided(c Check) Check {
	c.OneSide, c.Outward = true, true
	return c
}

// TestOneSideMisses enumerates every sample of small holdouts: all outcomes of a question, on both sides together, miss with probability at most 2 e^-E, whatever the law, the guess and the margins. The same search finds
// violations where passes are read as if they could miss by half as much again, and where failures are read as passes are.
func TestOneSideMisses(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{4, 17}))
	type reading = func(Check, Outcome, float64) (float64, float64)
	sound := Check.Interval
	faults := map[string]reading{
		"a factor of 2 that is gone twice": func(c Check, o Outcome, level float64) (float64, float64) {
			if !o.Failed() {
				level -= math.Ln2
			}
			return c.Interval(o, max(level, 0))
		},
		"failures that are read as passes": func(c Check, o Outcome, level float64) (float64, float64) {
			if o.Failed() {
				level -= beyond(true, c.OneChain(), true, float64(c.losses())) - beyond(true, c.OneChain(), false, 1)
			}
			return c.Interval(o, max(level, 0))
		},
	}
	worst, violated := 0.0, map[string]int{}
	total := func(l law, c Check, level float64, read reading) float64 {
		below, above := misses(t, l, c, level, read)
		return (below + above) * math.Exp(level) / 2
	}
	for i := range 2500 {
		level := math.Ln2 + 4*r.Float64()
		partial := i%3 == 0
		l := randomLaw(r, partial)
		c := oneSided(randomCheck(r, 2+r.Int64N(9), partial, l.expectation()))
		switch {
		case i%3 == 1:
			l, c = directed(r, level, func(c Check, o Outcome, level float64) (float64, float64) { return oneSided(c).Interval(o, level) })
			c = oneSided(c)
		case i%3 == 2:
			l, c = worstYesNo(r, level, sound)
		}
		reached := total(l, c, level, sound)
		if reached > 1+1e-9 {
			t.Fatalf("a question misses with %v times 2 e^-%v: %+v, %+v", reached, level, l, c)
		}
		worst = max(worst, reached)
		for _, name := range slices.Sorted(maps.Keys(faults)) {
			if l, c := worstYesNo(r, level, faults[name]); total(l, c, level, faults[name]) > 1+1e-6 {
				violated[name]++
			}
		}
	}
	t.Logf("largest probability, of what may be: %.4f; violations with faults: %v", worst, violated)
	if worst < 0.95 {
		t.Errorf("the largest probability is %v of what is allowed: the search is too weak", worst)
	}
	for name := range faults {
		if violated[name] == 0 {
			t.Errorf("%s: no violation is found", name)
		}
	}
}

// TestOneSideShares: what passes may miss by on their side, and failures on both, or beside one chain on the other, is all that the question may.
func TestOneSideShares(t *testing.T) {
	for _, ranks := range []float64{1, 2, failureRanks} {
		passes, failures := math.Exp(-beyond(true, false, false, ranks))/2, ranks*math.Exp(-beyond(true, false, true, ranks))
		if sum := passes + failures; math.Abs(sum-1) > 1e-12 {
			t.Errorf("%v ranks: passes %v and failures %v add up to %v", ranks, passes, failures, sum)
		}
	}
	passes, failures := math.Exp(-beyond(true, true, false, 1))/2, math.Exp(-beyond(true, true, true, 1))/2
	if sum := passes + failures; math.Abs(sum-1) > 1e-12 {
		t.Errorf("one chain: passes %v and failures %v add up to %v", passes, failures, sum)
	}
}

// worstYesNo is a yes/no question, and a share of yes just outside one of the intervals that it may print as they are read.
func worstYesNo(r *rand.Rand, level float64, read func(Check, Outcome, float64) (float64, float64)) (law, Check) {
	n := 10 + r.Int64N(50)
	c := oneSided(Check{N: n, Binary: true, Guess: r.Int64N(n+1) * grid / n, Cells: int64(1) << r.IntN(7)})
	away := r.Int64N(n/4+1) * grid / n
	if r.IntN(3) == 0 {
		away = 0
	}
	c.Ranks = []Rank{{Away: away, Variance: squares, Units: n}}
	if r.IntN(2) == 0 {
		c.Ranks = append(c.Ranks, Rank{Away: min(2*away, grid), Variance: squares, Units: n})
	}
	o, err := c.Outcome(ones(int(r.Int64N(n+1)), int(n)))
	if err != nil || r.IntN(2) == 0 {
		o = Outcome{Rank: len(c.Ranks)}
	}
	low, high := read(c, o, level)
	share := low - 2*gridError - 1e-9
	if r.IntN(2) == 0 {
		share = high + 2*gridError + 1e-9
	}
	share = min(max(share, 0), 1)
	return law{values: []int64{0, grid}, weights: []float64{0, 1 - share, share}}, c
}

// TestOutwardCellsArePaidFor: the weights of all that a failure may say add up to at most 1, whatever the check, and to nearly as much. Each sample's outcome is among them, and true.
func TestOutwardCellsArePaidFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 40).Draw(t, "n")
		c := oneSided(drawCheck(t, n))
		if c.Binary {
			c.Ranks[0].Variance = squares
		}
		below, above := c.outside()
		sum, paid := 0.0, map[int64]bool{}
		for cell := -below; cell <= above; cell++ {
			if cell == 0 && !c.within() {
				continue
			}
			paid[cell] = true
			for loss := range c.losses() {
				price := c.Price(Outcome{Cell: cell, Loss: loss})
				if price > c.Dearest() {
					t.Fatalf("the cell %d costs %v, more than the dearest, %v", cell, price, c.Dearest())
				}
				sum += math.Exp(-price.Float())
			}
		}
		if sum > 1 || len(paid) > 0 && sum < outwardWeight*(1-withinWeight)/2 {
			t.Fatalf("the weights of %d cells add up to %v: %+v", len(paid), sum, c)
		}
		var values []int64
		units := n
		if c.Partial {
			units = rapid.Int64Range(0, n).Draw(t, "units")
		}
		for range units {
			x := rapid.Int64Range(0, grid).Draw(t, "x")
			if c.Binary {
				x = x / (grid/2 + 1) * grid
			}
			values = append(values, x)
		}
		s := Of(values)
		o, err := c.Outcome(s)
		if err != nil {
			t.Fatal(err)
		}
		if !o.Failed() || s.Units == 0 {
			return
		}
		if !paid[o.Cell] {
			t.Fatalf("the outcome %+v is not paid for: %+v", o, c)
		}
		from, to, _, _ := c.said(o)
		if mean, _ := s.Moments(); mean < from-1e-12 || mean > to+1e-12 {
			t.Fatalf("%+v says %v to %v, the mean is %v: %+v", o, from, to, mean, c)
		}
	})
}

// TestOutwardCellsAreCheap: of a yes/no question with 12,000 units a failure just beside the margins costs a nat and a half, where equal cells cost 4.85; one that is far off costs 7.2 at most.
func TestOutwardCellsAreCheap(t *testing.T) {
	training := Training{All: 12_000, Units: 12_000, Mean: 0.77, Second: 0.77 * 0.23, Fourth: 0.77 * 0.23 * (1 - 3*0.77*0.23), Guess: 0.77, Binary: true}
	c, err := Plan(training, 12_000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if alike := c.Price(Outcome{Cell: 3}).Float(); math.Abs(alike-math.Log(128)) > 1e-5 {
		t.Errorf("equal cells cost %v", alike)
	}
	c = oneSided(c)
	if near, far := c.Price(c.Missed()).Float(), c.Dearest().Float(); near > 1.5 || far > 7.2 {
		t.Errorf("the nearest cell costs %v, the dearest %v", near, far)
	}
}
