package holdout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/tracing"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// flight is a request whose questions are paid for: it reads the rows and records what they say. Its questions are read in waves, each
// with as many questions as there are tokens for whatever the rows say; where the mechanism has no tokens there is one wave.
type flight struct {
	service   *Service
	holdout   *opened
	account   *account
	principal Principal
	request   request
	questions []*question // distinct ones, in order
	key       *ledger.Idempotency
	earlier   *outcome // of the same request under its key, or nil
	concluded bool     // the outcome is recorded, and complete
	term      int64    // of this server, among those that share the ledger: in another one nothing of the flight is recorded

	pending  []*question // to be read, in order
	reserved *reservation
	begun    thresholdout.State // before the first answer
	state    thresholdout.State // after the last that is durable
	late     bool               // the ledger cannot record yet what was read
	onLate   []func()
	onEnd    []func()
}

// end gives back what the flight holds.
func (f *flight) end() {
	if f.reserved != nil {
		f.reserved.end()
		f.reserved = nil
	}
	if f.late {
		f.account.recorded()
	}
	f.letGo()
}

// holdUp tells those who wait for the flight that the ledger cannot record it yet, and those who come until it is recorded.
func (f *flight) holdUp() {
	f.late = true
	f.account.holdUp()
	for _, tell := range f.onLate {
		tell()
	}
}

// letGo gives back the tables and the Idempotency-Key.
func (f *flight) letGo() {
	for _, release := range f.onEnd {
		release()
	}
	f.onEnd = nil
}

// fly reads and records wave after wave. When the caller leaves, the wave in the air is still recorded; what was not read is not asked.
func (f *flight) fly(ctx context.Context) error {
	landed := true
	defer func() {
		switch p := recover(); {
		case p != nil && !landed: // a fault of ours: what may have been read stays reserved, until the server starts again
			f.holdUp()
			f.letGo()
			panic(p)
		case p != nil:
			f.end()
			panic(p)
		case landed:
			f.end()
		}
	}()
	for len(f.pending) > 0 {
		if ctx.Err() != nil {
			return leftWaiting(ctx)
		}
		if dropped, err := f.settle(ctx); err != nil {
			return err
		} else if dropped {
			continue
		}
		wave, err := f.board(ctx)
		if err != nil {
			return err
		}
		if len(wave) == 0 {
			continue
		}
		landed = false
		after, rest := admitted(context.WithoutCancel(ctx))
		if landed, err = f.carry(after, wave, rest); err != nil {
			return err
		}
	}
	return f.conclude(ctx)
}

// board takes the next wave off the pending questions and reserves its tokens. It decides by the durable state; what cannot be asked any
// more is not read. A wave is empty only if nothing is pending.
func (f *flight) board(ctx context.Context) (wave []*question, err error) {
	acc := f.account
	err = acc.await(ctx, func() (bool, error) {
		state, err := acc.current(ctx, f.service, f.holdout, f.term)
		if err != nil {
			return false, err
		}
		paid, err := acc.slice(ctx, f.service, f.holdout.id, f.principal)
		if err != nil {
			return false, err
		}
		kept := acc.kept().Tokens
		for len(f.pending) > 0 && len(wave) < f.waveQuestions() {
			q := f.pending[0]
			at := f.seat(state, q, kept, len(wave))
			if at != never {
				at = max(at, paid.seat(q.most))
			}
			switch at {
			case taken:
				wave = append(wave, q)
				f.pending = f.pending[1:]
				f.hold(q.price.Tokens, q.most)
				paid.take(0, q.most)
				if f.request.report == nil && f.greedy(q) {
					return true, nil
				}
			case unpaid:
				if f.request.single {
					return false, paid.exhausted(thresholdout.MeterTokens, q)
				}
				f.drop(q, GrantTokensExhausted)
			case never:
				if f.request.single {
					return false, f.holdout.exhausted(session.TokensExhausted, state, q.price)
				}
				f.drop(q, session.TokensExhausted)
			case later:
				return len(wave) > 0, nil
			}
		}
		return true, nil
	})
	return wave, err
}

type seat uint8

const (
	taken  seat = iota
	later       // when this wave or another flight has landed
	unpaid      // by the grant
	never
)

// seat says whether a question can be read with the wave that has so many already. kept are tokens that are held for questions which nobody asks now.
func (f *flight) seat(state thresholdout.State, q *question, kept int64, before int) seat {
	p, need := f.holdout.guarantee, q.price.Tokens
	switch {
	case p.HasTokens() && state.Tokens+kept+need > p.Tokens, f.holdout.session.Unchecked(state, q.asked):
		return never
	case p.HasTokens() && state.Tokens+kept+f.account.tokens+need > p.Tokens:
		return later
	case before > 0 && f.open(state, q): // an answer before it could change how it is asked
		return later
	}
	return taken
}

// greedy reports whether a question takes as many tokens as there are: what is behind it waits until it is known how many that is.
func (f *flight) greedy(q *question) bool { return f.holdout.session.Greedy(q.asked.Plan) }

// waveQuestions bounds what one pass over the rows sums, and so the memory of its programs and sums.
const waveQuestions = 10_000

// waveQuestions is how many questions a wave has at most. Those that go to a source are held together, so that two waves find room; a report has one wave.
func (f *flight) waveQuestions() int {
	if f.holdout.at != nil && f.request.report == nil {
		return maxHolds / 2
	}
	return waveQuestions
}

// hold reserves tokens. The account's lock is held.
func (f *flight) hold(tokens, most int64) {
	f.reserved.add(0, tokens, most)
}

// drop takes a question out that will not be asked. The account's lock is held.
func (f *flight) drop(q *question, why string) {
	q.notAsked = why
	f.pending = f.pending[1:]
	f.reserved.add(-q.price.Questions, 0, 0)
	f.account.land([]string{q.id})
}

// open reports whether what was answered before decides how a question is asked. In a report it does not: that reads the holdout.
func (f *flight) open(state thresholdout.State, q *question) bool {
	return f.request.report == nil && f.holdout.session.Open(state, q.asked)
}

// settle decides how the next question is asked, where it leaves that open. It drops the question if it names a half-width that no answer has now, or refuses it where it is the only one.
// Such a flight is alone, so that the state is the one that the question will meet.
func (f *flight) settle(ctx context.Context) (dropped bool, err error) {
	q, s := f.pending[0], f.holdout.session
	if !f.open(f.state, q) {
		return false, nil
	}
	training, err := session.TrainingSums(ctx, q.asked.Plan, f.holdout.reference)
	if err != nil {
		return false, scanError(err)
	}
	spare, err := f.spare(ctx)
	if err != nil {
		return false, err
	}
	asked, err := s.Settle(f.state, q.asked, training, q.price.Questions+spare)
	var width *session.NarrowError
	switch {
	case err == nil:
		f.reprice(q, asked)
		return false, nil
	case !errors.As(err, &width):
		return false, err
	case f.request.single:
		return false, tooNarrow(width)
	}
	f.account.mu.Lock()
	defer f.account.mu.Unlock()
	f.drop(q, session.HalfWidthTooNarrow)
	return true, nil
}

// spare is how many questions are left beside those that are reserved, and that the request may cost and its grant pays.
func (f *flight) spare(ctx context.Context) (int64, error) {
	spare, reserved := f.holdout.guarantee.Affordable(f.state), int64(0)
	for _, q := range f.pending {
		reserved += q.price.Questions
	}
	spare -= reserved
	if f.request.most > 0 {
		spent := int64(0)
		for _, q := range f.questions {
			if q.asked != nil && q.notAsked == "" {
				spent += q.price.Questions
			}
		}
		spare = min(spare, f.request.most-spent)
	}
	f.account.mu.Lock()
	defer f.account.mu.Unlock()
	spare -= f.account.kept().Questions
	paid, err := f.account.slice(ctx, f.service, f.holdout.id, f.principal)
	if err != nil {
		return 0, err
	}
	return max(min(spare, paid.now(thresholdout.MeterQuestions)), 0), nil
}

// reprice has a question asked in another form, and reserves what that costs more.
func (f *flight) reprice(q *question, asked *session.Question) {
	price := f.holdout.session.Price(asked.Plan)
	f.account.mu.Lock()
	defer f.account.mu.Unlock()
	f.reserved.add(price.Questions-q.price.Questions, 0, 0)
	q.asked, q.price = asked, price
	q.most = f.holdout.session.TokensAtMost(asked)
}

// tooNarrow is the refusal of a half-width at which no guess can pass.
func tooNarrow(e *session.NarrowError) *Error {
	return &Error{Kind: Invalid, Pointer: "/half_width", Err: e, Members: map[string]any{"least": e.Least, "planned": e.Planned},
		Detail: e.Error() + "; nothing was debited"}
}

// carry reads the rows of a wave and records what they say. landed is false if it goes on in the background, because the ledger cannot
// record now: then the flight keeps what it holds until it is recorded. rest gives the request's place to others.
func (f *flight) carry(ctx context.Context, wave []*question, rest func()) (landed bool, err error) {
	if err := f.send(ctx, wave); err != nil {
		return true, err
	}
	ready := f.service.pace.begin(f.holdout, wave, rest)
	scanning, span := tracing.Start(ctx, tracing.Scan)
	sums, err := f.scan(scanning, wave)
	span.Done(err)
	ready() // what is recorded below is seen by others, too
	var later *notAnswered
	if errors.As(err, &later) { // what is held for the wave stays, and whoever asks the same goes on
		return true, err
	}
	c := &commit{flight: f, last: len(f.pending) == 0, time: time.Now()}
	for i, q := range wave {
		item := commitItem{question: q}
		if err == nil {
			item.sums = sums[i]
		} else {
			item.failed = err
		}
		c.items = append(c.items, item)
	}
	ctx, span = tracing.Start(ctx, tracing.Commit)
	landed, err = c.finish(ctx)
	span.Done(err)
	return landed, err
}

// scan reads the rows. Whatever goes wrong with it, a panic too, is an error, so that the wave is recorded as void.
func (f *flight) scan(ctx context.Context, wave []*question) (sums []session.Sums, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("holdout: scan panicked: %v", p)
		}
	}()
	asked := make([]*session.Question, len(wave))
	for i, q := range wave {
		asked[i] = q.asked
	}
	return f.holdout.session.Scan(ctx, f.state, asked, f.holdout.holdout, f.holdout.reference)
}

// scanError keeps what a scan says out of replies; it can only be about the machine or the caller's leaving.
func scanError(err error) error {
	if KindOf(err) == Damaged {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Kind: Unavailable, Detail: "the request ended before it was answered; what was not answered was not debited", Err: err}
	}
	return &Error{Kind: Internal, Detail: "the rows could not be summed", Err: err}
}
