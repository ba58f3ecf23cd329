package ledger

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// A sealed value is
//
//	version (1 byte) | salt (16 random bytes) | nonce (12 random bytes) | AES-256-GCM ciphertext and tag
//
// under a key derived by HKDF-SHA256 from the server key and the salt. A key of its own for every value lifts the
// limit of 2^32 random nonces a key, which a busy server would reach within months of sealing states. The additional
// data says whose value it is and for what, so that a sealed value cannot be moved to another place.
const (
	sealVersion = 1
	saltSize    = 16
	sealInfo    = "holdoutd ledger seal 1"
)

// ErrSealed: a sealed value does not open.
var ErrSealed = errors.New("ledger: a sealed value does not open: it was changed, moved, or sealed with another key")

// Sealer seals and opens values with the server key.
type Sealer struct{ Key [32]byte }

func (s *Sealer) aead(salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, s.Key[:], salt, sealInfo, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Seal returns nil for a nil value.
func (s *Sealer) Seal(value []byte, purpose string) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	random := make([]byte, saltSize+12)
	rand.Read(random) // never fails: crypto/rand ends the process instead
	gcm, err := s.aead(random[:saltSize])
	if err != nil {
		return nil, err
	}
	sealed := append([]byte{sealVersion}, random...)
	return gcm.Seal(sealed, random[saltSize:], value, []byte(purpose)), nil
}

// Begin checks a holdout that is to be recorded, and the use of a key with it, and seals its secret and its state. A holdout without a time is created now. It is for implementations.
func (s *Sealer) Begin(h *Holdout, idem *Idempotency) (secret, state []byte, err error) {
	if h.Created.IsZero() {
		h.Created = time.Now()
	}
	if err := h.Check(); err != nil {
		return nil, nil, err
	}
	if idem != nil {
		if err := idem.Check(); err != nil {
			return nil, nil, err
		}
	}
	if secret, err = s.Seal(h.Secret, SecretOf(h.ID)); err != nil {
		return nil, nil, err
	}
	state, err = s.Seal(h.State, StateAfter(0, h.ID))
	return secret, state, err
}

// Open returns nil for nil, and otherwise a value that is not nil. It fails with ErrSealed, or with a *VersionError.
func (s *Sealer) Open(sealed []byte, purpose string) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	if len(sealed) < 1+saltSize+12 {
		return nil, ErrSealed
	}
	if sealed[0] != sealVersion {
		return nil, &VersionError{What: "a sealed value", Got: int64(sealed[0]), Known: sealVersion}
	}
	salt, rest := sealed[1:1+saltSize], sealed[1+saltSize:]
	gcm, err := s.aead(salt)
	if err != nil {
		return nil, err
	}
	value, err := gcm.Open([]byte{}, rest[:12], rest[12:], []byte(purpose))
	if err != nil {
		return nil, ErrSealed
	}
	return value, nil
}

// What sealed values are for. A purpose ends in text that could hold anything, so nothing comes behind an id but a
// number of fixed form before it.

// KeyCheck is the purpose of the value by which a ledger knows its server key.
const KeyCheck = "key-check"

// SecretOf is the purpose of a holdout's secret.
func SecretOf(id string) string { return "secret of " + id }

// StateAfter is the purpose of a mechanism's state. It binds the state to the place in the chain that it belongs to: an older
// state put back does not open.
func StateAfter(seq int64, id string) string { return fmt.Sprintf("state after %d of %s", seq, id) }
