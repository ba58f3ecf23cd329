//go:build python

package tests

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/tests/program"
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
	t.Parallel()
	dir := t.TempDir()
	url := serve(t, dir)
	document := publishedDocument(t, url, dir)
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(generatorConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	python(t, dir, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--path", document, "--meta", "none",
		"--output-path", filepath.Join(dir, "generated"), "--config", config)
	out := python(t, ".", "generated_client.py", dir, url, filepath.Join(dir, "holdoutd-data", "admin.key"), flightsFile(t), document)
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

// python runs the interpreter of the tests in a folder to its end and returns what it printed; any other status than 0 fails the test.
func python(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program.Python(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	return out
}

// schemathesisConfig says where schemathesis may go and what counts; HOLDOUT stands for the holdout it asks.
//
// positive_data_acceptance is off: that a body fits its schema does not make it right, since an expression names columns of the table,
// a range has its ends in order, and an upload is a whole Parquet file. The examples that TestGeneratedClient sends are all accepted.
// A batch with more items than maxItems is refused with 413, which schemathesis does not know as a refusal.
// The coverage phase leaves out the three operations that take queries: it makes tens of thousands of requests of their 27 types, a
// quarter of an hour's worth, and found nothing in them. Fuzzing has them.
const schemathesisConfig = `
[checks]
positive_data_acceptance.enabled = false
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429]

[[operations]]
include-path-regex = "^/v1/holdouts/\\{id\\}/(?!retire)"
parameters = { "path.id" = "HOLDOUT" }

[[operations]]
include-path-regex = "/(queries|report)(/batch|/explain|/plan)?$"
parameters = { "path.id" = "HOLDOUT" }
phases.coverage.enabled = false
`

// TestSchemathesis sends a running server what its document allows and what it forbids, with an admin key and without: nothing is
// answered by a 500, by a status, content type or shape that is not in the document, without the key that an operation needs, or with
// success although the document forbids what was sent. The seed is fixed, and the number of requests is bounded, not the time, so that
// a slow machine does not test less.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	const operations, all, examples = "40", "41", "20" // all but follow-answers, whose reply has no end
	dir := t.TempDir()
	url := serve(t, dir)
	document := publishedDocument(t, url, dir)
	secret, err := os.ReadFile(filepath.Join(dir, "holdoutd-data", "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	bearer := "Bearer " + strings.TrimSpace(string(secret))
	config := filepath.Join(dir, "schemathesis.toml")
	id := created(t, url+"/v1/holdouts?mechanism=gaussian&questions=100000&features=public&label=delay", bearer)
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(schemathesisConfig, "HOLDOUT", id)), 0o600); err != nil {
		t.Fatal(err)
	}
	out := python(t, dir, "-m", "schemathesis.cli", "--config-file", config, "run", document, "--url", url, "--header", "Authorization: "+bearer,
		"--exclude-operation-id", "follow-answers", "--seed", "1", "--max-examples", examples, "--phases", "coverage,fuzzing", "--continue-on-failure", "--generation-database", "none", "--no-color")
	for _, line := range []string{"Selected: " + operations + "/" + all + "\n", "Tested: " + operations + "\n", "✅ Coverage\n", "✅ Fuzzing\n"} {
		if !bytes.Contains(out, []byte(line)) {
			t.Errorf("schemathesis does not say %q: an operation or a phase was left out", line)
		}
	}
}

// created uploads the demo's flights and returns the new holdout's id.
func created(t *testing.T, url, bearer string) string {
	t.Helper()
	file, err := os.Open(flightsFile(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, file)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", bearer)
	request.Header.Set("Content-Type", "application/vnd.apache.parquet")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var card struct{ ID string }
	if err := json.NewDecoder(reply.Body).Decode(&card); err != nil || reply.StatusCode != http.StatusCreated {
		t.Fatal(reply.Status, err)
	}
	return card.ID
}
