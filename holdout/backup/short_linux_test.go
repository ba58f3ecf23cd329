package backup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestShortOfFiles: a process that may not open all files of a holdout makes no backup, and does not say of whole tables that they are damaged. It changes a limit of its process, so nothing
// runs beside it.
func TestShortOfFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := serve(t, dir, large)
	id := create(t, s, 1, holdout.Settings{})
	must(t, s.Close())
	files, err := openAll(filepath.Join(dir, holdoutsDir, id), id)
	must(t, err)
	for _, f := range files {
		must(t, f.Close())
	}

	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	begun := 0 // the number that the next file would have
	if f, err := os.Open(os.DevNull); err == nil {
		begun = int(f.Fd())
		must(t, f.Close())
	}
	few := limit
	few.Cur = uint64(begun + len(files) - 1)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	recipients, _ := keys(t)
	_, err = Create(t.Context(), &bytes.Buffer{}, Source{Dir: dir, Recipients: recipients, Spool: t.TempDir()})
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("a backup with %d files open at most: %v", few.Cur, err)
	}
	if _, m := backedUp(t, Source{Dir: dir, Recipients: recipients}); len(m.Incomplete()) > 0 {
		t.Errorf("a backup behind it lacks %+v", m.Incomplete())
	}
}
