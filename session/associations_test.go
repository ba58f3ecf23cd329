package session

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestAssociationsAreExactByDefault: a correlation or covariance that names no form is the exact one where that is one question, with its value, interval, target and price, and elsewhere the
// clipped one, with a warning; what is named is asked, without one. It would notice a clipped mean that is given for Pearson's correlation without a word, an exact form at five questions that
// nobody asked for, and an answer about another number than its target says.
func TestAssociationsAreExactByDefault(t *testing.T) {
	for _, c := range []struct {
		mechanism thresholdout.Name
		units     bool
		weight    string
		exact     bool
	}{
		{thresholdout.GuessAndCheck, false, "", true},
		{thresholdout.Thresholdout, false, "", true},
		{thresholdout.Split, false, "", true},
		{thresholdout.GuessAndCheck, true, "", true},
		{thresholdout.GuessAndCheck, true, `,"weight":"row"`, false},
		{thresholdout.Gaussian, false, "", false},
	} {
		for _, kind := range []string{"correlation", "covariance"} {
			ask := func(members string) Answer {
				schema, table := few(t, 5, c.units, 0)
				_, training := few(t, 6, c.units, 0)
				spec := thresholdout.Spec{Mechanism: c.mechanism, N: table.Units(), Training: training.Units(), Questions: 10, Confidence: 0.95}
				if c.mechanism == thresholdout.GuessAndCheck || c.mechanism == thresholdout.Thresholdout {
					spec.Tokens = 5
				}
				p, err := thresholdout.Plan(spec)
				if err != nil {
					t.Fatal(err)
				}
				l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: table, Training: training,
					Compile: []queries.Option{queries.Grouped(c.units), queries.LargestUnit(3, true), queries.Training(trainingOf{training})}}
				a, err := l.Ask(context.Background(), fmt.Appendf(nil, `{"type":%q,"x":"x","y":"y","range_x":[0,1],"range_y":[0,1]%s%s}`, kind, c.weight, members))
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			name := fmt.Sprintf("%s of %s, units %v%s", kind, c.mechanism, c.units, c.weight)
			bare, clipped := ask(""), ask(`,"form":"clipped"`)
			want := clipped
			if c.exact {
				want = ask(`,"form":"exact"`)
			}
			// Noise and slices are the question's own: under mechanisms that compare, equal forms have equal answers.
			same := math.Abs(*bare.Value-*want.Value) < 1e-12 && *bare.Interval.Low == *want.Interval.Low
			if bare.Interval.Target != want.Interval.Target || bare.Cost != want.Cost || bare.Cost.Questions != clipped.Cost.Questions ||
				!same && (c.mechanism == thresholdout.GuessAndCheck) {
				t.Errorf("%s: without a form %v %+v for %+v, with it %v %+v for %+v", name, *bare.Value, *bare.Interval, bare.Cost, *want.Value, *want.Interval, want.Cost)
			}
			warns := func(a Answer) bool {
				return slices.ContainsFunc(a.Warnings, func(w Warning) bool { return w.Code == ClippedMean })
			}
			if warns(bare) == c.exact || warns(clipped) || warns(want) {
				t.Errorf("%s: warnings without a form %v, with it %v and %v", name, bare.Warnings, clipped.Warnings, want.Warnings)
			}
			if pearson := strings.Contains(bare.Interval.Target, "earson") || strings.Contains(bare.Interval.Target, "covariance of"); pearson != c.exact {
				t.Errorf("%s: the target is %q", name, bare.Interval.Target)
			}
		}
	}
}
