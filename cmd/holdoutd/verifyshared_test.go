//go:build postgres

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// TestVerifyShared verifies a ledger in PostgreSQL while a server uses it, and compares a kept answer with it. It notices one that is not read from the database itself, and an answer that it lacks.
func TestVerifyShared(t *testing.T) {
	dir := t.TempDir()
	url, key, kept := filepath.Join(dir, "ledger"), filepath.Join(dir, "server.key"), filepath.Join(dir, "kept.json")
	for path, text := range map[string]string{url: pgtest.NewCluster(t).NewDatabase(t).Owner, key: strings.Repeat("5a", 32)} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(dir, "data")
	p := startServer(t, home, "--ledger", "@"+url, "--server-key", key)
	c := connect(t, p, home)
	card := flightsHoldout(t, c)
	if err := os.WriteFile(kept, answerTo(t, c, card.ID, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, exitDone, "1 answers", "verify", "--ledger", "@"+url, "--answer", kept)
	command(t, exitFailed, "older than the kept answer", "verify", "--ledger", "@"+url, "--holdout", card.ID, "--seq", "2", "--head", "sha256:"+strings.Repeat("0", 64))
	command(t, exitMisused, "name what is to be verified", "verify", dir, "--ledger", "@"+url)
}
