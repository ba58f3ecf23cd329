//go:build python || browser

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// folder is where the program is built; it is removed after the last test.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "holdoutd-tests-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

var built = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(folder, "holdoutd")
	out, err := exec.Command("go", "build", "-tags", "nomsgpack", "-o", binary, "../cmd/holdoutd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return binary, nil
})

// program is the path of holdoutd, built once for all tests.
func program(t *testing.T) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
