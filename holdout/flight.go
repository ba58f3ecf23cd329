package holdout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
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
	key       *ledger.Idempotency

	purse    purse
	pending  []*question // to be read, in order
	reserved *reservation
	begun    thresholdout.State // before the first answer
	state    thresholdout.State // after the last that is durable
	seq      int64              // of the entry that state belongs to
	answered bool               // something of the request is recorded
	scans    int                // in vain: another server had moved the books
	late     bool               // other servers may have moved the books since admission
	onEnd    []func()
}

// maxScans is how often the rows are read for questions that must be alone while other servers answer questions of the same holdout. Each time one of
// them was answered, so all together make progress; where so many scans were overtaken, the asker is told to come back.
const maxScans = 12

// end gives back what the flight holds.
func (f *flight) end() {
	if f.reserved != nil {
		f.reserved.end()
		f.reserved = nil
	}
	f.letGo()
}

// letGo gives back the tables and the Idempotency-Key.
func (f *flight) letGo() {
	for _, release := range f.onEnd {
		release()
	}
	f.onEnd = nil
}

// fly reads and records wave after wave. When the caller leaves, the wave in the air is still recorded; what was not read is not asked. A wave that must
// be alone and was overtaken by another server is read again: nothing of it has left this process.
func (f *flight) fly(ctx context.Context) error {
	landed := true
	defer func() {
		switch p := recover(); {
		case p != nil && !landed: // a fault of ours: what may have been read stays reserved
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
		if err := f.catchUp(ctx); err != nil {
			return err
		}
		if len(f.pending) == 0 { // others have taken what they needed
			return nil
		}
		if narrow, err := f.checkWidth(ctx); err != nil {
			return err
		} else if narrow {
			continue
		}
		wave, err := f.board(ctx)
		if KindOf(err) == GrantOver && f.answered { // what is answered was paid for; of the rest the reply says why it was not asked
			f.abandon(GrantEnded)
			return nil
		}
		if err != nil {
			return err
		}
		if len(wave) == 0 {
			continue
		}
		if err := f.holdout.ready(ctx); err != nil { // of the wave nothing is read or debited
			return err
		}
		landed = false
		after, rest := admitted(context.WithoutCancel(ctx))
		left, done, err := f.carry(after, wave, rest)
		landed = done
		if errors.Is(err, errOvertaken) {
			err = f.again(ctx, left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// again puts questions back that were read for a state that another server has left, but for those that it has answered.
func (f *flight) again(ctx context.Context, questions []*question) error {
	tokens := int64(0)
	for _, q := range questions {
		tokens += q.price.Tokens
	}
	f.reserved.giveBack(0, tokens)
	if f.scans++; f.scans >= maxScans {
		return &Error{Kind: Unavailable, Detail: "other servers answer questions about this holdout all the time, and this one must be answered alone; it was not debited. Ask again, or send questions about one holdout to one server"}
	}
	var still []*question
	for _, q := range questions {
		body, ok, err := f.service.ledger.Answer(ctx, f.holdout.id, q.id)
		if err != nil {
			return f.service.ledgerError(err)
		}
		if !ok {
			still = append(still, q)
			continue
		}
		q.body, q.replayed = body, true
		f.reserved.giveBack(q.price.Questions, 0)
	}
	f.pending = append(still, f.pending...)
	return nil
}

// catchUp makes the state of a flight that is alone the newest one, before it reads rows for it. A request that another server has answered in between has
// ended the round of this one.
func (f *flight) catchUp(ctx context.Context) error {
	if !f.late { // admission has just looked
		f.late = true
		return nil
	}
	if err := f.account.refresh(ctx, f.service, f.holdout); err != nil {
		return err
	}
	f.account.mu.Lock()
	defer f.account.mu.Unlock()
	at, err := f.account.now(f.service)
	if err == nil && f.reserved.alone && at.seq != f.seq {
		f.seq, f.state = at.seq, f.holdout.session.EndRequest(at.state)
		err = f.shorten()
	}
	return err
}

// shorten drops what another server has left too few questions for since this flight was admitted: a pass over the rows is planned for all of a wave, and units that
// belong to no question cannot be read. A batch that is asked all or none is refused instead, as long as nothing of it is answered. The account's lock is held.
func (f *flight) shorten() error {
	left, cost := f.holdout.guarantee.Affordable(f.state), int64(0)
	for _, q := range f.pending {
		cost += q.price.Questions
	}
	if cost <= left || f.request.single { // which the second admission refuses
		return nil
	}
	if !f.request.partial && !f.answered {
		return f.holdout.refuseBatch(cost, left, f.pending)
	}
	kept := []*question{}
	for _, q := range f.pending {
		if q.price.Questions <= left {
			left -= q.price.Questions
			kept = append(kept, q)
			continue
		}
		q.notAsked = session.QuestionsExhausted
		f.reserved.questions -= q.price.Questions
		f.account.reserve(f.purse.grant, -q.price.Questions, 0)
	}
	f.pending = kept
	return nil
}

// board takes the next wave off the pending questions and reserves its tokens. It decides by the durable state as catchUp has found it; what cannot be
// asked any more is not read. A wave is empty only if nothing is pending.
func (f *flight) board(ctx context.Context) (wave []*question, err error) {
	acc := f.account
	reads := f.purse.free != nil
	wants := func() bool { return reads }
	err = acc.awaitFresh(ctx, wants, func() error { return f.purse.open(ctx, f.service, acc, f.holdout.id) }, func() (bool, error) {
		at, err := acc.now(f.service)
		if err != nil {
			return false, err
		}
		state := at.state
		for len(f.pending) > 0 && len(wave) < waveQuestions {
			q := f.pending[0]
			switch f.seat(state, q, len(wave)) {
			case taken:
				wave = append(wave, q)
				f.pending = f.pending[1:]
				f.hold(q.price.Tokens)
				if f.greedy(q) {
					return true, nil
				}
			case never:
				if f.request.single {
					return false, f.holdout.exhausted(session.TokensExhausted, state, q.price, &f.purse)
				}
				f.drop(q, session.TokensExhausted)
			case later: // when this wave or another flight has landed
				return len(wave) > 0, nil
			}
		}
		return true, nil
	})
	return wave, err
}

type seat uint8

const (
	taken seat = iota
	never
	later
)

// seat says whether a question can be read with the wave that has so many already.
func (f *flight) seat(state thresholdout.State, q *question, before int) seat {
	p, need := f.holdout.guarantee, q.price.Tokens
	dearest := f.holdout.dearest(state, q).Tokens
	switch free := f.purse.most(thresholdout.MeterTokens, p.Tokens); {
	case f.purse.free == nil:
	case dearest > free:
		return never
	case dearest > free-f.account.paying[f.purse.grant].tokens:
		return later
	}
	switch {
	case p.HasTokens() && state.Tokens+need > p.Tokens, f.holdout.session.Unchecked(state, q.asked):
		return never
	case p.HasTokens() && state.Tokens+f.account.tokens+need > p.Tokens:
		return later
	case before > 0 && q.asked.OwnWidth(): // an answer before it could change whether it can pass
		return later
	}
	return taken
}

// greedy reports whether a question takes as many tokens as there are: what is behind it waits until it is known how many that is.
func (f *flight) greedy(q *question) bool { return f.holdout.session.Greedy(q.asked.Plan) }

// waveQuestions bounds what one pass over the rows sums, and so the memory of its programs and sums.
const waveQuestions = 10_000

// hold reserves tokens. The account's lock is held.
func (f *flight) hold(tokens int64) {
	f.reserved.tokens += tokens
	f.account.reserve(f.purse.grant, 0, tokens)
}

// drop takes a question out that will not be asked. The account's lock is held.
func (f *flight) drop(q *question, why string) {
	q.notAsked = why
	f.pending = f.pending[1:]
	f.reserved.questions -= q.price.Questions
	f.account.reserve(f.purse.grant, -q.price.Questions, 0)
}

// abandon drops all that is pending.
func (f *flight) abandon(why string) {
	f.account.mu.Lock()
	defer f.account.mu.Unlock()
	for len(f.pending) > 0 {
		f.drop(f.pending[0], why)
	}
}

// checkWidth drops the next question if it names a half-width at which no guess can pass now, or refuses it where it is the only one.
// Such a flight is alone, so that the state is the one that the question will meet.
func (f *flight) checkWidth(ctx context.Context) (narrow bool, err error) {
	q := f.pending[0]
	if !q.asked.OwnWidth() {
		return false, nil
	}
	training, err := session.TrainingSums(ctx, q.asked.Plan, f.holdout.reference)
	if err != nil {
		return false, scanError(err)
	}
	err = f.holdout.session.Passable(f.state, q.asked, training)
	var width *session.NarrowError
	switch {
	case err == nil:
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

// tooNarrow is the refusal of a half-width at which no guess can pass.
func tooNarrow(e *session.NarrowError) *Error {
	return &Error{Kind: Invalid, Pointer: "/half_width", Err: e, Members: map[string]any{"least": e.Least, "planned": e.Planned},
		Detail: e.Error() + "; nothing was debited"}
}

// carry reads the rows of a wave and records what they say. landed is false if it goes on in the background, because the ledger cannot
// record now: then the flight keeps what it holds until it is recorded. left are the questions of which nothing is recorded, if it is over with an error
// all the same. rest gives the request's place to others.
func (f *flight) carry(ctx context.Context, wave []*question, rest func()) (left []*question, landed bool, err error) {
	ready := f.service.pace.begin(f.holdout, wave, rest)
	sums, err := f.scan(ctx, wave)
	ready() // what is recorded below is seen by others, too
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
	landed, err = c.finish(ctx)
	if landed {
		left = c.questions()
	}
	return left, landed, err
}

// scan reads the rows. Whatever goes wrong with it, a panic too, is an error, so that the wave is recorded as void.
func (f *flight) scan(ctx context.Context, wave []*question) (sums []session.Sums, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("holdout: scan panicked: %v", p)
		}
	}()
	ctx, done := f.service.stage(ctx, StageScan, f.holdout.id, len(wave))
	defer done()
	asked := make([]*session.Question, len(wave))
	for i, q := range wave {
		asked[i] = q.asked
	}
	return f.holdout.session.Scan(ctx, f.state, asked, f.holdout.holdout, f.holdout.reference)
}

// scanError keeps what a scan says out of replies; it can only be about the machine or the caller's leaving.
func scanError(err error) error {
	if kind := KindOf(err); kind == Damaged || kind == SourceUnavailable || kind == SourceTooDear {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Kind: Unavailable, Detail: "the request ended before it was answered; what was not answered was not debited", Err: err}
	}
	return &Error{Kind: Internal, Detail: "the rows could not be summed", Err: err}
}
