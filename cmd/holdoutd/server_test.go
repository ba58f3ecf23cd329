package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/gate"
)

// TestCodes: each end of the program has its code. It notices a gate whose verdict a pipeline does not see.
func TestCodes(t *testing.T) {
	problem := func(code string) error {
		return plain(fmt.Errorf("asked: %w", &client.Problem{Code: code, Detail: "x"}))
	}
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{misuse("x"), 2},
		{verdict{gate.NotShown, "x"}, 3},
		{verdict{gate.Worse, "x"}, 4},
		{fmt.Errorf("y: %w", verdict{gate.Worse, "x"}), 4},
		{problem("budget-exhausted"), 5},
		{problem("max-questions"), 6},
		{problem("unavailable"), 7}, {problem("busy"), 7}, {problem("timeout"), 7}, {problem("rate-limited"), 7},
		{problem("invalid"), 2}, {problem("malformed"), 2},
		{problem("unauthorized"), 1}, {problem("not-found"), 1}, {problem("holdout-damaged"), 1}, {problem("internal"), 1}, {problem(""), 1},
		{plain(&url.Error{Op: "Get", URL: "http://127.0.0.1:1/v1", Err: syscall.ECONNREFUSED}), 7},
		{interrupted{errors.New("x")}, 130},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v: %d, want %d", c.err, got, c.code)
		}
	}
	if text := plain(&client.Problem{Code: "invalid", Detail: "a\x1b[2Jb"}).Error(); strings.Contains(text, "\x1b") {
		t.Errorf("a server's words move the terminal: %q", text)
	}
	for _, code := range []int{exitDone, exitFailed, exitMisused, exitExhausted, exitTooDear, exitUnavailable, exitInterrupted} {
		if code == gate.ExitNotShown || code == gate.ExitWorse {
			t.Errorf("%d is the code of a verdict, and of something else", code)
		}
	}
}

// TestFind: flags before the environment before files, in the order of the Python client. It notices a key that is sent to a server that it
// was not named for.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("holdoutd-data/connect.json", `{"url":"http://127.0.0.1:1","key_file":"admin.key"}`)
	write("holdoutd-data/admin.key", "hk_data\n")
	write("user/holdoutd/connect.json", `{"url":"http://user","key_file":"`+filepath.Join(dir, "user", "k")+`"}`)
	write("user/k", "hk_user")
	write("named.json", `{"url":"http://named","key_file":"user/k"}`)
	write("nokey.json", `{"url":"http://nokey"}`)
	write("nourl.json", `{"key_file":"user/k"}`)
	write("broken.json", `{`)
	write("empty", "\n")
	for _, c := range []struct {
		flags       serverFlags
		environment string
		without     string // a file that is not there
		want        string // or, from a bang on, a part of the error
	}{
		{serverFlags{}, "", "", "http://127.0.0.1:1 hk_data"},
		{serverFlags{}, "", "holdoutd-data", "http://user hk_user"},
		{serverFlags{key: "hk_a"}, "", "", "http://127.0.0.1:1 hk_a"},
		{serverFlags{url: "http://a", key: "hk_a"}, "HOLDOUTD_URL=http://b HOLDOUTD_KEY=hk_b", "", "http://a hk_a"},
		{serverFlags{}, "HOLDOUTD_URL=http://b HOLDOUTD_KEY=hk_b", "", "http://b hk_b"},
		{serverFlags{url: "http://a"}, "HOLDOUTD_KEY=@user/k", "", "http://a hk_user"},
		{serverFlags{}, "HOLDOUTD_CONNECT=named.json", "", "http://named hk_user"},
		{serverFlags{key: "@user/k"}, "HOLDOUTD_CONNECT=nokey.json", "", "http://nokey hk_user"},
		{serverFlags{key: "hk_a"}, "HOME=none XDG_CONFIG_HOME=none", "holdoutd-data", "http://127.0.0.1:8080 hk_a"},
		{serverFlags{url: "http://a"}, "", "", "!a key is needed for http://a"},
		{serverFlags{}, "HOLDOUTD_URL=http://b", "", "!a key is needed for http://b"},
		{serverFlags{}, "HOLDOUTD_CONNECT=nosuch.json", "", "!nosuch.json does not say where a server is"},
		{serverFlags{}, "HOLDOUTD_CONNECT=broken.json", "", "!broken.json does not say where a server is"},
		{serverFlags{}, "HOLDOUTD_CONNECT=nourl.json", "", "!names no url"},
		{serverFlags{}, "HOLDOUTD_CONNECT=nokey.json", "", "!names no key_file"},
		{serverFlags{key: "@empty"}, "", "", "!empty is empty"},
		{serverFlags{key: "@nosuch"}, "", "", "!cannot read the key"},
		{serverFlags{}, "HOME=none XDG_CONFIG_HOME=none", "holdoutd-data", "!a key is needed: --key"},
	} {
		t.Run("", func(t *testing.T) {
			for _, name := range []string{urlVariable, keyVariable, connectVariable} {
				t.Setenv(name, "")
			}
			t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "user"))
			for _, set := range strings.Fields(c.environment) {
				name, value, _ := strings.Cut(set, "=")
				t.Setenv(name, value)
			}
			if c.without != "" {
				if err := os.Rename(c.without, "away"); err != nil {
					t.Fatal(err)
				}
				defer os.Rename("away", c.without)
			}
			server, key, err := c.flags.find()
			if part, wrong := strings.CutPrefix(c.want, "!"); wrong {
				if err == nil || !strings.Contains(err.Error(), part) || key != "" {
					t.Errorf("%+v %s: %s %s %v, not an error with %q", c.flags, c.environment, server, key, err, part)
				}
			} else if err != nil || server+" "+key != c.want {
				t.Errorf("%+v %s: %s %s %v, not %s", c.flags, c.environment, server, key, err, c.want)
			}
		})
	}
}

// TestFindNearby: the connect.json of the working directory was named by nobody, and may be an attacker's, who wrote the repository that was
// cloned. It notices a key, of the environment or of a file elsewhere, that such a file sends away.
func TestFindNearby(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "none")
	for _, name := range []string{urlVariable, keyVariable, connectVariable} {
		t.Setenv(name, "")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll("holdoutd-data", 0o700))
	secret := filepath.Join(t.TempDir(), "secret")
	must(os.WriteFile(secret, []byte("hk_secret"), 0o600))
	must(os.WriteFile("secret", []byte("hk_secret"), 0o600))
	must(os.WriteFile("holdoutd-data/admin.key", []byte("hk_data"), 0o600))
	must(os.Symlink(secret, "holdoutd-data/link"))
	own := "http://127.0.0.1:8080"
	for _, c := range []struct {
		url, file string
		key       string // of the environment
		want      string // the key; "" if it is refused
	}{
		{own, "admin.key", "", "hk_data"},
		{"https://localhost:1", "admin.key", "", "hk_data"},
		{"http://[::1]:1", "admin.key", "hk_e", "hk_e"},
		{own, "", "hk_e", "hk_e"},
		{"http://203.0.113.7", "admin.key", "", ""}, // an address of nobody (RFC 5737)
		{"http://evil.example", "admin.key", "", ""},
		{"http://evil.example", "", "hk_e", ""},
		{"http://127.0.0.1@evil.example", "", "hk_e", ""},
		{"http://127.0.0.1.evil.example", "", "hk_e", ""},
		{"http://localhost.evil.example", "", "hk_e", ""},
		{"//evil.example", "", "hk_e", ""},
		{own, secret, "", ""},
		{own, "../secret", "", ""},
		{own, "link", "", ""},
		{own, "nosuch", "", ""},
	} {
		t.Setenv(keyVariable, c.key)
		must(os.WriteFile("holdoutd-data/connect.json", fmt.Appendf(nil, `{"url":%q,"key_file":%q}`, c.url, c.file), 0o600))
		server, key, err := serverFlags{}.find()
		switch {
		case c.want == "" && (err == nil || key != "" || exitCode(err) != exitMisused):
			t.Errorf("%s %s: %s to %s, %v", c.url, c.file, key, server, err)
		case c.want != "" && (err != nil || key != c.want || server != c.url):
			t.Errorf("%s %s: %s to %s, %v; not %s", c.url, c.file, key, server, err, c.want)
		}
	}
	// Who names the file trusts it.
	must(os.WriteFile("holdoutd-data/connect.json", []byte(`{"url":"http://evil.example","key_file":"link"}`), 0o600))
	t.Setenv(keyVariable, "")
	t.Setenv(connectVariable, "holdoutd-data/connect.json")
	if server, key, err := (serverFlags{}).find(); err != nil || server+" "+key != "http://evil.example hk_secret" {
		t.Errorf("%s %s %v", server, key, err)
	}
}
