package holdout

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// A session stands for a key in the requests of a browser. Its token is sealed with a key that is derived from the server's, so that every server of a
// ledger reads it and nobody else can make or read one: it holds the session's id, the hash of the key that began it, and when it began and was used. What
// no token can say is that its owner has ended the session: that is in the ledger.

const (
	// SessionIdle ends a session that nothing used: a page that was left overnight asks for the key again.
	SessionIdle = 12 * time.Hour
	// SessionLife ends every session: an open page uses its own, by following answers.
	SessionLife = 7 * 24 * time.Hour
	// sessionRenewal is how old a token may be before a request gets a new one: what says when the session was used need not be more exact.
	sessionRenewal = 5 * time.Minute

	sessionPurpose = "session of a browser 1"
	sessionIDSize  = 16
	sessionSize    = sessionIDSize + sha256.Size + 8 + 8
)

// browser is what a token says.
type browser struct {
	id          [sessionIDSize]byte // random
	key         Remembered
	begun, used time.Time
}

// name is what the ledger knows a session by: whoever reads it learns no id.
func (b browser) name() [32]byte { return sha256.Sum256(b.id[:]) }

func (b browser) over(now time.Time) bool {
	return now.Sub(b.used) > SessionIdle || now.Sub(b.begun) > SessionLife
}

// browsers seals and opens tokens.
type browsers struct {
	sealer ledger.Sealer

	mu    sync.Mutex
	ended map[[32]byte]bool // where the ledger can remember nothing, since the server's key is lost
}

func (s *browsers) seal(b browser) (token string, err error) {
	text := append(append(make([]byte, 0, sessionSize), b.id[:]...), b.key.hash[:]...)
	text = binary.BigEndian.AppendUint64(text, uint64(b.begun.UnixNano()))
	text = binary.BigEndian.AppendUint64(text, uint64(b.used.UnixNano()))
	sealed, err := s.sealer.Seal(text, sessionPurpose)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// open reads a token. It is false for one that is over, or that no server of this ledger has made.
func (s *browsers) open(token string, now time.Time) (b browser, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(sealed) > 4*sessionSize {
		return b, false
	}
	text, err := s.sealer.Open(sealed, sessionPurpose)
	if err != nil || len(text) != sessionSize {
		return b, false
	}
	copy(b.id[:], text)
	copy(b.key.hash[:], text[sessionIDSize:])
	text = text[sessionIDSize+sha256.Size:]
	b.begun = time.Unix(0, int64(binary.BigEndian.Uint64(text)))
	b.used = time.Unix(0, int64(binary.BigEndian.Uint64(text[8:])))
	return b, !b.over(now)
}

// BeginSession returns the token of a new session of a key.
func (s *Service) BeginSession(key Remembered, now time.Time) (token string, err error) {
	b := browser{key: key, begun: now, used: now}
	rand.Read(b.id[:]) // never fails: crypto/rand ends the process instead
	return s.browsers.seal(b)
}

// Session returns the principal of the key that began a session, at whichever server of the ledger. It is Unauthorized once the session is over or was ended,
// and from the moment on at which the key is revoked. renewed, if it is not "", is the token to go on with: it says that the session was used now.
func (s *Service) Session(ctx context.Context, token string, now time.Time) (p Principal, renewed string, err error) {
	b, ok := s.browsers.open(token, now)
	if !ok {
		return p, "", sessionOver()
	}
	ended, err := s.sessionEnded(ctx, b.name())
	if err != nil {
		return p, "", s.ledgerError(err)
	}
	if ended {
		return p, "", sessionOver()
	}
	if p, err = s.Recall(ctx, b.key); err != nil {
		if KindOf(err) == Unauthorized {
			err = sessionOver()
		}
		return p, "", err
	}
	if now.Sub(b.used) > sessionRenewal {
		b.used = now
		renewed, err = s.browsers.seal(b)
	}
	return p, renewed, err
}

func sessionOver() *Error {
	return fail(Unauthorized, "the session is over: sign in again with a key")
}

// EndSession ends a session at all servers, durably. A token that is none, or is over, is nothing to end.
func (s *Service) EndSession(ctx context.Context, token string, now time.Time) error {
	b, ok := s.browsers.open(token, now)
	if !ok {
		return nil
	}
	if s.lost {
		s.browsers.mu.Lock()
		defer s.browsers.mu.Unlock()
		if s.browsers.ended == nil {
			s.browsers.ended = map[[32]byte]bool{}
		}
		s.browsers.ended[b.name()] = true
		return nil
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	// A day more than it can last by any server's clock.
	if err := s.ledger.EndSession(ctx, b.name(), b.begun.Add(SessionLife+24*time.Hour)); err != nil {
		return s.ledgerError(err)
	}
	return nil
}

func (s *Service) sessionEnded(ctx context.Context, name [32]byte) (bool, error) {
	if s.lost {
		s.browsers.mu.Lock()
		defer s.browsers.mu.Unlock()
		return s.browsers.ended[name], nil
	}
	return s.ledger.SessionEnded(ctx, name)
}
