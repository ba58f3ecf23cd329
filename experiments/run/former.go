package run

import (
	"fmt"
	"math"
)

// Within is a check that a measured mean is no farther than a tolerance from what is expected.
func Within(what string, expected, tolerance float64, r Row) Check {
	return Check{What: what, Expected: expected, Got: r.Mean, Low: r.Low, High: r.High,
		Criterion: fmt.Sprintf("within %v", tolerance), Agrees: math.Abs(r.Mean-expected) <= tolerance}
}

// AtMost is a check that a measured mean is not above a limit: it fails where the whole interval is.
func AtMost(what string, limit float64, r Row) Check {
	return Check{What: what, Expected: limit, Got: r.Mean, Low: r.Low, High: r.High,
		Criterion: "at most; the interval begins no higher", Agrees: r.Low <= limit}
}

// AtLeast is a check that a measured mean is not below a limit: it fails where the whole interval is.
func AtLeast(what string, limit float64, r Row) Check {
	return Check{What: what, Expected: limit, Got: r.Mean, Low: r.Low, High: r.High,
		Criterion: "at least; the interval ends no lower", Agrees: r.High >= limit}
}

const (
	// nearErrors is how many standard errors are allowed beside a tolerance: by chance a mean is farther once in two million times.
	nearErrors = 5
	// rateLevel is how often a rate's interval misses by chance.
	rateLevel = 1e-6
)

// Near is a check that a mean is within a tolerance and some standard errors of what is expected.
func Near(what string, expected, tolerance float64, r Row) Check {
	c := Within(what, expected, tolerance+nearErrors*r.SD/math.Sqrt(float64(r.Repetitions)), r)
	c.Criterion = fmt.Sprintf("within %v and %d standard errors", tolerance, nearErrors)
	return c
}

// NearRate is a check that a rate may have the probability that is expected.
func NearRate(what string, expected float64, r Row) Check {
	low, high := RateInterval(r.Events(), int64(r.Repetitions), rateLevel)
	return Check{What: what, Expected: expected, Got: r.Mean, Low: r.Low, High: r.High,
		Criterion: fmt.Sprintf("within the Clopper-Pearson interval at level 1-%v", rateLevel), Agrees: low <= expected && expected <= high}
}
