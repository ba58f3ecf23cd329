package audit_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/choose"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/respond"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// set is how the tests look: a private mechanism is refuted with probability 1e-6 at the most.
var set = audit.Settings{Runs: 60_000, Confidence: 1 - 1e-6}

func mustOutcomes[Out comparable](t *testing.T, claim audit.Claim, seed uint64, a, b audit.Mechanism[Out]) audit.Report {
	t.Helper()
	report, err := audit.Outcomes(claim, set, noise.Seeded(seed), a, b)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func mustNumbers(t *testing.T, claim audit.Claim, seed uint64, a, b audit.Mechanism[float64]) audit.Report {
	t.Helper()
	report, err := audit.Numbers(claim, set, noise.Seeded(seed), a, b)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestGood: mechanisms that are private are not refuted, and the bound comes near the truth where the law has it in an event that is not rare.
func TestGood(t *testing.T) {
	eps := noise.Eps(1)
	survey := respond.Categories{K: 3, Epsilon: eps}
	say := func(truth int) audit.Mechanism[int] {
		return func(s *noise.Stream) int { return survey.Say(s, truth) }
	}
	count := func(value int64) audit.Mechanism[int64] {
		return func(s *noise.Stream) int64 { return value + eps.Laplace(s, 1) }
	}
	pick := func(scores ...int64) audit.Mechanism[int] {
		return func(s *noise.Stream) int {
			at, err := (choose.Rule{Epsilon: eps, Sensitivity: 1}).Exponential(s, scores)
			if err != nil {
				panic(err)
			}
			return at
		}
	}
	for i, r := range []struct {
		name   string
		report audit.Report
		least  float64
	}{
		{"randomized response", mustOutcomes(t, audit.Claim{Epsilon: 1}, 1, say(0), say(1)), .9},
		{"a count", mustOutcomes(t, audit.Claim{Epsilon: 1}, 2, count(10), count(11)), .9},
		{"a choice", mustOutcomes(t, audit.Claim{Epsilon: 1}, 3, pick(0, 3, 0, 0), pick(1, 2, 1, 1)), .4},
		{"a Gaussian", mustNumbers(t, audit.Claim{Epsilon: 1, Delta: .1269367375}, 4, gaussian(0, 1), gaussian(1, 1)), .5},
	} {
		if r.report.Refuted() {
			t.Errorf("%d: %s: %v", i, r.name, r.report)
		}
		if r.report.Epsilon < r.least {
			t.Errorf("%d: %s: %v: the attack is weak, it should find %v", i, r.name, r.report, r.least)
		}
	}
}

// gaussian is N(mean, sd^2) on a grid of 2^-20.
func gaussian(mean, sd float64) audit.Mechanism[float64] {
	return func(s *noise.Stream) float64 {
		return (math.Round(mean*0x1p20) + float64(noise.RoundedNormal(s, sd*0x1p20))) / 0x1p20
	}
}

// TestPlanted: mechanisms with a fault are refuted.
func TestPlanted(t *testing.T) {
	uniform := func(s *noise.Stream) float64 { return (float64(s.Uint64()>>11) + .5) / 0x1p53 }
	half := noise.Eps(2) // half the noise that was claimed
	once := noise.Eps(1).Laplace(noise.Seeded(5), 1)
	for i, r := range []struct {
		name   string
		report audit.Report
	}{
		{"half the noise", mustOutcomes(t, audit.Claim{Epsilon: 1}, 11,
			func(s *noise.Stream) int64 { return 10 + half.Laplace(s, 1) }, func(s *noise.Stream) int64 { return 11 + half.Laplace(s, 1) })},
		{"half the deviation", mustNumbers(t, audit.Claim{Epsilon: 1, Delta: .1269367375}, 12, gaussian(0, .5), gaussian(1, .5))},
		{"the same noise again", mustOutcomes(t, audit.Claim{Epsilon: 1}, 13, // a seed that is used twice
			func(*noise.Stream) int64 { return 10 + once }, func(*noise.Stream) int64 { return 11 + once })},
		{"the same noise for two releases", mustOutcomes(t, audit.Claim{Epsilon: 2}, 14, // their difference is exact
			func(s *noise.Stream) [2]int64 { x := noise.Eps(1).Laplace(s, 1); return [2]int64{10 + x, 20 + x} },
			func(s *noise.Stream) [2]int64 { x := noise.Eps(1).Laplace(s, 1); return [2]int64{11 + x, 20 + x} })},
		{"Laplace noise in floating point", mustNumbers(t, audit.Claim{Epsilon: 1}, 15,
			func(s *noise.Stream) float64 { return 0 + laplace(uniform(s)) }, func(s *noise.Stream) float64 { return 1 + laplace(uniform(s)) })},
		{"a maximum that divides by the sensitivity once", mustOutcomes(t, audit.Claim{Epsilon: 1}, 16,
			loudest(0, 0, 0), loudest(2, -2, -2))},
	} {
		if !r.report.Refuted() {
			t.Errorf("%d: %s went unnoticed: %v", i, r.name, r.report)
		}
	}
}

// laplace is the textbook's inverse of the distribution function, in floating point.
func laplace(u float64) float64 {
	if u < .5 {
		return math.Log(2 * u)
	}
	return -math.Log(2 - 2*u)
}

// loudest claims an epsilon of 1 for scores of a sensitivity of 2, with noise for half of that.
func loudest(scores ...int64) audit.Mechanism[int] {
	return func(s *noise.Stream) int {
		at, err := (choose.Rule{Epsilon: noise.Eps(1), Sensitivity: 1}).NoisyMax(s, scores)
		if err != nil {
			panic(err)
		}
		return at
	}
}

// TestConfidence: of 200 attacks at confidence .8 on a mechanism that spends exactly what it claims, no more refute it than may (the exact binomial tail,
// false alarm 1e-6). The mechanism says one of 400 things, so that an auditor that counted the runs in which it looked for its event would find a lucky one
// nearly every time.
func TestConfidence(t *testing.T) {
	survey, refuted := respond.Categories{K: 2, Epsilon: noise.Eps(1)}, 0
	say := func(truth int) audit.Mechanism[[2]uint64] {
		return func(s *noise.Stream) [2]uint64 { return [2]uint64{uint64(survey.Say(s, truth)), s.Below(200)} }
	}
	for seed := range uint64(200) {
		report, err := audit.Outcomes(audit.Claim{Epsilon: 1}, audit.Settings{Runs: 4000, Confidence: .8}, noise.Seeded(seed), say(0), say(1))
		if err != nil {
			t.Fatal(err)
		}
		if report.Refuted() {
			refuted++
		}
	}
	if err := stattest.AtMost(refuted, 200, .2, 1e-6); err != nil {
		t.Error(err)
	}
}

// TestReportsAreTheSame: the same seed gives the same report, also where many outcomes come up equally often, of which some are in the event: a map's order
// must not choose them.
func TestReportsAreTheSame(t *testing.T) {
	m := func(shift uint64) audit.Mechanism[uint64] {
		return func(s *noise.Stream) uint64 { return s.Below(1000) + shift }
	}
	first := ""
	for range 5 {
		report, err := audit.Outcomes(audit.Claim{}, audit.Settings{Runs: 4000, Confidence: .9}, noise.Seeded(1), m(0), m(1))
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = report.String()
		} else if got := report.String(); got != first {
			t.Errorf("%s\nand before\n%s", got, first)
		}
	}
}

func TestSettings(t *testing.T) {
	m := func(*noise.Stream) int { return 0 }
	for _, c := range []struct {
		claim audit.Claim
		set   audit.Settings
	}{
		{audit.Claim{Epsilon: 1}, audit.Settings{Runs: 99, Confidence: .9}},
		{audit.Claim{Epsilon: 1}, audit.Settings{Runs: 100, Confidence: 1}},
		{audit.Claim{Epsilon: -1}, audit.Settings{Runs: 100, Confidence: .9}},
		{audit.Claim{Epsilon: math.NaN()}, audit.Settings{Runs: 100, Confidence: .9}},
		{audit.Claim{Epsilon: 1, Delta: 1}, audit.Settings{Runs: 100, Confidence: .9}},
	} {
		if _, err := audit.Outcomes(c.claim, c.set, noise.Seeded(1), m, m); !errors.Is(err, audit.ErrSettings) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	report, err := audit.Outcomes(audit.Claim{Epsilon: 0}, audit.Settings{Runs: 100, Confidence: .9}, noise.Seeded(1), m, m)
	if err != nil || report.Refuted() || report.Epsilon != 0 {
		t.Errorf("a mechanism that says nothing: %v, %v", report, err)
	}
}

// A count whose noise is half of what its epsilon asks for is caught.
func Example() {
	careless := noise.Eps(2) // epsilon 1 is claimed
	report, err := audit.Outcomes(audit.Claim{Epsilon: 1}, audit.Settings{Runs: 20_000, Confidence: .999}, noise.Seeded(1),
		func(s *noise.Stream) int64 { return 100 + careless.Laplace(s, 1) },
		func(s *noise.Stream) int64 { return 101 + careless.Laplace(s, 1) })
	fmt.Println(err, report.Refuted(), report.Epsilon > 1.7)
	// Output: <nil> true true
}
