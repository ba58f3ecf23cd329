package thresholdout

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
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

// TestMarginsAgainstReference: the margin of a half-width is that width minus the tolerance of the moment generating function
// at its far end; and it is never below the margin that Hoeffding's inequality gives.
func TestMarginsAgainstReference(t *testing.T) {
	for _, r := range gncReferences(t, "gnc_mgf_width") {
		var in struct {
			N       int64
			P, Beta float64
			Upper   bool
		}
		var want float64
		r.read(t, &in, &want)
		// With one question, no tokens and one width the level is ln(2/beta).
		m := &guessAndCheck{Head: Head{N: in.N, Questions: 1, Confidence: 1 - 2*in.Beta}, Widths: 1, Cells: 1}
		p1, width := in.P, 0.0
		if !in.Upper {
			p1 = 1 - p1 // the mirror image: below a mean of p is above one of 1-p
		}
		// A guess whose far end is p1; where its other end is nearer to a half, it reaches 0, and nothing is to be shown there.
		if width = p1 / 2; p1 > 0.5 {
			width = p1 - 0.5
		}
		guess := int64((p1 - width) * float64(grid))
		got := width - float64(m.marginOf(State{}, guess, width))/float64(grid)
		if math.Abs(got-want) > r.Tolerance {
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
		level := bounds.GradedCheck{N: in.N, Questions: 1, Beta: in.Beta, Widths: 1, Cells: 1}.Level(0, 0, 0)
		if got := max(0, in.Tau-math.Sqrt(level/float64(2*in.N))); math.Abs(got-want.Exact) > r.Tolerance {
			t.Errorf("%+v: gamma %v, the reference %v", in, got, want.Exact)
		}
		m := &guessAndCheck{Head: Head{N: in.N, Questions: 1, Confidence: 1 - in.Beta}, Widths: 1, Cells: 1}
		if margin := float64(m.marginOf(State{}, grid/2, in.Tau)) / float64(grid); margin < want.Exact-1e-8 || margin > want.Exact*1.05+1e-8 {
			t.Errorf("%+v: a guess of 1/2 may be %v away, by Hoeffding %v", in, margin, want.Exact)
		}
	}
}

func TestGaussianTolerancesAgainstReference(t *testing.T) {
	for _, r := range gncReferences(t, "gnc_gaussian_tolerance") {
		var in struct {
			N, K, B, F, J int64
			Beta, Sigma   float64
		}
		var want float64
		r.read(t, &in, &want)
		level := bounds.GradedCheck{N: in.N, Questions: in.K, Tokens: in.B, Beta: in.Beta, Widths: 1, Sigma: in.Sigma}.Level(in.J-1, in.F, 0)
		got := math.Sqrt(level / float64(2*in.N))
		if got < want*(1-1e-9) || got > want*(1+2e-4) { // the best integer m; the reference takes the best real one
			t.Errorf("%+v: %v, the reference %v", in, got, want)
		}
	}
}

// transcripts sums, over every run of at most k questions, twice the probability e^-level that its next interval misses at
// one end, as the mechanism itself moves through its states.
func transcripts(k, tokens int64, wide, failures float64, level func(asked, failed, wide int64) float64) (total float64) {
	runs := map[State]float64{{}: 1}
	for asked := range k {
		next := map[State]float64{}
		for s, n := range runs {
			if s.Tokens >= tokens {
				continue // refused
			}
			total += n * 2 * math.Exp(-level(asked, s.Tokens, passedWide(s)))
			for to, outcomes := range map[State]float64{s: 1, {Tokens: s.Tokens, Memory: passes{passedWide(s) + 1}}: wide, {Tokens: s.Tokens + 1, Memory: s.Memory}: failures} {
				if outcomes > 0 {
					next[to] += n * outcomes
				}
			}
		}
		runs = next
	}
	return total
}

// TestTranscriptsArePaidFor: the union over all transcripts costs no more than beta, and the check sees the faults: failures
// or wide passes that are not multiplied in, and a failure that forgets its token.
func TestTranscriptsArePaidFor(t *testing.T) {
	const beta = 0.05
	for _, c := range []struct{ k, tokens, cells, widths int64 }{{1, 1, 8, 2}, {7, 1, 8, 2}, {30, 3, 24, 2}, {30, 30, 5, 3}, {200, 20, 75, 1}} {
		g := bounds.GradedCheck{N: 1000, Questions: c.k, Tokens: c.tokens, Beta: beta, Widths: int(c.widths), Cells: c.cells}
		wide, cells := float64(c.widths-1), float64(c.cells)
		if cost := transcripts(c.k, c.tokens, wide, cells, g.Level); !(cost <= beta*(1+1e-9)) {
			t.Errorf("%+v: all transcripts cost %v", c, cost)
		}
		// Without noise to speak of, a Gaussian release costs its place alone; the other half of beta is for noise.
		gaussian := g
		gaussian.Cells, gaussian.Sigma = 0, 1e9
		if cost := transcripts(c.k, c.tokens, wide, 1, gaussian.Level); !(cost <= beta/2*(1+1e-9)) {
			t.Errorf("%+v: all transcripts of Gaussian releases cost %v", c, cost)
		}
		if c.k == 1 {
			continue
		}
		notMultiplied := func(asked, failed, wide int64) float64 { return g.Level(asked, 0, wide) }
		if cost := transcripts(c.k, c.tokens, wide, cells, notMultiplied); c.tokens > 1 && cost <= beta {
			t.Errorf("%+v: failures that do not count cost only %v", c, cost)
		}
		wideForgotten := func(asked, failed, wide int64) float64 { return g.Level(asked, failed, 0) }
		if cost := transcripts(c.k, c.tokens, wide, cells, wideForgotten); c.widths > 1 && c.tokens > 1 && cost <= beta {
			t.Errorf("%+v: wide passes that do not count cost only %v", c, cost)
		}
		forgotten := func(asked, failed, wide int64) float64 { return g.Level(asked, failed/2, wide) } // every other one
		if cost := transcripts(c.k, 2*c.tokens, wide, cells, forgotten); cost <= beta {
			t.Errorf("%+v: a forgotten token costs only %v", c, cost)
		}
	}
}

// walk asks with guesses that pass at once, pass widely and fail, and returns an error if the books are not those that
// TestTranscriptsArePaidFor counts with.
func walk(p Guarantee, step func(Guarantee, State, Input, Noise) (Output, State, error)) error {
	state := State{}
	for _, away := range []struct {
		margins      float64
		wide, failed int64
	}{{0, 0, 0}, {0.99, 0, 0}, {1.5, 1, 0}, {-1.5, 1, 0}, {2.5, 0, 1}, {-3, 0, 1}, {0, 0, 0}} {
		margin := float64(p.guessAndCheck().margin(grid/2, 0)) / float64(grid)
		in := Input{Training: mean(0.5, p.Training), Holdout: mean(0.5+away.margins*margin, p.N)}
		out, next, err := step(p, state, in, Seeded{Seed: 3, Question: state.Questions})
		if err != nil {
			return err
		}
		want := State{Questions: state.Questions + 1, Tokens: state.Tokens + away.failed, Memory: state.Memory}
		if away.wide > 0 {
			want.Memory = passes{passedWide(state) + away.wide}
		}
		if next != want || out.Tokens != away.failed {
			return errors.New("the state after a question is not what its outcome makes of it")
		}
		state = next
	}
	return nil
}

func TestOutcomesAreCounted(t *testing.T) {
	p := must(t, Spec{Mechanism: GuessAndCheck, N: 10_000, Training: 20_000, Questions: 100})
	if err := walk(p, Step); err != nil {
		t.Error(err)
	}
	forgetful := func(p Guarantee, s State, in Input, from Noise) (Output, State, error) {
		out, next, err := Step(p, s, in, from)
		next.Tokens = s.Tokens
		return out, next, err
	}
	if walk(p, forgetful) == nil {
		t.Error("a forgotten token went unnoticed")
	}
}

// releaseLaw checks the noise of a failure's release.
func releaseLaw(p Guarantee, wrongScale float64) error {
	var z []float64
	in := Input{Training: mean(0.1, p.Training), Holdout: mean(0.5, p.N)}
	for i := range int64(20_000) {
		out, _, err := Step(p, State{}, in, Seeded{Seed: 11, Question: i})
		if err != nil {
			return err
		}
		z = append(z, (out.Value-0.5)/(p.guessAndCheck().Sigma*wrongScale))
	}
	return stattest.Kolmogorov(z, distuv.UnitNormal.CDF, falseAlarm)
}

func TestGaussianReleases(t *testing.T) {
	p := must(t, Spec{Mechanism: GuessAndCheck, N: 100_000, Training: 100_000, Questions: 1000})
	if p.guessAndCheck().Cells != 0 {
		t.Fatalf("planned %d cells; the test is about noise", p.guessAndCheck().Cells)
	}
	if err := releaseLaw(p, 1); err != nil {
		t.Error(err)
	}
	if releaseLaw(p, 1.1) == nil {
		t.Error("noise 10% too narrow went unnoticed")
	}
}

func TestCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, MaxUnits).Draw(t, "n")
		m := Mean{N: n, Sum: rapid.Int64Range(0, n*grid).Draw(t, "sum")}
		cells := rapid.Int64Range(1, 1<<30).Draw(t, "cells")
		value := new(big.Rat).SetFloat64(m.cell(cells))
		away := new(big.Rat).Sub(value, big.NewRat(m.Sum, 1).Quo(big.NewRat(m.Sum, 1), new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(n), big.NewInt(grid)))))
		// Half a cell, and half a step for the grid.
		limit := new(big.Rat).Add(big.NewRat(1, 2*cells), big.NewRat(1, 2*grid))
		if away.Abs(away).Cmp(limit) > 0 {
			t.Fatalf("%d cells: %v is %s away, more than %s", cells, m, away.FloatString(15), limit.FloatString(15))
		}
	})
}

// gncParams draws a guarantee, a state of it, and a guess.
func gncParams(t *rapid.T) (Guarantee, State, *Guess) {
	p, err := Plan(Spec{Mechanism: GuessAndCheck, N: rapid.Int64Range(2, 1_000_000).Draw(t, "n"), Training: rapid.Int64Range(1, 1_000_000).Draw(t, "training"),
		Questions: rapid.Int64Range(1, 5000).Draw(t, "k"), Confidence: rapid.SampledFrom([]float64{0.5, 0.95, 0.999}).Draw(t, "confidence")})
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "rounded") {
		p = changed(p, func(m *guessAndCheck) { m.Cells, m.Sigma = rapid.Int64Range(1, 1000).Draw(t, "cells"), 0 })
	}
	s := State{Questions: rapid.Int64Range(0, p.Questions-1).Draw(t, "asked")}
	s.Tokens = rapid.Int64Range(0, min(p.Tokens-1, s.Questions)).Draw(t, "failed")
	s.Memory = passes{rapid.Int64Range(0, s.Questions-s.Tokens).Draw(t, "wide")}
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
		if p.guessAndCheck().Cells > 0 || out.Tokens == 0 {
			if h < i.Low-1e-12 || h > i.High+1e-12 {
				t.Fatalf("the holdout mean %v is not in %+v", h, i)
			}
		}
		if out.Tokens == 0 && out.Value != value {
			t.Fatalf("a guess of %v passed as %v", value, out.Value)
		}
		if g != nil && g.HalfWidth > 0 && out.Tokens == 0 && (i.High > out.Value+g.HalfWidth+1e-12 || i.Low < out.Value-g.HalfWidth-1e-12) {
			t.Fatalf("%+v is wider than %v", i, g.HalfWidth)
		}
		if narrowest := out.Tokens == 0 && passedWide(next) == passedWide(s); narrowest && !reflect.DeepEqual(i, expected) {
			t.Fatalf("the interval %+v, expected was %+v", i, expected)
		}
		if next.Questions != s.Questions+1 || next.Tokens != s.Tokens+out.Tokens || passedWide(next)+out.Tokens > passedWide(s)+1 {
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
