package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// A question is admitted twice: before its rows are read, by what this server knows, and here, by the books of the transaction that would debit it,
// for another server of the same ledger may have spent what was left. Here that is before anything of its rows is looked at, the failure of their scan
// included: by durable state alone it is decided whether the question is a replay, is not asked, is to be read again, or goes on. What goes on is debited:
// it becomes an answer or a void. With one server the second admission decides as the first one did, unless a grant has ended meanwhile.

// commit is the stage after which a question is debited: each of its items becomes an answer or a void.
type commit struct {
	flight *flight
	items  []commitItem
	last   bool      // no wave of the request comes after it
	time   time.Time // of its entries
	unsure bool      // an update ended without saying whether it is durable
	tried  int64     // where the chain ends if it is

	refusals int // of the ledger to record even a void, in a row
}

// commitItem is a question whose rows were read, or may have been.
type commitItem struct {
	question *question
	sums     session.Sums
	failed   error // the scan
}

// recorded is what became of an item: an answer, unless the rest says otherwise.
type recorded struct {
	body     []byte
	replayed bool  // another server has recorded it
	void     error // why
	refused  *refusal
}

// refusal is why a question was not asked after all. It depends on the durable state alone, and on what the question was priced at.
type refusal struct {
	reason string // as of items that are not asked
	state  thresholdout.State
}

// Errors of an update that has recorded nothing, by durable state alone.
var (
	// errOvertaken: another server has moved the books since the rows of questions that must be alone were read.
	errOvertaken = errors.New("holdout: the books have moved")
	// errNothing: all items are known already or not asked. What became of them is kept, and nothing is to be written.
	errNothing = errors.New("holdout: nothing to record")
)

// turnedDown reports whether an update refused to record what was read, by durable state alone: another server has moved the books, has used the
// Idempotency-Key, has ended the holdout's questions, or has left too little for a batch that is asked all or none. Nothing of it is void, and nothing was
// debited.
func turnedDown(err error) bool {
	return errors.Is(err, errOvertaken) || errors.Is(err, ledger.ErrIdempotencyMismatch) || errors.Is(err, ledger.ErrEnded) || KindOf(err) == BudgetExhausted || KindOf(err) == GrantOver
}

// Limits of what one update records: others wait while it runs.
const (
	pieceQuestions = 256     // some 50 µs each
	pieceBytes     = 1 << 20 // of answers, as long as they can be
)

// Waits before a commit is tried again in the background.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// maxRefusals is how often in a row the ledger may refuse to record even a void, before its place for the holdout is taken to be damaged. A
// refusal is the ledger's answer, not its absence: a fourth time it will not be another.
const maxRefusals = 3

// finish records all items, piece by piece. While the ledger cannot record them it gives up waiting, and a goroutine of the service
// goes on: the asker is told to come back, and what was read stays reserved until it is debited. landed is false then.
func (c *commit) finish(ctx context.Context) (landed bool, err error) {
	ctx, done := c.flight.service.stage(ctx, StageCommit, c.flight.holdout.id, len(c.items))
	defer done()
	void := error(nil)
	for len(c.items) > 0 {
		failed, err := c.next(ctx)
		switch {
		case err == nil:
		case void != nil && turnedDown(err):
			return true, void
		case errors.Is(err, errOvertaken):
			return true, err
		default:
			over := gone(err) || turnedDown(err)
			if !over {
				c.flight.service.background(c.retry)
			}
			return over, c.flight.service.ledgerError(err)
		}
		if void == nil {
			void = failed
		}
	}
	return true, void
}

// retry goes on until everything is recorded, or the holdout or the service is gone.
func (c *commit) retry(ctx context.Context) {
	defer c.flight.end()
	for wait := firstRetry; len(c.items) > 0; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return // the process ends; nothing was released
		}
		switch _, err := c.next(ctx); {
		case err == nil:
			wait = firstRetry
		case gone(err), turnedDown(err): // nothing was released of it, nor debited
			return
		default:
			c.flight.service.log.Error("questions that were read cannot be recorded yet", "holdout", c.flight.holdout.id, "questions", len(c.items), "error", err)
			wait = min(2*wait, lastRetry)
		}
	}
}

// gone reports whether there is nothing left to record in.
func gone(err error) bool {
	return errors.Is(err, ledger.ErrClosed) || errors.Is(err, ledger.ErrDeleted) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrRestored)
}

// next makes the next piece durable: with its answers or, should the ledger refuse one of them, all of it as void. failed is why
// a question of it is void, if one is, or why the only question of a request was not asked.
func (c *commit) next(ctx context.Context) (failed, err error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	piece := c.piece()
	out, err := c.update(ctx, piece)
	if err != nil && !gone(err) && !turnedDown(err) && !errors.Is(err, ledger.ErrUnavailable) {
		voids := slices.Clone(piece)
		for i := range voids {
			voids[i].failed = err
		}
		out, err = c.update(ctx, voids)
	}
	if err != nil {
		return nil, c.giveUp(err)
	}
	c.refusals = 0
	return c.settle(piece, out), nil
}

// giveUp takes the holdout out of service where nothing can be recorded of it any more: its place in the ledger was damaged while the server
// runs, or the ledger refuses whatever it is given. What was read and not debited was released to nobody; nothing more is read, and the
// reservation ends, so that the holdout can be deleted. Other errors it leaves as they are: the commit is tried again.
func (c *commit) giveUp(err error) error {
	h, s := c.flight.holdout, c.flight.service
	if !gone(err) && !turnedDown(err) && !errors.Is(err, ledger.ErrUnavailable) {
		if c.refusals++; c.refusals > maxRefusals {
			err = &ledger.CorruptError{Holdout: h.id, Seq: -1, Reason: "the ledger refuses to record what was read", Err: err}
		}
	}
	if errors.Is(err, ledger.ErrCorrupt) {
		err = s.damaged(h.id, true, err)
		s.tables.drop(h.id, func() {}) // whoever asks next hears why
	}
	return err
}

// piece is what the next update records.
func (c *commit) piece() []commitItem {
	n, size := 0, 0
	for n < min(len(c.items), pieceQuestions) && (n == 0 || size+c.items[n].question.size <= pieceBytes) {
		size += c.items[n].question.size
		n++
	}
	return c.items[:n]
}

func (c *commit) update(ctx context.Context, piece []commitItem) (out []recorded, err error) {
	defer func() {
		if p := recover(); p != nil { // of record, in which case nothing of it is kept
			out, err = nil, fmt.Errorf("holdout: recording panicked: %v", p)
		}
	}()
	f := c.flight
	var after position
	err = f.service.ledger.Update(ctx, f.holdout.id, func(tx *ledger.Tx) (err error) {
		out, after, err = c.record(tx, piece)
		return err
	})
	if err != nil && !errors.Is(err, errNothing) {
		if errors.Is(err, ledger.ErrUnavailable) {
			c.unsure, c.tried = true, after.seq
		}
		return nil, err
	}
	f.account.advance(after)
	f.moved(after, err == nil || c.unsure && after.seq == c.tried)
	return out, nil
}

// moved is after an update of the flight: where the holdout stands then. It is own if what brought it there is the flight's. Rows that were read for
// another state are not good for this one, so a flight that is alone stays where it was and finds out.
func (f *flight) moved(to position, own bool) {
	if !f.reserved.alone {
		f.state = to.state
	} else if own {
		f.seq, f.state = to.seq, to.state
	}
}

// record is the update of a piece. It is a function of the books, of the sums and of what the flight began with: it may run more than
// once, and changes nothing but the books. after is where the holdout stands then.
func (c *commit) record(tx *ledger.Tx, piece []commitItem) (out []recorded, after position, err error) {
	f := c.flight
	after.seq = tx.Seq()
	if after.state, err = f.holdout.readState(tx.State(), tx.Ended()); err != nil {
		return nil, after, &ledger.CorruptError{Holdout: f.holdout.id, Seq: -1, Reason: "mechanism state", Err: err}
	}
	out = make([]recorded, len(piece))
	fresh := c.recall(tx, piece, out)
	if len(fresh) == 0 {
		return out, after, errNothing
	}
	if tx.Ended() != "" {
		return nil, after, ledger.ErrEnded
	}
	if f.reserved.alone {
		if after.seq != f.seq || len(fresh) < len(piece) { // the rows of each are those of its place in the wave
			return nil, after, errOvertaken
		}
		after.state = f.state // the durable one, but for a round that a crash cut off, which is over
	}
	if err := c.payable(tx, after.state, fresh, piece); err != nil {
		return nil, after, err
	}
	begun, refused := after.seq, ""
	for _, i := range fresh {
		why := f.readmit(tx, after.state, piece[i].question)
		if why == "" && f.reserved.alone && refused != "" {
			why = refused // for the same reason
		}
		if why != "" {
			out[i].refused, refused = &refusal{why, after.state}, why
			continue
		}
		if f.key != nil && tx.Seq() == begun { // with the first piece: whether there is another is not known yet
			if err := tx.Idempotent(*f.key); err != nil {
				return nil, after, err
			}
		}
		if out[i], after.state, err = c.answer(tx, &piece[i], after.state); err != nil {
			return nil, after, err
		}
	}
	if after.seq = tx.Seq(); after.seq == begun {
		return out, after, errNothing
	}
	if c.last && len(piece) == len(c.items) {
		after.state = f.holdout.session.EndRequest(after.state)
	}
	text, err := json.Marshal(after.state)
	if err != nil {
		return nil, after, err
	}
	tx.SetState(text)
	return out, after, nil
}

// recall fills in what is recorded of a piece already, and returns the places of the rest: answers of another server or, where it is not known what
// became of an earlier try, of that.
func (c *commit) recall(tx *ledger.Tx, piece []commitItem, out []recorded) (fresh []int) {
	for i := range piece {
		id := piece[i].question.id
		body, ok := tx.Answer(id)
		switch {
		case ok:
			out[i] = recorded{body: body, replayed: !c.unsure}
		case c.unsure && tx.Voided(id, c.time):
			out[i].void = errVoid
		default:
			fresh = append(fresh, i)
		}
	}
	return fresh
}

// payable refuses a batch that is asked all or none, if another server has left too little for it. After its first answer it is asked as far as it goes.
func (c *commit) payable(tx *ledger.Tx, state thresholdout.State, fresh []int, piece []commitItem) error {
	f := c.flight
	if f.answered || f.request.partial || f.request.single {
		return nil
	}
	var asked []*question
	for _, i := range fresh {
		asked = append(asked, piece[i].question)
	}
	for _, item := range c.items[len(piece):] {
		asked = append(asked, item.question)
	}
	asked = append(asked, f.pending...)
	free, err := tx.Free(f.purse.grant)
	if err != nil {
		return f.service.grantError(err)
	}
	cost, left := int64(0), min(f.holdout.guarantee.Affordable(state), free[thresholdout.MeterQuestions])
	for _, q := range asked {
		cost += q.price.Questions
	}
	if cost > left {
		return f.holdout.refuseBatch(cost, left, asked)
	}
	return nil
}

// readmit says why a question cannot be asked by the books of the transaction; "" if it can. It sees nothing of the question's rows: its price must be left
// of each meter, by the mechanism's state as by the books, so that whatever the rows say can be debited.
func (f *flight) readmit(tx *ledger.Tx, state thresholdout.State, q *question) (why string) {
	if why = f.holdout.session.Unpaid(state, q.price); why != "" {
		return why
	}
	free, err := tx.Free(f.purse.grant)
	if err != nil {
		return GrantEnded
	}
	return shortOf(free, debited(f.holdout.dearest(state, q)))
}

// exhaustedMeter is the reason that a meter has for a question that is not asked.
func exhaustedMeter(meter string) string {
	switch meter {
	case thresholdout.MeterTokens:
		return session.TokensExhausted
	case thresholdout.MeterRounds:
		return session.RoundsExhausted
	}
	return session.QuestionsExhausted
}

// errVoid says that a question is void for a reason that an earlier try knew.
var errVoid = errors.New("holdout: void")

// answer debits and records an item: its answer or, whatever goes wrong with that, a void. An error is the ledger's.
func (c *commit) answer(tx *ledger.Tx, item *commitItem, state thresholdout.State) (r recorded, next thresholdout.State, err error) {
	f, q := c.flight, item.question
	if r.void = item.failed; r.void == nil {
		var answer session.Answer
		if answer, next, r.void = c.play(item, state); r.void == nil {
			r.body, r.void = c.append(tx, q, answer)
		}
	}
	if r.void == nil {
		return r, next, nil
	}
	cost, next := f.holdout.session.Void(state, q.asked, q.price)
	core, err := json.Marshal(void{Version: voidVersion, Holdout: f.holdout.id, Query: q.id, Void: true, Cost: cost})
	if err != nil {
		return r, state, err
	}
	d := c.debit(q, cost, core)
	d.Void = true
	_, err = tx.Append(d)
	return r, next, err
}

// voidVersion is the version of void.
const voidVersion = 1

// void is the core of a void entry. It says nothing of the reason.
type void struct {
	Version int    `json:"version"`
	Holdout string `json:"holdout"`
	Query   string `json:"query"`
	Void    bool   `json:"void"`
	Cost    Cost   `json:"cost"`
}

// play makes the answer; a panic of it is an error.
func (c *commit) play(item *commitItem, state thresholdout.State) (a session.Answer, next thresholdout.State, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("holdout: answer panicked: %v", p)
		}
	}()
	return c.flight.holdout.session.Ask(c.flight.begun, state, item.question.asked, item.sums)
}

// append debits and records an answer.
func (c *commit) append(tx *ledger.Tx, q *question, answer session.Answer) (body []byte, err error) {
	core, err := answer.JSON()
	if err != nil {
		return nil, err
	}
	receipt, err := tx.Append(c.debit(q, answer.Cost, core))
	return receipt.Body, err
}

func (c *commit) debit(q *question, cost Cost, core []byte) ledger.Debit {
	return ledger.Debit{Query: q.id, Canonical: q.asked.Canonical, Principal: c.flight.principal.KeyID, Grant: c.flight.purse.grant,
		Cost: debited(cost), Core: core, Time: c.time, Note: q.query.Note}
}

// questions are those of which nothing is recorded yet.
func (c *commit) questions() []*question {
	var all []*question
	for _, item := range c.items {
		all = append(all, item.question)
	}
	return all
}

// settle takes what is durable off the commit, and gives its reservation back. It returns why a question is void, if one is, or why the only question of
// a request was not asked.
func (c *commit) settle(piece []commitItem, out []recorded) (failed error) {
	f := c.flight
	questions, tokens := int64(0), int64(0)
	for i := range piece {
		q := piece[i].question
		r := &out[i]
		q.body, q.replayed = r.body, r.replayed
		questions += q.price.Questions
		tokens += q.price.Tokens
		if r.void != nil {
			f.service.counts.voids.Add(1)
		}
		switch {
		case r.refused != nil && r.refused.reason == GrantEnded && f.request.single:
			failed = grantRefused(f.purse.grant, "your grant of this holdout ended before the question was recorded; nothing was debited")
		case r.refused != nil && f.request.single:
			failed = f.holdout.exhausted(r.refused.reason, r.refused.state, q.price, &f.purse)
		case r.refused != nil:
			q.notAsked = r.refused.reason
		case r.void != nil && failed == nil:
			failed = f.holdout.voided(r.void)
			f.service.log.Error("a question failed after its rows were read, and is void", "holdout", f.holdout.id, "query", q.id, "error", r.void)
		}
		f.answered = f.answered || r.refused == nil && !r.replayed
	}
	f.service.news.tell(f.holdout.id)
	c.items = c.items[len(piece):]
	f.reserved.giveBack(questions, tokens)
	return failed
}

// voided is the reply to a request of which a question is void. It says nothing that depends on rows.
func (h *opened) voided(cause error) error {
	e := &Error{Kind: Internal, Err: cause, Members: map[string]any{"void": true},
		Detail: "a question failed after its rows had been read, and was debited without an answer; the log says why. What was answered before it is replayed when it is asked again"}
	var damaged *Error
	if errors.As(cause, &damaged) && damaged.Kind == Damaged {
		e.Kind, e.Detail = Damaged, damaged.Detail+". The question was being read, and was debited"
		e.Members["holdout"] = h.id
	}
	return e
}
