package holdout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOthersMayNotWriteOrRead: a data directory that others can write, and a key that others can read, keep the server from
// starting, with the command that mends it; so does a planted admin.key, which cannot come about otherwise.
func TestOthersMayNotWriteOrRead(t *testing.T) {
	for _, c := range []struct {
		name string
		mode os.FileMode
		says string
	}{
		{"", 0o777, "chmod go-w"}, {"", 0o770, "chmod go-w"}, {"", 0o702, "chmod go-w"}, {"", 0o755, ""}, {"", 0o750, ""},
		{holdoutsDir, 0o730, "chmod go-w"}, {temporaryDir, 0o707, "chmod go-w"},
		{serverKeyFile, 0o644, "chmod 600"}, {serverKeyFile, 0o640, "chmod 600"}, {serverKeyFile, 0o602, "chmod 600"}, {serverKeyFile, 0o400, ""},
		{adminKeyFile, 0o604, "chmod 600"}, {adminKeyFile, 0o660, "chmod 600"}, {adminKeyFile, 0o600, ""},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		s, err := Open(t.Context(), Options{Dir: dir, AnyFileSystem: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, c.name)
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		s, err = Open(t.Context(), Options{Dir: dir, AnyFileSystem: true})
		if err == nil {
			s.Close()
		}
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says+" "+path)) {
			t.Errorf("%s with mode %o: %v, want %q", c.name, c.mode, err, c.says)
		}
	}

	// An admin.key that someone put into a directory of theirs, before the first start.
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(dir, adminKeyFile)
	if err := os.WriteFile(planted, []byte(KeyPrefix+strings.Repeat("A", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), Options{Dir: dir, AnyFileSystem: true}); err == nil {
		s.Close()
		t.Error("a planted admin.key was enrolled")
	}
	if os.Geteuid() != 0 {
		return // only root can give a file to another user
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(planted, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), Options{Dir: dir, AnyFileSystem: true}); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		if err == nil {
			s.Close()
		}
		t.Errorf("an admin.key of another user: %v", err)
	}
}
