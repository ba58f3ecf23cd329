package holdout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"syscall"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
	"github.com/holdoutd/holdoutd/rowfn"
)

// A holdout whose files or whose place in the ledger are not what they were is quarantined: it is listed with a state, it
// gives no new answer, and what it has answered is replayed from the ledger, which needs no rows. All others go on.

// What a card's State says of a holdout that gives no new answers.
const (
	StateDamaged    = "damaged"     // its files, or its place in the ledger, are not what was written
	StateRolledBack = "rolled-back" // the ledger is older than the answers that were given, or may be: it was restored
)

// quarantine knows why holdouts give no new answers.
type quarantine struct {
	mu      sync.Mutex
	reasons map[string]reason // by holdout
}

// reason is why a holdout is in quarantine.
type reason struct {
	err     *Error
	forGood bool // until the next start: nothing that can be put back while the server runs would mend it
}

// put quarantines a holdout. A reason that is for good stays.
func (q *quarantine) put(id string, err *Error, forGood bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reasons == nil {
		q.reasons = map[string]reason{}
	}
	if !q.reasons[id].forGood {
		q.reasons[id] = reason{err, forGood}
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
	}
	return StateDamaged
}

// otherFormat is what is said where a version is not known.
const otherFormat = "this holdout was written in a format that this server does not know; start the holdoutd that wrote it, or a newer one"

// damaged quarantines a holdout and says so. What exactly is wrong is for the log: it can name values.
func (s *Service) damaged(id string, forGood bool, cause error) *Error {
	what := "the files of this holdout are damaged or missing; restore holdouts/" + id + " from a backup"
	if errors.Is(cause, &remote.Error{Kind: remote.Changed}) {
		what = "the table of this holdout in its source is not the one that was written: rows are missing, or changed, or the engine computes otherwise. Restore that table there"
	}
	if forGood {
		what = "this holdout's place in the ledger is damaged; restore the data directory from a backup"
	}
	if errors.Is(cause, ledger.ErrVersion) || errors.Is(cause, dataset.ErrVersion) {
		what = otherFormat
	}
	e := &Error{Kind: Damaged, Detail: what + ". Recorded answers still replay", Err: cause, Members: map[string]any{"holdout": id}}
	if known, _ := s.quarantine.of(id); known == nil {
		s.log.Error("a holdout is damaged: it gives no new answers", "holdout", id, "error", cause)
	}
	s.quarantine.put(id, e, forGood)
	return e
}

// loadError is what is said of a holdout whose files cannot be opened. A machine that is short of something for a moment is no
// damage.
func (s *Service) loadError(id string, err error) error {
	if KindOf(err) == Unavailable { // a source that cannot be asked now
		return err
	}
	for _, short := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
		if errors.Is(err, short) {
			return &Error{Kind: Unavailable, Detail: "the server is short of memory or open files; ask again", Err: err}
		}
	}
	return s.damaged(id, false, err)
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
		if card.State != "" {
			continue
		}
		found, err := fingerprints(s.path(holdoutsDir, h.ID))
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
	s.holdRestored(holdouts)
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

// recorded answers from the ledger alone where a holdout gives no new answers. A query without an answer gets the reason.
func (s *Service) recorded(ctx context.Context, id string, items, distinct []*question, key *ledger.Idempotency, why error) (b BatchAnswer, err error) {
	if kind := KindOf(why); kind != Damaged && kind != RolledBack && !errors.Is(why, ledger.ErrReplayOnly) {
		return b, why
	}
	budget, err := s.Budget(ctx, Principal{}, id)
	if err != nil {
		return b, err
	}
	earlier, err := s.outcomeOf(ctx, key)
	if err == nil {
		err = earlier.settle(distinct)
	}
	if err != nil {
		return b, s.ledgerError(err)
	}
	for _, q := range distinct {
		if q.settled {
			continue
		}
		body, ok, err := s.ledger.Answer(ctx, id, q.id)
		if err != nil {
			return b, s.ledgerError(err)
		}
		switch {
		case !ok && q.void:
			return b, voidAgain()
		case !ok:
			return b, why
		}
		q.body, q.replayed = body, true // what of it the reader is shown is decided at the end of the request
	}
	_, card, err := s.find(ctx, id)
	if err != nil {
		return b, err
	}
	b = reply(items, budget, card.Unit)
	if earlier != nil && earlier.Complete {
		b.Warnings, b.Repeated = earlier.Warnings, true
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
