package holdout

import (
	"fmt"

	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// The ledger keeps two meters of a holdout. The first counts questions. The second counts what else the mechanism rations:
// tokens, or rounds.

// second is how much of the second meter a guarantee has.
func second(p thresholdout.Params) int64 { return p.Tokens + p.Rounds }

// spent is the part of the state that the meters tell.
func spent(p thresholdout.Params, questions, second int64) thresholdout.State {
	if p.Rounds > 0 {
		return thresholdout.State{Questions: questions, Rounds: second}
	}
	return thresholdout.State{Questions: questions, Tokens: second}
}

// exhausted is the refusal of a single question.
func (h *opened) exhausted(reason string, state thresholdout.State, price session.Price) *Error {
	b := h.session.Budget(state)
	meter, requested, remaining := "questions", price.Questions, h.params.Affordable(state)
	detail := "the question costs %d and %d are left"
	switch {
	case reason == session.TokensExhausted:
		meter, requested, remaining = "tokens", price.Tokens, b.Tokens.Left
		detail = "the question needs %d tokens and %d are left"
	case reason == session.RoundsExhausted:
		meter, requested, remaining = "rounds", 1, b.Rounds.Left
		detail = "the question needs %d round and %d are left"
	case h.params.Rounds > 0:
		detail = "the question costs %d and a round has %d"
	}
	return &Error{Kind: BudgetExhausted, Detail: fmt.Sprintf(detail+"; questions that were answered before are still replayed", requested, remaining),
		Members: map[string]any{"requested": requested, "remaining": remaining, "affordable": int64(0), "meter": meter}}
}
