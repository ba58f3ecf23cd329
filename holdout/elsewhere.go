package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

// Of servers that share a ledger one works on a registration. What the others say of it they read in a file beside the tables, where what is being made is, too: servers whose tables are copied see their own
// registrations alone. Any server can end one: that is written to the ledger, which the one that works on it asks every second, and once more before it records the holdout.

const (
	// toldEvery is how often the file of a registration is written, which is also done at each new stage, and the ledger asked whether another server has ended it.
	toldEvery = time.Second
	// silentFor is after how long without a word a server is taken to have stopped. It is long, for clocks of servers differ.
	silentFor       = 3 * time.Minute
	toldVersion     = 1
	cancelledKeptUp = 48 * time.Hour // in the ledger: longer than a registration can take
)

// told is the file of a registration.
type told struct {
	Version      int          `json:"version"`
	Registration Registration `json:"registration"`
	Problem      *toldProblem `json:"problem,omitempty"`
}

// toldProblem is why one has failed, as admins hear it.
type toldProblem struct {
	Kind    Kind           `json:"kind"`
	Detail  string         `json:"detail"`
	Pointer string         `json:"pointer,omitempty"`
	Meant   string         `json:"meant,omitempty"`
	Members map[string]any `json:"members,omitempty"`
}

func (s *Service) toldPath(id string) string { return filepath.Join(s.making, id) }

// tell writes how far a registration is.
func (s *Service) tell(now Registration) error {
	t := told{Version: toldVersion, Registration: now}
	if p := now.Problem; p != nil {
		t.Problem = &toldProblem{p.Kind, p.Detail, p.Pointer, p.Meant, p.Members}
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	path := s.toldPath(now.ID)
	draft := path + ".draft"
	if err := os.WriteFile(draft, text, secretMode); err != nil {
		return err
	}
	return os.Rename(draft, path)
}

// hearOf reads how far a registration of another server is.
func (s *Service) hearOf(id string) (Registration, error) {
	if !s.shared || !strings.HasPrefix(id, registrationPrefix) || strings.ContainsAny(id, "./") {
		return Registration{}, fs.ErrNotExist
	}
	path := s.toldPath(id)
	info, err := os.Lstat(path)
	if err != nil {
		return Registration{}, err
	}
	text, err := os.ReadFile(path)
	var t told
	if err == nil {
		if err = readVersion("the registration "+id, text, toldVersion); err == nil {
			err = json.Unmarshal(text, &t)
		}
	}
	if err != nil {
		return Registration{}, err
	}
	now := t.Registration
	if p := t.Problem; p != nil {
		now.Problem = &Error{Kind: p.Kind, Detail: p.Detail, Pointer: p.Pointer, Meant: p.Meant, Members: p.Members}
	}
	if !now.Stage.Ended() && time.Since(info.ModTime()) > silentFor {
		now.Stage, now.Done, now.Ended = RegistrationFailed, 0, info.ModTime().UTC().Truncate(time.Microsecond)
		now.Problem = &Error{Kind: Unavailable, Detail: "the server that worked on this registration has stopped, or is cut off; register the table again. What it had made is dropped when it starts again"}
	}
	return now, nil
}

// follows tells other servers how far a registration is, and hears whether one of them has ended it, until the registration has ended itself.
func (s *Service) follows(r *registration) {
	if err := s.sweepAbandoned(); err != nil { // files of old ones, too
		s.log.Warn("what was left beside the tables cannot be removed", "error", err)
	}
	tick := time.NewTicker(toldEvery)
	defer tick.Stop()
	last := time.Time{}
	for {
		now := r.state()
		err := s.tell(now)
		if err != nil && time.Since(last) > silentFor {
			last = time.Now()
			s.log.Warn("other servers cannot be told how far a registration is", "registration", now.ID, "error", err)
		}
		if now.Stage.Ended() {
			return
		}
		select {
		case <-r.ended:
		case <-r.entered:
		case <-tick.C:
			if ended, err := s.ledger.SessionEnded(s.ending, cancellation(now.ID)); err == nil && ended {
				r.stop()
			}
		}
	}
}

// stop ends a registration that has not ended.
func (r *registration) stop() {
	r.mu.Lock()
	r.cancelled = r.cancelled || !r.now.Stage.Ended()
	r.mu.Unlock()
	r.cancel()
}

// cancellation is what the ledger knows the end of a registration by, among what was ended before its time.
func cancellation(id string) [32]byte {
	return sha256.Sum256([]byte("holdoutd ends the registration " + id))
}

// checkCancelled refuses to record a holdout whose registration another server has ended.
func (g *registering) checkCancelled() error {
	if !g.service.shared {
		return nil
	}
	ended, err := g.service.ledger.SessionEnded(g.ctx, cancellation(g.registration.state().ID))
	if err != nil {
		return g.service.ledgerError(err)
	}
	if ended {
		g.registration.stop()
		return &Error{Kind: Unavailable, Detail: "the registration was cancelled before it was recorded", Err: context.Canceled}
	}
	return nil
}

// cancelElsewhere ends a registration of another server, and waits a few seconds for it to say so.
func (s *Service) cancelElsewhere(ctx context.Context, now Registration) (Registration, error) {
	if now.Stage.Ended() {
		return now, nil
	}
	if err := s.ledger.EndSession(ctx, cancellation(now.ID), time.Now().Add(cancelledKeptUp)); err != nil {
		return now, s.ledgerError(err)
	}
	for deadline := time.Now().Add(cancelWait); !now.Stage.Ended() && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return now, nil
		case <-time.After(toldEvery / 10):
		}
		if later, err := s.hearOf(now.ID); err == nil {
			now = later
		}
	}
	return now, nil
}

// heard are the registrations of other servers, the newest first.
func (s *Service) heard() (all []Registration) {
	if !s.shared {
		return nil
	}
	entries, err := os.ReadDir(s.making)
	if err != nil {
		s.log.Warn("registrations of other servers cannot be listed", "error", err)
	}
	for _, e := range entries {
		if s.registrations.find(e.Name()) != nil {
			continue
		}
		if now, err := s.hearOf(e.Name()); err == nil {
			all = append(all, now)
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, dataset.ErrVersion) {
			s.log.Warn("a registration of another server cannot be read", "file", s.toldPath(e.Name()), "error", err)
		}
	}
	slices.SortFunc(all, func(a, b Registration) int { return b.Begun.Compare(a.Begun) })
	return all
}
