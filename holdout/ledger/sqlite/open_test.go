package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

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
	err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
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
	if h, err := l.Holdout(t.Context(), "ho_1"); err != nil || !errors.Is(h.Damage, ledger.ErrCorrupt) || h.State != nil {
		t.Errorf("holdout: %v, damage %v", err, h.Damage)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("update: %v", err)
	}
}

func TestPragmasAreReadBack(t *testing.T) {
	path := newPath(t)
	if err := create(path); err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"journal_mode": "WAL", "synchronous": "FULL", "fullfsync": "1", "checkpoint_fullfsync": "1", "foreign_keys": "1", "secure_delete": "1"}
	for name, other := range map[string]string{"": "", "journal_mode": "DELETE", "synchronous": "NORMAL", "fullfsync": "0", "checkpoint_fullfsync": "0", "foreign_keys": "0", "secure_delete": "0"} {
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		for pragma, value := range good {
			if pragma == name {
				value = other
			}
			if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma+"("+value+")").Scan(new(string)); err != nil && !errors.Is(err, sql.ErrNoRows) {
				t.Fatal(err)
			}
		}
		if err := checkPragmas(t.Context(), db); (err == nil) != (name == "") {
			t.Errorf("with %s=%s: %v", name, other, err)
		}
		db.Close()
	}
}

// TestUnknownSchemaIsRefused opens databases of a version to come, and of the one that was never released: the error says which version,
// and what to do.
func TestUnknownSchemaIsRefused(t *testing.T) {
	for version, want := range map[int]string{99: "use the holdoutd that wrote it", 1: "from before the format was fixed"} {
		path := newPath(t)
		l := openTest(t, path)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := openWriter(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec("DELETE FROM goose_db_version WHERE version_id > 0; INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)", version)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		check := func(err error) {
			t.Helper()
			if !errors.Is(err, ledger.ErrVersion) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprint("version ", version)) {
				t.Errorf("version %d: %v", version, err)
			}
		}
		for _, o := range []ledger.Options{{Key: testKey}, {ReplayOnly: true}} {
			_, err := Open(t.Context(), path, o)
			check(err)
		}
		_, err = Verify(t.Context(), path)
		check(err)
	}
}

// TestTheSchemaBeforeNotes opens a ledger as the program before notes and outcomes left it: it is verified and replayed as it lies, and a server adds
// what is missing and goes on.
func TestTheSchemaBeforeNotes(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 5, 0))
	noted := testDebit("b")
	noted.Note = "a remark"
	recorded := mustAsk(t, l, "ho_1", testDebit("a"))
	use := ledger.Idempotency{Principal: "p", Key: "k", Request: [32]byte{1}, Resource: "ho_1"}
	used := func(l *Ledger) {
		t.Helper()
		if got, ok, err := l.Idempotency(t.Context(), "p", "k"); got != use || !ok || err != nil {
			t.Errorf("%+v %v %v, want %+v", got, ok, err, use)
		}
	}
	record := func(l *Ledger) {
		t.Helper()
		if err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error { return tx.Idempotent(use) }); err != nil {
			t.Fatal(err)
		}
		used(l)
	}
	record(l)
	key := ledger.Key{ID: "key_1", Name: "Ann", Scope: "analyst", Created: time.Unix(7, 0).UTC(), Hash: [32]byte{9}}
	if err := errors.Join(l.CreateKey(t.Context(), key), l.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := openWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`DROP TABLE grants; DROP INDEX keys_subject; ALTER TABLE keys DROP COLUMN issuer; ALTER TABLE keys DROP COLUMN claim; ALTER TABLE keys DROP COLUMN subject; ALTER TABLE keys DROP COLUMN maker; DROP TABLE notes; ALTER TABLE idempotency DROP COLUMN outcome; DROP TRIGGER closings_are_the_end; DROP INDEX entries_closed; DROP TRIGGER retirements_are_the_end; DROP INDEX entries_retired; DROP INDEX entries_release; DROP TRIGGER releases_never_go_back; DROP TRIGGER releases_are_never_forgotten;
		PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '''closed'', ''retired'', ''release'', ', '') WHERE name = 'entries'; PRAGMA writable_schema = RESET;
		DELETE FROM goose_db_version WHERE version_id > 2`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if reports, err := Verify(t.Context(), path); err != nil || len(reports) != 1 || reports[0].Answers != 1 {
		t.Errorf("verify: %+v %v", reports, err)
	}
	notes := func(l *Ledger, want ...string) {
		t.Helper()
		entries, err := l.Answers(t.Context(), "ho_1", "", 0, 0)
		var got []string
		for _, e := range entries {
			got = append(got, e.Note)
		}
		if err != nil || !slices.Equal(got, want) || !bytes.Equal(entries[0].Body, recorded.Body) {
			t.Errorf("%q (%v), want %q", got, err, want)
		}
	}
	old, err := Open(t.Context(), path, ledger.Options{ReplayOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	notes(old, "")
	used(old)
	if grants, err := old.Grants(t.Context(), ""); err != nil || len(grants) != 0 {
		t.Errorf("grants of the schema before them: %v %v", grants, err)
	}
	keys := func(l *Ledger) {
		t.Helper()
		all, err := l.Keys(t.Context())
		one, _, err2 := l.KeyByHash(t.Context(), key.Hash)
		_, bound, err3 := l.KeyBySubject(t.Context(), ledger.Subject{})
		if err := errors.Join(err, err2, err3); err != nil || !slices.Equal(all, []ledger.Key{key}) || one != key || bound {
			t.Errorf("keys of the schema before subjects: %+v %+v %v %v", all, one, bound, err)
		}
	}
	keys(old)
	if releases, err := old.Releases(t.Context(), "ho_1", 0, 9); err != nil || len(releases) != 0 {
		t.Errorf("releases of the schema before them: %v %v", releases, err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, path)
	keys(l)
	mustAsk(t, l, "ho_1", noted)
	notes(l, "", "a remark")
	used(l)
	use.Outcome = "an outcome"
	record(l)
	err = l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		if _, err := tx.Release(ledger.Release{Query: "sha256:r", Canonical: []byte(`{"epsilon":1,"release_epsilon":1}`), Core: []byte(`{"released":true}`)}); err != nil {
			return err
		}
		_, err := tx.Close(ledger.Closing{Principal: "key_admin", Core: []byte(`{"closed":true}`)})
		if err == nil {
			_, err = tx.Retire(ledger.Closing{Principal: "key_admin", Core: []byte(`{"retired":true}`)})
		}
		return err
	})
	if _, ok, _ := l.Closing(t.Context(), "ho_1"); err != nil || !ok {
		t.Errorf("a release and a closing after the schema is brought up to date: %v", err)
	}
	if _, ok, _ := l.Retirement(t.Context(), "ho_1"); !ok {
		t.Error("no retirement after the schema is brought up to date")
	}
}

// TestEntriesAfterTheEnd: the database itself refuses an entry after a closing, and after a retirement, but those that may follow; a second one; and a kind that there is not.
func TestEntriesAfterTheEnd(t *testing.T) {
	for _, end := range []struct {
		kind   string
		update func(tx *ledger.Tx) error
		after  map[string]bool // which kinds may follow
	}{
		{"closed", func(tx *ledger.Tx) error {
			_, err := tx.Close(ledger.Closing{Core: []byte(`{"closed":true}`)})
			return err
		}, map[string]bool{"answer": false, "void": false, "release": false, "closed": false, "genesis": false, "other": false, "retired": true, "deleted": true}},
		{"retired", func(tx *ledger.Tx) error {
			_, err := tx.Retire(ledger.Closing{Core: []byte(`{"retired":true}`)})
			return err
		}, map[string]bool{"answer": false, "void": false, "release": false, "closed": false, "retired": false, "genesis": false, "other": false, "deleted": true}},
	} {
		path := newPath(t)
		l := openTest(t, path)
		if err := l.CreateHoldout(t.Context(), testHoldout("ho_1", 5, 0), nil); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Update(t.Context(), "ho_1", end.update), l.Close()); err != nil {
			t.Fatal(err)
		}
		db, err := openWriter(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for kind, may := range end.after {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(`INSERT INTO entries (holdout, seq, version, kind, time, query, canonical, principal, debit, spent, body, head)
				SELECT holdout, seq + 1, version, ?, time, '', '', '', debit, spent, body, head FROM entries WHERE kind = ?`, kind, end.kind)
			if (err == nil) != may {
				t.Errorf("an entry of kind %s after one of kind %s: %v", kind, end.kind, err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
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
	if _, err := ask(l, t.Context(), "ho_1", testDebit("a")); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("update: %v", err)
	}
	if err := l.Ready(t.Context()); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("ready: %v", err)
	}
	for name, read := range map[string]func(context.Context) error{ // as a request does that is on its way while the server ends
		"a holdout": func(ctx context.Context) error { _, err := l.Holdout(ctx, "ho_1"); return err },
		"holdouts":  func(ctx context.Context) error { _, err := l.Holdouts(ctx); return err },
		"a digest":  func(ctx context.Context) error { _, _, err := l.HoldoutByDigest(ctx, [32]byte{}); return err },
		"an answer": func(ctx context.Context) error { _, _, err := l.Answer(ctx, "ho_1", "q"); return err },
		"answers":   func(ctx context.Context) error { _, err := l.Answers(ctx, "ho_1", "", 0, 5); return err },
		"a closing": func(ctx context.Context) error { _, _, err := l.Closing(ctx, "ho_1"); return err },
		"releases":  func(ctx context.Context) error { _, err := l.Releases(ctx, "ho_1", 0, 9); return err },
		"a request": func(ctx context.Context) error { _, _, err := l.Idempotency(ctx, "p", "k"); return err },
		"a head":    func(ctx context.Context) error { _, _, err := l.HeadAt(ctx, "ho_1", 0); return err },
		"an export": func(ctx context.Context) error { return l.Export(ctx, "ho_1", io.Discard) },
		"keys":      func(ctx context.Context) error { _, err := l.Keys(ctx); return err },
		"a key":     func(ctx context.Context) error { _, _, err := l.KeyByHash(ctx, [32]byte{}); return err },
		"grants":    func(ctx context.Context) error { _, err := l.Grants(ctx, "ho_1"); return err },
		"debits":    func(ctx context.Context) error { _, _, err := l.Debits(ctx, "ho_1", 0); return err },
	} {
		if err := read(t.Context()); !errors.Is(err, ledger.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the write-ahead log is still there: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if _, err := Verify(t.Context(), path); err != nil {
		t.Errorf("verify a closed ledger: %v", err)
	}
}
