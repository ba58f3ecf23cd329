package holdout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/release"
)

// lose loses the ledger of a closed directory.
func lose(t *testing.T, dir string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		must(t, removeIfThere(filepath.Join(dir, ledgerFile+suffix)))
	}
}

// TestLostLedgerKeepsRows: rows of holdouts that were asked, retired or shown, deleted or not, are known beside a new ledger, whatever name the table has; and those of a draft that was deleted are not. It notices
// sketches that go with the ledger, and a use that goes with the holdout.
func TestLostLedgerKeepsRows(t *testing.T) {
	const rows = 2_000
	dir := t.TempDir()
	s := open(t, dir)
	of := map[string]string{}
	for seed, name := range []string{"asked", "retired", "shown", "draft", "living", "released"} {
		card := create(t, s, Settings{Questions: 20}, madeOf(t, measured(t, rows, uint64(seed+1))))
		of[name] = card.ID
		switch name {
		case "asked", "living":
			ask(t, s, card.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
		case "retired":
			_, err := s.Retire(t.Context(), admin, card.ID)
			must(t, err)
		case "shown":
			seen(t, s, card)
		case "released":
			_, err := s.Release(t.Context(), admin, card.ID, NewRelease{Epsilon: 1, Columns: []release.ColumnRequest{{Name: "a", Low: new(-5.), High: new(5.)}}})
			must(t, err)
		}
		if name != "living" {
			must(t, s.Delete(t.Context(), admin, card.ID))
		}
	}
	must(t, s.Close())
	lose(t, dir)
	for range 2 { // the second start is one with a ledger that is there
		s = open(t, dir, func(o *Options) { o.AcceptLostLedger = true })
		for seed, c := range []struct {
			name, matter string
			half         bool // of the rows are held out, and not a fifth
			not          string
		}{
			{"asked", heldOutAgain, false, ""}, {"retired", shownBefore, false, heldOutAgain}, {"shown", shownBefore, true, heldOutAgain}, {"draft", "", false, ""}, {"living", heldOutAgain, false, ""}, {"released", heldOutAgain, false, ""},
		} {
			columns := nudged(measured(t, rows, uint64(seed+1)))
			settings := Settings{Name: "again", Questions: 20, Mechanism: "gaussian"}
			if c.half {
				settings.Holdout = 0.5
			}
			card, err := again(t, s, settings, madeOf(t, columns))
			if c.matter == "" {
				must(t, err)
				must(t, s.Delete(t.Context(), admin, card.ID))
				continue
			}
			if got := matters(t, err, of[c.name]); got[c.matter] == 0 || got[heldOutElsewhere] != 0 || c.not != "" && got[c.not] != 0 {
				t.Errorf("%s: %v, want %s", c.name, got, c.matter)
			}
			_, err = again(t, s, settings, madeOf(t, measured(t, rows, uint64(seed+1))))
			wantKind(t, "the very table of "+c.name, err, Exists)
		}
		must(t, s.Close())
	}
	s = open(t, dir)
	settings := Settings{Overlap: overlapAccepted, Questions: 20}
	for seed, want := range map[uint64]bool{6: true, 1: false} { // the first was deleted, and had no release
		card := seen(t, s, create(t, s, settings, madeOf(t, nudged(measured(t, rows, seed)))))
		_, err := s.Release(t.Context(), admin, card.ID, NewRelease{Epsilon: 1, Columns: []release.ColumnRequest{{Name: "a", Low: new(-5.), High: new(5.)}}})
		if want != (KindOf(err) == ReleasedBefore) || !want && err != nil {
			t.Errorf("a release of rows of the holdout %d: %v, want a refusal: %v", seed, err, want)
		}
	}
}

// TestOlderLedgerKeepsUse: a holdout that was asked and deleted, and is a draft for an older ledger that was put back, brings its rows no fresh budget when it is deleted there once more. It notices a deletion that counts by the
// ledger alone.
func TestOlderLedgerKeepsUse(t *testing.T) {
	const rows = 2_000
	for _, deleted := range []bool{true, false} { // before the older ledger is put back
		dir := t.TempDir()
		s := open(t, dir)
		old := measured(t, rows, 1)
		card := create(t, s, Settings{Questions: 20}, madeOf(t, old))
		must(t, s.Close())
		putBack := copyLedger(t, dir)
		s = open(t, dir)
		ask(t, s, card.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
		if deleted {
			must(t, s.Delete(t.Context(), admin, card.ID))
		}
		must(t, s.Close())
		lose(t, dir)
		putBack()
		s = open(t, dir)
		must(t, s.Delete(t.Context(), admin, card.ID))
		for range 2 {
			_, err := again(t, s, Settings{Name: "again", Questions: 20, Mechanism: "gaussian"}, madeOf(t, nudged(old)))
			if got := matters(t, err, card.ID); got[heldOutAgain] < 0.9 {
				t.Errorf("deleted before: %v: %v", deleted, got)
			}
			_, err = again(t, s, Settings{Name: "again", Questions: 10, Mechanism: "gaussian"}, madeOf(t, old))
			wantKind(t, "the very table", err, Exists)
			must(t, s.Close())
			s = open(t, dir)
		}
	}
}

// TestUseOfEarlierProgram: a data folder of a program that remembered no use has one after the first start, and what cannot be read of it is taken for the most.
func TestUseOfEarlierProgram(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	old := measured(t, 2_000, 1)
	card := seen(t, s, create(t, s, Settings{Questions: 20}, madeOf(t, old)))
	must(t, s.Delete(t.Context(), admin, card.ID))
	must(t, s.Close())
	file := filepath.Join(dir, lineageDir, card.ID+useSuffix)
	made, err := os.ReadFile(file)
	must(t, err)
	if !strings.HasPrefix(string(made), `{"version":1,"table":"`) || strings.Contains(string(made), "true") {
		t.Errorf("what is remembered of a holdout that was shown alone: %s", made)
	}
	must(t, os.Remove(file))
	must(t, open(t, dir).Close())
	now, err := os.ReadFile(file)
	if err != nil || string(now) != string(made) {
		t.Errorf("%s, %v, want %s", now, err, made)
	}
	must(t, os.WriteFile(file, []byte(`{"version":2}`), secretMode))
	s = open(t, dir)
	_, err = again(t, s, Settings{Name: "again", Questions: 20, Mechanism: "gaussian"}, madeOf(t, nudged(old)))
	if got := matters(t, err, card.ID); got[shownBefore] < 0.9 {
		t.Errorf("what cannot be read: %v", got)
	}
}

// TestOlderLedgerKeepsReleases: releases that an older ledger has forgotten are found by their rows, of a holdout that is there, that is deleted beside the older ledger, and that was deleted before it was put back. It notices a
// comparison that goes by the ledger alone.
func TestOlderLedgerKeepsReleases(t *testing.T) {
	for name, deleted := range map[string][2]bool{"there": {}, "deleted since": {false, true}, "deleted before": {true, false}} {
		dir, rows := t.TempDir(), measured(t, 2_000, 1)
		s := open(t, dir)
		id := create(t, s, Settings{Questions: 20}, madeOf(t, rows)).ID
		must(t, s.Close())
		putBack := copyLedger(t, dir)
		s = open(t, dir)
		mustRelease(t, s, id, ofMeasured(3))
		if deleted[0] {
			must(t, s.Delete(t.Context(), admin, id))
		}
		must(t, s.Close())
		lose(t, dir)
		putBack()
		s = open(t, dir)
		if deleted[1] {
			must(t, s.Delete(t.Context(), admin, id))
		}
		other := create(t, s, Settings{Questions: 10, Overlap: overlapAccepted}, madeOf(t, nudged(rows))).ID
		_, err := s.Release(t.Context(), admin, other, ofMeasured(1))
		wantKind(t, name, err, ReleasedBefore)
	}
}

// TestOlderLedgerKeepsTheVeryTable: the table of a holdout that was asked and deleted is refused beside an older ledger that knows an earlier draft of it, or none, whatever is accepted. It notices a lost table that an older draft hides, and a use that names
// the digest of a replacement.
func TestOlderLedgerKeepsTheVeryTable(t *testing.T) {
	for _, replaced := range []bool{true, false} {
		for _, earlier := range []bool{true, false} { // a program that remembered no use
			dir, rows := t.TempDir(), measured(t, 2_000, 1)
			s := open(t, dir)
			draft := create(t, s, Settings{Questions: 20}, madeOf(t, rows))
			if !replaced {
				must(t, s.Delete(t.Context(), admin, draft.ID))
			}
			must(t, s.Close())
			putBack := copyLedger(t, dir)
			s = open(t, dir)
			card := create(t, s, Settings{Questions: 10}, madeOf(t, rows))
			ask(t, s, card.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
			must(t, s.Delete(t.Context(), admin, card.ID))
			must(t, s.Close())
			if earlier {
				must(t, os.Remove(filepath.Join(dir, lineageDir, card.ID+useSuffix)))
				must(t, open(t, dir).Close())
			}
			settings := Settings{Name: "again", Questions: 20, Mechanism: "gaussian", Overlap: overlapAccepted}
			for _, back := range []func(){putBack, func() {}} {
				lose(t, dir)
				back()
				s = open(t, dir, func(o *Options) { o.AcceptLostLedger = true })
				_, err := again(t, s, settings, madeOf(t, rows))
				wantKind(t, "the very table", err, Exists)
				must(t, s.Close())
			}
		}
	}
}

// TestDeletedLivesAgain: a holdout that was deleted, and whose ledger and tables of a day before are put back, gives no new answers: what is beside its sketches says what it was used for.
func TestDeletedLivesAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card := seen(t, s, create(t, s, Settings{Questions: 20}, madeOf(t, measured(t, 2_000, 1))))
	must(t, s.Close())
	putBack, tables := copyLedger(t, dir), filepath.Join(t.TempDir(), "tables")
	must(t, os.CopyFS(tables, os.DirFS(filepath.Join(dir, holdoutsDir, card.ID))))
	s = open(t, dir)
	ask(t, s, card.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
	must(t, s.Delete(t.Context(), admin, card.ID))
	must(t, s.Close())
	lose(t, dir)
	putBack()
	must(t, os.RemoveAll(filepath.Join(dir, holdoutsDir, card.ID)))
	must(t, os.CopyFS(filepath.Join(dir, holdoutsDir, card.ID), os.DirFS(tables)))
	s = open(t, dir)
	_, err := s.Ask(t.Context(), analyst, card.ID, []byte(`{"type":"mean","of":"a","range":[-4,4]}`), "")
	wantKind(t, "a question", err, RolledBack)
}
