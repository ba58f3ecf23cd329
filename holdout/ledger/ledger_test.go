package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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
