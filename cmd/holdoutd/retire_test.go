package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
)

// TestRetireCommand retires a holdout by its name, downloads its rows, and uploads the one that comes after it; the cards of both say so.
func TestRetireCommand(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	random := rand.New(rand.NewPCG(crashSeed, 2))
	first, err := connect(t, p, dir).CreateHoldout(t.Context(), bytes.NewReader(randomTable(t, random)), client.Settings{Name: "flights-q1", Mechanism: "gaussian", Questions: 40})
	if err != nil {
		t.Fatal(err)
	}
	call := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := holdoutd(t, append(args, "--url", p.url, "--key", "@"+filepath.Join(dir, "admin.key"))...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out + errs
	}
	rows, table := filepath.Join(dir, "more.parquet"), filepath.Join(dir, "q2.parquet")
	if err := os.WriteFile(table, randomTable(t, random), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := call(1, "download", "retired", "flights-q1", "--out", rows); !strings.Contains(out, "not retired") {
		t.Errorf("rows of one that is not retired: %s", out)
	}
	upload := []string{"upload", table, "--name", "flights-q2", "--mechanism", "gaussian", "--questions", "30", "--succeeds", first.ID}
	if out := call(2, upload...); !strings.Contains(out, "retire it first") {
		t.Errorf("a successor of one that is not retired: %s", out)
	}
	if out := call(0, "retire", "flights-q1"); !strings.Contains(out, "--succeeds "+first.ID) {
		t.Errorf("retire: %s", out)
	}
	call(0, "download", "retired", "flights-q1", "--out", rows)
	if content, err := os.ReadFile(rows); err != nil || !bytes.HasPrefix(content, []byte("PAR1")) {
		t.Errorf("%d bytes, %v", len(content), err)
	}
	call(0, upload...)
	if out := call(0, "holdouts"); !strings.Contains(out, "retired") {
		t.Errorf("the list: %s", out)
	}
	if out := call(0, "holdouts", "flights-q2"); !strings.Contains(out, "it succeeds "+first.ID) {
		t.Errorf("the card of the second: %s", out)
	}
	if out := call(0, "holdouts", "flights-q1"); !strings.Contains(out, "succeeded by ho_") || !strings.Contains(out, "download retired "+first.ID) {
		t.Errorf("the card of the first: %s", out)
	}
}
