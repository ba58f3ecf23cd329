//go:build postgres

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// TestMigrate: a role that may change nothing cannot make a ledger, is told what to do, and serves it once the owner has run migrate. The soak's books
// balance for two servers as that role, which are killed. It would notice a privilege that the role lacks.
func TestMigrate(t *testing.T) {
	dir := t.TempDir()
	database := pgtest.NewCluster(t).NewDatabase(t)
	key := filepath.Join(dir, "server.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("5a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--ledger", database.Service, "--server-key", key, "--tables", filepath.Join(dir, "tables")}
	if _, stderr, code := holdoutd(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "early")}, flags...)...); code != exitFailed || !strings.Contains(stderr, "holdoutd migrate") {
		t.Errorf("before migrate: exit code %d: %s", code, stderr)
	}
	for range 2 { // it can be run again
		if out, stderr, code := holdoutd(t, "migrate", "--ledger", database.Owner, "--role", "service"); code != exitDone || !strings.Contains(out, "up to date") {
			t.Fatalf("exit code %d: %s%s", code, out, stderr)
		}
	}
	out, stderr, code := holdoutd(t, append([]string{"bench", "load", "--replicas", "2", "--time", "8s", "--clients", "6", "--disturb", "1500ms", "--"}, flags...)...)
	if code != exitDone {
		t.Errorf("bench load: exit code %d\n%s%s", code, out, stderr)
	}
}
