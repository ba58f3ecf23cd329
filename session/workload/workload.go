// Package workload says beforehand what a list of questions costs and how wide their intervals are, for every mechanism, in the questions' own units. Nothing is planned by formulas of its
// own: each question is compiled as a query, and priced and foreseen by the session that would answer it, about a made-up training part.
package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// Request is what a workload is planned for.
type Request struct {
	N          int64   // units of the holdout
	Training   int64   // units of the training part; 0 without one
	Questions  int64   // at least so many are planned; 0: as many as the workload costs
	Tokens     int64   // how many guesses may be wrong; 0: thresholdout.DefaultTokens
	Rounds     int64   // 0: one by one
	Confidence float64 // of all intervals together
	Workload   string  // such as "60 accuracy, 60 auc, 10 groups of 12 in -60..180 sd 39"
}

// Estimate is what a workload costs; its JSON is a member of that of POST /v1/plans.
type Estimate struct {
	Items       []Kind   `json:"items" doc:"the kinds of questions, as they were read"`
	Plans       []Way    `json:"plans" doc:"what each mechanism has for them"`
	Recommended string   `json:"recommended" doc:"the plan with the narrowest intervals, on the geometric mean, among those that can answer everything and take questions one after the other (or in the rounds asked for); empty where there is none"`
	Notes       []string `json:"notes" doc:"sentences for a person"`
}

// Kind is one kind of question of a workload.
type Kind struct {
	Count   int64  `json:"count"`
	Of      string `json:"of" doc:"the type with what it is about"`
	Assumes string `json:"assumes" doc:"what the planned half-width takes the training part to say"`
}

// Way is what one mechanism has for a workload.
type Way struct {
	Name      string            `json:"name" doc:"the mechanism, with rounds where they are one of its settings"`
	Mechanism thresholdout.Name `json:"mechanism"`
	Rounds    int64             `json:"rounds,omitempty" doc:"create the holdout with so many; absent: one by one"`
	Questions int64             `json:"questions" doc:"create the holdout with so many: what the workload costs, or more if more were asked for"`
	Tokens    int64             `json:"tokens" doc:"that the guarantee has, for wrong guesses or broken promises; 0 where the mechanism has none"`
	Items     []Price           `json:"items" doc:"of each kind of question, in the order of items"`
	Assumes   string            `json:"assumes,omitempty" doc:"what the mechanism needs beside independent units"`
	Refused   string            `json:"refused,omitempty" doc:"why the mechanism cannot have the workload"`
}

// Price is what one mechanism has for one kind of question.
type Price struct {
	Questions int64    `json:"questions" doc:"that each of them costs"`
	HalfWidth *float64 `json:"half_width" doc:"the planned half-width, in the question's own units: of the last one, of the likeliest outcome; of items the widest; null where there is none"`
	Widest    *float64 `json:"widest_half_width" doc:"the widest half-width of such an answer, whatever its outcome, while no token is spent; null where nothing is known"`
	Refused   string   `json:"refused,omitempty" doc:"why the mechanism does not answer it"`
}

// RequestError says which member of a Request is wrong, in the words of the API.
type RequestError struct{ Field, Detail string }

func (e *RequestError) Error() string { return "workload: " + e.Field + ": " + e.Detail }

// way is one way to set a holdout up.
type way struct {
	name      string
	mechanism thresholdout.Name
	rounds    int64
}

// ways are those that are compared. Leaderboards, which take one kind of question, cells, which depends on what is declared, and what protects nothing are none.
func (r Request) ways() (all []way) {
	for _, kind := range thresholdout.Kinds() {
		if kind.Read == nil || kind.Unprotected || thresholdout.Does[thresholdout.Celled](kind) || thresholdout.Does[thresholdout.Submissions](kind) || thresholdout.Does[thresholdout.Compares](kind) && r.Training == 0 {
			continue
		}
		all = append(all, way{string(kind.Name), kind.Name, 0})
		if slices.Contains(kind.Takes, thresholdout.ParamRounds) {
			for _, rounds := range []int64{r.Rounds, 1} {
				if name := fmt.Sprintf("%s, rounds=%d", kind.Name, rounds); rounds > 0 && all[len(all)-1].name != name {
					all = append(all, way{name, kind.Name, rounds})
				}
			}
		}
	}
	return all
}

// Make plans a workload. Errors are *[RequestError], or the context's.
func Make(ctx context.Context, r Request) (Estimate, error) {
	kinds, err := read(r.Workload)
	if err != nil {
		return Estimate{}, err
	}
	var report Estimate
	var questions []compiled
	for _, k := range kinds {
		report.Items = append(report.Items, Kind{Count: k.count, Of: k.words(), Assumes: k.assumes()})
		c, err := k.compile(ctx, r.Training)
		if err != nil {
			return Estimate{}, err
		}
		questions = append(questions, c)
	}
	best := math.Inf(1)
	for _, w := range r.ways() {
		if err := ctx.Err(); err != nil {
			return Estimate{}, err
		}
		p, err := r.plan(ctx, w, kinds, questions)
		if err != nil {
			return Estimate{}, err
		}
		report.Plans = append(report.Plans, p)
		if w.rounds != r.Rounds { // a batch fixed beforehand is another way to work
			continue
		}
		if width, ok := p.meanWidth(kinds); ok && width < best {
			best, report.Recommended = width, p.Name
		}
	}
	report.Notes = report.notes(r, kinds)
	return report, nil
}

// For plans a workload for a request of the general planner, and says for how many questions that is then to be asked: as many as the recommended plan has. Errors are
// *[RequestError] and *[compare.RequestError], or the context's.
func For(ctx context.Context, r compare.Request, text string) (Estimate, int64, error) {
	general := r
	general.Questions = max(r.Questions, r.Rounds, r.Tokens, 1)
	if err := general.Check(); err != nil {
		return Estimate{}, 0, err
	}
	e, err := Make(ctx, Request{N: r.N, Training: r.Training, Questions: r.Questions, Tokens: r.Tokens, Rounds: r.Rounds, Confidence: r.Confidence, Workload: text})
	for _, w := range e.Plans {
		if w.Name == e.Recommended {
			general.Questions = max(general.Questions, w.Questions)
		}
	}
	return e, general.Questions, err
}

// compiled is one question of a kind, with the made-up training part that it is about.
type compiled struct {
	query    *queries.Query
	plan     *queries.Plan
	training session.Source
	fitted   bool
}

// plan is what a way has for the workload.
func (r Request) plan(ctx context.Context, w way, kinds []item, questions []compiled) (Way, error) {
	p := Way{Name: w.name, Mechanism: w.mechanism, Rounds: w.rounds}
	total, width := int64(0), max(r.Questions, 2)
	for range 2 { // prices first, by any guarantee; then the guarantee that has them
		g, err := r.guarantee(w, width)
		var refused *thresholdout.ParamError
		if errors.As(err, &refused) {
			p.Refused = refused.Error()
			return p, nil
		}
		if err != nil {
			return p, err
		}
		p.Items, total = nil, 0
		for i, c := range questions {
			one, err := r.foresee(ctx, g, c)
			if err != nil {
				return p, err
			}
			p.Items = append(p.Items, one)
			total += kinds[i].count * one.Questions
		}
		if p.Tokens, p.Assumes = g.Tokens, ""; g.NeedsTokens() {
			p.Assumes = "training values that the holdout agrees with, or good guesses: each that is not spends a token"
		} else if g.Sliced() {
			p.Assumes = "units that are alike"
		} else if w.rounds == 1 {
			p.Assumes = "all questions are fixed before any answer is seen"
		}
		if p.Questions = max(total, r.Questions); p.Questions == width || total == 0 {
			break
		}
		width = max(p.Questions, w.rounds)
	}
	return p, nil
}

// guarantee is that of a way with so many questions.
func (r Request) guarantee(w way, questions int64) (thresholdout.Guarantee, error) {
	spec := thresholdout.Spec{Mechanism: w.mechanism, N: r.N, Questions: questions, Confidence: r.Confidence, Rounds: min(w.rounds, questions)}
	kind, _ := thresholdout.KindOf(w.mechanism)
	if thresholdout.Does[thresholdout.Compares](kind) {
		spec.Training = made(r.Training)
		spec.Tokens = min(r.Tokens, questions)
		if r.Tokens == 0 {
			spec.Tokens = min(thresholdout.DefaultTokens, questions)
		}
	} else if r.Training > 0 {
		spec.Training = made(r.Training)
	}
	return thresholdout.Plan(spec)
}

// foresee is what a guarantee has for one question: the last one, as far as its price leaves questions before it.
func (r Request) foresee(ctx context.Context, g thresholdout.Guarantee, c compiled) (p Price, err error) {
	s := &session.Session{Guarantee: g, RandomSplit: !c.fitted}
	q, err := s.Question(c.query, c.plan)
	var wrong *session.WrongError
	if errors.As(err, &wrong) {
		return Price{Refused: wrong.Detail}, nil
	}
	if err != nil {
		return p, err
	}
	p.Questions = s.Price(q.Plan).Questions
	state := thresholdout.State{}
	if g.Rounds == 0 {
		state.Questions = max(0, g.Questions-p.Questions)
	}
	if g.Affordable(state) < p.Questions {
		return p, nil // a guarantee to ask for prices
	}
	training, err := session.TrainingSums(ctx, s.Played(state, q.Plan), session.Reference{Training: c.training})
	if err != nil {
		return p, err
	}
	ways, _, err := s.Prospects(state, q, training)
	if err != nil {
		return p, fmt.Errorf("workload: %w", err)
	}
	p.HalfWidth = ways[0].HalfWidth
	known := true
	for _, w := range ways {
		if known = known && w.Widest != nil; known && (p.Widest == nil || *w.Widest > *p.Widest) {
			p.Widest = w.Widest
		}
	}
	if !known {
		p.Widest = nil
	}
	return p, nil
}

// meanWidth is the logarithm of the geometric mean of a plan's half-widths in ranges; false where something is not answered.
func (p Way) meanWidth(kinds []item) (float64, bool) {
	sum, count := 0.0, 0.0
	for i, one := range p.Items {
		if one.Refused != "" || one.HalfWidth == nil {
			return 0, false
		}
		sum += float64(kinds[i].count) * math.Log(*one.HalfWidth/(kinds[i].high-kinds[i].low))
		count += float64(kinds[i].count)
	}
	return sum / count, p.Refused == "" && count > 0
}

// notes say what to choose, and what to know of it.
func (report Estimate) notes(r Request, kinds []item) (notes []string) {
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	var chosen *Way
	for i := range report.Plans {
		if report.Plans[i].Name == report.Recommended {
			chosen = &report.Plans[i]
		}
	}
	if chosen == nil {
		say("No mechanism answers all of these questions one after the other; see why at each.")
		return notes
	}
	tokens := ""
	if chosen.Tokens > 0 {
		tokens = fmt.Sprintf("&tokens=%d", chosen.Tokens)
	}
	say("%s is narrowest: create the holdout with mechanism=%s&questions=%d%s.", chosen.Name, chosen.Mechanism, chosen.Questions, tokens)
	for i, one := range chosen.Items {
		if one.Questions > max(2, chosen.Questions/10) {
			say("A %s costs %d of the %d questions, more than a tenth: ask it with max_questions=%d.", report.Items[i].Of, one.Questions, chosen.Questions, one.Questions)
		}
		if one.HalfWidth != nil && *one.HalfWidth >= kinds[i].width()/2 {
			say("A %s would say nothing: its half-width is half of its range. Ask fewer questions, or hold out more units.", report.Items[i].Of)
		}
	}
	if r.Rounds != 1 {
		say("If all questions can be written down before the first answer is seen, compare the plan with rounds=1.")
	}
	return notes
}

// source is a table in which every row stands for as many.
type source struct {
	table *engine.Table
	times int64
}

// Units implements session.Source.
func (s source) Units() int64 { return s.table.Units() * s.times }

// Sums implements session.Source.
func (s source) Sums(ctx context.Context, functions []queries.RowFunction, _, _ int64) ([]int64, error) {
	sums, err := s.table.Sums(ctx, functions, 0, s.table.Units())
	for i := range sums {
		sums[i] *= s.times
	}
	return sums, err
}

// Moments implements session.Source.
func (s source) Moments(ctx context.Context, batch rowfn.Batch, _, _ int64) (rowfn.Sums, error) {
	sums, err := s.table.Moments(ctx, batch, 0, s.table.Units())
	for i := range sums.Values {
		sums.Values[i] *= s.times
	}
	for i, one := range sums.Products {
		all := rowfn.Wide{}
		for range s.times {
			all = all.Plus(one)
		}
		sums.Products[i] = all
	}
	return sums, err
}
