package compare

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

func planned(t *testing.T, r Request) Report {
	t.Helper()
	report, err := Plan(context.Background(), r)
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

// TestPlanReaches: at ±0.1 with 20,000 units the best published bound answers 16 questions, splitting 52; a holdout that is created with
// that half-width, 4,190: the sentence of the README.
func TestPlanReaches(t *testing.T) {
	report := planned(t, Request{N: 20_000, HalfWidth: 0.1, Confidence: 0.95})
	most := int64(0)
	for _, m := range report.Methods {
		if m.Published && m.Assumes == AssumesNothing {
			most = max(most, *m.QuestionsWithin)
		}
	}
	ours := *report.method(t, MethodScheduled).QuestionsWithin
	if split := *report.method(t, MethodSplitting).QuestionsWithin; most != 16 || split != 52 || ours != 4190 {
		t.Errorf("%d published, %d by splitting, %d ours", most, split, ours)
	}
	if report.Recommended != MethodScheduled || report.Questions != ours {
		t.Errorf("%s is recommended for %d questions", report.Recommended, report.Questions)
	}
	for _, m := range report.Methods { // one question more would be too wide
		k := *m.QuestionsWithin
		r := Request{N: 20_000, Confidence: 0.95, HalfWidth: 0.1}
		if k > 0 {
			if at, err := HalfWidthOf(m.Method, r, k); err != nil || at > 0.1 {
				t.Errorf("%s: ±%v at %d questions, %v", m.Method, at, k, err)
			}
		}
		if k == bounds.MaxQuestions {
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
		report := planned(t, Request{N: 50_000, Questions: k, Confidence: 0.95, Training: 80_000, Rounds: min(k, 4), Tokens: min(k, 7), Cells: 24})
		if len(report.Methods) != len(methods()) {
			t.Errorf("%d methods of %d", len(report.Methods), len(methods()))
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
		{Request{N: 10_000, Questions: 1000, Confidence: 0.95, Rounds: 1}, MethodRounds, "narrowest for 1,000 questions"},
		{Request{N: 10_000, Questions: 1000, Confidence: 0.95, Rounds: 4}, MethodRounds, "in 4 rounds, instead of"},
		{Request{N: 10_000, Questions: 1000, Confidence: 0.95, Training: 20_000}, MethodGuessCheck, "guess-and-check is narrowest"},
		{Request{N: 30_000, Questions: 1_000_000, Confidence: 0.95, Cells: 96}, MethodCells, "cells is narrowest for 1,000,000 questions: ±0.03404"},
		{Request{N: 30_000, Questions: 1_000_000, Confidence: 0.95, Cells: 96, Published: true}, MethodCells, "±0.03404"},
		{Request{N: 30_000, HalfWidth: 0.05, Confidence: 0.95, Cells: 96}, MethodCells, "Within ±0.05, cells answers any number of questions"},
		{Request{N: 30_000, Questions: 5, Confidence: 0.95, Cells: 4000}, MethodScheduled, "adaptive-hoeffding-scheduled is narrowest"},
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
		"questions":  {N: 100, Questions: -1, Confidence: 0.95},
		"half_width": {N: 100, Questions: 1, Confidence: 0.95, HalfWidth: 1},
		"rounds":     {N: 100, Questions: 3, Confidence: 0.95, Rounds: 4},
		"training":   {N: 100, Questions: 3, Confidence: 0.95, Training: -1},
		"tokens":     {N: 100, Questions: 3, Confidence: 0.95, Tokens: 2},
		"cells":      {N: 100, Questions: 3, Confidence: 0.95, Cells: 1},
	} {
		_, err := Plan(context.Background(), r)
		var wrong *RequestError
		if !errors.As(err, &wrong) || wrong.Field != field || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v, the field is %s", r, err, field)
		}
	}
	for _, nan := range []Request{{N: 100, Questions: 1, Confidence: math.NaN()}, {N: 100, Questions: 1, Confidence: 0.95, HalfWidth: math.NaN()}} {
		if _, err := Plan(context.Background(), nan); err == nil {
			t.Errorf("%+v was accepted", nan)
		}
	}
	if _, err := HalfWidthOf("guess", Request{N: 100, Confidence: 0.95}, 10); err == nil {
		t.Error("a method that is none was accepted")
	}
}

// TestPlanWithoutQuestions: a request that names no questions is about as many as a holdout gets whose owner names none, and says so.
func TestPlanWithoutQuestions(t *testing.T) {
	for _, r := range []Request{{N: 500, Training: 1000, Confidence: 0.95}, {N: 9000, Confidence: 0.95}, {N: 5000, Confidence: 0.95, Rounds: 2}, {N: 60_000, Training: 9000, Confidence: 0.9, Tokens: 60}} {
		spec := thresholdout.Spec{Mechanism: thresholdout.Auto, N: r.N, Training: r.Training, Tokens: r.Tokens, Rounds: r.Rounds, Confidence: r.Confidence}.WithBudget()
		g, err := thresholdout.Plan(spec)
		if err != nil {
			t.Fatal(err)
		}
		if p := planned(t, r); p.Questions != g.Questions || p.Chosen != g.SayBudget() || r.Training > 0 && p.Tokens != g.Tokens {
			t.Errorf("%+v: %d questions, %d tokens, %q; a holdout has %d and %d", r, p.Questions, p.Tokens, p.Chosen, g.Questions, g.Tokens)
		}
	}
	if p := planned(t, Request{N: 500, Questions: 5, Confidence: 0.95}); p.Chosen != "" {
		t.Errorf("five questions were named: %q", p.Chosen)
	}
	if _, err := Plan(context.Background(), Request{N: 20_000, Confidence: 0.95, Rounds: 2000}); err == nil {
		t.Error("more rounds than any default has questions")
	}
}

// drawRequest is any request that a plan is possible for.
func drawRequest(t *rapid.T) Request {
	r := Request{
		N:          int64(math.Exp(rapid.Float64Range(math.Log(20), math.Log(1e6)).Draw(t, "log n"))),
		Questions:  int64(math.Exp(rapid.Float64Range(0, math.Log(3000)).Draw(t, "log k"))),
		Confidence: rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.999, 1 - 1e-6}).Draw(t, "confidence"),
		Published:  rapid.Bool().Draw(t, "published"),
	}
	if rapid.Bool().Draw(t, "in rounds") {
		r.Rounds = rapid.Int64Range(1, min(r.Questions, 7)).Draw(t, "rounds")
	}
	if rapid.Bool().Draw(t, "with training") {
		r.Training = int64(math.Exp(rapid.Float64Range(0, math.Log(1e6)).Draw(t, "log training")))
		if rapid.Bool().Draw(t, "names tokens") {
			r.Tokens = rapid.Int64Range(1, min(r.Questions, 40)).Draw(t, "tokens")
		}
	}
	return r
}

// create is the guarantee of a holdout whose owner asks for a row of the plan, in the words of the API: the mechanism, and what else he
// must name for it. It knows nothing of how the plan was made.
func create(r Request, row MethodPlan, questions int64) (thresholdout.Guarantee, error) {
	p := thresholdout.Spec{Mechanism: row.Mechanism, N: r.N, Training: r.Training, Questions: questions, Confidence: r.Confidence}
	switch row.Method {
	case MethodScheduled:
		if r.HalfWidth != 0 {
			p.HalfWidth = thresholdout.MaxSigma
		}
	case MethodConstant:
		p.Sigma = row.NoiseSigma
	case MethodRounds:
		p.Rounds = min(r.Rounds, questions)
	case MethodJLNRSSGDP:
		p.Published = true
	case MethodGuessCheck, MethodThresholdout:
		if r.Tokens > 0 {
			p.Tokens = min(r.Tokens, questions)
		}
	}
	return thresholdout.Plan(p)
}

// widthOf is the half-width that a card says, or for thresholdout, whose card says none, that of the last answer's interval around 1/2.
func widthOf(p thresholdout.Guarantee) float64 {
	if p.Mechanism != thresholdout.Thresholdout {
		return p.HalfWidth
	}
	i := p.Preview(thresholdout.State{Questions: p.Questions - 1}, 0.5)
	return (i.High - i.Low) / 2
}

// TestPlanIsWhatCreateGives: for every row with a mechanism the half-width is the card's, to 1e-12, also in answers, and every mechanism that
// a server offers with intervals has a row. It would notice any number of the plan that is derived beside the mechanism's own.
func TestPlanIsWhatCreateGives(t *testing.T) {
	const gridErrors = 4.0 / (1 << 30) // that answers add to a half-width
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		report, err := Plan(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[thresholdout.Name]int{}
		for _, row := range report.Methods {
			if row.Mechanism == "" {
				continue
			}
			rows[row.Mechanism]++
			p, err := create(r, row, r.Questions)
			var refused *thresholdout.ParamError
			if row.HalfWidth == nil {
				if row.Method != MethodConstant && !errors.As(err, &refused) && !math.IsInf(p.HalfWidth, 0) {
					t.Fatalf("%+v: %s has no half-width, the card says %v, %v", r, row.Method, p.HalfWidth, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%+v: %s is planned with ±%v, and refused: %v", r, row.Method, *row.HalfWidth, err)
			}
			if card := p.HalfWidth; card != 0 && math.Abs(card-*row.HalfWidth) > 1e-12 {
				t.Fatalf("%+v: %s: the plan says ±%v, the card ±%v", r, row.Method, *row.HalfWidth, card)
			}
			if shown := widthOf(p); *row.HalfWidth < 0.5 && math.Abs(shown-*row.HalfWidth) > gridErrors {
				t.Fatalf("%+v: %s: the plan says ±%v, an answer ±%v", r, row.Method, *row.HalfWidth, shown)
			}
			if r.Tokens == 0 && p.NeedsTokens() && report.Tokens != p.Tokens {
				t.Fatalf("%+v: %s: the plan has %d tokens, the card %d", r, row.Method, report.Tokens, p.Tokens)
			}
			if row.Method == report.Recommended && row.Mechanism == "" {
				t.Fatalf("%+v: %s is recommended, and cannot be created", r, row.Method)
			}
		}
		want := []thresholdout.Name{thresholdout.Gaussian, thresholdout.Split}
		if r.Training > 0 && !r.Published {
			want = append(want, thresholdout.GuessAndCheck, thresholdout.Thresholdout)
		}
		for _, m := range want {
			if rows[m] == 0 {
				t.Fatalf("%+v: no row of %s", r, m)
			}
		}
	})
}

// TestQuestionsWithinIsWhatCreateGives: as many questions as the plan says can be created within the half-width, and not one more; where a
// holdout is created by its half-width alone, it gets that number.
func TestQuestionsWithinIsWhatCreateGives(t *testing.T) {
	for _, r := range []Request{
		{N: 20_000, HalfWidth: 0.1, Confidence: 0.95, Training: 40_000, Rounds: 3},
		{N: 1000, HalfWidth: 0.2, Confidence: 0.99, Training: 500, Tokens: 4, Rounds: 1},
		{N: 300, HalfWidth: 0.15, Confidence: 0.9, Published: true},
		{N: 60, HalfWidth: 0.4, Confidence: 0.9},
	} {
		for _, row := range planned(t, r).Methods {
			k := *row.QuestionsWithin
			if row.Mechanism == "" || k == bounds.MaxQuestions {
				continue
			}
			at := func(k int64) float64 {
				if row.Method == MethodConstant {
					sigma, err := thresholdout.BestSigma(r.N, k, r.Confidence)
					if err != nil {
						t.Fatal(err)
					}
					row.NoiseSigma = sigma
				}
				p, err := create(r, row, k)
				if err != nil {
					return math.Inf(1)
				}
				of, _ := p.Promised(0)
				return of.HalfWidth
			}
			if k > 0 && at(k) > r.HalfWidth || at(k+1) <= r.HalfWidth {
				t.Errorf("%+v: %s: %d questions within, but ±%v at these and ±%v at one more", r, row.Method, k, at(k), at(k+1))
			}
			if k == 0 || row.Method != MethodScheduled && row.Method != MethodJLNRSSGDP {
				continue
			}
			p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: row.Mechanism, N: r.N, Confidence: r.Confidence, HalfWidth: r.HalfWidth, Published: row.Method == MethodJLNRSSGDP})
			if err != nil || p.Questions != k {
				t.Errorf("%+v: %s: the plan says %d questions, a holdout of that half-width has %d, %v", r, row.Method, k, p.Questions, err)
			}
		}
	}
}

// TestPlanStops: a plan that nobody waits for ends at its next half-width, in the search as well as after it.
func TestPlanStops(t *testing.T) {
	for _, r := range []Request{{N: 20_000, HalfWidth: 0.1, Confidence: 0.95}, {N: 20_000, Questions: 50, Confidence: 0.95}} {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := Plan(ctx, r); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
