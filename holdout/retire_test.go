package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// released are the rows that a retired holdout gives, as a table.
func released(t *testing.T, s *Service, p Principal, id string) (*dataset.Table, error) {
	t.Helper()
	f, err := s.Released(t.Context(), p, id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	must(t, err)
	file, dir := filepath.Join(t.TempDir(), "retired.parquet"), filepath.Join(t.TempDir(), "retired")
	must(t, os.WriteFile(file, content, 0o600))
	_, err = ingest.Decode(t.Context(), file, dir, ingest.Limits{})
	must(t, err)
	table, err := dataset.Open(dir)
	must(t, err)
	t.Cleanup(func() { table.Close() })
	return table, nil
}

func retire(t *testing.T, s *Service, id string) Card {
	t.Helper()
	card, err := s.Retire(t.Context(), admin, id)
	must(t, err)
	return card
}

// TestRetire: before its retirement no row of a holdout is given, to nobody; after it nothing new is answered, under any mechanism, also after a restart, and every row that was held out or in the check part is given once,
// with its unit. Recorded answers replay. Only admins retire, and nobody with a grant downloads. Retiring again does nothing. It notices rows that are given early, a question that is answered late, and rows that are missing.
func TestRetire(t *testing.T) {
	for _, set := range []Settings{
		{Mechanism: "gaussian", Questions: 20},
		{Mechanism: "gaussian", Questions: 20, Rounds: 4},
		{Mechanism: "guess_and_check", Questions: 30, Tokens: 10, Unit: "chart", Label: "late"},
		{Mechanism: "guess_and_check", Questions: 30, Tokens: 10, Sealed: 0.5},
		{Mechanism: "thresholdout", Questions: 30, Tokens: 10},
		{Mechanism: "split", Questions: 10},
		{Mechanism: "gaussian", Questions: 20, Label: "late", Features: "public"},
	} {
		t.Run(set.Mechanism, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			card := create(t, s, set, visits(t, 2000, 5))
			id := card.ID
			first := ask(t, s, id, mean(1))
			refused := []Principal{analyst}
			var given Principal
			if set.Rounds == 0 { // of a holdout with rounds there are no grants
				given, _ = grant(t, s, NewGrant{Holdout: id, Questions: 5})
				refused = append(refused, given)
			}
			want := heldOut(t, s, id)
			_, err := s.Released(t.Context(), admin, id)
			wantKind(t, "rows before the retirement", err, Conflict)
			for _, p := range refused {
				_, err := s.Retire(t.Context(), p, id)
				wantKind(t, "a retirement by "+string(p.Scope), err, Forbidden)
			}
			card, err = s.Card(t.Context(), admin, id) // of a draft it says no rows
			must(t, err)
			if _, err := os.Stat(filepath.Join(dir, holdoutsDir, id, retiredParquet)); err == nil {
				t.Error("the rows are written before the retirement")
			}
			for range 2 {
				card := retire(t, s, id)
				if !card.Retired || card.Closed || card.Budget.Questions.Left != 0 || !card.Budget.Retired || card.State != "" {
					t.Errorf("the card of a retired holdout: %+v, %+v", card, card.Budget)
				}
			}
			for range 2 {
				_, err := s.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
				var e *Error
				if !errors.As(err, &e) || e.Kind != BudgetExhausted || !strings.Contains(e.Detail, "retired") {
					t.Errorf("a question after the retirement: %v", err)
				}
				if _, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(2), mean(3)), false, ""); KindOf(err) != BudgetExhausted {
					t.Errorf("a batch after it: %v", err)
				}
				b, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(1), mean(3)), true, "")
				if err != nil || string(b.Answers[0].Body) != string(first.Body) || b.Answers[1].NotAsked != HoldoutRetired {
					t.Errorf("a batch in part after it: %v, %+v", err, b.Answers)
				}
				if _, err := s.PlanReport(t.Context(), admin, id, batchOf(mean(4))); KindOf(err) != BudgetExhausted && KindOf(err) != Invalid {
					t.Errorf("a plan of a report after it: %v", err)
				}
				if a := ask(t, s, id, mean(1)); !a.Replayed || string(a.Body) != string(first.Body) {
					t.Errorf("replayed as %s", a.Body)
				}
				if e, err := s.Explain(t.Context(), analyst, id, []byte(mean(2))); err != nil || !slices.ContainsFunc(e.Warnings, func(w Warning) bool { return w.Code == HoldoutRetired }) {
					t.Errorf("an explanation after it: %v %+v", err, e.Warnings)
				}
				if page, err := s.Answers(t.Context(), admin, id, 0, 10); err != nil || len(page.Answers) != 1 {
					t.Errorf("the history: %v, %d answers", err, len(page.Answers))
				}
				if set.Rounds == 0 {
					_, err = s.Released(t.Context(), given, id)
					wantKind(t, "rows for a key with a grant", err, Forbidden)
				}
				rows, err := released(t, s, analyst, id)
				must(t, err)
				if int64(rows.Rows()) != card.Rows.Holdout+card.Rows.Check || rows.Columns() != 6 {
					t.Fatalf("%d rows of %d columns, of %+v", rows.Rows(), rows.Columns(), card.Rows)
				}
				x, _ := rows.Lookup("x")
				got := slices.Sorted(slices.Values(x.Numbers[:card.Rows.Holdout])) // the holdout's come first
				if !slices.Equal(got, want) {
					t.Error("other rows than those that were held out")
				}
				if training := trainingX(t, s, id); slices.ContainsFunc(x.Numbers, func(v float64) bool { return slices.Contains(training, v) }) {
					t.Error("rows of the training part among them")
				}
				must(t, s.Close())
				s = open(t, dir)
			}
			must(t, s.Delete(t.Context(), admin, id))
			_, err = s.Released(t.Context(), admin, id)
			wantKind(t, "rows of a deleted holdout", err, NotFound)
			_, err = s.Retire(t.Context(), admin, id)
			wantKind(t, "a retirement of a deleted holdout", err, NotFound)
		})
	}
}

// trainingX are the values of x of the training part.
func trainingX(t *testing.T, s *Service, id string) []float64 {
	t.Helper()
	h, release, err := s.tables.take(t.Context(), id)
	must(t, err)
	defer release()
	x, _ := h.trainingTable.Lookup("x")
	return slices.Clone(x.Numbers)
}

// TestRetireClosedAndDraft: a holdout that its final report has closed is retired, too, and the report is read on; so is a draft, which then is none, and is not created again: its rows were released.
func TestRetireClosedAndDraft(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	closedID := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 30, Tokens: 10}, visits(t, 800, 1)).ID
	report, err := s.CloseWithReport(t.Context(), admin, closedID, batchOf(mean(1)), "", "")
	must(t, err)
	table := visits(t, 800, 2)
	draft := create(t, s, Settings{Questions: 20}, table).ID
	for _, id := range []string{closedID, draft} {
		if card := retire(t, s, id); !card.Retired || card.Closed != (id == closedID) || card.Draft {
			t.Errorf("%s: retired %v, closed %v, a draft %v", id, card.Retired, card.Closed, card.Draft)
		}
		if _, err := released(t, s, analyst, id); err != nil {
			t.Error(err)
		}
	}
	if read, err := s.Report(t.Context(), admin, closedID); err != nil || !equalJSON(t, read, report) {
		t.Errorf("the report after the retirement: %v", err)
	}
	_, err = s.Report(t.Context(), admin, draft)
	var none *Error
	if !errors.As(err, &none) || none.Kind != NotFound || !strings.Contains(none.Detail, "retired") {
		t.Errorf("the report of one that was retired without: %v", err)
	}
	_, err = again(t, s, Settings{Name: "again", Questions: 30, Mechanism: "gaussian"}, table)
	refusedFor(t, "a retired draft", err, draft, reasonRetired)
	must(t, s.Close())
	all, err := Verify(t.Context(), dir, true)
	must(t, err)
	for _, v := range all {
		if !v.Retired {
			t.Errorf("verify says of %s that it is not retired", v.Holdout)
		}
	}
}

// TestRetireRaces: questions and a retirement at the same time. Whoever was answered is in the chain before the entry, nothing is after it, no row is given before it, and nothing that was read is void for it.
// It notices a retirement that does not wait for what is in the air.
func TestRetireRaces(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 5000}, visits(t, 3000, 9)).ID
	ask(t, s, id, mean(0))
	var wg sync.WaitGroup
	begun := make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	for caller := range 4 {
		wg.Go(func() {
			for i := range 200 {
				a, err := s.Ask(context.Background(), analyst, id, []byte(mean(1+caller+4*i)), "")
				switch {
				case err == nil:
					once()
					if len(a.Body) == 0 {
						t.Error("an empty answer")
					}
				case KindOf(err) != BudgetExhausted:
					t.Errorf("a question beside the retirement: %v", err)
				default:
					once()
					return
				}
			}
		})
	}
	wg.Go(func() { // a row that is given is given after the entry
		for {
			f, err := s.Released(context.Background(), analyst, id)
			h, lookErr := s.ledger.Holdout(context.Background(), id)
			if err == nil {
				f.Close()
				if lookErr != nil || !h.Retired {
					t.Errorf("rows are given before the retirement is durable: %v", lookErr)
				}
				return
			}
			if KindOf(err) != Conflict {
				t.Errorf("rows beside the retirement: %v", err)
				return
			}
		}
	})
	<-begun
	retire(t, s, id)
	wg.Wait()
	e, ok, err := s.ledger.Retirement(t.Context(), id)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	last := int64(0)
	for {
		entries, err := s.ledger.Answers(t.Context(), id, "", last, 0)
		must(t, err)
		if len(entries) == 0 {
			break
		}
		last = entries[len(entries)-1].Seq
	}
	if last >= e.Seq || last != e.Seq-1 {
		t.Errorf("the last answer is entry %d, the retirement %d: something is void, or late", last, e.Seq)
	}
}

// TestForgottenRetirement: a ledger that has forgotten a retirement is noticed by the mark, at once and with no other entry behind it, so that the holdout gives no new answers although its rows are out. Without the mark no row leaves.
func TestForgottenRetirement(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 20}, visits(t, 400, 1)).ID
	ask(t, s, id, mean(1))
	must(t, s.Close())
	older := copyLedger(t, dir)
	s = open(t, dir)
	if err := s.retire(t.Context(), admin, id, func() {}); err != nil { // the server dies before the mark is written
		t.Fatal(err)
	}
	e, _, err := s.ledger.Retirement(t.Context(), id)
	must(t, err)
	holdoutDirectory := filepath.Join(dir, holdoutsDir, id)
	if m, err := readMark(holdoutDirectory); err != nil || m.Seq >= e.Seq {
		t.Fatalf("the mark is at %d before anybody wrote it: %v", m.Seq, err)
	}
	_, err = released(t, s, analyst, id)
	must(t, err)
	if m, err := readMark(holdoutDirectory); err != nil || m.Seq != e.Seq || m.Head != ledger.HeadText(e.Head) {
		t.Errorf("rows have left, and the mark is at %d, %v; the retirement is %d", m.Seq, err, e.Seq)
	}
	must(t, os.Rename(filepath.Join(holdoutDirectory, markFile), filepath.Join(holdoutDirectory, "elsewhere")))
	if _, err := s.Released(t.Context(), analyst, id); err == nil {
		t.Error("rows leave without a mark")
	}
	must(t, os.Rename(filepath.Join(holdoutDirectory, "elsewhere"), filepath.Join(holdoutDirectory, markFile)))
	must(t, s.Close())
	older()
	s = open(t, dir)
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
	wantKind(t, "a question where the retirement is forgotten", err, RolledBack)
	_, err = s.Retire(t.Context(), admin, id)
	wantKind(t, "a retirement there", err, RolledBack)
	_, err = s.Released(t.Context(), analyst, id)
	wantKind(t, "rows there", err, RolledBack)
}

// TestLineageAfterRetirement: rows of a retired holdout may be in the training part of another one, and are not held out again, nor after it was deleted: they were shown. An admin can accept it.
func TestLineageAfterRetirement(t *testing.T) {
	const rows = 3_000
	s := open(t, t.TempDir())
	old := measured(t, rows, 1)
	set := Settings{Name: "first", Holdout: 0.3, Questions: 20, Mechanism: "gaussian"}
	card, err := again(t, s, set, madeOf(t, old))
	must(t, err)
	id := card.ID
	ask(t, s, id, `{"type":"mean","of":"a","range":[-5,5]}`)
	set.Name = "second"
	fresh := measured(t, rows, 2)
	given := Settings{Name: "next", Questions: 20, Mechanism: "gaussian", Split: "given"}
	parts := func(training, holdout []dataset.Column) (Card, error) {
		card, _, err := s.Create(t.Context(), admin, given, givenUpload(parquet(t, madeOf(t, training)), parquet(t, madeOf(t, holdout))), "")
		return card, err
	}
	if _, err := parts(old, fresh); matters(t, err, id)[heldOutElsewhere] == 0 {
		t.Errorf("rows that are held out are handed out before the retirement: %v", err)
	}
	retire(t, s, id)
	for _, deleted := range []bool{false, true} {
		_, err := again(t, s, set, madeOf(t, nudged(old)))
		if got := matters(t, err, id); got[shownBefore] < 0.9 || got[heldOutAgain] != 0 {
			t.Errorf("deleted %v: rows that were released are held out: %v", deleted, got)
		}
		if !deleted {
			next, err := parts(old, fresh)
			if err != nil {
				t.Fatalf("rows of a retired holdout in a training part: %v", err)
			}
			must(t, s.Delete(t.Context(), admin, next.ID))
			must(t, s.Delete(t.Context(), admin, id))
		}
	}
	set.Overlap = overlapAccepted
	if _, err := again(t, s, set, madeOf(t, nudged(old))); err != nil {
		t.Errorf("accepted: %v", err)
	}
}

// TestSucceeds: a holdout names the retired one that it comes after, on both cards and in the list; what differs is said. One that is not there, or not retired, is refused.
func TestSucceeds(t *testing.T) {
	s := open(t, t.TempDir())
	first := create(t, s, Settings{Questions: 20, Label: "late"}, visits(t, 800, 1)).ID
	set := Settings{Name: "next", Mechanism: "gaussian", Questions: 20, Label: "late", Succeeds: first}
	refused := func(what string, set Settings) {
		t.Helper()
		_, err := again(t, s, set, visits(t, 800, 2))
		var e *Error
		if !errors.As(err, &e) || e.Kind != Invalid || e.Pointer != "succeeds" {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("not retired", set)
	for what, id := range map[string]string{"none": "ho_none", "no id": "visits"} {
		wrong := set
		wrong.Succeeds = id
		refused(what, wrong)
	}
	retire(t, s, first)
	card, err := again(t, s, set, visits(t, 800, 2))
	must(t, err)
	if card.Succeeds != first || card.Settings.Succeeds != first || slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == differsFromPredecessor }) {
		t.Errorf("%+v", card)
	}
	set.Label, set.Unit = "clinic", "chart"
	other, err := again(t, s, set, visits(t, 800, 3))
	must(t, err)
	if i := slices.IndexFunc(other.Warnings, func(w Warning) bool { return w.Code == differsFromPredecessor }); i < 0 ||
		!strings.Contains(other.Warnings[i].Detail, "its label is clinic and was late; its unit is chart and was none") {
		t.Errorf("%+v", other.Warnings)
	}
	if old, err := s.Card(t.Context(), analyst, first); err != nil || !slices.Equal(old.SucceededBy, []string{card.ID, other.ID}) {
		t.Errorf("the first is succeeded by %v, %v", old.SucceededBy, err)
	}
	cards, err := s.List(t.Context(), analyst)
	must(t, err)
	if !slices.Equal(cards[0].SucceededBy, []string{card.ID, other.ID}) || cards[1].Succeeds != first {
		t.Errorf("the list: %v, %v", cards[0].SucceededBy, cards[1].Succeeds)
	}
	text, err := json.Marshal(cards[1])
	must(t, err)
	if !strings.Contains(string(text), `"succeeds":"`+first+`"`) {
		t.Errorf("the card as JSON: %s", text)
	}
	must(t, s.Delete(t.Context(), admin, first))
	set.Succeeds = first
	refused("deleted", set)
}

// TestRetireKeepsOthers: rows that another holdout holds out which still answers are not released; once that has ended they are. It notices a retirement that asks nobody.
func TestRetireKeepsOthers(t *testing.T) {
	const rows = 3_000
	s := open(t, t.TempDir())
	table := measured(t, rows, 1)
	set := Settings{Name: "first", Holdout: 0.3, Questions: 20, Mechanism: "gaussian"}
	first, err := again(t, s, set, madeOf(t, table))
	must(t, err)
	ask(t, s, first.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
	set.Name, set.Overlap = "second", overlapAccepted
	second, err := again(t, s, set, madeOf(t, nudged(table)))
	must(t, err)
	other, err := again(t, s, Settings{Name: "other", Holdout: 0.3, Questions: 20, Mechanism: "gaussian"}, madeOf(t, measured(t, rows, 2)))
	must(t, err)
	_, err = s.Retire(t.Context(), admin, second.ID)
	var e *Error
	if !errors.As(err, &e) || e.Kind != RowsKnown || !strings.Contains(e.Detail, first.ID) {
		t.Fatalf("rows of an open holdout are released: %v", err)
	}
	_, err = s.Released(t.Context(), admin, second.ID)
	wantKind(t, "rows after a refused retirement", err, Conflict)
	ask(t, s, second.ID, `{"type":"mean","of":"b","range":[-5,5]}`)
	retire(t, s, other.ID) // of which no row is elsewhere
	must(t, s.Delete(t.Context(), admin, first.ID))
	retire(t, s, second.ID)
}
