package thresholdout

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// seals is a guess_and_check guarantee with sealed units, and its mechanism.
func seals(t testing.TB, n int64, sealed float64, questions int64, confidence float64) (Guarantee, *guessAndCheck) {
	t.Helper()
	p := must(t, Spec{Mechanism: GuessAndCheck, N: n, Training: n, Questions: questions, Tokens: questions, Confidence: confidence, Sealed: sealed})
	return p, p.own.(*guessAndCheck)
}

// TestSealedIsPaidFor: whatever is asked, and by whichever units the report is read, a run costs at most the probability of error: all transcripts along the mechanism's own states have three quarters of it, with the reports that are read by
// all units, and every report by sealed units alone has a quarter, whatever was said before. Both are reached.
func TestSealedIsPaidFor(t *testing.T) {
	const beta = 0.05
	for _, k := range []int64{1, 3, 7} {
		p, m := seals(t, 2000, 0.5, k, 1-beta)
		all := func(s State, size int64) float64 {
			s.Closing.Sealed = false
			return m.reportLevel(s, 1)
		}
		open := reportsOf(p, m, State{}, 8, all)
		if !(open <= 0.75*beta*(1+1e-9)) || open < 0.75*0.99*beta {
			t.Errorf("%d questions: what reads open units costs %v", k, open)
		}
		for _, s := range []State{{}, {Questions: k - 1}, {Questions: k - 1, Tokens: k - 1, Memory: account{Paid: moments.PriceOf(1e9)}}} {
			for size := int64(1); size <= k-s.Questions; size++ {
				closing, err := p.Close(s, size)
				if err != nil {
					t.Fatal(err)
				}
				closing.Closing.Sealed = true
				if cost := 2 * float64(size) * math.Exp(-m.reportLevel(closing, 1)); !(cost <= 0.25*beta) || cost < 0.25*0.99*beta {
					t.Errorf("%d questions: %d numbers by sealed units cost %v after %+v", k, size, cost, s)
				}
			}
		}
	}
}

// TestSealedWidths: with half of 12,000 units sealed a report of five has 2.2 textbooks however much went wrong before, and all units where they are narrower; a check is wider by what half of the units and a quarter of the probability of error
// are worth.
func TestSealedWidths(t *testing.T) {
	p, m := seals(t, 12_000, 0.5, 1000, 0.95)
	plain, _ := closes(t, 12_000, 1000, 0.95)
	wrongs := State{Questions: 300, Tokens: 10, Memory: account{Paid: moments.Nats(60 << 20)}}
	for name, c := range map[string]struct {
		s      State
		sealed bool
		width  float64
	}{"nothing wrong": {State{Questions: 300}, false, 1.46}, "ten wrong guesses": {wrongs, true, 2.18}} {
		closing, err := p.Close(c.s, ReportedNumbers)
		if err != nil || closing.Closing.Sealed != c.sealed {
			t.Fatalf("%s: %+v %v", name, closing, err)
		}
		width, ok := p.ReportWidth(c.s)
		if !ok || math.Abs(width-c.width) > 0.03 {
			t.Errorf("%s: %v textbooks, want %v", name, width, c.width)
		}
		from, to := p.Slice(closing)
		sums := RootSums{All: to - from, Binary: true, Sums: moments.Sums{Units: to - from, Sum: (to - from) * grid / 2}}
		sums.Squares.AddSums(sums.Sum, grid)
		if _, _, err := StepLast(p, closing, []LastInput{{Holdout: sums}}, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sums.All--
		if _, _, err := StepLast(p, closing, []LastInput{{Holdout: sums}}, 1); err == nil {
			t.Errorf("%s: a sample of other units is read", name)
		}
	}
	if from, to := p.Slice(wrongs); from != 0 || to != 6000 {
		t.Errorf("questions read the units from %d to %d", from, to)
	}
	if r := p.HalfWidth / plain.HalfWidth; r < 1.2 || r > 1.45 {
		t.Errorf("a check is %v times as wide", r)
	}
	if m.Sealed != 6000 || p.N != 12_000 || plain.Sealed() != 0 {
		t.Errorf("%d sealed of %d", m.Sealed, p.N)
	}
	for _, s := range []Spec{{Sealed: -0.1}, {Sealed: 0.95}, {Sealed: math.NaN()}, {N: 10, Sealed: 0.9}, {Mechanism: Gaussian, Sealed: 0.5}, {Mechanism: Auto, Sealed: 0.5, Rounds: 2}, {Mechanism: Auto, Sealed: 0.5, Training: -1}} {
		s.Mechanism, s.N, s.Training = cmp.Or(s.Mechanism, GuessAndCheck), cmp.Or(s.N, 12_000), max(cmp.Or(s.Training, 12_000), 0)
		if _, err := Plan(s); !errors.As(err, new(*ParamError)) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if chosen, err := Plan(Spec{Mechanism: Auto, N: 12_000, Training: 12_000, Questions: 20_000, Sealed: 0.5}); err != nil || chosen.Mechanism != GuessAndCheck {
		t.Errorf("auto with sealed units: %+v %v", chosen, err)
	}
}

// TestSealedCovers: an analyst makes guesses about fair coins fail on purpose, and reports how often rows agree with the weighted vote of what he was told: the true mean is 1/2. Read by the sealed units at their level, which pays for nothing
// that was said, no more than 1-confidence of the reports miss (false alarm 1e-6). By the units that were asked about nearly all miss at that level.
func TestSealedCovers(t *testing.T) {
	const runs, failures, confidence = 60, 31, 0.5
	p, m := seals(t, 1000, 0.5, 200, confidence)
	missed, peeked := 0, 0
	for run := range uint64(runs) {
		rows := coins(rand.New(rand.NewPCG(run, 78)), p.N, failures)
		open := rows[:m.open()]
		state, weights := failing(t, p, open, failures)
		state, err := p.Close(state, 1)
		if err != nil || !state.Closing.Sealed {
			t.Fatalf("%+v %v", state, err)
		}
		from, to := p.Slice(state)
		out, _ := stepLast(t, p, state, nil, rootOfValues(voted(rows[from:to], weights), true), 1)
		if out.Interval.Low > 0.5 || out.Interval.High < 0.5 {
			missed++
		}
		again, _ := stepLast(t, p, state, nil, rootOfValues(voted(open, weights), true), 1)
		if again.Interval.Low > 0.5 || again.Interval.High < 0.5 {
			peeked++
		}
	}
	if err := stattest.AtMost(missed, runs, 1-confidence, 1e-6); err != nil {
		t.Errorf("reports by sealed units that miss: %v", err)
	}
	if peeked < runs*9/10 {
		t.Errorf("by the units that were asked about only %d of %d reports miss: the attack has no power", peeked, runs)
	}
}
