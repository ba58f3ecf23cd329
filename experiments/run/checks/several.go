package checks

import (
	"fmt"
	"math"
)

// worst is the comparison that is the farthest off of several, which share its level.
type worst struct {
	Comparison
	all []Comparison
}

// Worst is one comparison for several of a kind: the one with the least P-value stands for all, at an equal part of the level each.
func Worst(what string, all []Comparison) Comparison {
	if len(all) == 1 {
		all[0].What = what
		return all[0]
	}
	at, least := 0, math.Inf(1)
	farthest := 0.0
	for i, c := range all {
		p, far := c.p(), 0.0
		if e, ok := c.hypothesis.(errors); ok {
			far = math.Abs(e.errors())
		}
		if p < least || p == least && far > farthest {
			at, least, farthest = i, p, far
		}
	}
	if len(all) == 0 {
		return Comparison{What: what, hypothesis: meanTest{freedom: -1}}
	}
	c := all[at]
	c.What = fmt.Sprintf("%s, the farthest off of %d (%s)", what, len(all), c.What)
	c.hypothesis = worst{all[at], all}
	return c
}

func (w worst) p() float64 { return math.Min(1, float64(len(w.all))*w.Comparison.p()) }

func (w worst) errors() float64 {
	if e, ok := w.hypothesis.(errors); ok {
		return e.errors()
	}
	return math.NaN()
}

// notices is what the weakest of all notices.
func (w worst) notices(level float64) (fault float64, words string) {
	weakest := math.Inf(-1)
	for _, c := range w.all {
		f, text := c.notices(level / float64(len(w.all)))
		if size := math.Abs(f - c.center()); size > weakest {
			weakest, fault, words = size, f, text
		}
	}
	return fault, words + " in any of them"
}

// center is what the fault is a distance from: of a rate, the rate itself, since a fault is another rate.
func (c Comparison) center() float64 {
	if r, ok := c.hypothesis.(rateTest); ok {
		return r.rate
	}
	return 0
}

// also is a hypothesis that notices something else besides, in words of the experiment.
type also struct {
	hypothesis
	words func(level float64) string
}

// Also adds to what a comparison notices at a level, in words.
func (c Comparison) Also(words func(level float64) string) Comparison {
	c.hypothesis = also{c.hypothesis, words}
	return c
}

func (a also) notices(level float64) (float64, string) {
	fault, words := a.hypothesis.notices(level)
	return fault, words + "; " + a.words(level)
}

func (a also) errors() float64 {
	if e, ok := a.hypothesis.(errors); ok {
		return e.errors()
	}
	return math.NaN()
}

// RefusedFrom is the least number of events in so many runs that a comparison of a rate with an upper limit refuses at a level; more than
// there are runs where it refuses none.
func RefusedFrom(runs int, limit, level float64) int { return refusedFrom(runs, limit, level) }
