package holdout

import (
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// input is the exact sums of one row function.
type input struct{ Training, Holdout thresholdout.Mean }

var errNoMechanism = fail(Unavailable, "the mechanisms are not linked into this build yet")

func newParams(p thresholdout.Params) (thresholdout.Params, error) { return p, nil }

func usesTraining(p thresholdout.Params) bool { return p.Mechanism == thresholdout.Thresholdout }

func slice(p thresholdout.Params, index int64) (from, to int64) {
	width := p.N / p.Questions
	return index * width, (index + 1) * width
}

func preview(thresholdout.Params, thresholdout.State) (halfWidth float64, bound string, ok bool) {
	return 0, "", false
}

func (h *opened) step(state thresholdout.State, in input, q *question, function int) (thresholdout.Output, thresholdout.State, error) {
	return thresholdout.Output{}, state, errNoMechanism
}

func newSource(t *dataset.Table, offsets []uint32, largest int64) (engine.Source, error) {
	return nil, errNoMechanism
}
