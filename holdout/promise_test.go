package holdout

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestLeavingIsNoRefund: how long a scan takes may depend on the rows, so an asker who leaves in the middle of one has asked.
func TestLeavingIsNoRefund(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Mechanism: "gaussian", Holdout: 0.9, Questions: 1000}, visits(t, 50_000, 11))
	debits := int64(0)
	for attempt, stay := 0, 10*time.Millisecond; attempt < 8; attempt, stay = attempt+1, 2*stay {
		ctx, leave := context.WithTimeout(t.Context(), stay)
		terms := make([]string, 20) // about a second of work
		for i := range terms {
			terms[i] = strings.Repeat("exp(log(", 30) + fmt.Sprintf("x + %d.5", 20*attempt+i) + strings.Repeat("))", 30)
		}
		_, err := s.Ask(ctx, analyst, card.ID, []byte(`{"type":"mean","range":[0,9000],"of":"`+strings.Join(terms, " + ")+`"}`), "")
		left := ctx.Err() != nil
		leave()
		if err == nil {
			debits++
		}
		b, budgetErr := s.Budget(t.Context(), analyst, card.ID)
		if budgetErr != nil || b.Questions.Left != 1000-debits {
			t.Fatalf("%+v left after %d answers (%v, %v)", b.Questions, debits, err, budgetErr)
		}
		if left && err == nil {
			return // the asker left, the scan went on, and it is paid
		}
		if !left {
			t.Fatalf("a scan was done within %v, and every shorter stay ended in %v", stay, err)
		}
	}
	t.Fatal("whoever left got neither an answer nor a debit")
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
		{Settings{Unit: "patient"}, "in the population that the units were drawn from"},
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
	s := open(t, t.TempDir(), func(o *Options) { o.ReusedRows = ReusedWarn }) // rows under another name are the same rows
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
	after := create(t, s, Settings{Holdout: 0.4}, changed)
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
