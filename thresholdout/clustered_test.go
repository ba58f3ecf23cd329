package thresholdout

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// drawClustered are the sums of n units of one to three rows, whose scores follow their labels by shift, in ten bins. whole are the training part's.
func drawClustered(t *testing.T, r *rand.Rand, n int, shift float64, whole bool) ClusteredSums {
	t.Helper()
	c := pairs.Curves{First: 10}
	d := c.Size()
	half := func(units int) pairs.Vectors {
		v := pairs.Vectors{Units: int64(units), Sums: make([]int64, d), Products: make([]*big.Int, d*(d+1)/2)}
		products := make([]float64, len(v.Products)) // of shares that are sixths
		for range units {
			rows := 1 + r.IntN(3)
			z := make([]int64, d)
			for range rows {
				at := 10 // without the label
				bin := int(10 * r.Float64())
				if r.Float64() < 0.3 {
					at, bin = 0, min(int(10*math.Pow(r.Float64(), 1-shift)), 9)
				}
				for i := range bin + 1 {
					z[at+i] += int64(6 / rows)
				}
			}
			at := 0
			for i, x := range z {
				v.Sums[i] += x * (grid / 6)
				for _, y := range z[:i+1] {
					products[at] += float64(x * y)
					at++
				}
			}
		}
		step := big.NewInt(grid / 6)
		step.Mul(step, step)
		for i, x := range products {
			v.Products[i] = new(big.Int).Mul(big.NewInt(int64(x)), step)
		}
		return v
	}
	first := half(n / 2)
	second := first
	if whole {
		first = half(n)
		second = first
	} else {
		second = half(n - n/2)
	}
	s, err := pairs.Clustered(c, first, second)
	if err != nil {
		t.Fatal(err)
	}
	return ClusteredSums{All: int64(n), ClusteredSums: s, Whole: whole}
}

// TestClusteredSumsAreRefused: sums of other units, of another question, and of halves that are none.
func TestClusteredSumsAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 17))
	training, holdout := drawClustered(t, r, 200, 0.3, true), drawClustered(t, r, 101, 0.3, false)
	if err := holdout.Fits(101); err != nil {
		t.Error(err)
	}
	if err := training.Fits(200); err != nil {
		t.Error(err)
	}
	for name, s := range map[string]ClusteredSums{"other units": {All: 100, ClusteredSums: holdout.ClusteredSums}, "no sums": {All: 101}, "halves as a whole": {All: 101, ClusteredSums: holdout.ClusteredSums, Whole: true},
		"a whole as halves": {All: 200, ClusteredSums: training.ClusteredSums}} {
		if s.Fits(s.All) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if holdout.Fits(102) == nil {
		t.Error("sums of 101 units are taken for those of 102")
	}
	by := Planning{N: 101, Questions: 100, Deviations: 3, Level: 9, OneSide: true}
	c, err := training.Plan(by)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Find(holdout)
	if err != nil || found.Silent() || c.Widest(9) != 1 || c.Price(c.Failure()) != c.Dearest() || len(c.Passes()) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	other := holdout
	other.Difference = true
	for _, s := range []Statistic{RootSums{}, other, training, drawClustered(t, r, 100, 0.3, false)} {
		if found, err := c.Find(s); err == nil {
			t.Errorf("found %+v in %+v", found, s)
		}
	}
	// A half-width of one's own has one rank, and its interval is within it; one that none can have is refused with the least.
	by.N, by.Guess = 4000, &Guess{HalfWidth: 0.2}
	training = drawClustered(t, r, 9000, 0.3, true)
	c, err = training.Plan(by)
	if err != nil {
		t.Fatal(err)
	}
	if i, _ := c.Expected().Interval(9); len(c.Passes()) != 1 || i.High-c.Expected().Value() > 0.2 || c.Expected().Value()-i.Low > 0.2 || i.High-i.Low < 0.35 {
		t.Errorf("%d ranks, %+v", len(c.Passes()), i)
	}
	by.Guess = &Guess{HalfWidth: 0.001}
	if _, err := training.Plan(by); err == nil {
		t.Error("a half-width of a thousandth can be had")
	}
	// Without rows of one label in training nothing can be said, and that is known before.
	none := drawClustered(t, r, 200, 0.3, true)
	none.A, none.B, none.OwnA, none.OwnB = new(big.Int), new(big.Int), new(big.Int), new(big.Int)
	by = Planning{N: 101, Questions: 100, Deviations: 3, Level: 9}
	if c, err = none.Plan(by); err != nil {
		t.Fatal(err)
	}
	if found, err := c.Find(holdout); err != nil || !found.Silent() || found.Failed() || found.Margin() != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestClusteredReports: what a final report says of a holdout is about its own area and wider at higher levels, what is foreseen of it is about the training part's, and what is not planned for says nothing.
func TestClusteredReports(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 17))
	training, holdout := drawClustered(t, r, 6000, 0.3, true), drawClustered(t, r, 3000, 0.3, false)
	by := LastPlanning{N: 3000, Questions: 100, Level: 6}
	planned, err := holdout.ReadLast(training, by)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := holdout.ReadLast(nil, by)
	if err != nil {
		t.Fatal(err)
	}
	expected, err := training.ExpectLast(by)
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for _, level := range []float64{2, 6, 12} {
		low, high := planned.Interval(level)
		if !(low < planned.Value && planned.Value < high && high-low > last) {
			t.Errorf("[%v, %v] at %v around %v", low, high, level, planned.Value)
		}
		last = high - low
		if l, h := bare.Interval(level); l != 0 || h != 1 {
			t.Errorf("without a plan [%v, %v], with it [%v, %v]", l, h, low, high)
		}
		if l, h := expected.Interval(level); !(l < expected.Value && expected.Value < h && math.Abs((h-l)-(high-low)) < 0.2*(high-low)) {
			t.Errorf("[%v, %v] is foreseen around %v, [%v, %v] is said", l, h, expected.Value, low, high)
		}
	}
	other := training
	other.Difference = true
	for _, s := range []LastStatistic{other, PairSums{}} {
		if _, err := holdout.ReadLast(s, by); err == nil {
			t.Errorf("planned by %T", s)
		}
	}
	if _, err := training.ReadLast(training, by); err == nil {
		t.Error("a report of the training part")
	}
}

// TestVersionsOfMatchings: since version 5 of guess_and_check a wide pass, a failure and a report's sample of units of several rows pay for what is proved of matchings; holdouts of version 4 go on as they were. Nothing changes what a good guess gets.
func TestVersionsOfMatchings(t *testing.T) {
	now := must(t, Spec{Mechanism: GuessAndCheck, N: 3000, Training: 6000, Questions: 100})
	text, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	var before Guarantee
	if err := json.Unmarshal(bytes.Replace(text, []byte(`"version":5`), []byte(`"version":4`), 1), &before); err != nil || before.Version != 4 || !before.ChecksClusters() {
		t.Fatalf("version %d: %v", before.Version, err)
	}
	r := rand.New(rand.NewPCG(19, 17))
	training := drawClustered(t, r, 6000, 0.3, true)
	off := drawClustered(t, r, 3000, 0.9, false) // no sample of the training part's law
	checks := [2]clusteredCheck{}
	reports := [2]Reading{}
	for i, g := range []Guarantee{before, now} {
		m := g.guessAndCheck()
		c, err := training.Plan(m.planning(m.level(State{}), nil))
		if err != nil {
			t.Fatal(err)
		}
		checks[i] = c.(clusteredCheck)
		s, err := g.Close(State{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if reports[i], err = off.ReadLast(training, m.reportPlanning(s, 1)); err != nil {
			t.Fatal(err)
		}
	}
	width := func(c clusteredCheck, o pairs.Outcome, level float64) float64 {
		low, high := c.Interval(o, level)
		return high - low
	}
	const level = 9
	for name, o := range map[string]pairs.Outcome{"pass": {Rank: 1}, "wide": {Rank: 2}, "failure": {Cell: checks[0].Cells / 2, Loss: 1}} {
		old, new := width(checks[0], o, level), width(checks[1], o, level)
		// What is paid more is ln 2 of the level.
		least := width(checks[0], o, level+math.Ln2)
		if wider := name != "pass"; wider && math.Abs(new-least) > 1e-9 || !wider && math.Abs(new-old) > 1e-8 || wider && new < old+1e-3 {
			t.Errorf("%s: %v wide, it was %v, and %v at ln 2 more", name, new, old, least)
		}
	}
	old, new := reports[0], reports[1]
	low, high := old.Interval(level + 1 + math.Ln2)
	if l, h := new.Interval(level); math.Abs(l-low) > 1e-9 || math.Abs(h-high) > 1e-9 || !(0 < l && l < new.Value && new.Value < h && h < 1) {
		t.Errorf("a report says [%v, %v] of %v, want [%v, %v]", l, h, new.Value, low, high)
	}
}
