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

// commit is the stage after which a question is debited: each of its items becomes an answer or a void.
type commit struct {
	flight *flight
	items  []commitItem
	last   bool      // no wave of the request comes after it
	time   time.Time // of its entries
	unsure bool      // an update ended without saying whether it is durable

	refusals int // of the ledger to record even a void, in a row
}

// commitItem is a question whose rows were read, or may have been.
type commitItem struct {
	question *question
	sums     session.Sums
	failed   error // the scan
}

// recorded is what became of an item.
type recorded struct {
	body []byte // nil: void
	void error  // why
}

// Limits of what one update records: others wait while it runs.
const (
	// pieceQuestions take some 100 µs each, so that others wait 7 ms for a large batch. With 256 it would be 4% faster, and they would wait 20 ms.
	pieceQuestions = 64
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
	void := error(nil)
	for len(c.items) > 0 {
		failed, err := c.next(ctx)
		if err != nil {
			if !gone(err) {
				c.flight.holdUp()
				c.flight.service.background(c.retry)
			}
			return gone(err), c.flight.service.ledgerError(err)
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
		case gone(err):
			return
		default:
			c.flight.service.log.Error("questions that were read cannot be recorded yet", "holdout", c.flight.holdout.id, "questions", len(c.items), "error", err)
			wait = min(2*wait, lastRetry)
		}
	}
}

// gone reports whether there is nothing left to record in, or another server has it now.
func gone(err error) bool {
	return errors.Is(err, ledger.ErrTerm) || errors.Is(err, ledger.ErrClosed) || errors.Is(err, ledger.ErrDeleted) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrCorrupt)
}

// next makes the next piece durable: with its answers or, should the ledger refuse one of them, all of it as void. failed is why
// a question of it is void, if one is.
func (c *commit) next(ctx context.Context) (failed, err error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	piece := c.piece()
	out, err := c.update(ctx, piece)
	if err != nil && !gone(err) && !errors.Is(err, ledger.ErrUnavailable) {
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
	if !gone(err) && !errors.Is(err, ledger.ErrUnavailable) {
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
	if c.flight.request.report != nil { // closes with its answers, or not at all
		return c.items
	}
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
	var state thresholdout.State
	err = f.service.ledger.Update(ctx, f.holdout.id, func(tx *ledger.Tx) (err error) {
		out, state, err = c.record(tx, piece)
		return err
	})
	if err != nil {
		c.unsure = c.unsure || errors.Is(err, ledger.ErrUnavailable)
		return nil, err
	}
	f.state = state
	f.account.advance(state, f.term)
	f.account.unhold(piece)
	return out, nil
}

// record is the update of a piece. It is a function of the books, of the sums and of what the flight began with: it may run more than
// once, and changes nothing but the books.
func (c *commit) record(tx *ledger.Tx, piece []commitItem) (out []recorded, state thresholdout.State, err error) {
	f := c.flight
	state, holds, err := f.holdout.readBooks(tx.State())
	if err != nil {
		return nil, state, &ledger.CorruptError{Holdout: f.holdout.id, Seq: -1, Reason: "mechanism state", Err: err}
	}
	if c.unsure {
		if out = c.earlier(tx, piece); out != nil {
			return out, state, nil
		}
	}
	if tx.Term() != f.term { // others may have spent what was reserved
		return nil, state, ledger.ErrTerm
	}
	if f.reserved.alone {
		state = f.state // the durable one, but for a round that a crash cut off, which is over
	}
	for i := range piece {
		r, next, err := c.answer(tx, &piece[i], state)
		if err != nil {
			return nil, state, err
		}
		out, state = append(out, r), next
	}
	if f.request.report != nil {
		if state, err = c.closeHoldout(tx, piece, out, state); err != nil {
			return nil, state, err
		}
	}
	complete := c.complete(piece)
	if complete {
		state = f.holdout.session.EndRequest(state)
	}
	if f.key != nil { // with each piece: whether there is another is not known yet
		void := map[*question]bool{}
		for i := range piece {
			void[piece[i].question] = out[i].void != nil
		}
		use, err := f.use(void, complete, state)
		if err != nil {
			return nil, state, err
		}
		// The key was reserved, so that it is nobody else's. Should it be all the same, the answers count and not the key.
		if err := tx.Idempotent(use); err != nil && !errors.Is(err, ledger.ErrIdempotencyMismatch) {
			return nil, state, err
		}
	}
	for i := range piece {
		delete(holds, piece[i].question.id)
	}
	text, err := writeBooks(state, holds)
	if err != nil {
		return nil, state, err
	}
	tx.SetState(text)
	return out, state, nil
}

// complete reports whether a piece is the last one of the request.
func (c *commit) complete(piece []commitItem) bool { return c.last && len(piece) == len(c.items) }

// earlier is what an earlier try recorded whose outcome was not known: all of the piece, or nothing.
func (c *commit) earlier(tx *ledger.Tx, piece []commitItem) (out []recorded) {
	for _, item := range piece {
		body, ok := tx.Answer(item.question.id)
		r := recorded{body: body}
		if !ok {
			if !tx.Voided(item.question.id, c.time) {
				return nil
			}
			r.void = errVoid
		}
		out = append(out, r)
	}
	return out
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
	return ledger.Debit{Query: q.id, Canonical: q.asked.Canonical, Principal: c.flight.principal.KeyID,
		Cost: debited(cost), Core: core, Time: c.time, Note: q.query.Note}
}

// settle takes what is durable off the commit, and gives its reservation back. It returns why a question is void, if one is.
func (c *commit) settle(piece []commitItem, out []recorded) (failed error) {
	f := c.flight
	questions, tokens, most := int64(0), int64(0), int64(0)
	for i := range piece {
		q := piece[i].question
		q.body, q.void = out[i].body, out[i].void != nil
		questions += q.price.Questions
		tokens += q.price.Tokens
		most += q.most
		if out[i].void != nil && failed == nil {
			failed = f.holdout.voided(out[i].void)
			f.service.log.Error("a question failed after its rows were read, and is void", "holdout", f.holdout.id, "query", q.id, "error", out[i].void)
		}
	}
	f.service.news.tell(f.holdout.id)
	f.concluded = f.concluded || c.complete(piece)
	c.items = c.items[len(piece):]
	f.reserved.giveBack(questions, tokens, most)
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
