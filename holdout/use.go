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
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What a deleted holdout was used for stays beside its sketches: where the ledger is lost or set back, its rows bring no fresh budget all the same. Of one that was deleted as a draft, of which nobody has seen anything, neither stays.

const (
	// useSuffix is of the file beside a deleted holdout's sketches.
	useSuffix = ".use"
	// useVersion is of that file.
	useVersion = 1
)

// use is its contents.
type use struct {
	Version  int    `json:"version"`
	Table    string `json:"table,omitempty"`    // the keyed digest of the table, in hexadecimal; empty where it is not known
	Spent    bool   `json:"spent,omitempty"`    // it was asked
	Retired  bool   `json:"retired,omitempty"`  // its rows were released
	Released bool   `json:"released,omitempty"` // private releases were made of its training part
}

// readUse reads what is remembered of a holdout; ok is false where nothing is. What cannot be read is taken for the most.
func (s *Service) readUse(id string) (u use, ok bool) {
	f, err := dataset.OpenRegular(s.path(lineageDir, id+useSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return u, false
	}
	if err == nil {
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(f, maxMarkBytes)); err == nil {
			err = json.Unmarshal(text, &u)
		}
		if err == nil {
			err = known("what is remembered of "+id, u.Version, useVersion)
		}
		f.Close() // read only
	}
	if err != nil {
		s.log.Error("what a deleted holdout was used for cannot be read: it is taken for the most", "holdout", id, "error", err)
		return use{Spent: true, Retired: true, Released: true}, true
	}
	return u, true
}

// remembered is a holdout with what is remembered of it, which a ledger that was set back may have forgotten.
func (s *Service) remembered(h ledger.Holdout) ledger.Holdout {
	if u, ok := s.readUse(h.ID); ok {
		return u.on(h)
	}
	return h
}

func (u use) on(h ledger.Holdout) ledger.Holdout {
	h.Draft, h.Retired = false, h.Retired || u.Retired
	if u.Spent {
		spent := ledger.Meters{thresholdout.MeterQuestions: 1}
		for name, amount := range h.Spent {
			spent[name] = max(amount, spent[name])
		}
		h.Spent = spent
	}
	if u.Released {
		h.Released.Made = max(1, h.Released.Made)
	}
	return h
}

// keepUse remembers what a deleted holdout was used for, by the ledger and by the marks beside its tables, which a ledger that was set back contradicts. It is called when the ledger has deleted the holdout and before its
// files go, and at every start.
func (s *Service) keepUse(h ledger.Holdout) error {
	if _, ok := s.readUse(h.ID); ok {
		return nil
	}
	u := use{Version: useVersion, Retired: h.Retired, Released: h.Released.Made > 0, Table: hex.EncodeToString(h.Digest[:])}
	for _, amount := range h.Spent {
		u.Spent = u.Spent || amount > 0
	}
	dir := s.path(holdoutsDir, h.ID)
	if _, err := os.Lstat(dir); err == nil {
		m, err := readMark(dir)
		if m.Table != "" {
			u.Table = m.Table
		}
		u.Spent = u.Spent || err != nil || m.Seq > 0
		u.Retired = u.Retired || isThere(dir, releasedFile)
		u.Released = u.Released || isThere(dir, releaseMark)
	}
	if h.Draft && !u.Spent && !u.Retired && !u.Released {
		for _, suffix := range []string{"", uncommittedSuffix} {
			if err := os.Remove(s.path(lineageDir, h.ID+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("holdout: sketches of a draft: %w", err)
			}
		}
		return nil
	}
	text, err := json.Marshal(u)
	if err == nil {
		err = errors.Join(replaceFile(s.path(lineageDir), h.ID+useSuffix, text), dataset.SyncDir(s.path(lineageDir)))
	}
	if err != nil {
		return fmt.Errorf("holdout: what %s was used for: %w", h.ID, err)
	}
	return nil
}

// firstDigests are the digests of the holdouts' tables, by their ids. One that has taken the place of another is known by a digest made of the other's; that of the first is the table's own.
func firstDigests(all []ledger.Holdout) map[string][32]byte {
	before := make(map[[32]byte]ledger.Holdout, len(all))
	for _, h := range all {
		before[ledger.Successor(h.Digest, h.ID)] = h
	}
	first := make(map[string][32]byte, len(all))
	for _, h := range all {
		of := h
		for older, ok := before[of.Digest]; ok; older, ok = before[of.Digest] {
			of = older
		}
		first[h.ID] = of.Digest
	}
	return first
}

// rememberUse is keepUse for a holdout that the ledger has just deleted. Where it fails the files stay until the next start, which tries again.
func (s *Service) rememberUse(ctx context.Context, id string) error {
	all, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(h ledger.Holdout) bool { return h.ID == id })
	if at < 0 {
		return ledger.ErrNotFound
	}
	h := all[at]
	h.Digest = firstDigests(all)[id]
	return s.keepUse(h)
}

func isThere(dir, name string) bool {
	_, err := os.Lstat(dir + string(os.PathSeparator) + name)
	return err == nil
}

// forgotten are holdouts that the ledger does not know and whose sketches are there, with what is remembered of them: it was lost, or set back. Where nothing is, they are taken for asked and released of.
func (s *Service) forgotten(all []ledger.Holdout) (lost []ledger.Holdout, err error) {
	recorded := ids(all)
	files, err := os.ReadDir(s.path(lineageDir))
	if err != nil {
		return nil, fmt.Errorf("holdout: sketches: %w", err)
	}
	for _, f := range files {
		id := f.Name()
		if strings.Contains(id, ".") || recorded[id] {
			continue
		}
		u, ok := s.readUse(id)
		if !ok {
			u = use{Spent: true, Retired: isThere(s.path(holdoutsDir, id), releasedFile), Released: true}
		}
		lost = append(lost, u.on(ledger.Holdout{ID: id, Deleted: true}))
	}
	return lost, nil
}
