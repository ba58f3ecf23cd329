package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// KeysFresh is how old the issuer's keys may be before they are read again: while the issuer can be reached, a key that it has withdrawn signs no longer than that.
	KeysFresh = time.Hour
	// KeysLife is how old they may be at most, while the issuer cannot be reached: a night's outage, and not a week in which withdrawn keys count.
	KeysLife = 24 * time.Hour
	// FetchEvery is the shortest time between two readings: whoever sends tokens of unknown keys makes this server ask the issuer no more often.
	FetchEvery = time.Minute
	// FetchTime is how long a reading takes at most. Requests with tokens wait for it, unless the one before it failed.
	FetchTime = 5 * time.Second
	// retryDown is when a token is to be sent again that came while an issuer that was down is being asked again.
	retryDown = time.Second
	// maxKeys are those of a set that are read. Issuers have two to ten; each that a token could mean costs a signature's check.
	maxKeys = 64
	// A signature of a larger key takes long to check, and one of a smaller key can be forged.
	leastRSABits, mostRSABits = 2048, 8192
)

// keys are those of an issuer, as they were read last.
type keys struct {
	source func(ctx context.Context) ([]byte, error)
	within time.Duration // a reading ends
	now    func() time.Time
	log    *slog.Logger
	ctx    context.Context // ends with the issuer
	end    context.CancelFunc
	flying sync.WaitGroup

	mu     sync.Mutex
	set    []jose.JSONWebKey
	read   time.Time     // when set was read; zero: never
	tried  time.Time     // when the last reading began
	down   bool          // the last reading failed: nobody waits for the next one
	flight chan struct{} // of the reading that is under way, closed at its end; nil: none
}

// find returns the keys that a token with this key id can be signed with: more than one where a set names two alike. A token without an id can only mean the one key of a set that has one.
func (k *keys) find(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	for {
		k.mu.Lock()
		now := k.now()
		usable := !k.read.IsZero() && now.Sub(k.read) <= KeysLife
		var found []jose.JSONWebKey
		if usable {
			found = named(k.set, id)
		}
		again := k.tried.Add(FetchEvery).Sub(now) // until the next reading
		fresh := now.Sub(k.read) < KeysFresh
		if k.flight == nil && again <= 0 && (len(found) == 0 || !fresh) {
			k.begin(now)
		}
		flight, down := k.flight, k.down
		k.mu.Unlock()
		if flight != nil && down {
			again = retryDown
		}
		switch {
		case len(found) > 0 && (fresh || flight == nil || down):
			return found, nil
		case flight != nil && !down:
			select {
			case <-flight:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case !usable:
			return nil, &Error{Detail: "the issuer's keys cannot be read now, so no token can be checked; keys (hk_…) work", Unavailable: true, RetryAfter: again}
		case id == "":
			return nil, refuse("the token does not say which of the issuer's keys signed it (kid)")
		}
		return nil, refuse("the token is signed with a key that is not among the issuer's (kid); a new one is known after a minute at most")
	}
}

// named are the keys of a set that a token's id names.
func named(set []jose.JSONWebKey, id string) (found []jose.JSONWebKey) {
	if id == "" && len(set) == 1 {
		return set
	}
	for _, key := range set {
		if id != "" && key.KeyID == id {
			found = append(found, key)
		}
	}
	return found
}

// begin reads the keys anew, in a goroutine of its own: whoever needs them waits no longer than their own request lasts. It is called with mu held.
func (k *keys) begin(now time.Time) {
	k.tried = now
	if k.ctx.Err() != nil {
		return
	}
	flight := make(chan struct{})
	k.flight = flight
	k.flying.Go(func() {
		ctx, cancel := context.WithTimeout(k.ctx, k.within)
		defer cancel()
		text, err := k.source(ctx)
		var set []jose.JSONWebKey
		if err == nil {
			set, err = parseSet(text)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.flight = nil
		close(flight)
		k.down = err != nil
		switch {
		case err == nil:
			k.set, k.read = set, now
		case k.ctx.Err() != nil: // closed
		case k.read.IsZero():
			k.log.Warn("the keys of the issuer of tokens cannot be read: no token is taken", "error", err)
		default:
			k.log.Warn("the keys of the issuer of tokens cannot be read again: the last ones count", "until", k.read.Add(KeysLife).UTC(), "error", err)
		}
	})
}

func (k *keys) close() {
	k.mu.Lock()
	k.end()
	k.mu.Unlock()
	k.flying.Wait()
}

// parseSet reads a JWK Set. Keys that cannot sign a token are left out, as RFC 7517 (section 5) wants it: secrets, keys for encryption, kinds that are not known.
func parseSet(text []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("it is no JSON object with the member keys")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys, at most %d are read", len(set.Keys), maxKeys)
	}
	var usable []jose.JSONWebKey
	for _, one := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(one) == nil && signs(&key) {
			usable = append(usable, key)
		}
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("none of its %d keys can check a token", len(set.Keys))
	}
	return usable, nil
}

func signs(key *jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" {
		return false
	}
	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= leastRSABits && k.N.BitLen() <= mostRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return key.Valid()
	}
	return false
}
