package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runChild() // does not return in a child process
	goleak.VerifyTestMain(m)
}

var testKey = [32]byte{1, 2, 3}

func openTest(t testing.TB, path string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), Options{Path: path, Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger.db") }

func testHoldout(id string, questions, tokens int64) Holdout {
	return Holdout{
		ID: id, Created: time.Date(2026, 11, 21, 7, 0, 0, 123456789, time.UTC), Digest: sha256.Sum256([]byte("table of " + id)),
		Public: []byte(`{"name":"flights <3"}`), Secret: []byte("the holdout key"), State: []byte("state 0"),
		Questions: questions, Tokens: tokens,
	}
}

func mustCreate(t testing.TB, l *Ledger, h Holdout) {
	t.Helper()
	if err := l.CreateHoldout(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
}

func testDebit(name string) Debit {
	canonical := []byte(`{"of":"` + name + `"}`)
	return Debit{
		Query: fmt.Sprintf("sha256:%x", sha256.Sum256(canonical)), Canonical: canonical, Principal: "key_a", Questions: 1,
		Core: []byte(`{"query":"` + name + `","value":0.25}`), Time: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC),
	}
}

func ask(l *Ledger, ctx context.Context, id string, d Debit) (Receipt, error) {
	var r Receipt
	err := l.Update(ctx, id, func(tx *Tx) error {
		var err error
		r, err = tx.Append(d)
		return err
	})
	return r, err
}

func mustAsk(t testing.TB, l *Ledger, id string, d Debit) Receipt {
	t.Helper()
	r, err := ask(l, t.Context(), id, d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func export(t testing.TB, l *Ledger, id string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := l.Export(t.Context(), id, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// mustVerify verifies the file and the export of every holdout.
func mustVerify(t testing.TB, l *Ledger) []Report {
	t.Helper()
	reports, err := VerifyDatabase(t.Context(), l.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range reports {
		got, err := VerifyExport(bytes.NewReader(export(t, l, want.Holdout)))
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("export says %+v, database %+v", got, want)
		}
	}
	return reports
}

func TestAnswerIsRecordedAndReplayed(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 3, 1))
	d := testDebit("a")
	r := mustAsk(t, l, "ho_1", d)
	want := `{"query":"a","value":0.25,"ledger":{"seq":1,"head":"` + r.Head + `"}}`
	if r.Seq != 1 || string(r.Body) != want {
		t.Fatalf("receipt %d %s, want %s", r.Seq, r.Body, want)
	}
	if _, err := ask(l, t.Context(), "ho_1", d); !errors.Is(err, ErrAnswered) {
		t.Fatalf("second append: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, path)
	body, ok, err := l.Answer(t.Context(), "ho_1", d.Query)
	if err != nil || !ok || string(body) != want {
		t.Fatalf("after reopening: %s %v %v", body, ok, err)
	}
	if q, tokens, err := l.Balance(t.Context(), "ho_1"); q != 1 || tokens != 0 || err != nil {
		t.Fatalf("balance %d %d %v", q, tokens, err)
	}
	reports := mustVerify(t, l)
	if len(reports) != 1 || reports[0].Head != r.Head || reports[0].Entries != 2 || reports[0].Answers != 1 {
		t.Fatalf("reports %+v", reports)
	}
}

func TestLimits(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 2, 1))
	token := testDebit("token")
	token.Tokens = 1
	mustAsk(t, l, "ho_1", token)
	for _, c := range []struct {
		name              string
		questions, tokens int64
		fits              bool
	}{
		{"tokens", 1, 1, false},
		{"questions", 2, 0, false},
		{"overflow", 1<<63 - 1, 0, false},
		{"fits", 1, 0, true},
		{"one more", 1, 0, false},
		{"free", 0, 0, true},
	} {
		d := testDebit(c.name)
		d.Questions, d.Tokens = c.questions, c.tokens
		_, err := ask(l, t.Context(), "ho_1", d)
		var budget *BudgetError
		if c.fits != (err == nil) || !c.fits && !errors.As(err, &budget) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if q, tokens, _ := l.Balance(t.Context(), "ho_1"); q != 2 || tokens != 1 {
		t.Errorf("spent %d and %d, want 2 and 1", q, tokens)
	}
	mustVerify(t, l)
}

// TestDatabaseRefusesOverspending shows the second belt: the tables hold even if the writer had a bug.
func TestDatabaseRefusesOverspending(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 2, 0))
	mustAsk(t, l, "ho_1", testDebit("a"))
	db, err := openWriter(t.Context(), l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		"UPDATE books SET spent_questions = 3",
		"UPDATE books SET spent_questions = 0",
		"UPDATE books SET spent_tokens = 1",
		"UPDATE books SET questions = 100",
		"UPDATE entries SET body = 'x'",
		"DELETE FROM entries",
		"DELETE FROM holdouts",
		"DELETE FROM books",
		"UPDATE holdouts SET public = CAST('{}' AS BLOB)",
		"INSERT INTO entries SELECT 1, 5, kind, time, query || 'x', canonical, principal, questions, tokens, spent_questions, spent_tokens, body, head FROM entries WHERE seq = 1",
		"INSERT INTO entries SELECT 1, 2, kind, time, query, canonical, principal, questions, tokens, spent_questions, spent_tokens, body, head FROM entries WHERE seq = 1",
	} {
		if _, err := db.Exec(statement); !refused(err) {
			t.Errorf("%s: %v, want a refusal", statement, err)
		}
	}
	mustVerify(t, l)
}

func TestFailedUpdateKeepsNothing(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	before := export(t, l, "ho_1")
	no := errors.New("no")
	err := l.Update(t.Context(), "ho_1", func(tx *Tx) error {
		if _, err := tx.Append(testDebit("a")); err != nil {
			return err
		}
		tx.SetState([]byte("state 1"))
		if err := tx.Idempotent(Idempotency{Principal: "p", Key: "k"}); err != nil {
			return err
		}
		if q, _ := tx.Spent(); q != 1 {
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
	if h, err := l.Holdout(t.Context(), "ho_1"); err != nil || string(h.State) != "state 0" {
		t.Errorf("state %q %v", h.State, err)
	}
	if err := l.Update(t.Context(), "ho_1", func(tx *Tx) error {
		if string(tx.State()) != "state 0" {
			t.Errorf("state in the books %q", tx.State())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestInvalidIsRefused(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	for name, change := range map[string]func(*Debit){
		"no query":          func(d *Debit) { d.Query = "" },
		"negative":          func(d *Debit) { d.Questions = -1 },
		"negative tokens":   func(d *Debit) { d.Tokens = -1 },
		"empty core":        func(d *Debit) { d.Core = nil },
		"empty object":      func(d *Debit) { d.Core = []byte("{}") },
		"empty, spaced":     func(d *Debit) { d.Core = []byte("{ }") },
		"not JSON":          func(d *Debit) { d.Core = []byte(`{"a"}`) },
		"LEDGER":            func(d *Debit) { d.Core = []byte(`{"a":1,"LEDGER":{}}`) },
		"array":             func(d *Debit) { d.Core = []byte(`[1]`) },
		"space":             func(d *Debit) { d.Core = append(d.Core, ' ') },
		"two objects":       func(d *Debit) { d.Core = []byte(`{"a":1}{"b":2}`) },
		"ledger twice":      func(d *Debit) { d.Core = []byte(`{"a":1,"ledger":{}}`) },
		"ledger, escaped":   func(d *Debit) { d.Core = []byte(`{"a":1,"\u006cedger":{}}`) },
		"core not UTF-8":    func(d *Debit) { d.Core = []byte("{\"a\":\"\xff\"}") },
		"query not UTF-8":   func(d *Debit) { d.Query = "\xff" },
		"canonical":         func(d *Debit) { d.Canonical = []byte("\xff") },
		"far future":        func(d *Debit) { d.Time = time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC) },
		"long principal":    func(d *Debit) { d.Principal = string(make([]byte, MaxTextBytes+1)) },
		"core over a limit": func(d *Debit) { d.Core = []byte(`{"a":"` + string(bytes.Repeat([]byte("a"), MaxCoreBytes)) + `"}`) },
	} {
		d := testDebit("a")
		change(&d)
		if _, err := ask(l, t.Context(), "ho_1", d); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	for name, change := range map[string]func(*Holdout){
		"no id":      func(h *Holdout) { h.ID = "" },
		"not JSON":   func(h *Holdout) { h.Public = []byte("{") },
		"negative":   func(h *Holdout) { h.Questions = -1 },
		"big secret": func(h *Holdout) { h.Secret = make([]byte, MaxSecretBytes+1) },
	} {
		h := testHoldout("ho_2", 1, 1)
		change(&h)
		if err := l.CreateHoldout(t.Context(), h, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	var late *Tx
	if err := l.Update(t.Context(), "ho_1", func(tx *Tx) error { late = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Append(testDebit("late")); !errors.Is(err, ErrInvalid) {
		t.Errorf("append after the update: %v", err)
	}
	err := l.Update(t.Context(), "ho_1", func(tx *Tx) error { tx.SetState(make([]byte, MaxStateBytes+1)); return nil })
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("big state: %v", err)
	}
	mustVerify(t, l)
}

// TestDeletionErases looks for the sealed bytes in every file of the ledger.
func TestIdempotency(t *testing.T) {
	l := openTest(t, newPath(t))
	first := Idempotency{Principal: "p", Key: "k", Request: [32]byte{1}}
	if err := l.CreateHoldout(t.Context(), testHoldout("ho_1", 5, 0), &first); err != nil {
		t.Fatal(err)
	}
	got, ok, err := l.Idempotency(t.Context(), "p", "k")
	if first.Resource = "ho_1"; got != first || !ok || err != nil {
		t.Fatalf("recorded %+v %v %v", got, ok, err)
	}
	other := first
	other.Request[0]++
	if err := l.CreateHoldout(t.Context(), testHoldout("ho_2", 5, 0), &other); !errors.Is(err, ErrIdempotencyMismatch) {
		t.Errorf("upload with another body: %v", err)
	}
	var known *ExistsError
	if err := l.CreateHoldout(t.Context(), testHoldout("ho_2", 5, 0), &first); !errors.As(err, &known) || known.ID != "ho_1" {
		t.Errorf("upload again: %v", err)
	}
	use := func(i Idempotency) error {
		return l.Update(t.Context(), "ho_1", func(tx *Tx) error {
			if err := tx.Idempotent(i); err != nil {
				return err
			}
			return tx.Idempotent(i) // also within an update
		})
	}
	question := Idempotency{Principal: "p", Key: "q", Request: [32]byte{2}}
	for range 2 {
		if err := use(question); err != nil {
			t.Fatal(err)
		}
	}
	question.Request[0]++
	if err := use(question); !errors.Is(err, ErrIdempotencyMismatch) {
		t.Errorf("question with another body: %v", err)
	}
	question.Principal = "someone else"
	if err := use(question); err != nil {
		t.Errorf("the same key of another principal: %v", err)
	}
	if err := use(Idempotency{Principal: "p"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("empty key: %v", err)
	}
}

func TestOldIdempotencyKeysAreForgotten(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	for _, key := range []string{"old", "new"} {
		if err := l.Update(t.Context(), "ho_1", func(tx *Tx) error { return tx.Idempotent(Idempotency{Key: key}) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("UPDATE idempotency SET created = ? WHERE key = 'old'", time.Now().Add(-idempotencyLife).UnixNano())
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, path)
	_, oldOK, err1 := l.Idempotency(t.Context(), "", "old")
	_, newOK, err2 := l.Idempotency(t.Context(), "", "new")
	if oldOK || !newOK || err1 != nil || err2 != nil {
		t.Errorf("old %v %v, new %v %v", oldOK, err1, newOK, err2)
	}
}

func TestKeys(t *testing.T) {
	l := openTest(t, newPath(t))
	k := Key{ID: "key_1", Name: "Ann", Scope: "analyst", Created: time.Unix(7, 0).UTC(), Hash: [32]byte{9}}
	if err := l.CreateKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := l.KeyByHash(t.Context(), k.Hash); got != k || !ok || err != nil {
		t.Errorf("by hash: %+v %v %v", got, ok, err)
	}
	same := Key{ID: "key_2", Scope: "admin", Hash: k.Hash}
	if err := l.CreateKey(t.Context(), same); !errors.Is(err, ErrExists) {
		t.Errorf("the same hash: %v", err)
	}
	for range 2 {
		if err := l.RevokeKey(t.Context(), "key_1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := l.KeyByHash(t.Context(), k.Hash); ok || err != nil {
		t.Errorf("a revoked key is found: %v %v", ok, err)
	}
	if err := l.CreateKey(t.Context(), same); !errors.Is(err, ErrExists) {
		t.Errorf("the hash of a revoked key: %v", err)
	}
	if all, err := l.Keys(t.Context()); err != nil || len(all) != 1 || !all[0].Revoked {
		t.Errorf("keys %+v %v", all, err)
	}
	if err := l.RevokeKey(t.Context(), "key_9"); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoke an unknown key: %v", err)
	}
}

func TestAnswersPages(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 10, 0))
	for i := range 6 {
		d := testDebit(fmt.Sprint(i))
		d.Principal = []string{"even", "odd"}[i%2]
		mustAsk(t, l, "ho_1", d)
	}
	if err := l.DeleteHoldout(t.Context(), "ho_1", "even"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		principal string
		after     int64
		limit     int
		want      []int64
	}{
		{"", 0, 0, []int64{1, 2, 3, 4, 5, 6}},
		{"", 2, 3, []int64{3, 4, 5}},
		{"even", 0, 2, []int64{1, 3}},
		{"even", 3, 9, []int64{5}},
		{"nobody", 0, 9, nil},
	} {
		got, err := l.Answers(t.Context(), "ho_1", c.principal, c.after, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, e := range got {
			seqs = append(seqs, e.Seq)
			if e.Kind != KindAnswer || !bytes.Contains(e.Body, []byte(`"ledger":{"seq":`)) || len(e.Canonical) == 0 {
				t.Errorf("entry %+v", e)
			}
		}
		if fmt.Sprint(seqs) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %v", c, seqs)
		}
	}
	if _, err := l.Answers(t.Context(), "ho_9", "", 0, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown holdout: %v", err)
	}
}

func TestNotFound(t *testing.T) {
	l := openTest(t, newPath(t))
	ctx := t.Context()
	_, err1 := l.Holdout(ctx, "ho_9")
	_, _, err2 := l.Balance(ctx, "ho_9")
	err3 := l.Export(ctx, "ho_9", &bytes.Buffer{})
	err4 := l.DeleteHoldout(ctx, "ho_9", "")
	err5 := l.Update(ctx, "ho_9", func(*Tx) error { return nil })
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, ok, err := l.Answer(ctx, "ho_9", "sha256:00"); ok || err != nil {
		t.Errorf("answer: %v %v", ok, err)
	}
	if err := l.Ready(ctx); err != nil {
		t.Errorf("none of this makes a ledger sick: %v", err)
	}
}

// TestOldStateIsRefused puts an earlier sealed state back, as someone would who wants the mechanism to forget.
func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
