package holdout

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/sources"
)

// A table of a source becomes a holdout where it is: it is registered, in the background, for that takes as long as the source needs to read it three times. Whoever
// has begun it asks how far it is. It is known to this server alone until the ledger has the holdout: a server that stops forgets it, and drops what it had made (leftovers.go).

// RegistrationStage is how far a registration is.
type RegistrationStage string

// The stages, in their order, and the three ends.
const (
	RegistrationWaiting   RegistrationStage = "waiting"       // for those before it: one is worked on at a time
	RegistrationLooking   RegistrationStage = "looking"       // at the table: columns, rows, checksum
	RegistrationReading   RegistrationStage = "reading-units" // each unit's key, to decide on which side it is
	RegistrationDividing  RegistrationStage = "dividing"      // the source makes the parts
	RegistrationChecking  RegistrationStage = "checking"      // what the parts are, for the card; then it is recorded
	RegistrationDone      RegistrationStage = "done"
	RegistrationFailed    RegistrationStage = "failed"
	RegistrationCancelled RegistrationStage = "cancelled"
)

// Ended reports whether nothing more will happen.
func (s RegistrationStage) Ended() bool {
	return s == RegistrationDone || s == RegistrationFailed || s == RegistrationCancelled
}

// Registration is a table of a source, or a large upload, on its way to a holdout.
type Registration struct {
	ID      string            `json:"id" doc:"re_…"`
	Source  string            `json:"source,omitempty" doc:"the name of the source; absent of an upload"`
	Table   string            `json:"table,omitempty" doc:"the table, as it is named there"`
	Name    string            `json:"name,omitempty" doc:"what people will call the holdout"`
	Stage   RegistrationStage `json:"stage" enum:"waiting,looking,reading-units,dividing,checking,done,failed,cancelled" doc:"how far it is; the last three are ends"`
	Rows    int64             `json:"rows,omitempty" doc:"of the table; absent until it was looked at"`
	Done    int64             `json:"done,omitempty" doc:"of these rows, those that the stage is done with, in reading-units and dividing"`
	Holdout string            `json:"holdout,omitempty" doc:"the holdout that it has become"`
	Begun   time.Time         `json:"begun,omitzero"`
	Ended   time.Time         `json:"ended,omitzero"`

	Problem *Error `json:"-"` // why it failed
}

// SourceStatus is what is known of a source.
type SourceStatus struct {
	Name    string `json:"name" doc:"as the server's owner has named it"`
	Kind    string `json:"kind" doc:"clickhouse, trino or file"`
	Ready   bool   `json:"ready" doc:"whether it answers now"`
	Problem string `json:"problem,omitempty" doc:"why it does not"`
}

const (
	// maxRegistrations bounds those that wait or are worked on: each is a table, and there are not that many.
	maxRegistrations = 16
	// keptRegistrations is how many that have ended are remembered.
	keptRegistrations = 100
	// cancelWait is how long a cancellation waits for the end.
	cancelWait = 5 * time.Second
)

// registration is one that this server knows.
type registration struct {
	principal string // who has begun it
	key       string // Idempotency-Key, or ""
	request   [32]byte
	cancel    context.CancelFunc
	ended     chan struct{} // closed then
	entered   chan struct{} // has room for one: the stage is another one than when it was looked at

	mu        sync.Mutex
	now       Registration
	cancelled bool
	doubtful  bool // the ledger has not said whether it has the holdout
}

// registrations are those that this server knows.
type registrations struct {
	mu  sync.Mutex
	all []*registration // in the order in which they began
}

func newRegistration(now Registration) *registration {
	return &registration{ended: make(chan struct{}), entered: make(chan struct{}, 1), now: now}
}

func (r *registration) state() Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// enter begins a stage.
func (r *registration) enter(stage RegistrationStage, rows int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Stage, r.now.Rows, r.now.Done = stage, rows, 0
	select {
	case r.entered <- struct{}{}:
	default: // it is looked at anyway
	}
}

// progress says how many rows the stage is done with.
func (r *registration) progress(done int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Done = min(done, r.now.Rows)
}

// doubt notes that the ledger has not said whether it has the holdout. The next start of the server knows.
func (r *registration) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubtful = true
}

func (r *registration) unsure() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubtful
}

// end is the end of it.
func (r *registration) end(holdout string, problem *Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Ended, r.now.Done = time.Now().UTC().Truncate(time.Microsecond), 0
	switch {
	case problem == nil:
		r.now.Stage, r.now.Holdout = RegistrationDone, holdout
	case r.cancelled:
		r.now.Stage = RegistrationCancelled
	default:
		r.now.Stage, r.now.Problem = RegistrationFailed, problem
	}
	close(r.ended)
}

// find returns the registration with an id.
func (all *registrations) find(id string) *registration {
	all.mu.Lock()
	defer all.mu.Unlock()
	i := slices.IndexFunc(all.all, func(r *registration) bool { return r.state().ID == id })
	if i < 0 {
		return nil
	}
	return all.all[i]
}

// add takes one in, unless the same request is there already, which it returns then; one that has failed or was cancelled is begun anew. It forgets the oldest that have ended.
func (all *registrations) add(r *registration) (same *registration, err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	running, ended := 0, 0
	for _, other := range all.all {
		state := other.state()
		if r.key != "" && other.key == r.key && other.principal == r.principal && state.Stage != RegistrationFailed && state.Stage != RegistrationCancelled {
			if other.request != r.request {
				return nil, &Error{Kind: IdempotencyMismatch, Detail: "this Idempotency-Key was used for another request"}
			}
			return other, nil
		}
		if state.Stage.Ended() {
			ended++
		} else {
			running++
		}
	}
	if running >= maxRegistrations {
		return nil, &Error{Kind: Busy, RetryAfter: time.Minute, Detail: fmt.Sprintf("%d tables are being registered or wait for that; register this one when they are done", running)}
	}
	all.all = slices.DeleteFunc(all.all, func(other *registration) bool {
		gone := ended >= keptRegistrations && other.state().Stage.Ended()
		if gone {
			ended--
		}
		return gone
	})
	all.all = append(all.all, r)
	return nil, nil
}

// Register begins to make a holdout of a table where it is. What is wrong with the request is said at once; what is wrong with the table is the registration's Problem. Only admins may.
//
// The table is known by its rows: one that has a holdout already is refused, or its holdout replaced, as with Create. With an Idempotency-Key the same request again gives the same
// registration, or what became of it; one that has failed or was cancelled is begun anew. Another request with that key is refused.
func (s *Service) Register(ctx context.Context, p Principal, set Settings, source, table, idempotencyKey string) (now Registration, replayed bool, err error) {
	if err := admins(p); err != nil {
		return now, false, err
	}
	if s.lost {
		return now, false, s.ledgerError(ledger.ErrReplayOnly)
	}
	if err := s.checkServerKey(); err != nil {
		return now, false, err
	}
	from, err := s.source(source)
	if err != nil {
		return now, false, err
	}
	if table == "" {
		return now, false, invalid("table", "name the table of %s that is to be registered", source)
	}
	asked := set
	if set, err = set.withDefaults(s.naive); err != nil {
		return now, false, err
	}
	if err := set.checkSource(from); err != nil {
		return now, false, err
	}
	id := uuid.NewString()
	r := newRegistration(Registration{ID: registrationPrefix + id, Source: source, Table: table, Name: set.Name, Stage: RegistrationWaiting, Begun: time.Now().UTC().Truncate(time.Microsecond)})
	r.principal, r.key, r.request = p.KeyID, idempotencyKey, registerDigest(asked, source, table)
	c := &creation{service: s, principal: p, settings: set, id: holdoutPrefix + id, from: &CardSource{Name: source, Kind: from.Kind(), Table: table}}
	if idempotencyKey != "" {
		c.idem = &ledger.Idempotency{Principal: p.KeyID, Key: idempotencyKey, Request: r.request, Resource: c.id}
		known, ok, err := s.registered(ctx, c.idem)
		if ok || err != nil {
			return known, ok, err
		}
	}
	running, cancel := context.WithCancel(s.ending)
	r.cancel = cancel // before anybody finds it
	if same, err := s.registrations.add(r); same != nil || err != nil {
		cancel()
		if err != nil {
			return now, false, err
		}
		return same.state(), true, nil
	}
	c.ctx = running
	now = r.state()
	if s.shared {
		s.flights.Go(func() { s.follows(r) })
	}
	s.flights.Go(func() {
		defer cancel()
		s.register(c, r, from)
	})
	return now, false, nil
}

// Prefixes of ids. The registration of a holdout has its id but for this, so that it is found by the ledger, too.
const (
	holdoutPrefix      = "ho_"
	registrationPrefix = "re_"
)

// registerDigest identifies a registration for its Idempotency-Key.
func registerDigest(set Settings, source, table string) [32]byte {
	text, err := json.Marshal(struct {
		Settings      Settings
		Source, Table string
	}{set, source, table})
	if err != nil {
		panic(err) // checked numbers and texts
	}
	return sha256.Sum256(append([]byte("register\n"), text...))
}

// registered finds what a registration with this Idempotency-Key has made before, here or at another server.
func (s *Service) registered(ctx context.Context, i *ledger.Idempotency) (Registration, bool, error) {
	if err := s.checkKey(ctx, i); err != nil {
		return Registration{}, false, err
	}
	known, ok, err := s.ledger.Idempotency(ctx, i.Principal, i.Key)
	if err != nil || !ok {
		if err != nil {
			err = s.ledgerError(err)
		}
		return Registration{}, false, err
	}
	now, err := s.done(ctx, known.Resource)
	return now, err == nil, err
}

// done is what is known of the registration of a holdout that the ledger has.
func (s *Service) done(ctx context.Context, holdout string) (Registration, error) {
	h, err := s.ledger.Holdout(ctx, holdout)
	if err != nil {
		return Registration{}, s.ledgerError(err)
	}
	card := s.readCard(h)
	if card.Source == nil && !card.segmented() {
		return Registration{}, s.ledgerError(ledger.ErrNotFound)
	}
	now := Registration{ID: registrationPrefix + strings.TrimPrefix(holdout, holdoutPrefix), Name: card.Name, Stage: RegistrationDone, Holdout: holdout, Begun: h.Created, Ended: h.Created}
	if card.Source != nil {
		now.Source, now.Table = card.Source.Name, card.Source.Table
	}
	return now, nil
}

// Registration says how far a registration is. Of one that has become a holdout every server knows; of others the one where it was begun, and those that have the same directory of tables. Only admins may.
func (s *Service) Registration(ctx context.Context, p Principal, id string) (Registration, error) {
	if err := admins(p); err != nil {
		return Registration{}, err
	}
	if r := s.registrations.find(id); r != nil {
		return r.state(), nil
	}
	if rest, ok := strings.CutPrefix(id, registrationPrefix); ok {
		if now, err := s.done(ctx, holdoutPrefix+rest); err == nil || KindOf(err) != NotFound {
			return now, err
		}
	}
	if now, err := s.hearOf(id); err == nil {
		return now, nil
	}
	if s.shared {
		return Registration{}, fail(NotFound, "this server knows no such registration. It may be one of another server that has other directories of tables: ask that one. One that has failed is forgotten, and so is what a server worked on when it was stopped; nothing is left of these")
	}
	return Registration{}, fail(NotFound, "this server knows no such registration: it forgets one that has failed, and what it worked on when it was stopped; nothing is left of these. Register the table again")
}

// Registrations are those that this server works on or remembers, the newest first, and then those of other servers, as far as it hears of them. Only admins may.
func (s *Service) Registrations(_ context.Context, p Principal) ([]Registration, error) {
	if err := admins(p); err != nil {
		return nil, err
	}
	return append(s.registrations.newest(), s.heard()...), nil
}

// newest are all of them, the newest first.
func (all *registrations) newest() []Registration {
	all.mu.Lock()
	defer all.mu.Unlock()
	found := make([]Registration, 0, len(all.all))
	for _, r := range slices.Backward(all.all) {
		found = append(found, r.state())
	}
	return found
}

// CancelRegistration ends a registration, and waits a few seconds for the source to let go of it; what was made is dropped. One that has ended, or that the ledger is just recording, stays
// what it is or becomes. Only admins may.
func (s *Service) CancelRegistration(ctx context.Context, p Principal, id string) (Registration, error) {
	if err := admins(p); err != nil {
		return Registration{}, err
	}
	r := s.registrations.find(id)
	if r == nil {
		now, err := s.Registration(ctx, p, id)
		if err != nil {
			return now, err
		}
		return s.cancelElsewhere(ctx, now)
	}
	r.stop()
	select {
	case <-r.ended:
	case <-ctx.Done():
	case <-time.After(cancelWait):
	}
	return r.state(), nil
}

// Sources are the places whose tables can be registered, by name. Each is asked whether it answers. Only admins may.
func (s *Service) Sources(ctx context.Context, p Principal) ([]SourceStatus, error) {
	if err := admins(p); err != nil {
		return nil, err
	}
	all := make([]SourceStatus, 0, len(s.sources))
	var wait sync.WaitGroup
	for name, source := range s.sources {
		all = append(all, SourceStatus{Name: name, Kind: source.Kind()})
		status := &all[len(all)-1]
		wait.Go(func() {
			err := source.ready(ctx)
			if status.Ready = err == nil; err != nil {
				status.Problem = sourceDetail(err)
			}
		})
	}
	wait.Wait()
	slices.SortFunc(all, func(a, b SourceStatus) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// source finds a source by its name.
func (s *Service) source(name string) (*place, error) {
	if found := s.sources[name]; found != nil {
		return found, nil
	}
	names := slices.Sorted(maps.Keys(s.sources))
	if len(names) == 0 {
		return nil, invalid("source", "this server has no sources: start it with --source NAME=URL")
	}
	e := invalid("source", "this server has no source %q; it has %s", name, strings.Join(names, ", "))
	e.Meant = nearest.Name(name, names)
	return nil, e
}

// sourceDetail is what may be said of an error of a source. What the source itself has said is for the log.
func sourceDetail(err error) string {
	var theirs *sources.Error
	if errors.As(err, &theirs) {
		return theirs.Detail
	}
	return "the source failed; the server's log has what it said"
}
