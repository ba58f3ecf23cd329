//go:build python

package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestModelsAgainstScikitLearn exports models of scikit-learn, XGBoost and LightGBM, asks a real server whose mechanism is naive about
// them, and computes the same with scikit-learn on the same rows; with gaussian it checks that intervals hold the naive answers
// and what each question costs, and the numbers of docs/examples/models.md.
func TestModelsAgainstScikitLearn(t *testing.T) {
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
	args := []string{"queries_models.py", url, filepath.Join(dir, "holdoutd-data", "admin.key"), flights, "../docs/examples/models.md"}
	if *update {
		args = append(args, "--update")
	}
	cmd := exec.CommandContext(t.Context(), python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../python", "OMP_NUM_THREADS=1") // threads that wait for each other take longer
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("MODELS OK")) {
		t.Fatal(err)
	}
}
