package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// TestServe goes the whole way through the real program: upload, ask, spend the budget, restart, ask again, verify.
func TestServe(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "data")
	p := startServer(t, dir)
	if info, err := os.Stat(filepath.Join(dir, "admin.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("admin.key: %v %v", info, err)
	}
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.3, Questions: 20, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	if *card.Rows != (client.Counts{Training: 70_000, Holdout: 30_000}) {
		t.Errorf("card: %+v", card)
	}

	one, err := c.Ask(ctx, card.ID, above(15))
	if err != nil {
		t.Fatal(err)
	}
	// Of the whole table .20031 are later than 15 minutes. The interval, at 95% for 20 questions, is for the population;
	// the table is within .004 of that, far less than the interval's half-width.
	if i := one.Answer.Interval; i == nil || *i.Low > 0.20031 || *i.High < 0.20031 || *i.High-*i.Low > 0.1 {
		t.Errorf("interval: %s", one.Answer.Raw)
	}
	batch, err := c.AskBatch(ctx, card.ID, []any{above(1), above(2), above(15)}, false)
	if err != nil || len(batch.Answers) != 3 || !batch.Answers[2].Replayed || batch.Budget.Questions.Left != 17 {
		t.Fatalf("%+v %v", batch, err)
	}
	var many []any
	for i := range 18 {
		many = append(many, above(100+i))
	}
	if _, err := c.AskBatch(ctx, card.ID, many, false); !client.IsBudgetExhausted(err) {
		t.Errorf("18 questions of 17: %v", err)
	}
	partial, err := c.AskBatch(ctx, card.ID, many, true)
	if err != nil || partial.Budget.Questions.Left != 0 || partial.Answers[17].NotAsked != "questions-exhausted" || partial.Answers[16].Answer == nil {
		t.Errorf("%+v %v", partial, err)
	}
	_, err = c.Ask(ctx, card.ID, above(99))
	var remaining int64 = -1
	if p := (*client.Problem)(nil); !errors.As(err, &p) || p.Status != 403 || !p.Member("remaining", &remaining) || remaining != 0 {
		t.Errorf("no questions left: %v, remaining %d", err, remaining)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}

	p = startServer(t, dir)
	c = connect(t, p, dir)
	again, err := c.Ask(ctx, card.ID, above(15))
	if err != nil || !again.Replayed || !bytes.Equal(again.Answer.Raw, one.Answer.Raw) {
		t.Errorf("after a restart: %v\n%s\n%s", err, again.Answer.Raw, one.Answer.Raw)
	}
	if _, err := c.Ask(ctx, card.ID, above(99)); !client.IsBudgetExhausted(err) {
		t.Errorf("the budget came back: %v", err)
	}
	n := 0
	for a, err := range c.Answers(ctx, card.ID) {
		if n++; err != nil || a.Answer.Holdout != card.ID {
			t.Fatal(a, err)
		}
	}
	if n != 20 {
		t.Errorf("the history has %d answers", n)
	}

	export := filepath.Join(t.TempDir(), "export.jsonl")
	f, err := os.Create(export)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Ledger(ctx, card.ID, f), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{export, dir} { // the directory while it is served
		out, errs, code := holdoutd(t, "verify", target)
		if code != 0 || !strings.Contains(out, fmt.Sprintf("%s %q: in order", card.ID, card.Name)) || !strings.Contains(out, "20 of 20 questions") {
			t.Errorf("verify %s: %d %s%s", target, code, out, errs)
		}
	}
	contents, err := os.ReadFile(export)
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Replace(contents, []byte(`0.2`), []byte(`0.3`), 1)
	if err := os.WriteFile(export, forged, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := holdoutd(t, "verify", export); code != 1 || !strings.Contains(errs, "corrupt") {
		t.Errorf("a forged export: %d %s%s", code, out, errs)
	}
}

func TestKeyCommand(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	admin := "@" + filepath.Join(dir, "admin.key")
	secret, errs, code := holdoutd(t, "key", "create", "ana", "--url", p.url, "--key", admin)
	if code != 0 || !strings.HasPrefix(secret, "hk_") {
		t.Fatalf("%d %s%s", code, secret, errs)
	}
	out, _, _ := holdoutd(t, "key", "list", "--url", p.url, "--key", admin)
	id := regexp.MustCompile(`key_\S+\s+ana\s+analyst`).FindString(out)
	if id == "" {
		t.Fatalf("not listed: %s", out)
	}
	id, _, _ = strings.Cut(id, " ")
	first := regexp.MustCompile(`(key_\S+)\s+admin\s+admin`).FindStringSubmatch(out)
	if first == nil || !regexp.MustCompile(id+`\s+ana\s+analyst\s+\S+ \S+\s+valid\s+`+first[1]).MatchString(out) || strings.Contains(out, "hk_") {
		t.Errorf("who made it is not said: %s", out)
	}
	if _, errs, code := holdoutd(t, "key", "list", "--url", p.url, "--key", strings.TrimSpace(secret)); code != 1 || !strings.Contains(errs, "admin") {
		t.Errorf("an analyst lists keys: %d %s", code, errs)
	}
	if _, errs, code := holdoutd(t, "key", "revoke", id, "--url", p.url, "--key", admin); code != 0 {
		t.Errorf("revoke: %d %s", code, errs)
	}
	if out, _, _ := holdoutd(t, "key", "list", "--url", p.url, "--key", admin); !strings.Contains(out, "revoked") {
		t.Errorf("not revoked: %s", out)
	}
}

// TestStartErrors: what goes wrong at the start is one sentence and exit code 1.
func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"taken port":   {[]string{"--addr", strings.TrimPrefix(p.url, "http://"), "--data", filepath.Join(dir, "other")}, "is taken"},
		"locked dir":   {[]string{"--addr", "127.0.0.1:0", "--data", dir}, "is in use by another holdoutd"},
		"no directory": {[]string{"--addr", "127.0.0.1:0", "--data", filepath.Join(file, "data")}, "cannot be used"},
		"no address":   {[]string{"--addr", "nonsense", "--data", filepath.Join(dir, "other")}, "cannot listen"},
	} {
		out, errs, code := holdoutd(t, append([]string{"serve", "--any-filesystem"}, c.args...)...)
		lines := strings.Split(strings.TrimSpace(errs), "\n")
		last := lines[len(lines)-1]
		if code != 1 || out != "" || !strings.HasPrefix(last, "holdoutd: ") || !strings.Contains(last, c.says) || strings.Contains(errs, "goroutine") {
			t.Errorf("%s: %d %s%s", name, code, out, errs)
		}
	}
}

// TestShutdownUnderLoad: on SIGTERM every request that was accepted gets its whole answer, and the answer is in the ledger.
func TestShutdownUnderLoad(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	p := startServer(t, dir)
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var received [][]byte
	enough := make(chan struct{})
	var once sync.Once
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for j := 0; ; j++ {
				reply, err := c.Ask(ctx, card.ID, above(1000*i+j))
				if err != nil {
					// Once it stops, connections are refused or closed before a request was taken; never is a reply cut off.
					if strings.Contains(err.Error(), "cannot be read") || errors.As(err, new(*client.Problem)) {
						t.Errorf("a request that was accepted: %v", err)
					}
					return
				}
				mu.Lock()
				received = append(received, reply.Answer.Raw)
				if len(received) == 50 {
					once.Do(func() { close(enough) })
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	clients.Wait()
	reports, err := sqlite.Verify(ctx, filepath.Join(dir, ledgerFile))
	if err != nil || len(reports) != 1 || reports[0].Answers < int64(len(received)) {
		t.Errorf("%d answers were received; the ledger: %+v %v", len(received), reports, err)
	}
}

// TestSecondSignal: whoever does not want to wait for an upload to end signals again.
func TestSecondSignal(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/holdouts?name=x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", strings.TrimSpace(string(key)))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatal(line, err)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	for http.DefaultClient.CloseIdleConnections(); ; { // until it no longer accepts: the first signal has arrived
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			break
		}
		c.Close()
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.wait(t)
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		t.Errorf("the second signal did not end it: %v\n%s", p.cmd.ProcessState, p.stderr)
	}
}

// TestDemo pastes the printed curl lines into a shell.
func TestDemo(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("there is no curl, which the printed lines are for: install it")
	}
	tmp := t.TempDir()
	settings := t.TempDir()
	printed, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	cmd := exec.Command(binary, "demo", "--addr", "127.0.0.1:0", "--log", "json")
	browser, opened := fakeBrowser(t)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "XDG_CONFIG_HOME="+settings, "DISPLAY=:0", browser)
	cmd.Stdout = printed
	p := startProcess(t, cmd) // it listens after it has printed
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 1 {
		t.Errorf("the demo's directory: %v %v", left, err)
	}
	told, err := os.ReadFile(filepath.Join(settings, "holdoutd", "connect.json"))
	var c connection
	if err := errors.Join(err, json.Unmarshal(told, &c)); err != nil || !strings.HasPrefix(c.URL, "http://127.0.0.1:") {
		t.Errorf("where clients find the demo: %s %v", told, err)
	}
	if key, err := os.ReadFile(c.KeyFile); err != nil || !strings.HasPrefix(string(key), "hk_") {
		t.Errorf("the key that clients find: %v", err)
	}
	out, err := os.ReadFile(printed.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^  curl .*$`).FindAllString(string(out), -1)
	if len(lines) != 3 {
		t.Fatalf("%d curl lines:\n%s", len(lines), out)
	}
	for i, want := range []string{`"interval":{`, `"half_width"`, `"left":999`} {
		reply, err := exec.Command("sh", "-c", lines[i]).CombinedOutput()
		if err != nil || !strings.Contains(string(reply), want) {
			t.Errorf("%s\n%s %v", lines[i], reply, err)
		}
	}
	other := regexp.MustCompile(`-d '(\{"type":"mean".*\})'`).FindStringSubmatch(string(out))
	if reply, err := exec.Command("sh", "-c", strings.Replace(lines[0], `{"type":"fraction","of":"delay > 15"}`, other[1], 1)).CombinedOutput(); err != nil || !strings.Contains(string(reply), `"questions":1,"tokens"`) {
		t.Errorf("%s\n%s %v", other[1], reply, err)
	}
	line := regexp.MustCompile(`(?m)^  (holdoutd ask .*)$`).FindStringSubmatch(string(out))
	ask := exec.Command("sh", "-c", line[1])
	ask.Dir, ask.Env = t.TempDir(), []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + settings}
	if reply, err := ask.CombinedOutput(); err != nil || !strings.Contains(string(reply), "at 95% for all 1000 questions") {
		t.Errorf("%s\n%s %v", line[1], reply, err)
	}
	if python := regexp.MustCompile(`(?m)^  import holdoutd\n  ds = holdoutd\.connect\(\)\.holdout\("flights \(demo\)"\)\n  ds\.fraction\("delay > 15"\)$`); !python.Match(out) {
		t.Errorf("no three lines of Python:\n%s", out)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if url, err := os.ReadFile(opened); err == nil {
		t.Errorf("a browser was opened where there is no terminal: %s", url)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("the demo left %v %v", left, err)
	}
	if left, err := os.ReadDir(filepath.Join(settings, "holdoutd")); err != nil || len(left) > 0 {
		t.Errorf("the demo left %v in the user's settings (%v)", left, err)
	}
}

// fakeBrowser is a search path on which xdg-open writes down what it is to open, and the file that it writes.
func fakeBrowser(t *testing.T) (path, opened string) {
	t.Helper()
	dir := t.TempDir()
	opened = filepath.Join(dir, "opened")
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\nprintf %s \"$1\" > "+opened+".part && mv "+opened+".part "+opened+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + dir + ":" + os.Getenv("PATH"), opened
}
