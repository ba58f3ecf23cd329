package holdout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// The final report of a holdout: one batch of questions whose answers are exact, after which it answers nothing more. Answers and closing are one update of
// the ledger: what was told is closed, and what was not told has closed nothing.

// MaxReport is how many different queries a final report may have: what a person reads. The width of each grows slowly with their number.
const MaxReport = 100

// closing is what a request says that is a final report.
type closing struct{ title string }

// MaxTitle is the length of a report's title in bytes.
const MaxTitle = 200

// closedVersion is the version of closed.
const closedVersion = 1

// closed is the core of the entry that closes a holdout.
type closed struct {
	Version int      `json:"version"`
	Holdout string   `json:"holdout"`
	Closed  bool     `json:"closed"`
	Title   string   `json:"title,omitempty"`
	Report  []string `json:"report"` // the ids of its queries, in order; one that is void has no answer
	Before  Spent    `json:"before"`
	Sealed  int64    `json:"sealed,omitempty"` // how many units were read, where it was the sealed ones alone
}

// Spent is what was spent before a report.
type Spent struct {
	Questions int64 `json:"questions" doc:"questions that were asked before the report"`
	Tokens    int64 `json:"tokens" doc:"tokens that were spent before it: a wrong guess costs one, and a measured answer"`
}

// FinalReport is the final report of a holdout.
type FinalReport struct {
	ReportFacts
	Answers []ReportAnswer  `json:"answers"` // in the order of the report
	Ledger  json.RawMessage `json:"ledger"`  // the place of the closing: seq and head
}

// ReportFacts are what a final report says beside its answers.
type ReportFacts struct {
	Holdout    string        `json:"holdout" doc:"its id"`
	Name       string        `json:"name" doc:"of the holdout"`
	Title      string        `json:"title,omitempty" doc:"of the report"`
	Time       time.Time     `json:"time" doc:"when the holdout was closed, in whole seconds"`
	ClosedBy   Asker         `json:"closed_by"`
	Before     Spent         `json:"before" doc:"what was spent before the report"`
	AskedBy    []ReportAsker `json:"asked_by" doc:"who asked for the answers before the report, most answers first"`
	Units      int64         `json:"units" doc:"held out, and read for the answers"`
	Sealed     bool          `json:"sealed,omitempty" doc:"the answers are read by the sealed units alone, which no question had read: what was asked before does not widen them"`
	Unit       string        `json:"unit" doc:"what is independent of the others: row, a column, or day(column)"`
	Confidence float64       `json:"confidence" doc:"that all intervals of the holdout hold together, those before the report included"`
	Target     string        `json:"target" doc:"what the intervals are about"`
	Warnings   []Warning     `json:"warnings" doc:"what the card warns of that the intervals rest on: rows that are not independent of each other"`
}

// ReportAnswer is an answer of a report.
type ReportAnswer struct {
	Body      json.RawMessage `json:"answer" doc:"the recorded bytes, the same for ever"`
	Canonical json.RawMessage `json:"canonical" doc:"the query"`
	Note      *string         `json:"note" doc:"the remark that came with the query, such as a model's name"`
	Measure   queries.Measure `json:"measure" doc:"what the answer measures"`
	Per       string          `json:"per,omitempty" doc:"where units have several rows: what has one vote each"`
}

// ReportAsker is who asked before a report.
type ReportAsker struct {
	Asker
	Answers int64 `json:"answers" doc:"how many answers the key asked for first"`
}

// ReportPlan is what is known of a report before it: the width of each answer if the holdout is as the parts are that it would be compared with. It costs nothing.
type ReportPlan struct {
	Answers []PlannedReport `json:"answers" doc:"in the order of the queries"`
	Before  Spent           `json:"before"`
	Closes  int64           `json:"closes" doc:"how many questions are left, all of which the report takes"`
	Sealed  bool            `json:"sealed,omitempty" doc:"the report would be read by the sealed units alone: that is narrower than by all units, after what was asked"`
}

// PlannedReport is one answer of a [ReportPlan].
type PlannedReport struct {
	Query     string            `json:"query" doc:"the query's identity in the report: sha256:…"`
	Measure   queries.Measure   `json:"measure"`
	Note      *string           `json:"note"`
	Questions int64             `json:"questions" doc:"how many numbers it has; what the report's share of the probability of error is divided by"`
	Value     *float64          `json:"value" doc:"what the rows of value_from say; null where the answer is items or undefined"`
	ValueFrom session.ValueFrom `json:"value_from,omitempty" enum:"check,training,training+check" doc:"which rows value is of"`
	HalfWidth *float64          `json:"half_width" doc:"the planned half-width; of items the widest; null where none is known"`
	Bound     string            `json:"bound,omitempty" doc:"the theorem"`
	Items     []Item            `json:"items,omitempty"`
	Warnings  []Warning         `json:"warnings"`
}

// CloseWithReport closes a holdout with its final report: all queries are chosen, and read, before any answer is seen. The same report again is the recorded one. Only admins may: what
// is left of the budget is gone.
func (s *Service) CloseWithReport(ctx context.Context, p Principal, id string, batch []json.RawMessage, title, idempotencyKey string) (FinalReport, error) {
	if err := admins(p); err != nil {
		return FinalReport{}, err
	}
	if len(title) > MaxTitle {
		return FinalReport{}, invalid("/title", "%d bytes, at most %d", len(title), MaxTitle)
	}
	err := s.InTurn(ctx, p, batchWork(batch), func(ctx context.Context) error {
		parsed, err := s.parseReport(ctx, id, batch)
		if err != nil {
			return err
		}
		_, err = s.askAll(ctx, p, id, parsed, request{key: idempotencyKey, report: &closing{title}})
		return err
	})
	if err != nil {
		return FinalReport{}, err
	}
	return s.Report(ctx, p, id)
}

// parseReport reads the queries of a report.
func (s *Service) parseReport(ctx context.Context, id string, batch []json.RawMessage) ([]*queries.Query, error) {
	if len(batch) > MaxReport {
		return nil, &Error{Kind: TooLarge, Pointer: "/queries", Detail: fmt.Sprintf("%d queries in a final report, at most %d", len(batch), MaxReport)}
	}
	parsed, label, numbers := make([]*queries.Query, len(batch)), s.labelOf(ctx, id), s.numbersOf(ctx, id)
	for i, body := range batch {
		q, err := s.parse(ctx, body, label, numbers)
		if err == nil {
			if q, err = q.Reported(); err != nil {
				err = queryError(err)
			}
		}
		if err != nil {
			return nil, below(err, "/queries/"+strconv.Itoa(i))
		}
		parsed[i] = q
	}
	return parsed, nil
}

// reportsAlone is the refusal of a report's question by itself, where it has no answer yet.
func reportsAlone() *Error {
	return invalid("/report", "it marks a question of a final report, and nothing else asks it; leave it out, or close the holdout with a report")
}

// closesNone is the refusal of a report where the mechanism has none.
func (h *opened) closesNone() *Error {
	return invalid("", "the mechanism %s of this holdout has no final report; guess_and_check has. With rounds the answers of the last round are exact: put what you report into it", h.guarantee.Mechanism)
}

// closeState is the state in which the questions of a report are answered, after the durable one, in which something may be held for others: no report spends that. Errors refuse the report.
func (h *opened) closeState(state thresholdout.State, others session.Held, size int64) (thresholdout.State, error) {
	switch {
	case !h.guarantee.Closes():
		return state, h.closesNone()
	case state.Retired:
		return state, h.exhausted(session.HoldoutRetired, state, session.Price{Questions: size})
	case state.Reporting():
		return state, h.exhausted(session.HoldoutClosed, state, session.Price{Questions: size})
	}
	next, err := h.guarantee.Close(state, size)
	left := h.guarantee.Affordable(h.without(state, others))
	if err == nil && size > left {
		err = thresholdout.ErrNoQuestions
	}
	if err != nil {
		return state, &Error{Kind: BudgetExhausted, Err: err,
			Detail:  fmt.Sprintf("the report has %d numbers and %d questions are left: a report needs a question for each; report fewer", size, left) + keptFor(others),
			Members: map[string]any{"requested": size, "remaining": left, "affordable": left, "meter": thresholdout.MeterQuestions}}
	}
	return next, nil
}

// enterReport takes the whole account for a report. The account's lock is held.
func (a *admission) enterReport(ctx context.Context, f *flight, fresh []*question) error {
	state, err := f.account.current(ctx, a.service, a.holdout, f.term)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, q := range fresh {
		size += q.price.Questions
	}
	if state, err = a.holdout.closeState(state, f.account.kept(), size); err != nil {
		return err
	}
	for _, q := range fresh {
		q.price = a.holdout.session.PriceIn(state, q.asked.Plan)
	}
	f.state, f.begun, f.pending = state, state, fresh
	f.reserved = &reservation{account: f.account, alone: true, questions: size}
	f.account.questions += size
	return nil
}

// closeHoldout ends the questions of a holdout, in the update in which the answers of its report are recorded. Where no question has an answer, nothing was told, and nothing is closed.
func (c *commit) closeHoldout(tx *ledger.Tx, piece []commitItem, out []recorded, state thresholdout.State) (thresholdout.State, error) {
	f := c.flight
	before := Spent{Questions: state.Closing.Before, Tokens: state.Tokens}
	if !slices.ContainsFunc(out, func(r recorded) bool { return r.void == nil }) {
		state.Closing = thresholdout.Closing{}
		return state, nil
	}
	core := closed{Version: closedVersion, Holdout: f.holdout.id, Closed: true, Title: f.request.report.title, Before: before}
	if state.Closing.Sealed {
		core.Sealed = f.holdout.guarantee.Sealed()
	}
	for i := range piece {
		core.Report = append(core.Report, piece[i].question.id)
	}
	text, err := json.Marshal(core)
	if err != nil {
		return state, err
	}
	if _, err := tx.Close(ledger.Closing{Principal: f.principal.KeyID, Core: text, Time: c.time}); err != nil {
		return state, err
	}
	return f.holdout.guarantee.Closed(state), nil
}

// Report is the final report of a closed holdout. It reads the answers before the report, too, to say who asked for them.
func (s *Service) Report(ctx context.Context, p Principal, id string) (r FinalReport, err error) {
	err = s.InTurn(ctx, p, Work{Bytes: 3 * pageBytes}, func(ctx context.Context) error {
		right, err := s.rightTo(ctx, p, id)
		if err == nil {
			err = right.all("the final report")
		}
		if err != nil {
			return err
		}
		r, err = s.report(ctx, p, id)
		return err
	})
	return r, err
}

func (s *Service) report(ctx context.Context, p Principal, id string) (FinalReport, error) {
	record, card, err := s.find(ctx, id)
	if err != nil {
		return FinalReport{}, err
	}
	e, ok, err := s.ledger.Closing(ctx, id)
	switch {
	case err != nil:
		return FinalReport{}, s.ledgerError(err)
	case !ok && record.Retired:
		return FinalReport{}, &Error{Kind: NotFound, Detail: "this holdout was retired without a final report, and can have none: its rows were released"}
	case !ok:
		return FinalReport{}, &Error{Kind: NotFound, Detail: "this holdout has no final report yet: it still answers questions"}
	}
	var said struct {
		closed
		Ledger json.RawMessage `json:"ledger"`
	}
	if err := readVersion("the closing", e.Body, closedVersion); err != nil {
		return FinalReport{}, err
	}
	if err := json.Unmarshal(e.Body, &said); err != nil {
		return FinalReport{}, s.ledgerError(&ledger.CorruptError{Holdout: id, Seq: e.Seq, Reason: "the closing", Err: err})
	}
	h := historian{service: s, principal: p, id: id, unit: card.Unit}
	facts := ReportFacts{Holdout: id, Name: card.Name, Title: said.Title, Time: e.Time.UTC().Truncate(time.Second), ClosedBy: Asker{ID: e.Principal}, Before: said.Before,
		Units: card.Units.Holdout, Unit: card.Unit, Confidence: card.Guarantee.Confidence, Target: card.Target, AskedBy: []ReportAsker{}, Warnings: []Warning{}}
	if said.Sealed > 0 {
		facts.Units, facts.Sealed = said.Sealed, true
	}
	for _, w := range card.Warnings {
		if w.Code == dependentRows || w.Code == repeatedUnits {
			facts.Warnings = append(facts.Warnings, w)
		}
	}
	r := FinalReport{ReportFacts: facts, Answers: []ReportAnswer{}, Ledger: said.Ledger}
	if r.ClosedBy.Name, err = h.name(ctx, e.Principal); err != nil {
		return FinalReport{}, err
	}
	if err := h.reported(ctx, &r, said.Report); err != nil {
		return FinalReport{}, err
	}
	return r, nil
}

// reported reads the answers of a report, and counts those before them.
func (h *historian) reported(ctx context.Context, r *FinalReport, ids []string) error {
	found := make(map[string]ReportAnswer, len(ids))
	count := map[string]int64{}
	for after := int64(0); ; {
		entries, err := h.service.ledger.Answers(ctx, h.id, "", after, pageRead)
		if err != nil {
			return h.service.ledgerError(err)
		}
		for i := range entries {
			e := &entries[i]
			after = e.Seq
			if !slices.Contains(ids, e.Query) {
				count[e.Principal]++
				continue
			}
			a := ReportAnswer{Body: e.Body, Canonical: e.Canonical, Measure: queries.MeasureOfText(e.Canonical), Per: votes(h.unit, func() []byte { return e.Canonical })}
			if e.Note != "" {
				a.Note = &e.Note
			}
			found[e.Query] = a
		}
		if len(entries) < pageRead {
			break
		}
	}
	for _, id := range ids {
		if a, ok := found[id]; ok { // one that is void has none
			r.Answers = append(r.Answers, a)
		}
	}
	for id, n := range count {
		asker := ReportAsker{Asker: Asker{ID: id}, Answers: n}
		var err error
		if asker.Name, err = h.name(ctx, id); err != nil {
			return err
		}
		r.AskedBy = append(r.AskedBy, asker)
	}
	slices.SortFunc(r.AskedBy, func(a, b ReportAsker) int {
		if a.Answers != b.Answers {
			return cmp.Compare(b.Answers, a.Answers)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return nil
}

// PlanReport says how wide the answers of a final report would be now. It touches no holdout row, costs nothing and changes nothing.
func (s *Service) PlanReport(ctx context.Context, p Principal, id string, batch []json.RawMessage) (plan ReportPlan, err error) {
	err = s.InTurn(ctx, p, batchWork(batch), func(ctx context.Context) error {
		right, err := s.rightTo(ctx, p, id)
		if err == nil {
			err = right.all("the plan of a report")
		}
		if err != nil {
			return err
		}
		plan, err = s.planReport(ctx, id, batch)
		return err
	})
	return plan, err
}

func (s *Service) planReport(ctx context.Context, id string, batch []json.RawMessage) (ReportPlan, error) {
	parsed, err := s.parseReport(ctx, id, batch)
	if err != nil {
		return ReportPlan{}, err
	}
	if len(parsed) == 0 {
		return ReportPlan{}, invalid("/queries", "a report needs at least one query")
	}
	h, release, err := s.take(ctx, id)
	if err != nil {
		return ReportPlan{}, err
	}
	defer release()
	asked, plans, size := make([]*session.Question, len(parsed)), make([]*queries.Plan, len(parsed)), int64(0)
	distinct, ids := map[string]bool{}, []string{}
	for i, q := range parsed {
		if asked[i], err = h.question(ctx, q); err != nil {
			return ReportPlan{}, below(err, "/queries/"+strconv.Itoa(i))
		}
		if err := need(ctx, heldWork(asked[i].Plan)); err != nil {
			return ReportPlan{}, err
		}
		plans[i] = asked[i].Plan
		if !distinct[asked[i].ID] { // equal queries of a report are one question
			size += h.session.Price(plans[i]).Questions
			ids = append(ids, asked[i].ID)
		}
		distinct[asked[i].ID] = true
	}
	if err := need(ctx, h.passWork(plans, 0, false)); err != nil {
		return ReportPlan{}, err
	}
	durable, others, err := s.leftOf(ctx, h, ids...)
	if err != nil {
		return ReportPlan{}, err
	}
	state, err := h.closeState(durable, others, size)
	if err != nil {
		return ReportPlan{}, err
	}
	for i := range plans {
		plans[i] = h.session.Played(state, plans[i])
	}
	training, err := session.AllTrainingSums(ctx, plans, h.reference)
	if err != nil {
		return ReportPlan{}, scanError(err)
	}
	plan := ReportPlan{Answers: make([]PlannedReport, len(asked)), Before: Spent{Questions: durable.Questions, Tokens: durable.Tokens}, Closes: h.guarantee.Left(h.without(durable, others)), Sealed: state.Closing.Sealed}
	for i, q := range asked {
		e := Explanation{Warnings: session.OfPlan(plans[i])}
		if err := h.foreseeReported(&e, q, state, training[i]); err != nil {
			return ReportPlan{}, err
		}
		a := PlannedReport{Query: q.ID, Measure: queries.MeasureOfText(q.Canonical), Questions: h.session.Price(q.Plan).Questions,
			Value: e.Training, ValueFrom: e.ValueFrom, HalfWidth: e.HalfWidth, Bound: e.Bound, Items: e.Items, Warnings: append([]Warning{}, e.Warnings...)}
		if note := parsed[i].Note; note != "" {
			a.Note = &note
		}
		plan.Answers[i] = a
	}
	return plan, nil
}

// foreseeReported says what the parts beside the holdout say to a question of a report, and the width that its answer would get. state is that of the report.
func (h *opened) foreseeReported(e *Explanation, q *session.Question, state thresholdout.State, training session.PartSums) error {
	if !training.None() {
		result, err := h.session.Training(h.session.Played(state, q.Plan), training)
		if err != nil {
			return fmt.Errorf("holdout: report: %w", err)
		}
		e.Training, e.Items, e.Selected, e.ValueFrom = result.Value, session.ItemsOf(result), result.Selected, training.From
	}
	return h.foresee(e, q, state, training)
}
