package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/internal/await"
	"github.com/holdoutd/holdoutd/internal/seed"
	testprogram "github.com/holdoutd/holdoutd/tests/program"
)

// binary is the real program, built once: what is tested here is what is shipped, but for where its secrets come from.
var binary string

func TestMain(m *testing.M) {
	if disk := os.Getenv("HOLDOUTD_DISK"); disk != "" { // servers are killed while they wait for it
		os.Setenv("TMPDIR", disk)
	}
	dir, err := os.MkdirTemp("", "holdoutd-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "holdoutd")
	code := 1
	if err := testprogram.Build(binary, "-buildvcs=false", "-ldflags", "-X main.release=v0.0.0-test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	pgtest.Stop()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestScript runs the command lines of testdata/script.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary)+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv(seed.Variable, os.Getenv(seed.Variable))
			return nil
		},
	})
}

// A process is a running server.
type process struct {
	cmd    *exec.Cmd
	url    string
	stderr *buffer

	listening chan string   // its address, once
	ended     chan struct{} // closed when the process has ended and its output is read
}

// buffer keeps what a process writes, for when a test fails.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) write(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.WriteString(line + "\n")
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startServer starts serve on a data directory and waits for its listening line.
func startServer(t *testing.T, dir string, flags ...string) *process {
	t.Helper()
	args := append([]string{"serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir, "--log", "json"}, flags...)
	return startProcess(t, exec.Command(binary, args...))
}

func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	return beginProcess(t, cmd).await(t)
}

// beginProcess starts a server, and does not wait until it listens.
func beginProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, stderr: &buffer{}, listening: make(chan string, 1), ended: make(chan struct{})}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(pipe)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.stderr.write(lines.Text())
			var line struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				p.listening <- line.Addr
			}
		}
		io.Copy(io.Discard, pipe)
		cmd.Wait()
	}()
	return p
}

// await returns when the server listens.
func (p *process) await(t *testing.T) *process {
	t.Helper()
	select {
	case addr := <-p.listening:
		p.url = "http://" + addr
	case <-p.ended:
		t.Fatalf("the server ended: %v\n%s", p.cmd.ProcessState, p.stderr)
	case <-time.After(await.Patience):
		t.Fatalf("the server does not listen\n%s", p.stderr)
	}
	return p
}

// kill ends the process as a power failure would.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// stop asks the process to end and returns its exit code.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(await.Patience):
		t.Fatalf("the server does not end\n%s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// connect makes a client with the admin key of the data directory. It sends nothing twice by itself: the tests want to
// see each failure.
func connect(t *testing.T, p *process, dir string) *client.Client {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(p.url, strings.TrimSpace(string(key)), client.WithRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// holdoutd runs the program to its end.
func holdoutd(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("holdoutd %s did not end within %v:\n%s%s", strings.Join(args, " "), await.Patience, &out, &errs)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func above(minutes int) map[string]any {
	return map[string]any{"type": "fraction", "of": fmt.Sprintf("delay > %d", minutes)}
}

// TestSeeded: two servers of one seed hold out the same rows, keep them in the same order and answer with the same noise; one of another seed does not. So no
// test of a server is right today and wrong tomorrow. It notices a secret that is drawn elsewhere than internal/seed knows.
func TestSeeded(t *testing.T) {
	said := func(number string) (all string) {
		t.Setenv(seed.Variable, number)
		for _, set := range []client.Settings{{Name: "noise", Mechanism: "gaussian", Questions: 100}, {Name: "order", Mechanism: "split", Questions: 12}} {
			dir := t.TempDir()
			c := connect(t, startServer(t, dir), dir)
			set.Holdout = 0.5
			card, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), set)
			if err != nil {
				t.Fatal(err)
			}
			for minutes := range 3 {
				reply, err := c.Ask(t.Context(), card.ID, above(10*minutes))
				if err != nil {
					t.Fatal(err)
				}
				all += fmt.Sprintf("%v ", *reply.Answer.Value)
			}
		}
		return all
	}
	first, again, other := said("1"), said("1"), said("2")
	if first != again || first == other {
		t.Errorf("the seed 1: %s\nand again: %s\nthe seed 2: %s", first, again, other)
	}
}
