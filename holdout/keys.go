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
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/oidc"
)

// MaxNameLength is the longest name of a key or a holdout, in characters: a line of text.
const MaxNameLength = 200

const (
	KeyPrefix = "hk_"
	keyBytes  = 32
)

// newKey makes a bearer key: "hk_" and 256 random bits.
func newKey() (string, error) {
	var random [keyBytes]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("holdout: new key: %w", err)
	}
	return KeyPrefix + base64.RawURLEncoding.EncodeToString(random[:]), nil
}

// hashKey is what the ledger keeps of a key. A fast hash is right here: slow, salted hashes protect passwords that can
// be guessed; 256 random bits cannot, and every request must be checked.
func hashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// MaxBearerBytes is the longest bearer that Authenticate can take.
const MaxBearerBytes = oidc.MaxTokenBytes

// Authenticate returns the principal of a bearer: of a key, or of a token of the service's issuer. Its error does not tell an unknown key from a revoked one.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Principal, error) {
	key, err := s.Remember(ctx, bearer)
	if err != nil {
		return Principal{}, err
	}
	return s.Recall(ctx, key)
}

func keyRefused() *Error { return fail(Unauthorized, "the API key is missing, unknown or revoked") }

// A Remembered bearer is what a session keeps of it: by it its owner is found while it is valid, and it cannot be had back from it.
type Remembered struct {
	hash    [32]byte       // of a key
	subject ledger.Subject // of a token
	issued  time.Time      // when the token was made, to the second; zero where it does not say
	until   time.Time      // the token's end
}

// Same reports whether two stand for one key.
func (r Remembered) Same(as Remembered) bool { return r.hash == as.hash && r.subject == as.subject }

// Remember checks what a bearer says by itself, and is what is kept of it. Whether it stands for a key that is valid is Recall's to say.
func (s *Service) Remember(ctx context.Context, bearer string) (Remembered, error) {
	if oidc.Shaped(bearer) {
		return s.rememberToken(ctx, bearer)
	}
	if len(bearer) != len(KeyPrefix)+base64.RawURLEncoding.EncodedLen(keyBytes) || !strings.HasPrefix(bearer, KeyPrefix) {
		return Remembered{}, keyRefused()
	}
	return RememberKey(bearer), nil
}

// RememberKey is what is kept of a key, unchecked.
func RememberKey(secret string) Remembered { return Remembered{hash: hashKey(secret)} }

func (s *Service) rememberToken(ctx context.Context, token string) (Remembered, error) {
	if s.issuer == nil {
		return Remembered{}, fail(Unauthorized, "this server takes keys (hk_…) and no tokens: it was started without --oidc-issuer")
	}
	who, err := s.issuer.Identify(ctx, token)
	var refused *oidc.Error
	switch {
	case errors.As(err, &refused) && refused.Unavailable:
		e := fail(Unavailable, "%s", refused.Detail)
		e.RetryAfter = refused.RetryAfter
		return Remembered{}, e
	case errors.As(err, &refused):
		return Remembered{}, fail(Unauthorized, "%s", refused.Detail)
	case err != nil:
		return Remembered{}, err
	}
	return Remembered{subject: s.subject(who.Subject), issued: who.Issued, until: who.Until}, nil
}

// subject is whom the service's issuer names by a value of its claim.
func (s *Service) subject(value string) ledger.Subject {
	return ledger.Subject{Issuer: s.issuer.Name(), Claim: s.issuer.Claim(), Value: value}
}

// Recall returns the principal of a bearer, as Authenticate does. It fails from the moment on at which the key is revoked or the token has ended.
func (s *Service) Recall(ctx context.Context, key Remembered) (Principal, error) {
	if !key.until.IsZero() && s.now().After(key.until) {
		return Principal{}, fail(Unauthorized, "the token has expired: get a new one of the issuer")
	}
	var k ledger.Key
	var ok bool
	var err error
	if key.subject != (ledger.Subject{}) {
		k, ok, err = s.ledger.KeyBySubject(ctx, key.subject)
	} else { // looked up by hash: how long it takes says nothing about other keys
		k, ok, err = s.ledger.KeyByHash(ctx, key.hash)
	}
	if err != nil {
		return Principal{}, s.ledgerError(err)
	}
	ended, err := s.keyEnded(k)
	if err != nil {
		return Principal{}, err
	}
	if !ok || ended {
		if to := key.subject; to != (ledger.Subject{}) {
			return Principal{}, fail(Unauthorized, "the token is right, and no key that is valid is bound to its subject %q (the claim %s of %s): an admin must bind one, with holdoutd key create NAME --oidc-subject SUBJECT", to.Value, to.Claim, to.Issuer)
		}
		return Principal{}, keyRefused()
	}
	if key.subject != (ledger.Subject{}) && key.issued.Before(k.Created.Truncate(time.Second)) {
		switch again, err := s.boundBefore(ctx, k, key.issued); {
		case err != nil:
			return Principal{}, err
		case again:
			return Principal{}, fail(Unauthorized, "the token was issued before its subject was bound anew, and an earlier binding of it was ended, or may have been before a restore: get a new one of the issuer")
		}
	}
	return Principal{KeyID: k.ID, Name: k.Name, Scope: Scope(k.Scope)}, nil
}

// boundBefore reports whether the subject of a key had another one, which was revoked, or may have had one that a restore has forgotten: its tokens from before do not come back to life with the new one.
func (s *Service) boundBefore(ctx context.Context, k ledger.Key, issued time.Time) (bool, error) {
	if s.restores.endsBefore(issued) {
		return true, nil
	}
	if marked, err := s.isRevoked(revokedSubject(k.Subject)); marked || err != nil {
		return marked, storageError(err)
	}
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return false, s.ledgerError(err)
	}
	return slices.ContainsFunc(keys, func(other ledger.Key) bool { return other.ID != k.ID && other.Revoked && other.Subject == k.Subject }), nil
}

// CreateKey makes a key and returns its secret, which is shown this once. Only admins may.
func (s *Service) CreateKey(ctx context.Context, p Principal, name string, scope Scope) (KeyInfo, string, error) {
	if err := s.checkNewKey(p, name, scope); err != nil {
		return KeyInfo{}, "", err
	}
	secret, err := newKey()
	if err != nil {
		return KeyInfo{}, "", err
	}
	info, err := s.recordKey(ctx, ledger.Key{Name: name, Scope: string(scope), Hash: hashKey(secret), By: p.KeyID})
	if err != nil {
		return KeyInfo{}, "", err
	}
	return info, secret, nil
}

// BindKey makes a key without a secret, for a subject of the service's issuer: its tokens stand for the key, until the key is revoked. Only admins may. A subject has one key at a time.
func (s *Service) BindKey(ctx context.Context, p Principal, name string, scope Scope, subject string) (KeyInfo, error) {
	if err := s.checkNewKey(p, name, scope); err != nil {
		return KeyInfo{}, err
	}
	if s.issuer == nil {
		return KeyInfo{}, invalid("oidc_subject", "this server takes no tokens that a subject could have: start it with --oidc-issuer and --oidc-audience, or leave oidc_subject out")
	}
	if err := oidc.CheckSubject(subject); err != nil {
		return KeyInfo{}, invalid("oidc_subject", "oidc_subject %v", err)
	}
	k := ledger.Key{Name: name, Scope: string(scope), Subject: s.subject(subject), By: p.KeyID}
	if _, err := rand.Read(k.Hash[:]); err != nil { // of no secret that there is
		return KeyInfo{}, fmt.Errorf("holdout: new key: %w", err)
	}
	info, err := s.recordKey(ctx, k)
	if errors.Is(err, ledger.ErrExists) {
		return KeyInfo{}, fail(Conflict, "a valid key is bound to the subject %q already; revoke that one first (holdoutd key list shows it)", subject)
	}
	return info, err
}

func (s *Service) checkNewKey(p Principal, name string, scope Scope) error {
	if err := admins(p); err != nil {
		return err
	}
	if scope != Admin && scope != Analyst && scope != Granted {
		return invalid("scope", "scope must be %q, %q or %q", Admin, Analyst, Granted)
	}
	if err := checkName("name", name); err != nil {
		return err
	}
	if name == "" {
		return invalid("name", "a key needs a name; it says whose questions are whose")
	}
	return s.takesNothingNew()
}

// recordKey gives a key its id and records it.
func (s *Service) recordKey(ctx context.Context, k ledger.Key) (KeyInfo, error) {
	k.ID, k.Created = "key_"+uuid.NewString(), time.Now().UTC()
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if err := s.ledger.CreateKey(ctx, k); errors.Is(err, ledger.ErrRevoked) {
		return KeyInfo{}, keyRefused()
	} else if err != nil {
		return KeyInfo{}, s.ledgerError(err)
	}
	return keyInfo(k), nil
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
	err := func() error {
		s.rights.Lock() // what the key was doing is done, or is refused
		defer s.rights.Unlock()
		return s.ledger.RevokeKey(ctx, id)
	}()
	var revoked ledger.Key
	if err == nil {
		revoked, err = s.keyOf(ctx, id)
	}
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return fail(NotFound, "there is no such key")
	case err != nil:
		return s.ledgerError(err)
	}
	if err := s.markKeyRevoked(revoked); err != nil { // the ledger has it: the key is refused from now on
		s.log.Error("a key is revoked, and the mark of that beside the tables could not be written; the next start tries again", "key", id, "error", err)
	}
	return nil
}

// acting has an admin do something that lasts, unless their key was revoked since the request began. No revocation at this server ends meanwhile, so that nothing is done after its reply; at another one of the same ledger
// it may, in the moment that the act takes.
func (s *Service) acting(ctx context.Context, p Principal, do func() error) error {
	s.rights.RLock()
	defer s.rights.RUnlock()
	if err := s.StillValid(ctx, p); err != nil {
		return err
	}
	return do()
}

// StillValid refuses a principal whose key was revoked since the request began: for who reads a body, or an upload, for long. A principal of no key, of a program with the library, stays valid.
func (s *Service) StillValid(ctx context.Context, p Principal) error {
	switch k, err := s.keyOf(ctx, p.KeyID); {
	case errors.Is(err, ledger.ErrNotFound): // of a caller that has no key: a program with the library
		return nil
	case err != nil:
		return s.ledgerError(err)
	case k.Revoked:
		return keyRefused()
	}
	return nil
}

// firstKey writes DIR/admin.key where no admin has a valid key: at the first start, and after a restore that has ended all keys. The file is written before the key is known to the ledger, so a
// crash in between leaves a file whose key does not work; it is then enrolled at the next start. A key that was revoked is not: another one takes its place in the file.
func (s *Service) firstKey(ctx context.Context) error {
	path := filepath.Join(s.dir, adminKeyFile)
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return fmt.Errorf("holdout: keys: %w", err)
	}
	if slices.ContainsFunc(keys, func(k ledger.Key) bool { return k.Scope == string(Admin) && !k.Revoked }) {
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
		there := strings.TrimSpace(string(text))
		if !strings.HasPrefix(there, KeyPrefix) {
			return fmt.Errorf("holdout: %s does not hold a key; remove it to get a new one", path)
		}
		ended, err := s.isRevoked(revocation(hashKey(there)))
		if err != nil {
			return fmt.Errorf("holdout: admin key: %w", err)
		}
		k, known, err := s.ledger.KeyByHash(ctx, hashKey(there))
		if err != nil {
			return fmt.Errorf("holdout: admin key: %w", err)
		}
		if ended || known && (k.Revoked || k.Scope != string(Admin)) {
			if err := errors.Join(replaceFile(s.dir, adminKeyFile, []byte(secret)), dataset.SyncDir(s.dir)); err != nil {
				return fmt.Errorf("holdout: admin key: %w", err)
			}
			s.log.Warn("no admin has a valid key: a new one is in "+adminKeyFile, "file", path)
		} else {
			secret = there
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
	info := KeyInfo{ID: k.ID, Name: k.Name, Scope: Scope(k.Scope), Created: k.Created, Revoked: k.Revoked, By: k.By}
	if k.Subject != (ledger.Subject{}) {
		info.OIDC = &KeySubject{k.Subject.Issuer, k.Subject.Claim, k.Subject.Value}
	}
	return info
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
