package thresholdout

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// gncReference is one numeric check of testdata/reference_numbers.json.
type gncReference struct {
	Name      string
	Inputs    json.RawMessage
	Expected  json.RawMessage
	Tolerance float64
}

func (r gncReference) read(t *testing.T, inputs, expected any) {
	t.Helper()
	if err := errors.Join(json.Unmarshal(r.Inputs, inputs), json.Unmarshal(r.Expected, expected)); err != nil {
		t.Fatal(r.Name, err)
	}
}

func gncReferences(t *testing.T, name string) (found []gncReference) {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference_numbers.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []gncReference
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Name == name {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no reference numbers for %s", name)
	}
	return found
}

// TestMarginsAgainstReference: the margin of a half-width is that width minus at most the tolerance of the moment generating function
// at its far end, and at least seven tenths of it, which is more than overshoot is worth; and it is never below the margin that Hoeffding's inequality gives, nor far above.
func TestMarginsAgainstReference(t *testing.T) {
	margin := func(n int64, confidence, guess, width float64) float64 {
		// With one question the level is ln(2/beta).
		m := &guessAndCheck{Head: Head{N: n, Training: n, Questions: 1, Confidence: confidence}, Deviations: 2}
		c, err := m.plan(State{}, StatisticInput{Training: mean(guess, n), Guess: &Guess{Value: &guess, HalfWidth: width}})
		if err != nil {
			return 0
		}
		return c.Expected().Margin()
	}
	for _, r := range gncReferences(t, "gnc_mgf_width") {
		var in struct {
			N       int64
			P, Beta float64
			Upper   bool
		}
		var want float64
		r.read(t, &in, &want)
		p1, width := in.P, 0.0
		if !in.Upper {
			p1 = 1 - p1 // the mirror image: below a mean of p is above one of 1-p
		}
		// A guess whose far end is p1; where its other end is nearer to a half, it reaches 0, and nothing is to be shown there.
		if width = p1 / 2; p1 > 0.5 {
			width = p1 - 0.5
		}
		if got := width - margin(in.N, 1-2*in.Beta, p1-width, width); got > want+r.Tolerance+4*gridError || got < 0.7*want {
			t.Errorf("n=%d p=%v beta=%v upper=%v: the tolerance is %v, the reference %v", in.N, in.P, in.Beta, in.Upper, got, want)
		}
	}
	for _, r := range gncReferences(t, "gnc_max_valid_gamma") {
		var in struct {
			Beta, Tau float64
			N         int64
		}
		var want struct{ Exact float64 }
		r.read(t, &in, &want)
		if got := margin(in.N, 1-in.Beta, 0.5, in.Tau); got < want.Exact-1e-8 || got > want.Exact*1.2+1e-8 {
			t.Errorf("%+v: a guess of 1/2 may be %v away, by Hoeffding %v", in, got, want.Exact)
		}
	}
}

// stepper is one step of the mechanism, honest or with a fault.
type stepper func(Guarantee, State, StatisticInput) (Output, State, error)

// transcripts sums, over every run of k questions, twice the probability e^-level that its next interval misses at one end. It walks the
// mechanism's own states: at each of them the outcomes of one question, of a condition that a tenth of the units satisfy, are made by holdouts that bring them about, and a failure
// counts as often as there are things that it can say.
func transcripts(t *testing.T, p Guarantee, step stepper) (total float64) {
	t.Helper()
	at := func(h float64, spread int64) RootSums {
		r := someUnits(p.N, p.N/10, h, spread)
		r.Partial = true
		return r
	}
	holdouts := []RootSums{at(0.5, grid/8), at(0.5, grid/2), at(0, 0)} // a pass, a wide one, a failure
	training := someUnits(p.Training, p.Training/10, 0.5, grid/8)
	training.Partial = true
	runs := map[State]float64{{}: 1}
	for range p.Questions {
		next := map[State]float64{}
		for s, n := range runs {
			total += n * 2 * math.Exp(-p.guessAndCheck().level(s))
			for outcome, holdout := range holdouts {
				in := StatisticInput{Training: training, Holdout: holdout}
				c, err := p.guessAndCheck().plan(s, in)
				if err != nil {
					t.Fatal(err)
				}
				o, err := c.Find(holdout)
				if err != nil || o.Failed() != (outcome == 2) || o.Wide() != (outcome == 1) {
					t.Fatalf("outcome %d is %+v, %v", outcome, o, err)
				}
				said := 1.0
				if outcome == 2 {
					said = math.Exp(c.Price(o).Float()) // as many as this one is paid for as one of
				}
				_, to, err := step(p, s, in)
				if err != nil && !errors.Is(err, ErrNoTokens) {
					t.Fatal(err)
				}
				if err == nil {
					next[to] += n * said
				}
			}
		}
		runs = next
	}
	return total
}

// TestTranscriptsArePaidFor: the union over all transcripts costs no more than beta, and the check sees the faults: a failure whose cell, whose rank, whose
// token is not paid for, and a wide pass that does not count.
func TestTranscriptsArePaidFor(t *testing.T) {
	const beta = 0.05
	remember := func(change func(before State, a *account, next *State)) stepper {
		return func(p Guarantee, s State, in StatisticInput) (Output, State, error) {
			out, next, err := StepStatistic(p, s, in)
			if err == nil {
				a := accountOf(next)
				change(s, &a, &next)
				next.Memory = a
			}
			return out, next, err
		}
	}
	for _, k := range []int64{2, 7, 20} {
		p := must(t, Spec{Mechanism: GuessAndCheck, N: 2000, Training: 3000, Questions: k, Tokens: k})
		cost := transcripts(t, p, StepStatistic)
		t.Logf("%d questions: all transcripts cost %.6f of the probability of error", k, cost/beta)
		if half := beta / 2; !(cost <= half*(1+1e-9)) || cost < 0.75*half { // the other half is for the report
			t.Errorf("%d questions: all transcripts cost %v", k, cost)
		}
		if k == 2 {
			continue // one question's outcome tells nothing yet
		}
		for fault, step := range map[string]stepper{
			"cells":       remember(func(before State, a *account, next *State) { a.Paid = 0 }),
			"wide passes": remember(func(before State, a *account, next *State) { a.Wide = 0 }),
			"tokens":      remember(func(before State, a *account, next *State) { next.Tokens = before.Tokens / 2 }),
			"ranks": remember(func(before State, a *account, next *State) {
				if next.Tokens > before.Tokens {
					a.Paid -= moments.Nats(math.Log(4) * (1 << 20))
				}
			}),
		} {
			if cost := transcripts(t, p, step); cost <= beta/2 {
				t.Errorf("%d questions: %s that are not paid for cost only %v", k, fault, cost)
			}
		}
	}
}

// someUnits are sums of an equation: a condition that holds in some of all units, whose values are spread steps below and above a mean.
func someUnits(all, units int64, mean float64, spread int64) RootSums {
	at := int64(mean * float64(grid))
	r := RootSums{All: all, Sums: moments.Sums{Units: units}}
	for i := range units {
		x := at + spread
		if i%2 == 1 {
			x = at - spread
		}
		x = min(max(x, 0), grid)
		r.Sum += x
		r.Squares.AddSquare(x)
	}
	return r
}

// gncParams draws a guarantee, a state of it, and a guess.
func gncParams(t *rapid.T) (Guarantee, State, *Guess) {
	p, err := Plan(Spec{Mechanism: GuessAndCheck, N: rapid.Int64Range(2, 1_000_000).Draw(t, "n"), Training: rapid.Int64Range(1, 1_000_000).Draw(t, "training"),
		Questions: rapid.Int64Range(1, 5000).Draw(t, "k"), Confidence: rapid.SampledFrom([]float64{0.5, 0.95, 0.999}).Draw(t, "confidence")})
	if err != nil {
		t.Fatal(err)
	}
	s := State{Questions: rapid.Int64Range(0, p.Questions-1).Draw(t, "asked")}
	s.Tokens = rapid.Int64Range(0, min(p.Tokens-1, s.Questions)).Draw(t, "failed")
	s.Memory = account{Wide: rapid.Int64Range(0, s.Questions-s.Tokens).Draw(t, "wide"), Paid: moments.Nats(s.Tokens * rapid.Int64Range(0, 10<<20).Draw(t, "paid"))}
	if !rapid.Bool().Draw(t, "guess") {
		return p, s, nil
	}
	g := &Guess{}
	if rapid.Bool().Draw(t, "own") {
		v := rapid.Float64Range(0, 1).Draw(t, "value")
		g.Value = &v
	}
	if rapid.Bool().Draw(t, "width") {
		g.HalfWidth = rapid.Float64Range(1e-6, 1).Draw(t, "half_width")
	}
	return p, s, g
}

// TestGuessStepLaws: whether a question is refused depends on no holdout row; answers are pure, on the grid, within their
// interval; the interval has the holdout mean in it, is at most as wide as the half-width asked for, and what Expected says.
func TestGuessStepLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, s, g := gncParams(t)
		in := Input{Training: Mean{N: p.Training, Sum: rapid.Int64Range(0, p.Training*grid).Draw(t, "training sum")},
			Holdout: Mean{N: p.N, Sum: rapid.Int64Range(0, p.N*grid).Draw(t, "holdout sum")}, Guess: g}
		if rapid.Bool().Draw(t, "near") { // else few guesses pass
			in.Holdout.Sum = int64(float64(in.Training.Sum) / float64(p.Training) * float64(p.N))
		}
		value, expected, refusal := p.Expected(s, in.Training, g)
		out, next, err := Step(p, s, in, Keyed{Query: "q"})
		var width *WidthError
		if refusal != nil {
			if !errors.As(err, &width) || !reflect.DeepEqual(err, refusal) || next != s {
				t.Fatalf("Expected refuses with %v, Step with %v", refusal, err)
			}
			if width.HalfWidth >= width.Least {
				t.Fatalf("%v is refused, and the least is %v", width.HalfWidth, width.Least)
			}
			again := *g
			if again.HalfWidth = width.Least; again.HalfWidth <= 1 {
				if _, _, err := p.Expected(s, in.Training, &again); err != nil {
					t.Fatalf("the least width is refused: %v", err)
				}
			}
			return
		}
		again, same, err2 := Step(p, s, in, Keyed{Query: "q"})
		if err != nil || err2 != nil || !reflect.DeepEqual(out, again) || next != same {
			t.Fatalf("%+v %v, then %+v %v", out, err, again, err2)
		}
		i, h := out.Interval, float64(in.Holdout.Sum)/float64(grid)/float64(p.N)
		if !(0 <= i.Low && i.Low <= out.Value && out.Value <= i.High && i.High <= 1) || out.Value*float64(grid) != math.Trunc(out.Value*float64(grid)) {
			t.Fatalf("value %v, interval %+v", out.Value, i)
		}
		if h < i.Low-1e-12 || h > i.High+1e-12 {
			t.Fatalf("the holdout mean %v is not in %+v", h, i)
		}
		if out.Tokens == 0 && out.Value != value {
			t.Fatalf("a guess of %v passed as %v", value, out.Value)
		}
		if g != nil && g.HalfWidth > 0 && out.Tokens == 0 && (i.High > out.Value+g.HalfWidth+1e-12 || i.Low < out.Value-g.HalfWidth-1e-12) {
			t.Fatalf("%+v is wider than %v", i, g.HalfWidth)
		}
		if narrowest := out.Tokens == 0 && accountOf(next).Wide == accountOf(s).Wide; narrowest && !reflect.DeepEqual(i, expected) {
			t.Fatalf("the interval %+v, expected was %+v", i, expected)
		}
		if next.Questions != s.Questions+1 || next.Tokens != s.Tokens+out.Tokens || accountOf(next).Wide+out.Tokens > accountOf(s).Wide+1 {
			t.Fatalf("%+v after %+v", next, s)
		}
	})
}

// TestGuessAndCheckEnds: with every guess wrong the tokens are spent one by one, and then new questions are refused.
func TestGuessAndCheckEnds(t *testing.T) {
	p := must(t, Spec{Mechanism: GuessAndCheck, N: 1000, Training: 1000, Questions: 50, Tokens: 7})
	state, last := State{}, 0.0
	for range p.Tokens {
		out, next, err := Step(p, state, Input{Training: mean(0.9, p.Training), Holdout: mean(0.2, p.N)}, Seeded{Question: state.Questions})
		if err != nil || out.Tokens != 1 || out.Source != FromHoldout {
			t.Fatalf("%+v, %v", out, err)
		}
		if width := out.Interval.High - out.Interval.Low; width < last {
			t.Errorf("the interval after %d failures is %v wide, before %v", state.Tokens, width, last)
		} else {
			last = width
		}
		state = next
	}
	if _, s, err := Step(p, state, Input{}, nil); !errors.Is(err, ErrNoTokens) || s != state {
		t.Errorf("with no tokens left: %v", err)
	}
}

func TestAuto(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want Name
	}{
		{Spec{N: 10_000, Training: 20_000, Questions: 100}, GuessAndCheck},
		{Spec{N: 10_000, Training: 20_000, Questions: 100, Tokens: 5}, GuessAndCheck},
		{Spec{N: 10_000, Questions: 100}, Gaussian},
		{Spec{N: 10_000, Training: 20_000, Questions: 100, HalfWidth: 0.1}, Gaussian},
		{Spec{N: 10_000, Training: 20_000, Questions: 100, Sigma: 0.01}, Gaussian},
		{Spec{N: 10_000, Training: 10, Questions: 100}, Gaussian}, // guesses of ten rows are worth little
		{Spec{N: 10_000, Training: 10, Questions: 100, Tokens: 5}, GuessAndCheck},
	} {
		c.spec.Mechanism = Auto
		if p := must(t, c.spec); p.Mechanism != c.want {
			t.Errorf("%+v: auto chooses %s", c.spec, p.Mechanism)
		}
	}
	if _, err := Plan(Spec{Mechanism: Auto, N: 10_000, Questions: 100, Tokens: 5}); err == nil {
		t.Error("tokens without a training part were accepted")
	}
}

// TestAloneReadsEachEnd: by the first answer alone each end is read at its own level, for a p-value may be about one side; the answer's own interval is what both sides together may miss by, and narrower.
func TestAloneReadsEachEnd(t *testing.T) {
	p := must(t, Spec{Mechanism: GuessAndCheck, N: 5000, Training: 5000, Questions: 100})
	yes := func(count int64) RootSums {
		sums := RootSums{All: 5000, Binary: true, Sums: moments.Sums{Units: 5000, Sum: count * grid}}
		sums.Squares.AddSums(sums.Sum, grid)
		return sums
	}
	spread := someUnits(5000, 5000, 0.4, grid/8)
	for name, in := range map[string]StatisticInput{"yes/no": {Training: yes(2000), Holdout: yes(2010)}, "a mean": {Training: spread, Holdout: spread}} {
		out, _, err := StepStatistic(p, State{}, in)
		if err != nil || out.Tokens != 0 {
			t.Fatalf("%s: %+v %v", name, out, err)
		}
		level := p.guessAndCheck().level(State{})
		at, ok := p.Alone(State{}, State{}, out)
		if !ok {
			t.Fatalf("%s: the first answer has no reading of its own", name)
		}
		low, high := at(level)
		old := out.found.(rootFinding).check
		old.OneSide = false
		wantLow, wantHigh := old.Interval(out.found.(rootFinding).Outcome, level)
		if low != wantLow || high != wantHigh || low >= out.Interval.Low || high <= out.Interval.High {
			t.Errorf("%s: [%v, %v] alone, want [%v, %v], in the answer %+v", name, low, high, wantLow, wantHigh, *out.Interval)
		}
	}
}

// TestAloneReadsEachEndOfAll: what [TestAloneReadsEachEnd] says of means holds of every kind of question. A pass is read alone as before version 4, when each end was read by itself; a failure of what is no mean is
// read as it was printed, for its ends always were. A quantile's span, which was printed at a level, is known at that level, and at no higher one.
func TestAloneReadsEachEndOfAll(t *testing.T) {
	const units = 5000
	p := must(t, Spec{Mechanism: GuessAndCheck, N: units, Training: units, Questions: 100})
	m := p.guessAndCheck()
	level := m.level(State{})
	some := func(mean float64) RootSums {
		r := someUnits(units, units/3, mean, grid/8)
		r.Partial = true
		return r
	}
	r := rand.New(rand.NewPCG(7, 19))
	sums := map[string]func(off float64) Statistic{
		"condition":  func(off float64) Statistic { return some(0.4 + off) },
		"difference": func(off float64) Statistic { return DifferenceSums{some(0.4 + off), some(0.3)} },
		"weighted": func(off float64) Statistic {
			var w WeightedSums
			for i := range int64(units) {
				b := grid/2 + i%2*grid/4
				w.Add(int64((0.4+off)*float64(b)), b)
			}
			return w
		},
		"joint": func(off float64) Statistic {
			mean := someUnits(units, units, 0.4+off, grid/8)
			return JointSums{Means: []RootSums{mean, someUnits(units, units, 0.2, grid/8)}, Shares: []float64{0.9, 0.1}, High: 2, Make: func(means []Known, _ int64) Known {
				return Known{means[0].Value + means[1].Value, means[0].Low + means[1].Low, means[0].High + means[1].High}
			}}
		},
		"area": func(off float64) Statistic { return drawPairs(t, r, units, off) },
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		training := sums[name](0)
		for _, off := range []float64{0, 0.5} {
			in := StatisticInput{Training: training, Holdout: sums[name](off)}
			out, _, err := StepStatistic(p, State{}, in)
			if err != nil || (out.Tokens == 1) != (off > 0) {
				t.Fatalf("%s: %+v %v", name, out, err)
			}
			before := m.planning(level, nil)
			before.OneSide = false
			c, err := training.Plan(before)
			if err != nil {
				t.Fatal(err)
			}
			if f, isRoot := out.found.(rootFinding); isRoot && f.Failed() {
				continue // its cells are others
			}
			found, err := c.Find(in.Holdout)
			if err != nil || found.Failed() != (off > 0) {
				t.Fatalf("%s: %+v %v", name, found, err)
			}
			at, ok := p.Alone(State{}, State{}, out)
			if !ok {
				t.Fatalf("%s: the first answer has no reading of its own", name)
			}
			want, _ := found.Interval(level)
			if low, high := at(level); low != want.Low || high != want.High {
				t.Errorf("%s, failed %v: [%v, %v] alone, want [%v, %v]", name, off > 0, low, high, want.Low, want.High)
			}
			if narrower := out.Interval.Low > want.Low && out.Interval.High < want.High; narrower != (off == 0) {
				t.Errorf("%s, failed %v: the answer %+v, alone [%v, %v]", name, off > 0, *out.Interval, want.Low, want.High)
			}
		}
	}
	training := drawQuantile(r, units, 200, 1)
	for _, failed := range []bool{false, true} {
		power := 1.0
		if failed {
			power = 4
		}
		out, _, err := StepStatistic(p, State{}, StatisticInput{Training: training, Holdout: drawQuantile(r, units, 200, power)})
		if err != nil || (out.Tokens == 1) != failed {
			t.Fatalf("quantile: %+v %v", out, err)
		}
		printed := level - math.Ln2 + math.Log(20.0/19)
		if failed {
			printed = level + math.Log(10)
		}
		at, ok := p.Alone(State{}, State{}, out)
		if !ok {
			t.Fatal("the first answer has no reading of its own")
		}
		if low, high := at(printed - 1e-9); low != out.Interval.Low || high != out.Interval.High {
			t.Errorf("quantile, failed %v: [%v, %v] alone, printed %+v", failed, low, high, *out.Interval)
		}
		if low, high := at(printed + 1e-9); low != 0 || high != 1 {
			t.Errorf("quantile, failed %v: [%v, %v] at a higher level than it was printed at", failed, low, high)
		}
	}
}
