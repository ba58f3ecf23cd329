package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

const (
	killRows = 30_000
	// killTries is how often a step is aimed at: some take a millisecond, and the server may be past one before it is killed.
	killTries = 25
	// dropTime is how long a server that was started again has to drop what is left, before the test fails.
	dropTime = 40 * time.Second
	// rowText is in each row of the tables, and in no name: where it is found outside of a part, a row has left it.
	rowText = "only-in-a-row"
)

// killSteps are the steps of a registration, as the data directory shows them, in their order. A file that has its name for an instant only (keys* of a scratch directory) is no step: no kill can be aimed at it. A server that is killed when a file or directory of a pattern is there is killed at or behind that step.
var killSteps = []string{
	"", // right after the reply, before anything
	"tmp/register-*",
	"sources/lake/scratch_*",
	"sources/lake/scratch_*/piece*",
	"parts/.note-*",
	"parts/ID",
	"sources/lake/PART_training",
	"sources/lake/PART_holdout/bucket*",
	"sources/lake/PART_training/segment0*",
	"sources/lake/PART_holdout/segment0/manifest",
	"tmp/register-*/finished/training.part",
	"tmp/register-*/finished/sketch",
	"tmp/register-*/finished/uncommitted",
	"holdouts/ID/uncommitted",
	"holdouts/ID/spent",
}

// TestKilledRegistration kills the real server with SIGKILL at each step of a registration of a folder of Parquet files, and starts it again. A holdout is there whole, and answers, or it is not there, and then
// nothing is left of it: no part, no scratch directory, no note, no temporary file, no decoding process; the same request is taken, and ends with a holdout. No row is anywhere but in
// the parts. It would notice leftovers that nobody removes, a holdout without its parts, parts without a holdout, and a table that is refused because a registration of it was cut off.
func TestKilledRegistration(t *testing.T) {
	dir, lake := t.TempDir(), t.TempDir()
	random := rand.New(rand.NewPCG(20261123, 0))
	source := []string{"--source", "lake=file://" + lake}
	p := startServer(t, dir, source...)
	tables, made := 0, map[string]bool{}
	for _, step := range killSteps {
		reached, before := false, tables
		for try := 0; try < killTries && !reached; try++ {
			table := fmt.Sprintf("table%d.parquet", tables)
			tables++
			if err := os.WriteFile(filepath.Join(lake, table), keyedTable(t, random, killRows), 0o600); err != nil {
				t.Fatal(err)
			}
			set := client.Settings{Name: table, Unit: "patient", Mechanism: "gaussian", Questions: 10}
			once := client.WithIdempotencyKey(t.Context(), table)
			r, err := connect(t, p, dir).Register(once, "lake", table, set)
			if err != nil {
				t.Fatal(err)
			}
			killAt(t, p, dir, step, r.ID)
			reached = step == "" || len(steps(t, dir, ofHoldout(step, r.ID))) > 0
			if _, err := sqlite.Verify(t.Context(), filepath.Join(dir, ledgerFile)); err != nil {
				t.Fatal(err)
			}
			if try%4 == 3 { // and once more, while it recovers
				crashEarly(t, dir, time.Duration(random.Int64N(int64(longestStart))))
			}
			p = startServer(t, dir, source...)
			c := connect(t, p, dir)
			committed := checkLeftovers(t, c, dir, made)
			r, err = c.Register(once, "lake", table, set)
			if err != nil {
				t.Fatalf("after a kill at %q the same request is refused: %v", step, err)
			}
			id := ended(t, c, r)
			if committed != "" && id != committed {
				t.Errorf("the request had made %s, and makes %s when it is sent again", committed, id)
			}
			if _, err := c.Ask(t.Context(), id, map[string]any{"type": "mean", "of": "x", "range": []int{0, 1}}); err != nil {
				t.Errorf("after a kill at %q: %v", step, err)
			}
			made[id] = true
			if t.Failed() {
				t.Fatalf("after a kill at %q\n%s", step, p.stderr)
			}
		}
		if !reached {
			t.Errorf("in %d tries no kill came at %q: the test does not reach this step", killTries, step)
		}
		t.Logf("%d kills aimed at %q", tables-before, step)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	if out, errs, code := holdoutd(t, "verify", dir); code != 0 {
		t.Errorf("verify: %s%s", out, errs)
	}
	t.Logf("%d kills at %d steps", tables, len(killSteps))
}

// ended waits for a registration, which must make a holdout.
func ended(t *testing.T, c *client.Client, r client.Registration) (id string) {
	t.Helper()
	for deadline := time.Now().Add(patience); r.Stage != "done"; time.Sleep(5 * time.Millisecond) {
		var err error
		if r, err = c.Registration(t.Context(), r.ID); err != nil || r.Ended != nil && r.Stage != "done" || time.Now().After(deadline) {
			t.Fatalf("the registration is %+v, %v: %v", r, r.Problem, err)
		}
	}
	return r.Holdout
}

// steps are the files and directories of a pattern.
func steps(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// ofHoldout is a pattern of steps with the names that the holdout of a registration has: ID its own, PART that of its parts.
func ofHoldout(step, registration string) string {
	id := strings.Replace(registration, "re_", "ho_", 1)
	return strings.NewReplacer("ID", id, "PART", partPrefix(id)).Replace(step)
}

func partPrefix(id string) string { return strings.ReplaceAll(id, "-", "") }

// killAt kills the server as soon as the step shows, or soon after the registration has made its holdout.
func killAt(t *testing.T, p *process, dir, step string, registration string) {
	t.Helper()
	step = ofHoldout(step, registration)
	last, made := filepath.Join(dir, ofHoldout("holdouts/ID", registration)), time.Time{}
	for deadline := time.Now().Add(patience); step != "" && len(steps(t, dir, step)) == 0; {
		if _, err := os.Lstat(last); err == nil && made.IsZero() {
			made = time.Now()
		}
		if !made.IsZero() && time.Since(made) > longestUpload {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q does not come\n%s", step, p.stderr)
		}
	}
	p.kill()
}

// checkLeftovers demands that nothing is in the data directory but what belongs to holdouts that are listed, and that these are those that were made, and at most one more, which it returns.
func checkLeftovers(t *testing.T, c *client.Client, dir string, made map[string]bool) (more string) {
	t.Helper()
	cards, err := c.Holdouts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, card := range cards {
		listed[card.ID] = true
		if !made[card.ID] {
			if more != "" {
				t.Errorf("%s and %s are listed, and one registration was under way", more, card.ID)
			}
			more = card.ID
		}
	}
	for id := range made {
		if !listed[id] {
			t.Errorf("%s is gone", id)
		}
	}
	left := []string{"?"}
	for deadline := time.Now().Add(dropTime); len(left) > 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // parts are dropped in the background
		left = append(steps(t, dir, "tmp/*"), steps(t, dir, "parts/*")...)
		left = append(left, steps(t, dir, "parts/.note*")...)
		left = append(left, steps(t, dir, "holdouts/*/uncommitted")...)
		left = append(left, steps(t, dir, "sources/lake/scratch_*")...)
		if running := steps(t, dir, "sources/lake/.working_*"); len(running) != 1 {
			left = append(left, running...)
		}
		for _, path := range append(steps(t, dir, "holdouts/*"), steps(t, dir, "sources/lake/ho*")...) {
			if !belongs(filepath.Base(path), listed) {
				left = append(left, path)
			}
		}
		for _, pid := range decoders(t, dir) {
			left = append(left, "the decoding process "+pid)
		}
	}
	if len(left) > 0 {
		t.Errorf("left of a registration that was cut off: %v", left)
	}
	for id := range listed {
		if n := len(steps(t, dir, "sources/lake/"+partPrefix(id)+"_*")); n != 2 {
			t.Errorf("%s has %d parts", id, n)
		}
	}
	rowsStay(t, dir)
	return more
}

// belongs reports whether a file is of one of the holdouts: it has the id as its name, or a part's name.
func belongs(name string, listed map[string]bool) bool {
	if listed[name] {
		return true
	}
	for id := range listed {
		if strings.HasPrefix(name, partPrefix(id)+"_") {
			return true
		}
	}
	return false
}

// decoders are the processes that decode files of the directory, by what the kernel says that they were started with, and what they have open.
func decoders(t *testing.T, dir string) (running []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if text, err := os.ReadFile(path); err != nil || !bytes.Contains(text, []byte(decodeCommand)) || !bytes.Contains(text, []byte(binary)) {
			continue // or it has ended
		}
		open, err := filepath.Glob(filepath.Join(filepath.Dir(path), "fd", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range open {
			if name, err := os.Readlink(f); err == nil && strings.HasPrefix(name, dir) {
				running = append(running, filepath.Base(filepath.Dir(path)))
				break
			}
		}
	}
	return running
}

// rowsStay demands that rows are in the parts alone, and that nobody else can read these.
func rowsStay(t *testing.T, dir string) {
	t.Helper()
	parts := filepath.Join(dir, "sources", "lake")
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if strings.HasPrefix(path, parts) {
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
			return nil
		}
		if e.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(rowText)) {
			t.Errorf("%s has a text of a row", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// keyedTable is a Parquet file of rows that belong to patients, with a text of its own in each row.
func keyedTable(t *testing.T, random *rand.Rand, rows int) []byte {
	t.Helper()
	x, patient, notes := make([]float64, rows), make([]float64, rows), make([]string, rows)
	for i := range rows {
		x[i], patient[i], notes[i] = random.Float64(), float64(random.Uint64()>>12), fmt.Sprintf("%s-%d", rowText, random.Uint64())
		if i%3 == 2 {
			patient[i] = patient[i-1]
		}
	}
	table, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: x},
		dataset.Column{Field: dataset.Field{Name: "patient", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: patient},
		dataset.NewText("note", notes, nil),
	)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ingest.Export(&b, table); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
