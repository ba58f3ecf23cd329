package thresholdout

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/pairs"
)

// BoundQuantile is the bound of quantiles that are checked as one question.
const BoundQuantile = "guess-and-check-quantile"

// QuantileSums are the counts that decide about a p-quantile, over one part, at rungs: public points of which the first and the last are the ends of the range that all values are
// in. They are a [Statistic], whose value is the place of a rung between the first, 0, and the last, 1. Counts are in steps of the grid: a unit of one row
// counts grid of them or none, one of several rows by the share of its rows.
type QuantileSums struct {
	All         int64 // units of the part
	P           float64
	Exact       bool  // all units count, each of them as 0 or 1
	Units       int64 // those that count, together
	Below, Upto []int64
}

// Fits implements [Statistic]. What no units have is refused by package pairs, too.
func (q QuantileSums) Fits(units int64) error {
	switch {
	case q.All != units:
		return fmt.Errorf("counts over %d units, the guarantee is about %d", q.All, units)
	case len(q.Below) < 2 || len(q.Below) != len(q.Upto) || !(q.P > 0 && q.P < 1):
		return fmt.Errorf("%d and %d counts for a %v-quantile", len(q.Below), len(q.Upto), q.P)
	case q.Units < 0 || q.Units > q.All*grid || q.Exact && q.Units != q.All*grid:
		return fmt.Errorf("a condition that holds in %v units of %d", float64(q.Units)/float64(grid), q.All)
	}
	return nil
}

// rung is the least rung with at least this share at it or below; the one in the middle where no unit counts.
func (q QuantileSums) rung(share float64) int {
	if q.Units == 0 {
		return (len(q.Upto) - 1) / 2
	}
	i, _ := slices.BinarySearchFunc(q.Upto, share*float64(q.Units), func(upto int64, want float64) int {
		if float64(upto) < want {
			return -1
		}
		return 1
	})
	return min(i, len(q.Upto)-1)
}

// rungBelow is the largest rung with at most this share below it.
func (q QuantileSums) rungBelow(share float64) int {
	i, _ := slices.BinarySearchFunc(q.Below, share*float64(q.Units), func(below int64, want float64) int {
		if float64(below) <= want {
			return -1
		}
		return 1
	})
	return max(i-1, 0)
}

// Value implements [Statistic].
func (q QuantileSums) Value() (float64, bool) {
	return q.place(q.rung(q.P)), q.Units > 0
}

func (q QuantileSums) place(rung int) float64 { return float64(rung) / float64(len(q.Below)-1) }

// Plan implements [Statistic]. The points at which a failure can say where the quantile is lie at the training part's own quantiles, denser near its p-quantile. An analyst's own guess
// moves the spans of a pass: they reach as far from it as they would from the training part's quantile, or as far as the half-width that he asks for.
func (q QuantileSums) Plan(by Planning) (Check, error) {
	last := len(q.Below) - 1
	spans := [][2]int{{0, last}, {0, last}}
	at := []int{0, last}
	own := q.rung(q.P)
	guess, err := q.guessed(by, own)
	if err != nil {
		return nil, err
	}
	c := quantileCheck{guess: guess, rungs: len(q.Below), level: by.Level}
	c.P, c.OneSide = q.P, by.OneSide
	units, training := max(by.N*(q.Units/grid)/q.All, 1), q.Units/grid
	if !q.Exact {
		c.Planned = units
	}
	if training > 0 {
		for l := range spans {
			below, upto := pairs.PlannedShares(units, training, q.P, c.PassLevel(by.Level), by.Deviations*float64(int(1)<<l), !q.Exact)
			if below > 0 {
				spans[l][0] = max(0, guess-max(0, own-q.rungBelow(below)))
			}
			if upto < 1 {
				spans[l][1] = min(last, guess+max(0, q.rung(upto)-own))
			}
		}
		spans[1] = [2]int{min(spans[0][0], spans[1][0]), max(spans[0][1], spans[1][1])}
		at = append(at, q.around(units, training)...)
	}
	if by.Guess != nil && by.Guess.HalfWidth != 0 {
		span, err := q.within(by.Guess, guess, spans[0])
		if err != nil {
			return nil, err
		}
		spans = [][2]int{span}
	}
	for _, s := range spans {
		at = append(at, s[0], s[1])
	}
	slices.Sort(at)
	c.at = slices.Compact(at)
	c.silent = q.Units < q.All*grid && spans[0] == [2]int{0, last}
	for _, rung := range c.at {
		c.Points = append(c.Points, float64(rung))
	}
	for _, s := range spans {
		low, _ := slices.BinarySearch(c.at, s[0])
		high, _ := slices.BinarySearch(c.at, s[1])
		c.Ranks = append(c.Ranks, pairs.Span{Low: low, High: high})
	}
	return c, nil
}

// guessed is the rung nearest to the analyst's guess, if he has one, else own.
func (q QuantileSums) guessed(by Planning, own int) (int, error) {
	steps, err := by.guessed(0)
	if err != nil || by.Guess == nil || by.Guess.Value == nil {
		return own, err
	}
	return int(math.Round(float64(steps) / float64(grid) * float64(len(q.Below)-1))), nil
}

// within are the rungs farthest from a guess that are within the half-width that the analyst asks for. Whether the holdout's quantile is known as well as that is no public fact: where many
// units tie it may be known exactly. So no half-width of a rung or more is refused.
func (q QuantileSums) within(own *Guess, rung int, planned [2]int) ([2]int, error) {
	last := float64(len(q.Below) - 1)
	if !(own.HalfWidth > 0 && own.HalfWidth <= 1) {
		return [2]int{}, fmt.Errorf("thresholdout: half_width %v is not between 0 and 1", own.HalfWidth)
	}
	reach := int(own.HalfWidth*last + rungSlack)
	if reach < 1 {
		return [2]int{}, &WidthError{HalfWidth: own.HalfWidth, Least: 1 / last, Planned: max(q.place(rung-planned[0]), q.place(planned[1]-rung), 1/last)}
	}
	return [2]int{max(rung-reach, 0), min(rung+reach, len(q.Below)-1)}, nil
}

// rungSlack is more than the rounding of a half-width that is a whole number of rungs.
const rungSlack = 1e-6

// around are rungs at the training part's quantiles around p, their distances growing by failurePoints from about a standard deviation of the
// difference of both parts' distribution functions.
func (q QuantileSums) around(units, training int64) (rungs []int) {
	sd := math.Sqrt(q.P * (1 - q.P) * (1/float64(units) + 1/float64(training)))
	for away := sd; away < 1; away *= failurePoints {
		if q.P-away > 0 {
			rungs = append(rungs, q.rungBelow(q.P-away))
		}
		if q.P+away < 1 {
			rungs = append(rungs, q.rung(q.P+away))
		}
	}
	return append(rungs, q.rung(q.P))
}

// failurePoints: neighbouring points are a quarter of their distance from p apart, in shares of the units: where failures begin, at some six standard deviations, about as far as
// is best for cells of a mean. Around a median of 30,000 units they are some 50, for 7 nats a failure.
const failurePoints = 1.25

// quantileCheck is how a quantile is checked: at some of the rungs.
type quantileCheck struct {
	pairs.Quantile
	at    []int // the rungs of its points
	guess int
	rungs int
	level float64 // that thresholds are for

	silent bool // too few units of the training part count, or none: a pass says nothing, and nothing fails
}

func (c quantileCheck) place(rung int) float64 { return float64(rung) / float64(c.rungs-1) }

// Find implements [Check].
func (c quantileCheck) Find(holdout Statistic) (Finding, error) {
	q, ok := holdout.(QuantileSums)
	if !ok || len(q.Below) != c.rungs || q.P != c.P || q.Exact != (c.Planned == 0) {
		return nil, otherStatistic(c, holdout)
	}
	counts := pairs.QuantileCounts{Unit: grid, Units: q.All, N: q.Units}
	for _, rung := range c.at {
		counts.Below, counts.Upto = append(counts.Below, q.Below[rung]), append(counts.Upto, q.Upto[rung])
	}
	o, err := c.Outcome(counts, c.level)
	return quantileFinding{c, o}, err
}

// Expected implements [Check].
func (c quantileCheck) Expected() Finding {
	return quantileFinding{c, pairs.QuantileOutcome{Rank: 1, Span: c.Ranks[0]}}
}

// quantileFinding is what is known of the holdout after it.
type quantileFinding struct {
	check quantileCheck
	pairs.QuantileOutcome
}

// Silent implements [Finding].
func (f quantileFinding) Silent() bool { return f.check.silent }

// Value implements [Finding]: the guess where it passed, the rung in the middle of what a failure says.
func (f quantileFinding) Value() float64 {
	if f.Failed() {
		return f.check.place((f.check.at[f.Span.Low] + f.check.at[f.Span.High]) / 2)
	}
	return f.check.place(f.check.guess)
}

// Margin implements [Finding]. How far the holdout's own quantile may be from the guess is not checked; the interval is.
func (f quantileFinding) Margin() float64 { return 0 }

// Interval implements [Finding]. What was printed at a level says how many units are beyond it at most. That is enough at lower levels, too, and not at higher ones.
func (f quantileFinding) Interval(level float64) (*Interval, bool) {
	if level > f.check.level {
		return nil, false
	}
	span := f.Span
	return &Interval{Low: f.check.place(f.check.at[span.Low]), High: f.check.place(f.check.at[span.High]), Bound: BoundQuantile}, true
}
