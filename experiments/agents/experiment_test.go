package agents

import (
	"testing"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/runtest"
)

// TestExperiment: a small run that is interrupted and continued writes its report and finds what is stored of other seeds.
func TestExperiment(t *testing.T) { runtest.Check(t, Experiment) }

// TestAgrees: a quick run agrees with what is expected; it is what planted faults have to change.
func TestAgrees(t *testing.T) {
	runtest.Agrees(t, Experiment, run.Options{Quick: true, Repetitions: 20, Set: map[string]string{"configurations": "20"}})
}
