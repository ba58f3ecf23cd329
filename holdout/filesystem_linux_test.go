package holdout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFileSystemsAreRefusedByName: nothing is made on a file system that loses what was made durable, unless that is asked for.
func TestFileSystemsAreRefusedByName(t *testing.T) {
	memory, err := os.MkdirTemp("/dev/shm", "holdoutd-test-") // a tmpfs on every Linux
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(memory) })
	dir := filepath.Join(memory, "not", "there")
	if s, err := Open(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "on tmpfs, which is in memory") || !strings.Contains(err.Error(), "--any-filesystem") {
		t.Errorf("a data directory in memory: %v %v", s, err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("something was made there: %v", err)
	}
	id := create(t, open(t, dir), Settings{Questions: 5}, visits(t, 300, 1)).ID // by this flag
	if id == "" {
		t.Error("no holdout")
	}
}
