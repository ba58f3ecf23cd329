package holdout

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// MaxNameLength is the longest name of a key or a holdout, in characters: a line of text.
const MaxNameLength = 200

const (
	keyPrefix = "hk_"
	keyBytes  = 32
)

// newKey makes a bearer key: "hk_" and 256 random bits.
func newKey() (string, error) {
	var random [keyBytes]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("holdout: new key: %w", err)
	}
	return keyPrefix + base64.RawURLEncoding.EncodeToString(random[:]), nil
}

// hashKey is what the ledger keeps of a key. A fast hash is right here: slow, salted hashes protect passwords that can
// be guessed; 256 random bits cannot, and every request must be checked.
func hashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// Authenticate returns the principal of a bearer key. Its error does not tell an unknown key from a revoked one.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Principal, error) {
	if len(bearer) != len(keyPrefix)+base64.RawURLEncoding.EncodedLen(keyBytes) || !strings.HasPrefix(bearer, keyPrefix) {
		return Principal{}, keyRefused()
	}
	return s.Recall(ctx, Remember(bearer))
}

func keyRefused() *Error { return fail(Unauthorized, "the API key is missing, unknown or revoked") }

// A Remembered key is what a session keeps of a bearer key: by it its owner is found while the key is valid, and the key cannot be had back from it.
type Remembered struct{ hash [32]byte }

// Remember is what is kept of a bearer key.
func Remember(bearer string) Remembered { return Remembered{hashKey(bearer)} }

// Recall returns the principal of a key, as Authenticate does. It fails from the moment on at which the key is revoked.
func (s *Service) Recall(ctx context.Context, key Remembered) (Principal, error) {
	// Looked up by hash: how long it takes says nothing about other keys.
	k, ok, err := s.ledger.KeyByHash(ctx, key.hash)
	if err != nil {
		return Principal{}, s.ledgerError(err)
	}
	if !ok || k.Revoked {
		return Principal{}, keyRefused()
	}
	return Principal{KeyID: k.ID, Name: k.Name, Scope: Scope(k.Scope)}, nil
}

// CreateKey makes a key and returns its secret, which is shown this once. Only admins may.
func (s *Service) CreateKey(ctx context.Context, p Principal, name string, scope Scope) (KeyInfo, string, error) {
	if err := admins(p); err != nil {
		return KeyInfo{}, "", err
	}
	if scope != Admin && scope != Analyst && scope != Granted {
		return KeyInfo{}, "", invalid("scope", "scope must be %q, %q or %q", Admin, Analyst, Granted)
	}
	if err := checkName("name", name); err != nil {
		return KeyInfo{}, "", err
	}
	if name == "" {
		return KeyInfo{}, "", invalid("name", "a key needs a name; it says whose questions are whose")
	}
	return s.createKey(ctx, name, scope)
}

func (s *Service) createKey(ctx context.Context, name string, scope Scope) (KeyInfo, string, error) {
	secret, err := newKey()
	if err != nil {
		return KeyInfo{}, "", err
	}
	k := ledger.Key{ID: "key_" + uuid.NewString(), Name: name, Scope: string(scope), Created: time.Now().UTC(), Hash: hashKey(secret)}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if err := s.ledger.CreateKey(ctx, k); err != nil {
		return KeyInfo{}, "", s.ledgerError(err)
	}
	return keyInfo(k), secret, nil
}

// Keys lists all keys, revoked ones too. Only admins may.
func (s *Service) Keys(ctx context.Context, p Principal) ([]KeyInfo, error) {
	if err := admins(p); err != nil {
		return nil, err
	}
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	infos := make([]KeyInfo, len(keys))
	for i, k := range keys {
		infos[i] = keyInfo(k)
	}
	return infos, nil
}

// RevokeKey ends a key for good. Only admins may; an admin cannot revoke the key that the request came with, so that a
// server is not locked by accident.
func (s *Service) RevokeKey(ctx context.Context, p Principal, id string) error {
	if err := admins(p); err != nil {
		return err
	}
	if id == p.KeyID {
		return fail(Conflict, "a key cannot revoke itself; use another admin key")
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	switch err := s.ledger.RevokeKey(ctx, id); {
	case errors.Is(err, ledger.ErrNotFound):
		return fail(NotFound, "there is no such key")
	case err != nil:
		return s.ledgerError(err)
	}
	return nil
}

// firstKey writes DIR/admin.key if there is none. The file is written before the key is known to the ledger, so a
// crash in between leaves a file whose key does not work; it is then enrolled at the next start.
func (s *Service) firstKey(ctx context.Context) error {
	path := filepath.Join(s.dir, adminKeyFile)
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return fmt.Errorf("holdout: keys: %w", err)
	}
	if len(keys) > 0 {
		return nil
	}
	secret, err := newKey()
	if err != nil {
		return err
	}
	if err := writeOnce(path, []byte(secret+"\n")); errors.Is(err, fs.ErrExist) {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("holdout: admin key: %w", err)
		}
		if secret = strings.TrimSpace(string(text)); !strings.HasPrefix(secret, keyPrefix) {
			return fmt.Errorf("holdout: %s does not hold a key; remove it to get a new one", path)
		}
	} else if err != nil {
		return fmt.Errorf("holdout: admin key: %w", err)
	}
	k := ledger.Key{ID: "key_" + uuid.NewString(), Name: "admin", Scope: string(Admin), Created: time.Now().UTC(), Hash: hashKey(secret)}
	err = s.ledger.CreateKey(ctx, k)
	if _, ok, unread := s.ledger.KeyByHash(ctx, k.Hash); ok && unread == nil && errors.Is(err, ledger.ErrExists) {
		return nil // another server that begins with the same directory was faster
	}
	if err != nil {
		return fmt.Errorf("holdout: admin key: %w", err)
	}
	return nil
}

func keyInfo(k ledger.Key) KeyInfo {
	return KeyInfo{ID: k.ID, Name: k.Name, Scope: Scope(k.Scope), Created: k.Created, Revoked: k.Revoked}
}

// admins refuses everyone else.
func admins(p Principal) error {
	if p.Scope != Admin {
		return fail(Forbidden, "this needs a key with the scope %q", Admin)
	}
	return nil
}

// checkName refuses names that cannot stand in a line of text.
func checkName(pointer, name string) error {
	switch {
	case !utf8.ValidString(name):
		return invalid(pointer, "%s is not valid UTF-8", pointer)
	case utf8.RuneCountInString(name) > MaxNameLength:
		return invalid(pointer, "%s is longer than %d characters", pointer, MaxNameLength)
	case strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return invalid(pointer, "%s has control characters", pointer)
	}
	return nil
}
