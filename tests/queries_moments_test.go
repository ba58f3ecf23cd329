//go:build python

package tests

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the numbers of docs/examples anew")

// TestMomentsAgainstNumPy asks a real server whose mechanism is naive and computes the same with NumPy on the same rows; with
// gaussian it checks that intervals hold the naive answers and what each question costs, and the numbers of docs/examples/moments.md.
func TestMomentsAgainstNumPy(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON is not set: run `make test`, or set it to the output of scripts/python.sh")
	}
	dir := t.TempDir()
	url := serve(t, dir, "--allow-naive")
	flights, err := filepath.Abs("../cmd/holdoutd/demo/flights-100k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"queries_moments.py", url, filepath.Join(dir, "holdoutd-data", "admin.key"), flights, "../docs/examples/moments.md"}
	if *update {
		args = append(args, "--update")
	}
	cmd := exec.CommandContext(t.Context(), python, args...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("MOMENTS OK")) {
		t.Fatal(err)
	}
}
