package holdout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/internal/turns"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Options are what a Service is opened with.
type Options struct {
	Dir        string       // the data directory, made (0700) if it is not there
	AllowNaive bool         // accept the mechanism "naive"
	Logger     *slog.Logger // nil: no log
	Decoder    []string     // argv of the decoding child process, such as {self, "decode-parquet"}
	Limits     Limits       // zero fields take those of DefaultLimits
	Version    string       // of the program, for the log

	// NameOf knows the names of principals that are no keys of this service; nil: nobody does. Names are for people, and nothing follows from them.
	NameOf func(id string) (name string, ok bool)

	AnswerTime AnswerTime // when replies to questions leave; default: AnswerSoon
	Tracer     Tracer     // is told how long stages take; nil: nobody is

	// OpenLedger opens the ledger. It may be open at other servers: nothing that it says is kept in memory, and nothing of which there can be one is
	// made but by it. nil: a ledger in the data directory, which this process has alone.
	OpenLedger func(ctx context.Context, o ledger.Options) (ledger.Ledger, error)
	// Tables is the directory of the holdouts' tables; default: holdouts in the data directory. Servers that share a ledger may share it.
	Tables string
	// ServerKey returns the server's key, as 64 hexadecimal digits. It is called again before something new is sealed. nil: the key is in the data
	// directory, and is made there at the first start, but for a shared ledger.
	ServerKey func() (text string, err error)
	// ReusedRows is what becomes of an upload with rows of an earlier holdout; default: ReusedRefuse.
	ReusedRows ReusedRows

	// Sources are the places whose tables holdouts can be made of where they are ([Service.Register]), by name. The service closes them when it is closed.
	Sources map[string]sources.Source

	// Witness is a directory on another volume that is told how far each holdout's chain has come, and that the ledger is compared with when the service opens; "": none.
	Witness string

	now         func() time.Time // in tests, the clock by which grants expire
	segmentRows int64            // in tests, of a segment of a large upload; 0: as sources/files has them

	// AcceptLostLedger opens a data directory whose ledger is lost, with a new one. Default: false, such a directory is refused.
	AcceptLostLedger bool
}

// LedgerDeadline is how long a request waits for a durable commit before it is told to come back. A healthy commit
// takes milliseconds; a client's own deadline is rarely below this.
const LedgerDeadline = 10 * time.Second

// Names in a data directory, of which backups know some.
const (
	LedgerFile   = "ledger.db"
	TemporaryDir = "tmp"

	ledgerFile   = LedgerFile
	holdoutsDir  = "holdouts"
	temporaryDir = TemporaryDir
)

// Service is the heart of the server: it keeps holdouts and answers questions. Its methods may be called from many
// goroutines.
type Service struct {
	places
	naive     bool
	log       *slog.Logger
	decoder   []string
	nameOf    func(id string) (name string, ok bool) // nil: nobody knows
	limits    Limits
	ledger    ledger.Ledger
	shared    bool // other servers may have the ledger open, too: what it says now counts, and nothing that is remembered of it
	lost      bool // the server's key is lost: recorded answers replay, nothing new is given
	split     [32]byte
	digest    [32]byte
	browsers  browsers // sessions of them
	serverKey func() (string, error)
	locked    *os.File // of the data directory of a replica
	reused    ReusedRows

	printing    [32]byte      // the key of prints
	printSealer ledger.Sealer // of their files

	tables *shelf
	pace   *pace        // nil: replies leave when they are ready
	turns  *turns.Queue // of requests

	processors *turns.Queue // of passes over rows

	quarantine quarantine
	tracer     Tracer // or nil
	counts     counts

	numbers    *keptNumbers // that came with queries
	references references
	news       news
	marks      *marker
	witness    *witness            // nil: none
	attested   chan struct{}       // closed when attest has ended, or is not run
	accept     bool                // a lost ledger
	lostTables map[[32]byte]string // digests of tables whose holdouts the ledger does not know, as their marks say

	closing   chan struct{} // closed by Close
	kept      chan struct{} // closed when keep has ended
	closeOnce sync.Once

	leftMutex sync.Mutex
	leftovers []string // directories that could not be removed

	now      func() time.Time // by which grants expire
	accounts *accounts
	ending   context.Context // ends when the service closes
	end      context.CancelFunc
	flights  sync.WaitGroup // that go on in the background

	creating chan struct{} // full while an upload is decoded and split

	sources       map[string]*place
	registrations registrations
	registering   chan struct{} // full while a table of a source is divided
	segmentRows   int64         // of a large upload; 0: as sources/files has them
	tagCut        int           // in tests, bits that are left away of tags of units
	exporting     chan struct{} // full while a piece of a part of a source is put together
}

// Open opens a data directory, makes it on the first start (with DIR/server.key and DIR/admin.key), and removes what
// crashed uploads left. One process at a time can have a directory open; several can share a ledger, each with a directory of its own. If server.key is gone but the ledger is
// there, the service opens for replay only: what was answered can be read, and Ready says why nothing else can.
func Open(ctx context.Context, o Options) (*Service, error) {
	s := &Service{places: placesOf(o), shared: o.OpenLedger != nil, serverKey: o.ServerKey, naive: o.AllowNaive, log: o.Logger, decoder: o.Decoder, nameOf: o.NameOf, limits: o.Limits.orDefault(), tracer: o.Tracer, segmentRows: o.segmentRows}
	if err := s.limits.Check(); err != nil {
		return nil, err
	}
	if s.reused = ReusedRefuse; o.ReusedRows != "" {
		s.reused = o.ReusedRows
	}
	if err := s.reused.Check(); err != nil {
		return nil, err
	}
	s.turns = turns.New(s.limits.Questions, s.limits.Memory/requestShare)
	s.processors = turns.Processors(runtime.GOMAXPROCS(0))
	s.creating, s.registering, s.exporting = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	s.sources = map[string]*place{}
	for name, source := range o.Sources {
		s.sources[name] = &place{Source: source, name: name}
	}
	var err error
	if s.pace, err = newPace(o.AnswerTime); err != nil {
		return nil, err
	}
	s.marks, s.accept, s.lostTables = newMarker(), o.AcceptLostLedger, map[[32]byte]string{}
	s.closing, s.kept = make(chan struct{}), make(chan struct{})
	s.accounts = newAccounts()
	if s.now = o.now; s.now == nil {
		s.now = time.Now
	}
	s.numbers = newKeptNumbers(s.limits.Memory / keptShare)
	s.ending, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, dir := range s.all() {
		if err := os.MkdirAll(dir, privateMode); err != nil {
			return nil, fmt.Errorf("holdout: data directory: %w", err)
		}
	}
	if err := s.checkPrivate(); err != nil {
		return nil, err
	}
	if s.witness, err = openWitness(o.Witness); err != nil {
		return nil, err
	}
	open := s.openLedger
	if s.shared {
		open = func(ctx context.Context) error { return s.openShared(ctx, o) }
	}
	if err := open(ctx); err != nil {
		return nil, errors.Join(err, s.unlock())
	}
	s.tables = newShelf(s.limits.OpenTables, s.load)
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.ledger.Close(), s.unlock())
	}
	s.endFirst()
	s.background(s.dropAllNoted)
	go s.keep()
	if s.attested = make(chan struct{}); s.witness != nil {
		go s.attest()
	} else {
		close(s.attested)
	}
	if s.shared {
		s.background(s.follow)
	}
	s.log.Info("data directory open", "dir", s.dir, "tables", s.places.tables, "shared_ledger", s.shared, "version", o.Version)
	return s, nil
}

// openLedger opens the ledger with the server's key, or makes both on the first start.
func (s *Service) openLedger(ctx context.Context) error {
	must, err := s.expectLedger()
	if err != nil {
		return err
	}
	path := s.path(ledgerFile)
	_, err = os.Stat(path)
	exists := err == nil
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
	var secret serverSecret
	lost := false
	if s.serverKey != nil {
		secret, err = s.givenSecret()
	} else {
		secret, lost, err = loadServerSecret(s.dir, exists)
	}
	if err != nil {
		return err
	}
	s.lost = lost
	s.split, s.digest = secret.derive("split"), secret.derive("digest")
	s.printing, s.printSealer = secret.derive("prints"), ledger.Sealer{Key: secret.derive("prints file")}
	s.browsers.sealer.Key = secret.derive("sessions")
	if lost {
		rand.Read(s.browsers.sealer.Key[:]) // sessions of this process alone
	}
	opened, err := sqlite.Open(ctx, path, ledger.Options{Key: secret.derive("ledger"), ReplayOnly: lost, MustExist: must, Logger: s.log, Committed: s.committed, Now: s.now})
	switch {
	case errors.Is(err, ledger.ErrLost):
		return s.ledgerLost("is empty", err)
	case err != nil:
		return fmt.Errorf("holdout: %w", err)
	}
	s.ledger = countedLedger{opened, s}
	return nil
}

// committed hears from the ledger where a chain ends.
func (s *Service) committed(id string, seq int64, head string) {
	s.marks.committed(id, seq, head)
	s.witness.committed(id, seq, head)
}

// start does what needs the ledger's lock: the first key, and the removal of leftovers.
func (s *Service) start(ctx context.Context) error {
	if s.lost {
		s.log.Error("server.key is missing: recorded answers can be read, nothing new can be given; restore it from a backup", "dir", s.dir)
		return nil
	}
	if err := s.firstKey(ctx); err != nil {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	if err := s.hearWitness(ctx); err != nil {
		return err
	}
	return s.inspect(ctx)
}

// Close waits for what is being answered, closes the ledger, unmaps the tables and writes the marks.
func (s *Service) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		<-s.kept
		<-s.attested
	})
	s.end()
	s.flights.Wait()
	err := s.tables.close()
	for _, source := range s.sources {
		err = errors.Join(err, source.Close())
	}
	if s.witness != nil {
		err = errors.Join(err, s.flushWitness(context.Background()))
	}
	err = errors.Join(err, s.ledger.Close())
	s.writeMarks()
	return errors.Join(err, s.unlock())
}

// unlock lets another process have the data directory.
func (s *Service) unlock() error {
	if s.locked == nil {
		return nil
	}
	f := s.locked
	s.locked = nil
	return f.Close()
}

// background runs what an asker does not wait for any more; its context ends when the service closes.
func (s *Service) background(run func(ctx context.Context)) {
	s.flights.Go(func() { run(s.ending) })
}

// Ready returns nil when a question could be answered and a table taken now: the ledger can commit, and files can be made.
func (s *Service) Ready(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if err := s.ledger.Ready(ctx); err != nil {
		return s.ledgerError(err)
	}
	if err := s.witness.ready(); err != nil {
		return err
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
	case errors.Is(err, ledger.ErrGrant):
		return s.grantError(err)
	case errors.Is(err, ledger.ErrReplayOnly):
		e.Kind, e.Detail = Unavailable, "the server's key is missing: recorded answers replay, new ones cannot be given"
	case errors.Is(err, ledger.ErrClosed):
		e.Kind, e.Detail = Unavailable, "the server is shutting down"
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e.Kind, e.Detail = Unavailable, "the ledger cannot be written or read now; ask again: an answer that was recorded is replayed, at no cost"
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrDeleted):
		e.Kind, e.Detail = NotFound, "there is no such holdout"
	case errors.Is(err, ledger.ErrEnded):
		e.Kind, e.Detail = Conflict, "the questions of this holdout were ended; what was answered is still replayed"
	case errors.Is(err, ledger.ErrIdempotencyMismatch):
		e.Kind, e.Detail = IdempotencyMismatch, "this Idempotency-Key was used for another request"
	case errors.Is(err, ledger.ErrRestored):
		e.Kind, e.Detail = RolledBack, "this holdout was restored from a backup, and nobody has said yet what was asked of it since"
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
	sees, err := s.sees(ctx, p)
	if err != nil {
		return nil, err
	}
	cards := make([]Card, 0, len(holdouts))
	for _, h := range holdouts {
		if !h.Deleted && sees(h.ID) {
			cards = append(cards, s.show(h).shownTo(p, sees))
		}
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
	if card.State = s.quarantine.state(h.ID); card.State == "" && h.Restored && !h.Deleted {
		card.State = StateRestored
	}
	card.Ended = string(h.End)
	return card, early
}

// Card returns the card of a holdout with its budget.
func (s *Service) Card(ctx context.Context, p Principal, id string) (Card, error) {
	may, err := s.access(ctx, p, id)
	if err != nil {
		return Card{}, err
	}
	h, card, err := s.find(ctx, id)
	if err != nil {
		return card, err
	}
	budget, err := s.budgetOf(ctx, may, h, card)
	if err != nil {
		return card, err
	}
	sees, err := s.sees(ctx, p)
	if err != nil {
		return Card{}, err
	}
	card = s.show(h)
	card.Budget = &budget
	if h.End != "" {
		if card.FollowedBy, err = s.followers(ctx, id); err != nil {
			return Card{}, err
		}
	}
	return card.shownTo(p, sees), nil
}

// Budget returns what the asker can spend of a holdout: of its grant, or of what is not granted.
func (s *Service) Budget(ctx context.Context, p Principal, id string) (Budget, error) {
	may, err := s.access(ctx, p, id)
	if err != nil {
		return Budget{}, err
	}
	return s.budget(ctx, may, id)
}

func (s *Service) budget(ctx context.Context, may access, id string) (Budget, error) {
	h, card, err := s.find(ctx, id)
	if err != nil {
		return Budget{}, err
	}
	return s.budgetOf(ctx, may, h, card)
}

// budgetOf is what the asker can spend of a holdout, as a reader of the ledger is told. No later reply says that it is more.
func (s *Service) budgetOf(ctx context.Context, may access, h ledger.Holdout, card Card) (Budget, error) {
	guarantee, state := session.Session{Guarantee: card.Guarantee}, spent(h.Spent)
	s.accounts.of(h.ID).show(state.Questions)
	whole := guarantee.Budget(state)
	rest := whole
	if h.Held != nil {
		rest = whole.Narrowed(h.Limits, h.Free())
		rest.Granted = h.Held[thresholdout.MeterQuestions]
	}
	return s.grantBudget(ctx, may, whole, rest)
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
	h, _, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	s.earlyPrints(ctx, h)
	wait, cancel := withDeadline(ctx)
	defer cancel()
	account := s.accounts.of(id)
	release, err := account.ground(wait)
	if err != nil {
		return err
	}
	defer release()
	if err := s.ledger.DeleteHoldout(wait, id, p.KeyID); err != nil {
		return s.ledgerError(err)
	}
	account.forget()
	s.accounts.forget(id)
	s.clear(ctx, id)
	s.log.Info("holdout deleted", "holdout", id, "by", p.KeyID)
	return nil
}
