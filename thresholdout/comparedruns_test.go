package thresholdout

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

func (g Guarantee) comparedRuns() *comparedRuns { return g.own.(*comparedRuns) }

// comparedTranscripts sums, over every string of outcomes of k questions, twice the probability e^-level at which the union reads its next interval on one side. Questions are means and conditions by turns.
// It walks the mechanism's own states.
func comparedTranscripts(t *testing.T, p Guarantee, change func(before State, b *books, next *State)) (total float64) {
	t.Helper()
	m := p.comparedRuns()
	mean := func(h float64, spread int64) RootSums { return someUnits(p.N, p.N, h, spread) }
	condition := func(h float64, spread int64) RootSums {
		r := someUnits(p.N, p.N/10, h, spread)
		r.Partial = true
		return r
	}
	// A pass and a failure, each steady and not; of a condition a pass, a wide one, a failure.
	holdouts := [2][]RootSums{{mean(0.5, grid/8), mean(0.5, grid/3), mean(0.05, 0), mean(0.1, grid/10)}, {condition(0.5, grid/8), condition(0.5, grid/2), condition(0, 0)}}
	holdouts[0][3] = spreadOut(p.N, 0.25)
	trainings := [2]RootSums{someUnits(p.Training, p.Training, 0.5, grid/8), someUnits(p.Training, p.Training/10, 0.5, grid/8)}
	trainings[1].Partial = true
	runs := map[State]float64{{}: 1}
	for j := range p.Questions {
		next := map[State]float64{}
		for s, n := range runs {
			total += n * 2 * math.Exp(-m.union(s))
			for outcome, holdout := range holdouts[j%2] {
				in := StatisticInput{Training: trainings[j%2], Holdout: holdout, Noise: Seeded{Seed: 4, Question: int64(len(next)) + 100*j}}
				said := 1.0
				if j%2 == 1 && outcome == 2 {
					c, _, err := m.plan(s, in.Training)
					if err != nil {
						t.Fatal(err)
					}
					said = float64(c.(rootCheck).Cells) * 4
				}
				out, to, err := StepStatistic(p, s, in)
				if errors.Is(err, ErrNoTokens) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				failed := [2][]bool{{false, false, true, true}, {false, false, true}}[j%2][outcome]
				if (out.Tokens == 1) != failed {
					t.Fatalf("outcome %d of question %d: %+v", outcome, j, out)
				}
				if out.compared != nil && out.compared.steady != (outcome%2 == 0) {
					t.Fatalf("outcome %d of question %d: steady %v", outcome, j, out.compared.steady)
				}
				b := booksOf(to)
				change(s, &b, &to)
				to.Memory = b
				next[to] += n * said
			}
		}
		runs = next
	}
	return total
}

// spreadOut are 0/1 values of which a share is 1.
func spreadOut(n int64, share float64) RootSums {
	r := RootSums{All: n, Sums: moments.Sums{Units: n}}
	for range int64(share * float64(n)) {
		r.Sum += grid
		r.Squares.AddSquare(grid)
	}
	return r
}

// TestComparedTranscriptsArePaidFor: under thresholdout the union over all strings of outcomes costs its third of beta and no more, where means that are compared with noise and conditions that are checked follow one another;
// red for a failure whose cell or whose word about the variance is not paid for, a token or an unsteady pass that does not count.
func TestComparedTranscriptsArePaidFor(t *testing.T) {
	const third = 0.05 / 3
	for _, k := range []int64{3, 8} {
		p := must(t, Spec{Mechanism: Thresholdout, N: 2000, Training: 3000, Questions: k, Tokens: k})
		cost := comparedTranscripts(t, p, func(State, *books, *State) {})
		t.Logf("%d questions: all strings cost %.6f of their third", k, cost/third)
		if !(cost <= third*(1+1e-9)) || cost < 0.9*third {
			t.Errorf("%d questions: all strings cost %v of %v", k, cost, third)
		}
		for fault, change := range map[string]func(before State, b *books, next *State){
			"what failures say": func(_ State, b *books, _ *State) { b.Paid = 0 },
			"unsteady passes":   func(_ State, b *books, _ *State) { b.Wide = 0 },
			"tokens":            func(before State, _ *books, next *State) { next.Tokens = before.Tokens / 2 },
			"words about variances": func(before State, b *books, next *State) {
				if b.Noisy > booksOf(before).Noisy {
					b.Paid = booksOf(before).Paid
				}
			},
		} {
			if cost := comparedTranscripts(t, p, change); cost <= third {
				t.Errorf("%d questions: %s that are not paid for cost only %v", k, fault, cost)
			}
		}
	}
}

// TestComparedIntervals: a mean's answer reaches as far as threshold and noise, or the release's noise, and beyond that to where the two moments are as improbable as the level says, which pays for the strings and for what
// noisy means released; threshold and noise follow the training part's spread only where the owner names neither. It would notice a noise or a release that is forgotten, a scale that the holdout chooses, and another level.
func TestComparedIntervals(t *testing.T) {
	const n, training, k, tokens = 10_000, 20_000, 100, 10
	relative := must(t, Spec{Mechanism: Thresholdout, N: n, Training: training, Questions: k, Tokens: tokens})
	c := relative.comparison()
	fixed := must(t, Spec{Mechanism: Thresholdout, N: n, Training: training, Questions: k, Tokens: tokens, Threshold: c.Threshold, Sigma: c.Sigma})
	u := bounds.ForcedRuns{N: n, Questions: k, Tokens: tokens, Beta: 0.05, Threshold: c.Threshold, Comparison: c.Sigma, Release: c.Sigma}
	quiet := someUnits(training, training, 0.4, grid/50)
	widths := map[bool]float64{}
	for _, p := range []Guarantee{relative, fixed} {
		m := p.comparedRuns()
		for _, s := range []State{{}, {Questions: 20, Tokens: 4, Memory: books{Wide: 3, Paid: 5 << 20, Noisy: 2}}} {
			union := moments.Urn{Questions: k, Beta: 0.05 / 3}.Level(s.Questions, s.Tokens, booksOf(s).Wide, booksOf(s).Paid)
			level := union
			if f := float64(booksOf(s).Noisy); f > 0 {
				level = math.Inf(1)
				for i := 1.0; i < n; i++ {
					level = min(level, n/(n-i)*union+n/i*f/(8*c.Sigma*c.Sigma*(n-1)))
				}
			}
			if math.Abs(m.level(s)-level) > 1e-9*level {
				t.Errorf("after %+v: level %v, want %v", s, m.level(s), level)
			}
			for _, holdout := range []RootSums{someUnits(n, n, 0.4, grid/50), someUnits(n, n, 0.4, grid/50+1000), someUnits(n, n, 0.4, grid/4), someUnits(n, n, 0.8, grid/50), someUnits(n, n, 0.8, grid/6)} {
				h, _ := holdout.Value()
				out, next, err := StepStatistic(p, s, StatisticInput{Training: quiet, Holdout: holdout, Noise: Seeded{Seed: 3}})
				if err != nil {
					t.Fatal(err)
				}
				failed := h > 0.5
				if (out.Tokens == 1) != failed || booksOf(next).Noisy-booksOf(s).Noisy != out.Tokens {
					t.Errorf("a mean of %v: %+v, then %+v", h, out, next)
				}
				check, own, err := m.plan(s, quiet)
				if err != nil {
					t.Fatal(err)
				}
				rank := check.(rootCheck).Ranks[0]
				wantScale := 1.0
				if m.Relative {
					wantScale = float64(rank.Away) / float64(grid) * 3 / m.Deviations / c.Threshold
				}
				if math.Abs(own.scale-wantScale) > 1e-9 || m.Relative != (own.scale < 0.2) {
					t.Errorf("scale %v, want %v", own.scale, wantScale)
				}
				near := own.scale * (c.Threshold + u.ComparisonNoise())
				if failed {
					near = u.ReleaseNoise()
				}
				_, variance := holdout.Moments()
				v, shares := float64(rank.Variance)*0x1p-60, math.Log(10.0/9)
				if variance > v {
					v, shares = 1, math.Log(10)
				}
				low, high := moments.BestTilts.Overshot(out.Value-near, v, n, level+shares), moments.BestTilts.OvershotHigh(out.Value+near, v, n, level+shares)
				if math.Abs(out.Interval.Low-low) > 4*gridError || math.Abs(out.Interval.High-high) > 4*gridError {
					t.Errorf("a mean of %v after %+v: [%v, %v], want [%v, %v]", h, s, out.Interval.Low, out.Interval.High, low, high)
				}
				if l, h, ok := p.IntervalAt(s, out, p.Level()); !ok || l != out.Interval.Low || h != out.Interval.High {
					t.Errorf("read at its own level: [%v, %v], %v", l, h, ok)
				}
				if !failed && s.Questions == 0 && v < 1 {
					if w, seen := widths[m.Relative]; seen && w != out.Interval.High-out.Interval.Low {
						t.Error("equal outcomes have unequal intervals")
					}
					widths[m.Relative] = out.Interval.High - out.Interval.Low
				}
			}
		}
	}
	old := relative.comparedRuns().forcedRuns
	old.Version = forcedRunsVersion
	before := old.interval(State{}, 0.4, FromTraining)
	if w := before.High - before.Low; widths[false] > 0.7*w || widths[true] > 0.3*widths[false] {
		t.Errorf("a mean that varies little: %v, with the owner's threshold %v, it was %v", widths[true], widths[false], w)
	}
}

// TestThresholdoutOfOldVersions: as it was stored before, thresholdout releases means one by one, and a state of it has no memory. It would notice an older holdout whose prices or bounds change.
func TestThresholdoutOfOldVersions(t *testing.T) {
	p := must(t, Spec{Mechanism: Thresholdout, N: 5000, Training: 7000, Questions: 10})
	for version, statistics := range map[int]bool{GuaranteeVersion: false, forcedRunsVersion: false, comparedRunsVersion: true, thresholdoutVersion: true} {
		m := *p.comparedRuns()
		m.Version = version
		text, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		var g Guarantee
		if err := json.Unmarshal(text, &g); err != nil || g.ChecksStatistics() != statistics {
			t.Errorf("version %d: statistics %v, %v", version, g.ChecksStatistics(), err)
		}
		if _, err := g.ReadState([]byte(`{"version":1,"questions":3,"tokens":1,"memory":{"wide":1,"paid":7,"noisy":1}}`)); (err == nil) != statistics {
			t.Errorf("version %d: a memory: %v", version, err)
		}
	}
	for _, text := range []string{`{"wide":-1,"paid":0,"noisy":0}`, `{"wide":0,"paid":-1,"noisy":0}`, `{"wide":0,"paid":0,"noisy":-1}`, `{"wide":0,"paid":0,"noisy":1000}`} {
		if _, err := p.ReadState([]byte(`{"version":1,"questions":3,"tokens":1,"memory":` + text + `}`)); err == nil {
			t.Errorf("the memory %s was read", text)
		}
	}
}
