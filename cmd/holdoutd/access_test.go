package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without rights, for tests that run as root, whom no mode stops.
const nobody = 65534

// public makes a directory that everyone can enter, with a copy of the program.
func public(t *testing.T) (dir, program string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdoutd-access-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { return os.Chmod(path, 0o700) })
		os.RemoveAll(dir)
	})
	contents, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "holdoutd")
	if err := os.WriteFile(program, contents, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	temporary := filepath.Join(dir, "tmp")
	if err := errors.Join(os.Mkdir(temporary, 0o777), os.Chmod(temporary, 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir, program
}

// unprivileged runs the program to its end as a user whom modes stop.
func unprivileged(t *testing.T, program string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(filepath.Dir(program), "tmp"))
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return b.String(), cmd.ProcessState.ExitCode()
}

// eachBelow changes the mode of everything in a directory, and gives it to a user.
func eachBelow(t *testing.T, dir string, directories, files os.FileMode, owner int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(path, owner, owner); err != nil {
				return err
			}
		}
		if d.IsDir() {
			return os.Chmod(path, directories)
		}
		return os.Chmod(path, files)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// served makes a data directory with one answer. killed leaves it as a crash does, with a log.
func served(t *testing.T, dir string, killed bool) {
	t.Helper()
	p := startServer(t, dir)
	c := connect(t, p, dir)
	card := flightsHoldout(t, c)
	if _, err := c.Ask(t.Context(), card.ID, above(15)); err != nil {
		t.Fatal(err)
	}
	if killed {
		p.kill()
	} else if code := p.stop(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
}

// TestStartLeavesNoTrap: a start that may not write the ledger names file and mode, and the next one that may succeeds. It
// would catch a failed start that leaves a log which cannot be written.
func TestStartLeavesNoTrap(t *testing.T) {
	base, program := public(t)
	dir := filepath.Join(base, "data")
	served(t, dir, false)
	for what, c := range map[string]struct {
		path string
		mode os.FileMode
		says string
	}{
		"a ledger that cannot be written": {filepath.Join(dir, "ledger.db"), 0o400, "ledger.db (mode 0400)"},
		"a directory that cannot":         {dir, 0o500, dir + " (mode 0500)"},
	} {
		eachBelow(t, dir, 0o700, 0o600, nobody)
		if err := os.Chmod(c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		if out, code := unprivileged(t, program, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir); code != 1 || !strings.Contains(out, c.says) {
			t.Errorf("%s: %d %s", what, code, out)
		}
		eachBelow(t, dir, 0o700, 0o600, os.Getuid())
		if code := startServer(t, dir).stop(t); code != 0 {
			t.Errorf("%s, mended: exit code %d", what, code)
		}
	}
}

// TestVerifyWhereNothingCanBeWritten: verify works on a snapshot, of a server that was stopped and of one that was killed.
func TestVerifyWhereNothingCanBeWritten(t *testing.T) {
	for what, killed := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(what, func(t *testing.T) {
			base, program := public(t)
			dir := filepath.Join(base, "data")
			served(t, dir, killed)
			if log, err := os.Stat(filepath.Join(dir, "ledger.db-wal")); (err == nil && log.Size() > 0) != killed {
				t.Fatalf("the log of a server that was %s: %v %v", what, log, err)
			}
			os.Remove(filepath.Join(dir, "ledger.db-shm")) // a backup need not have it
			eachBelow(t, dir, 0o555, 0o444, os.Getuid())
			if err := os.Chmod(filepath.Join(dir, "server.key"), 0); err != nil {
				t.Fatal(err)
			}
			out, code := unprivileged(t, program, "verify", dir)
			if code != 0 || !strings.Contains(out, "in order\n  1 answers") || !strings.Contains(out, "tables in order; sealed values not checked") {
				t.Errorf("%d %s", code, out)
			}
			if left, err := os.ReadDir(filepath.Join(base, "tmp")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// TestLockFileRemoved: without the lock file a second server is kept out all the same.
func TestLockFileRemoved(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	if err := os.Remove(filepath.Join(dir, "ledger.db.lock")); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir); code != 1 || !strings.Contains(errs, "is in use by another holdoutd") {
		t.Errorf("a second server: %d %s%s", code, out, errs)
	}
	c := connect(t, p, dir)
	if _, err := c.CreateKey(t.Context(), "ana", "analyst"); err != nil {
		t.Errorf("the first server: %v", err)
	}
}
