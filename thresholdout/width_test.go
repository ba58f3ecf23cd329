package thresholdout

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// firstVersion is what was planned in the first version of the stored form.
func firstVersion(t rapid.TB, n, k int64) Guarantee {
	t.Helper()
	m := &gaussian{Head: Head{Version: GuaranteeVersion, Mechanism: Gaussian, N: n, Questions: k, Confidence: 0.95}, Capped: 0.1, Scheduled: true}
	b, err := bounds.AdaptiveHoeffdingScheduled(n, k, m.plainBeta())
	if err != nil {
		t.Fatal(err)
	}
	m.Sigma, m.HalfWidth = b.Sigma, b.HalfWidth
	m.Subsample = int64(bounds.CappedM(float64(n), (1-mechanismShare)*m.Capped*m.Beta()/float64(k), m.releasedAtMost(State{Questions: k - 1})))
	return of(m)
}

// TestNoWiderThanBefore: a guarantee as it is planned now has answers that are no wider than those of the first version: plain ones and their ends near 0 and 1, and vectors but for a
// part in twenty-five (of guarantees of a few questions; a hundredth of large ones), since three tenths of what was theirs pay for cuts, and but for a third of a percent that promises cost. It would notice a budget that is divided too often, a block whose M does not suit it, and noise that does not fall with a vector's variance.
func TestNoWiderThanBefore(t *testing.T) {
	const slack, promised = 1.0 / 25, 0.0035
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.Int64Range(1000, 100_000).Draw(t, "n"), rapid.Int64Range(2, 1000).Draw(t, "k")
		p, err := Plan(Spec{Mechanism: Gaussian, N: n, Questions: k, HalfWidth: 1}) // without promises, as in the first version
		if err != nil {
			t.Fatal(err)
		}
		old := firstVersion(t, n, k)
		if p.HalfWidth > old.HalfWidth*(1+promised) {
			t.Fatalf("±%v, it was ±%v", p.HalfWidth, old.HalfWidth)
		}
		s := State{Questions: rapid.Int64Range(0, k-1).Draw(t, "asked")}
		value := rapid.SampledFrom([]float64{0, 0.003, 0.03, 0.2, 0.5, 0.9, 1}).Draw(t, "value")
		if before, now := old.Preview(s, value), p.Preview(s, value); now.Low < before.Low-promised*old.HalfWidth || now.High > before.High+promised*old.HalfWidth {
			t.Fatalf("after %d questions %v is in [%v, %v], it was in [%v, %v]", s.Questions, value, now.Low, now.High, before.Low, before.High)
		}
		count := rapid.IntRange(2, 40).Draw(t, "count")
		variance := rapid.Float64Range(0.05, float64(count)/4).Draw(t, "variance")
		if p.VectorPrice(count, variance) > p.Affordable(s) {
			return
		}
		before, _, err := old.PreviewVector(s, count, variance)
		now, _, err2 := p.PreviewVector(s, count, variance)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if p.AsNumbers(s, count, variance) {
			now = p.HalfWidth
		}
		if now > before*(1+slack) {
			t.Fatalf("%d means of variance %v after %d questions: ±%v, it was ±%v", count, variance, s.Questions, now, before)
		}
	})
}

// TestVectorsAndNumbers: a vector that costs as much as plain answers is released as such, unless it is narrower; one that costs less is not. It would notice three shares that are
// wider for being asked at once.
func TestVectorsAndNumbers(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 10_000, Questions: 100})
	for _, c := range []struct {
		count    int
		variance float64
		numbers  bool
	}{{1, 0.25, true}, {2, 0.5, true}, {3, 2.0 / 3, true}, {4, 0.75, false}, {12, 11.0 / 12, false}, {20, 5, true}} {
		for _, asked := range []int64{0, 10, 50, 70} {
			s := State{Questions: asked}
			width, _, err := p.PreviewVector(s, c.count, c.variance)
			if got := p.AsNumbers(s, c.count, c.variance); err != nil || got != c.numbers || got && p.HalfWidth > width {
				t.Errorf("%d of variance %v after %d: as numbers %v, ±%v against ±%v; %v", c.count, c.variance, asked, got, p.HalfWidth, width, err)
			}
		}
	}
	if old := firstVersion(t, 10_000, 100); old.AsNumbers(State{}, 3, 2.0/3) {
		t.Error("a guarantee of the first version releases a vector otherwise than it did")
	}
}

// TestVectorReleasesWhatItPays: a vector and a selection release what plain answers in their place would, to a part in a million, whatever the schedule does there; the last of all bear no noise.
func TestVectorReleasesWhatItPays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Spec{Mechanism: Gaussian, N: rapid.Int64Range(200, 1_000_000).Draw(t, "n"), Questions: rapid.Int64Range(2, 500).Draw(t, "k")}
		if rapid.Bool().Draw(t, "constant") {
			in.Sigma = rapid.Float64Range(1e-3, 0.1).Draw(t, "sigma")
		}
		p, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		m, n := p.gaussian(), float64(p.N)
		s := State{Questions: rapid.Int64Range(0, p.Questions-1).Draw(t, "asked")}
		count := rapid.IntRange(1, 40).Draw(t, "count")
		variance := rapid.Float64Range(0.05, float64(count)/4).Draw(t, "variance")
		price := p.VectorPrice(count, variance)
		if price > p.Affordable(s) {
			return
		}
		sigma, want := m.vectorNoise(s, count, variance), paidFor(p, s, price)
		if last := m.LastExact && s.Questions+price == p.Questions; (sigma == 0) != last {
			t.Fatalf("noise %v, the last is exact %v", sigma, last)
		} else if last {
			return
		}
		if got := bounds.Information(n, variance, sigma); math.Abs(got/want-1) > 1e-6 {
			t.Fatalf("a vector releases %v nats, %d plain answers %v", got, price, want)
		}
		if got := bounds.Selection(n, m.eta(s, price)); got > want || got < want*(1-1e-5) {
			t.Fatalf("a selection releases %v nats, %d plain answers %v", got, price, want)
		}
	})
}

// TestMorePaysForLessRegret: a selection for more questions has less regret, and the law of its choice is that of its own eta: at four times the price it is twice as sure (false alarm 1e-6, fixed seeds).
func TestMorePaysForLessRegret(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 10_000, Questions: 100, Sigma: 0.02})
	s := State{Questions: 40}
	last := 1.0
	for _, price := range []int64{1, 2, 4, 8, 16} {
		regret, _ := p.PreviewSelection(s, 48, price)
		if !(regret < last) {
			t.Errorf("%d questions: %v, not less than %v", price, regret, last)
		}
		last = regret
	}
	const runs = 20_000
	near := []Mean{mean(0.5, p.N), mean(0.5+0.02, p.N)}
	for _, price := range []int64{1, 4} {
		worse := 0
		for run := range uint64(runs) {
			choice, next, err := StepSelect(p, s, near, price, Seeded{Seed: run})
			if err != nil || next.Questions != s.Questions+price {
				t.Fatalf("%+v, %v", next, err)
			}
			worse += 1 - choice.Index
		}
		odds := math.Exp(-0.02 / 0.02 * math.Sqrt(float64(price))) // eta is 1/sigma times the root of the price
		if err := stattest.Frequency(worse, runs, odds/(1+odds), falseAlarm); err != nil {
			t.Errorf("%d questions: %v", price, err)
		}
	}
	if _, _, err := StepSelect(p, s, near, 0, Seeded{}); err == nil {
		t.Error("a selection for nothing")
	}
	if _, next, err := StepSelect(p, State{Questions: 98}, near, 3, Seeded{}); !errors.Is(err, ErrNoQuestions) || next.Questions != 98 {
		t.Errorf("three questions of two: %+v, %v", next, err)
	}
}

// TestLastAnswerIsExact: under the schedule the last question bears no noise, whatever it is; with noise that the owner names it bears it.
func TestLastAnswerIsExact(t *testing.T) {
	p := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 10})
	in := Input{Holdout: mean(0.25, p.N)}
	for asked := range p.Questions {
		out, _, err := Step(p, State{Questions: asked}, in, Seeded{Seed: 7, Question: asked})
		if exact := out.Value == 0.25; err != nil || exact != (asked == p.Questions-1) {
			t.Errorf("answer %d is %v, %v", asked+1, out.Value, err)
		}
	}
	constant := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 10, Sigma: 0.02})
	if out, _, err := Step(constant, State{Questions: 9}, in, Seeded{Seed: 7}); err != nil || out.Value == 0.25 {
		t.Errorf("constant noise: %v, %v", out.Value, err)
	}
	one := must(t, Spec{Mechanism: Gaussian, N: 5000, Questions: 1})
	if out, _, err := Step(one, State{}, in, Seeded{}); err != nil || out.Value != 0.25 || out.Interval.High > 0.25+1.0139*math.Sqrt(math.Log(2/one.gaussian().plainBeta())/10_000)+1e-6 {
		t.Errorf("a single question: %+v, %v", out, err)
	}
}

// TestChargedOnce: whatever the prices and places, what releases charge in a block is no more than the questions that it has, and each charges what of its own questions lies there.
func TestChargedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := Plan(Spec{Mechanism: Gaussian, N: 10_000, Questions: rapid.Int64Range(1, 300).Draw(t, "k")})
		if err != nil {
			t.Fatal(err)
		}
		m := p.gaussian()
		charged := make([]int64, len(m.Blocks))
		for s := (State{}); s.Questions < p.Questions; {
			price := rapid.Int64Range(1, min(40, p.Affordable(s))).Draw(t, "price")
			block, own := m.charged(s, price)
			if own < 1 || own > price {
				t.Fatalf("a release for %d questions charges %d", price, own)
			}
			charged[block] += own
			s = p.Spend(s, price, 0)
		}
		for i, spent := range charged {
			if spent > m.Blocks[i] {
				t.Fatalf("%d charged in a block of %d", spent, m.Blocks[i])
			}
		}
	})
}

// TestCappedIsTheOwners: a share that the owner names is planned and stored: vectors and selections are narrower for it and single means wider, by what the rest of the probability of error says; what is no share is refused,
// and so is one that nothing would use. It would notice a share that is ignored, or one that is counted twice.
func TestCappedIsTheOwners(t *testing.T) {
	const n, k = 10_000, 100
	usual, half := must(t, Spec{Mechanism: Gaussian, N: n, Questions: k, HalfWidth: 1}), must(t, Spec{Mechanism: Gaussian, N: n, Questions: k, HalfWidth: 1, Capped: 0.5})
	want, err := bounds.LastExact(n, k, 0.5*half.Beta())
	if err != nil || half.HalfWidth != want.HalfWidth || half.gaussian().Capped != 0.5 || !(half.HalfWidth > usual.HalfWidth) {
		t.Errorf("±%v, want ±%v, %v", half.HalfWidth, want.HalfWidth, err)
	}
	for _, s := range []State{{}, {Questions: 50}, {Questions: 90}} {
		before, _, err := usual.PreviewVector(s, 12, 11.0/12)
		now, _, err2 := half.PreviewVector(s, 12, 11.0/12)
		regret, _ := usual.PreviewSelection(s, 48, 1)
		less, _ := half.PreviewSelection(s, 48, 1)
		if err != nil || err2 != nil || !(now < 0.975*before) || !(less < 0.975*regret) {
			t.Errorf("after %d: a vector ±%v, it was ±%v; a regret of %v, it was %v; %v, %v", s.Questions, now, before, less, regret, err, err2)
		}
	}
	for _, spec := range []Spec{{Mechanism: Gaussian, Capped: 0.95}, {Mechanism: Gaussian, Capped: -0.1}, {Mechanism: Gaussian, Capped: math.NaN()}, {Mechanism: Gaussian, Capped: 0.2, Published: true}, {Mechanism: Split, Capped: 0.2}} {
		spec.N, spec.Questions = n, k
		var wrong *ParamError
		if _, err := Plan(spec); !errors.As(err, &wrong) || wrong.Field != ParamCapped {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}
