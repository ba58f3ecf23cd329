//go:build python

// Package tests holds tests of what the README and the pages of docs promise, and of the Python client.
package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/tests/program"
)

func TestMain(m *testing.M) { program.Main(m) }

// checks follow the tutorial's Python lines in the same script: they compare what the comments promise.
const checks = `
assert card["units"]["training"] + card["units"]["holdout"] == pandas.read_parquet("flights.parquet").shape[0], card["units"]
assert len(pandas.read_parquet(io.BytesIO(training))) == card["units"]["training"]
assert answer["interval"]["low"] <= answer["value"] <= answer["interval"]["high"], answer
assert again["replayed"] is True and again["budget"]["questions"] == {"left": 105, "of": 110}, again
assert len(reply["answers"]) == 100 and reply["budget"]["questions"] == {"left": 5, "of": 110}, reply["budget"]
assert refusal.status_code == 403 and refusal.headers["Content-Type"] == "application/problem+json", refusal.text
assert refusal.json()["type"].endswith("budget-exhausted"), refusal.text
assert refusal.json()["requested"] == 6 and refusal.json()["remaining"] == 5, refusal.text
print("TUTORIAL OK", flush=True)
os._exit(0)  # threads of the libraries abort now and then while the interpreter is taken down
`

// TestTutorial runs the tutorial's Python lines, in order, against the real server.
func TestTutorial(t *testing.T) {
	python := program.Python(t)
	dir := t.TempDir()
	flights, err := os.ReadFile("../experiments/data/flights-100k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "flights.parquet"), flights, 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, dir)

	cells := blocks(t, "../docs/TUTORIAL.md", "python")
	script := "import io, os, pandas\n" + cells[0] + "\n" + strings.Join(cells, "\n") + checks // the first cell twice, as in a notebook
	script = strings.ReplaceAll(script, "http://127.0.0.1:8080", url)
	path := filepath.Join(dir, "tutorial.py")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, path)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("TUTORIAL OK")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestREADME runs the commands and the Python lines of the README, in order: the demo, the installation of the client, the lines in that
// installation against that demo, and every `holdoutd …` of the text, in a shell. What make is told is looked up in the Makefile. The answer that the comment
// shows must be one that the line can give: its interval as wide, its words the same. It would notice a command that is gone and a line that nobody tried.
func TestREADME(t *testing.T) {
	python := program.Python(t)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	binary, site, home := filepath.Join(dir, "holdoutd"), filepath.Join(dir, "site"), append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=")
	run := func(folder, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = folder, append(home, "PYTHONPATH="+site)
		var out, errors strings.Builder // where Python warns of what the card warns of
		cmd.Stdout, cmd.Stderr = &out, &errors
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s %v: %v\n%s%s", name, args, err, out.String(), errors.String())
		}
		return out.String()
	}
	if err := os.Symlink(program.Path(t), binary); err != nil {
		t.Fatal(err)
	}

	for _, line := range strings.Split(strings.Join(blocks(t, "../README.md", "sh"), ""), "\n") {
		line, _, _ = strings.Cut(line, "#")
		switch words := strings.Fields(line); {
		case len(words) == 0:
		case words[0] == "make" && words[1] == "demo": // what it builds, and starts
			recipe := regexp.MustCompile(`^GO=\S+ TAGS=(\S+) QUICK=1 scripts/build\.sh holdoutd\n\./holdoutd (.+)\n$`).FindStringSubmatch(run("..", "make", "--no-print-directory", "-n", "demo"))
			if recipe == nil {
				t.Fatalf("make demo does %q", run("..", "make", "--no-print-directory", "-n", "demo"))
			}
			small := filepath.Join(dir, "small")
			if err := program.Build(small, "-tags", recipe[1]); err != nil {
				t.Fatal(err)
			}
			demo := exec.CommandContext(t.Context(), small, strings.Fields(recipe[2])...)
			demo.Dir, demo.Env = dir, home
			started(t, demo)
		case words[0] == "pip": // with what is there already of the libraries that the extras name
			source := strings.Trim(words[2], `"`)
			source, _, _ = strings.Cut(source, "[")
			run("..", python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", site, source)
		case words[0] == "make":
			run("..", "make", "-n", words[1])
		default:
			t.Errorf("no test runs %q", line)
		}
	}

	script := strings.Join(blocks(t, "../README.md", "python"), "")
	shown := regexp.MustCompile(`# (\S+)  \[(\S+), (\S+)\]  (at .*)`)
	said, got := shown.FindStringSubmatch(script), shown.FindStringSubmatch("# "+run(dir, python, "-c", script))
	if said == nil || got == nil || got[4] != said[4] {
		t.Fatalf("the README shows %q, the line says %q", said, got)
	}
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if wide, really := number(said[3])-number(said[2]), number(got[3])-number(got[2]); math.Abs(wide-really) > .1*really || number(said[1]) < number(got[2]) || number(said[1]) > number(got[3]) {
		t.Errorf("the README shows %q, the line says %q", said[0], got[0])
	}

	for _, m := range regexp.MustCompile("`holdoutd ([^`]+)`").FindAllSubmatch(readme, -1) {
		line := string(m[1])
		if strings.HasPrefix(line, "experiment ") { // each has tests of its own
			line += " --help"
		}
		run(dir, "sh", "-c", "./holdoutd "+line)
	}
}

// TestBuild: scripts/build.sh says how far it is, builds what runs, says nothing where there is nothing to do, and ends as the compiler does.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "built")
	build := func(text string) (string, error) {
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "../scripts/build.sh", binary, source).CombinedOutput()
		return string(out), err
	}
	text := fmt.Sprintf("package main\n\nfunc main() { println(%q) }\n", dir)
	if out, err := build(text); err != nil || !regexp.MustCompile(`^compiling; .*\n(.* of \d+ packages\n)*  \d+ of \d+ packages, in \d+ s\n$`).MatchString(out) {
		t.Errorf("%v %q", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), binary).CombinedOutput(); err != nil || string(out) != dir+"\n" {
		t.Errorf("%v %q", err, out)
	}
	if out, err := build(text); err != nil || out != "" {
		t.Errorf("a second time: %v %q", err, out)
	}
	if out, err := build(text + "x"); err == nil || !strings.Contains(out, "main.go:4:1: syntax error") {
		t.Errorf("what does not compile: %v %q", err, out)
	}
}

// started starts a command that serves, and waits until it says that it listens. It is interrupted at the end of the test.
func started(t *testing.T, cmd *exec.Cmd) (url string) {
	t.Helper()
	cmd.Args = append(cmd.Args, "--addr", "127.0.0.1:0", "--log", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Cancel(); cmd.Wait() })

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

// serve starts holdoutd in dir as the tutorial does, with more flags if any, and returns its URL once it listens.
func serve(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), program.Path(t), append([]string{"serve", "--any-filesystem", "--data", "holdoutd-data"}, flags...)...)
	cmd.Dir = dir
	return started(t, cmd)
}
