//go:build python

package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// TestSourcesPage runs the first steps of docs/SOURCES.md as they are written, each in a fresh place with a folder of Parquet files: the server's line with a port of its own, the commands of the other terminal, and
// the Python lines. It would notice a flag that is gone, a table that is named otherwise, and an example that is refused.
func TestSourcesPage(t *testing.T) {
	python := interpreter(t)
	flights, err := os.ReadFile("../experiments/data/flights-100k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	shell := blocks(t, "../docs/SOURCES.md", "sh")
	if !strings.HasPrefix(shell[0], "holdoutd serve --source lake=") {
		t.Fatalf("the page has other blocks than this test knows: %q", shell)
	}
	programs := t.TempDir()
	build(t, filepath.Join(programs, "holdoutd"))
	src, err := filepath.Abs("../python/src")
	if err != nil {
		t.Fatal(err)
	}
	for name, then := range map[string]func() *exec.Cmd{
		"commands": func() *exec.Cmd { return exec.CommandContext(t.Context(), "sh", "-ec", strings.Join(shell[1:], "\n")) },
		"python": func() *exec.Cmd {
			return exec.CommandContext(t.Context(), python, "-c", strings.Join(blocks(t, "../docs/SOURCES.md", "python"), "\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "lake", "flights"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "lake", "flights", "2001.parquet"), flights, 0o600); err != nil {
				t.Fatal(err)
			}
			env := append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "PYTHONPATH="+src, "PATH="+programs+":"+os.Getenv("PATH"))
			server := exec.CommandContext(context.Background(), "sh", "-c", "exec "+strings.TrimSpace(shell[0])+` "$@"`, "sh")
			server.Dir, server.Env = dir, env
			started(t, server)
			cmd := then()
			cmd.Dir, cmd.Env = dir, env
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "0.") {
				t.Fatalf("%v\n%s", err, out)
			}
			if file, err := os.ReadFile(filepath.Join(dir, "training.parquet")); name == "commands" && (err != nil || !strings.HasPrefix(string(file), "PAR1")) {
				t.Errorf("the training part: %d bytes, %v", len(file), err)
			}
			fmt.Fprintln(t.Output(), string(out))
		})
	}
}

// pieces is what the Python client does with a training part in two pieces.
const pieces = `
import pathlib, holdoutd
server = holdoutd.connect()
ds = server.register("lake", "wide.parquet", name="wide", questions=10, holdout=0.1)
assert ds.training().shape == (90_000, 250)
assert ds.card.training_pieces == 2, ds.card.training_pieces
halves = [ds.training(piece=i).shape[0] for i in range(2)]
assert sum(halves) == 90_000 and min(halves) > 0, halves
ds.save_training("folder")
files = sorted(pathlib.Path("folder").iterdir())
assert [f.name[-22:] for f in files] == ["00000-of-00002.parquet", "00001-of-00002.parquet"], files
before = [f.read_bytes() for f in files]
files[1].unlink()
ds.save_training("folder")
assert [f.read_bytes() for f in files] == before and sorted(pathlib.Path(".").glob("folder*")) == [pathlib.Path("folder")]
try:
    ds.training(piece=2)
    raise SystemExit("there is a third piece of two")
except holdoutd.errors.QueryInvalid as e:
    assert "2 pieces" in str(e), e
print("PIECES OK")
`

// TestPythonPieces: the Python client puts a training part in several pieces together, gives one of them, and saves them as files, of which it fetches what is missing. It would notice a piece that is
// left out or taken twice.
func TestPythonPieces(t *testing.T) {
	python := interpreter(t)
	const rows, columns = 100_000, 250 // a piece has 2^24 cells
	random := rand.New(rand.NewPCG(20261123, 4))
	all := make([]dataset.Column, columns)
	for i := range all {
		all[i] = dataset.Column{Field: dataset.Field{Name: fmt.Sprint("b", i), Kind: dataset.Bool, Source: "BOOLEAN"}, Bools: make([]uint8, rows)}
		for row := range rows {
			all[i].Bools[row] = uint8(random.Uint64() & 1)
		}
	}
	table, err := dataset.FromColumns(all...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lake"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "lake", "wide.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ingest.Export(f, table), f.Close()); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, "--source", "lake=file://"+filepath.Join(dir, "lake"))
	src, err := filepath.Abs("../python/src")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", pieces)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "PYTHONPATH="+src)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PIECES OK") {
		t.Fatalf("%v\n%s", err, out)
	}
}
