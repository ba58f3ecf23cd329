package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/await"
)

// TestFilesAreTheirs removes, renames and replaces each file of a ledger under its open connection. It would catch a commit
// into a file that the next start does not read, and a commit before it that is lost although it could be saved.
func TestFilesAreTheirs(t *testing.T) {
	harms := map[string]func(name string) error{
		"removed": os.Remove,
		"renamed": func(name string) error { return os.Rename(name, name+".away") },
		"replaced": func(name string) error {
			contents, err := os.ReadFile(name)
			return errors.Join(err, os.WriteFile(name+".new", contents, 0o600), os.Rename(name+".new", name))
		},
	}
	for _, suffix := range fileSuffixes {
		for what, harm := range harms {
			t.Run(what+" ledger.db"+suffix, func(t *testing.T) {
				path := newPath(t)
				l := openTest(t, path)
				mustCreate(t, l, testHoldout("ho_1", 100, 0))
				before := mustAsk(t, l, "ho_1", testDebit("before"))
				if err := harm(path + suffix); err != nil {
					t.Fatal(err)
				}
				if err := l.Ready(t.Context()); !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("ready: %v", err)
				}
				for range 2 {
					if _, err := ask(l, t.Context(), "ho_1", testDebit("after")); !errors.Is(err, ledger.ErrUnavailable) {
						t.Errorf("a question: %v", err)
					}
				}
				if err := l.CreateKey(t.Context(), ledger.Key{ID: "key", Scope: "admin"}); !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("a key: %v", err)
				}
				if body, ok, err := l.Answer(t.Context(), "ho_1", testDebit("before").Query); !ok || err != nil || !bytes.Equal(body, before.Body) {
					t.Errorf("a replay: %s %v %v", body, ok, err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}

				if suffix == "" {
					if what != "replaced" { // the name leads nowhere: what was in the file is in the copy
						os.Remove(path + "-wal")
						if _, err := Open(t.Context(), path, ledger.Options{Key: testKey, MustExist: true}); !errors.Is(err, ledger.ErrLost) {
							t.Fatalf("open without the ledger: %v", err)
						}
					}
					if err := os.Rename(path+".rescued", path); err != nil {
						t.Fatal(err)
					}
				}
				again, err := Open(t.Context(), path, ledger.Options{Key: testKey, MustExist: true})
				if err != nil {
					t.Fatal(err)
				}
				defer again.Close()
				if body, ok, err := again.Answer(t.Context(), "ho_1", testDebit("before").Query); !ok || err != nil || !bytes.Equal(body, before.Body) {
					t.Errorf("after the next start: %s %v %v", body, ok, err)
				}
				mustAsk(t, again, "ho_1", testDebit("after"))
			})
		}
	}
}

// aloneOf is what the database file holds without its log.
func aloneOf(t *testing.T, path, query string) (n int) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "alone.db")
	if err := os.WriteFile(copied, readFile(t, path), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file://"+copied)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// TestDatabaseAlone: holdouts, keys and their ends are in ledger.db itself when the call returns, and answers are soon.
// It would catch a ledger that lives in a file that looks temporary.
func TestDatabaseAlone(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	check := func(what, query string) {
		t.Helper()
		if n := aloneOf(t, path, query); n != 1 {
			t.Errorf("%s: ledger.db alone says %d", what, n)
		}
	}
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	check("a holdout", "SELECT count(*) FROM holdouts")
	if err := l.CreateKey(t.Context(), ledger.Key{ID: "key", Scope: "admin"}); err != nil {
		t.Fatal(err)
	}
	check("a key", "SELECT count(*) FROM keys")
	if err := l.RevokeKey(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	check("a revocation", "SELECT count(*) FROM keys WHERE revoked = 1")
	mustAsk(t, l, "ho_1", testDebit("a"))
	await.Until(t, "an idle ledger takes its answers out of the log", func() bool {
		return aloneOf(t, path, "SELECT count(*) FROM entries WHERE kind = 'answer'") == 1
	})
	if err := l.DeleteHoldout(t.Context(), "ho_1", ""); err != nil {
		t.Fatal(err)
	}
	check("a deletion", "SELECT deleted FROM books")
}

// TestLostLedger: where there must be a ledger, none is made.
func TestLostLedger(t *testing.T) {
	empty := newPath(t)
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hollow := newPath(t) // as after the loss of a log in which everything was
	db, err := openWriter(t.Context(), hollow)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	for what, path := range map[string]string{"missing": newPath(t), "empty": empty, "hollow": hollow} {
		for range 2 {
			if l, err := Open(t.Context(), path, ledger.Options{Key: testKey, MustExist: true}); !errors.Is(err, ledger.ErrLost) {
				t.Errorf("%s: %v %v", what, l, err)
			}
		}
	}
}
