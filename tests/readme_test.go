//go:build python

// Package tests holds tests of what the README promises.
package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// checks follow the README's Python lines in the same script: they compare what the comments promise.
const checks = `
assert card["units"]["training"] + card["units"]["holdout"] == pandas.read_parquet("flights.parquet").shape[0], card["units"]
assert len(pandas.read_parquet(io.BytesIO(training))) == card["units"]["training"]
assert answer["interval"]["low"] <= answer["value"] <= answer["interval"]["high"], answer
assert again["replayed"] is True and again["budget"]["questions"] == {"left": 105, "of": 110}, again
assert len(reply["answers"]) == 100 and reply["budget"]["questions"] == {"left": 5, "of": 110}, reply["budget"]
assert refusal.status_code == 403 and refusal.headers["Content-Type"] == "application/problem+json", refusal.text
assert refusal.json()["type"].endswith("budget-exhausted"), refusal.text
assert refusal.json()["requested"] == 6 and refusal.json()["remaining"] == 5, refusal.text
print("README OK")
`

// TestREADMEPython runs the README's Python lines, in order, against the real server.
func TestREADMEPython(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON is not set: run `make test`, or set it to the output of scripts/python.sh")
	}
	dir := t.TempDir()
	flights, err := os.ReadFile("../experiments/data/flights-100k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "flights.parquet"), flights, 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, dir)

	cells := blocks(t, "../README.md", "python")
	script := "import io, pandas\n" + cells[0] + "\n" + strings.Join(cells, "\n") + checks // the first cell twice, as in a notebook
	script = strings.ReplaceAll(script, "http://127.0.0.1:8080", url)
	path := filepath.Join(dir, "readme.py")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, path)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("README OK")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// blocks returns the fenced blocks of a language in a Markdown file.
func blocks(t *testing.T, path, language string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s block", path, language)
	}
	return found
}

// serve builds holdoutd, starts it in dir as the README does, with more flags if any, and returns its URL once it listens.
func serve(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	binary := filepath.Join(dir, "holdoutd")
	if out, err := exec.Command("go", "build", "-tags", "nomsgpack", "-o", binary, "../cmd/holdoutd").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", "holdoutd-data", "--log", "json"}, flags...)...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); cmd.Wait() })

	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line struct{ Msg, Addr string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			go io.Copy(io.Discard, stderr)
			return "http://" + line.Addr
		}
	}
	t.Fatal("the server ended before it listened")
	return ""
}
