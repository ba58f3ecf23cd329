package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runChild() // does not return in a child process
	goleak.VerifyTestMain(m)
}

var testKey = [32]byte{1, 2, 3}

func openTest(t testing.TB, path string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), path, ledger.Options{Key: testKey})
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

// diskPath is a new path on a disk, where HOLDOUTD_DISK names one: a commit is to take the time that one needs.
func diskPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("HOLDOUTD_DISK"), "ledger-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "ledger.db")
}

func testHoldout(id string, questions, tokens int64) ledger.Holdout {
	return ledger.Holdout{
		ID: id, Created: time.Date(2026, 11, 21, 7, 0, 0, 123456789, time.UTC), Digest: sha256.Sum256([]byte("table of " + id)),
		Public: []byte(`{"name":"flights <3"}`), Secret: []byte("the holdout key"), State: []byte("state 0"),
		Limits: ledger.Meters{"questions": questions, "tokens": tokens},
	}
}

func mustCreate(t testing.TB, l *Ledger, h ledger.Holdout) {
	t.Helper()
	if err := l.CreateHoldout(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
}

func testDebit(name string) ledger.Debit {
	canonical := []byte(`{"of":"` + name + `"}`)
	return ledger.Debit{
		Query: fmt.Sprintf("sha256:%x", sha256.Sum256(canonical)), Canonical: canonical, Principal: "key_a", Cost: ledger.Meters{"questions": 1},
		Core: []byte(`{"query":"` + name + `","value":0.25}`), Time: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC),
	}
}

func ask(l *Ledger, ctx context.Context, id string, d ledger.Debit) (ledger.Receipt, error) {
	var r ledger.Receipt
	err := l.Update(ctx, id, func(tx *ledger.Tx) error {
		var err error
		r, err = tx.Append(d)
		return err
	})
	return r, err
}

func mustAsk(t testing.TB, l *Ledger, id string, d ledger.Debit) ledger.Receipt {
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
func mustVerify(t testing.TB, l *Ledger) []ledger.Report {
	t.Helper()
	reports, err := Verify(t.Context(), l.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range reports {
		got, err := ledger.VerifyExport(bytes.NewReader(export(t, l, want.Holdout)))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("export says %+v, database %+v", got, want)
		}
	}
	return reports
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
		"UPDATE meters SET spent = 3 WHERE name = 'questions'",
		"UPDATE meters SET spent = 0 WHERE name = 'questions'",
		"UPDATE meters SET spent = 1 WHERE name = 'tokens'",
		"UPDATE meters SET cap = 100",
		"UPDATE meters SET name = 'others' WHERE name = 'tokens'",
		"DELETE FROM meters",
		"INSERT INTO meters VALUES (1, 'more', 100, 0)",
		"UPDATE books SET seq = 0",
		"UPDATE entries SET body = 'x'",
		"DELETE FROM entries",
		"DELETE FROM holdouts",
		"DELETE FROM books",
		"UPDATE holdouts SET public = CAST('{}' AS BLOB)",
		"INSERT INTO entries SELECT 1, 5, version, kind, time, query || 'x', canonical, principal, debit, spent, body, head FROM entries WHERE seq = 1",
		"INSERT INTO entries SELECT 1, 2, version, kind, time, query, canonical, principal, debit, spent, body, head FROM entries WHERE seq = 1",
	} {
		if _, err := db.Exec(statement); !refused(err) {
			t.Errorf("%s: %v, want a refusal", statement, err)
		}
	}
	mustVerify(t, l)
}

func TestOldIdempotencyKeysAreForgotten(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	for _, key := range []string{"old", "new"} {
		if err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error { return tx.Idempotent(ledger.Idempotency{Key: key}) }); err != nil {
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
	_, err = db.Exec("UPDATE idempotency SET created = ? WHERE key = 'old'", time.Now().Add(-ledger.IdempotencyLife).UnixNano())
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

// TestOldStateIsRefused puts an earlier sealed state back, as someone would who wants the mechanism to forget.
func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spent is how many questions a holdout has paid for.
func spent(l *Ledger, ctx context.Context, id string) (questions int64, err error) {
	h, err := l.Holdout(ctx, id)
	return h.Spent["questions"], err
}
