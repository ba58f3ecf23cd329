package runtest

import (
	"testing"

	"github.com/holdoutd/holdoutd/experiments/run"
)

// TestCompatible: rows a little apart are taken for the same, and rows far apart, or rates, are not.
func TestCompatible(t *testing.T) {
	stored := run.Row{Mean: 0.5, SD: 0.01, Repetitions: 100}
	rate := run.Row{Mean: 0.01, Repetitions: 1000, Rate: true}
	for _, c := range []struct {
		a, b run.Row
		want bool
	}{
		{run.Row{Mean: 0.505, SD: 0.01, Repetitions: 10}, stored, true},
		{run.Row{Mean: 0.53, SD: 0.01, Repetitions: 10}, stored, false},
		{run.Row{Mean: 0.05, Repetitions: 20, Rate: true}, rate, true},
		{run.Row{Mean: 0.75, Repetitions: 20, Rate: true}, rate, false},
		{run.Row{Mean: 0.51, SD: 0.01, Repetitions: 2}, pool(run.Row{Mean: 0.49, SD: 0.01, Repetitions: 50}, run.Row{Mean: 0.51, SD: 0.01, Repetitions: 50}), true},
		{run.Row{Mean: 7}, run.Row{Mean: 7}, true},
		{run.Row{Mean: 7}, run.Row{Mean: 7.001}, false},
	} {
		if compatible(c.a, c.b, 1e-6) != c.want {
			t.Errorf("%+v and %+v: want %v", c.a, c.b, c.want)
		}
	}
}
