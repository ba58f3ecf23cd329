// Package sourcetest is what every source must pass: the contract of package sources, and sums that are bit by bit those of an [engine.Table] over the same rows, for random row
// functions and for those that engines are known to sum in ways of their own. It also has a source in memory ([Memory]), for the tests of whoever uses sources.
package sourcetest

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/sources"
)

var _ engine.MomentSource = sources.Part(nil)

// Options are a source and what its tables can hold.
type Options struct {
	// Open opens the source; the suite closes it.
	Open func(t testing.TB) sources.Source
	// Load makes the owner's table of these rows, in this order where the source knows rows by their places, and returns what the owner calls it. name is of small letters and digits.
	Load func(t testing.TB, name string, rows Rows) (table string)
	// Replace makes a table hold other rows of the same columns.
	Replace func(t testing.TB, table string, rows Rows)

	// Instant is the nearest moment that a table of the source can hold; nil: it holds all.
	Instant func(microseconds int64) int64
	// Text reports whether a table of the source can hold a text; nil: it holds all.
	Text func(text string) bool

	// Faults make what a source must notice by itself, by the name of the fault: each spoils a finished part where the source keeps it. Open, Check and all sums must then say that
	// it has changed, or fail; they must not answer.
	Faults map[string]func(t testing.TB, part sources.PartInfo)

	Programs int // random row functions; 0: enough for some seconds in memory
	Rows     int // of the tables that they are summed over; 0: 700
}

// DefaultPrograms and DefaultRows are what Options leave open.
const (
	DefaultPrograms = 600
	DefaultRows     = 700
)

// ProgramsVariable is that of the environment which bounds the programs of each kind, of rows and of units: engines take seconds for a hundred, or minutes.
const ProgramsVariable = "HOLDOUTD_PROGRAMS"

// Run runs the suite. Everything in it is drawn of fixed seeds.
func Run(t *testing.T, o Options) { run(tests{t}, o) }

// run runs the tests of some names, or all.
func run(t T, o Options, only ...string) {
	if o.Programs == 0 {
		o.Programs = DefaultPrograms
	}
	if most, err := strconv.Atoi(os.Getenv(ProgramsVariable)); err == nil {
		o.Programs = min(o.Programs, most)
	}
	if o.Rows == 0 {
		o.Rows = DefaultRows
	}
	s := &suite{Options: o}
	for _, test := range []struct {
		name string
		run  func(t T, s *suite)
	}{
		{"looks", looks},
		{"looks_at_what_is_not_there", looksAtNothing},
		{"units", units},
		{"units_that_are_refused", refusedUnits},
		{"division", division},
		{"division_of_a_changed_table", changedTable},
		{"division_that_fails", failedDivision},
		{"parts", parts},
		{"parts_that_are_not_as_they_were", changedParts},
		{"sums_directed", directedSums},
		{"sums_of_rows", randomSumsOfRows},
		{"sums_of_units", randomSumsOfUnits},
		{"sums_of_narrow_columns", narrowSums},
		{"sums_at_once", concurrentSums},
		{"faults", spoiledParts},
	} {
		if len(only) > 0 && !slices.Contains(only, test.name) {
			continue
		}
		t.Run(test.name, func(t T) {
			s.src = s.Open(t)
			t.Cleanup(func() { _ = s.src.Close() })
			test.run(t, s)
		})
	}
}

// suite is the options and the source that is open.
type suite struct {
	Options
	src    sources.Source
	tables int
}

// rowsHavePlaces reports whether the source knows rows without a key.
func (s *suite) rowsHavePlaces() bool {
	p, ok := s.src.(sources.Placed)
	return ok && p.RowsHavePlaces()
}
