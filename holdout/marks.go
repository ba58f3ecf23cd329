package holdout

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// A mark is a small file beside a holdout's tables that says how far its chain has come and which table it was made of. The
// ledger is what counts; the mark shows that a ledger is older than it was, or another one. It is written now and then, so
// that it costs no answer anything, and never before what it says is durable.

const (
	markFile = "spent"
	// releasedFile is the mark of a retirement: a file of its own, which never changes, because of two servers the slower may put an older mark in the place of a newer one.
	releasedFile = "released"
	// releaseMark is the mark of the newest private release: a file of its own, which is written before that is shown, by one server at a time.
	releaseMark = "epsilon"
	// maxMarkBytes is more than a mark has.
	maxMarkBytes = 4096
	// markEvery is how many entries a mark may lag behind the ledger.
	markEvery = 100
)

// markAfter is how long a mark may lag behind the ledger. A test that must not see it change a mark makes it longer.
var markAfter = time.Minute

// mark is the contents of the file.
type mark struct {
	Version int    `json:"version"`
	Seq     int64  `json:"seq"`            // of the newest entry of the chain
	Head    string `json:"head,omitempty"` // of that entry; empty at creation
	Digest  string `json:"digest"`         // the keyed digest that the ledger knows the holdout by, in hexadecimal
	// Table is the keyed digest of the table, where the holdout replaced another one of the same table; elsewhere it is Digest. Version 2 has it.
	Table string `json:"table,omitempty"`
}

// write puts a mark into a holdout's directory: whole or not at all.
func (m mark) write(dir, name string) error {
	m.Version = 1
	if m.Table != "" {
		m.Version = markVersion
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return replaceFile(dir, name, text)
}

// replaceFile gives a line of text the name of a file in dir: whole or not at all. Its bytes are durable, and not yet its name.
func replaceFile(dir, name string, text []byte) error {
	f, err := os.CreateTemp(dir, "."+name+"-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // not there any more once it has its name
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

// readMark reads the newest mark of a holdout's directory. One without a mark is fs.ErrNotExist.
func readMark(dir string) (mark, error) {
	m, err := readMarkFile(dir, markFile)
	if err != nil {
		return m, err
	}
	for _, name := range []string{releasedFile, releaseMark} {
		switch other, err := readMarkFile(dir, name); {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return m, err
		case other.Seq > m.Seq:
			m.Seq, m.Head = other.Seq, other.Head
		}
	}
	return m, nil
}

func readMarkFile(dir, name string) (m mark, err error) {
	f, err := dataset.OpenRegular(filepath.Join(dir, name))
	if err != nil {
		return m, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMarkBytes))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil {
		if m.Version == 1 && m.Table == "" {
			return m, nil
		}
		err = known("the mark "+filepath.Join(dir, name), m.Version, markVersion)
	}
	return m, err
}

// marker writes marks behind the ledger's commits.
type marker struct {
	mu      sync.Mutex
	pending map[string]mark  // newest place of each holdout whose mark is older; without digests
	written map[string]int64 // seq of the marks

	wake chan struct{} // a mark is due
}

func newMarker() *marker {
	return &marker{pending: map[string]mark{}, written: map[string]int64{}, wake: make(chan struct{}, 1)}
}

// committed takes note of a chain's new end. It is called by the ledger's writer and waits for nobody.
func (m *marker) committed(id string, seq int64, head string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending[id] = mark{Seq: seq, Head: head}
	if seq-m.written[id] >= markEvery {
		m.due()
	}
}

// due has the marks written now: also where the ledger commits nothing any more, so that what it loses is noticed at the next start.
func (m *marker) due() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// knows is the newest entry of a holdout that this server has committed, or has seen a mark of that the ledger agreed with.
func (m *marker) knows(id string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.pending[id].Seq, m.written[id])
}

// take returns the marks that are to be written.
func (m *marker) take() map[string]mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	due := m.pending
	m.pending = map[string]mark{}
	for id, place := range due {
		m.written[id] = place.Seq
	}
	return due
}

// writeMarks writes what is due.
func (s *Service) writeMarks() {
	for id, place := range s.marks.take() {
		dir := s.path(holdoutsDir, id)
		old, err := readMark(dir)
		if err == nil && old.Seq < place.Seq { // another server may have written a newer one
			place.Digest, place.Table = old.Digest, old.Table
			err = place.write(dir, markFile)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // deleted meanwhile, or damaged
			s.log.Error("writing the mark of a holdout", "holdout", id, "error", err)
		}
	}
}

// keep does what is due now and then, until the service closes.
func (s *Service) keep() {
	defer close(s.kept)
	tick := time.NewTicker(markAfter)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
			s.clearLeftovers()
		case <-s.marks.wake:
		}
		s.writeMarks()
	}
}

// checkMark compares a holdout's mark with the ledger when the service opens.
func (s *Service) checkMark(ctx context.Context, h ledger.Holdout) error {
	dir, digest := s.path(holdoutsDir, h.ID), hex.EncodeToString(h.Digest[:])
	m, err := readMark(dir)
	if errors.Is(err, ledger.ErrVersion) {
		return err
	}
	if err != nil { // it was written before the ledger knew the holdout
		e := &Error{Kind: Damaged, Members: map[string]any{"holdout": h.ID}, Err: fmt.Errorf("holdout: the mark of %s: %w", h.ID, err),
			Detail: "the mark of this holdout (holdouts/" + h.ID + "/" + markFile + ") is missing or damaged, so that an older ledger would not be noticed; put it back from any backup, beside the newest ledger, and start again. Recorded answers still replay"}
		s.log.Error("the mark of a holdout cannot be read: the holdout gives no new answers", "holdout", h.ID, "error", e.Err)
		s.quarantine.put(h.ID, e, true)
		return nil
	}
	s.marks.written[h.ID] = m.Seq
	if m.Digest != digest {
		return fmt.Errorf("holdout: the directory of %s is that of another table", h.ID)
	}
	if _, deleted := s.readUse(h.ID); deleted && !h.Deleted { // the ledger and the directory are those of a day before its deletion
		s.rolledBack(h.ID, fmt.Errorf("holdout: %s was deleted, by what is beside its sketches, and is there", h.ID))
		return nil
	}
	if m.Seq == 0 {
		return nil
	}
	_, err = s.compareMark(ctx, h.ID, m)
	return err
}

// compareMark quarantines a holdout whose ledger does not have what the mark says; rolledBack is what is then said of it.
func (s *Service) compareMark(ctx context.Context, id string, m mark) (rolledBack *Error, err error) {
	head, ok, err := s.ledger.HeadAt(ctx, id, m.Seq)
	switch {
	case err != nil:
		return nil, err
	case ok && head == m.Head:
		return nil, nil
	}
	return s.rolledBack(id, fmt.Errorf("holdout: the mark of %s is at seq %d with head %s, where the ledger has the head %q", id, m.Seq, m.Head, head)), nil
}

// rolledBack quarantines a holdout of which the ledger is older than it was.
func (s *Service) rolledBack(id string, why error) *Error {
	e := &Error{Kind: RolledBack, Members: map[string]any{"holdout": id}, Err: why,
		Detail: "the ledger is older than the answers that this holdout has given; restore the newest copy of the data directory. Recorded answers still replay"}
	s.log.Error("the ledger is older than it was, or another one: the holdout gives no new answers", "holdout", id, "error", why)
	s.quarantine.put(id, e, true)
	return e
}

// lookAtMark compares the mark when this server's term of a holdout begins: the ledger may have been set back meanwhile, behind what another server has recorded and this one never heard of. The servers share the disk.
func (s *Service) lookAtMark(ctx context.Context, id string) error {
	m, err := readMark(s.path(holdoutsDir, id))
	switch {
	case errors.Is(err, fs.ErrNotExist): // deleted meanwhile, which the ledger says
		return nil
	case err != nil:
		return storageError(fmt.Errorf("holdout: the mark of %s: %w", id, err))
	case m.Seq <= s.marks.knows(id):
		return nil
	}
	rolledBack, err := s.compareMark(ctx, id, m)
	switch {
	case err != nil:
		return err
	case rolledBack != nil:
		return rolledBack
	}
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	s.marks.written[id] = max(s.marks.written[id], m.Seq)
	return nil
}

// Marks of a data directory and of a holdout's.
const (
	// firstStart is in a data directory until its first start has made a ledger: without one it is not lost.
	firstStart = "first-start"
	// lostLedger is in the directory of a holdout whose ledger was lost, and that was accepted.
	lostLedger = "lost-ledger"
)

// ledgerLost is the error of a start without the ledger that the files speak of.
func (s *Service) ledgerLost(what string, err error) error {
	if s.address != "" {
		return &Error{Kind: Unavailable, Err: err, Detail: fmt.Sprintf("the ledger of --ledger %s, and %s speaks of one that is not. What was answered, what was spent and all keys are in it, so nothing is started without it. "+
			"Give the address of that ledger, or restore its database from the newest backup. If there is none, --accept-lost-ledger starts with this one: "+
			"holdouts that it does not know cannot be asked any more, their tables stay refused, and all keys but that of %s have to be made again", what, s.dir, adminKeyFile)}
	}
	return &Error{Kind: Unavailable, Err: err, Detail: fmt.Sprintf("%s: %s. What was answered, what was spent and all keys are in it, so nothing is started without it. "+
		"Restore %s (and %s-wal, if the backup has one) from the newest copy of the data directory. If there is none, --accept-lost-ledger starts with an empty ledger: "+
		"holdouts that it does not know cannot be asked any more, their tables stay refused, and all keys but that of %s have to be made again",
		s.path(ledgerFile), what, ledgerFile, ledgerFile, adminKeyFile)}
}

// expectLedger says whether there must be a ledger: everything but a first start leaves files that speak of one.
func (s *Service) expectLedger() (must bool, err error) {
	if _, err := os.Lstat(s.path(firstStart)); err == nil {
		return false, nil
	}
	for _, name := range []string{serverKeyFile, keyElsewhere} {
		_, err = os.Lstat(s.path(name))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("holdout: server key: %w", err)
		}
	}
	known, err := s.unmarked()
	return len(known) > 0, err
}

// unmarked lists the directories of holdouts that were committed to a ledger, and not accepted as lost.
func (s *Service) unmarked() (ids []string, err error) {
	entries, err := os.ReadDir(s.path(holdoutsDir))
	if err != nil {
		return nil, fmt.Errorf("holdout: %w", err)
	}
	for _, e := range entries {
		marked := false
		for _, name := range []string{uncommitted, lostLedger} {
			_, err := os.Lstat(s.path(holdoutsDir, e.Name(), name))
			marked = marked || err == nil
		}
		if !marked {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// beginFirst marks a first start, durably; endFirst takes the mark away.
func (s *Service) beginFirst() error {
	err := os.WriteFile(s.path(firstStart), nil, secretMode)
	if err == nil {
		err = dataset.SyncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("holdout: data directory: %w", err)
	}
	return nil
}

func (s *Service) endFirst() {
	if err := os.Remove(s.path(firstStart)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("removing the mark of the first start", "error", err) // the next start tries again
	}
}
