//go:build python

package tests

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/tests/program"
)

var update = flag.Bool("update", false, "write the numbers of docs/examples anew")

// compared runs tests/queries_NAME.py against a real server, whose answers it compares with those of the usual libraries on the same rows,
// and whose numbers it holds docs/examples/NAME.md to.
func compared(t *testing.T, name string) {
	t.Helper()
	t.Parallel()
	python := program.Python(t)
	dir := t.TempDir()
	url := serve(t, dir, "--allow-naive")
	flights, err := filepath.Abs("../experiments/data/flights-100k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"queries_" + name + ".py", url, filepath.Join(dir, "holdoutd-data", "admin.key"), flights, "../docs/examples/" + name + ".md"}
	if *update {
		args = append(args, "--update")
	}
	cmd := exec.CommandContext(t.Context(), python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../python/src", "OMP_NUM_THREADS=1") // threads that wait for each other take longer
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(out), []byte(" OK")) {
		t.Fatal(err)
	}
}

// TestMomentsAgainstNumPy: variance, covariance, correlation, quantiles and shares. With gaussian it checks that intervals hold the naive
// answers and what each question costs.
func TestMomentsAgainstNumPy(t *testing.T) { compared(t, "moments") }

// TestDecisionsAgainstSciPy: decisions, differences and tests, with NumPy, SciPy and scikit-learn.
func TestDecisionsAgainstSciPy(t *testing.T) { compared(t, "decisions") }

// TestModelsAgainstScikitLearn exports models of scikit-learn, XGBoost and LightGBM and asks about them.
func TestModelsAgainstScikitLearn(t *testing.T) { compared(t, "models") }
