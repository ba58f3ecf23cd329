package files

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestScratchOfTheDead: a source that is opened removes the scratch directories of processes that do not run any more, also those without a file, and leaves those of one that does, and parts. It would notice
// a directory of another server that is removed while it is used, and one that stays for ever.
func TestScratchOfTheDead(t *testing.T) {
	tables, parts := t.TempDir(), t.TempDir()
	open := func() *Source {
		t.Helper()
		s, err := New(Options{Dir: tables, Parts: parts})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	living, dying := open(), open()
	used, _, err := living.scratch()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := dying.scratch(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"scratch_0123456789abcdef", "ho_1_training", filepath.Base(used) + "/piece0"} {
		if err := os.MkdirAll(filepath.Join(parts, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := dying.working.lock.Close(); err != nil { // as the kernel does when a process is killed
		t.Fatal(err)
	}
	third := open()
	has := func(want ...string) {
		t.Helper()
		entries, err := os.ReadDir(parts)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("the directory of the parts has %v, want %v", names, want)
		}
	}
	files := []string{workingPrefix + living.working.who, workingPrefix + third.working.who}
	has("ho_1_training", filepath.Base(used), files[0], files[1])
	if listed, err := third.Parts(t.Context()); err != nil || !slices.Equal(listed, []string{"ho_1_training", filepath.Base(used)}) {
		t.Errorf("parts %v, %v", listed, err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	if err := living.Close(); err != nil {
		t.Error(err)
	}
	open()
	entries, err := filepath.Glob(filepath.Join(parts, "scratch_*"))
	if err != nil || len(entries) > 0 {
		t.Errorf("%v are left of a source that was closed, %v", entries, err)
	}
}
