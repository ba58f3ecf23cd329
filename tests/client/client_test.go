//go:build python

// Package client holds the test that runs the Python client's own tests.
package client

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/tests/program"
)

func TestMain(m *testing.M) { program.Main(m) }

// TestPythonClient runs the Python client's own tests against the server's binary: every query type and member of the published document, real
// tables of three libraries, real models of three more, the notebooks twice, mypy and ruff. Its wheel is built and is what they import.
func TestPythonClient(t *testing.T) {
	python := program.Python(t)
	dir := t.TempDir()
	run := func(folder string, environment []string, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), environment...)
		cmd.WaitDelay = 10 * time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	wheels, site := filepath.Join(dir, "wheels"), filepath.Join(dir, "site")
	run("../../python", nil, python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, ".")
	wheel, err := filepath.Glob(filepath.Join(wheels, "holdoutd-*.whl"))
	if err != nil || len(wheel) != 1 {
		t.Fatalf("the wheel: %v %v", wheel, err)
	}
	run("../..", nil, python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel[0])
	run("../../python", []string{
		"HOLDOUTD_BINARY=" + program.Path(t), "PYTHONPATH=" + site, "OMP_NUM_THREADS=1", "MPLBACKEND=Agg",
		"JUPYTER_PLATFORM_DIRS=1", "HOME=" + dir,
	}, python, "-m", "pytest", "-p", "no:cacheprovider")
}
