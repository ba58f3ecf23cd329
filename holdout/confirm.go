package holdout

import (
	"fmt"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// A request says how many questions it may cost, so that one that looks like one question and is two hundred does not take the budget by accident. The
// rule looks at prices and at what was answered before, which are public, and comes before anything is reserved.

// AskOption is something that a request says beside its queries.
type AskOption func(*request)

// MaxQuestions lets a request cost at most n questions, from 1: all of its queries together. A request that does not name it is refused if a single one of its queries costs more
// than [MostUnasked]. Replays cost nothing.
func MaxQuestions(n int64) AskOption { return func(r *request) { r.most = n } }

// WholeRounds refuses a request that would end a round without asking all of the round's questions, unless it names as many with [MaxQuestions]: those that it
// does not ask are lost, and so part of its price. It is for callers that no person watches.
func WholeRounds() AskOption { return func(r *request) { r.whole = true } }

// newRequest is the request with its options.
func newRequest(r request, options []AskOption) request {
	for _, o := range options {
		o(&r)
	}
	return r
}

// What one query may cost that no max_questions confirms: a tenth of the guarantee's questions, so that an accident leaves most of the budget, but at least what a mean with
// a condition costs, which surprises nobody.
const (
	unaskedShare = 10
	leastUnasked = 2
)

// MostUnasked is how many questions one query may cost in a request that names no max_questions, of a guarantee of so many.
func MostUnasked(questions int64) int64 { return max(leastUnasked, questions/unaskedShare) }

// PriceUnconfirmed is why an item of a batch with partial was not asked: it costs more than the request may.
const PriceUnconfirmed = "max-questions"

// confirmed are the questions whose price the request confirms. Of a request in part the others are not asked; any other request is refused where there are others.
func (a *admission) confirmed(fresh []*question) ([]*question, error) {
	if a.request.report != nil { // takes all that is left, and says so
		return fresh, nil
	}
	total, most := int64(0), a.request.most
	alone := MostUnasked(a.holdout.guarantee.Questions)
	var kept []*question
	for _, q := range fresh {
		switch {
		case most > 0 && total+q.price.Questions <= most, most == 0 && q.price.Questions <= alone:
			kept, q.notAsked = append(kept, q), ""
		case a.request.partial:
			q.notAsked = PriceUnconfirmed
			continue
		case most == 0:
			return nil, a.placed(a.unconfirmed(q.price.Questions, alone), q)
		}
		total += q.price.Questions
	}
	if most > 0 && total > most {
		return nil, a.unconfirmed(total, most)
	}
	return kept, nil
}

// unconfirmed is the refusal of a price. It names the price and what to do.
func (a *admission) unconfirmed(price, most int64) *Error {
	budget := a.holdout.guarantee.Questions
	e := &Error{Kind: Unconfirmed, Members: map[string]any{"requested": price, "max_questions": most}}
	if a.request.most > 0 {
		e.Detail = fmt.Sprintf("the request costs %d of this holdout's %d questions, more than the max_questions=%d that it names; nothing was read and nothing was debited", price, budget, most)
		return e
	}
	e.Detail = fmt.Sprintf("this query costs %d of this holdout's %d questions; without max_questions no query may cost more than %d. If the price is meant, send the request with max_questions=%d; else ask for fewer categories, bins or features. Nothing was read and nothing was debited",
		price, budget, most, price)
	return e
}

// wholeRound refuses to lose the questions of a round that the request does not confirm. state is the durable one; asked is how many the request asks.
func (a *admission) wholeRound(state thresholdout.State, asked int64) error {
	size := a.holdout.guarantee.Affordable(state)
	if w := a.holdout.halfEmpty(state, asked); w == nil || !a.request.whole || a.request.most >= size {
		return nil
	}
	return &Error{Kind: Unconfirmed, Members: map[string]any{"requested": size, "max_questions": max(a.request.most, asked), "lost": size - asked},
		Detail: fmt.Sprintf("the request would close round %d of %d with %d of its %d questions, and %d would be lost: ask all questions of the round in one batch, or, if the loss is meant, send the request with max_questions=%[4]d. Nothing was read and nothing was debited",
			state.Rounds+1, a.holdout.guarantee.Rounds, asked, size, size-asked)}
}
