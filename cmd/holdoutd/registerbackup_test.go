package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// TestBackupOfASource backs up a holdout whose rows a folder of files keeps, and restores it: restore says which parts are not in the backup, verify that nobody has asked the source, and, where it is named, that
// all rows were compared, or which part is not what was registered, or why they could not be compared. It would notice a verification that is silent about rows that nobody looked at, one that takes a
// changed or missing part for whole, and one that writes.
func TestBackupOfASource(t *testing.T) {
	dir, lake, work := t.TempDir(), t.TempDir(), t.TempDir()
	identity, public := ageKey(t)
	if err := os.WriteFile(filepath.Join(lake, "flights.parquet"), []byte(data.Flights), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServer(t, dir, "--source", "lake=file://"+lake)
	c := connect(t, p, dir)
	r, err := c.Register(t.Context(), "lake", "flights.parquet", client.Settings{Mechanism: "gaussian", Questions: 20})
	if err != nil {
		t.Fatal(err)
	}
	id := ended(t, c, r)
	first := answerTo(t, c, id, 1)
	file, restored := filepath.Join(work, "monday.backup"), filepath.Join(work, "restored")
	command(t, exitDone, "verified", "backup", dir, "-o", file, "--recipient", public, "--with-server-key")
	if code := p.stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	out := command(t, exitDone, "the source lake keeps them as "+partPrefix(id)+"_training, "+partPrefix(id)+"_holdout", "restore", file, restored, "--identity", identity)
	if !strings.Contains(out, "holdoutd verify "+restored+" --source lake=URL") {
		t.Errorf("restore does not say what to do: %s", out)
	}
	parts := filepath.Join(dir, "sources", "lake")
	source := "lake=file://" + lake + "?parts=" + parts
	command(t, exitDone, "the rows are in the source lake, which was not asked", "verify", restored)
	command(t, exitDone, "the source lake has compared all rows", "verify", restored, "--source", source)
	command(t, exitDone, "the source lake has compared all rows", "verify", dir, "--source", "lake=file://"+lake)
	command(t, exitFailed, "its rows were not compared: they are in the source lake (file), which was not named", "verify", restored, "--source", "other=file://"+lake)
	command(t, exitFailed, "is not what was registered", "verify", restored, "--source", "lake=file://"+lake) // whose parts are below the directory: there are none
	if _, err := os.Lstat(filepath.Join(restored, "sources")); err == nil {
		t.Error("verify has made a directory")
	}
	command(t, exitFailed, "cannot be used", "verify", restored, "--source", "lake=file://"+lake+"/none")
	command(t, exitMisused, "of a data directory", "verify", file, "--identity", identity, "--source", source)
	command(t, exitMisused, "of a data directory", "verify", restored, "--no-tables", "--source", source)

	columns := steps(t, parts, partPrefix(id)+"_holdout/segment0/*")
	column := columns[len(columns)-1]
	for _, name := range columns {
		if filepath.Base(name) != "manifest" {
			column = name
		}
	}
	text, err := os.ReadFile(column)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(column, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, exitDone, "which was not asked", "verify", restored)
	command(t, exitFailed, "the part "+partPrefix(id)+"_holdout in the source lake is not what was registered", "verify", restored, "--source", source)
	text[len(text)/2] ^= 1
	if err := os.WriteFile(column, text, 0o600); err != nil {
		t.Fatal(err)
	}

	p = startServer(t, restored, "--source", source)
	restoredOnly(t, connect(t, p, restored), id, first)
	p.stop(t)
	command(t, exitDone, "gives new answers again", "confirm", restored, id, "--nothing-asked-since")
	p = startServer(t, restored, "--source", source)
	answerTo(t, connect(t, p, restored), id, 2)
}
