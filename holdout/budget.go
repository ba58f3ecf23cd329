package holdout

import (
	"context"
	"fmt"

	"github.com/holdoutd/holdoutd/queries"
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

// balance is what the meters tell of a holdout.
func (h *opened) balance(ctx context.Context, s *Service) (thresholdout.State, error) {
	questions, other, err := s.ledger.Balance(ctx, h.id)
	if err != nil {
		return thresholdout.State{}, s.ledgerError(err)
	}
	return spent(h.params, questions, other), nil
}

// cost is what an answer debits that leads from one state to another. The first answer of a round pays for the round.
func (h *opened) cost(before, after thresholdout.State) Cost {
	c := Cost{Questions: after.Questions - before.Questions, Tokens: after.Tokens - before.Tokens}
	if h.params.Rounds > 0 && before.InRound == 0 {
		c.Rounds = 1
	}
	return c
}

// unaffordable says why the budget does not pay for a question; "" if it does. Each mean that is checked can spend a token, and
// a question is answered whole or not asked, so it needs as many tokens as it has means.
func (h *opened) unaffordable(state thresholdout.State, plan *queries.Plan) string {
	p := h.params
	switch {
	case p.Rounds > 0 && state.Rounds >= p.Rounds:
		return RoundsExhausted
	case p.Affordable(state) < int64(h.price(plan)):
		return QuestionsExhausted
	case p.HasTokens() && p.Tokens-state.Tokens < int64(h.tokensAtRisk(plan)):
		return TokensExhausted
	}
	return ""
}

// exhausted is the refusal of a single question.
func (h *opened) exhausted(reason string, state thresholdout.State, plan *queries.Plan) *Error {
	b := budgetOf(h.params, state)
	meter, requested, remaining := "questions", int64(h.price(plan)), h.params.Affordable(state)
	detail := "the question costs %d and %d are left"
	switch {
	case reason == TokensExhausted:
		meter, requested, remaining = "tokens", int64(h.tokensAtRisk(plan)), b.Tokens.Left
		detail = "the question needs %d tokens and %d are left"
	case reason == RoundsExhausted:
		meter, requested, remaining = "rounds", 1, b.Rounds.Left
		detail = "the question needs %d round and %d are left"
	case h.params.Rounds > 0:
		detail = "the question costs %d and a round has %d"
	}
	return &Error{Kind: BudgetExhausted, Detail: fmt.Sprintf(detail+"; questions that were answered before are still replayed", requested, remaining),
		Members: map[string]any{"requested": requested, "remaining": remaining, "affordable": int64(0), "meter": meter}}
}

// budgetOf is what is left of a guarantee.
func budgetOf(p thresholdout.Params, s thresholdout.State) Budget {
	b := Budget{Questions: Meter{Left: p.Left(s), Of: p.Questions}}
	if p.HasTokens() {
		b.Tokens = &Meter{Left: p.Tokens - s.Tokens, Of: p.Tokens}
	}
	if p.Rounds > 0 {
		b.Rounds = &Meter{Left: p.Rounds - s.Rounds, Of: p.Rounds}
	}
	return b
}
