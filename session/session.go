// Package session is the middle of the house: it plays a compiled query through a guarantee. From a question, the exact sums of
// its row functions and the mechanism's state it makes the answer with its interval, and the next state.
//
// It stands between the query language (package queries), which knows no mechanism, and the mechanisms (package
// thresholdout), which know no query. It does no I/O and keeps nothing: the same arguments give the same answer. The
// server adds durability and many askers (package holdout), the experiments add simulated data, and both play the same way.
//
// The way of a question has five steps, which are five calls:
//
//	q, err := s.Question(query, plan)           // what can be known before any row is read
//	reason := s.Short(state, q)                 // may it be asked?
//	q, err = s.Settle(state, q, training, most) // checked or measured, where the asker leaves it open
//	sums, err := s.Scan(ctx, state, []*session.Question{q}, holdout, reference)
//	answer, state, err := s.Ask(begun, state, q, sums[0])
//
// [Local] does all of them for a program that keeps its own holdout. Two duties stay with whoever calls Ask: the next state must
// be durable before the answer is shown, and a question that was answered must be answered with the same bytes again.
package session

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn/cells"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Session is a guarantee with what its answers are drawn and named with. It has no state of its own.
type Session struct {
	Holdout   string                 // the holdout's id, as answers name it
	Guarantee thresholdout.Guarantee // as thresholdout.Plan made it, or as it was stored
	Noise     NoiseOf
	// Unlike says that the units are known to differ: rows that are public but for a label, or strata. Statistics of pairs, whose intervals are for units of one
	// population, are then not checked as one.
	Unlike bool
	// RandomSplit says that the training part is a random part of the same units: promises may be taken from it.
	RandomSplit bool
	// NoCheckPart says that no part is kept for questions about models: what is compared with their answer is their score on the training part, which they may have been fitted to. See [Session.Settle].
	NoCheckPart bool
	// Cells are the declared ones, of a guarantee that is about cells; SeveralRows says that units of the table can have more than one row. Such a guarantee answers nothing without them.
	Cells       *cells.Domain
	SeveralRows bool
}

// NoiseOf is the noise of one row function of a question, by the question's id and the function's place in its plan. It must be a
// function of its arguments: a question that is asked again after a crash must draw the same noise.
type NoiseOf func(question string, function int) thresholdout.Noise

// Keyed is noise for a holdout that is asked in earnest: a function of a secret key of 256 random bits and of the digest of the
// data. Two holdouts with other rows must differ in one of them, or the difference of two answers shows the rows without noise.
func Keyed(key noise.Key, data [32]byte) NoiseOf {
	return func(question string, function int) thresholdout.Noise {
		return thresholdout.Keyed{Key: key, Data: data, Query: question, Index: function}
	}
}

// Question is a query that this guarantee can answer.
type Question struct {
	ID        string // "sha256:…"; equal questions have equal ids
	Canonical []byte
	Plan      *queries.Plan
	guess     *guessed // where the mechanism takes guesses: the asker's own, or nil
	checked   bool     // the asker wants a check, and nothing measured

	// Pledge is the promise that the question names, about its plan's row function; nil: none, or, if suggested, what the training part suggests when it is asked.
	// promise is the same as the query says it.
	Pledge    *thresholdout.Pledge
	suggested bool
	promise   *queries.Promise
}

// WrongError is a query that this guarantee cannot answer, whatever the rows are.
type WrongError struct {
	Pointer string // JSON pointer of the member that is wrong
	Detail  string
}

func (e *WrongError) Error() string { return "session: " + e.Pointer + ": " + e.Detail }

func wrong(pointer, format string, args ...any) error {
	return &WrongError{Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
}

// Question checks a compiled query against the guarantee, by public facts alone. Errors are *[WrongError].
func (s *Session) Question(query *queries.Query, compiled *queries.Plan) (*Question, error) {
	p, plan := s.Guarantee, s.form(compiled)
	switch {
	case plan.Checked() && s.Unlike && plan.Checks != nil && plan.Checks.Alike:
		return nil, wrong("/type", "the units of this holdout are known to differ, and an interval of a %s is for units of one population", query.Type())
	case s.batchOnly(plan) && p.AllLast() && s.lastForm(plan).Checked():
	case plan.Checked() && !p.ChecksStatistics():
		return nil, wrong("/type", "the mechanism %s of this holdout has no answer to a %s; guess_and_check and split have, and gaussian with rounds=1", p.Mechanism, query.Type())
	case plan.Sequential() && p.Rounds > 0:
		instead := ""
		if share := query.Share(); share != "" {
			instead = ", such as " + share
		}
		return nil, wrong("/type", "%s cannot be asked in rounds: its search chooses each step from earlier answers, and the questions of a round are chosen before any answer; ask for fractions instead%s", query.Type(), instead)
	}
	for _, r := range compiled.Releases() {
		if r.Price() > 1 && !p.Together() { // it would be part of the question's identity, without any effect
			return nil, wrong("/questions", "the mechanism %s of this holdout selects by the means of all candidates, each a question; questions is for mechanisms that select at once", p.Mechanism)
		}
	}
	if err := s.checkSubmission(plan); err != nil {
		return nil, err
	}
	if err := s.checkCells(plan); err != nil {
		return nil, err
	}
	guess, err := s.guessed(query, plan)
	if err != nil {
		return nil, err
	}
	measure, said := query.Measures()
	q := &Question{ID: query.ID(), Canonical: query.Canonical(), Plan: plan, guess: guess, checked: said && !measure, promise: query.Promise()}
	if err := s.bear(q); err != nil {
		return nil, err
	}
	return q, nil
}

// form is the plan in the form in which the guarantee releases it: under a mechanism that checks statistics by these, each one question.
func (s *Session) form(plan *queries.Plan) *queries.Plan {
	if !s.Guarantee.ChecksStatistics() {
		return plan
	}
	if s.Unlike && plan.Checks != nil && plan.Checks.Alike && !plan.Checked() {
		plan = plan.ByEquations()
	}
	return s.known(plan).AsChecked()
}

// known is a plan without a form of several rows a unit that the guarantee does not know.
func (s *Session) known(plan *queries.Plan) *queries.Plan {
	if plan.Checks != nil && plan.Checks.Clustered && !plan.Checked() && !s.Guarantee.ChecksClusters() {
		return plan.ByEquations()
	}
	return plan
}

// Exclusive reports whether the state must not move between the scan and the answer of this question: where its rows
// or its price depend on the state. Nothing else of the holdout may then be answered in between. All other questions may be answered
// at the same time, in any order, as long as each has reserved its price.
//
// state is any durable one of the holdout: spent tokens do not come back, so that what is settled once stays settled.
func (s *Session) Exclusive(state thresholdout.State, q *Question) bool {
	p := s.Guarantee
	switch {
	case p.Sliced(), p.Rounds > 0:
		return true
	case s.Open(state, q):
		return true
	}
	return s.Greedy(q.Plan)
}

// Greedy reports whether a question takes as many tokens as there are: one of optional means, which end where tokens do. While
// it is in flight no other question has a token of its own.
func (s *Session) Greedy(plan *queries.Plan) bool {
	return s.Guarantee.NeedsTokens() && slices.ContainsFunc(plan.Releases(), func(r queries.Release) bool { return r.Optional })
}

// answerSpace makes answer ids: a question of a holdout has one answer, so its id is a function of both.
var answerSpace = uuid.MustParse("3b1c0f6e-6a55-4c1d-9d0c-1f0f2f6f4b7a")

func (s *Session) answerID(question string) string {
	return "ans_" + uuid.NewSHA1(answerSpace, []byte(s.Holdout+" "+question)).String()
}
