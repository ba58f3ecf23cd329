package thresholdout

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// pledge is a promise with this bound.
func pledge(t testing.TB, kind PledgeKind, bound float64) Pledge {
	t.Helper()
	p, err := NewPledge(kind, bound)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sumsOfColumn are the exact sums of values in steps of the grid.
func sumsOfColumn(values []int64) (m Mean, s PledgeSums) {
	var squares moments.Wide
	var distances int64
	for _, x := range values {
		m.N++
		m.Sum += x
		squares.AddSquare(x)
		distances += max(2*x-grid, grid-2*x)
	}
	return m, PledgeSums{&squares, &distances}
}

// width is the larger half-width of an interval about a value.
func (i *Interval) width(value float64) float64 { return max(i.High-value, value-i.Low) }

// TestPromisedWidths: what the page of the proofs says that promises are worth, by the mechanism's own answers: 30,000 units and 1,000 questions, a compare of two
// models that differ on 2% of the rows, and an accuracy of .97.
func TestPromisedWidths(t *testing.T) {
	g := must(t, Spec{Mechanism: Gaussian, N: 30_000, Questions: 1000, Tokens: 2})
	for _, c := range []struct {
		pledge      Pledge
		value       float64 // in [0,1]
		scale       float64 // from [0,1] to the question's units
		plain, kept float64
	}{
		{pledge(t, Disagreement, 0.02), 0.5 + 0.005/2, 2, 0.114, 0.018},
		{pledge(t, AtLeast, 0.03), 0.972, 1, 0.057, 0.023},
		{pledge(t, AtMost, 0.03), 0.028, 1, 0.057, 0.023},
		{pledge(t, Variance, 0.03), 0.4, 1, 0.057, 0.0226},
	} {
		plain, kept := g.Preview(State{}, c.value), g.PreviewPledge(State{}, c.pledge, c.value)
		if w := c.scale * max(plain.High-c.value, c.value-plain.Low); math.Abs(w-c.plain) > 1e-3 {
			t.Errorf("%+v: plain ±%.4f, not ±%v", c.pledge, w, c.plain)
		}
		if w := c.scale * kept.width(c.value); math.Abs(w-c.kept) > 1e-3 || kept.Bound != MethodPromised {
			t.Errorf("%+v: kept ±%.4f by %s, not ±%v", c.pledge, w, kept.Bound, c.kept)
		}
		sum := 0.0
		for _, part := range kept.Parts {
			sum += part
		}
		if math.Abs(sum-kept.width(c.value)) > 1e-12 {
			t.Errorf("%+v: the parts %v of ±%v", c.pledge, kept.Parts, kept.width(c.value))
		}
	}
}

// TestPromisesAreCheckedExactly: whether a promise holds is decided as by rational arithmetic on the values that are averaged; of a disagreement, whose distances are summed for
// themselves, on what they can be at most. It would notice a tolerance, a check in floating point and one of less than what is averaged.
func TestPromisesAreCheckedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, grid), rapid.SampledFrom([]int64{0, grid / 2, grid})), 1, 30).Draw(t, "values")
		mean, sums := sumsOfColumn(values)
		n := big.NewInt(mean.N)
		exact := map[PledgeKind]*big.Rat{
			AtMost:       big.NewRat(mean.Sum, mean.N),
			AtLeast:      big.NewRat(mean.N*grid-mean.Sum, mean.N),
			Disagreement: big.NewRat(*sums.Distances+distanceSlack*mean.N, mean.N),
		}
		spread, total := new(big.Int), new(big.Int)
		for _, x := range values {
			total.Add(total, big.NewInt(x))
			spread.Add(spread, new(big.Int).Mul(big.NewInt(x), big.NewInt(x)))
		}
		spread.Mul(spread, n).Sub(spread, total.Mul(total, total))
		exact[Variance] = new(big.Rat).SetFrac(spread, new(big.Int).Mul(n, n))
		for kind, statistic := range exact {
			least := new(big.Int).Div(new(big.Int).Add(statistic.Num(), new(big.Int).Sub(statistic.Denom(), big.NewInt(1))), statistic.Denom()).Int64() // rounded up
			for _, off := range []int64{-1, 0, 1} {
				p := Pledge{kind, least + off}
				held, err := p.holds(mean, sums)
				if p.own().Valid() != nil {
					if err == nil {
						t.Fatalf("%+v: a bound that nothing has was checked", p)
					}
					continue
				}
				if want := statistic.Cmp(new(big.Rat).SetInt64(p.Bound)) <= 0; err != nil || held != want {
					t.Fatalf("%+v of %v: %v, %v; it is %v", p, values, held, err, want)
				}
			}
		}
		for _, p := range []Pledge{{Disagreement, grid / 2}, {Variance, grid}} {
			if _, err := p.holds(mean, PledgeSums{}); err == nil {
				t.Fatalf("%+v was checked without its sum", p)
			}
		}
	})
}

// TestPromisedReleases: what an answer with a promise is, debits and says. Kept: less noise, no token, the narrow interval. Broken: the noise of a plain answer, a token,
// and the width after it, which counts itself. Without tokens: plain, unchecked. Other questions are answered without tokens, too.
func TestPromisedReleases(t *testing.T) {
	g := must(t, Spec{Mechanism: Gaussian, N: 10_000, Questions: 100, Tokens: 2})
	m := g.gaussian()
	in := Input{Holdout: mean(0.1, g.N)}
	for _, c := range []struct {
		tokens        int64
		bound         float64
		checked, held bool
	}{
		{0, 0.11, true, true}, {0, 0.09, true, false}, {1, 0.11, true, true}, {1, 0.09, true, false}, {2, 0.11, false, false}, {2, 0.09, false, false},
	} {
		s := State{Questions: 7, Tokens: c.tokens}
		p := pledge(t, AtMost, c.bound)
		in.Promise = &Borne{Pledge: p}
		sigma := m.sigmaOf(s)
		if c.held {
			sigma = p.noise(sigma)
		}
		var z []float64
		for run := range uint64(600) {
			out, next, err := Step(g, s, in, Seeded{Seed: run})
			if err != nil {
				t.Fatal(err)
			}
			broken := c.tokens
			if c.checked && !c.held {
				broken++
			}
			if *out.Promise != (Kept{p, c.checked, c.held}) || out.Tokens != broken-c.tokens || next.Tokens != broken || next.Questions != 8 {
				t.Fatalf("%+v: %+v %+v", c, out, next)
			}
			if c.held && out.Interval.Bound != MethodPromised || !c.held && math.Abs((out.Interval.High-out.Value)-m.widthAt(broken)-gridError) > 1e-9 {
				t.Fatalf("%+v: %v in %+v, by half-widths %v and %v", c, out.Value, out.Interval, m.HalfWidth, m.Widths)
			}
			if !c.held || out.Value < p.Value() { // not clipped
				z = append(z, (out.Value-0.1)/sigma)
			}
		}
		law := distuv.UnitNormal.CDF
		if c.held {
			most := law((p.Value() - 0.1) / sigma)
			law = func(x float64) float64 { return min(1, distuv.UnitNormal.CDF(x)/most) }
		}
		if err := stattest.Kolmogorov(z, law, falseAlarm); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if stattest.Kolmogorov(z, func(x float64) float64 { return law(x / 1.5) }, falseAlarm) == nil {
			t.Errorf("%+v: noise a third too narrow goes unnoticed", c)
		}
	}
	spent := State{Questions: 7, Tokens: 2}
	in.Promise = nil
	if out, next, err := Step(g, spent, in, Seeded{}); err != nil || next.Tokens != 2 || math.Abs(out.Interval.width(out.Value)-m.Widths[1]-gridError) > 1e-9 {
		t.Errorf("a plain question without tokens: %+v, %+v, %v", out, next, err)
	}
	if _, _, err := StepVector(g, spent, []Mean{mean(0.5, g.N), mean(0.4, g.N)}, 0.5, Seeded{}); err != nil {
		t.Errorf("a vector without tokens: %v", err)
	}
}

// TestPromisedRunsArePaid walks through the states of a small guarantee, with the number of runs of held and broken promises that lead to each. The chances that the widths
// which are printed on the way miss add up to no more than their part of the probability of error. A break that does not count for its own answer breaks that.
func TestPromisedRunsArePaid(t *testing.T) {
	const questions, tokens = 24, 2
	g := must(t, Spec{Mechanism: Gaussian, N: 2000, Questions: questions, Tokens: tokens})
	m, n := g.gaussian(), 2000.0
	key := Input{Holdout: mean(0.5, g.N)}
	runs := map[State]float64{{}: 1}
	plain, released := 0.0, 0.0
	for i := range int64(questions) {
		next := map[State]float64{}
		for s, count := range runs {
			for _, bound := range []float64{0.5, 0.1} { // kept, and broken
				key.Promise = &Borne{Pledge: pledge(t, AtMost, bound)}
				out, after, err := Step(g, s, key, Seeded{Question: i})
				if err != nil {
					t.Fatal(err)
				}
				if !out.Promise.Checked && bound < 0.5 {
					continue // one outcome, which is counted already
				}
				width := m.widthAt(s.Tokens) // of a kept promise, to which its interval is in proportion
				if !out.Promise.Held {
					width = max(out.Interval.High-out.Value, out.Value-out.Interval.Low) - gridError
				}
				plain += count * 2 * bounds.PromisedMiss(n, width/(1+2e-4), m.sigmaOf(s), released)
				next[after] += count
			}
		}
		runs = next
		released += bounds.Information(n, 0.25, m.sigmaOf(State{Questions: i}))
	}
	t.Logf("the widths of all runs add up to %.4f of what plain answers have", plain/m.plainBeta())
	if budget := m.plainBeta(); plain > budget*(1+1e-6) || plain < 0.5*budget {
		t.Errorf("plain answers of all runs miss with %.5f, of %.5f", plain, budget)
	}
}

// TestPromisedSharesArePaid: one who chooses after every answer whether the next step is a vector of whatever price, a selection or a question with a promise, gets, over all runs
// of held and broken promises, no more than the whole share of answers outside the plain account. Shares that are not divided, divided by the runs up to a vector's first position,
// or not at all before the first break, give him more.
func TestPromisedSharesArePaid(t *testing.T) {
	const questions = 100
	for _, tokens := range []int64{1, 2, 5} {
		m := must(t, Spec{Mechanism: Gaussian, N: 2000, Questions: questions, Tokens: tokens}).gaussian()
		share := func(s State, price int64) float64 {
			a := m.account(s, price, 1)
			return a.Share + a.Mechanism
		}
		budget := 0.0
		for i := range int64(questions) {
			budget += m.blocksShare(State{Questions: i}) * m.Beta() / questions
		}
		most := make([][]float64, questions+1) // from a position and a number of broken promises on
		most[questions] = make([]float64, tokens+1)
		for i := int64(questions) - 1; i >= 0; i-- {
			most[i] = make([]float64, tokens+1)
			for f := range tokens + 1 {
				s := State{Questions: i, Tokens: f}
				best := share(s, 1) + most[i+1][f]
				if f < tokens {
					best += most[i+1][f+1]
				}
				for price := int64(2); i+price <= questions; price++ {
					best = max(best, share(s, price)+most[i+price][f])
				}
				most[i][f] = best
			}
		}
		t.Logf("%d tokens: %.4f of the share", tokens, most[0][0]/budget)
		if most[0][0] > budget*(1+1e-9) || most[0][0] < 0.5*budget {
			t.Errorf("%d tokens: a run of steps gets %.6f of %.6f", tokens, most[0][0], budget)
		}
	}
}

// TestPromisedLevels: read at other levels, an answer keeps its promise and the number of promises that were broken with it, whatever was broken since; at the guarantee's own level it
// has its own interval, and at smaller ones no narrower.
func TestPromisedLevels(t *testing.T) {
	g := must(t, Spec{Mechanism: Gaussian, N: 10_000, Questions: 100, Tokens: 2})
	for _, c := range []struct {
		s     State
		bound float64
	}{{State{Questions: 7}, 0.11}, {State{Questions: 7}, 0.09}, {State{Questions: 40, Tokens: 1}, 0.11}, {State{Questions: 40, Tokens: 1}, 0.09}, {State{Questions: 99, Tokens: 2}, 0.11}} {
		out, _, err := Step(g, c.s, Input{Holdout: mean(0.1, g.N), Promise: &Borne{Pledge: pledge(t, AtMost, c.bound)}}, Seeded{})
		if err != nil {
			t.Fatal(err)
		}
		low, high, ok := g.IntervalAt(c.s, out, g.Level())
		if !ok || math.Abs(low-out.Interval.Low) > 1e-9 || math.Abs(high-out.Interval.High) > 1e-9 {
			t.Errorf("%+v: [%v, %v] at its own level, [%v, %v] printed", c, low, high, out.Interval.Low, out.Interval.High)
		}
		for _, level := range []float64{0.02, 1e-3, 1e-6} {
			wideLow, wideHigh, ok := g.IntervalAt(c.s, out, level)
			if !ok || wideLow > low+1e-12 || wideHigh < high-1e-12 {
				t.Errorf("%+v: [%v, %v] at %v, within [%v, %v]", c, wideLow, wideHigh, level, low, high)
			}
			low, high = wideLow, wideHigh
		}
	}
}

// TestPromisesRefused: tokens for broken promises are refused where no theorem plans them, and a promise where there is no token for it at all.
func TestPromisesRefused(t *testing.T) {
	for _, s := range []Spec{
		{N: 10_000, Questions: 100, Tokens: 1, Published: true},
		{N: 10_000, Questions: 100, Tokens: 1, Sigma: 0.01},
		{N: 10_000, Questions: 100, Tokens: 1, Rounds: 2},
		{N: 99, Questions: 10, Tokens: 1},
		{N: 10_000, Questions: 100, Tokens: bounds.MostPromiseTokens + 1},
		{N: 10_000, Questions: 2, Tokens: 3},
		{N: 10_000, Questions: 100, Tokens: 1, HalfWidth: 0.06}, // ±.057 until a promise is broken
	} {
		s.Mechanism = Gaussian
		var wrong *ParamError
		if g, err := Plan(s); !errors.As(err, &wrong) {
			t.Errorf("%+v was planned: %+v, %v", s, g.Own(), err)
		}
	}
	in := Input{Holdout: mean(0.1, 10_000), Training: mean(0.1, 10_000), Promise: &Borne{Pledge: pledge(t, AtMost, 0.2)}}
	for _, s := range []Spec{{Mechanism: Gaussian, Sigma: 0.01}, {Mechanism: Gaussian, Rounds: 2}, {Mechanism: Gaussian, Published: true}, {Mechanism: GuessAndCheck, Training: 10_000}, {Mechanism: Naive}} {
		s.N, s.Questions = 10_000, 100
		g := must(t, s)
		if out, next, err := Step(g, State{}, in, Seeded{}); err == nil || next != (State{}) || g.TakesPromises() {
			t.Errorf("%+v checked a promise: %+v", s, out)
		}
	}
	// What was stored before there were promises has none, and what has them is refused where a number is missing.
	g := must(t, Spec{Mechanism: Gaussian, N: 10_000, Questions: 100, Tokens: 2})
	for _, change := range []func(m *gaussian){
		func(m *gaussian) { m.Version = 1 },
		func(m *gaussian) { m.Version = gaussianVersion + 1 },
		func(m *gaussian) { m.Widths = m.Widths[1:] },
		func(m *gaussian) { m.Widths = []float64{m.HalfWidth / 2, m.HalfWidth / 2} },
		func(m *gaussian) { m.Tokens = 0 },
		func(m *gaussian) { m.N = 99 },
		func(m *gaussian) { m.Scheduled = false },
	} {
		text, err := json.Marshal(changed(g, change))
		if err != nil {
			t.Fatal(err)
		}
		var read Guarantee
		if err := json.Unmarshal(text, &read); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

// TestPromisesAreNotFresh: after a broken promise no answer is one before which nothing was told, though no other answer was given.
func TestPromisesAreNotFresh(t *testing.T) {
	g := must(t, Spec{Mechanism: Gaussian, N: 10_000, Questions: 100, Tokens: 2})
	if _, _, ok := g.FreshNoise(State{}, State{}); !ok {
		t.Error("the first answer is not fresh")
	}
	if _, _, ok := g.FreshNoise(State{}, State{Questions: 1, Tokens: 1}); ok {
		t.Error("an answer after a broken promise is fresh")
	}
}

// TestDefaultPledges: the training part suggests a promise where that makes the interval narrower, the kind with which it is narrowest, and none where it does not, where there is
// little training, or where no token is left.
func TestDefaultPledges(t *testing.T) {
	g := must(t, Spec{Mechanism: Gaussian, N: 30_000, Training: 70_000, Questions: 1000, Tokens: 2})
	part := func(n int64, mean, variance, distance float64) PledgeTraining {
		sums := moments.Sums{Units: n, Sum: int64(mean * float64(n) * float64(grid))}
		squares := new(big.Float).Mul(big.NewFloat(float64(n)*(variance+mean*mean)), new(big.Float).SetInt(new(big.Int).Lsh(big.NewInt(1), 60)))
		whole, _ := squares.Int(nil)
		sums.Squares = moments.Wide{Hi: new(big.Int).Rsh(whole, 64).Uint64(), Lo: whole.Uint64()}
		t := PledgeTraining{Mean: Mean{Sum: sums.Sum, N: n}, PledgeSums: PledgeSums{Squares: &sums.Squares}}
		if distance >= 0 {
			d := int64(distance * float64(n) * float64(grid))
			t.Distances = &d
		}
		return t
	}
	for _, c := range []struct {
		what string
		part PledgeTraining
		s    State
		want PledgeKind
	}{
		{"a rare event", part(70_000, 0.02, 0.0196, -1), State{}, AtMost},
		{"a good classifier", part(70_000, 0.97, 0.0291, -1), State{}, AtLeast},
		{"two models that seldom differ", part(70_000, 0.501, 0.005, 0.02), State{}, Disagreement},
		{"a number that varies little", part(70_000, 0.4, 0.02, -1), State{}, Variance},
		{"a coin", part(70_000, 0.5, 0.25, -1), State{}, ""},
		{"a rare event in few rows", part(30, 0, 0, -1), State{}, ""},
		{"without tokens", part(70_000, 0.02, 0.0196, -1), State{Questions: 9, Tokens: 2}, ""},
	} {
		p, ok := g.DefaultPledge(c.s, c.part)
		if ok != (c.want != "") || p.Kind != c.want {
			t.Errorf("%s: %+v, %v", c.what, p, ok)
		}
		if !ok {
			continue
		}
		value, _ := c.part.Mean.Value()
		if kept, plain := g.PreviewPledge(c.s, p, value), g.Preview(c.s, value); kept.High-kept.Low > (1-leastGain)*(plain.High-plain.Low) {
			t.Errorf("%s: ±%v instead of ±%v", c.what, (kept.High-kept.Low)/2, (plain.High-plain.Low)/2)
		}
	}
}
