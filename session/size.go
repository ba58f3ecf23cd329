package session

import (
	"math"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// longest is a number whose JSON is as long as that of any: a sign, 17 digits and the most zeros that are written without an exponent,
// -0.0000012345678901234567.
const longest = -1.2345678901234567e-06

// longestNames are longer than, or as long as, those that a mechanism puts into an interval: one bound for passes, one for failures
// and one for vectors, or those of the numbers of a last answer, each cut in its own way; and the parts of a half-width.
const (
	longestBound   = "adaptive-hoeffding-scheduled and adaptive-hoeffding-scheduled+chernoff and adaptive-hoeffding-scheduled+sample-moments and adaptive-hoeffding-scheduled+chernoff+sample-moments and clopper-pearson and sample-moments"
	longestParts   = 6
	longestPart    = "sampling_and_adaptivity_and_noise_"
	longestSource  = thresholdout.Source("training+training")
	longestFrom    = ValueFromBoth
	longestOutcome = thresholdout.Measured
	longestVerdict = queries.Verdict("undecided")
)

// longestScope is as long as any scope of an answer of the guarantee.
func (s *Session) longestScope() string {
	plain := s.scope(thresholdout.State{})
	if report := s.scope(thresholdout.State{Closing: thresholdout.Closing{Size: 1}}); s.Guarantee.Closes() && len(report) > len(plain) {
		return report
	}
	return plain
}

// What an answer has at least of what AnswerBytes counts: beside its items, and for each item its three numbers and its members' names.
const (
	leastAnswer = 500
	leastItem   = len(`{"of":"","value":,"low":,"high":},`) + 3*len("-2.2250738585072014e-308")
)

// LeastBytes is a number of bytes that AnswerBytes is not below, whatever the query compiles to. It takes no time.
func LeastBytes(q *queries.Query) int { return leastAnswer + q.LeastItems()*leastItem }

// AnswerBytes bounds the bytes of a question's answer as JSON, by public facts alone: its names as often as they can be printed, and
// numbers as long as they can be. Which items it has, and which candidate it may name, is what the plan declares.
func (s *Session) AnswerBytes(q *Question) (int, error) {
	number := longest
	a := Answer{ID: s.answerID(q.ID), Holdout: s.Holdout, Query: q.ID, Value: &number, Regret: &number, PValue: &number, Plain: &number,
		Verdict: longestVerdict, Best: new(bool), Mechanism: s.Guarantee.Mechanism, Source: longestSource, ValueFrom: longestFrom, Outcome: longestOutcome,
		Cost: Cost{Questions: math.MaxInt64, Tokens: math.MaxInt64, Rounds: math.MaxInt64},
		Interval: &Interval{Low: &number, High: &number, Confidence: number, Scope: s.longestScope(), Target: q.Plan.Describe().Target, Bound: longestBound,
			Parts: map[string]float64{}}}
	for i := range longestParts {
		a.Interval.Parts[longestPart+string(rune('a'+i))] = number
	}
	if s.Guarantee.UsesTraining() && q.Plan.Fitted {
		a.Warnings = append(a.Warnings, trainingScore)
	}
	if q.bearsPromise() {
		a.Promise = &Promised{Bounds: Bounds{Disagreement: &number}, From: FromTraining, Held: new(bool)}
	}
	a.Warnings = append(a.Warnings, s.mostWarnings(q)...)
	for _, name := range q.Plan.Items(s.Guarantee.Together()) {
		a.Items = append(a.Items, Item{Of: name, Value: &number, Low: &number, High: &number})
	}
	if len(a.Items) == 0 {
		for range q.Plan.Numbers() {
			a.Functions = append(a.Functions, Released{Value: number, Low: &number, High: &number, Source: longestSource, From: longestFrom})
		}
	}
	for _, name := range q.Plan.Candidates() { // any of them can be the one that is selected
		if len(name) > len(a.Selected) {
			a.Selected = name
		}
	}
	body, err := a.JSON()
	// A name's escapes can make six bytes of one: the longest name in bytes need not be the longest in JSON.
	return len(body) + 5*len(a.Selected), err
}
