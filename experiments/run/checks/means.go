package checks

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// sides of a hypothesis about a mean.
type side int

const (
	equal side = iota
	atMost
	atLeast
	above // has to be seen
)

// meanTest is about how far a mean is from a number, in standard errors.
type meanTest struct {
	side       side
	difference float64 // measured less expected
	allowed    float64 // a difference that the expectation itself leaves open
	standard   float64 // error of the difference
	freedom    float64 // degrees of freedom of the standard error; infinite for a normal variable of known spread
	unit       string  // what is compared: "a mean", "an exponent"
}

// Equal is a comparison of a mean with an expected number, that may be off by what the expectation leaves open (0 for an exact one).
func Equal(what string, expected, allowed float64, s Sample) Comparison {
	return s.compare(what, expected, meanTest{side: equal, allowed: allowed})
}

// AtMost is a comparison of a mean with a limit that it must not exceed.
func AtMost(what string, limit float64, s Sample) Comparison {
	return s.compare(what, limit, meanTest{side: atMost})
}

// AtLeast is a comparison of a mean with a limit that it must not fall below.
func AtLeast(what string, limit float64, s Sample) Comparison {
	return s.compare(what, limit, meanTest{side: atLeast})
}

// Above is a comparison that demands that a mean is shown to be above a limit: an effect has to be seen. It agrees where the mean would be
// this high with a probability below the level, if it were at the limit.
func Above(what string, limit float64, s Sample) Comparison {
	c := s.compare(what, limit, meanTest{side: above})
	c.hypothesis = shownTest{c.hypothesis.(meanTest)}
	return c
}

func (s Sample) compare(what string, expected float64, t meanTest) Comparison {
	t.difference, t.standard, t.freedom, t.unit = s.Mean-expected, s.standardError(), float64(s.Runs-1), "a mean"
	return Comparison{What: what, Expected: expected, Got: s.Mean, Low: s.Low, High: s.High, hypothesis: t}
}

// Same is a comparison of the means of two independent samples (Welch).
func Same(what string, reference, s Sample) Comparison {
	a, b := s.SD*s.SD/float64(s.Runs), reference.SD*reference.SD/float64(reference.Runs)
	freedom := (a + b) * (a + b) / max(math.SmallestNonzeroFloat64, a*a/float64(max(1, s.Runs-1))+b*b/float64(max(1, reference.Runs-1)))
	return Comparison{What: what, Expected: reference.Mean, Got: s.Mean, Low: s.Low, High: s.High,
		hypothesis: meanTest{difference: s.Mean - reference.Mean, standard: math.Sqrt(a + b), freedom: freedom, unit: "a mean"}}
}

// Slope is a comparison of a fitted slope, with its standard error and degrees of freedom, with an expected one, that may be off by what the
// expectation leaves open.
func Slope(what string, expected, allowed, slope, standardError float64, freedom int) Comparison {
	return estimated(what, "an exponent", expected, allowed, slope, standardError, freedom)
}

// Estimate is the same for any estimate that is about normal.
func Estimate(what string, expected, allowed, estimate, standardError float64, freedom int) Comparison {
	return estimated(what, "a value", expected, allowed, estimate, standardError, freedom)
}

func estimated(what, unit string, expected, allowed, slope, standardError float64, freedom int) Comparison {
	reach := 0.0
	if freedom > 0 {
		reach = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(freedom)}.Quantile(0.975) * standardError
	}
	return Comparison{What: what, Expected: expected, Got: slope, Low: slope - reach, High: slope + reach,
		hypothesis: meanTest{side: equal, difference: slope - expected, allowed: allowed, standard: standardError, freedom: float64(freedom), unit: unit}}
}

// rounding is the relative difference that arithmetic may make where chance makes none.
const rounding = 1e-9

func (t meanTest) errors() float64 {
	if t.standard == 0 {
		if math.Abs(t.difference) <= rounding {
			return 0
		}
		return math.Inf(int(math.Copysign(1, t.difference)))
	}
	return t.difference / t.standard
}

// beyond is how far the difference is outside of what the hypothesis allows, in standard errors: below 0 inside.
func (t meanTest) beyond() float64 {
	over := t.difference
	switch t.side {
	case equal:
		over = math.Abs(t.difference) - t.allowed
	case atLeast:
		over = -t.difference
	}
	if t.standard == 0 {
		if over <= rounding {
			return 0
		}
		return math.Inf(1)
	}
	return over / t.standard
}

func (t meanTest) p() float64 {
	z := t.beyond()
	switch {
	case t.freedom < 0 || math.IsNaN(z):
		return 0 // nothing was measured
	case t.freedom < 1:
		return 1 // one run tells no spread: nothing can be refused
	case math.IsInf(z, 1):
		return 0
	}
	tail := t.law().Survival(z)
	if t.side == equal {
		tail *= 2
	}
	return min(1, tail)
}

func (t meanTest) law() distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: min(t.freedom, 1e9)}
}

func (t meanTest) criterion() string {
	switch t.side {
	case atMost:
		return "at most"
	case atLeast:
		return "at least"
	case above:
		return "shown to be above"
	}
	if t.allowed > 0 {
		return fmt.Sprintf("equal, but for %.3g that theory leaves open", t.allowed)
	}
	return "equal"
}

func (t meanTest) test() string {
	if t.freedom > 1e6 {
		return "normal law"
	}
	return fmt.Sprintf("Student's t, %.0f degrees of freedom", t.freedom)
}

func (t meanTest) notices(level float64) (float64, string) {
	if t.freedom < 1 || level <= 0 {
		return math.Inf(1), "nothing: one run tells no spread"
	}
	tail := level
	if t.side == equal {
		tail = level / 2
	}
	fault := t.allowed + (t.law().Quantile(1-tail)+t.law().Quantile(Detection))*t.standard
	switch t.side {
	case atMost:
		return fault, fmt.Sprintf("%s that is %.2g above", t.unit, fault)
	case atLeast:
		return fault, fmt.Sprintf("%s that is %.2g below", t.unit, fault)
	}
	return fault, fmt.Sprintf("%s that is off by %.2g", t.unit, fault)
}

// shownTest is a meanTest that has to be refused.
type shownTest struct{ meanTest }

func (t shownTest) shown() {}

func (t shownTest) p() float64 {
	if t.freedom < 1 {
		return 1 // nothing is shown
	}
	return t.meanTest.p()
}

func (t shownTest) notices(level float64) (float64, string) {
	if t.freedom < 1 || level <= 0 {
		return math.Inf(1), "nothing: one run tells no spread"
	}
	least := t.law().Quantile(1-level) * t.standard
	return least, fmt.Sprintf("an effect that is not above by %.2g", least)
}
