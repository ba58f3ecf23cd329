package holdout

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// A witness is a second place, on another volume, that knows how far each holdout's chain has come: the same marks as beside the tables, written durably and
// soon. A data directory that was put back as a whole agrees with itself; it does not agree with its witness.

// witnessEvery bounds how far the witness lags behind the ledger: what was acknowledged longer ago than this and a write is in it.
const witnessEvery = time.Second

// witness writes marks behind the ledger's commits into a directory of its own.
type witness struct {
	dir   string
	marks *marker

	mu     sync.Mutex
	failed error // the last write
}

// openWitness makes the directory.
func openWitness(dir string) (*witness, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, privateMode); err != nil {
		return nil, fmt.Errorf("holdout: witness: %w", err)
	}
	if err := private(dir, 0o022, "can be written by others, who could make it agree with an old ledger", "chmod go-w"); err != nil {
		return nil, err
	}
	return &witness{dir: dir, marks: newMarker()}, nil
}

// committed takes note of a chain's new end. A nil witness does nothing.
func (w *witness) committed(id string, seq int64, head string) {
	if w != nil {
		w.marks.committed(id, seq, head)
	}
}

// write writes a mark durably, with the name of its directory.
func (w *witness) write(id string, m mark) error {
	dir := filepath.Join(w.dir, id)
	err := os.Mkdir(dir, privateMode)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("holdout: witness: %w", err)
	}
	if err := m.write(dir); err != nil {
		return fmt.Errorf("holdout: witness: %w", err)
	}
	if err = dataset.SyncDir(dir); err == nil && made {
		err = dataset.SyncDir(w.dir)
	}
	if err != nil {
		return fmt.Errorf("holdout: witness: %w", err)
	}
	return nil
}

// flushWitness writes what is due. What could not be written is due again.
func (s *Service) flushWitness(ctx context.Context) error {
	w := s.witness
	var wrong []error
	for id, place := range w.marks.take() {
		old, err := readMark(filepath.Join(w.dir, id))
		switch {
		case err == nil && old.Seq > place.Seq:
			continue // another server's, which knows more
		case err == nil:
			place.Digest, place.Table = old.Digest, old.Table
		case errors.Is(err, fs.ErrNotExist): // a new holdout
			var first mark
			first, err = s.firstMark(ctx, id)
			place.Digest, place.Table = first.Digest, first.Table
		}
		if err == nil {
			err = w.write(id, place)
		}
		if err != nil {
			wrong = append(wrong, err)
			w.marks.again(id, place)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = errors.Join(wrong...)
	return w.failed
}

// firstMark is the mark of a holdout that has none, without its place.
func (s *Service) firstMark(ctx context.Context, id string) (mark, error) {
	h, err := s.ledger.Holdout(ctx, id)
	if err != nil {
		return mark{}, err
	}
	m := mark{Digest: hex.EncodeToString(h.Digest[:])}
	table, err := s.tableOf(ctx, h)
	if err == nil && table != h.Digest {
		m.Table = hex.EncodeToString(table[:])
	}
	return m, err
}

// again takes note of a mark that could not be written, unless there is a newer one.
func (m *marker) again(id string, place mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if newer, ok := m.pending[id]; !ok || newer.Seq < place.Seq {
		m.pending[id] = mark{Seq: place.Seq, Head: place.Head}
	}
}

// ready is nil unless the last write failed: a witness that does not see is none.
func (w *witness) ready() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		return nil
	}
	return &Error{Kind: Unavailable, Err: w.failed, Detail: "the witness cannot be written; the log names the file. Questions are answered meanwhile, and an old copy that is put back would not be noticed"}
}

// attest writes what is due every now and then, until the service closes.
func (s *Service) attest() {
	defer close(s.attested)
	tick := time.NewTicker(witnessEvery)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		err := s.flushWitness(s.ending)
		if err != nil && !failing {
			s.log.Error("the witness cannot be written", "dir", s.witness.dir, "error", err)
		}
		if err == nil && failing {
			s.log.Info("the witness can be written again", "dir", s.witness.dir)
		}
		failing = err != nil
	}
}

// hearWitness compares the ledger with the witness when the service opens. A holdout that the witness knows and the ledger does not is a lost ledger, and its table stays refused where
// that was accepted. One whose chain is behind its mark, or another one, gives no new answers.
func (s *Service) hearWitness(ctx context.Context) error {
	if s.witness == nil {
		return nil
	}
	holdouts, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	known := map[string]bool{}
	for _, h := range holdouts {
		known[h.ID] = true
		if h.Deleted {
			continue
		}
		if err := s.hear(ctx, h); err != nil {
			return err
		}
	}
	seen, err := os.ReadDir(s.witness.dir)
	if err != nil {
		return fmt.Errorf("holdout: witness: %w", err)
	}
	var unknown []string
	for _, e := range seen {
		if known[e.Name()] || !e.IsDir() {
			continue
		}
		switch err := s.acceptLost(filepath.Join(s.witness.dir, e.Name())); {
		case errors.Is(err, errNotAccepted):
			unknown = append(unknown, e.Name())
		case err != nil:
			return fmt.Errorf("holdout: witness: %w", err)
		}
	}
	if len(unknown) > 0 {
		return s.ledgerLost(fmt.Sprintf("does not know the holdouts that the witness %s has seen: %s", s.witness.dir, strings.Join(unknown, ", ")), nil)
	}
	return nil
}

// hear compares one holdout.
func (s *Service) hear(ctx context.Context, h ledger.Holdout) error {
	m, err := readMark(filepath.Join(s.witness.dir, h.ID))
	if errors.Is(err, ledger.ErrVersion) {
		return err
	}
	books, booksErr := s.ledger.Books(ctx, h.ID)
	if booksErr != nil {
		return nil // it is damaged, and says so by itself
	}
	if err != nil { // a new witness, or a mark that is damaged
		s.log.Warn("the witness has not seen this holdout before", "holdout", h.ID, "error", err)
		place, err := s.firstMark(ctx, h.ID)
		if err != nil {
			return err
		}
		if place.Seq = books.Seq; place.Seq > 0 {
			place.Head = ledger.HeadText(books.Head)
		}
		return s.witness.write(h.ID, place)
	}
	if m.Seq > 0 {
		head, ok, err := s.ledger.HeadAt(ctx, h.ID, m.Seq)
		if err != nil {
			return err
		}
		if !ok || head != m.Head {
			s.behind(h.ID, fmt.Errorf("holdout: the witness has seen %s at seq %d with head %s, where the ledger has the head %q", h.ID, m.Seq, m.Head, head))
			return nil
		}
	}
	if books.Seq > m.Seq {
		s.witness.committed(h.ID, books.Seq, ledger.HeadText(books.Head))
	}
	return nil
}
