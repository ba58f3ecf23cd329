// Package program gives tests the server's binary and the interpreters of other languages.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	out, err := exec.Command("go", "build", "-tags", "nomsgpack", "-o", binary, "github.com/holdoutd/holdoutd/cmd/holdoutd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return binary, nil
})

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
