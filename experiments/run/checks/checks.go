// Package checks decides whether what an experiment measured agrees with what was expected, and says of every comparison which fault it
// would have noticed.
//
// A [Comparison] is one hypothesis about a run: a mean has a value, a rate is at most what was promised, two samples have one spread or one
// shape. [Judge] tests all comparisons of a run together. If all hypotheses hold, any of them is refused with probability at most the
// run's false-alarm probability: each is tested at an equal share of it (Bonferroni). Holm's method would refuse none more while all
// hypotheses hold, and its levels are known only afterwards; with equal shares the power of each comparison can be stated.
//
// Counts are tested by exact binomial tails, means by Student's t with the stated degrees of freedom, spreads by F with degrees of freedom that
// follow the kurtosis, shapes by chi-square or by the distance of Kolmogorov and Smirnov. Student's t and F are exact for normal values, and
// good for means of many; from [LeastRuns] runs up they are used for others.
//
// Every comparison has a power: the smallest fault that it notices with probability [Detection], in the units of what is compared.
package checks

import "math"

const (
	// RunFalseAlarm is the probability with which any comparison of one run disagrees although everything is as expected.
	RunFalseAlarm = 1e-3
	// Detection is the probability with which the stated smallest fault is noticed.
	Detection = 0.9
	// LeastRuns is how many runs of values that are not normal a mean or a spread needs for its test to be trusted.
	LeastRuns = 20
)

// Comparison is what was measured beside what was expected, not yet judged.
type Comparison struct {
	What      string
	Expected  float64 // or the limit, where the hypothesis is one-sided
	Got       float64
	Low, High float64 // interval of Got, for the reader
	hypothesis
}

// hypothesis is what a comparison tests.
type hypothesis interface {
	// criterion says in words what has to hold, and test how that is tested.
	criterion() string
	test() string
	// p is the probability of data as far from the hypothesis, or farther, if it holds.
	p() float64
	// notices is the smallest fault that is noticed with probability Detection at this level, in the units of what is compared: infinite
	// where none is.
	notices(level float64) (fault float64, words string)
}

// errors is implemented by hypotheses whose distance is a number of standard errors.
type errors interface{ errors() float64 }

// owned is implemented by hypotheses that bring their own false-alarm probability, which no P-value tells.
type owned interface{ falseAlarm() float64 }

// shown is implemented by hypotheses that have to be refused: an effect has to be seen.
type shown interface{ shown() }

// Check is a comparison that was judged.
type Check struct {
	What      string   `json:"what"`
	Expected  float64  `json:"expected"` // or the limit, where the criterion is one-sided
	Got       float64  `json:"got"`
	Low       float64  `json:"low"` // interval of Got
	High      float64  `json:"high"`
	Criterion string   `json:"criterion"`                 // in words: what had to hold
	Test      string   `json:"test"`                      // how it was tested
	Errors    *float64 `json:"standard_errors,omitempty"` // how far Got is from Expected, where that has standard errors
	P         float64  `json:"p"`                         // probability of as much, if it holds
	Level     float64  `json:"level"`                     // it agrees down to this P
	Fault     *float64 `json:"smallest_fault,omitempty"`  // that is noticed with probability Detection; absent where none is
	Notices   string   `json:"notices"`                   // the same in words
	Agrees    bool     `json:"agrees"`
}

// Judge tests the comparisons of one run at a false-alarm probability for all of them together. Comparisons of numbers that chance does not
// move take no share of it, and those that bring a false-alarm probability of their own take that; the others share the rest equally.
func Judge(all []Comparison, falseAlarm float64) []Check {
	shares, rest := 0, falseAlarm
	for _, c := range all {
		if c.test() == exactTest {
			continue
		}
		if h, ok := c.hypothesis.(owned); ok {
			rest -= h.falseAlarm()
		} else {
			shares++
		}
	}
	level := max(0, rest) / float64(max(1, shares))
	checks := make([]Check, len(all))
	for i, c := range all {
		checks[i] = c.judge(level)
	}
	return checks
}

func (c Comparison) judge(level float64) Check {
	if o, ok := c.hypothesis.(owned); ok {
		level = o.falseAlarm()
	}
	k := Check{What: c.What, Expected: c.Expected, Got: c.Got, Low: c.Low, High: c.High, Criterion: c.criterion(), Test: c.test(), P: c.p(), Level: level}
	k.Agrees = k.P >= level && k.P > 0
	if _, ok := c.hypothesis.(shown); ok {
		k.Agrees = k.P < level
	}
	if e, ok := c.hypothesis.(errors); ok {
		if v := e.errors(); !math.IsInf(v, 0) && !math.IsNaN(v) {
			k.Errors = &v
		}
	}
	fault, words := c.notices(level)
	if k.Notices = words; !math.IsInf(fault, 0) && !math.IsNaN(fault) {
		k.Fault = &fault
	}
	return k
}

// FalseAlarm is the probability with which any of the checks of a run disagrees although everything is as expected, as Judge has shared it.
func FalseAlarm(judged []Check) float64 {
	sum := 0.0
	for _, c := range judged {
		if c.Test != exactTest {
			sum += c.Level
		}
	}
	return sum
}

// Agree reports whether all checks do, and how many.
func Agree(judged []Check) (all bool, count int) {
	for _, c := range judged {
		if c.Agrees {
			count++
		}
	}
	return count == len(judged), count
}
