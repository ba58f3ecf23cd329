package holdout

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What a question may need is reserved before a row of the holdout is read: its debit, its tokens, its id and its Idempotency-Key.
// So nothing that happens between the scan and the commit can end in a refusal: no race for the last question, no other
// request under the same key, no state that has moved. Reservations live in memory, since one process at a time has a holdout
// to itself (see tenures): when it dies between scan and commit, the reservation is gone and so is everything that the scan found.

// account is what is known of a holdout's budget: the state that is durable, and what requests in flight have reserved.
type account struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when something of the below was given back

	state    *thresholdout.State // durable; nil until it has been read
	holds    map[string]hold     // durable, too, by ids: what is held for questions that were sent to a source
	flying   map[string]bool     // ids of questions that count by what their flights have reserved
	term     int64               // of this server, in which it was read: after another server's it is old
	finished int64               // flights that have ended

	questions   int64 // reserved
	tokens      int64
	held        map[string]held          // of these, by keys whose grants pay; what is not there is nothing
	debited     map[string]ledger.Meters // by who asked, up to debitedTo: as far as a grant has needed it
	debitedTo   int64                    // seq
	debitedHead string                   // of that entry
	asking      map[string]bool          // ids of questions that a request has claimed
	shared      int                      // flights that others may fly beside
	exclusive   bool                     // a flight that must be alone
	line        []*ticket                // of those that wait to take off, in the order they came
	late        int                      // flights that the ledger cannot record yet
}

// ticket is a place in the line of an account.
type ticket struct{ alone bool }

// accounts are those of all holdouts that were asked about since the start.
type accounts struct {
	mu   sync.Mutex
	byID map[string]*account
	keys map[ledgerKey]*keyUse // Idempotency-Keys in flight
}

type ledgerKey struct{ principal, key string }

// keyUse is the use of an Idempotency-Key by a request in flight.
type keyUse struct {
	request [32]byte
	done    chan struct{} // closed at the request's end
	late    chan struct{} // closed when the ledger cannot record it yet
}

// wait waits for the end of the request and, once that is late, as long as the ledger is waited for.
func (u *keyUse) wait(ctx context.Context) error {
	late, patience := u.late, (<-chan time.Time)(nil)
	for {
		select {
		case <-u.done:
			return nil
		case <-late:
			late, patience = nil, time.After(LedgerDeadline)
		case <-patience:
			return behindLate()
		case <-ctx.Done():
			return leftWaiting(ctx)
		}
	}
}

func newAccounts() *accounts {
	return &accounts{byID: map[string]*account{}, keys: map[ledgerKey]*keyUse{}}
}

func (a *accounts) of(id string) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc := a.byID[id]
	if acc == nil {
		acc = &account{changed: make(chan struct{}), asking: map[string]bool{}, holds: map[string]hold{}, flying: map[string]bool{}, held: map[string]held{}, debited: map[string]ledger.Meters{}}
		a.byID[id] = acc
	}
	return acc
}

// forget drops the account of a deleted holdout.
func (a *accounts) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byID, id)
}

// useKey reserves an Idempotency-Key for a request until release; late says that the ledger cannot record the request yet. While another
// request under the same key is in flight it waits for its end if it is the same, and refuses if it is not.
func (a *accounts) useKey(ctx context.Context, i *ledger.Idempotency) (release, late func(), err error) {
	if i == nil {
		return func() {}, func() {}, nil
	}
	name := ledgerKey{i.Principal, i.Key}
	for {
		a.mu.Lock()
		other := a.keys[name]
		if other == nil {
			use := &keyUse{request: i.Request, done: make(chan struct{}), late: make(chan struct{})}
			a.keys[name] = use
			a.mu.Unlock()
			return sync.OnceFunc(func() {
				a.mu.Lock()
				delete(a.keys, name)
				a.mu.Unlock()
				close(use.done)
			}), sync.OnceFunc(func() { close(use.late) }), nil
		}
		a.mu.Unlock()
		if other.request != i.Request {
			return nil, nil, ledger.ErrIdempotencyMismatch
		}
		if err := other.wait(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// leftWaiting is the refusal of a request that ended before its turn, or the turn of what is left of it: no row was read for that.
func leftWaiting(ctx context.Context) error {
	return &Error{Kind: Unavailable, Detail: "the request ended before its turn came; what was not answered was not debited", Err: ctx.Err()}
}

// behindLate is the refusal of a request that would wait for one that the ledger cannot record yet: for how long, nobody knows.
func behindLate() error {
	return &Error{Kind: Unavailable, Detail: "the ledger cannot record yet what an earlier request read; ask again later: nothing was debited now, and an answer that was recorded is replayed, at no cost"}
}

// current reads the durable state in a term of this server's, from the ledger where it is not known. The lock is held.
func (acc *account) current(ctx context.Context, s *Service, h *opened, term int64) (thresholdout.State, error) {
	state, _, err := acc.books(ctx, s, h, term)
	return state, err
}

// books reads the durable state, and what is held in it, as current does. The lock is held, and for as long as the holds are read.
func (acc *account) books(ctx context.Context, s *Service, h *opened, term int64) (thresholdout.State, map[string]hold, error) {
	if acc.state != nil && acc.term == term {
		return *acc.state, acc.holds, nil
	}
	record, err := s.ledger.Holdout(ctx, h.id)
	if err != nil {
		return thresholdout.State{}, nil, s.ledgerError(err)
	}
	if record.Deleted {
		return thresholdout.State{}, nil, s.ledgerError(ledger.ErrDeleted)
	}
	state, holds, err := h.readBooks(record.State)
	if err == nil && term != noTerm {
		acc.state, acc.holds, acc.term = &state, holds, term
	}
	return state, holds, err
}

// noTerm is for who reads a state that other servers may change at any time.
const noTerm = -1

// stateOf is the state that the next question of a holdout meets: the durable one, in which a round that has begun is over.
func (s *Service) stateOf(ctx context.Context, h *opened) (thresholdout.State, error) {
	state, _, err := s.leftOf(ctx, h)
	return state, err
}

// leftOf is that state, and what is held in it for questions beside those with these ids: whoever asks these can spend the rest.
func (s *Service) leftOf(ctx context.Context, h *opened, ids ...string) (thresholdout.State, session.Held, error) {
	acc := s.accounts.of(h.id)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	term := acc.term
	if s.shared != nil {
		term = noTerm
	}
	state, holds, err := acc.books(ctx, s, h, term)
	return h.session.EndRequest(state), heldBeside(holds, func(id string) bool { return slices.Contains(ids, id) }), err
}

// ended is how many flights have ended, and the term of the state that is known.
func (acc *account) ended() (flights, term int64) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	return acc.finished, acc.term
}

// forget makes those who still wait look the state up again.
func (acc *account) forget() {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.state = nil
}

// await runs try under the lock until it says done, each time that something was given back. While a flight is late it waits for the ledger
// as long as the ledger is waited for.
func (acc *account) await(ctx context.Context, try func() (done bool, err error)) error {
	var patience <-chan time.Time
	for {
		acc.mu.Lock()
		done, err := try()
		changed, late := acc.changed, acc.late > 0
		acc.mu.Unlock()
		switch {
		case done || err != nil:
			return err
		case !late:
			patience = nil
		case patience == nil:
			patience = time.After(LedgerDeadline)
		}
		select {
		case <-changed:
		case <-patience:
			return behindLate()
		case <-ctx.Done():
			return leftWaiting(ctx)
		}
	}
}

// announce wakes those who wait. The lock is held.
func (acc *account) announce() {
	close(acc.changed)
	acc.changed = make(chan struct{})
}

// advance makes a state known that is durable, of a term. Commits of flights that fly together are announced in any order; every entry spends a
// question, so the later state is the one with more.
func (acc *account) advance(state thresholdout.State, term int64) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if acc.term == term && (acc.state == nil || state.Questions >= acc.state.Questions) {
		acc.state = &state
	}
}

// claim waits until no other request asks any of these questions, and takes them all: until release, nobody else answers
// one of them. It takes all or none, so that two who wait for each other's questions cannot be.
func (acc *account) claim(ctx context.Context, ids []string) (release func(), err error) {
	err = acc.await(ctx, func() (bool, error) {
		for _, id := range ids {
			if acc.asking[id] {
				return false, nil
			}
		}
		for _, id := range ids {
			acc.asking[id] = true
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		acc.mu.Lock()
		defer acc.mu.Unlock()
		for _, id := range ids {
			delete(acc.asking, id)
		}
		acc.announce()
	}), nil
}

// mayEnter reports whether the first in line may take off now: alone, or beside others.
func (acc *account) mayEnter(t *ticket) bool {
	return acc.line[0] == t && !acc.exclusive && (!t.alone || acc.shared == 0)
}

// enter waits until a flight may take off and try says that it can, and lets it. Flights take off in the order in which they came, so that
// neither those that must be alone nor the others can be kept waiting by a stream of the other kind. Nobody waits for ever: the
// first in line waits for flights that are in the air, and these wait for nobody in line.
func (acc *account) enter(ctx context.Context, alone bool, try func() (ready bool, err error)) error {
	t := &ticket{alone}
	acc.mu.Lock()
	acc.line = append(acc.line, t)
	acc.mu.Unlock()
	defer func() {
		acc.mu.Lock()
		defer acc.mu.Unlock()
		acc.line = slices.DeleteFunc(acc.line, func(other *ticket) bool { return other == t })
		acc.announce()
	}()
	return acc.await(ctx, func() (bool, error) {
		if !acc.mayEnter(t) {
			return false, nil
		}
		ready, err := try()
		if !ready || err != nil {
			return false, err
		}
		if alone {
			acc.exclusive = true
		} else {
			acc.shared++
		}
		return true, nil
	})
}

// leave is the end of what entered. The lock is held.
func (acc *account) leave(alone bool) {
	if alone {
		acc.exclusive = false
	} else {
		acc.shared--
	}
	acc.announce()
}

// holdUp says that the ledger cannot record a flight yet.
func (acc *account) holdUp() {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.late++
	acc.announce()
}

// recorded is the end of a flight that was held up.
func (acc *account) recorded() {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.late--
	acc.announce()
}

// ground waits until nothing of a holdout is in flight and keeps all questions out until release.
func (acc *account) ground(ctx context.Context) (release func(), err error) {
	if err := acc.enter(ctx, true, func() (bool, error) { return true, nil }); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		acc.mu.Lock()
		defer acc.mu.Unlock()
		acc.leave(true)
	}), nil
}

// reservation is what one flight holds of an account.
type reservation struct {
	account   *account
	alone     bool
	payer     string // the key whose grant pays; "" where none does
	questions int64
	tokens    int64
	most      int64 // tokens that it can take in all, for the grant
	flying    []string
}

// held is what requests of a key have reserved of its grant.
type held struct{ questions, tokens int64 }

// add reserves more, or less. The account's lock is held.
func (r *reservation) add(questions, tokens, most int64) {
	acc := r.account
	r.questions, r.tokens, r.most = r.questions+questions, r.tokens+tokens, r.most+most
	acc.questions, acc.tokens = acc.questions+questions, acc.tokens+tokens
	if r.payer == "" {
		return
	}
	h := acc.held[r.payer]
	h.questions, h.tokens = h.questions+questions, h.tokens+most
	if acc.held[r.payer] = h; h == (held{}) {
		delete(acc.held, r.payer)
	}
}

// giveBack returns what is not needed any more: what was debited, and what will not be asked. What was read and is not debited must
// stay reserved.
func (r *reservation) giveBack(questions, tokens, most int64) {
	acc := r.account
	acc.mu.Lock()
	defer acc.mu.Unlock()
	r.add(-questions, -tokens, -most)
	acc.announce()
}

// end gives everything back that is left.
func (r *reservation) end() {
	acc := r.account
	acc.mu.Lock()
	defer acc.mu.Unlock()
	r.add(-r.questions, -r.tokens, -r.most)
	acc.land(r.flying)
	acc.finished++
	acc.leave(r.alone)
}
