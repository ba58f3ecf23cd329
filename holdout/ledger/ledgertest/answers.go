package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// answerIsRecordedAndReplayed: an answer is the same bytes for ever, also after the ledger was opened again, and is paid once.
func answerIsRecordedAndReplayed(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 3, 1))
	d := testDebit("a")
	r := mustAsk(t, l, "ho_1", d)
	want := `{"query":"a","value":0.25,"ledger":{"seq":1,"head":"` + r.Head + `"}}`
	if r.Seq != 1 || string(r.Body) != want {
		t.Fatalf("receipt %d %s, want %s", r.Seq, r.Body, want)
	}
	replayed := func() {
		t.Helper()
		if _, err := ask(l, t.Context(), "ho_1", d); !errors.Is(err, ledger.ErrAnswered) {
			t.Errorf("second append: %v", err)
		}
		if body, ok, err := l.Answer(t.Context(), "ho_1", d.Query); err != nil || !ok || string(body) != want {
			t.Errorf("replay: %s %v %v", body, ok, err)
		}
		var body []byte
		var ok, never bool
		err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error { // the last run counts
			body, ok = tx.Answer(d.Query)
			_, never = tx.Answer(testDebit("b").Query)
			return nil
		})
		if err != nil || !ok || string(body) != want || never {
			t.Errorf("replay within an update: %s %v %v; an answer that was never given: %v", body, ok, err, never)
		}
		spent(t, l, "ho_1", ledger.Meters{"questions": 1, "tokens": 0})
	}
	replayed()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = s.open(t)
	replayed()
	if reports := s.verify(t, l); len(reports) != 1 || reports[0].Head != r.Head || reports[0].Entries != 2 || reports[0].Answers != 1 {
		t.Fatalf("reports %+v", reports)
	}
}

// metersAreKeptByName: a holdout has the meters that it was created with and no others, whatever their names, each with its own amounts.
func metersAreKeptByName(t *testing.T, s *suite) {
	l := s.open(t)
	limits := map[string]ledger.Meters{
		"ho_1": {"questions": 5},
		"ho_2": {"rounds": 3, "questions": 7, "tokens": 0},
		"ho_3": {"a": 1, "b_2": 1<<63 - 1, "zz": 9},
	}
	for _, id := range []string{"ho_1", "ho_2", "ho_3"} {
		h := testHoldout(id, 0, 0)
		h.Limits = limits[id]
		create(t, l, h)
	}
	costs := map[string][]ledger.Meters{
		"ho_1": {{"questions": 2}, {}, {"questions": 1}},
		"ho_2": {{"questions": 1, "rounds": 1}, {"questions": 2}, {"rounds": 2, "questions": 0}},
		"ho_3": {{"b_2": 1<<63 - 2}, {"a": 1}, {"zz": 4, "b_2": 1}},
	}
	want := map[string]ledger.Meters{
		"ho_1": {"questions": 3},
		"ho_2": {"questions": 3, "rounds": 3, "tokens": 0},
		"ho_3": {"a": 1, "b_2": 1<<63 - 1, "zz": 4},
	}
	for id, all := range costs {
		for i, cost := range all {
			d := numbered(i)
			d.Cost = cost
			mustAsk(t, l, id, d)
		}
	}
	for range 2 {
		for id := range limits {
			spent(t, l, id, want[id])
			if h, err := l.Holdout(t.Context(), id); err != nil || !h.Limits.Equal(limits[id]) {
				t.Errorf("%s: limits %v %v, want %v", id, h.Limits, err, limits[id])
			}
			entries, err := l.Answers(t.Context(), id, "", 0, 0)
			if err != nil || len(entries) != 3 {
				t.Fatalf("%s: %d entries, %v", id, len(entries), err)
			}
			sum := ledger.Meters{}
			for i, e := range entries {
				for name := range limits[id] {
					sum[name] += e.Debit[name]
					if e.Debit[name] != costs[id][i][name] {
						t.Errorf("%s: entry %d debits %v, want %v", id, i, e.Debit, costs[id][i])
					}
				}
				if !e.Spent.Equal(sum) {
					t.Errorf("%s: entry %d says that %v are spent, want %v", id, i, e.Spent, sum)
				}
			}
			err = l.Update(t.Context(), id, func(tx *ledger.Tx) error {
				if !tx.Spent().Equal(want[id]) || !tx.Limits().Equal(limits[id]) {
					t.Errorf("%s: within an update, %v of %v are spent, want %v of %v", id, tx.Spent(), tx.Limits(), want[id], limits[id])
				}
				d := testDebit("other")
				d.Cost = ledger.Meters{"others": 0}
				if _, err := tx.Append(d); !errors.Is(err, ledger.ErrInvalid) {
					t.Errorf("%s: a debit of a meter that there is not: %v", id, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		s.verify(t, l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = s.open(t)
	}
}

// limitOfEachMeter: no debit exceeds what is left of any meter; what is exactly as much fits.
func limitOfEachMeter(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 2, 1))
	token := testDebit("token")
	token.Cost["tokens"] = 1
	mustAsk(t, l, "ho_1", token)
	for _, c := range []struct {
		name              string
		questions, tokens int64
		fits              bool
	}{
		{"tokens", 1, 1, false},
		{"questions", 2, 0, false},
		{"overflow", 1<<63 - 1, 0, false},
		{"overflow of tokens", 0, 1<<63 - 1, false},
		{"fits", 1, 0, true},
		{"one more", 1, 0, false},
		{"free", 0, 0, true},
	} {
		d := testDebit(c.name)
		d.Cost = ledger.Meters{"questions": c.questions, "tokens": c.tokens}
		_, err := ask(l, t.Context(), "ho_1", d)
		var budget *ledger.BudgetError
		if c.fits != (err == nil) || err != nil && (!errors.Is(err, ledger.ErrBudget) || !errors.As(err, &budget) || !budget.Requested.Equal(d.Cost)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	spent(t, l, "ho_1", ledger.Meters{"questions": 2, "tokens": 1})
	s.verify(t, l)
}

// refusalLeavesNothing: of a debit that is refused neither the answer nor its price is left, within the update that goes on, and after it.
func refusalLeavesNothing(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 3, 1))
	dear, cheap := testDebit("dear"), testDebit("cheap")
	dear.Cost = ledger.Meters{"questions": 1, "tokens": 2}
	err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		if _, err := tx.Append(dear); !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("more tokens than there are: %v", err)
		}
		if body, ok := tx.Answer(dear.Query); ok {
			t.Errorf("a refused debit left its answer: %s", body)
		}
		if !tx.Spent().Equal(ledger.Meters{"questions": 0, "tokens": 0}) {
			t.Errorf("a refused debit left its price: %v", tx.Spent())
		}
		r, err := tx.Append(cheap)
		if r.Seq != 1 {
			t.Errorf("a refused debit left a gap: seq %d, want 1", r.Seq)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	before := export(t, l, "ho_1")
	for name, cost := range map[string]ledger.Meters{"questions": {"questions": 3}, "tokens": {"tokens": 2}} {
		err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			if _, err := tx.Append(testDebit("fits, and is refused with what does not")); err != nil {
				return err
			}
			tx.SetState([]byte("of the refused"))
			if err := tx.Idempotent(ledger.Idempotency{Key: "k"}); err != nil {
				return err
			}
			d := dear
			d.Cost = cost
			_, err := tx.Append(d)
			return err
		})
		if !errors.Is(err, ledger.ErrBudget) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, d := range []ledger.Debit{dear, testDebit("fits, and is refused with what does not")} {
		if body, ok, err := l.Answer(t.Context(), "ho_1", d.Query); ok || err != nil {
			t.Errorf("a refused debit left its answer: %s %v", body, err)
		}
	}
	if _, ok, err := l.Idempotency(t.Context(), "", "k"); ok || err != nil {
		t.Errorf("a refused update left its idempotency key: %v %v", ok, err)
	}
	if h, err := l.Holdout(t.Context(), "ho_1"); err != nil || string(h.State) != "state 0" {
		t.Errorf("a refused update left its state: %q %v", h.State, err)
	}
	if !bytes.Equal(before, export(t, l, "ho_1")) {
		t.Error("a refused update left entries")
	}
	spent(t, l, "ho_1", ledger.Meters{"questions": 1, "tokens": 0})
	s.verify(t, l)
}

// failedUpdateKeepsNothing: whatever fn did before it failed is gone.
func failedUpdateKeepsNothing(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 5, 0))
	before := export(t, l, "ho_1")
	no := errors.New("no")
	err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		if _, err := tx.Append(testDebit("a")); err != nil {
			return err
		}
		tx.SetState([]byte("state 1"))
		if err := tx.Idempotent(ledger.Idempotency{Principal: "p", Key: "k"}); err != nil {
			return err
		}
		if q := tx.Spent()["questions"]; q != 1 {
			t.Errorf("spent %d within the update, want 1", q)
		}
		return no
	})
	if err != no {
		t.Fatalf("update: %v", err)
	}
	if !bytes.Equal(before, export(t, l, "ho_1")) {
		t.Error("the ledger changed")
	}
	if _, ok, err := l.Idempotency(t.Context(), "p", "k"); ok || err != nil {
		t.Errorf("idempotency key kept: %v %v", ok, err)
	}
	err = l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		if string(tx.State()) != "state 0" {
			t.Errorf("state in the books %q", tx.State())
		}
		tx.SetState([]byte("a state alone"))
		return nil
	})
	if h, err2 := l.Holdout(t.Context(), "ho_1"); err != nil || err2 != nil || string(h.State) != "a state alone" {
		t.Errorf("state %q %v %v", h.State, err, err2)
	}
	for range 2 { // it belongs to the same entry as the state before it, and to the next update
		err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			if string(tx.State()) != "a state alone" {
				t.Errorf("state in the books %q", tx.State())
			}
			return nil
		})
		if err := errors.Join(err, l.Close()); err != nil {
			t.Fatal(err)
		}
		l = s.open(t)
	}
}

// voidIsPaidAndAskedAgain: a void costs and answers nothing; the same query can be void again, or answered.
func voidIsPaidAndAskedAgain(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 4, 0))
	d := testDebit("a")
	at := time.Date(2026, 11, 21, 9, 0, 0, 1, time.UTC)
	for i := range 2 {
		void := d
		void.Void, void.Time = true, at.Add(time.Duration(i))
		if r := mustAsk(t, l, "ho_1", void); r.Seq != int64(i+1) {
			t.Errorf("void %d has seq %d", i, r.Seq)
		}
	}
	if body, ok, err := l.Answer(t.Context(), "ho_1", d.Query); ok || err != nil {
		t.Errorf("a void is replayed: %s %v", body, err)
	}
	err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		for after, want := range map[time.Duration]bool{-1: false, 0: true, 1: true, 2: false} {
			if got := tx.Voided(d.Query, at.Add(after)); got != want {
				t.Errorf("void %v after the first: %v", after, got)
			}
		}
		if tx.Voided(testDebit("b").Query, at) {
			t.Error("another query is void")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustAsk(t, l, "ho_1", d)
	if entries, err := l.Answers(t.Context(), "ho_1", "", 0, 0); err != nil || len(entries) != 1 || entries[0].Seq != 3 {
		t.Errorf("answers %+v %v, want that of seq 3", entries, err)
	}
	spent(t, l, "ho_1", ledger.Meters{"questions": 3, "tokens": 0})
	if r := s.verify(t, l); r[0].Voids != 2 || r[0].Answers != 1 {
		t.Errorf("report %+v", r)
	}
}

// invalidIsRefused: what cannot be recorded, or not be exported again, is ErrInvalid.
func invalidIsRefused(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 5, 0))
	for name, change := range map[string]func(*ledger.Debit){
		"no query":        func(d *ledger.Debit) { d.Query = "" },
		"negative":        func(d *ledger.Debit) { d.Cost = ledger.Meters{"questions": -1} },
		"negative tokens": func(d *ledger.Debit) { d.Cost["tokens"] = -1 },
		"no such meter":   func(d *ledger.Debit) { d.Cost["rounds"] = 0 },
		"empty core":      func(d *ledger.Debit) { d.Core = nil },
		"empty object":    func(d *ledger.Debit) { d.Core = []byte("{}") },
		"empty, spaced":   func(d *ledger.Debit) { d.Core = []byte("{ }") },
		"not JSON":        func(d *ledger.Debit) { d.Core = []byte(`{"a"}`) },
		"LEDGER":          func(d *ledger.Debit) { d.Core = []byte(`{"a":1,"LEDGER":{}}`) },
		"array":           func(d *ledger.Debit) { d.Core = []byte(`[1]`) },
		"space":           func(d *ledger.Debit) { d.Core = append(d.Core, ' ') },
		"two objects":     func(d *ledger.Debit) { d.Core = []byte(`{"a":1}{"b":2}`) },
		"ledger twice":    func(d *ledger.Debit) { d.Core = []byte(`{"a":1,"ledger":{}}`) },
		"ledger, escaped": func(d *ledger.Debit) { d.Core = []byte(`{"a":1,"\u006cedger":{}}`) },
		"core not UTF-8":  func(d *ledger.Debit) { d.Core = []byte("{\"a\":\"\xff\"}") },
		"query not UTF-8": func(d *ledger.Debit) { d.Query = "\xff" },
		"canonical":       func(d *ledger.Debit) { d.Canonical = []byte("\xff") },
		"far future":      func(d *ledger.Debit) { d.Time = time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC) },
		"long principal":  func(d *ledger.Debit) { d.Principal = string(make([]byte, ledger.MaxTextBytes+1)) },
		"core over a limit": func(d *ledger.Debit) {
			d.Core = []byte(`{"a":"` + string(bytes.Repeat([]byte("a"), ledger.MaxCoreBytes)) + `"}`)
		},
	} {
		d := testDebit("a")
		change(&d)
		if _, err := ask(l, t.Context(), "ho_1", d); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	for name, change := range map[string]func(*ledger.Holdout){
		"no id":     func(h *ledger.Holdout) { h.ID = "" },
		"not JSON":  func(h *ledger.Holdout) { h.Public = []byte("{") },
		"negative":  func(h *ledger.Holdout) { h.Limits["questions"] = -1 },
		"no meters": func(h *ledger.Holdout) { h.Limits = nil },
		"bad meter": func(h *ledger.Holdout) { h.Limits["Questions"] = 1 },
		"no name":   func(h *ledger.Holdout) { h.Limits[""] = 1 },
		"many":      func(h *ledger.Holdout) { addMeters(h.Limits, ledger.MaxMeters) },
		"spent":     func(h *ledger.Holdout) { h.Spent = ledger.Meters{"questions": 1} },
		"big public": func(h *ledger.Holdout) {
			h.Public = append(append([]byte{'"'}, bytes.Repeat([]byte{'p'}, ledger.MaxPublicBytes)...), '"')
		},
		"big secret": func(h *ledger.Holdout) { h.Secret = make([]byte, ledger.MaxSecretBytes+1) },
		"big state":  func(h *ledger.Holdout) { h.State = make([]byte, ledger.MaxStateBytes+1) },
	} {
		h := testHoldout("ho_2", 1, 1)
		change(&h)
		if err := l.CreateHoldout(t.Context(), h, nil); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	var late *ledger.Tx
	if err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error { late = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Append(testDebit("late")); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("append after the update: %v", err)
	}
	err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error { tx.SetState(make([]byte, ledger.MaxStateBytes+1)); return nil })
	if !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("big state: %v", err)
	}
	// What is exactly as large as may be is recorded.
	h := testHoldout("ho_2", 1, 1)
	h.Secret, h.State = make([]byte, ledger.MaxSecretBytes), make([]byte, ledger.MaxStateBytes)
	addMeters(h.Limits, ledger.MaxMeters-2)
	create(t, l, h)
	if got, err := l.Holdout(t.Context(), "ho_2"); err != nil || !bytes.Equal(got.Secret, h.Secret) || !bytes.Equal(got.State, h.State) || !got.Limits.Equal(h.Limits) {
		t.Errorf("a holdout at its limits comes back otherwise: %v", err)
	}
	s.verify(t, l)
}

func addMeters(m ledger.Meters, n int) {
	for i := range n {
		m[fmt.Sprint("m", i)] = 1
	}
}

// answersPages: the history is in the order of the chain, page by page, of all or of one principal.
func answersPages(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 10, 0))
	for i := range 6 {
		d := numbered(i)
		d.Principal = []string{"ann", "bob"}[i%2]
		d.Void = i == 3
		mustAsk(t, l, "ho_1", d)
	}
	for _, c := range []struct {
		principal string
		after     int64
		limit     int
		want      []int64
	}{
		{"", 0, 0, []int64{1, 2, 3, 5, 6}},
		{"", 0, 2, []int64{1, 2}},
		{"", 2, 2, []int64{3, 5}},
		{"", 6, 0, nil},
		{"ann", 0, 0, []int64{1, 3, 5}},
		{"bob", 2, 5, []int64{6}},
		{"eve", 0, 0, nil},
	} {
		got, err := l.Answers(t.Context(), "ho_1", c.principal, c.after, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, e := range got {
			seqs = append(seqs, e.Seq)
			d := numbered(int(e.Seq - 1))
			if e.Version != ledger.EntryVersion || e.Kind != ledger.KindAnswer || e.Query != d.Query || !bytes.Equal(e.Canonical, d.Canonical) || !e.Time.Equal(d.Time) ||
				!bytes.Contains(e.Body, []byte(`"ledger":{"seq":`)) {
				t.Errorf("entry %+v", e)
			}
		}
		if !reflect.DeepEqual(seqs, c.want) {
			t.Errorf("%+v: %v", c, seqs)
		}
	}
}

// notesAreKept: an answer in the history has the note that came with its first asking, also after the ledger was closed and opened, and nobody else's; the
// bytes of the answer, the chain and the export know nothing of it.
func notesAreKept(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 10, 0))
	create(t, l, testHoldout("ho_2", 10, 0))
	notes := []string{"before \"lunch\" <é>", "", "after lunch"}
	for i, note := range notes {
		d, plain := numbered(i), numbered(i)
		d.Note, d.Principal, plain.Principal = note, []string{"ann", "bob"}[i%2], []string{"ann", "bob"}[i%2]
		if noted, without := mustAsk(t, l, "ho_1", d), mustAsk(t, l, "ho_2", plain); bytes.Contains(noted.Body, []byte("lunch")) || noted.Seq != without.Seq {
			t.Errorf("an answer with a note is %s, one without %s", noted.Body, without.Body)
		}
	}
	long := numbered(4)
	if long.Note = strings.Repeat("x", ledger.MaxTextBytes+1); !refuses(l, long, ledger.ErrInvalid) {
		t.Error("a note that is too long was recorded")
	}
	for range 2 {
		for principal, want := range map[string][]string{"": notes, "ann": {notes[0], notes[2]}, "bob": {""}} {
			var got []string
			entries, err := l.Answers(t.Context(), "ho_1", principal, 0, 0)
			for _, e := range entries {
				got = append(got, e.Note)
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("the notes of %q are %q (%v), want %q", principal, got, err, want)
			}
		}
		if entries, err := l.Answers(t.Context(), "ho_2", "", 0, 0); err != nil || len(entries) != 3 || entries[0].Note != "" {
			t.Errorf("another holdout's: %+v %v", entries, err)
		}
		if text := export(t, l, "ho_1"); bytes.Contains(text, []byte("lunch")) {
			t.Errorf("a note is exported: %s", text)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = s.open(t)
	}
}

// refuses reports whether a debit is refused with an error.
func refuses(l ledger.Ledger, d ledger.Debit, want error) bool {
	_, err := ask(l, context.Background(), "ho_1", d)
	return errors.Is(err, want)
}

// notFound: what is not there is said so, and makes no ledger sick.
func notFound(t *testing.T, s *suite) {
	l := s.open(t)
	ctx := t.Context()
	_, err1 := l.Holdout(ctx, "ho_9")
	_, err2 := l.Answers(ctx, "ho_9", "", 0, 0)
	err3 := l.Export(ctx, "ho_9", &bytes.Buffer{})
	err4 := l.DeleteHoldout(ctx, "ho_9", "")
	err5 := l.Update(ctx, "ho_9", func(*ledger.Tx) error { return nil })
	err6 := l.RevokeKey(ctx, "key_9")
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, ok, err := l.Answer(ctx, "ho_9", "sha256:00"); ok || err != nil {
		t.Errorf("answer: %v %v", ok, err)
	}
	if _, ok, err := l.HeadAt(ctx, "ho_9", 0); ok || err != nil {
		t.Errorf("head: %v %v", ok, err)
	}
	if _, ok, err := l.HoldoutByDigest(ctx, [32]byte{9}); ok || err != nil {
		t.Errorf("digest: %v %v", ok, err)
	}
	if all, err := l.Holdouts(ctx); len(all) != 0 || err != nil {
		t.Errorf("holdouts: %v %v", all, err)
	}
	if err := l.Ready(ctx); err != nil {
		t.Errorf("none of this makes a ledger sick: %v", err)
	}
}
