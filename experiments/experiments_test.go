package experiments

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/run"
)

// TestAllAreNamed: every folder with an experiment in it is in All, under a name of its own, and has its section in docs/EXPERIMENTS.md.
func TestAllAreNamed(t *testing.T) {
	folders, err := filepath.Glob("*/experiment_test.go")
	if err != nil || len(folders) != len(All) {
		t.Errorf("%d folders have an experiment, %d are named, %v", len(folders), len(All), err)
	}
	page, err := os.ReadFile("../docs/EXPERIMENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range All {
		if names[e.Name] || e.Name == "" || e.Short == "" || e.Run == nil {
			t.Errorf("%q: a name of its own, a line for the list and something to run", e.Name)
		}
		if names[e.Name] = true; !bytes.Contains(page, []byte("\n## "+e.Name+"\n")) {
			t.Errorf("docs/EXPERIMENTS.md has no section %s", e.Name)
		}
	}
}

// TestInterruptedAtOnce: of a run that is interrupted before anything is finished, every experiment writes its report and what figures it has, and says nothing but that it was interrupted. It would notice
// a figure that cannot be drawn without a point, and one whose axis has no end.
func TestInterruptedAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, e := range All {
		o := e.Small
		o.Seed = 1
		r, err := run.Perform(ctx, e, o, t.TempDir(), "test")
		if r.Result.Complete || !r.Written || err != nil && err.Error() != context.Canceled.Error() {
			t.Errorf("%s: complete %v, written %v, %v", e.Name, r.Result.Complete, r.Written, err)
		}
	}
}
