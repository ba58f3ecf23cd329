package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/holdoutd/holdoutd/client"
)

// ageKey writes a secret key of age, and returns its file and its public key.
func ageKey(t *testing.T) (file, public string) {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(file, []byte(i.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, i.Recipient().String()
}

// command runs the program and demands its exit code and a text in what it says.
func command(t *testing.T, want int, says string, args ...string) string {
	t.Helper()
	out, errs, code := holdoutd(t, args...)
	if code != want || !strings.Contains(out+errs, says) {
		t.Fatalf("holdoutd %s: exit code %d, not %d with %q:\n%s%s", strings.Join(args, " "), code, want, says, out, errs)
	}
	return out
}

// restoredOnly demands that a holdout replays what it answered about above(1), and gives no new answer before somebody has said what was asked since the backup.
func restoredOnly(t *testing.T, c *client.Client, id string, first []byte) {
	t.Helper()
	if again := answerTo(t, c, id, 1); !bytes.Equal(again, first) {
		t.Errorf("%s is replayed as %s", first, again)
	}
	if _, err := c.Ask(t.Context(), id, above(2)); err == nil || !strings.Contains(err.Error(), "holdoutd confirm") {
		t.Errorf("a restored holdout was asked: %v", err)
	}
}

// TestBackupCommands goes the whole way: a backup of a directory that is served, a restore, what shows that it is older, and how it goes on.
func TestBackupCommands(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	identity, public := ageKey(t)
	p := startServer(t, dir)
	c := connect(t, p, dir)
	card := flightsHoldout(t, c)
	first := answerTo(t, c, card.ID, 1)
	file := filepath.Join(work, "monday.backup")
	command(t, exitDone, "server.key is not in it", "backup", dir, "-o", file, "--recipient", public)
	command(t, exitFailed, "is there already", "backup", dir, "-o", file, "--recipient", public)
	command(t, exitMisused, "who can open", "backup", dir, "-o", filepath.Join(work, "other"))
	later := answerTo(t, c, card.ID, 2)
	kept := filepath.Join(work, "kept.jsonl")
	if err := os.WriteFile(kept, append(append(bytes.Clone(first), '\n'), later...), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := "@" + filepath.Join(dir, "admin.key")
	command(t, exitDone, "2 answers", "verify", dir, "--answer", kept)
	command(t, exitDone, "2 answers", "verify", p.url, "--key", admin, "--answer", kept)
	command(t, exitFailed, "older than the kept answer", "verify", p.url, "--key", admin, "--holdout", card.ID, "--seq", "3", "--head", "sha256:"+strings.Repeat("0", 64))
	command(t, exitFailed, "not the one that gave", "verify", dir, "--holdout", card.ID, "--seq", "1", "--head", "sha256:"+strings.Repeat("0", 64))
	command(t, exitMisused, "together", "verify", dir, "--seq", "1")
	command(t, exitDone, "1 answers", "verify", file, "--identity", identity)
	command(t, exitFailed, "older than the kept answer", "verify", file, "--identity", identity, "--answer", kept)
	command(t, exitMisused, "what opens", "verify", file)
	command(t, exitDone, "in order", "restore", "--check", file, "--identity", identity)
	if code := p.stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	restored := filepath.Join(work, "restored")
	command(t, exitMisused, "name the directory", "restore", file, "--identity", identity)
	command(t, exitFailed, "not empty", "restore", file, dir, "--identity", identity)
	command(t, exitDone, "holdoutd confirm "+restored, "restore", file, restored, "--identity", identity, "--server-key", filepath.Join(dir, "server.key"))
	copied, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(restored, "admin.key"), copied, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p = startServer(t, restored)
	c = connect(t, p, restored)
	restoredOnly(t, c, card.ID, first)
	command(t, exitFailed, "locked", "confirm", restored, card.ID, "--nothing-asked-since")
	p.stop(t)
	command(t, exitDone, card.ID, "confirm", restored)
	command(t, exitFailed, "nobody knows", "confirm", restored, "--all")
	command(t, exitFailed, "1 answers that were given are missing", "confirm", restored, card.ID, "--nothing-asked-since", "--answer", kept)
	command(t, exitMisused, "not of the form", "confirm", restored, card.ID, "--spent", "answers=3")
	command(t, exitDone, "debited: 4 questions", "confirm", restored, card.ID, "--spent", "questions=4", "--answer", kept)
	command(t, exitDone, "no holdout waits", "confirm", restored)
	p = startServer(t, restored)
	c = connect(t, p, restored)
	var place struct{ Ledger struct{ Seq int64 } }
	if err := json.Unmarshal(answerTo(t, c, card.ID, 3), &place); err != nil || place.Ledger.Seq != 3 {
		t.Errorf("the next answer is at %+v (%v)", place, err)
	}
	command(t, exitFailed, "not the one that gave", "verify", restored, "--answer", kept)
}

// TestKilledBackupAndRestore kills both with SIGKILL at random moments. It notices a file or a directory that has its name before it is whole, and what a killed run leaves that hinders the next.
func TestKilledBackupAndRestore(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	identity, public := ageKey(t)
	p := startServer(t, dir)
	c := connect(t, p, dir)
	answerTo(t, c, flightsHoldout(t, c).ID, 1)
	whole := filepath.Join(work, "whole.backup")
	began := time.Now()
	command(t, exitDone, "", "backup", dir, "-o", whole, "--recipient", public, "--with-server-key")
	longest := time.Since(began)
	random := rand.New(rand.NewPCG(5, 0))
	killed := func(args ...string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(longest*5/4))))
		defer cancel()
		exec.CommandContext(ctx, binary, args...).Run() // or it was done before
	}
	for i := range 6 {
		file, target := filepath.Join(work, fmt.Sprintf("%d.backup", i)), filepath.Join(work, "data")
		killed("backup", dir, "-o", file, "--recipient", public)
		if _, err := os.Lstat(file); err == nil {
			command(t, exitDone, "in order", "restore", "--check", file, "--identity", identity)
		}
		killed("restore", whole, target, "--identity", identity)
		if _, err := os.Lstat(target); err == nil {
			command(t, exitDone, "sealed values in order", "verify", target)
			if err := os.RemoveAll(target); err != nil {
				t.Fatal(err)
			}
		}
	}
	command(t, exitDone, "", "restore", whole, filepath.Join(work, "data"), "--identity", identity)
	left, err := filepath.Glob(filepath.Join(work, ".data.restoring-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("killed restores left %v (%v)", left, err)
	}
}

// TestRestoreOnAFullDisk restores where files cannot grow any more: it says so, and leaves nothing.
func TestRestoreOnAFullDisk(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	identity, public := ageKey(t)
	p := startServer(t, dir)
	c := connect(t, p, dir)
	flightsHoldout(t, c)
	whole := filepath.Join(work, "whole.backup")
	command(t, exitDone, "", "backup", dir, "-o", whole, "--recipient", public, "--with-server-key")
	for _, args := range []string{`restore ` + whole + ` ` + work + `/data --identity ` + identity, `backup ` + dir + ` -o ` + work + `/other.backup --recipient ` + public} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf(`ulimit -f 8; exec "$0" %s`, args), binary).CombinedOutput()
		if err == nil {
			t.Errorf("%s: %s", args, out)
		}
	}
	left, err := os.ReadDir(work)
	if err != nil || len(left) != 1 {
		t.Errorf("%v are left (%v)", left, err)
	}
}
