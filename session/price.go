package session

import (
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Reasons why a question cannot be asked any more.
const (
	QuestionsExhausted = "questions-exhausted"
	TokensExhausted    = "tokens-exhausted"
	RoundsExhausted    = "rounds-exhausted"
	HalfWidthTooNarrow = "half-width-too-narrow" // no guess can pass at the query's own half_width
	HoldoutClosed      = "holdout-closed"        // by a final report
	HoldoutRetired     = "holdout-retired"       // its rows were released
)

// Price is what must be left before a question is asked. Questions and rounds are paid whatever the answer is; Tokens is the most
// that it can need, and of a question with optional means ([Session.Greedy]) the least: it takes more where there are more.
type Price = thresholdout.Amounts

// Price is that of a plan: one question for each mean, or for the root of its equation, or less for means that are released as one; one token for each mean that is
// checked, but one for all optional means, which end where tokens do; one round. A measured answer costs more questions ([thresholdout.Guarantee.MeasuredPrice]).
func (s *Session) Price(plan *queries.Plan) Price {
	p, plan := s.Guarantee, s.form(plan)
	var price Price
	if p.Rounds > 0 {
		price.Rounds = 1
	}
	if s.batchOnly(plan) {
		plan = s.lastForm(plan)
	}
	for _, r := range plan.Releases() {
		switch {
		case plan.Measured && p.Measures():
			price.Questions += int64(r.Count) * p.MeasuredPrice()
		case !p.Together() || r.Kind == queries.Number:
			price.Questions += int64(r.Count)
		case r.Kind == queries.Vector:
			price.Questions += p.VectorPrice(r.Count, r.Variance)
		default:
			price.Questions += r.Price()
		}
		switch {
		case !p.NeedsTokens():
		case r.Optional:
			price.Tokens++
		default:
			price.Tokens += int64(r.Count)
		}
	}
	return price
}

// PriceIn is that of a plan in a state: in a final report no answer takes a token.
func (s *Session) PriceIn(state thresholdout.State, plan *queries.Plan) Price {
	price := s.Price(plan)
	if state.Reporting() {
		price.Tokens = 0
	}
	return price
}

// MostTokens is how many tokens an answer to a plan can take, where there are so many: one for each mean that is checked.
func (s *Session) MostTokens(plan *queries.Plan) int64 {
	if !s.Guarantee.NeedsTokens() {
		return 0
	}
	most := int64(0)
	for _, r := range s.form(plan).Releases() {
		most += int64(r.Count)
	}
	return most
}

// TokensAtMost is how many tokens an answer to a question can take, or its void, in any state.
func (s *Session) TokensAtMost(q *Question) int64 {
	most := max(s.Price(q.Plan).Tokens, s.MostTokens(q.Plan))
	if s.Guarantee.TakesPromises() && q.bearsPromise() {
		most = max(most, 1)
	}
	return most
}

// Decides reports whether the answers to a plan have a verdict.
func Decides(plan *queries.Plan) bool { return plan.Decision != nil || plan.Test != nil }

// Short says which meter does not pay for a question in this state; "" if all do. A question that names a promise needs a token that is left for a broken one; any other of its kind
// needs none, and is answered without a promise where none is left.
func (s *Session) Short(state thresholdout.State, q *Question) (reason string) {
	p, price := s.Guarantee, s.PriceIn(state, q.Plan)
	switch {
	case state.Retired:
		return HoldoutRetired
	case state.Reporting() && p.Affordable(state) == 0:
		return HoldoutClosed
	case p.Rounds > 0 && state.Rounds >= p.Rounds:
		return RoundsExhausted
	case p.Affordable(state) < price.Questions:
		return QuestionsExhausted
	case p.HasTokens() && p.Tokens-state.Tokens < price.Tokens, s.Unchecked(state, q):
		return TokensExhausted
	}
	return ""
}

// Unchecked reports whether a question names a promise that would not be checked in this state, since no token is left.
func (s *Session) Unchecked(state thresholdout.State, q *Question) bool {
	return q.Pledge != nil && !s.Guarantee.ChecksPromises(state)
}

// Meter is one count of a budget: Left of Of.
type Meter struct {
	Left int64 `json:"left"`
	Of   int64 `json:"of"`
}

// Budget is what is left of a guarantee. Tokens is nil for mechanisms without, Rounds where questions are asked one by one.
// Questions that a round does not use are lost.
type Budget struct {
	Questions Meter  `json:"questions"`
	Tokens    *Meter `json:"tokens"`
	Rounds    *Meter `json:"rounds,omitempty"` // where questions are asked in rounds

	NextRound int64 `json:"next_round,omitempty" doc:"how many questions the next round has; what of them the request does not ask is lost"`
	Lost      int64 `json:"lost,omitempty" doc:"questions of earlier rounds that nobody asked, and nobody can ask any more"`

	Held *Held `json:"held,omitempty" doc:"what of that is kept for questions that were sent to the source of the held-out rows and are not answered: whoever asks one of them again goes on with it, and nobody else can spend it; to a key with a grant it is no more left"`

	Closed bool `json:"closed,omitempty" doc:"true where a final report has taken what was left: nothing more is answered"`

	Retired bool `json:"retired,omitempty" doc:"true where the holdout was retired"`
}

// Held is what is kept for questions that were sent to a source.
type Held struct {
	Asked     int64 `json:"asked" doc:"how many queries they are"`
	Questions int64 `json:"questions"`
	Tokens    int64 `json:"tokens"`
}

// Budget is what is left in a state.
func (s *Session) Budget(state thresholdout.State) Budget {
	p := s.Guarantee
	b := Budget{Questions: Meter{Left: p.Left(state), Of: p.Questions}, Closed: state.Reporting() && p.Left(state) == 0, Retired: state.Retired}
	if p.HasTokens() {
		b.Tokens = &Meter{Left: p.Tokens - state.Tokens, Of: p.Tokens}
	}
	if p.Rounds > 0 {
		b.Rounds = &Meter{Left: p.Rounds - state.Rounds, Of: p.Rounds}
		ended := p.EndRound(state)
		b.NextRound, b.Lost = p.Affordable(ended), p.Questions-p.Left(ended)-ended.Questions
	}
	return b
}

// Cost is what an answer debits; of an explanation, the most that it would.
type Cost = thresholdout.Amounts

// cost is what an answer debits that leads from one state to another. The first answer of a round pays for the round.
func cost(before, after thresholdout.State) Cost { return after.Spent().Minus(before.Spent()) }

// Void is the state and the debit of a question that failed after a row was read. Nothing was released, but all that was reserved for
// it is spent, so that a failure is never a way to learn something at no price; of a question that could have a promise, a token beside, if one is left.
func (s *Session) Void(state thresholdout.State, q *Question, price Price) (Cost, thresholdout.State) {
	if q.bearsPromise() && s.Guarantee.ChecksPromises(state) {
		price.Tokens = 1
	}
	next := s.Guarantee.Spend(state, price.Questions, price.Tokens)
	return cost(state, next), next
}
