package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What a question costs is held in the ledger before its statement goes to a source: from then on others see work of it, and it can fail for reasons of the
// engine's. A hold is no debit yet, and nobody else can spend it. The commit of the answer ends it. A question that was not answered, because the source
// failed or the server died, keeps its hold; whoever asks the same again goes on with it, and gets the answer that the first would have had. So what
// anybody may learn from a failure is paid for, and no failure of an engine's costs a question twice or voids it (docs/decisions/0012-sources.md).

// hold is what is held for a question.
type hold struct {
	Query     string `json:"query"` // its id
	Questions int64  `json:"questions"`
	Tokens    int64  `json:"tokens,omitempty"`
	Most      int64  `json:"most,omitempty"`  // tokens that it can take in all, for the grant
	Payer     string `json:"payer,omitempty"` // the key whose grant pays
}

// maxHolds bounds what is held of one holdout: a hold takes some 150 bytes of the ledger's 1 MiB for a state, beside the mechanism's own.
const maxHolds = 2048

// heldVersion is that of a stored state with holds. It is none of those of a state alone, so that a program which knows no holds refuses it.
const heldVersion = 1000

// heldState is the stored form of a state while something is held.
type heldState struct {
	Version int             `json:"version"`
	State   json.RawMessage `json:"state"`
	Holds   []hold          `json:"holds"`
}

// writeBooks writes a state with what is held, by ids.
func writeBooks(state thresholdout.State, holds map[string]hold) ([]byte, error) {
	text, err := json.Marshal(state)
	if err != nil || len(holds) == 0 {
		return text, err
	}
	stored := heldState{Version: heldVersion, State: text}
	for _, h := range holds {
		stored.Holds = append(stored.Holds, h)
	}
	slices.SortFunc(stored.Holds, func(a, b hold) int { return strings.Compare(a.Query, b.Query) })
	return json.Marshal(stored)
}

// splitBooks reads what is held with a stored state, and leaves the state's own text.
func splitBooks(text []byte) (state []byte, holds map[string]hold, err error) {
	holds = map[string]hold{}
	if readVersion("the state", text, heldVersion) != nil { // nothing is held, or the state's reader says what is wrong
		return text, holds, nil
	}
	var stored heldState
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, nil, err
	}
	for _, of := range stored.Holds {
		holds[of.Query] = of
	}
	return stored.State, holds, nil
}

// unanswered is what is held of a holdout; nil where that is nothing. Of holds that cannot be read nobody knows that they are nothing.
func unanswered(record ledger.Holdout) *session.Held {
	_, holds, err := splitBooks(record.State)
	all := heldBeside(holds, nil)
	if err == nil && all.Asked == 0 {
		return nil
	}
	return &all
}

// heldBeside is the sum of holds, but for those of some questions.
func heldBeside(holds map[string]hold, but func(id string) bool) (all session.Held) {
	for id, h := range holds {
		if but == nil || !but(id) {
			all.Asked, all.Questions, all.Tokens = all.Asked+1, all.Questions+h.Questions, all.Tokens+h.Tokens
		}
	}
	return all
}

// without is a state in which what is held for others is spent: what a question can pay for that meets it. What it is answered by is the state itself.
func (h *opened) without(state thresholdout.State, others session.Held) thresholdout.State {
	return h.guarantee.Spend(state, others.Questions, others.Tokens)
}

// heldNow is what is held of an open holdout, for the reply to a request; nil where that is nothing. Of holds that cannot be read nobody knows that they are nothing.
func (s *Service) heldNow(ctx context.Context, h *opened) *session.Held {
	if h.at == nil {
		return nil
	}
	state, all, err := s.leftOf(ctx, h)
	if err == nil && all.Asked == 0 || state.Retired || state.Reporting() {
		return nil
	}
	return &all
}

// readBooks reads a stored state of the holdout's guarantee, and what is held.
func (h *opened) readBooks(text []byte) (state thresholdout.State, holds map[string]hold, err error) {
	text, holds, err = splitBooks(text)
	if err != nil {
		return state, nil, fmt.Errorf("holdout: state of %s: %w", h.id, err)
	}
	state, err = h.guarantee.ReadState(text)
	if err != nil {
		return state, nil, fmt.Errorf("holdout: state of %s: %w", h.id, unknownVersion(err))
	}
	return state, holds, nil
}

// send makes what a wave costs held, durably, before its statements go to a source. Where it fails nothing is sent. A source that cannot be asked now is found
// out before anything is held, so that questions which come meanwhile cost nothing.
func (f *flight) send(ctx context.Context, wave []*question) error {
	if f.holdout.at == nil {
		return nil
	}
	if err := f.holdout.at.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	f.account.mu.Lock()
	payer := f.reserved.payer
	f.account.mu.Unlock()
	var now map[string]hold
	err := f.service.ledger.Update(ctx, f.holdout.id, func(tx *ledger.Tx) error {
		state, holds, err := f.holdout.readBooks(tx.State())
		if err != nil {
			return &ledger.CorruptError{Holdout: f.holdout.id, Seq: -1, Reason: "mechanism state", Err: err}
		}
		if tx.Term() != f.term {
			return ledger.ErrTerm
		}
		for _, q := range wave {
			holds[q.id] = hold{Query: q.id, Questions: q.price.Questions, Tokens: q.price.Tokens, Most: q.most, Payer: payer}
		}
		if len(holds) > maxHolds {
			return &Error{Kind: Unavailable, Detail: fmt.Sprintf("%d questions were sent to the source of this holdout and are not answered yet, with yours %d; ask those again first, or fewer at once", len(holds)-len(wave), len(holds))}
		}
		text, err := writeBooks(state, holds)
		if err != nil {
			return err
		}
		tx.SetState(text)
		now = holds
		return nil
	})
	if err != nil {
		if errors.Is(err, ledger.ErrUnavailable) { // they may be held all the same: whoever asks next looks
			f.account.forget()
		}
		return f.service.ledgerError(err)
	}
	f.account.mu.Lock()
	defer f.account.mu.Unlock()
	for _, q := range wave {
		f.account.holds[q.id] = now[q.id]
	}
	return nil
}

// VoidHeld debits what is held for questions that were sent to a source and not answered, as voids, and ends their holds: what was sent is paid for, and each of them costs anew when it is asked again. What is in flight
// is finished first. The source is not asked. Only admins may.
func (s *Service) VoidHeld(ctx context.Context, p Principal, id string) (Budget, error) {
	if err := admins(p); err != nil {
		return Budget{}, err
	}
	_, card, err := s.find(ctx, id)
	if err != nil {
		return Budget{}, err
	}
	h := &opened{id: id, card: card, guarantee: card.Guarantee}
	err = s.grounded(ctx, id, func() {}, func(ctx context.Context, term int64) error {
		voids := 0
		err := s.ledger.Update(ctx, id, func(tx *ledger.Tx) (err error) {
			if tx.Term() != term {
				return ledger.ErrTerm
			}
			voids, err = h.voidHeld(tx, p)
			return err
		})
		if err == nil && voids > 0 {
			s.log.Info("questions that were held are void", "holdout", id, "questions", voids, "by", p.KeyID)
			s.news.tell(id)
		}
		return err
	})
	if err != nil {
		return Budget{}, s.ledgerError(err)
	}
	return s.Budget(ctx, p, id)
}

// voidHeld is the update of VoidHeld. Each hold is debited with the most that its question could cost, but for tokens that are held for others or spent. The holds are at most maxHolds, which an update can append.
func (h *opened) voidHeld(tx *ledger.Tx, by Principal) (voids int, err error) {
	state, holds, err := h.readBooks(tx.State())
	if err != nil {
		return 0, &ledger.CorruptError{Holdout: h.id, Seq: -1, Reason: "mechanism state", Err: err}
	}
	if len(holds) == 0 {
		return 0, nil
	}
	reserved := int64(0)
	for _, of := range holds {
		reserved += of.Tokens
	}
	for _, id := range slices.Sorted(maps.Keys(holds)) {
		of := holds[id]
		if state.Reporting() || tx.Retired() { // all is debited already
			break
		}
		free := max(0, h.guarantee.Tokens-state.Tokens-reserved)
		reserved -= of.Tokens
		next := h.guarantee.Spend(state, of.Questions, of.Tokens+min(max(0, of.Most-of.Tokens), free))
		cost := next.Spent().Minus(state.Spent())
		core, err := json.Marshal(void{Version: voidVersion, Holdout: h.id, Query: id, Void: true, Cost: cost})
		if err != nil {
			return 0, err
		}
		payer := of.Payer
		if payer == "" {
			payer = by.KeyID
		}
		if _, err := tx.Append(ledger.Debit{Query: id, Principal: payer, Cost: debited(cost), Core: core, Void: true}); err != nil {
			return 0, err
		}
		state = next
		voids++
	}
	text, err := writeBooks(state, nil)
	if err != nil {
		return 0, err
	}
	tx.SetState(text)
	return voids, nil
}

// fly counts questions by what their flight has reserved, and not by what is held for them, until land. The lock is held.
func (acc *account) fly(ids []string) {
	for _, id := range ids {
		acc.flying[id] = true
	}
}

// land is the end of fly. The lock is held.
func (acc *account) land(ids []string) {
	for _, id := range ids {
		delete(acc.flying, id)
	}
}

// unhold forgets what was held for questions that are recorded.
func (acc *account) unhold(piece []commitItem) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	for i := range piece {
		delete(acc.holds, piece[i].question.id)
	}
}

// kept is what is held for questions that nobody asks now. The lock is held.
func (acc *account) kept() session.Held {
	return heldBeside(acc.holds, func(id string) bool { return acc.flying[id] })
}

// paid is what each key has spent, with what is held for questions that nobody asks now. The lock is held.
func (acc *account) paid() map[string]ledger.Meters {
	if len(acc.holds) == 0 {
		return acc.debited
	}
	all := make(map[string]ledger.Meters, len(acc.debited))
	for key, debits := range acc.debited {
		all[key] = maps.Clone(debits)
	}
	for id, h := range acc.holds {
		if acc.flying[id] || h.Payer == "" {
			continue
		}
		if all[h.Payer] == nil {
			all[h.Payer] = ledger.Meters{}
		}
		all[h.Payer][thresholdout.MeterQuestions] += h.Questions
		all[h.Payer][thresholdout.MeterTokens] += h.Most
	}
	return all
}

// keptBack says in a refusal for want of questions how many are held for others.
func keptBack(err error, others session.Held) error {
	var e *Error
	if !errors.As(err, &e) || e.Kind != BudgetExhausted {
		return err
	}
	more := *e
	more.Detail += keptFor(others)
	return &more
}

// keptFor is that sentence; none where nothing is held.
func keptFor(others session.Held) string {
	if others.Questions == 0 {
		return ""
	}
	return fmt.Sprintf(". %d more are kept for questions that were sent to the source and not answered: ask those again", others.Questions)
}
