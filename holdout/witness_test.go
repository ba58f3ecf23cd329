package holdout

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// copied is a copy of a directory.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	must(t, filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(path, privateMode)
		}
		return errors.Join(err, os.Chmod(path, secretMode))
	}))
	return to
}

// TestWitness puts a whole old data directory back, whose files all agree. It notices a start that gives its budget again, a table that is taken again whose holdout came after the copy, and a
// witness that hinders a directory that nothing is wrong with.
func TestWitness(t *testing.T) {
	dir, seen := t.TempDir(), filepath.Join(t.TempDir(), "witness")
	watched := func(o *Options) { o.Witness = seen }
	s := open(t, dir, watched)
	first := create(t, s, Settings{Questions: 60}, visits(t, 600, 1)).ID
	quiet := create(t, s, Settings{Questions: 60}, visits(t, 600, 3)).ID
	for i := range 5 {
		ask(t, s, first, mean(i))
	}
	must(t, s.Close())
	old := copied(t, dir)
	s = open(t, dir, watched) // as it is
	for i := range 3 {
		ask(t, s, first, mean(100+i))
	}
	ask(t, s, quiet, mean(1))
	deadline := time.Now().Add(time.Minute)
	for {
		m, err := readMark(filepath.Join(seen, first))
		must(t, err)
		if m.Seq == 8 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the witness is at seq %d after ten seconds", m.Seq)
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(t, s.Close())

	s = open(t, old, watched)
	for _, id := range []string{first, quiet} {
		if card, err := s.Card(t.Context(), analyst, id); err != nil || card.State != StateRolledBack {
			t.Errorf("the state is %q (%v)", card.State, err)
		}
		_, err := s.Ask(t.Context(), analyst, id, []byte(mean(200)), "")
		wantKind(t, "a question behind the witness", err, RolledBack)
	}
	if a := ask(t, s, first, mean(0)); !a.Replayed {
		t.Error("a recorded answer was asked again")
	}
	must(t, s.Close())

	// It says how much was lost, and learns where the chain goes on.
	if _, err := Accept(t.Context(), old, first, Acceptance{Spent: thresholdout.Amounts{Questions: 2}, Witness: seen}); err == nil || !strings.Contains(err.Error(), "3 answers that were given are missing") {
		t.Errorf("less than the witness knows: %v", err)
	}
	out, err := Accept(t.Context(), old, first, Acceptance{Spent: thresholdout.Amounts{Questions: 3}, Witness: seen})
	if err != nil || out.Lost != 3 || out.Proved {
		t.Fatalf("accepted: %+v, %v", out, err)
	}
	s = open(t, old, watched)
	ask(t, s, first, mean(200))
	must(t, s.Close())
	open(t, old, watched)
}

// TestWitnessKnowsLaterHoldouts: a copy from before a holdout was made does not start, and when that is accepted its table stays refused.
func TestWitnessKnowsLaterHoldouts(t *testing.T) {
	dir, seen := t.TempDir(), filepath.Join(t.TempDir(), "witness")
	watched := func(o *Options) { o.Witness = seen }
	s := open(t, dir, watched)
	create(t, s, Settings{Questions: 60}, visits(t, 600, 1))
	must(t, s.Close())
	old := copied(t, dir)
	s = open(t, dir, watched)
	later := create(t, s, Settings{Questions: 60}, visits(t, 600, 2)).ID
	ask(t, s, later, mean(1))
	must(t, s.Close())
	o := Options{Dir: old, Witness: seen}
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), later) {
		t.Fatalf("started without %s: %v", later, err)
	}
	s = open(t, old, watched, func(o *Options) { o.AcceptLostLedger = true })
	_, _, err := s.Create(t.Context(), admin, Settings{Name: "again"}, SingleUpload(strings.NewReader(string(parquet(t, visits(t, 600, 2))))), "")
	wantKind(t, "the table of a lost holdout", err, Exists)
}

// TestWitnessProves: the witness of the server that was stopped shows that nothing was asked since, and is enough.
func TestWitnessProves(t *testing.T) {
	dir, seen := t.TempDir(), filepath.Join(t.TempDir(), "witness")
	s := open(t, dir, func(o *Options) { o.Witness = seen })
	id := create(t, s, Settings{Questions: 60}, visits(t, 600, 1)).ID
	ask(t, s, id, mean(1))
	must(t, s.Close())
	m, err := readMark(filepath.Join(seen, id))
	if err != nil || m.Seq != 1 {
		t.Errorf("the witness is at %+v (%v)", m, err)
	}
	var a Acceptance
	out := Accepted{Holdout: id, Proved: true}
	if err := a.check(&out, true); err != nil {
		t.Errorf("proved, and not enough: %v", err)
	}
	out.Proved = false
	if err := a.check(&out, true); err == nil {
		t.Error("accepted without a word")
	}
}

// TestBlindWitness: while the witness cannot be written the server answers and is not ready, and it catches up.
func TestBlindWitness(t *testing.T) {
	dir, seen := t.TempDir(), filepath.Join(t.TempDir(), "witness")
	s := open(t, dir, func(o *Options) { o.Witness = seen })
	id := create(t, s, Settings{Questions: 60}, visits(t, 600, 1)).ID
	must(t, s.flushWitness(t.Context()))
	must(t, os.Rename(seen, seen+".gone"))
	ask(t, s, id, mean(1))
	deadline := time.Now().Add(time.Minute)
	for s.Ready(t.Context()) == nil && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	wantKind(t, "readiness without the witness", s.Ready(t.Context()), Unavailable)
	must(t, os.Rename(seen+".gone", seen))
	for s.Ready(t.Context()) != nil && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	must(t, s.Ready(t.Context()))
	if m, err := readMark(filepath.Join(seen, id)); err != nil || m.Seq != 1 {
		t.Errorf("the witness is at %+v (%v)", m, err)
	}
}
