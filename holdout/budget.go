package holdout

import (
	"fmt"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// The ledger keeps what is spent by the names of meters; a mechanism counts in amounts of the meters that it knows.

// limits are the meters of a guarantee as its books have them.
func limits(g thresholdout.Guarantee) ledger.Meters {
	m := ledger.Meters{}
	for _, meter := range g.Meters() {
		m[meter.Name] = meter.Limit
	}
	return m
}

// debited are amounts as an entry debits them: without the meters of which nothing is spent, which the guarantee may not have.
func debited(a thresholdout.Amounts) ledger.Meters {
	m := ledger.Meters{}
	for name, amount := range a.All() {
		if amount != 0 {
			m[name] = amount
		}
	}
	return m
}

// spent is the part of the state that the books tell.
func spent(books ledger.Meters) thresholdout.State {
	a := thresholdout.AmountsOf(func(meter string) int64 { return books[meter] })
	return thresholdout.State{Questions: a.Questions, Tokens: a.Tokens, Rounds: a.Rounds}
}

// exhausted is the refusal of a single question.
func (h *opened) exhausted(reason string, state thresholdout.State, price session.Price) *Error {
	b := h.session.Budget(state)
	e := &Error{Kind: BudgetExhausted, Detail: h.lacks(reason, state, price) + "; questions that were answered before are still replayed"}
	meter, requested, remaining := "questions", price.Questions, h.guarantee.Affordable(state)
	switch reason {
	case session.TokensExhausted:
		meter, requested, remaining = "tokens", leastTokens(price), b.Tokens.Left
	case session.HoldoutClosed, session.HoldoutRetired:
		remaining = 0
	case session.RoundsExhausted:
		meter, requested, remaining = "rounds", 1, b.Rounds.Left
	}
	e.Members = map[string]any{"requested": requested, "remaining": remaining, "affordable": int64(0), "meter": meter}
	if meter == "tokens" {
		e.Members["questions_left"] = b.Questions.Left
	}
	return e
}

// leastTokens is how many tokens a question needs that is refused for want of them: its price, or the one of a promise.
func leastTokens(price session.Price) int64 { return max(price.Tokens, 1) }

// lacks says of which meter too little is left for a question, and how much.
func (h *opened) lacks(reason string, state thresholdout.State, price session.Price) string {
	b := h.session.Budget(state)
	switch {
	case reason == session.HoldoutClosed:
		return "the holdout was closed by its final report, and answers nothing more"
	case reason == session.HoldoutRetired:
		return "the holdout is retired, and answers nothing more: its rows were released"
	case reason == session.TokensExhausted:
		return fmt.Sprintf("the question needs %d tokens and %d are left; of the questions %d are left", leastTokens(price), b.Tokens.Left, b.Questions.Left)
	case reason == session.RoundsExhausted:
		return fmt.Sprintf("the question needs 1 round and %d are left", b.Rounds.Left)
	case h.guarantee.Rounds > 0:
		return fmt.Sprintf("the question costs %d and a round has %d", price.Questions, h.guarantee.Affordable(state))
	}
	return fmt.Sprintf("the question costs %d and %d are left", price.Questions, h.guarantee.Affordable(state))
}

// RoundNotFull is the code of the warning that a request closes, or closed, a round without asking all of its questions.
const RoundNotFull = "round-not-full"

// halfEmpty warns of a request that asks so many questions in this state, where these do not fill the round that it closes; nil where nothing is lost.
func (h *opened) halfEmpty(state thresholdout.State, questions int64) *Warning {
	size := h.guarantee.Affordable(state)
	if h.guarantee.Rounds == 0 || questions == 0 || questions >= size {
		return nil
	}
	return &Warning{Code: RoundNotFull, Detail: fmt.Sprintf("the request closes round %d of %d with %d of its %d questions, and %d are lost", state.Rounds+1, h.guarantee.Rounds, questions, size, size-questions)}
}
