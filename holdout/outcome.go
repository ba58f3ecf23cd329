package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// A request under an Idempotency-Key has one outcome, however often it is sent. Its answers are the ledger's by themselves. What else became of it is
// recorded with the key, in the commit of its answers: which queries were not asked, and why; which are void; what it was warned of. Sent again, it is that,
// and nothing is asked, whatever the budget is by then and whatever max_questions the repetition names.
//
// A large batch is committed in pieces, and the first of them records the key. Should the server end before the last, or its caller leave, the outcome is open:
// sent again, the request asks what the first time had chosen and not yet asked, and no more, so that its max_questions is not spent twice. In rounds
// that would be a second round; there the rest is not asked, for good.

// outcomeVersion is the version of outcome.
const outcomeVersion = 1

// outcome is what became of a request, beside its answers.
type outcome struct {
	Version  int          `json:"version"`
	Complete bool         `json:"complete"` // false: pieces of it were still to come
	Items    []outcomeRun `json:"items"`
	Warnings []Warning    `json:"warnings,omitempty"`
}

// outcomeRun is what became of so many of the request's distinct queries, in the order of their first places. Those that are neither not asked nor void
// have answers or, of an outcome that is not complete, were to be asked.
type outcomeRun struct {
	Queries  int    `json:"queries"`
	NotAsked string `json:"not_asked,omitempty"`
	Void     bool   `json:"void,omitempty"`
}

// maxOutcomeQueries is how many distinct queries a request under a key may have, so that its outcome can be recorded whatever becomes of each.
const maxOutcomeQueries = ledger.MaxOutcomeBytes / 64

// Interrupted is why an item of a batch was not asked whose server ended while the batch was being recorded, in rounds: its round was over then.
const Interrupted = "interrupted"

// readOutcome is the inverse of use. A use by a program before outcomes were kept has none.
func readOutcome(i ledger.Idempotency) (*outcome, error) {
	if i.Outcome == "" {
		return nil, nil
	}
	const what = "the outcome of a request"
	if err := readVersion(what, []byte(i.Outcome), outcomeVersion); err != nil {
		return nil, err
	}
	o := &outcome{}
	if err := json.Unmarshal([]byte(i.Outcome), o); err != nil {
		return nil, &ledger.CorruptError{Holdout: i.Resource, Seq: -1, Reason: what, Err: err}
	}
	return o, nil
}

// used is what is recorded of a key, if anything is. A key that was used for another request is refused.
func (s *Service) used(ctx context.Context, i *ledger.Idempotency) (known ledger.Idempotency, ok bool, err error) {
	if len(i.Key) > ledger.MaxTextBytes || !utf8.ValidString(i.Key) { // it could not be recorded later
		return known, false, invalid("Idempotency-Key", "the Idempotency-Key must be text of at most %d bytes", ledger.MaxTextBytes)
	}
	known, ok, err = s.ledger.Idempotency(ctx, i.Principal, i.Key)
	if err == nil && ok && known.Request != i.Request {
		err = ledger.ErrIdempotencyMismatch
	}
	if err != nil {
		return known, false, s.ledgerError(err)
	}
	return known, ok, nil
}

// outcomeOf is what is recorded of a request under its key, or nil.
func (s *Service) outcomeOf(ctx context.Context, i *ledger.Idempotency) (*outcome, error) {
	if i == nil {
		return nil, nil
	}
	known, ok, err := s.used(ctx, i)
	if err != nil || !ok {
		return nil, err
	}
	o, err := readOutcome(known)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	return o, nil
}

// settle gives the queries of a request what is recorded of them.
func (o *outcome) settle(questions []*question) error {
	if o == nil {
		return nil
	}
	for _, run := range o.Items {
		if run.Queries < 0 || run.Queries > len(questions) {
			return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("the outcome of a request names more queries than it had: %v", o.Items)}
		}
		for _, q := range questions[:run.Queries] {
			q.notAsked, q.settled, q.void = run.NotAsked, run.NotAsked != "", run.Void
		}
		questions = questions[run.Queries:]
	}
	return nil
}

// voidAgain is the outcome of a request with a question that was void, and that no other request has had answered since.
func voidAgain() *Error {
	return &Error{Kind: Internal, Members: map[string]any{"void": true}, Err: errVoid,
		Detail: "a question of this request failed after its rows had been read, and was debited without an answer. That is the outcome of the request under its Idempotency-Key, " +
			"and nothing was asked now. Under another key it is asked again, and paid again; what was answered is replayed"}
}

// use is the use of the request's key, with what has become of the request in this state; void are the questions of the piece that is being recorded.
func (f *flight) use(void map[*question]bool, complete bool, state thresholdout.State) (ledger.Idempotency, error) {
	o := outcome{Version: outcomeVersion, Complete: complete, Warnings: f.warnings(state)}
	for _, q := range f.questions {
		run := outcomeRun{Queries: 1, NotAsked: q.notAsked, Void: q.void && q.body == nil || void[q]}
		if n := len(o.Items); n > 0 && o.Items[n-1].NotAsked == run.NotAsked && o.Items[n-1].Void == run.Void {
			o.Items[n-1].Queries++
			continue
		}
		o.Items = append(o.Items, run)
	}
	text, err := json.Marshal(o)
	use := *f.key
	use.Outcome = string(text)
	return use, err
}

// warnings are those of the request in a state after it.
func (f *flight) warnings(state thresholdout.State) []Warning {
	if f.earlier != nil && f.earlier.Complete {
		return f.earlier.Warnings
	}
	if w := f.holdout.halfEmpty(f.begun, state.Questions-f.begun.Questions); w != nil {
		return []Warning{*w}
	}
	return nil
}

// conclude records the outcome of a request that no commit of its answers has completed: what came behind the last of them was not asked. A request that
// is replays alone needs no outcome, and leaves its key free.
func (f *flight) conclude(ctx context.Context) error {
	if f.key == nil || f.concluded || !slices.ContainsFunc(f.questions, func(q *question) bool { return q.notAsked != "" }) {
		return nil
	}
	ctx, cancel := withDeadline(context.WithoutCancel(ctx))
	defer cancel()
	use, err := f.use(nil, true, f.state)
	if err != nil {
		return err
	}
	err = f.service.ledger.Update(ctx, f.holdout.id, func(tx *ledger.Tx) error { return tx.Idempotent(use) })
	if err != nil && !errors.Is(err, ledger.ErrIdempotencyMismatch) {
		return f.service.ledgerError(err)
	}
	f.concluded = true
	return nil
}
