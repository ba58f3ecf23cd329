package holdout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/internal/machine"
	"github.com/holdoutd/holdoutd/internal/oidc"
	"github.com/holdoutd/holdoutd/internal/turns"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Options are what a Service is opened with.
type Options struct {
	Dir        string       // the data directory, made (0700) if it is not there
	AllowNaive bool         // accept the mechanism "naive"
	Logger     *slog.Logger // nil: no log
	Decoder    []string     // argv of the decoding child process, such as {self, "decode-parquet"}; or ingest.InProcess()
	Limits     Limits       // zero fields take those of DefaultLimits
	Version    string       // of the program, for the log

	Issuer *oidc.Issuer // whose tokens are taken beside keys; nil: nobody's

	Sources map[string]Source // of tables that are there already, and for held-out rows, by the names that uploads give

	AnswerTime AnswerTime // when replies to questions leave; default: AnswerSoon

	// AnyFileSystem opens a data directory on a file system that is known to lose what was made durable, or to keep no locks. Default: false, it is refused.
	AnyFileSystem bool

	Disk ledger.Disk // of the ledger; nil: the machine's. Tests simulate one

	// Ledger is the address of a ledger that several servers share, such as postgres://ROLE@HOST/DATABASE; all of them have the same Dir, on storage that they share. Default: the file DIR/ledger.db, for one server.
	Ledger string

	// Key is the server's key, where it is kept elsewhere; DIR/server.key is then neither made nor needed. Default: that file.
	Key *ServerKey

	// AcceptLostLedger opens a data directory whose ledger is lost, with a new one. Default: false, such a directory is refused.
	AcceptLostLedger bool
}

// LedgerDeadline is how long a request waits for a durable commit before it is told to come back. A healthy commit
// takes milliseconds; a client's own deadline is rarely below this.
const LedgerDeadline = 10 * time.Second

// Names in a data directory.
const (
	ledgerFile   = "ledger.db"
	holdoutsDir  = "holdouts"
	temporaryDir = "tmp"
)

// Service is the heart of the server: it keeps holdouts and answers questions. Its methods may be called from many
// goroutines.
type Service struct {
	dir       string
	disk      ledger.Disk
	naive     bool
	issuer    *oidc.Issuer
	log       *slog.Logger
	decoder   []string
	limits    Limits
	ledger    ledger.Ledger
	shared    ledger.Shared // the ledger, where several servers share it; else nil
	address   string        // Options.Ledger
	tenures   tenures
	watched   int          // tokens of other holdouts that an upload is compared with at a time; 0: as many as a Watch takes
	rights    sync.RWMutex // held while a key is revoked; read-held while an admin does what lasts
	lost      bool         // the server's key is lost: recorded answers replay, nothing new is given
	elsewhere bool         // the server's key is not in the data directory
	sign      []byte       // of the key, where it is elsewhere
	split     [32]byte
	digest    [32]byte
	lineage   lineageKeys
	tables    *shelf
	pace      *pace        // nil: replies leave when they are ready
	turns     *turns.Queue // of requests

	processors *turns.Queue // of passes over rows

	sources      map[string]*source
	folders      map[string]string       // of tables that are there already, by the names of their sources
	tableSources map[string]*tableSource // engines that tables are taken from

	quarantine quarantine
	deletions  deletions

	numbers    *keptNumbers // that came with queries
	models     keptModels
	references references
	rereadings rereadings
	news       news
	marks      *marker
	accept     bool                // a lost ledger
	lostTables map[[32]byte]string // digests of tables whose holdouts the ledger does not know, as their marks say

	restores    restores // from backups
	restoresErr error    // why they cannot be read

	clock     func() time.Time // of tests; nil: the machine's
	closing   chan struct{}    // closed by Close
	kept      chan struct{}    // closed when keep has ended
	closeOnce sync.Once

	leftMutex sync.Mutex
	leftovers []string // directories that could not be removed

	accounts *accounts
	ending   context.Context // ends when the service closes
	end      context.CancelFunc
	flights  sync.WaitGroup // that go on in the background
	landing  sync.Mutex     // of ended, and of what is added to flights: a group that is waited for must not grow
	ended    bool           // nothing goes on in the background any more

	creating     chan struct{} // full while an upload is decoded and split
	releasing    chan struct{} // full while a private release is made
	decodeMemory int64         // bytes of the process that decodes it
}

// Open opens a data directory, makes it on the first start (with DIR/server.key and DIR/admin.key), and removes what
// crashed uploads left. One process at a time can have a directory open, unless its ledger is one that servers share (Options.Ledger). If server.key is gone but the ledger is
// there, the service opens for replay only: what was answered can be read, and Ready says why nothing else can.
func Open(ctx context.Context, o Options) (*Service, error) {
	s := &Service{dir: o.Dir, disk: o.Disk, address: o.Ledger, naive: o.AllowNaive, issuer: o.Issuer, log: o.Logger, decoder: o.Decoder, limits: o.Limits.orDefault()}
	if err := s.limits.Check(); err != nil {
		return nil, err
	}
	s.turns = turns.New(s.limits.Questions, s.limits.Memory/requestShare)
	s.processors = turns.Processors(runtime.GOMAXPROCS(0))
	s.creating, s.releasing = make(chan struct{}, 1), make(chan struct{}, 1)
	s.decodeMemory = decodeMemory(machine.Memory(), s.limits.Memory)
	var err error
	if s.pace, err = newPace(o.AnswerTime); err != nil {
		return nil, err
	}
	s.marks, s.accept, s.lostTables = newMarker(), o.AcceptLostLedger, map[[32]byte]string{}
	s.closing, s.kept = make(chan struct{}), make(chan struct{})
	s.accounts = newAccounts()
	s.numbers = newKept[keptName, []float64](s.limits.Memory/keptShare, 0)
	s.models = newKeptModels(s.limits.Memory / keptShare)
	s.ending, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.checkDecodeMemory(); err != nil {
		s.log.Warn(err.(*Error).Detail)
	}
	switch against := unsafeFileSystem(s.dir); {
	case against == "":
	case o.AnyFileSystem:
		s.log.Warn(against)
	default:
		return nil, &Error{Kind: Unavailable, Detail: against + ". Put it on a disk of this machine; or, where you know that this file system keeps locks and what was synced, start with --any-filesystem"}
	}
	if err := s.checkRestoring(); err != nil {
		return nil, err
	}
	for _, dir := range []string{s.dir, s.path(holdoutsDir), s.path(lineageDir), s.path(revokedDir), s.path(temporaryDir)} {
		if err := os.MkdirAll(dir, privateMode); err != nil {
			return nil, fmt.Errorf("holdout: data directory: %w", err)
		}
	}
	if err := s.checkPrivate(); err != nil {
		return nil, err
	}
	if err := s.openSources(o.Sources); err != nil {
		return nil, err
	}
	s.readRestored()
	if err := s.openLedger(ctx, o.Key); err != nil {
		return nil, err
	}
	if err := s.signKey(); err != nil {
		return nil, errors.Join(err, s.ledger.Close())
	}
	s.tables = newShelf(s.limits.OpenTables, s.load)
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.ledger.Close())
	}
	s.endFirst()
	go s.keep()
	s.rereadings.all = make(chan struct{})
	s.background(s.rereadAll)
	s.log.Info("data directory open", "dir", s.dir, "version", o.Version)
	return s, nil
}

// openLedger opens the ledger with the server's key, or makes both on the first start.
func (s *Service) openLedger(ctx context.Context, key *ServerKey) error {
	must, err := s.expectLedger()
	if err != nil {
		return err
	}
	exists := s.ledgerExists(must)
	switch {
	case must && s.accept:
		must = false
	case must && !exists:
		return s.ledgerLost("is missing", nil)
	}
	if !must && !exists {
		if err := s.beginFirst(); err != nil {
			return err
		}
	}
	secret, lost, err := s.loadSecret(key, exists)
	if err != nil {
		return err
	}
	s.lost, s.elsewhere, s.sign = lost, key != nil, secret.signed()
	s.split, s.digest, s.lineage = secret.derive("split"), secret.derive("digest"), newLineageKeys(secret)
	options := ledger.Options{Disk: s.disk, Key: secret.derive("ledger"), ReplayOnly: lost, MustExist: must, Logger: s.log, Committed: s.marks.committed, Halted: s.marks.due}
	if s.address != "" {
		var opened ledger.Shared
		if opened, err = openShared(ctx, s.address, options); err == nil {
			s.ledger, s.shared, s.tenures.shared, s.tenures.look = opened, opened, opened, s.lookAtMark
		}
	} else {
		var opened *sqlite.Ledger
		if opened, err = sqlite.Open(ctx, s.path(ledgerFile), options); err == nil {
			s.ledger = opened
		}
	}
	switch {
	case errors.Is(err, ledger.ErrLost):
		return s.ledgerLost("is empty", err)
	case errors.Is(err, ledger.ErrWrongKey) && s.elsewhere:
		return fmt.Errorf("holdout: the key from elsewhere is not the one of this data directory: %w", err)
	case err != nil:
		return fmt.Errorf("holdout: %w", err)
	}
	return nil
}

// ledgerExists reports whether there is a ledger in the data directory. Of one at an address its own start says that; before it, a ledger is there where there must be one.
func (s *Service) ledgerExists(must bool) bool {
	if s.address != "" {
		return must
	}
	stat := os.Stat
	if s.disk != nil {
		stat = s.disk.Stat
	}
	_, err := stat(s.path(ledgerFile))
	return err == nil
}

// start does what needs the ledger's lock: the first key, and the removal of leftovers.
func (s *Service) start(ctx context.Context) error {
	if s.lost {
		mend := "restore it from a backup"
		if keptElsewhere(s.dir) {
			mend = "it is kept elsewhere: start with --key-command"
		}
		s.log.Error("server.key is missing: recorded answers can be read, nothing new can be given; "+mend, "dir", s.dir)
		return nil
	}
	if err := s.keepRevocations(ctx); err != nil {
		return err
	}
	if err := s.firstKey(ctx); err != nil {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	return s.inspect(ctx)
}

// Close waits for what is being answered, closes the ledger, unmaps the tables and writes the marks.
func (s *Service) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		<-s.kept
	})
	s.end()
	s.landing.Lock()
	s.ended = true
	s.landing.Unlock()
	s.flights.Wait()
	err := errors.Join(s.tables.close(), s.ledger.Close())
	s.writeMarks()
	return err
}

// background runs what an asker does not wait for any more; its context ends when the service closes. Where it is closing already run ends at once, here.
func (s *Service) background(run func(ctx context.Context)) {
	s.landing.Lock()
	ended := s.ended
	if !ended {
		s.flights.Go(func() { run(s.ending) })
	}
	s.landing.Unlock()
	if ended {
		run(s.ending)
	}
}

// Ready returns nil when a question could be answered and a table taken now: the ledger can commit, and files can be made.
func (s *Service) Ready(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if err := s.ledger.Ready(ctx); err != nil {
		return s.ledgerError(err)
	}
	return s.checkDirectories()
}

func (s *Service) path(elements ...string) string {
	return filepath.Join(append([]string{s.dir}, elements...)...)
}

// withDeadline bounds a wait for the ledger.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, LedgerDeadline)
}

// ledgerError says an error of the ledger in the service's words.
func (s *Service) ledgerError(err error) error {
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	e := &Error{Kind: Internal, Detail: "the ledger failed", Err: err}
	var exists *ledger.ExistsError
	switch {
	case errors.As(err, &exists):
		return existsError(exists.ID, reasonSame)
	case errors.Is(err, ledger.ErrReplayOnly):
		e.Kind, e.Detail = Unavailable, "the server's key is missing: recorded answers replay, new ones cannot be given"
	case errors.Is(err, ledger.ErrClosed):
		e.Kind, e.Detail = Unavailable, "the server is shutting down"
	case errors.Is(err, ledger.ErrTerm):
		e.Kind, e.Detail = Unavailable, "another server took this holdout over while the request was worked on; what was not recorded was not debited. Ask again: an answer that was recorded is replayed, at no cost"
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e.Kind, e.Detail = Unavailable, "the ledger cannot be written or read now; ask again: an answer that was recorded is replayed, at no cost"
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrDeleted):
		e.Kind, e.Detail = NotFound, "there is no such holdout"
	case errors.Is(err, ledger.ErrIdempotencyMismatch):
		e.Kind, e.Detail = IdempotencyMismatch, "this Idempotency-Key was used for another request"
	case errors.Is(err, ledger.ErrVersion):
		e.Kind, e.Detail = Damaged, otherFormat
	case errors.Is(err, ledger.ErrCorrupt):
		e.Kind, e.Detail = Damaged, "what the ledger has recorded contradicts itself; restore the data directory from a backup"
	case errors.Is(err, ledger.ErrInvalid):
		e.Kind, e.Detail = Invalid, "the ledger cannot record this request"
	}
	return e
}

// List returns the cards of all holdouts that are not deleted, oldest first, without budgets. One that is damaged is among
// them, with its state.
func (s *Service) List(ctx context.Context, p Principal) ([]Card, error) {
	holdouts, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	mine, err := s.grantedTo(ctx, p)
	if err != nil {
		return nil, err
	}
	cards := make([]Card, 0, len(holdouts))
	for _, h := range holdouts {
		if !h.Deleted && mine(h.ID) {
			cards = append(cards, s.show(h))
		}
	}
	link(cards)
	for i := range cards {
		cards[i].addUp(holdouts)
	}
	return cards, nil
}

// find returns a holdout that is not deleted.
func (s *Service) find(ctx context.Context, id string) (ledger.Holdout, Card, error) {
	h, err := s.ledger.Holdout(ctx, id)
	if err != nil {
		return h, Card{}, s.ledgerError(err)
	}
	if h.Deleted {
		return h, Card{}, s.gone(ctx, h)
	}
	return h, s.readCard(h), nil
}

// gone is the refusal of a deleted holdout. Of one that was created again with other settings it names the one that is there now.
func (s *Service) gone(ctx context.Context, h ledger.Holdout) error {
	id, _, ok, err := s.known(ctx, ledger.Successor(h.Digest, h.ID))
	if err != nil || !ok {
		return s.ledgerError(ledger.ErrDeleted)
	}
	if newer, err := s.ledger.Holdout(ctx, id); err != nil || newer.Deleted {
		return s.ledgerError(ledger.ErrDeleted)
	}
	return &Error{Kind: NotFound, Detail: "the table of this holdout was uploaded again with other settings: " + id + " has taken its place", Members: map[string]any{"holdout": id, "reason": reasonReplaced}}
}

// readCard reads a card from the ledger. Of a card that cannot be read what is known otherwise is left, and its holdout is
// quarantined, as is one that the ledger finds damaged.
func (s *Service) readCard(h ledger.Holdout) Card {
	card, _ := s.readCards(h)
	return card
}

// show is the card that may be shown: of a draft only what is public of every holdout.
func (s *Service) show(h ledger.Holdout) Card {
	card, early := s.readCards(h)
	card.sayMore()
	for _, w := range []*Warning{s.rereadWarning(h.ID), s.restores.warning(h.Created)} {
		if w != nil {
			card.Warnings = append(slices.Clone(card.Warnings), *w)
		}
	}
	if h.Draft {
		return card.sketch(early)
	}
	return card
}

func (s *Service) readCards(h ledger.Holdout) (Card, []Warning) {
	card, early, err := readCards(h.Public)
	if err == nil && card.ID != h.ID {
		err = fmt.Errorf("it is the card of %q", card.ID)
	}
	if err != nil {
		s.damaged(h.ID, true, fmt.Errorf("holdout: card of %s: %w", h.ID, err))
		card = Card{ID: h.ID, Name: h.ID, Created: h.Created, Columns: []ColumnCard{}, Skipped: []Skipped{}, Warnings: []Warning{}}
		card.Guarantee.Questions = h.Limits[thresholdout.MeterQuestions]
	}
	if h.Damage != nil {
		s.damaged(h.ID, true, h.Damage)
	}
	card.State, card.Closed, card.Retired, card.Succeeds = s.quarantine.state(h.ID), h.Closed, h.Retired, card.Settings.Succeeds
	return card, early
}

// Card returns the card of a holdout with its budget.
func (s *Service) Card(ctx context.Context, p Principal, id string) (Card, error) {
	r, err := s.rightTo(ctx, p, id)
	if err != nil {
		return Card{}, err
	}
	h, card, err := s.find(ctx, id)
	if err != nil {
		return card, err
	}
	budget, err := s.budgetFor(ctx, p, id, r, budgetOf(h, card))
	if err != nil {
		return card, err
	}
	card = s.show(h)
	card.Budget = &budget
	if h.Released.Made > 0 {
		all, err := s.ledger.Holdouts(ctx)
		if err != nil {
			return card, s.ledgerError(err)
		}
		card.addUp(all)
	}
	if card.Retired {
		card.SucceededBy, err = s.successors(ctx, p, id)
	}
	return card, err
}

// Budget returns what is left of a holdout or, to a key with a grant, of the grant.
func (s *Service) Budget(ctx context.Context, p Principal, id string) (Budget, error) {
	r, err := s.rightTo(ctx, p, id)
	if err != nil {
		return Budget{}, err
	}
	h, card, err := s.find(ctx, id)
	if err != nil {
		return Budget{}, err
	}
	return s.budgetFor(ctx, p, id, r, budgetOf(h, card))
}

// budgetOf is what is left of a holdout.
func budgetOf(h ledger.Holdout, card Card) Budget {
	guarantee := session.Session{Guarantee: card.Guarantee}
	b := guarantee.Budget(spent(h.Spent))
	b.Closed, b.Retired = h.Closed, h.Retired
	if card.Settings.Source != "" && !b.Closed && !b.Retired {
		b.Held = unanswered(h)
	}
	return b
}

// Export writes the hash-chained ledger of a holdout, also of a deleted one that was shown before. Only admins may.
func (s *Service) Export(ctx context.Context, p Principal, id string, w io.Writer) error {
	if err := admins(p); err != nil {
		return err
	}
	h, err := s.ledger.Holdout(ctx, id)
	switch {
	case err != nil:
		return s.ledgerError(err)
	case h.Deleted && h.Draft:
		return fail(NotFound, "this holdout was deleted or replaced as a draft: nothing was asked of it, and what its card says of rows was never shown. verify reads its chain in the data directory")
	}
	if err := s.settle(ctx, h); err != nil { // the export has the whole card
		return err
	}
	if err := s.ledger.Export(ctx, id, w); err != nil {
		return s.ledgerError(err)
	}
	return nil
}

// Delete removes a holdout's rows, key and state. Its ledger stays, and so does the digest by which the same table is
// refused, unless nothing of it was shown. Questions that are being answered are finished first. Only admins may.
func (s *Service) Delete(ctx context.Context, p Principal, id string) error {
	if err := admins(p); err != nil {
		return err
	}
	h, _, gone := s.find(ctx, id)
	if gone != nil && !h.Deleted {
		return gone
	}
	// Of one that is deleted already, too: who asks again may not know how the first time ended, and only a commit says that it lasts.
	err := s.endHoldout(ctx, id, func(ctx context.Context) error {
		err := s.ledger.DeleteHoldout(ctx, id, p.KeyID)
		if err == nil && gone == nil {
			s.log.Info("holdout deleted", "holdout", id, "by", p.KeyID)
		}
		return err
	})
	if err != nil {
		return s.ledgerError(err)
	}
	return gone
}

// endHoldout ends a holdout by a commit of the ledger. What is being asked of it is recorded first, and its files and what is known of it go with it, also
// where the ledger takes longer than the caller waits: what the ledger has ended answers nothing more.
func (s *Service) endHoldout(ctx context.Context, id string, commit func(context.Context) error) error {
	return s.grounded(ctx, id, func() {}, func(ctx context.Context, _ int64) error {
		err := commit(ctx)
		switch {
		case err == nil:
			s.accounts.forget(id)
			s.deletions.tell(id)
			if err := s.rememberUse(ctx, id); err != nil {
				s.log.Error("what a deleted holdout was used for cannot be kept: its files stay until the next start", "holdout", id, "error", err)
				s.tables.drop(id, func() {})
				return nil
			}
			s.clear(id)
		case errors.Is(err, ledger.ErrUnavailable): // it may be durable all the same: whoever asks next looks
			s.tables.drop(id, func() {})
		}
		return err
	})
}

// grounded runs a commit of the ledger while nothing of a holdout is in flight, here or at another server: what is being asked is recorded first, and who asks next looks at what the ledger has then, also where that
// takes longer than the caller waits. ended is called when the commit has ended, or does not begin.
func (s *Service) grounded(ctx context.Context, id string, ended func(), commit func(ctx context.Context, term int64) error) error {
	wait, cancel := withDeadline(ctx)
	defer cancel()
	account := s.accounts.of(id)
	term, leave, err := s.tenures.enter(wait, id) // what other servers are being asked is recorded first, too
	if err != nil {
		ended()
		return err
	}
	release, err := account.ground(wait)
	if err != nil {
		leave()
		ended()
		return err
	}
	early := context.AfterFunc(wait, account.holdUp)
	done := make(chan error, 1)
	s.background(func(ctx context.Context) {
		defer ended()
		defer leave()
		defer release()
		err := commit(ctx, term)
		if err == nil || errors.Is(err, ledger.ErrUnavailable) { // that may be durable all the same
			account.forget()
		}
		if !early() {
			account.recorded()
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-wait.Done():
		return fmt.Errorf("%w: outcome not known yet: %w", ledger.ErrUnavailable, wait.Err())
	}
}
