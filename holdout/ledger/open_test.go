package ledger

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestSameTableIsRefusedForEver(t *testing.T) {
	l := openTest(t, newPath(t))
	h := testHoldout("ho_1", 5, 0)
	mustCreate(t, l, h)
	mustAsk(t, l, "ho_1", testDebit("a"))
	h.ID = "ho_2"
	check := func() {
		t.Helper()
		var known *ExistsError
		if err := l.CreateHoldout(t.Context(), h, nil); !errors.As(err, &known) || known.ID != "ho_1" || !errors.Is(err, ErrExists) {
			t.Errorf("create again: %v", err)
		}
		if id, ok, err := l.HoldoutByDigest(t.Context(), h.Digest); id != "ho_1" || !ok || err != nil {
			t.Errorf("by digest: %q %v %v", id, ok, err)
		}
	}
	check()
	for range 2 { // deleting again does nothing
		if err := l.DeleteHoldout(t.Context(), "ho_1", "key_admin"); err != nil {
			t.Fatal(err)
		}
	}
	check()
	gone, err := l.Holdout(t.Context(), "ho_1")
	if err != nil || !gone.Deleted || gone.Secret != nil || gone.State != nil {
		t.Errorf("deleted holdout: %+v %v", gone, err)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ErrDeleted) {
		t.Errorf("update: %v", err)
	}
	if body, ok, err := l.Answer(t.Context(), "ho_1", testDebit("a").Query); !ok || err != nil || len(body) == 0 {
		t.Errorf("old answer: %v %v", ok, err)
	}
	if r := mustVerify(t, l); !r[0].Deleted || r[0].Entries != 3 {
		t.Errorf("report %+v", r)
	}
	h.Digest[0]++
	h.ID = "ho_1"
	if err := l.CreateHoldout(t.Context(), h, nil); !errors.Is(err, ErrExists) {
		t.Errorf("another table under a known id: %v", err)
	}
}

func TestDeletionErases(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	h := testHoldout("ho_1", 5, 0)
	h.Secret = bytes.Repeat([]byte("secret"), 1000) // over many pages
	mustCreate(t, l, h)
	var sealed []byte
	if err := l.readers.QueryRow("SELECT secret FROM holdouts").Scan(&sealed); err != nil {
		t.Fatal(err)
	}
	parts := [][]byte{sealed[:64], sealed[len(sealed)-64:]}
	holds := func() (found bool) {
		for _, name := range []string{path, path + "-wal"} {
			for _, part := range parts {
				found = found || bytes.Contains(readFile(t, name), part)
			}
		}
		return found
	}
	if !holds() {
		t.Fatal("the sealed secret cannot be found before the deletion: the test looks in the wrong place")
	}
	if err := l.DeleteHoldout(t.Context(), "ho_1", ""); err != nil {
		t.Fatal(err)
	}
	if holds() {
		t.Error("the sealed secret is still in the files")
	}
}

func TestNothingSecretInTheClear(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	err := l.Update(t.Context(), "ho_1", func(tx *Tx) error {
		tx.SetState([]byte("a state that is secret"))
		_, err := tx.Append(testDebit("a"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := append(append(readFile(t, path), readFile(t, path+"-wal")...), export(t, l, "ho_1")...)
	if !bytes.Contains(all, []byte("sha256:")) {
		t.Fatal("the test does not see the ledger")
	}
	for _, secret := range []string{"the holdout key", "state 0", "a state that is secret"} {
		if bytes.Contains(all, []byte(secret)) {
			t.Errorf("%q is readable", secret)
		}
	}
}

func TestWrongKeyAndReplayOnly(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	r := mustAsk(t, l, "ho_1", testDebit("a"))
	want := export(t, l, "ho_1")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: path, Key: [32]byte{4}}); !errors.Is(err, ErrWrongKey) {
		t.Fatalf("wrong key: %v", err)
	}
	if _, err := Open(t.Context(), Options{Path: path}); !errors.Is(err, ErrInvalid) {
		t.Fatalf("no key: %v", err)
	}
	old, err := Open(t.Context(), Options{Path: path, ReplayOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if body, ok, err := old.Answer(t.Context(), "ho_1", testDebit("a").Query); !bytes.Equal(body, r.Body) || !ok || err != nil {
		t.Errorf("replay: %s %v %v", body, ok, err)
	}
	if !bytes.Equal(export(t, old, "ho_1"), want) {
		t.Error("export differs")
	}
	if h, err := old.Holdout(t.Context(), "ho_1"); err != nil || h.Secret != nil || h.State != nil || len(h.Public) == 0 {
		t.Errorf("holdout %+v %v", h, err)
	}
	if _, err := ask(old, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ErrReplayOnly) {
		t.Errorf("update: %v", err)
	}
	if err := old.Ready(t.Context()); !errors.Is(err, ErrReplayOnly) {
		t.Errorf("ready: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, openTest(t, path), "ho_1", testDebit("b")) // none of it did harm
	if _, err := Open(t.Context(), Options{Path: newPath(t), ReplayOnly: true}); err == nil {
		t.Error("replay only made a new ledger")
	}
}

func TestOldStateIsRefused(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	var old []byte
	if err := l.readers.QueryRow("SELECT state FROM books").Scan(&old); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, l, "ho_1", testDebit("a"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("UPDATE books SET state = ?", old)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, path)
	if h, err := l.Holdout(t.Context(), "ho_1"); err != nil || !errors.Is(h.Damage, ErrCorrupt) || h.State != nil {
		t.Errorf("holdout: %v, damage %v", err, h.Damage)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("update: %v", err)
	}
}

func TestPragmasAreReadBack(t *testing.T) {
	path := newPath(t)
	if err := create(path); err != nil {
		t.Fatal(err)
	}
	for _, pragmas := range [][]string{
		{},
		{"_pragma=journal_mode(WAL)", "_pragma=synchronous(NORMAL)"},
		{"_pragma=journal_mode(DELETE)", "_pragma=synchronous(FULL)"},
	} {
		db, err := sql.Open("sqlite", dsn(path, pragmas...))
		if err != nil {
			t.Fatal(err)
		}
		if err := checkPragmas(t.Context(), db); err == nil {
			t.Errorf("%v: accepted", pragmas)
		}
		db.Close()
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Path: path, Key: testKey}, {Path: path, ReplayOnly: true}} {
		if _, err := Open(t.Context(), o); err == nil {
			t.Error("a ledger from the future was opened")
		}
	}
	if _, err := VerifyDatabase(t.Context(), path); err == nil {
		t.Error("a ledger from the future was verified")
	}
}

func TestSchemaVersionIsTheNewestMigration(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	if last := files[len(files)-1].Name(); !strings.HasPrefix(last, fmt.Sprintf("%05d_", schemaVersion)) {
		t.Errorf("the newest migration is %s, schemaVersion is %d", last, schemaVersion)
	}
}

func TestClose(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("update: %v", err)
	}
	if err := l.Ready(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("ready: %v", err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the write-ahead log is still there: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if _, err := VerifyDatabase(t.Context(), path); err != nil {
		t.Errorf("verify a closed ledger: %v", err)
	}
}
