package scale

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table and the figure of docs/SCALE.md from the results anew")

// TestPage keeps the table of docs/SCALE.md in step with the results that it is of.
func TestPage(t *testing.T) {
	const page, begin, end = "../../docs/SCALE.md", "[//]: # \"results\"\n", "[//]: # \"end of results\""
	all, err := Results("results.jsonl")
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	within, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for results", page)
	}
	want := "\n" + Table(all) + "\n"
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Draw(all, "../../docs/figures/scale.svg", filepath.Join(t.TempDir(), "scale.png")); err != nil {
			t.Fatal(err)
		}
	} else if within != want {
		t.Errorf("%s does not have the table of results.jsonl: go test ./bench/scale -run TestPage -update", page)
	}
	for _, r := range all {
		if len(r.Seconds) == 0 || r.Used <= 0 || r.UsedBy <= 0 || r.Wrong > 1e-7 {
			t.Errorf("a result that is none: %+v", r)
		}
	}
}
