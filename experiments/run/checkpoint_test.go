package run

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestCheckpoint: a checkpoint continues the run it is of, less a line that was cut short, and no other run.
func TestCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), CheckpointFile)
	e := Experiment{Name: "x", Flags: []Flag{{Name: "size", Default: "10"}, {Name: "key", Secret: true}}}
	o := Options{Seed: 3, Set: map[string]string{"size": "20", "key": "hush"}}
	open := func(o Options) *Checkpoint {
		t.Helper()
		c, err := OpenCheckpoint(path, e, o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	known := func(c *Checkpoint) (found []int) {
		t.Helper()
		for i := range 4 {
			var v float64
			ok, err := c.load("part", i, &v)
			if err != nil {
				t.Fatal(err)
			}
			if ok && v == math.Pi*float64(i) {
				found = append(found, i)
			}
		}
		return found
	}
	c := open(o)
	for i := range 3 {
		if err := c.store("part", i, math.Pi*float64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(time.Second, 100); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hush") {
		t.Error("the checkpoint has a secret")
	}
	if err := os.WriteFile(path, append(text, `{"part":"part","index":3,"val`...), 0o644); err != nil {
		t.Fatal(err)
	}
	c = open(o)
	if got := known(c); !reflect.DeepEqual(got, []int{0, 1, 2}) || c.before != time.Second || c.peak != 100 {
		t.Errorf("after a cut: %v known, %v, %d bytes", got, c.before, c.peak)
	}
	if err := c.store("part", 3, math.Pi*3); err != nil {
		t.Fatal(err)
	}
	c.Close(0, 0)
	c = open(o)
	if got := known(c); !reflect.DeepEqual(got, []int{0, 1, 2, 3}) {
		t.Errorf("after the cut's repair: %v known", got)
	}
	c.Close(0, 0)
	for what, other := range map[string]Options{"seed": {Seed: 4, Set: o.Set}, "size": {Seed: 3}, "quick": {Seed: 3, Quick: true, Set: o.Set}} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenCheckpoint(path, e, other); !errors.Is(err, ErrOtherRun) || !strings.Contains(err.Error(), "--seed 3 --size=20") {
			t.Errorf("another %s: %v", what, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("another %s changed the file of a finished run, %v", what, err)
		}
	}
	// Another build of the program may find other numbers.
	text, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte("sha256:"), []byte("sha256:0"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCheckpoint(path, e, o); !errors.Is(err, ErrOtherRun) || !strings.Contains(err.Error(), "another build") {
		t.Errorf("another build: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"experiment":"x","see`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := known(open(o)); got != nil {
		t.Errorf("a file that was cut in its first line knows %v", got)
	}
}
