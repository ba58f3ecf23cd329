package checks

import (
	"fmt"
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"

	"github.com/holdoutd/holdoutd/dp/binomial"
)

// Count is how often something happened in independent runs.
type Count struct{ Events, Runs int }

// interval is that of Clopper and Pearson at 95%.
func (c Count) interval() (low, high float64) {
	level := math.Log(2 / 0.05)
	return binomial.Low(float64(c.Runs), float64(c.Events), level), binomial.High(float64(c.Runs), float64(c.Events), level)
}

// rateTest is about a probability, by exact binomial tails.
type rateTest struct {
	side side
	rate float64
	Count
}

// RateAtMost is a comparison of a rate with a probability that it must not exceed.
func RateAtMost(what string, limit float64, c Count) Comparison {
	return c.compare(what, rateTest{side: atMost, rate: limit, Count: c})
}

// RateAtLeast is a comparison of a rate with a probability that it must not fall below.
func RateAtLeast(what string, limit float64, c Count) Comparison {
	return c.compare(what, rateTest{side: atLeast, rate: limit, Count: c})
}

// RateIs is a comparison of a rate with a probability.
func RateIs(what string, expected float64, c Count) Comparison {
	return c.compare(what, rateTest{side: equal, rate: expected, Count: c})
}

// RateAbove is a comparison that demands that a rate is shown to be above a limit: an effect has to be seen.
func RateAbove(what string, limit float64, c Count) Comparison {
	return c.compare(what, shownRate{rateTest{side: atMost, rate: limit, Count: c}})
}

func (c Count) compare(what string, h hypothesis) Comparison {
	low, high := c.interval()
	limit := 0.0
	switch h := h.(type) {
	case rateTest:
		limit = h.rate
	case shownRate:
		limit = h.rate
	}
	return Comparison{What: what, Expected: limit, Got: float64(c.Events) / float64(max(1, c.Runs)), Low: low, High: high, hypothesis: h}
}

// atLeastEvents is the probability of as many events or more in runs with a probability of each.
func atLeastEvents(events, runs int, rate float64) float64 {
	switch {
	case events <= 0 || rate >= 1:
		return 1
	case events > runs || rate <= 0:
		return 0
	}
	return mathext.RegIncBeta(float64(events), float64(runs-events+1), rate)
}

// atMostEvents is the probability of as many events or fewer.
func atMostEvents(events, runs int, rate float64) float64 {
	return atLeastEvents(runs-events, runs, 1-rate)
}

func (t rateTest) p() float64 {
	if t.Runs == 0 {
		return 0 // nothing was measured
	}
	over, under := atLeastEvents(t.Events, t.Runs, t.rate), atMostEvents(t.Events, t.Runs, t.rate)
	switch t.side {
	case atMost:
		return over
	case atLeast:
		return under
	}
	return min(1, 2*min(over, under))
}

func (t rateTest) criterion() string {
	switch t.side {
	case atMost:
		return "at most"
	case atLeast:
		return "at least"
	}
	return "equal"
}

func (t rateTest) test() string { return fmt.Sprintf("exact binomial, %d runs", t.Runs) }

// refusedFrom is the least number of events that a test against too many refuses at a level; more than there are runs where it refuses none.
func refusedFrom(runs int, rate, level float64) int {
	return sort.Search(runs+1, func(events int) bool { return atLeastEvents(events, runs, rate) < level })
}

// leastNoticed is the least probability at which so many events or more are seen with probability Detection.
func leastNoticed(events, runs int) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if middle := (low + high) / 2; atLeastEvents(events, runs, middle) >= Detection {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func (t rateTest) notices(level float64) (float64, string) {
	tail := level
	if t.side == equal {
		tail = level / 2
	}
	upper, lower := math.Inf(1), math.Inf(-1)
	if c := refusedFrom(t.Runs, t.rate, tail); t.side != atLeast && c <= t.Runs {
		upper = leastNoticed(c, t.Runs)
	}
	if c := refusedFrom(t.Runs, 1-t.rate, tail); t.side != atMost && c <= t.Runs {
		lower = 1 - leastNoticed(c, t.Runs)
	}
	switch {
	case math.IsInf(upper, 1) && math.IsInf(lower, -1):
		return math.Inf(1), fmt.Sprintf("nothing: %d runs are too few", t.Runs)
	case math.IsInf(lower, -1):
		return upper, fmt.Sprintf("a rate of %.2g", upper)
	case math.IsInf(upper, 1):
		return lower, fmt.Sprintf("a rate of %.2g", lower)
	}
	if upper-t.rate < t.rate-lower {
		return upper, fmt.Sprintf("a rate of %.2g or %.2g", lower, upper)
	}
	return lower, fmt.Sprintf("a rate of %.2g or %.2g", lower, upper)
}

// shownRate is a rateTest that has to be refused.
type shownRate struct{ rateTest }

func (t shownRate) shown()            {}
func (t shownRate) criterion() string { return "shown to be above" }

func (t shownRate) p() float64 {
	if t.Runs == 0 {
		return 1 // nothing is shown
	}
	return t.rateTest.p()
}

func (t shownRate) notices(level float64) (float64, string) {
	c := refusedFrom(t.Runs, t.rate, level)
	if c > t.Runs {
		return math.Inf(1), fmt.Sprintf("that %d runs are too few to show anything", t.Runs)
	}
	return float64(c) / float64(t.Runs), fmt.Sprintf("an effect in fewer than %d of %d runs", c, t.Runs)
}
