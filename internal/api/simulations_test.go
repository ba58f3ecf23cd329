package api

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/await"
	"github.com/holdoutd/holdoutd/internal/turns"
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
	const many = 5
	s := start(t, Options{}, holdout.Limits{Wait: await.Patience})
	_, busy := s.newKey("analyst")
	_, other := s.newKey("analyst")
	place, err := s.api.simulations.Acquire(t.Context(), "somebody", turns.Load{Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	come := 0
	played := make(chan string, many+1)
	play := func(key string, seed int) { // and wait until it is in the line
		all.Go(func() {
			if r := s.get(fmt.Sprintf("/v1/simulations/feature-selection?seed=%d", seed), "Authorization: Bearer "+key); r.StatusCode != 200 {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
			played <- key
		})
		come++
		await.Until(t, "a request is in the line", func() bool { _, _, waiting := s.api.simulations.Load(); return waiting == come })
	}
	for i := range many {
		play(busy, i)
	}
	play(other, 99)
	place.Release()
	all.Wait()
	close(played)
	before := 0
	for key := range played {
		if key == other {
			break
		}
		before++
	}
	if before > 2 { // one that was under way, and one whose reply was faster
		t.Errorf("%d of %d of a busy key came first", before, many)
	}
}
