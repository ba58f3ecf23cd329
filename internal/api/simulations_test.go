package api

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSimulation plays the experiment over HTTP. It notices a reply that strangers get, that grows, that is not the seed's, or that reads a parameter wrongly.
func TestSimulation(t *testing.T) {
	s := start(t, Options{})
	const path = "/v1/simulations/feature-selection"
	if r := s.get(path, noKey); r.StatusCode != 401 {
		t.Errorf("a stranger keeps the processor busy: %d", r.StatusCode)
	}
	_, analyst := s.newKey("analyst")
	first := s.get(path+"?seed=7&signal=true", "Authorization: Bearer "+analyst)
	var sim Simulation
	first.decode(t, &sim)
	if first.StatusCode != 200 || sim.Seed != 7 || !sim.Signal || len(sim.Rounds) != 200 || sim.Rounds[199].Columns != 200 {
		t.Errorf("%d %.300s", first.StatusCode, first.body)
	}
	if len(first.body) > 64<<10 {
		t.Errorf("a play is %d bytes", len(first.body))
	}
	if again := s.get(path + "?seed=7&signal=true"); !bytes.Equal(again.body, first.body) {
		t.Error("the same seed plays something else")
	}
	if other := s.get(path + "?seed=8&signal=true"); bytes.Equal(other.body, first.body) {
		t.Error("another seed plays the same")
	}
	for _, wrong := range []string{"?seed=-1", "?seed=9007199254740992", "?seed=a", "?signal=perhaps", "?sed=1"} {
		if r := s.get(path + wrong); r.StatusCode != 422 {
			t.Errorf("%s: %d", wrong, r.StatusCode)
		}
	}
}

// TestSimulationsTakeTurns: who asks for many waits for their own; somebody else's comes after the one that is under way. It notices a line that is
// one for all keys, in which theirs would be the last.
func TestSimulationsTakeTurns(t *testing.T) {
	const many = 12
	s := start(t, Options{})
	_, busy := s.newKey("analyst")
	_, other := s.newKey("analyst")
	var done atomic.Int64
	var all sync.WaitGroup
	play := func(key string, seed int) {
		if r := s.get(fmt.Sprintf("/v1/simulations/feature-selection?seed=%d", seed), "Authorization: Bearer "+key); r.StatusCode != 200 {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	}
	for i := range many {
		all.Go(func() { play(busy, i); done.Add(1) })
	}
	for done.Load() == 0 { // the others have come by then
		time.Sleep(time.Millisecond)
	}
	play(other, 99)
	if before := done.Load(); before > many/2 {
		t.Errorf("%d of %d of a busy key came first", before, many)
	}
	all.Wait()
}
