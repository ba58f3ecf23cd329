package featureselection

import (
	"context"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/run/runtest"
)

// TestPublishedNumbers: a tenth of the published repetitions, at the published size, agrees with the reference.
func TestPublishedNumbers(t *testing.T) {
	o := runtest.Small(Experiment, 7)
	o.Set["n"], o.Repetitions = "10000", 10
	r, err := measure(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Checks) != 52 {
		t.Fatalf("%d checks", len(r.Checks))
	}
	for _, c := range r.Disagreeing() {
		t.Errorf("%+v", c)
	}
}
