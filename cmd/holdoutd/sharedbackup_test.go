//go:build postgres

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// TestLedgerMoves takes a holdout from a ledger in a file to one in PostgreSQL, and from there back to a file, each time by a backup. It notices an answer that is not the same bytes behind it, a copy that gives new answers
// before somebody has said what was asked since, a database that is overwritten, and a ledger that stays in it where a restore failed.
func TestLedgerMoves(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	identity, public := ageKey(t)
	p := startServer(t, dir)
	c := connect(t, p, dir)
	card := flightsHoldout(t, c)
	first := answerTo(t, c, card.ID, 1)
	p.stop(t)
	inFile := filepath.Join(work, "file.backup")
	command(t, exitDone, "", "backup", dir, "-o", inFile, "--recipient", public, "--with-server-key")

	owner := pgtest.NewCluster(t).NewDatabase(t).Owner
	url, home := filepath.Join(work, "url"), filepath.Join(work, "shared")
	otherKey := filepath.Join(work, "other.key")
	for path, text := range map[string]string{url: owner, otherKey: strings.Repeat("5a", 32)} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	noKey := filepath.Join(work, "nokey.backup")
	command(t, exitDone, "", "backup", dir, "-o", noKey, "--recipient", public)
	command(t, exitFailed, "another one", "restore", noKey, home, "--identity", identity, "--ledger", "@"+url, "--server-key", otherKey) // and leaves nothing
	command(t, exitDone, "confirm "+home+" --ledger", "restore", inFile, home, "--identity", identity, "--ledger", "@"+url)
	command(t, exitFailed, "empty database", "restore", inFile, filepath.Join(work, "again"), "--identity", identity, "--ledger", "@"+url)
	if _, err := os.Lstat(filepath.Join(work, "again")); err == nil {
		t.Error("a restore that was refused left its directory")
	}
	serve := []string{"--ledger", "@" + url, "--tables", filepath.Join(home, "holdouts")}
	p = startServer(t, home, serve...)
	c = connect(t, p, home)
	restoredOnly(t, c, card.ID, first)
	command(t, exitDone, card.ID, "confirm", home, "--ledger", "@"+url)
	command(t, exitFailed, "nobody knows", "confirm", home, card.ID, "--ledger", "@"+url)
	command(t, exitDone, "debited: 4 questions", "confirm", home, card.ID, "--ledger", "@"+url, "--spent", "questions=4") // while it is served
	second := answerTo(t, c, card.ID, 2)
	if !bytes.Contains(second, []byte(`"seq":3`)) {
		t.Errorf("the next answer is %s", second)
	}

	inDatabase := filepath.Join(work, "database.backup")
	command(t, exitDone, "", "backup", home, "-o", inDatabase, "--recipient", public, "--with-server-key", "--ledger", "@"+url, "--tables", filepath.Join(home, "holdouts")) // while it is served
	p.stop(t)
	back := filepath.Join(work, "back")
	command(t, exitDone, "confirm "+back, "restore", inDatabase, back, "--identity", identity)
	p = startServer(t, back)
	c = connect(t, p, back)
	for i, want := range [][]byte{first, second} {
		if again := answerTo(t, c, card.ID, i+1); !bytes.Equal(again, want) {
			t.Errorf("%s is replayed as %s", want, again)
		}
	}
	p.stop(t)
	command(t, exitDone, "gives new answers again", "confirm", back, card.ID, "--nothing-asked-since")
	command(t, exitDone, "in order", "verify", back)
}
