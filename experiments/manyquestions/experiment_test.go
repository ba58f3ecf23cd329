package manyquestions

import (
	"testing"

	"github.com/holdoutd/holdoutd/experiments/run/runtest"
)

// TestExperiment: a small run that is interrupted and continued writes its report and finds what is stored of other seeds.
func TestExperiment(t *testing.T) { runtest.Check(t, Experiment) }

// TestAgrees: a quick run finds what was expected.
func TestAgrees(t *testing.T) { runtest.Agrees(t, Experiment) }
