package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServerKeyCommand: what a command prints is the key; what goes wrong with it is said in its own words, and never what it printed. It would notice a start
// that waits for ever, and a key in an error.
func TestServerKeyCommand(t *testing.T) {
	key := strings.Repeat("7e", 32)
	for _, c := range []struct{ command, want, fails string }{
		{"printf %s " + key, key, ""},
		{"printf %s " + key + "; echo no permission >&2; exit 3", "", "exit status 3): no permission"},
		{"true", "", "printed nothing"},
		{"echo waiting for the vault >&2; sleep 60", "", "did not end within 200ms: waiting for the vault"},
		{"no-such-command-anywhere", "", "exit status 127"},
	} {
		limit := time.Minute
		if strings.Contains(c.command, "sleep") {
			limit = 200 * time.Millisecond
		}
		got, err := runKeyCommand(t.Context(), c.command, limit)
		switch {
		case c.fails == "" && (err != nil || got != c.want):
			t.Errorf("%s: %q, %v", c.command, got, err)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), key)):
			t.Errorf("%s: %v, want %q", c.command, err, c.fails)
		}
	}
}

// TestSharedFlagsAreChecked: what cannot be a ledger or a key ends the start with a sentence, which has no password and no key in it.
func TestSharedFlagsAreChecked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := write("server.key", strings.Repeat("7e", 32))
	secret := "hunter2hunter2"
	url := "postgres://service:" + secret + "@127.0.0.1:1/ledger?connect_timeout=1"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"not a URL":         {[]string{"--ledger", "service:" + secret + "@127.0.0.1/x"}, "must be a URL such as"},
		"another database":  {[]string{"--ledger", "mysql://service:" + secret + "@127.0.0.1/x"}, "must be a URL such as"},
		"no such file":      {[]string{"--ledger", "@" + dir + "/none"}, "cannot be read"},
		"two keys":          {[]string{"--server-key", key, "--server-key-command", "true"}, "not from both"},
		"no key":            {[]string{"--ledger", url}, "there is no server key"},
		"a bad key":         {[]string{"--ledger", url, "--server-key", write("bad", secret)}, "not a key of 64"},
		"nobody listens":    {[]string{"--ledger", "@" + write("url", url+"\n"), "--server-key", key}, "service:xxxxx@127.0.0.1:1"},
		"a failing command": {[]string{"--ledger", url, "--server-key-command", "echo denied >&2; false"}, "denied"},
	} {
		args := append([]string{"serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data "+name)}, c.args...)
		_, errs, code := holdoutd(t, args...)
		if code == 0 || !strings.Contains(errs, c.want) || strings.Contains(errs, secret) {
			t.Errorf("%s: code %d: %s", name, code, errs)
		}
	}
}
