package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/internal/await"
)

const (
	testKey    = "8f1c0e5d7a3b49268f1c0e5d7a3b49268f1c0e5d7a3b49268f1c0e5d7a3b4926"
	anotherKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

// keyService is a script that says a key as a client of a key service does, and the command line for it: its path and its argument have spaces and what a shell would read.
func keyService(t *testing.T, key string) (command string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "key service $(id)")
	script, secret := filepath.Join(dir, "say key"), filepath.Join(dir, "a'key; exit 7")
	for name, text := range map[string]string{script: "#!/bin/sh\necho \"asked for $# thing: $1\" >&2\ncat \"$1\"\n", secret: key + "\n"} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(name, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return strconv.Quote(script) + ` "` + secret + `"`
}

// nowhere fails where a file of the directory, or what was said, has the key, in digits or bytes.
func nowhere(t *testing.T, dir, key string, said ...string) {
	t.Helper()
	raw, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	has := func(text []byte) bool { return bytes.Contains(text, []byte(key)) || bytes.Contains(text, raw) }
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		if has(text) {
			t.Errorf("the key is in %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range said {
		if has([]byte(text)) {
			t.Errorf("the key is in what was said:\n%s", text)
		}
	}
}

// TestKeyFromCommand: a server whose key a command says answers as every other, after a restart too, and its data directory never has the key. Without the command it only replays, with another key it does not start. verify opens
// sealed values by the command, a backup has no key, a restore leaves it where it is, and a lost ledger is noticed as it is beside a server.key.
func TestKeyFromCommand(t *testing.T) {
	ctx, dir, command := t.Context(), t.TempDir(), keyService(t, testKey)
	p := startServer(t, dir, "--key-command", command)
	if environment, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/environ"); err == nil {
		nowhere(t, dir, testKey, string(environment))
	}
	p.stop(t)
	if _, err := os.Stat(filepath.Join(dir, "server.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory has a server.key: %v", err)
	}
	ledger := filepath.Join(dir, "ledger.db")
	if err := os.Rename(ledger, ledger+".away"); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir, "--key-command", command); code != 1 || !strings.Contains(errs, "ledger.db: is missing") {
		t.Errorf("without its ledger: %d %s", code, errs)
	}
	if err := os.Rename(ledger+".away", ledger); err != nil {
		t.Fatal(err)
	}

	p = startServer(t, dir, "--key-command", command)
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights", Mechanism: "gaussian", Questions: 100})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Ask(ctx, card.ID, above(15))
	if err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	nowhere(t, dir, testKey, p.stderr.String())

	replays := func(p *process, dir string) *client.Client {
		t.Helper()
		c := connect(t, p, dir)
		again, err := c.Ask(ctx, card.ID, above(15))
		if err != nil || !again.Replayed || !bytes.Equal(again.Answer.Raw, first.Answer.Raw) {
			t.Errorf("the answer again: %v %s, want %s", err, again.Answer.Raw, first.Answer.Raw)
		}
		return c
	}
	p = startServer(t, dir)
	_, err = replays(p, dir).Ask(ctx, card.ID, above(16))
	if r := refusal(t, "a new question without the key", err); r.Status != 503 {
		t.Errorf("the refusal is %v", r)
	}
	p.stop(t)
	if !strings.Contains(p.stderr.String(), "start with --key-command") {
		t.Errorf("the log does not say what to do: %s", p.stderr)
	}
	p = startServer(t, dir, "--key-command", command)
	if _, err := replays(p, dir).Ask(ctx, card.ID, above(16)); err != nil {
		t.Error(err)
	}
	p.stop(t)

	wrong := keyService(t, anotherKey)
	if out, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir, "--key-command", wrong); code != 1 || !strings.Contains(errs, "is not the one of this data directory") {
		t.Errorf("with another key: %d %s%s", code, out, errs)
	} else {
		nowhere(t, dir, anotherKey, out, errs)
	}
	if out, _ := done(t, "verify", dir); !strings.Contains(out, "sealed values not checked") {
		t.Errorf("verify without the key: %s", out)
	}
	if out, errs := done(t, "verify", dir, "--key-command", command); !strings.Contains(out, "sealed values in order") {
		t.Errorf("verify: %s%s", out, errs)
	}
	if out, errs, code := holdoutd(t, "verify", dir, "--key-command", wrong); code != 1 || !strings.Contains(errs, "is not the one of this data directory") {
		t.Errorf("verify with another key: %d %s%s", code, out, errs)
	}

	safe, file := newSafe(t), filepath.Join(t.TempDir(), "the.backup")
	if _, errs, code := holdoutd(t, "backup", "--data", dir, "--to", file, "--recipient", safe.recipient, "--with-keys"); code != 1 || !strings.Contains(errs, "leave --with-keys out") {
		t.Errorf("backup --with-keys: %d %s", code, errs)
	}
	done(t, "backup", "--data", dir, "--to", file, "--recipient", safe.recipient)
	to := filepath.Join(t.TempDir(), "restored")
	if _, errs, code := holdoutd(t, "restore", "--from", file, "--identity", safe.identity, "--data", to, "--key-command", wrong); code != 1 || !strings.Contains(errs, "is not the one of this data directory") {
		t.Errorf("restore with another key: %d %s", code, errs)
	}
	out, _ := done(t, "restore", "--from", file, "--identity", safe.identity, "--data", to, "--key-command", command)
	if !strings.Contains(out, "sealed values in order") {
		t.Errorf("restore: %s", out)
	}
	nowhere(t, to, testKey, out)
	done(t, "restore", "--data", to, "--nothing-lost", "--keep-keys")
	// Its admin.key was in no backup: a new one is not made, since the ledger has keys. So the first one is used.
	if err := os.Rename(filepath.Join(dir, "admin.key"), filepath.Join(to, "admin.key")); err != nil {
		t.Fatal(err)
	}
	p = startServer(t, to, "--key-command", command)
	if _, err := replays(p, to).Ask(ctx, card.ID, above(17)); err != nil {
		t.Error(err)
	}
	p.stop(t)
}

// TestKeyMoves: a directory that had its own server.key goes on with the same key from a command. Beside the file it warns, and beside another file it does not start, and verifies nothing. The file may come back; another
// one does not.
func TestKeyMoves(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	p.stop(t)
	file := filepath.Join(dir, "server.key")
	own := strings.TrimSpace(readFile(t, file))
	p = startServer(t, dir, "--key-command", keyService(t, own))
	p.stop(t)
	if !strings.Contains(p.stderr.String(), "server.key is in the data directory, too") {
		t.Errorf("the log: %s", p.stderr)
	}
	if _, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir, "--key-command", keyService(t, testKey)); code != 1 || !strings.Contains(errs, "is not the one of this data directory") {
		t.Errorf("two keys: %d %s", code, errs)
	}
	if _, errs, code := holdoutd(t, "verify", dir, "--key-command", keyService(t, testKey)); code != 1 || !strings.Contains(errs, "is not the one of this data directory") {
		t.Errorf("verify with two keys: %d %s", code, errs)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p = startServer(t, dir, "--key-command", keyService(t, own))
	c := connect(t, p, dir)
	if _, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Mechanism: "gaussian", Questions: 10}); err != nil {
		t.Error(err)
	}
	p.stop(t)
	nowhere(t, dir, own, p.stderr.String())

	sign := readFile(t, file+".elsewhere")
	safe, backup, to := newSafe(t), filepath.Join(t.TempDir(), "the.backup"), filepath.Join(t.TempDir(), "restored")
	done(t, "backup", "--data", dir, "--to", backup, "--recipient", safe.recipient)
	done(t, "restore", "--from", backup, "--identity", safe.identity, "--data", to)
	if restored := readFile(t, filepath.Join(to, "server.key.elsewhere")); restored != sign {
		t.Errorf("the restored sign is %q, want %q", restored, sign)
	}
	put := func(key string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(testKey)
	if _, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir); code != 1 || !strings.Contains(errs, "server.key is not the one of this data directory") {
		t.Errorf("another key in the file: %d %s", code, errs)
	}
	put(own)
	p = startServer(t, dir)
	p.stop(t)
	if readFile(t, file+".elsewhere") != sign {
		t.Error("the sign is another one")
	}
}

// TestKeyThatAScriptSays: a script that fails, and shows its lines as it runs, has said the key on standard error; what is shown of that has no long run of hex digits.
func TestKeyThatAScriptSays(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nset -x\necho "+testKey+"\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	_, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", data, "--key-command", script)
	if code != 1 || !strings.Contains(errs, "exit status 3") || !strings.Contains(errs, "hex digits left out") {
		t.Errorf("%d %s", code, errs)
	}
	if strings.Contains(errs, testKey) {
		t.Errorf("the key is shown: %s", errs)
	}
}

// TestKeyOfALostLedger: where the ledger is lost and that is accepted, a directory whose key is kept elsewhere takes no other key, and makes none: its tables would not be recognised, and have a fresh budget.
func TestKeyOfALostLedger(t *testing.T) {
	dir := t.TempDir()
	serve := func(more ...string) *process { return startServer(t, dir, more...) }
	right := []string{"--key-command", keyService(t, testKey)}
	p := serve(right...)
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Mechanism: "gaussian", Questions: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(t.Context(), card.ID, above(17)); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	for _, name := range []string{"ledger.db", "ledger.db-wal", "ledger.db-shm"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	lost := []string{"serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir, "--accept-lost-ledger"}
	for want, flags := range map[string][]string{"start with --key-command": nil, "is not the one of this data directory": {"--key-command", keyService(t, strings.Repeat("ab", 32))}} {
		if _, errs, code := holdoutd(t, append(lost, flags...)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d %s", flags, code, errs)
		}
		if _, err := os.Stat(filepath.Join(dir, "server.key")); err == nil {
			t.Fatal("another key was made")
		}
	}
	p = serve(append(right, "--accept-lost-ledger")...)
	_, err = connect(t, p, dir).CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "again", Mechanism: "gaussian", Questions: 10})
	if problem := (*client.Problem)(nil); !errors.As(err, &problem) {
		t.Errorf("the table of a holdout that the ledger lost is taken again: %v", err)
	}
}

// TestKeyFromCommandShared: servers that share a ledger take the key from a command, also both at their first start.
func TestKeyFromCommandShared(t *testing.T) {
	dir, command := t.TempDir(), keyService(t, testKey)
	address := pgtest.Shared(t).New(t).Address()
	var servers []*process
	for range 2 {
		servers = append(servers, beginProcess(t, exec.Command(binary, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--log", "json", "--data", dir, "--ledger", address, "--key-command", command)))
	}
	one, two := connect(t, servers[0].await(t), dir), connect(t, servers[1].await(t), dir)
	card, err := one.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Mechanism: "gaussian", Questions: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Ask(t.Context(), card.ID, above(15)); err != nil {
		t.Error(err)
	}
	if out, _ := done(t, "verify", dir, "--ledger", address, "--key-command", command); !strings.Contains(out, "sealed values in order") {
		t.Errorf("verify: %s", out)
	}
	nowhere(t, dir, testKey)
}

// TestKeyFromCommandFails: a command that fails, says nothing, or says what is no key ends the start with its reason, and what it wrote to its standard output is not shown.
func TestKeyFromCommandFails(t *testing.T) {
	script := func(text string) string {
		name := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		command, want string
		code          int
	}{
		{script("echo " + testKey + "; echo 'permission denied for role' >&2; exit 3"), "exit status 3: permission denied for role", 1},
		{script("echo " + testKey + "f"), "has 64 hex digits, and this has 65 characters", 1},
		{script("echo " + strings.Replace(testKey, "8", "g", 1)), "other characters among them", 1},
		{script("true"), "and this has 0 characters", 1},
		{script("cat /dev/zero | head -c 100000 | tr '\\0' 8"), "and this has 4096 characters", 1},
		{script("echo " + strings.Repeat("0", 64)), "it is all zeros", 1},
		{filepath.Join(t.TempDir(), "missing"), "cannot be run", 1},
		{"sh -c 'echo half", "a quote ' is not closed", 2},
		{" ", "names no program", 2},
	} {
		dir := t.TempDir()
		out, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir, "--key-command", c.command)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: %d %s, want %q", c.command, code, errs, c.want)
		}
		nowhere(t, dir, testKey, out, errs)
		if strings.Contains(errs, "8888") || strings.Contains(errs, testKey[8:40]) {
			t.Errorf("%s: what it wrote is shown: %s", c.command, errs)
		}
	}
	for _, args := range [][]string{
		{"verify", "-", "--key-command", "true"}, {"verify", binary, "--key-command", "true"}, {"verify", "--backup", binary, "--identity", "x", "--key-command", "true"},
		{"restore", "--data", t.TempDir(), "--from", binary, "--server-key", "x", "--key-command", "true"},
	} {
		if _, errs, code := holdoutd(t, args...); code != 2 {
			t.Errorf("holdoutd %v: %d %s", args, code, errs)
		}
	}
}

// TestKeyFromCommandInTime: a command that does not end is ended, with what it has started.
func TestKeyFromCommandInTime(t *testing.T) {
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	begin := time.Now()
	_, err := keyOutput(t.Context(), []string{"sh", "-c", "sleep 1000 & echo $! > " + started + ".new; mv " + started + ".new " + started + "; echo waiting for the key service >&2; wait"}, 2*time.Second)
	if err == nil || err.Error() != "did not end within 2s: waiting for the key service" {
		t.Errorf("the error is %v, after %v", err, time.Since(begin))
	}
	child, err := strconv.Atoi(strings.TrimSpace(readFile(t, started)))
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the child's end", func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
		return syscall.Kill(child, 0) != nil || err == nil && strings.Contains(string(status), ") Z ") // who reaps it is not here
	})
}

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                                nil,
		"a":                               {"a"},
		"  a \t b\n":                      {"a", "b"},
		`a 'b c' "d e"`:                   {"a", "b c", "d e"},
		`a'b 'c"d "e`:                     {"ab cd e"},
		`'' ""`:                           {"", ""},
		`a\ b \'c "d\"e" 'f\g'`:           {"a b", "'c", `d"e`, `f\g`},
		`$HOME ~ $(id) | > * ; # "$HOME"`: {"$HOME", "~", "$(id)", "|", ">", "*", ";", "#", "$HOME"},
		"schlüssel 'größe ü'":             {"schlüssel", "größe ü"},
	} {
		if got, err := words(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("words(%q) = %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`a "b`, `a 'b`, `a\`, `"a\"`} {
		if got, err := words(line); err == nil {
			t.Errorf("words(%q) = %q", line, got)
		}
	}
}
