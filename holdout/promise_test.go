package holdout

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestLeavingIsNoRefund: how long a scan takes may depend on the rows, so an asker who leaves in the middle of one has asked.
func TestLeavingIsNoRefund(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Mechanism: "gaussian", Holdout: 0.9, Questions: 1000}, visits(t, 1000, 11))
	ctx, leave := context.WithCancel(t.Context())
	count(t, s, card.ID).before = func() error { leave(); return nil } // in the middle of a scan
	_, err := s.Ask(ctx, analyst, card.ID, []byte(`{"type":"mean","range":[0,1],"of":"x"}`), "")
	if ctx.Err() == nil {
		t.Fatal("no scan began")
	}
	b, budgetErr := s.Budget(t.Context(), analyst, card.ID)
	if budgetErr != nil || b.Questions.Left != 999 {
		t.Errorf("%+v left after one answer (%v, %v)", b.Questions, err, budgetErr)
	}
}

// TestTooMuchWork: what could take too long is refused by public facts, before a row is read.
func TestTooMuchWork(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.Work = 13_000 })
	card := create(t, s, Settings{Mechanism: "gaussian", Holdout: 0.5, Questions: 10, Sigma: 0.05}, visits(t, 4000, 12))
	if _, err := s.Ask(t.Context(), analyst, card.ID, []byte(`{"type":"fraction","of":"x * 2 > x + 1"}`), ""); KindOf(err) != TooLarge {
		t.Errorf("%v", err)
	}
	ask(t, s, card.ID, `{"type":"fraction","of":"x > 0.5"}`)
	if b, err := s.Budget(t.Context(), analyst, card.ID); err != nil || b.Questions.Left != 9 {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestTargetsSayThePopulation: an interval is about what the holdout was drawn from, which a split can narrow.
func TestTargetsSayThePopulation(t *testing.T) {
	s := open(t, t.TempDir())
	for i, c := range []struct {
		set  Settings
		want string
	}{
		{Settings{}, "in the population that the rows were drawn from"},
		{Settings{Unit: "chart"}, "in the population that the units were drawn from"},
		{Settings{Stratify: "clinic"}, "in the population that the rows were drawn from, with strata of the sizes on the card"},
		{Settings{Split: "time:seen"}, "in the population that rows as late as the holdout's are drawn from"},
	} {
		card := create(t, s, c.set, visits(t, 600, uint64(20+i)))
		answer := ask(t, s, card.ID, `{"type":"fraction","of":"late"}`)
		var core struct{ Interval struct{ Target string } }
		if err := json.Unmarshal(answer.Body, &core); err != nil || !strings.HasSuffix(core.Interval.Target, c.want) {
			t.Errorf("%+v: %q, want … %q (%v)", c.set, core.Interval.Target, c.want, err)
		}
		if !strings.HasPrefix(card.Target, strings.TrimPrefix(c.want, "in ")) {
			t.Errorf("%+v: the card says %q", c.set, card.Target)
		}
	}
}

// TestRenamedColumnKeepsTheSplit: rows that were held out and asked about must not become training rows because a column has
// another name.
func TestRenamedColumnKeepsTheSplit(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 2000, 13)
	before := create(t, s, Settings{Holdout: 0.4}, table)
	columns := make([]dataset.Column, table.Columns())
	for i := range columns {
		columns[i] = *table.Column(i)
	}
	columns[1].Name = "renamed"
	changed, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	after := create(t, s, Settings{Holdout: 0.4, Overlap: overlapAccepted}, changed)
	was, now := numbers(t, training(t, s, before.ID), "x"), numbers(t, training(t, s, after.ID), "renamed")
	if len(was) != len(now) {
		t.Fatalf("%d and %d training rows", len(was), len(now))
	}
	for i := range was {
		if was[i] != now[i] {
			t.Fatalf("training row %d was %v and is %v", i, was[i], now[i])
		}
	}
}
