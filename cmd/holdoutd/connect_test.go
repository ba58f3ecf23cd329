package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestURLOf notices an address that no client can use as it is.
func TestURLOf(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "0.0.0.0:80": "http://127.0.0.1:80", "[::]:80": "http://127.0.0.1:80",
		"[::1]:80": "http://[::1]:80", "192.0.2.7:9": "http://192.0.2.7:9",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := urlOf(tcp, false); got != want {
			t.Errorf("%s: %s, not %s", addr, got, want)
		}
	}
	if got := urlOf(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, true); got != "https://127.0.0.1:1" {
		t.Error(got)
	}
}

// TestUsersFile notices a file that others may read, that is left behind, and one of a later demo that is removed by an earlier one.
func TestUsersFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(config, "holdoutd", connectFile)
	first, second := connection{"http://127.0.0.1:1", "/a"}, connection{"http://127.0.0.1:2", "/b"}
	forgetFirst, err := tellUser(first)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	forgetSecond, err := tellUser(second)
	if err != nil {
		t.Fatal(err)
	}
	forgetFirst()
	contents, err := os.ReadFile(path)
	var c connection
	if err != nil || json.Unmarshal(contents, &c) != nil || c != second {
		t.Errorf("after the first demo's end: %s %v", contents, err)
	}
	forgetSecond()
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
}
