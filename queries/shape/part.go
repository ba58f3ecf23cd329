package shape

import (
	"slices"

	"github.com/holdoutd/holdoutd/queries/interval"
)

// Part is a released mean of one row function, in [0,1].
type Part struct {
	Function  int // the index in Functions of the row function that it is the mean of; [Plan.Release] sets it
	Value     float64
	Low, High float64 // the interval, where Bounded; parts of one answer hold simultaneously
	Bounded   bool
	Missing   bool // it was not released
	// Fresh says that nothing had been told of the units that the part is a mean of, before the request that it belongs to; then
	// Units is their number and Sigma the standard deviation of its noise.
	Fresh bool
	Units int64
	Sigma float64
	// At is the interval that the part would have if any interval of the guarantee missed with probability at most level; false where
	// it is not known; nil where no level is. Tests make p-values of it.
	At func(level float64) (low, high float64, ok bool)
	// Alone is the interval of a question that was fixed before anything had been told of the units: at a level E each of its ends misses with probability at most e^-E, and what is said at a lower
	// level is within what is said at a higher one. nil where the part is not read so.
	Alone func(level float64) (low, high float64)
}

// interval is the part's interval within [0,1].
func (p Part) interval() interval.Interval {
	if !p.Bounded {
		return interval.Interval{Low: 0, High: 1}
	}
	return interval.Interval{Low: p.Low, High: p.High}.Clip(0, 1)
}

// bounded reports whether all parts have intervals.
func bounded(parts []Part) bool {
	return !slices.ContainsFunc(parts, func(p Part) bool { return !p.Bounded })
}

// Choice is the outcome of a Selection: the index of the function with the largest mean, within its release.
type Choice struct {
	Index   int
	Regret  float64 // its mean in the population is at most so much less than the largest one, where Bounded
	Bounded bool
}

// Outcome is what was released of a plan.
type Outcome struct {
	N       int64    // units of the holdout
	Level   float64  // the probability that any interval of the guarantee misses; 0 where it is not known
	Parts   []Part   // in the order of Functions; of a search, of those on its way; none for functions of Choices
	Choices []Choice // of the selections that were released as one
}

// At is what was released with its intervals at another level; false where they are not known.
func (o Outcome) At(level float64) (Outcome, bool) {
	parts := slices.Clone(o.Parts)
	for i := range parts {
		p := &parts[i]
		if p.At == nil || p.Missing {
			return o, false
		}
		var ok bool
		if p.Low, p.High, ok = p.At(level); !ok {
			return o, false
		}
		p.Bounded = true
	}
	o.Parts = parts
	return o, len(parts) > 0
}
