package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Local is a holdout in this process, for one asker at a time: a session with its tables and its state.
//
// What it answers is as valid as what a server answers, for as long as the process lives. A program that goes on later must store
// State, and every answer under its Query, before it shows the answer; a question asked again must get the stored one.
type Local struct {
	Session
	State    thresholdout.State
	Schema   dataset.Schema
	Holdout  Source // its units in an order that is not by their content, such as a random one: slices and halves are cut by it
	Training Source // nil without one, as is Check: see [Reference]
	Check    Source
	Compile  []queries.Option // how queries are compiled: queries.Training, for those that take constants from a training part, …

	answered map[string]Answer
}

// Ask answers one query, in JSON. A query that was answered before gets the same answer at no cost. Errors are
// *queries.Error, *[WrongError], *[NarrowError] and *[ShortError], all before a row of the holdout is read.
func (l *Local) Ask(ctx context.Context, query []byte) (Answer, error) {
	parsed, err := queries.Parse(query)
	if err != nil {
		return Answer{}, err
	}
	if a, ok := l.answered[parsed.ID()]; ok {
		return a, nil
	}
	plan, err := parsed.Compile(ctx, l.Schema, append(slices.Clip(l.Compile), queries.AsOne(l.Guarantee.ChecksStatistics()))...)
	if err != nil {
		return Answer{}, err
	}
	return l.Play(ctx, parsed, plan)
}

// Play answers a query that is compiled already, as one request.
func (l *Local) Play(ctx context.Context, query *queries.Query, plan *queries.Plan) (Answer, error) {
	q, err := l.Question(query, plan)
	if err != nil {
		return Answer{}, err
	}
	if reason := l.Short(l.State, q); reason != "" {
		return Answer{}, &ShortError{Reason: reason, Price: l.Price(q.Plan), Left: l.Budget(l.State)}
	}
	if l.Open(l.State, q) {
		training, err := TrainingSums(ctx, q.Plan, l.reference())
		if err != nil {
			return Answer{}, err
		}
		if q, err = l.Settle(l.State, q, training, l.Guarantee.Affordable(l.State)); err != nil {
			return Answer{}, err
		}
	}
	price := l.Price(q.Plan)
	sums, err := l.Scan(ctx, l.State, []*Question{q}, l.Holdout, l.reference())
	if err != nil {
		return Answer{}, err
	}
	answer, next, err := l.Session.Ask(l.State, l.State, q, sums[0])
	if err != nil {
		_, next = l.Void(l.State, q, price) // its rows were read
		l.State = l.EndRequest(next)
		return Answer{}, err
	}
	l.State = l.EndRequest(next)
	if l.answered == nil {
		l.answered = map[string]Answer{}
	}
	l.answered[q.ID] = answer
	return answer, nil
}

// Report closes the holdout with its final report: the exact answers to these queries, in JSON, and nothing after them. Errors are those of Ask, all before a row of the
// holdout is read; a query that a report does not take is a *queries.Error.
func (l *Local) Report(ctx context.Context, batch [][]byte) ([]Answer, error) {
	if len(batch) == 0 {
		return nil, errors.New("session: a report needs at least one query")
	}
	questions, size := make([]*Question, len(batch)), Price{}
	for i, body := range batch {
		parsed, err := queries.Parse(body)
		if err != nil {
			return nil, err
		}
		if parsed, err = parsed.Reported(); err != nil {
			return nil, err
		}
		plan, err := parsed.Compile(ctx, l.Schema, append(slices.Clip(l.Compile), queries.AsOne(l.Guarantee.ChecksStatistics()))...)
		if err != nil {
			return nil, err
		}
		if questions[i], err = l.Question(parsed, plan); err != nil {
			return nil, err
		}
		size.Questions += l.Price(questions[i].Plan).Questions
	}
	state, err := l.Guarantee.Close(l.State, size.Questions)
	if errors.Is(err, thresholdout.ErrNoQuestions) {
		return nil, &ShortError{Reason: l.notClosed(), Price: size, Left: l.Budget(l.State)}
	}
	if err != nil {
		return nil, fmt.Errorf("session: report: %w", err)
	}
	sums, err := l.Scan(ctx, state, questions, l.Holdout, l.reference())
	if err != nil {
		return nil, err
	}
	answers, begun := make([]Answer, len(questions)), state
	for i, q := range questions {
		if answers[i], state, err = l.Session.Ask(begun, state, q, sums[i]); err != nil {
			break
		}
	}
	l.State = l.Guarantee.Closed(state) // its rows were read
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// notClosed is why there is no report now.
func (l *Local) notClosed() string {
	if l.State.Reporting() {
		return HoldoutClosed
	}
	return QuestionsExhausted
}

func (l *Local) reference() Reference { return Reference{l.Training, l.Check} }

// ShortError is a question that the budget does not pay for.
type ShortError struct {
	Reason string // QuestionsExhausted, …
	Price  Price
	Left   Budget
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("session: %s: the query costs %d questions, needs up to %d tokens, and %d questions are left", e.Reason, e.Price.Questions, e.Price.Tokens, e.Left.Questions.Left)
}

// Simulated is a mechanism with seeded noise, for experiments and tests on data whose truth is known: it answers one mean at a time,
// as a server's mechanism does. The zero State is that of a new holdout.
type Simulated struct {
	Guarantee thresholdout.Guarantee // as thresholdout.Plan returned it
	State     thresholdout.State
	Seed      uint64 // of the noise
}

// Mean releases the mean of one row function, whose exact means over the units of Slice and, where the mechanism compares, over the
// training part are given.
func (h *Simulated) Mean(in thresholdout.Input) (thresholdout.Output, error) {
	out, next, err := thresholdout.Step(h.Guarantee, h.State, in, thresholdout.Seeded{Seed: h.Seed, Question: h.State.Questions})
	if err == nil {
		h.State = next
	}
	return out, err
}

// Slice is the range of holdout units that the next answer reads.
func (h *Simulated) Slice() (from, to int64) { return h.Guarantee.Slice(h.State) }

// Remaining is how many more questions are surely answered: as many as there are questions, or tokens, left.
func (h *Simulated) Remaining() int64 {
	left := h.Guarantee.Questions - h.State.Questions
	if h.Guarantee.NeedsTokens() {
		left = min(left, h.Guarantee.Tokens-h.State.Tokens)
	}
	return left
}

// Seeded is noise for simulations: whoever knows the seed knows the noise.
func Seeded(seed uint64) NoiseOf {
	var key noise.Key
	binary.BigEndian.PutUint64(key[:], seed)
	return Keyed(key, [32]byte{})
}
