package bounds

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

func planned(t *testing.T, r Request) Report {
	t.Helper()
	report, err := Plan(r)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (r Report) method(t *testing.T, name string) MethodPlan {
	t.Helper()
	for _, m := range r.Methods {
		if m.Method == name {
			return m
		}
	}
	t.Fatalf("no %s in the plan", name)
	return MethodPlan{}
}

// TestPlanReaches: at ±0.1 with 20,000 units the best published bound answers 16 questions, splitting 52; ours, by the reference program
// without the charge for rounding m, 4,232.
func TestPlanReaches(t *testing.T) {
	report := planned(t, Request{N: 20_000, HalfWidth: 0.1, Confidence: 0.95})
	most := int64(0)
	for _, m := range report.Methods {
		if m.Published && m.Mechanism == "gaussian" && m.Assumes == assumesNothing {
			most = max(most, *m.QuestionsWithin)
		}
	}
	ours := *report.method(t, MethodScheduled).QuestionsWithin
	if split := *report.method(t, MethodSplitting).QuestionsWithin; most != 16 || split != 52 || ours < 4225 || ours > 4232 {
		t.Errorf("%d published, %d by splitting, %d ours", most, split, ours)
	}
	if report.Recommended != MethodScheduled || report.Questions != ours {
		t.Errorf("%s is recommended for %d questions", report.Recommended, report.Questions)
	}
	for _, m := range report.Methods { // one question more would be too wide
		k := *m.QuestionsWithin
		r := Request{N: 20_000, Confidence: 0.95}
		if k > 0 {
			if at, err := HalfWidthOf(m.Method, r, k); err != nil || at > 0.1 {
				t.Errorf("%s: ±%v at %d questions, %v", m.Method, at, k, err)
			}
		}
		if k == MaxQuestions {
			continue
		}
		if beyond, err := HalfWidthOf(m.Method, r, k+1); err != nil || beyond <= 0.1 {
			t.Errorf("%s: ±%v at %d questions, %v", m.Method, beyond, k+1, err)
		}
	}
}

// TestPlanParts add up to the half-width, for every method.
func TestPlanParts(t *testing.T) {
	for _, k := range []int64{1, 2, 100, 100_000} {
		report := planned(t, Request{N: 50_000, Questions: k, Confidence: 0.95, Training: 80_000, Rounds: min(k, 4), Tokens: min(k, 7)})
		if len(report.Methods) != len(methods) {
			t.Errorf("%d methods of %d", len(report.Methods), len(methods))
		}
		for _, m := range report.Methods {
			if m.HalfWidth == nil {
				if len(m.Parts) != 0 {
					t.Errorf("%s: parts %v of no half-width", m.Method, m.Parts)
				}
				continue
			}
			sum := 0.0
			for _, part := range m.Parts {
				sum += part
			}
			if math.Abs(sum-*m.HalfWidth) > 1e-9**m.HalfWidth {
				t.Errorf("%s, k=%d: parts %v, half-width %v", m.Method, k, m.Parts, *m.HalfWidth)
			}
		}
	}
}

// TestPlanSpeaks plainly: when splitting wins, when nothing can be promised, what a batch saves, and what is published.
func TestPlanSpeaks(t *testing.T) {
	for _, c := range []struct {
		request     Request
		recommended string
		says        string
	}{
		{Request{N: 10_000, Questions: 100, Confidence: 0.95, Published: true}, MethodSplitting, "Plain sample splitting is narrowest"},
		{Request{N: 10_000, Questions: 1000, Confidence: 0.95, Published: true}, MethodJLNRSSGDP, "jlnrss-gdp is narrowest"},
		{Request{N: 100, Questions: 100_000, Confidence: 0.95}, MethodScheduled, "Nothing can be promised"},
		{Request{N: 10_000, Questions: 1000, Confidence: 0.95}, MethodScheduled, "in one batch fixed beforehand"},
		{Request{N: 10_000, Questions: 1000, Confidence: 0.95, Rounds: 1}, MethodNonAdaptive, "narrowest for 1,000 questions"},
		{Request{N: 10_000, Questions: 1000, Confidence: 0.95, Rounds: 4}, MethodRounds, "in 4 rounds, instead of"},
		{Request{N: 10_000, Questions: 1000, Confidence: 0.95, Training: 20_000}, MethodGuessCheck, "guess-and-check is narrowest"},
		{Request{N: 100, HalfWidth: 0.01, Confidence: 0.95}, "", "No method answers even one question within ±0.01"},
	} {
		report := planned(t, c.request)
		notes := strings.Join(report.Notes, " ")
		if c.recommended != "" && report.Recommended != c.recommended || !strings.Contains(notes, c.says) {
			t.Errorf("%+v: %s is recommended; %s", c.request, report.Recommended, notes)
		}
		for _, m := range report.Methods {
			if c.request.Published && !m.Published {
				t.Errorf("%+v: %s is not published", c.request, m.Method)
			}
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for field, r := range map[string]Request{
		"n":          {N: 1, Questions: 1, Confidence: 0.95},
		"confidence": {N: 100, Questions: 1, Confidence: 1},
		"questions":  {N: 100, Confidence: 0.95},
		"half_width": {N: 100, Questions: 1, Confidence: 0.95, HalfWidth: 1},
		"rounds":     {N: 100, Questions: 3, Confidence: 0.95, Rounds: 4},
		"training":   {N: 100, Questions: 3, Confidence: 0.95, Training: -1},
		"tokens":     {N: 100, Questions: 3, Confidence: 0.95, Tokens: 2},
	} {
		_, err := Plan(r)
		var wrong *RequestError
		if !errors.As(err, &wrong) || wrong.Field != field || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v, the field is %s", r, err, field)
		}
	}
	for _, nan := range []Request{{N: 100, Questions: 1, Confidence: math.NaN()}, {N: 100, Questions: 1, Confidence: 0.95, HalfWidth: math.NaN()}} {
		if _, err := Plan(nan); err == nil {
			t.Errorf("%+v was accepted", nan)
		}
	}
	if _, err := HalfWidthOf("guess", Request{N: 100, Confidence: 0.95}, 10); err == nil {
		t.Error("a method that is none was accepted")
	}
}

// TestAttack runs the attack on the scheduled mechanism itself: the largest error of all answers is beyond what Attack says in 5% of runs
// (false alarm 1e-6), and never, in so few, beyond the bound.
func TestAttack(t *testing.T) {
	const n, k, runs, beta = 400, 200, 600, 0.05
	reached, err := Attack(n, k, beta)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := AdaptiveHoeffdingScheduled(n, k, beta)
	if err != nil {
		t.Fatal(err)
	}
	if reached >= bound.HalfWidth {
		t.Errorf("the attack reaches %v, the bound is %v", reached, bound.HalfWidth)
	}
	r := rand.New(rand.NewChaCha8([32]byte{41}))
	beyond, missed := 0, 0
	for range runs {
		score := make([]float64, n)
		largest := 0.0
		for j := int64(1); j < k; j++ { // whether a column agrees with the label, at each row
			agrees := make([]float64, n)
			mean := 0.0
			for l := range agrees {
				agrees[l] = float64(2*r.IntN(2) - 1)
				mean += (1 + agrees[l]) / (2 * n)
			}
			sigma := ScheduledSigma(bound.Sigma, j, k)
			answer := mean + sigma*r.NormFloat64()
			largest = max(largest, math.Abs(answer-0.5))
			weight := (answer - 0.5) / (sigma*sigma + 1/(4.0*n))
			for l := range score {
				score[l] += weight * agrees[l]
			}
		}
		right := 0.0
		for _, s := range score {
			if s > 0 {
				right++
			}
		}
		last := right/n + ScheduledSigma(bound.Sigma, k, k)*r.NormFloat64()
		largest = max(largest, math.Abs(last-0.5))
		if largest > reached {
			beyond++
		}
		if largest > bound.HalfWidth {
			missed++
		}
	}
	if err := stattest.Frequency(beyond, runs, beta, 1e-6); err != nil {
		t.Errorf("beyond %v: %v", reached, err)
	}
	if missed > 0 {
		t.Errorf("%d of %d runs miss", missed, runs)
	}
	t.Logf("%d of %d runs are beyond the attack's quantile", beyond, runs)
	if _, err := Attack(1, 1, beta); err == nil {
		t.Error("one unit was accepted")
	}
}

// TestLevels: the half-width of noise that is planned, at its own beta, is the plan's; it widens as beta falls.
func TestLevels(t *testing.T) {
	const n, k = 10_000, 100
	schedule, err := AdaptiveHoeffdingScheduled(n, k, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	rounds, err := AdaptiveHoeffdingRounds(n, k, 5, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	constantNoise, err := AdaptiveHoeffding(n, k, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		planned float64
		at      func(beta float64) (float64, error)
	}{
		"schedule": {schedule.HalfWidth, func(beta float64) (float64, error) { return ScheduledNoise(n, k, beta, schedule.Sigma) }},
		"constant": {constantNoise.HalfWidth, func(beta float64) (float64, error) { return GivenNoise(n, k, beta, constantNoise.Sigma) }},
		"rounds":   {rounds.HalfWidth, func(beta float64) (float64, error) { return RoundsNoise(n, k, beta, rounds.Sigma) }},
	} {
		if w, err := c.at(0.05); err != nil || math.Abs(w/c.planned-1) > 1e-8 {
			t.Errorf("%s: %v, %v; planned %v", name, w, err, c.planned)
		}
		last := 0.0
		for _, beta := range []float64{0.5, 0.05, 1e-3, 1e-6, 1e-9} {
			w, err := c.at(beta)
			if again, _ := c.at(beta); err != nil || !(w > last) || again != w {
				t.Errorf("%s: %v at %v, %v before, again %v, %v", name, w, beta, last, again, err)
			}
			last = w
		}
		if _, err := c.at(0); err == nil {
			t.Errorf("%s: beta 0 was accepted", name)
		}
	}
	if _, err := GivenNoise(n, k, 0.05, 0); err == nil {
		t.Error("no noise was accepted")
	}
	if _, err := RoundsNoise(n, k, 0.05, []float64{0.1, 0.1}); err == nil {
		t.Error("a last round with noise was accepted")
	}
}

func TestReleaseError(t *testing.T) {
	if got := (GradedCheck{Cells: 50}).ReleaseError(); got != 0.01 {
		t.Errorf("50 cells: %v", got)
	}
	g := GradedCheck{Tokens: 20, Beta: 0.05, Sigma: 0.01}
	if got, want := g.ReleaseError(), 0.01*MaxNormalQuantile(20, 0.025); got != want {
		t.Errorf("noise: %v, want %v", got, want)
	}
	if ClippedVariance(3) != 9 {
		t.Error("rows of norm 3 have a variance of at most 9")
	}
}
