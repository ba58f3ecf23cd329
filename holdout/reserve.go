package holdout

import (
	"context"
	"slices"
	"sync"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What a question may need is reserved before a row of the holdout is read: its debit, its tokens, its id and its Idempotency-Key.
// So nothing that this server does between the scan and the commit can end in a refusal: no race for the last question, no other
// request under the same key, no state that has moved. Reservations live in memory: when the process dies between scan and commit, the reservation
// is gone and so is everything that the scan found. Other servers of the same ledger do not see them; what these have spent meanwhile is
// found by the commit, which admits each question again (commit.go).

// account is what is known of a holdout's budget: the state that is durable, and what requests in flight have reserved.
type account struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when something of the below was given back

	at       *position // the newest durable one that is known; nil until it has been read
	shown    int64     // questions that a reader of the ledger was told are spent: more than at has, while a commit is not announced yet
	finished int64     // flights that have ended

	questions int64 // reserved
	tokens    int64
	paying    map[string]amounts // what of it each purse pays, by its grant
	granting  bool               // something of the holdout was granted once
	asking    map[string]bool    // ids of questions that a request has claimed
	shared    int                // flights that others may fly beside
	exclusive bool               // a flight that must be alone
	line      []*ticket          // of those that wait to take off, in the order they came
}

// position is where a holdout stands: the mechanism's state, and the entry of the chain that it belongs to.
type position struct {
	seq   int64
	state thresholdout.State
}

// amounts are questions and tokens.
type amounts struct{ questions, tokens int64 }

// reserve adds to what is reserved, of the account and of the purse that pays; less, where the amounts are negative. The lock is held.
func (acc *account) reserve(grant string, questions, tokens int64) {
	acc.questions += questions
	acc.tokens += tokens
	now := acc.paying[grant]
	now.questions += questions
	now.tokens += tokens
	if now == (amounts{}) {
		delete(acc.paying, grant)
		return
	}
	acc.paying[grant] = now
}

// granted reports whether something of the holdout was granted once.
func (acc *account) granted() bool {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	return acc.granting
}

// grants remembers that something of the holdout was granted.
func (acc *account) grants() {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.granting = true
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
	done    chan struct{}
}

func newAccounts() *accounts {
	return &accounts{byID: map[string]*account{}, keys: map[ledgerKey]*keyUse{}}
}

func (a *accounts) of(id string) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc := a.byID[id]
	if acc == nil {
		acc = &account{changed: make(chan struct{}), asking: map[string]bool{}, paying: map[string]amounts{}}
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

// useKey reserves an Idempotency-Key for a request. While another request under the same key is in flight it waits for its end if it is
// the same, and refuses if it is not.
func (a *accounts) useKey(ctx context.Context, i *ledger.Idempotency) (release func(), err error) {
	if i == nil {
		return func() {}, nil
	}
	name := ledgerKey{i.Principal, i.Key}
	for {
		a.mu.Lock()
		other := a.keys[name]
		if other == nil {
			use := &keyUse{request: i.Request, done: make(chan struct{})}
			a.keys[name] = use
			a.mu.Unlock()
			return sync.OnceFunc(func() {
				a.mu.Lock()
				delete(a.keys, name)
				a.mu.Unlock()
				close(use.done)
			}), nil
		}
		a.mu.Unlock()
		if other.request != i.Request {
			return nil, ledger.ErrIdempotencyMismatch
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, leftWaiting(ctx)
		}
	}
}

// leftWaiting is the refusal of a request that ended before its turn, or the turn of what is left of it: no row was read for that.
func leftWaiting(ctx context.Context) error {
	return &Error{Kind: Unavailable, Detail: "the request ended before its turn came; what was not answered was not debited", Err: ctx.Err()}
}

// refresh reads where the holdout stands, if that is not known or may have been moved by another server. It holds no lock: the ledger may be
// far away.
func (acc *account) refresh(ctx context.Context, s *Service, h *opened) error {
	acc.mu.Lock()
	known := acc.at != nil && !s.shared && acc.at.state.Questions >= acc.shown
	acc.mu.Unlock()
	if known {
		return nil
	}
	books, err := s.ledger.Books(ctx, h.id)
	if err != nil {
		return s.ledgerError(err)
	}
	if books.Deleted {
		return s.ledgerError(ledger.ErrDeleted)
	}
	if books.Grants > 0 {
		acc.grants()
	}
	state, err := h.readState(books.State, books.End)
	if err == nil {
		acc.advance(position{books.Seq, state})
	}
	return err
}

// stateOf is the state that the next question of a holdout meets: the durable one, in which a round that has begun is over.
func (s *Service) stateOf(ctx context.Context, h *opened) (thresholdout.State, error) {
	acc := s.accounts.of(h.id)
	if err := acc.refresh(ctx, s, h); err != nil {
		return thresholdout.State{}, err
	}
	acc.mu.Lock()
	defer acc.mu.Unlock()
	at, err := acc.now(s)
	return h.session.EndRequest(at.state), err
}

// now is where the holdout stands, after a refresh: what was forgotten since is deleted. The lock is held.
func (acc *account) now(s *Service) (position, error) {
	if acc.at == nil {
		return position{}, s.ledgerError(ledger.ErrDeleted)
	}
	return *acc.at, nil
}

// ended is how many flights have ended.
func (acc *account) ended() int64 {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	return acc.finished
}

// forget makes those who still wait look again where the holdout stands.
func (acc *account) forget() {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.at = nil
}

// await runs try under the lock until it says done, each time that something was given back. All of that is this server's own, so the wait has an end
// whatever others do.
func (acc *account) await(ctx context.Context, try func() (done bool, err error)) error {
	return acc.awaitFresh(ctx, func() bool { return false }, nil, try)
}

// awaitFresh is await that calls refresh, without the lock, before a try that wants it.
func (acc *account) awaitFresh(ctx context.Context, wants func() bool, refresh func() error, try func() (done bool, err error)) error {
	for fresh := false; ; {
		acc.mu.Lock()
		if !fresh && wants() {
			acc.mu.Unlock()
			if err := refresh(); err != nil {
				return err
			}
			fresh = true
			continue
		}
		fresh = false
		done, err := try()
		changed := acc.changed
		acc.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
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

// advance makes known where the holdout stands. Commits of flights that fly together are announced in any order, and so are reads; the chain says
// which is later. A commit is known before its reservation ends, so that nothing is missing from both.
func (acc *account) advance(at position) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if acc.at == nil || at.seq >= acc.at.seq {
		acc.at = &at
	}
}

// show notes what a reader of the ledger is told is spent. A commit is in the ledger before it is announced here; a reply that comes after that
// reader's must not say that more is left.
func (acc *account) show(questions int64) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.shown = max(acc.shown, questions)
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
// first in line waits for flights that are in the air, and these wait for nobody in line. refresh is called when its turn has come, before it tries.
func (acc *account) enter(ctx context.Context, alone bool, refresh func() error, try func() (ready bool, err error)) error {
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
	return acc.awaitFresh(ctx, func() bool { return acc.mayEnter(t) }, refresh, func() (bool, error) {
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

// ground waits until nothing of a holdout is in flight and keeps all questions out until release.
func (acc *account) ground(ctx context.Context) (release func(), err error) {
	nothing := func() error { return nil }
	if err := acc.enter(ctx, true, nothing, func() (bool, error) { return true, nil }); err != nil {
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
	grant     string // that pays
	alone     bool
	questions int64
	tokens    int64
}

// giveBack returns what is not needed any more: what was debited, and what will not be asked. What was read and is not debited must
// stay reserved.
func (r *reservation) giveBack(questions, tokens int64) {
	acc := r.account
	acc.mu.Lock()
	defer acc.mu.Unlock()
	r.questions -= questions
	r.tokens -= tokens
	acc.reserve(r.grant, -questions, -tokens)
	acc.announce()
}

// end gives everything back that is left.
func (r *reservation) end() {
	acc := r.account
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.reserve(r.grant, -r.questions, -r.tokens)
	r.questions, r.tokens = 0, 0
	acc.finished++
	acc.leave(r.alone)
}
