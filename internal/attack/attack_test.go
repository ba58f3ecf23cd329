package attack

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

func planned(t *testing.T, spec thresholdout.Spec) thresholdout.Guarantee {
	t.Helper()
	g, err := thresholdout.Plan(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSound: no mechanism is refuted, each has the games that it should have, and the figure can be drawn. A bound that is applied at the wrong level, or a game that an honest mechanism loses, is noticed.
func TestSound(t *testing.T) {
	for _, spec := range []thresholdout.Spec{
		{Mechanism: thresholdout.Gaussian, N: 1000, Questions: 200},
		{Mechanism: thresholdout.Gaussian, N: 1000, Questions: 200, Rounds: 3},
		{Mechanism: thresholdout.Gaussian, N: 1000, Questions: 50, Published: true},
		{Mechanism: thresholdout.GuessAndCheck, N: 1000, Training: 1000, Questions: 100, Tokens: 25},
		{Mechanism: thresholdout.Thresholdout, N: 1000, Training: 1000, Questions: 100, Tokens: 25},
		{Mechanism: thresholdout.Thresholdout, Form: thresholdout.FormLaplace, N: 1000, Training: 1000, Questions: 100, Tokens: 25},
		{Mechanism: thresholdout.Split, N: 1000, Questions: 20},
		{Mechanism: thresholdout.Ladder, N: 1000, Questions: 100},
		{Mechanism: thresholdout.Naive, N: 1000, Questions: 100},
	} {
		g := planned(t, spec)
		r, err := Run(t.Context(), Settings{Guarantee: g, Games: 20, Seed: 1})
		if err != nil {
			t.Fatalf("%+v: %v", spec, err)
		}
		if r.Refuted || r.Powerless || r.Tracing == nil || (r.OneRow != nil) != noiseOf(g).any {
			t.Errorf("%+v: %s", spec, r.Verdict())
		}
		if promises := r.Tracing.Promised != nil; promises != (spec.Mechanism == thresholdout.Gaussian) {
			t.Errorf("%+v: a bound of tracing is promised: %v", spec, promises)
		}
		if err := r.Draw(filepath.Join(t.TempDir(), "audit.svg")); err != nil {
			t.Errorf("%+v: %v", spec, err)
		}
		var text strings.Builder
		if err := r.Write(&text); err != nil || !strings.Contains(text.String(), r.Verdict()) {
			t.Errorf("%+v: %v\n%s", spec, err, text.String())
		}
	}
}

// TestHalfTheNoise: a holdout that promises noise and has half of it is refuted, in each form.
func TestHalfTheNoise(t *testing.T) {
	for _, spec := range []thresholdout.Spec{
		{Mechanism: thresholdout.Gaussian, N: 1000, Questions: 200, Sigma: .05},
		{Mechanism: thresholdout.Thresholdout, N: 1000, Training: 1000, Questions: 100, Tokens: 25, Sigma: .03, Threshold: .12},
	} {
		promised := planned(t, spec)
		spec.Sigma /= 2
		r, err := Run(t.Context(), Settings{Guarantee: promised, Games: 30, Seed: 1, plays: planned(t, spec)})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Refuted || !r.OneRow.Broken {
			t.Errorf("%+v: half of the noise is not refuted: %s %+v", spec, r.Verdict(), *r.OneRow)
		}
	}
}

// TestNarrowIntervals: intervals that were planned for a few questions, of a mechanism that answers many exactly, are refuted by the games of the analysts.
func TestNarrowIntervals(t *testing.T) {
	promised := planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 1000, Questions: 400})
	plays := planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 1000, Questions: 400, Rounds: 1})
	// One round is fixed beforehand: an analyst who looks within it breaks its intervals.
	plays.Rounds = 0
	promised.Confidence = .95
	r, err := Run(t.Context(), Settings{Guarantee: promised, Games: 12, Seed: 1, plays: plays})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Refuted || !r.Intervals[0].Broken {
		t.Errorf("intervals of one round are not refuted: %s", r.Verdict())
	}
}

// TestReproducible: the same seed and number of games give the same report.
func TestReproducible(t *testing.T) {
	set := Settings{Guarantee: planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 500, Questions: 30}), Games: 3, Seed: 5}
	a, errA := Run(t.Context(), set)
	b, errB := Run(t.Context(), set)
	if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("two reports differ: %v, %v", errA, errB)
	}
}

// TestPowerless: too few games to refute anything are said to be too few.
func TestPowerless(t *testing.T) {
	r, err := Run(t.Context(), Settings{Guarantee: planned(t, thresholdout.Spec{Mechanism: thresholdout.Split, N: 500, Questions: 5}), Games: 1})
	if err != nil || !r.Powerless || r.Refuted {
		t.Errorf("one game: %v, %s", err, r.Verdict())
	}
}

func TestRefused(t *testing.T) {
	g := planned(t, thresholdout.Spec{Mechanism: thresholdout.Split, N: 500, Questions: 5})
	for name, set := range map[string]Settings{
		"no guarantee": {}, "confidence": {Guarantee: g, Confidence: 1}, "games": {Guarantee: g, Games: -1}, "time": {Guarantee: g, Time: -1},
	} {
		if _, err := Run(t.Context(), set); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
