package run

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/dp/binomial"
)

const (
	// FalseAlarm is the probability with which a program without a fault fails any check of a run, all of them together: where every
	// experiment runs every night, once in two years. Ten times more of it would make limits a twelfth narrower only.
	FalseAlarm = 1e-4
	// Power is the probability with which a check fails where the fault is as large as its Notices says.
	Power = 0.9
)

// Check compares one number with what a paper reports or a theorem says.
type Check struct {
	What      string  `json:"what"`
	Expected  float64 `json:"expected"` // or the limit, where the criterion is one-sided
	Got       float64 `json:"got"`
	Low       float64 `json:"low"` // 95% interval of Got
	High      float64 `json:"high"`
	Error     float64 `json:"error,omitempty"` // standard error of Got less Expected, 0 where that is arithmetic or a count
	Criterion string  `json:"criterion"`       // in words: what had to hold

	FalseAlarm float64 `json:"false_alarm,omitempty"` // the probability with which it fails without a fault, 0 where nothing is random
	Notices    string  `json:"notices"`               // in words: the smallest fault that it finds with probability Power
	Agrees     bool    `json:"agrees"`
}

// Checks are the checks of one run. Each comparison of random numbers has an equal share of [FalseAlarm], so that none is decided before all
// are known.
type Checks struct {
	open        []openCheck
	comparisons int
	stated      float64
}

type openCheck struct {
	comparisons int
	stated      float64 // false alarm, where it is not a share
	decide      func(alpha float64) Check
}

// Add takes a check that is made of this many comparisons of random numbers, each of which may fail without a fault with probability alpha.
func (c *Checks) Add(comparisons int, decide func(alpha float64) Check) {
	c.open = append(c.open, openCheck{comparisons: comparisons, decide: decide})
	c.comparisons += comparisons
}

// Stated takes a check that is decided, with the probability with which it fails without a fault: 0 where nothing is random. All of them leave
// something of [FalseAlarm] to the others.
func (c *Checks) Stated(falseAlarm float64, check Check) {
	c.open = append(c.open, openCheck{stated: falseAlarm, decide: func(float64) Check { return check }})
	c.stated += falseAlarm
}

// Decide are the checks, in their order.
func (c *Checks) Decide() []Check {
	return c.DecideAt((FalseAlarm - c.stated) / float64(max(1, c.comparisons)))
}

// DecideAt are the checks where each comparison has this false-alarm probability: those of a part of a run, whose share is known.
func (c *Checks) DecideAt(alpha float64) []Check {
	decided := make([]Check, len(c.open))
	for i, open := range c.open {
		decided[i] = open.decide(alpha)
		decided[i].FalseAlarm = open.stated + alpha*float64(open.comparisons)
	}
	return decided
}

// Arithmetic takes a check of two numbers that nothing random is in: they differ by at most a part of what is expected.
func (c *Checks) Arithmetic(what string, expected, relative, got float64) {
	c.Add(0, func(float64) Check {
		return Check{What: what, Expected: expected, Got: got, Low: got, High: got, Criterion: fmt.Sprintf("within a part of %v", relative),
			Notices: fmt.Sprintf("a part of %v", relative), Agrees: math.Abs(got-expected) <= relative*math.Abs(expected)}
	})
}

// side is where a measured number may be.
type side int

const (
	equal   side = iota // neither above nor below
	atMost              // not above
	atLeast             // not below
)

// Equal takes a check that a row's mean, or its rate, is what is expected, but for a slack: what theory is known to leave out.
func (c *Checks) Equal(what string, expected, slack float64, r Row) {
	c.add(what, equal, expected, slack, r)
}

// AtMost takes a check that a row's mean, or its rate, is not above a limit.
func (c *Checks) AtMost(what string, limit float64, r Row) { c.add(what, atMost, limit, 0, r) }

// AtLeast takes a check that a row's mean, or its rate, is not below a limit.
func (c *Checks) AtLeast(what string, limit float64, r Row) { c.add(what, atLeast, limit, 0, r) }

// Worst takes a check that the largest of several rates is not above a limit: r is the row of that one, each may be above by chance.
func (c *Checks) Worst(of int, what string, limit float64, r Row) {
	c.Add(of, func(alpha float64) Check {
		var one Checks
		one.AtMost(what, limit, r)
		return one.DecideAt(alpha)[0]
	})
}

// shownRuns are the fewest runs from which on a check asks that something is shown: fewer would not show what is there.
const shownRuns = 20

// Above takes a check that a row's mean is surely above a limit: what is to be shown is there, and larger than chance makes it. Of few runs it
// asks nothing.
func (c *Checks) Above(what string, limit float64, r Row) {
	c.Add(1, func(alpha float64) Check {
		check := Check{What: what, Expected: limit, Got: r.Mean, Low: r.Low, High: r.High}
		check.ofMean(atMost, 0, alpha, r)
		switch {
		case r.Repetitions < shownRuns:
			check.Agrees, check.Criterion, check.Notices = true, fmt.Sprintf("none: fewer than %d runs", shownRuns), "nothing"
		default:
			check.Agrees = !check.Agrees
			check.Criterion = strings.Replace(check.Criterion, "at most", "more than", 1)
			check.Notices = "a mean that is not above"
		}
		return check
	})
}

// Estimate takes a check that a number is what is expected, but for a slack. It is nearly normal, and its standard error is known.
func (c *Checks) Estimate(what string, expected, slack, got, standard float64) {
	c.Add(1, func(alpha float64) Check {
		check := Check{What: what, Expected: expected, Got: got, Low: got - studentQuantile(many)*standard, High: got + studentQuantile(many)*standard}
		check.ofMean(equal, slack, alpha, Row{Mean: got, SD: standard * math.Sqrt(many), Repetitions: many})
		return check
	})
}

// many are so many repetitions that Student's law is the normal one.
const many = 1 << 40

func (c *Checks) add(what string, s side, expected, slack float64, r Row) {
	c.Add(1, func(alpha float64) Check {
		check := Check{What: what, Expected: expected, Got: r.Mean, Low: r.Low, High: r.High}
		if r.Rate {
			check.ofRate(s, slack, alpha, r)
		} else {
			check.ofMean(s, slack, alpha, r)
		}
		return check
	})
}

// ofMean decides by Student's t.
func (c *Check) ofMean(s side, slack, alpha float64, r Row) {
	if r.Repetitions < 2 {
		c.Agrees, c.Criterion, c.Notices = true, "none: one run has no spread", "nothing"
		return
	}
	c.Error = r.SD / math.Sqrt(float64(r.Repetitions))
	freedom := float64(r.Repetitions - 1)
	off, errors, word := r.Mean-c.Expected, Student(1-alpha, freedom), "above by"
	switch s {
	case equal:
		off, errors, word = math.Abs(off), Student(1-alpha/2, freedom), "off by"
	case atLeast:
		off, word = -off, "below by"
	}
	c.Criterion = fmt.Sprintf("%s at most %s, %.1f standard errors", word, shortNumber(slack+errors*c.Error), errors)
	if slack > 0 {
		c.Criterion += " beside " + shortNumber(slack)
	}
	c.Notices = fmt.Sprintf("a mean %s %s", word, shortNumber(slack+(errors+Student(Power, freedom))*c.Error))
	c.Agrees = off <= slack+errors*c.Error+rounding*math.Abs(c.Expected)
}

// rounding is what sums of doubles may differ by, as a part.
const rounding = 1e-9

// ofRate decides by the ends of Clopper and Pearson.
func (c *Check) ofRate(s side, slack, alpha float64, r Row) {
	share := alpha // of one end
	if s == equal {
		share = alpha / 2
	}
	runs, events, level := float64(r.Repetitions), float64(r.Events()), math.Log(1/share)
	above := s != atLeast && binomial.Low(runs, events, level) > c.Expected+slack
	below := s != atMost && binomial.High(runs, events, level) < c.Expected-slack
	c.Agrees = !above && !below
	from, to := failingRates(c.Expected-slack, c.Expected+slack, r.Repetitions, level)
	var limits, noticed []string
	if s != atLeast {
		limits, noticed = append(limits, fmt.Sprintf("fewer than %d", from)), append(noticed, reached(from, r.Repetitions))
	}
	if s != atMost {
		limits, noticed = append(limits, fmt.Sprintf("more than %d", to)), append(noticed, missed(to, r.Repetitions))
	}
	c.Criterion = fmt.Sprintf("%s of %d", join(limits), r.Repetitions)
	c.Notices = join(noticed)
}

func join(words []string) string {
	if len(words) == 2 {
		return words[0] + " and " + words[1]
	}
	return words[0]
}

// failingRates are the fewest events of runs that are too many for a rate of high, and the most that are too few for one of low: runs+1 and
// -1 where none are.
func failingRates(low, high float64, runs int, level float64) (from, to int) {
	for from = 0; from <= runs && binomial.Low(float64(runs), float64(from), level) <= high; from++ {
	}
	for to = runs; to >= 0 && binomial.High(float64(runs), float64(to), level) >= low; to-- {
	}
	return from, to
}

// reached is the rate at which there are this many events with probability Power.
func reached(events, runs int) string {
	if events > runs {
		return "no rate: there are too few runs"
	}
	return "a rate from " + shortNumber(binomial.High(float64(runs), float64(events-1), -math.Log(1-Power))) + " up"
}

// missed is the rate at which there are no more events with probability Power.
func missed(events, runs int) string {
	if events < 0 {
		return "no smaller rate: there are too few runs"
	}
	return "a rate up to " + shortNumber(binomial.Low(float64(runs), float64(events+1), -math.Log(1-Power)))
}

// Exponent takes a check that a fitted exponent is theory's, but for a slack: what sizes that are finite are known to do to it.
func (c *Checks) Exponent(what string, expected, slack float64, f Fit) {
	c.Add(1, func(alpha float64) Check {
		r := Row{Mean: f.Exponent, Low: f.Low, High: f.High, SD: f.Error * math.Sqrt(float64(f.Points-1)), Repetitions: f.Points - 1} // a line takes two points' freedom
		check := Check{What: what, Expected: expected, Got: f.Exponent, Low: f.Low, High: f.High}
		check.ofMean(equal, slack, alpha, r)
		return check
	})
}
