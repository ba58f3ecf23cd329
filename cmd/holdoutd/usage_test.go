package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
)

// TestExitCodes: a script can tell a wrong command line (2) from work that failed (1). An unknown experiment once printed the help, with 0.
func TestExitCodes(t *testing.T) {
	empty := t.TempDir()
	for args, want := range map[string]int{
		"version":                              exitDone,
		"--version":                            exitDone,
		"experiment":                           exitDone,
		"experiment --help":                    exitDone,
		"key --help":                           exitDone,
		"experiment list":                      exitDone,
		"verify " + empty:                      exitFailed,
		"verify nosuch":                        exitFailed,
		"key list --key @nosuch":               exitFailed,
		"nosuch":                               exitMisused,
		"--nosuch":                             exitMisused,
		"experiment nosuch":                    exitMisused,
		"experiment nosuch --out x":            exitMisused,
		"experiment --nosuch":                  exitMisused,
		"experiment freedman --nosuch":         exitMisused,
		"experiment freedman --seed x":         exitMisused,
		"experiment freedman --repetitions=-1": exitMisused,
		"experiment all":                       exitMisused,
		"key nosuch":                           exitMisused,
		"key revoke":                           exitMisused,
		"verify":                               exitMisused,
		"verify a b":                           exitMisused,
		"plan":                                 exitMisused,
		"plan --n 1000 --questions 5 --confidence 2": exitMisused,
		"serve --log xml":                        exitMisused,
		"serve --addr 0.0.0.0:0 --data " + empty: exitMisused,
		"certify":                                exitMisused,
	} {
		stdout, stderr, code := holdoutd(t, strings.Fields(args)...)
		if code != want || (code != 0) != (stderr != "") || code == exitMisused && stdout != "" {
			t.Errorf("holdoutd %s: exit code %d, want %d\n%s%s", args, code, want, stdout, stderr)
		}
		if strings.Count(stderr, "\n") > 1 {
			t.Errorf("holdoutd %s: more than a line of error: %s", args, stderr)
		}
	}
}

// TestKeysByName: a key can be revoked by the name that it was made with, and not by one that two have.
func TestKeysByName(t *testing.T) {
	keys := []client.Key{{ID: "key_1", Name: "bob"}, {ID: "key_2", Name: "alice"}, {ID: "key_3", Name: "alice"}, {ID: "key_4", Name: "carol", Revoked: true}, {ID: "key_5", Name: "carol"}}
	for word, want := range map[string]string{"bob": "key_1", "key_4": "key_4", "carol": "key_5", "key_2": "key_2"} {
		if id, err := keyNamed(keys, word); id != want || err != nil {
			t.Errorf("%s: %q, %v; want %s", word, id, err, want)
		}
	}
	for word, want := range map[string]string{"alice": "key_2, key_3", "bbo": "did you mean bob?", "zebra": "holdoutd key list"} {
		if id, err := keyNamed(keys, word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want an error that says %q", word, id, err, want)
		}
	}
}

// TestKeyJourney makes a key on a running server, and revokes it by its name; the secret alone is on standard output.
func TestKeyJourney(t *testing.T) {
	dir := t.TempDir()
	server := startServer(t, dir)
	admin, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDOUTD_KEY", strings.TrimSpace(string(admin)))
	secret, says, code := holdoutd(t, "key", "create", "bob", "--url", server.url)
	if code != 0 || !strings.HasPrefix(secret, "hk_") || strings.Count(secret, "\n") != 1 || !strings.Contains(says, "key_") {
		t.Fatalf("exit code %d: %q, %q", code, secret, says)
	}
	if _, says, code := holdoutd(t, "key", "revoke", "bobb", "--url", server.url); code != exitFailed || !strings.Contains(says, "did you mean bob?") {
		t.Errorf("exit code %d: %q", code, says)
	}
	if _, says, code := holdoutd(t, "key", "revoke", "bob", "--url", server.url); code != 0 {
		t.Fatalf("exit code %d: %q", code, says)
	}
	if list, _, _ := holdoutd(t, "key", "list", "--url", server.url); !strings.Contains(list, "revoked") {
		t.Errorf("the key is valid still:\n%s", list)
	}
}
