package holdout

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset/ingest/ingesttest"
	"github.com/holdoutd/holdoutd/internal/await"
)

// copyLedger keeps the ledger of a closed service, and gives back how to put it back.
func copyLedger(t *testing.T, dir string) (putBack func()) {
	t.Helper()
	contents, err := os.ReadFile(filepath.Join(dir, ledgerFile))
	must(t, err)
	return func() {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, ledgerFile), contents, secretMode))
	}
}

// tryOpen opens a service that may not open.
func tryOpen(t *testing.T, dir string, accept bool) (*Service, error) {
	t.Helper()
	s, err := Open(t.Context(), Options{Dir: dir, AnyFileSystem: true, Decoder: ingesttest.Decoder(t), AcceptLostLedger: accept})
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

// TestLostLedger loses the ledger in each way. It would catch a start that makes an empty one in silence, and so gives the
// whole budget back, and a table that is taken a second time after it.
func TestLostLedger(t *testing.T) {
	for name, lose := range map[string]func(dir string, older func()) error{
		"removed":         func(dir string, _ func()) error { return os.Remove(filepath.Join(dir, ledgerFile)) },
		"renamed":         func(dir string, _ func()) error { l := filepath.Join(dir, ledgerFile); return os.Rename(l, l+".old") },
		"empty":           func(dir string, _ func()) error { return os.Truncate(filepath.Join(dir, ledgerFile), 0) },
		"before the last": func(_ string, older func()) error { older(); return nil },
		"with the key": func(dir string, _ func()) error {
			return errors.Join(os.Remove(filepath.Join(dir, ledgerFile)), os.Remove(filepath.Join(dir, serverKeyFile)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
			must(t, s.Close())
			older := copyLedger(t, dir)
			s = open(t, dir)
			second := create(t, s, Settings{Questions: 20}, visits(t, 300, 2))
			ask(t, s, second.ID, mean(1))
			must(t, s.Close())

			must(t, lose(dir, older))
			for range 2 { // a refused start leaves nothing by which the next would pass
				_, err := tryOpen(t, dir, false)
				if err == nil {
					t.Fatal("a start without the ledger")
				}
				for _, word := range []string{filepath.Join(dir, ledgerFile), "Restore ledger.db", "--accept-lost-ledger"} {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("the refusal does not name %s: %v", word, err)
					}
				}
			}
			if _, err := os.Stat(filepath.Join(dir, firstStart)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the mark of a first start: %v", err)
			}

			for _, accept := range []bool{true, false} { // what was accepted once is accepted
				s, err := tryOpen(t, dir, accept)
				must(t, err)
				if _, err := s.Card(t.Context(), admin, second.ID); KindOf(err) != NotFound {
					t.Errorf("a holdout that the ledger does not know: %v", err)
				}
				if name != "with the key" { // the digest is keyed
					_, _, err = s.Create(t.Context(), admin, Settings{Name: "again"}, SingleUpload(strings.NewReader(string(parquet(t, visits(t, 300, 2))))), "")
					var e *Error
					if !errors.As(err, &e) || e.Kind != Exists || e.Members["holdout"] != second.ID {
						t.Errorf("the same table: %v", err)
					}
				}
				must(t, s.Close())
			}
		})
	}
}

// TestFirstStart: a first start that was broken off at any moment is no lost ledger.
func TestFirstStart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.Close())
	if _, err := os.Stat(filepath.Join(dir, firstStart)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mark of the first start stays: %v", err)
	}
	// The order in which it makes its files, and what a crash after each leaves.
	made := []string{firstStart, serverKeyFile, ledgerFile, adminKeyFile}
	for n := range len(made) {
		broken := t.TempDir()
		for _, name := range made[:n+1] {
			contents, err := os.ReadFile(filepath.Join(dir, name))
			if name == ledgerFile || name == firstStart {
				contents, err = nil, nil
			}
			must(t, err)
			must(t, os.WriteFile(filepath.Join(broken, name), contents, secretMode))
		}
		s, err := tryOpen(t, broken, false)
		if err != nil {
			t.Errorf("broken off after %s: %v", made[n], err)
			continue
		}
		must(t, s.Close())
	}
}

// TestRolledBack puts an older ledger back, and another one of the same length. It would catch a budget that came back
// unnoticed. A holdout that has given no answer since then is not concerned.
func TestRolledBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card, idle := create(t, s, Settings{Questions: 20}, visits(t, 300, 1)), create(t, s, Settings{Questions: 20}, visits(t, 300, 2))
	first := ask(t, s, card.ID, mean(1))
	ask(t, s, idle.ID, mean(1))
	must(t, s.Close())
	older := copyLedger(t, dir)
	markPath := filepath.Join(dir, holdoutsDir, card.ID, markFile)
	olderMark, err := os.ReadFile(markPath)
	must(t, err)
	s = open(t, dir)
	ask(t, s, card.ID, mean(2))
	ask(t, s, card.ID, mean(3))
	must(t, s.Close())
	newer := copyLedger(t, dir)

	check := func(what string, others bool) {
		t.Helper()
		s := open(t, dir)
		_, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(9)), "")
		wantKind(t, what+": a new question", err, RolledBack)
		if a := ask(t, s, card.ID, mean(1)); !a.Replayed || string(a.Body) != string(first.Body) {
			t.Errorf("%s: replayed as %s", what, a.Body)
		}
		if a, err := s.Card(t.Context(), analyst, card.ID); err != nil || a.State != StateRolledBack {
			t.Errorf("%s: the card says %q, %v", what, a.State, err)
		}
		if others {
			if a, err := s.Card(t.Context(), analyst, idle.ID); err != nil || a.State != "" {
				t.Errorf("%s: the other card says %q, %v", what, a.State, err)
			}
			ask(t, s, idle.ID, mean(2))
		}
		must(t, s.Close())
	}
	older()
	check("an older ledger", true)
	check("the next start with it", true)
	newer()
	s = open(t, dir)
	ask(t, s, card.ID, mean(4)) // the newest copy was put back
	must(t, s.Close())

	kept, err := os.ReadFile(markPath)
	must(t, err)
	older()
	must(t, os.WriteFile(markPath, olderMark, secretMode))
	s = open(t, dir)
	for i := range 10 {
		ask(t, s, card.ID, mean(20+i))
	}
	must(t, s.Close())
	must(t, os.WriteFile(markPath, kept, secretMode))
	check("another history", false)
}

// TestMarks: a holdout has a mark from the start, and it follows the ledger while the server runs.
func TestMarks(t *testing.T) {
	defer func(usual time.Duration) { markAfter = usual }(markAfter)
	markAfter = time.Hour
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Questions: 3 * markEvery}, visits(t, 300, 1))
	dir := s.path(holdoutsDir, card.ID)
	m, err := readMark(dir)
	if err != nil || m.Seq != 0 || len(m.Digest) != 64 {
		t.Fatalf("at creation: %+v %v", m, err)
	}
	digest := m.Digest
	var batch []json.RawMessage
	for i := range markEvery + 5 {
		batch = append(batch, []byte(mean(i)))
	}
	_, err = s.AskBatch(t.Context(), analyst, card.ID, batch, false, "")
	must(t, err)
	await.Until(t, "the mark follows the ledger", func() bool {
		m, err = readMark(dir)
		must(t, err)
		return m.Seq > 0
	})
	last := ask(t, s, card.ID, mean(1000))
	must(t, s.Close())
	m, err = readMark(dir)
	if place := read(t, last.Body).Ledger; err != nil || m != (mark{1, place.Seq, place.Head, digest, ""}) {
		t.Errorf("after the stop: %+v %v, want %+v", m, err, place)
	}
	if entries, _ := filepath.Glob(filepath.Join(dir, ".*")); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestAMarkIsThere: a mark that is missing, empty or no mark is damage, since it is written before the ledger knows the holdout: the holdout gives no new answers, and its answers replay,
// whatever the ledger is; with the mark, also with an older one, it goes on. It would notice an older ledger that is put back with the mark away, whose answers nobody misses.
func TestAMarkIsThere(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"no mark": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			id := create(t, s, Settings{Questions: 20}, visits(t, 300, 1)).ID
			other := create(t, s, Settings{Questions: 20}, visits(t, 300, 2)).ID
			path := s.path(holdoutsDir, id, markFile)
			older, err := os.ReadFile(path)
			must(t, err)
			first := ask(t, s, id, mean(0))
			must(t, s.Close())
			must(t, harm(path))
			for range 2 { // no start mends it
				s = open(t, dir)
				_, err = s.Ask(t.Context(), analyst, id, []byte(mean(1)), "")
				wantKind(t, "without its mark", err, Damaged)
				if a := ask(t, s, id, mean(0)); !a.Replayed || string(a.Body) != string(first.Body) {
					t.Errorf("a replay: %s", a.Body)
				}
				ask(t, s, other, mean(0))
				must(t, s.Close())
			}
			must(t, os.WriteFile(path, older, secretMode))
			s = open(t, dir)
			ask(t, s, id, mean(1))
		})
	}
}

// TestALostLogIsNoticed empties the ledger's log in place, under the running server, when it holds an answer that the database has not. Nothing new is answered, the reason is one to come
// back for, and the next start knows that the ledger is older than what was answered. It would notice a commit into the hole, a copy of it, and a mark that says nothing of what was lost.
func TestALostLogIsNoticed(t *testing.T) {
	usual := markAfter
	t.Cleanup(func() { markAfter = usual }) // when the services are closed
	markAfter = time.Hour                   // but for what the ledger says
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 20}, visits(t, 300, 1)).ID
	kept := ask(t, s, id, mean(0))
	wal := filepath.Join(dir, ledgerFile+"-wal")
	db, err := sql.Open("sqlite", "file://"+filepath.Join(dir, ledgerFile)+"?mode=ro")
	must(t, err)
	copied := func() bool {
		var busy, frames, copied int
		must(t, db.QueryRow("PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &frames, &copied))
		return frames == copied
	}
	await.Until(t, "the database has the first answer", copied)
	reader, err := db.Begin() // an older moment, so that the next answer stays in the log
	must(t, err)
	must(t, reader.QueryRow("SELECT count(*) FROM entries").Scan(new(int)))
	lost := ask(t, s, id, mean(1))
	must(t, os.Truncate(wal, 0))
	must(t, errors.Join(reader.Rollback(), db.Close()))
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
	wantKind(t, "a new question", err, Unavailable)
	if err := s.Ready(t.Context()); KindOf(err) != Unavailable {
		t.Errorf("ready: %v", err)
	}
	place := read(t, lost.Body).Ledger
	await.Until(t, "the mark knows what was answered", func() bool {
		m, err := readMark(s.path(holdoutsDir, id))
		must(t, err)
		return m.Seq == place.Seq && m.Head == place.Head
	})
	for range 2 {
		_, err = s.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
		wantKind(t, "a new question", err, Unavailable)
	}
	again := crashed(t, dir)
	_, err = again.Ask(t.Context(), analyst, id, []byte(mean(1)), "")
	wantKind(t, "what was lost, after a crash", err, RolledBack)
	if a := ask(t, again, id, mean(0)); !a.Replayed || string(a.Body) != string(kept.Body) {
		t.Errorf("a replay after a crash: %s", a.Body)
	}
	must(t, s.Close())
	s = open(t, dir)
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(1)), "")
	wantKind(t, "what was lost, after a stop", err, RolledBack)
	if a := ask(t, s, id, mean(0)); !a.Replayed || string(a.Body) != string(kept.Body) {
		t.Errorf("a replay after a stop: %s", a.Body)
	}
}

// TestDirectoriesThatAreGone: what cannot be written because of the data directory is to be come back for, and says so.
func TestDirectoriesThatAreGone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := seen(t, s, create(t, s, Settings{Questions: 20}, visits(t, 300, 1))).ID
	tmp, folder := s.path(temporaryDir), s.path(holdoutsDir, id)
	must(t, errors.Join(os.Remove(tmp), os.WriteFile(tmp, nil, 0o600)))
	wantKind(t, "ready where tmp is a file", s.Ready(t.Context()), Unavailable)
	_, err := s.Training(t.Context(), analyst, id)
	wantKind(t, "a training part where tmp is a file", err, Unavailable)
	_, _, err = s.Create(t.Context(), admin, Settings{Name: "x", Questions: 5}, SingleUpload(bytes.NewReader(parquet(t, visits(t, 300, 2)))), "")
	wantKind(t, "an upload where tmp is a file", err, Unavailable)
	must(t, errors.Join(os.Remove(tmp), os.Mkdir(tmp, 0o700), os.Rename(folder, folder+".away")))
	_, err = s.Training(t.Context(), analyst, id)
	if kind := KindOf(err); kind != Unavailable && kind != Damaged {
		t.Errorf("a training part whose folder is gone: %v", err)
	}
	must(t, os.Rename(folder+".away", folder))
	f, err := s.Training(t.Context(), analyst, id)
	must(t, err)
	must(t, f.Close())
}
