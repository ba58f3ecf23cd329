package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// What a source keeps for a holdout goes when the holdout goes, and it cannot go with it: a source may be away. So before a server makes parts, and before it forgets where they are, it notes
// their names in its data directory. A note is worked off by asking the ledger: the parts of a holdout that it knows stay, all others are dropped, and the note goes when that is done.
//
// Nothing else is dropped. What a source keeps and no note names may be another server's: of the same ledger, which notes its own, or of another one. A backup has no notes, so that
// a server that is restored from one drops nothing of the server that it was made of.

const (
	notesDir    = "parts"  // in a data directory
	noteDraft   = ".note-" // how the name of a note begins that is being written
	noteVersion = 1
	// outcomeWithin is how long a commit to a ledger that servers share may take to be seen, whose server was killed: PostgreSQL finishes one for which nobody waits any more, and it may itself wait for a standby.
	outcomeWithin = 10 * time.Minute
)

// partsNote names the parts of a holdout.
type partsNote struct {
	Version int      `json:"version"`
	Source  string   `json:"source"`
	Parts   []string `json:"parts"`
}

// noteParts notes which parts a source keeps for a holdout, durably.
func (s *Service) noteParts(id, source string, parts []string) error {
	text, err := json.Marshal(partsNote{noteVersion, source, parts})
	if err != nil {
		return err
	}
	dir := s.path(notesDir)
	if err := os.MkdirAll(dir, privateMode); err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	f, err := os.CreateTemp(dir, noteDraft+"*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	defer os.Remove(f.Name()) // not there any more once it has its name
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, id))
	}
	if err == nil {
		err = dataset.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("holdout: noting what a source keeps: %w", err)
	}
	return nil
}

// sweepNotes removes what a crash has left of notes that were being written: of what they name nothing was made. Nobody writes one yet.
func (s *Service) sweepNotes() error {
	entries, err := os.ReadDir(s.path(notesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), noteDraft) {
			err = errors.Join(err, unlink(s.path(notesDir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("holdout: leftovers: %w", err)
	}
	return nil
}

// dropNoted works a note off, if there is one. What cannot be dropped now is tried again later, and at the next start. sure: if the ledger does not know the holdout now, it never will.
func (s *Service) dropNoted(ctx context.Context, id string, sure bool) {
	if err := s.workOff(ctx, id, sure); err != nil {
		s.log.Warn("parts of a holdout that is no more cannot be dropped yet; it is tried again", "holdout", id, "error", err)
	}
}

func (s *Service) workOff(ctx context.Context, id string, sure bool) error {
	path := s.path(notesDir, id)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	sure = sure || time.Since(info.ModTime()) > outcomeWithin
	var note partsNote
	if err == nil {
		if err = readVersion("the note "+path, text, noteVersion); err == nil {
			err = json.Unmarshal(text, &note)
		}
	}
	if err != nil {
		return err
	}
	wait, cancel := withDeadline(ctx)
	h, err := s.ledger.Holdout(wait, id)
	cancel()
	switch {
	case err == nil && !h.Deleted:
		return unlink(path)
	case err != nil && !errors.Is(err, ledger.ErrNotFound) && !errors.Is(err, ledger.ErrDeleted):
		return err
	case errors.Is(err, ledger.ErrNotFound) && !sure:
		return nil // it is asked again
	case errors.Is(err, ledger.ErrNotFound):
		if err := s.eraseUnrecorded(id); err != nil {
			return err
		}
	}
	from := s.sources[note.Source]
	if from == nil {
		return fmt.Errorf("holdout: the source %q is not among those that the server was started with", note.Source)
	}
	for _, part := range note.Parts {
		if err := from.Drop(ctx, part); err != nil {
			return err
		}
	}
	s.log.Info("parts of a holdout that is no more are dropped", "holdout", id, "source", note.Source)
	return unlink(path)
}

// eraseUnrecorded removes what this server has made of a holdout that the ledger does not know. Where servers share a directory of tables, no other one can tell whether it is still being made.
func (s *Service) eraseUnrecorded(id string) error {
	err := os.RemoveAll(filepath.Join(s.making, id))
	if _, marked := os.Lstat(s.holdoutPath(id, uncommitted)); marked == nil {
		err = errors.Join(err, os.RemoveAll(s.holdoutPath(id)))
	}
	return err
}

// unlink removes a file that another may have removed meanwhile.
func unlink(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// dropAllNoted works all notes off, but for those of registrations that are going on, or of which nobody knows yet whether the ledger has recorded them.
func (s *Service) dropAllNoted(ctx context.Context) {
	entries, err := os.ReadDir(s.path(notesDir))
	if err != nil {
		return // there are none
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || s.registrations.holds(e.Name()) {
			continue
		}
		s.dropNoted(ctx, e.Name(), !s.shared) // one process has a ledger in a file: what it does not know now it never will
	}
}

// holds reports whether a holdout is being made here, or may yet be recorded.
func (all *registrations) holds(holdout string) bool {
	r := all.find(registrationPrefix + strings.TrimPrefix(holdout, holdoutPrefix))
	if r == nil {
		return false
	}
	return !r.state().Stage.Ended() || r.unsure()
}

// eraseHoldout removes the files of a holdout that is no more, and what a source keeps of it.
func (s *Service) eraseHoldout(id string, draft bool) error {
	dir := s.holdoutPath(id)
	source, parts, err := keptParts(dir)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		if err := s.noteParts(id, source, parts); err != nil {
			return err
		}
	}
	if err := erase(dir, draft); err != nil {
		return err
	}
	if len(parts) > 0 {
		s.background(func(ctx context.Context) { s.dropNoted(ctx, id, true) })
	}
	return nil
}
