package thresholdout

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// rootOfValues are the sums of a mean over all units.
func rootOfValues(values []float64, binary bool) RootSums {
	r := RootSums{All: int64(len(values)), Binary: binary, Higher: new(Higher)}
	for _, x := range values {
		steps := int64(x*float64(grid) + 0.5)
		square := int64(x*x*float64(grid) + 0.5)
		r.Units, r.Sum = r.Units+1, r.Sum+steps
		r.Squares.AddSquare(steps)
		r.Higher.Third.AddProduct(steps, square)
		r.Higher.Fourth.AddSquare(square)
	}
	return r
}

func stepLast(t testing.TB, p Guarantee, s State, training, holdout LastStatistic, price int64) (Output, State) {
	t.Helper()
	out, next, err := StepLast(p, s, []LastInput{{Training: training, Holdout: holdout}}, price)
	if err != nil {
		t.Fatal(err)
	}
	return out[0], next
}

// TestLastAnswersCover: an analyst asks about fair coins in the first round, and in the last about the rows' agreement with those answers, as a yes/no mean and
// as a function that varies little; every true mean is 1/2. No more than half of runs have a miss, and no more than a tenth (false alarm 1e-6 each). Red
// where the level forgets what the first round released: the same answers read at the level of a batch are missed in nearly all runs.
func TestLastAnswersCover(t *testing.T) {
	const runs = 60
	for _, confidence := range []float64{0.5, 0.9} {
		p := must(t, Spec{Mechanism: Gaussian, N: 500, Training: 500, Questions: 402, Rounds: 2, Confidence: confidence})
		one := must(t, Spec{Mechanism: Gaussian, N: 500, Training: 500, Questions: 402, Rounds: 1, Confidence: confidence})
		missed, naive := 0, 0
		for run := range uint64(runs) {
			r := rand.New(rand.NewPCG(run, 31))
			first := p.RoundSize(0)
			rows := coins(r, p.N, first)
			state, weights := State{}, make([]float64, first)
			for j := range first {
				out, next, err := Step(p, state, Input{Holdout: column(rows, int(j))}, Seeded{Seed: run, Question: state.Questions})
				if err != nil {
					t.Fatal(err)
				}
				weights[j], state = out.Value-0.5, next
			}
			state = p.EndRound(state)
			var yes, small, training []float64
			for _, row := range rows {
				score := 0.0
				for j, w := range weights {
					score += w * float64(2*row[j]-1)
				}
				bit := 0.0
				if score > 0 {
					bit = 1
				}
				yes, small = append(yes, bit), append(small, 0.45+bit/10)
				training = append(training, 0.45+float64(r.IntN(2))/10)
			}
			some, someNaive := false, false
			for _, question := range []struct {
				holdout, training LastStatistic
			}{{rootOfValues(yes, true), nil}, {rootOfValues(small, false), rootOfValues(training, false)}} {
				var out Output
				out, state = stepLast(t, p, state, question.training, question.holdout, 1)
				some = some || out.Interval.Low > 0.5 || out.Interval.High < 0.5
				out, _ = stepLast(t, one, State{}, question.training, question.holdout, 1)
				someNaive = someNaive || out.Interval.Low > 0.5 || out.Interval.High < 0.5
			}
			if some {
				missed++
			}
			if someNaive {
				naive++
			}
		}
		t.Logf("confidence %v: %d of %d runs missed, at the level of a batch %d", confidence, missed, runs, naive)
		if err := stattest.AtMost(missed, runs, 1-confidence, falseAlarm); err != nil {
			t.Error(err)
		}
		if stattest.AtMost(naive, runs, 1-confidence, falseAlarm) == nil {
			t.Errorf("confidence %v: the level of a batch was missed only %d times of %d", confidence, naive, runs)
		}
	}
}

// TestBatchCovers: questions fixed beforehand about laws that an interval fears: rare large values, values near an end, and few units under a condition. In no
// more than a share of runs of 1-confidence does any of ten intervals miss (false alarm 1e-6); at half the width nearly always some do.
func TestBatchCovers(t *testing.T) {
	const runs, n = 200, 400
	laws := []struct {
		mean float64
		draw func(r *rand.Rand) float64
	}{
		{0.01 + 0.99*0.05, func(r *rand.Rand) float64 {
			if r.Float64() < 0.01 {
				return 1
			}
			return r.Float64() / 10
		}},
		{1 - 0.004*0.5, func(r *rand.Rand) float64 {
			if r.Float64() < 0.004 {
				return r.Float64()
			}
			return 1
		}},
		{0.5, func(r *rand.Rand) float64 { return []float64{0.5, 0.5, 0.5, 0, 1}[r.IntN(5)] }},
		{1.0 / 3, func(r *rand.Rand) float64 { x := r.Float64(); return x * x }},
		{0.02, func(r *rand.Rand) float64 { return float64(min(r.IntN(50), 1)) }},
	}
	laws[4].mean = 0.98
	for _, confidence := range []float64{0.5, 0.9} {
		p := must(t, Spec{Mechanism: Gaussian, N: n, Training: n, Questions: 10, Rounds: 1, Confidence: confidence})
		missed, narrow := 0, 0
		for run := range uint64(runs) {
			r := rand.New(rand.NewPCG(run, 32))
			state, some, someNarrow := State{}, false, false
			for j := range 10 {
				l := laws[j%len(laws)]
				values, training := make([]float64, n), make([]float64, n)
				for i := range values {
					values[i], training[i] = l.draw(r), l.draw(r)
				}
				a, b := rootOfValues(values, j%len(laws) == 4), rootOfValues(training, j%len(laws) == 4)
				if j >= len(laws) { // the same under a condition that a tenth of the units satisfy
					a, b = rootOfValues(values[:n/10], false), rootOfValues(training[:n/10], false)
					a.Partial, b.Partial, a.All, b.All = true, true, n, n
				}
				var known LastStatistic = b
				if run%2 == 1 { // of every other holdout nothing says how much its values vary
					known = nil
				}
				var out Output
				out, state = stepLast(t, p, state, known, a, 1)
				low, high := out.Interval.Low, out.Interval.High
				some = some || l.mean < low || l.mean > high
				someNarrow = someNarrow || math.Abs(l.mean-(low+high)/2) > (high-low)/4
			}
			if some {
				missed++
			}
			if someNarrow {
				narrow++
			}
		}
		t.Logf("confidence %v: %d of %d runs missed, at half the width %d", confidence, missed, runs, narrow)
		if err := stattest.AtMost(missed, runs, 1-confidence, falseAlarm); err != nil {
			t.Error(err)
		}
		if stattest.AtMost(narrow, runs, 1-confidence, falseAlarm) == nil {
			t.Errorf("confidence %v: half the width was missed only %d times of %d", confidence, narrow, runs)
		}
	}
}

// lastCase is a guarantee in rounds, the state before its last one, and a mean over its units with the training part's.
type lastCase struct {
	p                 Guarantee
	s                 State
	holdout, training RootSums
}

func drawLast(t *rapid.T) lastCase {
	n := rapid.Int64Range(100, 1000).Draw(t, "n")
	k := rapid.Int64Range(1, 50).Draw(t, "k")
	p, err := Plan(Spec{Mechanism: Gaussian, N: n, Training: n, Questions: k, Rounds: rapid.Int64Range(1, min(k, 3)).Draw(t, "rounds"),
		Confidence: rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.999}).Draw(t, "confidence")})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 33))
	binary := rapid.Bool().Draw(t, "binary")
	middle, spread := rapid.Float64Range(0, 1).Draw(t, "middle"), rapid.Float64Range(0, 1).Draw(t, "spread")
	draw := func() (values []float64) {
		for range n {
			x := min(max(middle+spread*(r.Float64()-0.5), 0), 1)
			if binary {
				x = float64(int(r.Float64() + x))
			}
			values = append(values, x)
		}
		return values
	}
	s := State{Rounds: p.Rounds - 1}
	for round := range p.Rounds - 1 {
		s.Questions += p.RoundSize(round)
	}
	return lastCase{p, s, rootOfValues(draw(), binary), rootOfValues(draw(), binary)}
}

// TestLastAnswerIsNeverWider: a question of which the training part says what the holdout says has no wider interval than the plain answer has that would be given
// without what the sample says; and where the training part says something else, as that of another question, none that is half as wide again.
func TestLastAnswerIsNeverWider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawLast(t)
		plain, _, err := Step(c.p, c.s, Input{Holdout: Mean{Sum: c.holdout.Sum, N: c.holdout.All}}, Seeded{})
		if err != nil {
			t.Fatal(err)
		}
		was := plain.Interval.High - plain.Interval.Low
		training, limit := c.holdout, was*(1+1e-9)
		if rapid.Bool().Draw(t, "another question") {
			training, limit = drawLast(t).training, 1.5*was
			training.All, training.Units = c.p.Training, c.p.Training // its moments are what is planned by
			training.Sum = min(training.Sum, training.All*grid)
			if training.Check() != nil {
				return
			}
			training.Binary = false
		}
		in := LastInput{Training: training, Holdout: c.holdout}
		if rapid.Bool().Draw(t, "without a training part") {
			in.Training, limit = nil, was*(1+1e-9)
		}
		outs, _, err := StepLast(c.p, c.s, []LastInput{in}, 1)
		if err != nil {
			t.Fatal(err)
		}
		out := outs[0]
		if out.Value != plain.Value {
			t.Fatalf("the answer is %v, a plain one %v", out.Value, plain.Value)
		}
		if is := out.Interval.High - out.Interval.Low; is > limit {
			t.Fatalf("%+v is %v wide, a plain answer's %+v is %v", out.Interval, is, plain.Interval, was)
		}
		if out.Interval.Low > out.Value || out.Interval.High < out.Value {
			t.Fatalf("%v is not in %+v", out.Value, out.Interval)
		}
	})
}

// TestLastAnswersAreNested: at its own level an answer is what it was recorded as, and the larger the level the narrower it is, as p-values ask.
func TestLastAnswersAreNested(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawLast(t)
		shares := rapid.Int64Range(1, 3).Draw(t, "price")
		if c.p.RoundSize(c.s.Rounds) < shares {
			return
		}
		outs, _, err := StepLast(c.p, c.s, []LastInput{{Training: c.training, Holdout: c.holdout}}, shares)
		if err != nil {
			t.Fatal(err)
		}
		out := outs[0]
		if low, high, ok := c.p.IntervalAt(c.s, out, c.p.Level()); !ok || math.Abs(low-out.Interval.Low) > 1e-12 || math.Abs(high-out.Interval.High) > 1e-12 {
			t.Fatalf("[%v, %v] at the guarantee's own level, recorded as %+v", low, high, out.Interval)
		}
		a, b := math.Exp(-rapid.Float64Range(0.01, 20).Draw(t, "-ln of a level")), math.Exp(-rapid.Float64Range(0.01, 20).Draw(t, "and of another"))
		low1, high1, ok1 := c.p.IntervalAt(c.s, out, min(a, b))
		low2, high2, ok2 := c.p.IntervalAt(c.s, out, max(a, b))
		if !ok1 || !ok2 || low2 < low1-1e-12 || high2 > high1+1e-12 {
			t.Fatalf("at %v [%v, %v], at %v [%v, %v]", min(a, b), low1, high1, max(a, b), low2, high2)
		}
	})
}

// TestLastSharesAddUp: whatever a round's questions cost, and however many numbers they have, what they have of the probability of error is no more than the plain
// answers of the round would have had. Red where a number of several has the share of all.
func TestLastSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawLast(t)
		g := c.p.gaussian()
		n, size := float64(c.p.N), c.p.RoundSize(c.s.Rounds)
		total, allowed := 0.0, 0.0
		released := g.releasedAtMost(c.s)
		at := g.lastLevel(c.s, g, 1)
		// The share of an event of probability e^-level over a fresh sample, at the m that is best for one plain answer.
		share := func(level float64) float64 {
			if released == 0 {
				return math.Exp(-level)
			}
			m, best := 1.0, math.Inf(1)
			for i := 1.0; i < n; i++ {
				if x := (n/i-1)*released - (1-i/n)*at; x < best {
					m, best = i, x
				}
			}
			return math.Exp((n/m-1)*released - (1-m/n)*level)
		}
		for left := size; left > 0; {
			price := rapid.Int64Range(1, left).Draw(t, "price")
			count := rapid.IntRange(1, 20).Draw(t, "count")
			total += float64(count) * share(g.lastLevel(c.s, g, lastShares(price, count)))
			left -= price
		}
		allowed = float64(size) * math.Exp(-2*n*g.HalfWidth*g.HalfWidth)
		if released > 0 {
			allowed = float64(size) * share(2*n*g.HalfWidth*g.HalfWidth)
		}
		if total > allowed*(1+1e-6) {
			t.Fatalf("shares of %v, of %v", total, allowed)
		}
	})
}

// TestPlainLastAnswersShareTheM: read at another level, a plain answer of the last round has the m of the round's other answers, for one budget pays for both: at that m its share is no more
// than one answer's. Red where its half-width is that of the m which would be best at that level.
func TestPlainLastAnswersShareTheM(t *testing.T) {
	for _, n := range []int64{300, 3000} {
		p := must(t, Spec{Mechanism: Gaussian, N: n, Questions: 9, Rounds: 3, Capped: 1e-12}) // no cut is narrower
		g, s := p.gaussian(), State{Questions: 6, Rounds: 2}
		out, _, err := Step(p, s, Input{Holdout: mean(0.5, n)}, Seeded{})
		if err != nil {
			t.Fatal(err)
		}
		units, released := float64(n), g.releasedAtMost(s)
		share := func(m, w float64) float64 { return math.Exp((units/m-1)*released - 2*(units-m)*w*w) }
		best := func(w float64) (m float64) {
			m = 1
			for i := 2.0; i < units; i++ {
				if share(i, w) < share(m, w) {
					m = i
				}
			}
			return m
		}
		for _, level := range []float64{0.5, 0.2, 0.05, 1e-3, 1e-6} {
			planned, ok := g.reread(level, 0)
			low, high, known := p.IntervalAt(s, out, level)
			if !ok || !known || low <= 0 || high >= 1 {
				t.Fatalf("n=%d: [%v, %v] at %v", n, low, high, level)
			}
			w := (high-low)/2 - gridError
			if got, one := share(best(g.HalfWidth), w), share(best(planned.HalfWidth), planned.HalfWidth); got > one*(1+1e-6) {
				t.Errorf("n=%d at %v: a share of %v, one answer has %v", n, level, got, one)
			}
		}
	}
}

// TestLastAnswersNeedALastRound: in no other state does a mechanism give one.
func TestLastAnswersNeedALastRound(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 500, Training: 500, Questions: 10, Rounds: 2})
	r := rootOfValues(make([]float64, 500), true)
	if _, _, err := StepLast(p, State{}, []LastInput{{Holdout: r}}, 1); err == nil {
		t.Error("a last answer in the first round")
	}
	if _, _, err := StepLast(must(t, Spec{Mechanism: Gaussian, N: 500, Questions: 10}), State{Questions: 9}, []LastInput{{Holdout: r}}, 1); err == nil {
		t.Error("a last answer without rounds")
	}
	s := p.EndRound(State{Questions: 5, InRound: 5})
	if _, next := stepLast(t, p, s, nil, r, 2); next.Questions != 7 || next.InRound != 2 {
		t.Errorf("a question of two is counted as %+v after %+v", next, s)
	}
	if _, _, err := StepLast(p, s, []LastInput{{Holdout: r}}, 6); err == nil {
		t.Error("six questions of a round of five")
	}
}

// TestLastQuantilesAreNested: what counts say at a lower level is within what they say at a higher one, of all units and under a condition.
func TestLastQuantilesAreNested(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rungs = 300
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 34))
		units := rapid.Int64Range(1, 400).Draw(t, "units")
		q := QuantileSums{All: 400, P: rapid.Float64Range(0.01, 0.99).Draw(t, "p"), Exact: units == 400, Units: units * grid,
			Below: make([]int64, rungs), Upto: make([]int64, rungs)}
		for range units {
			at := r.IntN(rungs)
			for i := range rungs {
				if at < i {
					q.Below[i] += grid
				}
				if at <= i {
					q.Upto[i] += grid
				}
			}
		}
		by := LastPlanning{N: 400, Questions: 1, Level: rapid.Float64Range(1, 10).Draw(t, "planned level")}
		training := q
		training.Units = rapid.Int64Range(1, 400).Draw(t, "units of the training part") * grid
		reading, err := q.ReadLast(training, by)
		if err != nil {
			t.Fatal(err)
		}
		level := rapid.Float64Range(0.1, 15).Draw(t, "level")
		low, high := reading.Interval(level)
		wideLow, wideHigh := reading.Interval(level + rapid.Float64Range(0, 5).Draw(t, "more"))
		if wideLow > low || wideHigh < high {
			t.Fatalf("[%v, %v], and [%v, %v] at a higher level", low, high, wideLow, wideHigh)
		}
	})
}

// TestCutsNeedAWholeShare: of numbers that share the share of one question none is cut as a plain answer is, whose cut has a share of one question by itself. Red where every mean over all units is.
func TestCutsNeedAWholeShare(t *testing.T) {
	const n = 400
	p := must(t, Spec{Mechanism: Gaussian, N: n, Training: n, Questions: 10, Rounds: 1})
	values := make([]float64, n)
	for i := range values {
		values[i] = []float64{0, 0.02}[i%2]
	}
	few := rootOfValues(values, false)
	few.Higher = nil
	in := []LastInput{{Holdout: few}, {Holdout: few}, {Holdout: few}} // without a training part nothing but the range is known
	several, _, err := StepLast(p, State{}, in, 1)
	if err != nil {
		t.Fatal(err)
	}
	one, _, err := StepLast(p, State{}, in[:1], 1)
	if err != nil {
		t.Fatal(err)
	}
	if i := one[0].Interval; !strings.HasPrefix(i.Bound, MethodRounds+"+chernoff") || i.High > 0.04 {
		t.Errorf("a mean near 0 by itself: %+v", i)
	}
	want := 0.01 + math.Sqrt(math.Log(2*3*10/(0.9*0.05))/(2*n))
	for _, out := range several {
		if math.Abs(out.Interval.High-want) > 1e-6 || out.Interval.Bound != MethodRounds {
			t.Errorf("one of three: %+v, want it up to %v", out.Interval, want)
		}
	}
}

// TestLastAnswersWithoutTraining: where nothing says how much a function varies, as of predictions that came with the question, a batch reads it by its sample beside, from a share that nothing else
// has: the interval is less than a third of a plain one. In several rounds there is no such share.
func TestLastAnswersWithoutTraining(t *testing.T) {
	const n = 30_000
	r := rand.New(rand.NewPCG(1, 35))
	values := make([]float64, n)
	for i := range values {
		values[i] = 0.5
		if r.Float64() < 0.024 {
			values[i] = float64(r.IntN(2))
		}
	}
	for _, rounds := range []int64{1, 2} {
		p := must(t, Spec{Mechanism: Gaussian, N: n, Training: n, Questions: 20, Rounds: rounds})
		s := State{Rounds: rounds - 1, Questions: 10 * (rounds - 1)}
		out, _ := stepLast(t, p, s, nil, rootOfValues(values, false), 1)
		part := (out.Interval.High - out.Interval.Low) / 2 / p.HalfWidth
		t.Logf("%d rounds: %.3f of a plain half-width, by %s", rounds, part, out.Interval.Bound)
		if by := strings.HasSuffix(out.Interval.Bound, MethodSample); by != (rounds == 1) || by != (part < 1.0/3) {
			t.Errorf("%d rounds: %+v, %v of a plain half-width", rounds, out.Interval, part)
		}
	}
}
