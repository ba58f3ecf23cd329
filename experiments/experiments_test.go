package experiments

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
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
