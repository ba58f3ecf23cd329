// Package program gives tests the server's binary and the interpreters of other languages.
package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Main runs the tests of a package that calls Path: call it from TestMain. What was built is removed after the last test.
func Main(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "holdoutd-tests-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

var folder string

var built = sync.OnceValues(func() (string, error) {
	if folder == "" {
		return "", fmt.Errorf("the package's TestMain does not call program.Main")
	}
	binary := filepath.Join(folder, "holdoutd")
	return binary, Build(binary)
})

// command is the package of the program.
const command = "github.com/holdoutd/holdoutd/cmd/holdoutd"

// seeded is the file that the program is built with beside its own, so that the same seed has the same splits and noise.
const seeded = `package main

import "github.com/holdoutd/holdoutd/internal/seed"

func init() { seed.Secrets() }
`

// Build builds holdoutd with the secrets of its holdouts as a function of the tests' seed, and nothing else changed. Flags are more of go build's.
func Build(binary string, flags ...string) error {
	folder, err := os.MkdirTemp("", "holdoutd-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	source, err := exec.Command("go", "list", "-f", "{{.Dir}}", command).Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	content, err := overlay(os.Getenv("GOFLAGS"))
	if err != nil {
		return err
	}
	added, list := filepath.Join(folder, "seeded"), filepath.Join(folder, "overlay.json")
	content.Replace[filepath.Join(strings.TrimSpace(string(source)), "seeded_for_tests.go")] = added
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(added, []byte(seeded), 0o600), os.WriteFile(list, text, 0o600)); err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-tags", "nomsgpack", "-overlay", list, "-o", binary}, flags...) // as make test compiles
	if out, err := exec.Command("go", append(args, command)...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %v\n%s", err, out)
	}
	return nil
}

// overlaid is what go build reads: which files it takes in place of which.
type overlaid struct{ Replace map[string]string }

// overlay is the one of GOFLAGS, by which a planted fault reaches the program (tests/faults).
func overlay(flags string) (content overlaid, err error) {
	for flag := range strings.FieldsSeq(flags) {
		if path, ok := strings.CutPrefix(flag, "-overlay="); ok {
			text, err := os.ReadFile(path)
			if err != nil {
				return content, err
			}
			if err := json.Unmarshal(text, &content); err != nil {
				return content, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if content.Replace == nil {
		content.Replace = map[string]string{}
	}
	return content, nil
}

// Path is the path of holdoutd, built once for all tests of a package.
func Path(t *testing.T) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Python is the interpreter of the tests, with the packages of scripts/requirements.txt.
func Python(t *testing.T) string { return named(t, "HOLDOUTD_PYTHON", "scripts/python.sh") }

// Node is the folder of node, with the packages of web/package-lock.json.
func Node(t *testing.T) string { return named(t, "HOLDOUTD_NODE", "scripts/web.sh") }

func named(t *testing.T, variable, script string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Fatalf("%s is not set: run `make test`, or set it to the output of %s", variable, script)
	}
	return value
}
