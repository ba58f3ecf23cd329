//go:build browser

// Package browser holds the tests of the dashboard: that it is what its sources build, and its pages in Chromium.
package browser

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/tests/program"
)

func TestMain(m *testing.M) { program.Main(m) }

// nodeTool runs a program of web/ with node, and returns what it printed.
func nodeTool(t *testing.T, environment []string, args ...string) {
	t.Helper()
	bin := program.Node(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "node"), args...)
	cmd.Dir, cmd.Env = "../../web", append(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "NO_COLOR=1", "CI=1"), environment...)
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("node %v: %v\n%s", args, err, out)
	}
}

// TestDashboardBuild checks the types of the web application, runs its own tests, and builds it: the files that are committed, and so in the program,
// are byte for byte what its sources and the versions in package-lock.json build.
func TestDashboardBuild(t *testing.T) {
	t.Parallel()
	nodeTool(t, nil, "node_modules/svelte-check/bin/svelte-check", "--fail-on-warnings")
	nodeTool(t, nil, "node_modules/vitest/vitest.mjs", "run")
	built, committed := t.TempDir(), "../../internal/dashboard/dist"
	nodeTool(t, nil, "node_modules/vite/bin/vite.js", "build", "--outDir", built, "--emptyOutDir")
	for _, sides := range [][2]string{{built, committed}, {committed, built}} {
		err := fs.WalkDir(os.DirFS(sides[0]), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			here, err := os.ReadFile(filepath.Join(sides[0], name))
			if err != nil {
				return err
			}
			there, err := os.ReadFile(filepath.Join(sides[1], name))
			if errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is in %s alone: make generate", name, sides[0])
				return nil
			}
			if err == nil && !bytes.Equal(here, there) {
				t.Errorf("%s is not what its sources build: make generate", name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestDashboard uses the web application in Chromium, against the server's binary (web/tests): every page in two widths and both themes, held
// against axe-core, without an error on the console, a breach of the page's policy or a request to elsewhere; what forms say to what is wrong; and
// the way from an upload to a spent budget. Pictures of all pages are among the test's artifacts (go test -artifacts).
func TestDashboard(t *testing.T) {
	t.Parallel()
	nodeTool(t, []string{"HOLDOUTD_BINARY=" + program.Path(t), "HOLDOUTD_PICTURES=" + t.ArtifactDir()}, "--test", "--test-concurrency=2", "--test-force-exit", "tests/")
}
