//go:build python

package ledger_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedPythonVerifier runs the verifier that docs/format/ledger.md names, on the example and on a changed one.
func TestDocumentedPythonVerifier(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		python = "python3" // it needs the standard library only
	}
	dir, script := t.TempDir(), filepath.Join("testdata", "verify.py")
	good := docBlock(t, "jsonl")
	for _, c := range []struct {
		export string
		ok     bool
	}{
		{good, true},
		{strings.Replace(good, "0.4407", "0.4408", 1), false},
		{strings.Replace(good, "key_ann", "key_bob", 1), false},
		{strings.Replace(good, `"questions":1000`, `"questions":1`, 1), false},
	} {
		name := filepath.Join(dir, "export.jsonl")
		if err := os.WriteFile(name, []byte(c.export), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(python, script, name).CombinedOutput()
		if (err == nil) != c.ok {
			t.Errorf("%v: %s", err, out)
		}
	}
}
