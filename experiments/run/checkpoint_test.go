package run

import (
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
	for _, change := range []struct {
		of   string
		want string
	}{{"seed", "--seed 3, not 4"}, {"size", `"--size=20", not ""`}, {"quick", "--quick is false, not true"}, {"repetitions", "--repetitions 0, not 7"}} {
		other := Options{Seed: 3, Set: map[string]string{"size": "20"}}
		switch change.of {
		case "seed":
			other.Seed = 4
		case "size":
			other.Set["size"] = "10"
		case "quick":
			other.Quick = true
		case "repetitions":
			other.Repetitions = 7
		}
		c, err := OpenCheckpoint(path, e, other)
		var refused *OtherRunError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), change.want) {
			t.Errorf("another %s: %v", change.of, err)
		}
		if c != nil {
			t.Errorf("another %s took %v", change.of, known(c))
		}
	}
	c = open(o)
	if got := known(c); !reflect.DeepEqual(got, []int{0, 1, 2, 3}) {
		t.Errorf("after others were refused: %v known", got)
	}
	c.Close(0, 0)
	// A file in which nothing is finished is anybody's.
	if err := os.WriteFile(path, []byte(strings.SplitAfter(string(text), "\n")[0]), 0o644); err != nil {
		t.Fatal(err)
	}
	o.Seed++
	open(o).Close(0, 0)
}
