package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdoutd/holdoutd/internal/await"
)

// TestFeatureSelectionOverHTTP: the analyst of Science 2015 plays against the real server, and what it sees agrees with
// what an independent program stored. The server's noise is fresh: false alarm 1e-4, that of all checks of a run. Nothing of it is left on the server.
func TestFeatureSelectionOverHTTP(t *testing.T) {
	dir := t.TempDir()
	server := startServer(t, dir, "--allow-naive")
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDOUTD_KEY", strings.TrimSpace(string(key)))
	out := t.TempDir()
	stdout, stderr, code := holdoutd(t, "experiment", "feature-selection", "--http", server.url, "--n", "200", "--repetitions", "4", "--out", out)
	if code != 0 || !strings.Contains(stdout, "52 of 52 comparisons agree") {
		t.Errorf("exit code %d\n%s\n%s\n%s", code, stdout, stderr, server.stderr)
	}
	holdouts, err := connect(t, server, dir).Holdouts(t.Context())
	if err != nil || len(holdouts) != 0 {
		t.Errorf("%d holdouts are left, error %v", len(holdouts), err)
	}
}

// TestFeatureSelectionNeedsNaive: a server that does not allow the standard reuse is named as the reason.
func TestFeatureSelectionNeedsNaive(t *testing.T) {
	dir := t.TempDir()
	server := startServer(t, dir)
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDOUTD_KEY", strings.TrimSpace(string(key)))
	_, stderr, code := holdoutd(t, "experiment", "feature-selection", "--http", server.url, "--n", "200", "--repetitions", "1")
	if code == 0 || !strings.Contains(stderr, "--allow-naive") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// TestExperimentInterrupted: an experiment that is interrupted writes what it has; the same command continues, and comes to
// the same files as one that was never interrupted.
func TestExperimentInterrupted(t *testing.T) {
	whole, parts := t.TempDir(), t.TempDir()
	args := func(dir string) []string {
		return []string{"experiment", "feature-selection", "--plain", "--n", "600", "--repetitions", "24", "--out", dir} // seconds of work after what is waited for
	}
	cmd := exec.Command(binary, args(parts)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	checkpoint := filepath.Join(parts, "checkpoint.jsonl")
	defer cmd.Process.Kill()
	await.Until(t, "something is finished", func() bool {
		text, _ := os.ReadFile(checkpoint)
		return bytes.Count(text, []byte("\n")) > 3
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "the same command continues") {
		t.Fatalf("after an interrupt: %v\n%s", err, &stderr)
	}
	partial, err := os.ReadFile(filepath.Join(parts, "results.json"))
	if err != nil || !bytes.Contains(partial, []byte(`"complete": false`)) {
		t.Errorf("results of an interrupted run: %v\n%.300s", err, partial)
	}
	if page, err := os.ReadFile(filepath.Join(parts, "report.html")); err != nil || !bytes.Contains(page, []byte("Interrupted")) {
		t.Errorf("the report of an interrupted run does not say so: %v", err)
	}
	for _, dir := range []string{parts, whole} {
		if _, stderr, code := holdoutd(t, args(dir)...); code != 0 {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
	}
	for _, name := range []string{"results.json", "results.csv", "figure.svg"} {
		a, errA := os.ReadFile(filepath.Join(parts, name))
		b, errB := os.ReadFile(filepath.Join(whole, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs after an interruption (%v, %v)", name, errA, errB)
		}
	}
}
