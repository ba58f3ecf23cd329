package run

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
)

// TestRepeatContinues: after an interruption no finished piece of work is done again, and all values come out as without one.
func TestRepeatContinues(t *testing.T) {
	const count = 20
	path := filepath.Join(t.TempDir(), CheckpointFile)
	var worked atomic.Int64
	session := func(stopAfter int) (values []int, finished []bool, err error) {
		c, err := OpenCheckpoint(path, Experiment{Name: "x"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(0, 0)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		o := Options{Checkpoint: c, Progress: func(_ string, done, _ int) {
			if done == stopAfter {
				cancel()
			}
		}}
		return Repeat(ctx, o, "part", count, func(_ context.Context, i int) (int, error) {
			worked.Add(1)
			return i * i, nil
		})
	}
	_, finished, err := session(5)
	if !errors.Is(err, context.Canceled) || AllFinished(finished) {
		t.Fatalf("interrupted: all finished %v, error %v", AllFinished(finished), err)
	}
	values, finished, err := session(count + 1)
	if err != nil || !AllFinished(finished) {
		t.Fatalf("continued: all finished %v, error %v", AllFinished(finished), err)
	}
	for i, v := range Finished(values, finished) {
		if v != i*i {
			t.Errorf("piece %d is %d", i, v)
		}
	}
	if worked.Load() != count {
		t.Errorf("%d pieces were worked for, there are %d", worked.Load(), count)
	}
}

// TestDealt: each cell has its own repetitions and no unfinished one.
func TestDealt(t *testing.T) {
	values := []int{0, 10, 20, 1, 11, 21, 2, 12}
	got := Dealt(values, []bool{true, true, false, true, true, false, false, true}, 3)
	if want := [][]int{{0, 1}, {10, 11, 12}, nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
