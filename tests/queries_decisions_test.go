//go:build python

package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDecisionsAgainstSciPy asks a real server whose mechanism is naive and computes the same with NumPy, SciPy and scikit-learn on
// the same rows; under real guarantees it checks intervals, prices and that p-values agree with verdicts, and the numbers of
// docs/examples/decisions.md.
func TestDecisionsAgainstSciPy(t *testing.T) {
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
	args := []string{"queries_decisions.py", url, filepath.Join(dir, "holdoutd-data", "admin.key"), flights, "../docs/examples/decisions.md"}
	if *update {
		args = append(args, "--update")
	}
	out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("DECISIONS OK")) {
		t.Fatal(err)
	}
}
