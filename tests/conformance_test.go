//go:build python

package tests

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The published document says of two replies a media type that openapi-python-client has no reader for, and that it needs to be told of.
const generatorConfig = `
content_type_overrides:
  application/vnd.apache.parquet: application/octet-stream
  application/jsonl: text/plain
post_hooks: []
`

// TestGeneratedClient makes a Python client of the document that the running server publishes, and plays a whole journey with it:
// upload, card, training part, keys, every query type by each of its examples, batch, budget, history, ledger, plans, deletion, and
// errors. A warning of the generator is a failure: it warns of each schema that it leaves out.
func TestGeneratedClient(t *testing.T) {
	dir := t.TempDir()
	url := serve(t, dir)
	document := publishedDocument(t, url, dir)
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(generatorConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	python(t, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--path", document, "--meta", "none",
		"--output-path", filepath.Join(dir, "generated"), "--config", config)
	out := python(t, "generated_client.py", dir, url, filepath.Join(dir, "holdoutd-data", "admin.key"), flightsFile(t), document)
	if !bytes.HasSuffix(bytes.TrimSpace(out), []byte(" OK")) {
		t.Fatal("the script did not come to its end")
	}
}

// publishedDocument keeps what the server says of itself in a file.
func publishedDocument(t *testing.T, url, dir string) string {
	t.Helper()
	reply, err := http.Get(url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatal(reply.Status, err)
	}
	path := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flightsFile(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../experiments/data/flights-100k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// python runs the interpreter of the tests to its end and returns what it printed; any other status than 0 fails the test.
func python(t *testing.T, args ...string) []byte {
	t.Helper()
	interpreter := os.Getenv("HOLDOUTD_PYTHON")
	if interpreter == "" {
		t.Fatal("HOLDOUTD_PYTHON is not set: run `make test`, or set it to the output of scripts/python.sh")
	}
	cmd := exec.CommandContext(t.Context(), interpreter, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../python", "PYTHONDONTWRITEBYTECODE=1", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	return out
}
