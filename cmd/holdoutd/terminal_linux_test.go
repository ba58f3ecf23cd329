package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/internal/await"
)

// TestTerminal runs the program on a terminal of 100 characters: an upload is drawn while it goes on, and tables are cut to the width.
func TestTerminal(t *testing.T) {
	s := startStation(t, client.Settings{})
	s.flights(t)
	text := s.onTerminal(t, "upload", "flights.parquet", "--name", "flights", "--questions", "30")
	if !strings.Contains(text, "uploading 100%") && !strings.Contains(text, "uploaded;") || !strings.Contains(text, "flights (ho_") {
		t.Errorf("%q", text)
	}
	long := "delay > 15 && distance > 100 && distance < 5000 && origin != 'SFO'"
	if _, stderr, code := s.call(t, nil, "ask", "fraction", long); code != 0 {
		t.Fatal(stderr)
	}
	for line := range strings.Lines(s.onTerminal(t, "history")) {
		if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > 100 {
			t.Errorf("%d characters: %q", n, line)
		}
	}
	if stdout, _, _ := s.call(t, nil, "history"); !strings.Contains(stdout, `origin != "SFO"`) && !strings.Contains(stdout, "origin != 'SFO'") {
		t.Errorf("cut in a pipe: %s", stdout)
	}
}

// TestUploadAsksForTheUnit: a table in which customers come again is made a holdout once a person on the terminal has said what one observation is. Without a terminal, and
// with an answer that is none, nothing is made.
func TestUploadAsksForTheUnit(t *testing.T) {
	s := startStation(t, client.Settings{})
	customer := dataset.Column{Field: dataset.Field{Name: "customer_id", Kind: dataset.Number, Source: "INT64"}}
	for i := range 3000 {
		customer.Numbers = append(customer.Numbers, float64(i*7919%3000/3))
	}
	table, err := dataset.FromColumns(customer)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := ingest.Export(&file, table); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "visits.parquet"), file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := s.call(t, nil, "upload", "visits.parquet", "--name", "visits")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "Say --unit customer_id (") || !strings.Contains(stderr, "--unit row (3000 units") {
		t.Errorf("without a terminal: %d %q %q", code, stdout, stderr)
	}
	for _, said := range []string{"3\n", "7 customers\n", "\x04"} {
		if text := s.typing(t, 2, said, "upload", "visits.parquet", "--name", "visits"); !strings.Contains(text, "Which? 1 to 2") || !strings.Contains(text, "is none of them") {
			t.Errorf("%q: %s", said, text)
		}
	}
	text := s.typing(t, 0, "1\n", "upload", "visits.parquet", "--name", "visits")
	if !strings.Contains(text, "300 held out, 700 to train on; a unit is customer_id") {
		t.Errorf("the first choice: %s", text)
	}
	text = s.typing(t, 0, "row\n", "upload", "visits.parquet", "--name", "visits")
	if !strings.Contains(text, "900 held out, 2,100 to train on; a unit is row") || !strings.Contains(text, "rows of one customer_id are on both sides") {
		t.Errorf("rows: %s", text)
	}
}

// terminal opens one of 100 characters: what is written to slave is read from master.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// onTerminal is what the program writes on a terminal of 100 characters.
func (s *station) onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	return s.typing(t, 0, "", args...)
}

// typing is what stands on a terminal of 100 characters where somebody types a text. The program must end with the code.
func (s *station) typing(t *testing.T, code int, typed string, args ...string) string {
	t.Helper()
	master, slave := terminal(t)
	defer master.Close()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Env = s.dir, []string{"HOME=" + s.dir}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if _, err := master.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	var b bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&b, master) // ends with an error when the program has
	}()
	if cmd.Wait(); cmd.ProcessState.ExitCode() != code {
		t.Errorf("holdoutd %v on a terminal: %v", args, cmd.ProcessState)
	}
	select {
	case <-read:
	case <-time.After(await.Patience):
		t.Fatal("the terminal does not end")
	}
	return b.String()
}

// TestServeOnATerminal: clients of a person's other folders find the server that this person started, until it ends; nobody is told of one that a machine started.
func TestServeOnATerminal(t *testing.T) {
	for _, person := range []bool{true, false} {
		settings, data := t.TempDir(), t.TempDir()
		cmd := exec.Command(binary, "serve", "--any-filesystem", "--data", data, "--addr", "127.0.0.1:0", "--log", "json")
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+settings)
		if person {
			master, slave := terminal(t)
			cmd.Stdout = slave
			go io.Copy(io.Discard, master)
		}
		p := startProcess(t, cmd) // it listens after it has told
		path := filepath.Join(settings, "holdoutd", "connect.json")
		told, err := os.ReadFile(path)
		if person != (err == nil) {
			t.Fatalf("started by a person: %t; %v", person, err)
		}
		var c connection
		if person && (json.Unmarshal(told, &c) != nil || c != connection{URL: p.url, KeyFile: filepath.Join(data, "admin.key")}) {
			t.Errorf("told %s", told)
		}
		p.stop(t)
		if _, err := os.Stat(path); err == nil {
			t.Error("told of a server that has ended")
		}
	}
}

// TestDemoOpensTheDashboard: on a terminal, where there is a browser, and not with --browser=false. The key is not in the address.
func TestDemoOpensTheDashboard(t *testing.T) {
	for _, browses := range []bool{true, false} {
		path, opened := fakeBrowser(t)
		master, slave := terminal(t)
		cmd := exec.Command(binary, "demo", "--addr", "127.0.0.1:0", "--log", "json", fmt.Sprintf("--browser=%t", browses))
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir(), "DISPLAY=:0", path)
		cmd.Stdout = slave
		go io.Copy(io.Discard, master)
		p := startProcess(t, cmd) // it listens after it has opened the browser
		if browses {
			await.Until(t, "the browser is opened", func() bool { url, err := os.ReadFile(opened); return err == nil && len(url) > 0 })
		}
		p.stop(t)
		url, _ := os.ReadFile(opened)
		if want := map[bool]string{true: p.url + "/", false: ""}[browses]; string(url) != want {
			t.Errorf("--browser=%t opened %q, not %q", browses, url, want)
		}
		slave.Close()
		master.Close()
	}
}
