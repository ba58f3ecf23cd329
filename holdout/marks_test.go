package holdout

import (
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
	s, err := Open(t.Context(), Options{Dir: dir, Decoder: ingesttest.Decoder(t), AcceptLostLedger: accept})
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

	markPath := filepath.Join(dir, holdoutsDir, card.ID, markFile)
	kept, err := os.ReadFile(markPath)
	must(t, err)
	older()
	must(t, os.Remove(markPath))
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
