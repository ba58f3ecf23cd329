package holdout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/machine"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// A holdout whose files or whose place in the ledger are not what they were is quarantined: it is listed with a state, it
// gives no new answer, and what it has answered is replayed from the ledger, which needs no rows. All others go on.

// What a card's State says of a holdout that gives no new answers.
const (
	StateDamaged    = "damaged"     // its files, or its place in the ledger, are not what was written
	StateChanged    = "changed"     // its rows, where a source keeps them, are not what was registered
	StateRolledBack = "rolled-back" // the ledger is older than the answers that were given
	StateRestored   = "restored"    // the ledger came from a backup, and nobody has said yet what was asked since
)

// States are all that a card's State can be, but for "".
func States() []string { return []string{StateDamaged, StateChanged, StateRolledBack, StateRestored} }

// quarantine knows why holdouts give no new answers.
type quarantine struct {
	mu      sync.Mutex
	reasons map[string]reason // by holdout
}

// reason is why a holdout is in quarantine.
type reason struct {
	err     *Error
	forGood bool      // until the next start: nothing that can be put back while the server runs would mend it
	looked  time.Time // when that was found
}

// put quarantines a holdout. A reason that is for good stays.
func (q *quarantine) put(id string, err *Error, forGood bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reasons == nil {
		q.reasons = map[string]reason{}
	}
	if !q.reasons[id].forGood {
		q.reasons[id] = reason{err, forGood, time.Now()}
	}
}

// clear ends a quarantine that is not for good: the files are whole again.
func (q *quarantine) clear(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.reasons[id].forGood {
		delete(q.reasons, id)
	}
}

// of returns why a holdout is in quarantine, or nil.
func (q *quarantine) of(id string) (err *Error, forGood bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.reasons[id]
	return r.err, r.forGood
}

// state is what the card says.
func (q *quarantine) state(id string) string {
	err, _ := q.of(id)
	switch {
	case err == nil:
		return ""
	case err.Kind == RolledBack:
		return StateRolledBack
	case isChanged(err):
		return StateChanged
	}
	return StateDamaged
}

// otherFormat is what is said where a version is not known.
const otherFormat = "this holdout was written in a format that this server does not know; start the holdoutd that wrote it, or a newer one"

// damaged quarantines a holdout and says so. What exactly is wrong is for the log: it can name values.
func (s *Service) damaged(id string, forGood bool, cause error) *Error {
	what := "the files of this holdout are damaged or missing; restore holdouts/" + id + " from a backup"
	if forGood {
		what = "this holdout's place in the ledger is damaged; restore the data directory from a backup"
	}
	switch {
	case errors.Is(cause, ledger.ErrVersion) || errors.Is(cause, dataset.ErrVersion):
		what = otherFormat
	case isChanged(cause):
		what = "the rows of this holdout are not those that were registered: somebody has changed the table in which its source keeps them. Its owner must put them back; they are compared again, whole, when a question comes a minute later or more"
	}
	e := &Error{Kind: Damaged, Detail: what + ". Recorded answers still replay", Err: cause, Members: map[string]any{"holdout": id}}
	if known, _ := s.quarantine.of(id); known == nil {
		s.log.Error("a holdout is damaged: it gives no new answers", "holdout", id, "error", cause)
	}
	s.quarantine.put(id, e, forGood)
	return e
}

// checkEvery is how often rows that a source has changed are looked at again at most: each time all of them are read.
const checkEvery = time.Minute

// checkAgain reads all rows of a holdout that a source has changed, or whose segments were damaged, before new questions are taken: opening its parts does not.
func (s *Service) checkAgain(ctx context.Context, h *opened, known *Error) error {
	if !s.quarantine.due(h.id) {
		return known
	}
	err, card := h.open(ctx, s.holdoutPath(h.id)), &h.card
	for _, p := range []part{h.training, h.check, h.held} {
		if p, ok := p.(*sourcedPart); ok && err == nil {
			if err = p.Part.Check(ctx); card.segmented() {
				err = ownError(err)
			}
		}
	}
	err = errors.Join(err, h.close())
	h.training, h.check, h.held = nil, nil, nil
	if err != nil {
		return s.loadError(h.id, err)
	}
	s.log.Info("the rows of a holdout are what they were again", "holdout", h.id)
	return nil
}

// due reports whether it is time to look at a holdout in quarantine again, which is then done.
func (q *quarantine) due(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.reasons[id]
	if time.Since(r.looked) < checkEvery {
		return false
	}
	r.looked = time.Now()
	q.reasons[id] = r
	return true
}

// loadError is what is said of a holdout whose files cannot be opened. A machine that is short of something for a moment is no
// damage.
func (s *Service) loadError(id string, err error) error {
	if machine.Short(err) {
		return &Error{Kind: Unavailable, Detail: "the server is short of memory or open files; ask again", Err: err}
	}
	var theirs *sources.Error
	if s.shared && errors.Is(err, fs.ErrNotExist) {
		if errors.As(err, &theirs) {
			return s.noParts(id, err)
		}
		return s.noTables(id, err)
	}
	if errors.As(err, &theirs) && theirs.Kind != sources.Changed || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return sourceAway(id, err)
	}
	return s.damaged(id, false, err)
}

// incomplete reports whether tables are missing, and those that are there are the right ones: they are being copied, or were not yet.
func incomplete(found, parts map[string]string) bool {
	for part, fingerprint := range found {
		if parts[part] != fingerprint {
			return false
		}
	}
	return len(found) < len(parts)
}

// inspect looks at every holdout when the service opens: at its row in the ledger, and at the fingerprints of its tables. Their
// rows are compared with their checksums when they are opened.
func (s *Service) inspect(ctx context.Context) error {
	holdouts, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	for _, h := range holdouts {
		if h.Deleted {
			continue
		}
		card := s.readCard(h)
		if card.State != "" && card.State != StateRestored {
			continue
		}
		found, err := fingerprints(s.holdoutPath(h.ID))
		if s.shared && err == nil && incomplete(found, card.Parts) {
			s.noTables(h.ID, fs.ErrNotExist)
			continue
		}
		if err == nil && !maps.Equal(found, card.Parts) {
			err = fmt.Errorf("holdout: the tables of %s have the fingerprints %v, the card says %v", h.ID, found, card.Parts)
		}
		if err == nil {
			err = s.checkMark(ctx, h)
		}
		if err != nil {
			s.damaged(h.ID, errors.Is(err, ledger.ErrVersion), err)
		}
	}
	return nil
}

// watched is a part of a holdout. A scan that finds the files damaged quarantines the holdout.
type watched struct {
	engine.MomentSource
	found func(error) *Error
}

// Sums implements engine.Source.
func (w watched) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	sums, err := w.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

// Moments implements engine.MomentSource.
func (w watched) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	sums, err := w.MomentSource.Moments(ctx, batch, from, to)
	if errors.Is(err, dataset.ErrDamaged) {
		return rowfn.Sums{}, w.found(err)
	}
	return sums, err
}

// faulted quarantines a holdout whose mapped files could not be read, and takes it off the shelf: whoever asks next
// opens it again, and so compares all checksums.
func (s *Service) faulted(id string) func(error) *Error {
	return func(err error) *Error {
		e := s.damaged(id, false, err)
		s.tables.drop(id, func() {})
		return e
	}
}

// restored is the refusal of a holdout that came from a backup.
func restored(id string) *Error {
	return &Error{Kind: RolledBack, Members: map[string]any{"holdout": id}, Err: ledger.ErrRestored,
		Detail: "this holdout was restored from a backup, and nobody has said yet what was asked of it since the backup was made: holdoutd confirm does. Recorded answers still replay"}
}

// recorded answers from the ledger alone where a holdout gives no new answers. A query without an answer gets the reason.
func (s *Service) recorded(ctx context.Context, may access, id string, items []*question, why error) (b BatchAnswer, err error) {
	if kind := KindOf(why); kind != Damaged && kind != RolledBack && !errors.Is(why, ledger.ErrReplayOnly) && !errors.Is(why, errNoTables) {
		return b, why
	}
	if b.Budget, err = s.budget(ctx, may, id); err != nil {
		return b, err
	}
	for _, q := range items {
		body, ok, err := s.ledger.Answer(ctx, id, q.id)
		if err != nil {
			return BatchAnswer{}, s.ledgerError(err)
		}
		if !ok {
			return BatchAnswer{}, why
		}
		b.Answers = append(b.Answers, BatchItem{Body: body, Replayed: true})
	}
	return b, nil
}

// checkFingerprint compares an open table with what the card says of the part.
func (c *Card) checkFingerprint(part string, t *dataset.Table) error {
	got := fingerprintText(t.Fingerprint())
	if want := c.Parts[part]; want != got {
		return fmt.Errorf("the part %s is not this holdout's: its fingerprint is %s, the card says %s", part, got, want)
	}
	return nil
}
