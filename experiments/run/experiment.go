// Package run is the framework of the experiments: what an experiment is, how its work is repeated and continued after an
// interruption, how measured rows are summarised and compared with what was expected, and how a report is written.
//
// An [Experiment] is a function of its [Options]: the same seed gives the same numbers on any number of cores, and however often it was
// interrupted. Its work is done by [Repeat], piece by piece; a [Checkpoint] keeps what is finished. A [Result] has measured rows,
// comparisons with a paper or a theorem by a stated criterion, and figures. [Perform] runs an experiment and writes all of that with a
// report that stands alone; [WriteIndex] writes one page of several.
//
// It knows no experiment and no mechanism.
package run

import (
	"context"
	"fmt"
	"strconv"
)

// Experiment is one of All.
type Experiment struct {
	Name  string
	Short string  // one line for a list, without a full stop
	Paper string  // what the paper reports and where, or what the theory says: sentences for the report
	Flags []Flag  // its own, beside those of every experiment
	Small Options // a size that a test can afford; its rows are compared with stored expectations

	// Run measures. On an error, that of a cancelled context included, the result has what was finished until then.
	// Equal options give equal results, on any number of cores and however often interrupted: work is done by Repeat.
	Run func(ctx context.Context, o Options) (Result, error)
}

// Flag is an option of one experiment. One whose default is "true" or "false" is a switch.
type Flag struct {
	Name, Default, Usage string
	Secret               bool // never written to a file
}

// Options of an experiment.
type Options struct {
	Seed        uint64
	Repetitions int                                // 0 is the experiment's own number
	Quick       bool                               // a smaller grid
	Set         map[string]string                  // the experiment's own flags; what is missing has its default
	Progress    func(part string, done, total int) // nil: nobody watches. Calls do not overlap
	Checkpoint  *Checkpoint                        // nil: nothing is stored
}

// Text is the value of one of the experiment's flags, "" where it is not set.
func (o Options) Text(name string) string { return o.Set[name] }

// Switch reports whether a switch is on.
func (o Options) Switch(name string) bool { return o.Set[name] == "true" }

// Int is the value of a flag that is a positive whole number, or otherwise where it is not set.
func (o Options) Int(name string, otherwise int) (int, error) {
	text := o.Set[name]
	if text == "" {
		return otherwise, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 {
		return 0, fmt.Errorf("experiments: --%s is a whole number from 1 up, not %q", name, text)
	}
	return v, nil
}

// RepetitionsOr is the number of runs that was asked for, else the experiment's own.
func (o Options) RepetitionsOr(own int) int {
	if o.Repetitions > 0 {
		return o.Repetitions
	}
	return own
}
