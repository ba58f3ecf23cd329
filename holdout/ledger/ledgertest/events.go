package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// openings: a holdout begins with what others have spent, in the commit that makes it, and goes on from there.
func openings(t *testing.T, s *suite) {
	l := s.open(t)
	heir := testHoldout("ho_heir", 10, 3)
	heir.Opening = []ledger.Opening{
		{From: "ho_1", Spent: ledger.Meters{"questions": 4, "tokens": 1}},
		{From: "ho_2", Spent: ledger.Meters{"questions": 3}},
		{From: "ho_3"},
	}
	for name, spoil := range map[string]func(h *ledger.Holdout){
		"over its limits together": func(h *ledger.Holdout) {
			h.Opening = append(h.Opening, ledger.Opening{From: "ho_4", Spent: ledger.Meters{"questions": 4}})
		},
		"named twice":     func(h *ledger.Holdout) { h.Opening = append(h.Opening, h.Opening[0]) },
		"from nobody":     func(h *ledger.Holdout) { h.Opening[0].From = "" },
		"a negative one":  func(h *ledger.Holdout) { h.Opening[2].Spent = ledger.Meters{"tokens": -1} },
		"another's meter": func(h *ledger.Holdout) { h.Opening[2].Spent = ledger.Meters{"rounds": 1} },
	} {
		h := heir
		h.Opening = append([]ledger.Opening(nil), heir.Opening...)
		spoil(&h)
		if err := l.CreateHoldout(t.Context(), h, nil); !errors.Is(err, ledger.ErrInvalid) && !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.plant(func(step string) error {
		if step == ledger.StepCommit {
			return errors.New("planted")
		}
		return nil
	})
	if err := l.CreateHoldout(t.Context(), heir, nil); !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatalf("failed commit: %v", err)
	}
	s.plant(nil)
	ready(l)
	if _, err := l.Holdout(t.Context(), heir.ID); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatalf("half of a holdout is left: %v", err)
	}
	create(t, l, heir)
	check := func() {
		t.Helper()
		spent(t, l, heir.ID, ledger.Meters{"questions": 7, "tokens": 1})
		if h, err := l.Holdout(t.Context(), heir.ID); err != nil || string(h.State) != "state 0" {
			t.Errorf("state %q (%v)", h.State, err)
		}
	}
	check()
	reports := s.verify(t, l)
	if r := reports[len(reports)-1]; r.Entries != 4 || r.Voids != 0 || len(r.Inherited) != 3 || r.Inherited[1] != "ho_2" {
		t.Errorf("report %+v", r)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = s.open(t)
	check()
	if answers, err := l.Answers(t.Context(), heir.ID, "", 0, 0); err != nil || len(answers) != 0 {
		t.Errorf("an opening is an answer: %v %v", answers, err)
	}
	d := testDebit("a")
	d.Cost = ledger.Meters{"questions": 4}
	if _, err := ask(l, t.Context(), heir.ID, d); !errors.Is(err, ledger.ErrBudget) {
		t.Errorf("what was inherited can be spent: %v", err)
	}
	d.Cost = ledger.Meters{"questions": 3}
	if r := mustAsk(t, l, heir.ID, d); r.Seq != 4 {
		t.Errorf("seq %d", r.Seq)
	}
	s.verify(t, l)
}

// ends: a holdout that was ended has nothing left, for good, and what was answered is answered still.
func ends(t *testing.T, s *suite) {
	l := s.open(t)
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	end := func(id string, how ledger.End) error {
		return l.Update(t.Context(), id, func(tx *ledger.Tx) error {
			if err := tx.End(how, "key_admin", at); err != nil {
				return err
			}
			if _, err := tx.Append(testDebit("in the same update")); !errors.Is(err, ledger.ErrEnded) {
				t.Errorf("%s: an answer behind the end: %v", id, err)
			}
			return tx.End(how, "key_admin", at) // nothing
		})
	}
	is := func(id string, how ledger.End, entries int64) {
		t.Helper()
		h, err := l.Holdout(t.Context(), id)
		if err != nil || h.End != how || !h.Spent.Equal(h.Limits) || string(h.State) != "state 0" || h.Deleted {
			t.Errorf("%s: %+v (%v), want the end %q", id, h, err, how)
		}
		for _, r := range s.verify(t, l) {
			if r.Holdout == id && (r.End != how || r.Entries != entries || r.Voids != 0) {
				t.Errorf("report %+v, want the end %q", r, how)
			}
		}
	}
	for _, id := range []string{"ho_closed", "ho_retired"} {
		create(t, l, testHoldout(id, 10, 2))
		mustAsk(t, l, id, testDebit("a"))
	}
	if err := end("ho_closed", "over"); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("an end that is none: %v", err)
	}
	for range 2 {
		if err := errors.Join(end("ho_closed", ledger.Closed), end("ho_retired", ledger.Retired)); err != nil {
			t.Fatal(err)
		}
		is("ho_closed", ledger.Closed, 3)
		is("ho_retired", ledger.Retired, 3)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = s.open(t)
	}
	if err := errors.Join(end("ho_closed", ledger.Retired), end("ho_retired", ledger.Closed)); err != nil {
		t.Fatal(err)
	}
	is("ho_closed", ledger.Retired, 4)
	is("ho_retired", ledger.Retired, 3)
	free := testDebit("free")
	free.Cost = nil
	if _, err := ask(l, t.Context(), "ho_retired", free); !errors.Is(err, ledger.ErrEnded) {
		t.Errorf("a free answer behind the end: %v", err)
	}
	if _, ok, err := l.Answer(t.Context(), "ho_retired", testDebit("a").Query); !ok || err != nil {
		t.Errorf("no replay: %v", err)
	}
	for _, name := range ledger.EndEvents {
		d := testDebit("a")
		d.Query, d.Void = name, true
		create(t, l, testHoldout("ho_"+name, 10, 2))
		if _, err := ask(l, t.Context(), "ho_"+name, d); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("a void by the name of %s: %v", name, err)
		}
	}
	if err := l.DeleteHoldout(context.Background(), "ho_retired", "key_admin"); err != nil {
		t.Error(err)
	}
	if err := end("ho_retired", ledger.Retired); !errors.Is(err, ledger.ErrDeleted) {
		t.Errorf("the end of a deleted holdout: %v", err)
	}
	s.verify(t, l)
}
