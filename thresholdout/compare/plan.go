// Package compare says beforehand what every method promises: the mechanisms of package thresholdout, each by its own plan, and
// the bounds of the literature beside them. What it says of a mechanism is what a holdout that is so created gets.
package compare

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Request is what a plan is asked for: N and Confidence; the rest may be zero.
type Request struct {
	N          int64   // units of the holdout
	Questions  int64   // k; if zero, as many as the recommended method answers within HalfWidth, or without one as many as a holdout gets whose owner names none
	Confidence float64 // 1-beta, that all intervals hold together
	HalfWidth  float64 // wanted, in (0,1): then each method says how many questions it answers within it
	Rounds     int64   // batches that the questions come in
	Training   int64   // units of the training part
	Tokens     int64   // how many guesses may be wrong
	Published  bool    // only bounds of the literature
	Cells      int64   // declared cells, where all questions are about such
}

func (r Request) beta() float64 { return 1 - r.Confidence }

func (r Request) tokens(k int64) int64 {
	if r.Tokens == 0 {
		return min(thresholdout.DefaultTokens, k)
	}
	return min(r.Tokens, k)
}

// Report compares the methods; its JSON is that of POST /v1/plans.
type Report struct {
	N          int64        `json:"n"`
	Questions  int64        `json:"questions"`
	Confidence float64      `json:"confidence"`
	HalfWidth  float64      `json:"half_width,omitempty"`
	Rounds     int64        `json:"rounds,omitempty"`
	Training   int64        `json:"training,omitempty"`
	Tokens     int64        `json:"tokens,omitempty"`
	Published  bool         `json:"published,omitempty"`
	Cells      int64        `json:"cells,omitempty"`
	Chosen     string       `json:"chosen,omitempty" doc:"where the request names no budget: how many questions a holdout like this gets; absent where it does"`
	Methods    []MethodPlan `json:"methods"`

	Recommended string   `json:"recommended" doc:"the narrowest method among those that a holdout can be created with and whose assumptions nothing in the request contradicts"`
	Notes       []string `json:"notes" doc:"sentences for a person"`
}

// MethodPlan is what one method promises.
type MethodPlan struct {
	Method string `json:"method" doc:"its name: a mechanism, or a bound of the literature"` // one of the Method constants

	Mechanism thresholdout.Name `json:"mechanism,omitempty" doc:"what a holdout is created with to get this; absent for what is a formula alone"`

	HalfWidth *float64 `json:"half_width" doc:"of the answers to that many questions; null where there is none: more slices than units. From 1/2 on it promises nothing that is not known of a mean in [0,1] beforehand"`

	NoiseSigma float64            `json:"noise_sigma" doc:"the standard deviation of the noise of all answers, or the largest"`
	Parts      map[string]float64 `json:"parts" doc:"what the half-width is made of; they add up to it"`
	Published  bool               `json:"published" doc:"whether the bound is one of the literature"`
	Assumes    string             `json:"assumes" doc:"what it needs beside independent units"`
	Rounds     int64              `json:"rounds,omitempty" doc:"in how many requests the questions are asked; absent: one by one"`

	QuestionsWithin *int64 `json:"questions_within,omitempty" doc:"the largest number of questions that it answers within the half-width asked for"`
}

// RequestError says which member of a Request is wrong, in the words of the API.
type RequestError struct {
	Field  string
	Detail string
}

func (e *RequestError) Error() string { return "compare: " + e.Field + ": " + e.Detail }

// Check says what is wrong with a request; nil where nothing is. Errors are *[RequestError].
func (r Request) Check() error { return r.check() }

func (r Request) check() error {
	wrong := func(field, format string, args ...any) error {
		return &RequestError{Field: field, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.N < bounds.MinUnits || r.N > thresholdout.MaxUnits:
		return wrong("n", "%d units; between %d and %d are possible", r.N, bounds.MinUnits, int64(thresholdout.MaxUnits))
	case !(r.Confidence >= thresholdout.MinConfidence && r.Confidence <= thresholdout.MaxConfidence):
		return wrong("confidence", "%v is not between 0 and 1; 0.95 is usual", r.Confidence)
	case r.Questions < 0 || r.Questions > bounds.MaxQuestions:
		return wrong("questions", "%d is not between 1 and %d", r.Questions, int64(bounds.MaxQuestions))
	case !(r.HalfWidth >= 0 && r.HalfWidth < 1):
		return wrong("half_width", "%v is not between 0 and 1, the width of a row function's range", r.HalfWidth)
	case r.Rounds < 0 || r.Rounds > thresholdout.MaxRounds || r.Questions > 0 && r.Rounds > r.Questions:
		return wrong("rounds", "%d is not between 1 and the number of questions, at most %d", r.Rounds, thresholdout.MaxRounds)
	case r.Training < 0 || r.Training > thresholdout.MaxUnits:
		return wrong("training", "%d units; between 0 and %d are possible", r.Training, int64(thresholdout.MaxUnits))
	case r.Tokens < 0 || r.Questions > 0 && r.Tokens > r.Questions:
		return wrong("tokens", "%d is not between 1 and the number of questions", r.Tokens)
	case r.Cells < 0 || r.Cells == 1 || r.Cells > thresholdout.MaxUnits:
		return wrong("cells", "%d cells; between 2 and %d are possible", r.Cells, int64(thresholdout.MaxUnits))
	case r.Tokens > 0 && r.Training == 0:
		return wrong("tokens", "tokens are spent where the holdout does not agree with the training part; give the size of the training part as training")
	}
	return nil
}

// withBudget is the request with the budget of a holdout whose owner leaves it to the server, where it names none, and what is said of it.
func (r Request) withBudget() (Request, string) {
	if r.Questions != 0 || r.HalfWidth != 0 {
		return r, ""
	}
	spec := thresholdout.Spec{Mechanism: thresholdout.Auto, N: r.N, Training: r.Training, Tokens: r.Tokens, Rounds: r.Rounds, Confidence: r.Confidence, Published: r.Published}.WithBudget()
	g, err := thresholdout.Plan(spec)
	if err != nil {
		return r, "" // what is wrong with the request is said when it is planned
	}
	r.Questions = g.Questions
	if r.Tokens == 0 && r.Training > 0 {
		r.Tokens = spec.Tokens
	}
	return r, g.SayBudget()
}

// Plan says what every method promises. It stops when ctx ends, with its error; other errors are *[RequestError].
func Plan(ctx context.Context, r Request) (Report, error) {
	if err := r.check(); err != nil {
		return Report{}, err
	}
	r, chosen := r.withBudget()
	if err := r.check(); err != nil {
		return Report{}, err
	}
	if r.Questions == 0 && r.HalfWidth == 0 {
		return Report{}, &RequestError{Field: "questions", Detail: "with these settings there is no default; name the number of questions, or a half-width"}
	}
	within, methods := map[string]int64{}, methods()
	if r.HalfWidth > 0 {
		for _, m := range methods {
			if !m.serves(r) {
				continue
			}
			k, err := bounds.LargestWithin(r.HalfWidth, func(k int64) (float64, error) {
				if err := ctx.Err(); err != nil {
					return 0, err
				}
				w, err := m.at(r, k)
				return w.halfWidth, err
			})
			if err != nil {
				return Report{}, err
			}
			within[m.name] = k
		}
	}
	if r.Questions == 0 {
		for _, m := range methods {
			if m.serves(r) && m.mechanism != "" && m.name != MethodCells { // as many as one likes
				r.Questions = max(r.Questions, within[m.name], r.Rounds, 1)
			}
		}
	}
	report := Report{N: r.N, Questions: r.Questions, Confidence: r.Confidence, HalfWidth: r.HalfWidth, Rounds: r.Rounds,
		Training: r.Training, Published: r.Published, Cells: r.Cells, Chosen: chosen}
	if r.Training > 0 {
		report.Tokens = r.tokens(r.Questions)
	}
	best := math.Inf(1)
	for _, m := range methods {
		if !m.serves(r) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
		w, err := m.at(r, r.Questions)
		if err != nil {
			return Report{}, err
		}
		p := MethodPlan{Method: m.name, Mechanism: m.mechanism, NoiseSigma: w.sigma, Parts: w.parts,
			Published: m.published != "", Assumes: w.assumes, Rounds: w.rounds}
		if !math.IsInf(w.halfWidth, 0) {
			p.HalfWidth = &w.halfWidth
		} else {
			p.Parts = map[string]float64{}
		}
		if k, ok := within[m.name]; ok {
			p.QuestionsWithin = &k
		}
		report.Methods = append(report.Methods, p)
		if m.mechanism != "" && w.halfWidth < best {
			best, report.Recommended = w.halfWidth, m.name
		}
	}
	report.Notes = notes(ctx, r, report, best)
	return report, ctx.Err()
}

// serves reports whether the method is part of the plan.
func (m method) serves(r Request) bool { return m.applies(r) && (m.published != "" || !r.Published) }

// notes says plainly what the numbers mean.
func notes(ctx context.Context, r Request, report Report, best float64) []string {
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	questions := plural(r.Questions, "question")
	switch {
	case best >= 0.5:
		say("Nothing can be promised: the narrowest method has ±%.3g, and a mean in [0,1] is within ±0.5 of one half anyway. Ask fewer questions, or hold out more units.", best)
	case report.Recommended == MethodSplitting:
		say("Plain sample splitting is narrowest: a fresh slice of %s for each of %s, ±%.4g.", plural(r.N/r.Questions, "unit"), questions, best)
	default:
		say("%s is narrowest for %s: ±%.4g.", report.Recommended, questions, best)
	}
	if r.HalfWidth > 0 {
		notes = append(notes, reach(r, report))
	}
	if !r.Published {
		if s := saved(ctx, r); s != "" {
			notes = append(notes, s)
		}
	}
	return notes
}

// reach compares how many questions are answered within the half-width asked for.
func reach(r Request, report Report) string {
	var most, most2 MethodPlan // of the mechanisms, and of the literature's bounds
	for _, p := range report.Methods {
		if p.Mechanism != "" && (most.QuestionsWithin == nil || *p.QuestionsWithin > *most.QuestionsWithin) {
			most = p
		}
		if p.Published && p.Method != MethodSplitting && p.Method != MethodNonAdaptive && p.Method != MethodCells && *p.QuestionsWithin > 0 && (most2.QuestionsWithin == nil || *p.QuestionsWithin > *most2.QuestionsWithin) {
			most2 = p
		}
	}
	if *most.QuestionsWithin == 0 {
		return fmt.Sprintf("No method answers even one question within ±%v.", r.HalfWidth)
	}
	many := plural(*most.QuestionsWithin, "question")
	if *most.QuestionsWithin >= bounds.MaxQuestions {
		many = "any number of questions"
	}
	s := fmt.Sprintf("Within ±%v, %s answers %s", r.HalfWidth, most.Method, many)
	for _, p := range report.Methods {
		if p.Method == MethodSplitting && p.Method != most.Method {
			s += fmt.Sprintf(", splitting %s", thousands(*p.QuestionsWithin))
		}
	}
	if most2.QuestionsWithin != nil && most2.Method != most.Method {
		s += fmt.Sprintf(", the literature's best bound for noisy answers (%s) %s", most2.Method, thousands(*most2.QuestionsWithin))
	}
	return s + "."
}

// saved says what asking in rounds saves.
func saved(ctx context.Context, r Request) string {
	k := r.Questions
	if k < 2 {
		return ""
	}
	one, err := created(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: r.N, Questions: k, Confidence: r.Confidence})
	if err != nil || one.halfWidth >= 0.5 {
		return ""
	}
	choices := map[int64]bool{1: true, 2: true, 5: true, 10: true}
	if r.Rounds > 0 {
		choices = map[int64]bool{r.Rounds: true}
	}
	var rounds []int64
	for c := range choices {
		if c < k {
			rounds = append(rounds, c)
		}
	}
	sort.Slice(rounds, func(i, j int) bool { return rounds[i] < rounds[j] })
	var widths []string
	for _, c := range rounds {
		if ctx.Err() != nil {
			return ""
		}
		b, err := created(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: r.N, Questions: k, Confidence: r.Confidence, Rounds: c})
		if err != nil {
			return ""
		}
		name := fmt.Sprintf("in %s", plural(c, "round"))
		if c == 1 {
			name = "in one batch fixed beforehand"
		}
		widths = append(widths, fmt.Sprintf("±%.4g %s", b.halfWidth, name))
	}
	if len(widths) == 0 {
		return ""
	}
	return fmt.Sprintf("Asking in rounds is narrower, since a batch is chosen before its own answers are seen: %s, instead of ±%.4g one by one.",
		strings.Join(widths, ", "), one.halfWidth)
}

// HalfWidthOf is the half-width of questions by one method, +Inf where it has none; r.Questions does not matter, and r.HalfWidth only says that one is asked for. Errors
// are *[RequestError].
func HalfWidthOf(name string, r Request, questions int64) (float64, error) {
	wanted := r.HalfWidth
	r.Questions, r.HalfWidth = questions, 0
	r.Rounds, r.Tokens = min(r.Rounds, questions), min(r.Tokens, questions)
	if err := r.check(); err != nil {
		return 0, err
	}
	r.HalfWidth = wanted
	for _, m := range methods() {
		if m.name == name && m.serves(r) {
			p, err := m.at(r, questions)
			return p.halfWidth, err
		}
	}
	return 0, &RequestError{Field: "method", Detail: fmt.Sprintf("%q is no method of this request", name)}
}
