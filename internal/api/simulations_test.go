package api

import (
	"bytes"
	"testing"
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
