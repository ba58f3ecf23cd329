package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// connectFile is where clients on this machine find the server: in its data directory and, of a demo, in the user's directory of
// settings.
const connectFile = "connect.json"

// A connection says where a server is. The key itself is in a file of its own, which only its owner may read.
type connection struct {
	URL     string `json:"url"`
	KeyFile string `json:"key_file"` // relative to the file that names it, or absolute
}

// urlOf is the address as a client on this machine writes it: a server that listens on all of them is reached by the loopback one.
func urlOf(addr net.Addr, tls bool) string {
	scheme := "http"
	if tls {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + "://" + addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// tellOf writes the file in dir, which is made if it is not there. A reader sees the old file or the new one.
func tellOf(dir string, c connection) error {
	contents, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary := filepath.Join(dir, fmt.Sprintf(".%s.%d", connectFile, os.Getpid()))
	defer os.Remove(temporary)
	if err := os.WriteFile(temporary, append(contents, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, connectFile))
}

// userDirectory is the user's directory of settings: the one that the Python client knows, too.
func userDirectory() (string, error) {
	if config := os.Getenv("XDG_CONFIG_HOME"); config != "" {
		return filepath.Join(config, "holdoutd"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config", "holdoutd"), err
}

// tellUser writes the user's file for a server. forget removes it at the server's end, unless another has written it since.
func tellUser(c connection) (forget func(), err error) {
	dir, err := userDirectory()
	if err != nil {
		return func() {}, err
	}
	if err := tellOf(dir, c); err != nil {
		return func() {}, err
	}
	return func() {
		path := filepath.Join(dir, connectFile)
		var now connection
		if contents, err := os.ReadFile(path); err == nil && json.Unmarshal(contents, &now) == nil && now == c {
			os.Remove(path)
		}
	}, nil
}
