// Package oidc checks tokens of an OpenID Connect issuer: JSON Web Tokens that it signed, which say who somebody is. It makes no tokens, signs
// nobody in and keeps nothing of a token.
//
// A token is believed where the issuer's published key has signed it under an algorithm with a public key, for this server's audience, and where it
// is neither over nor of the future. What its holder may do follows from its claims by rules that the operator wrote, anew at each request.
//
// The issuer's keys are read at the start and every [refreshEvery] after that, in the background. A request waits for the network in one case: its
// token names a key that is not known, and the keys were not read within [refreshLeast].
//
// Tokens are RFC 7519 and 9068, signatures RFC 7515, keys RFC 7517, discovery OpenID Connect Discovery 1.0; what is refused beyond them is
// RFC 8725 (best current practices).
package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// MaxTokenBytes is the longest token. Those of Entra with 200 groups have some 10,000.
	MaxTokenBytes = 16 << 10
	// maxHeaderBytes is the longest header of a token, in base64: an algorithm, a type, the id of a key and its fingerprints.
	maxHeaderBytes = 4 << 10
	// maxSubject is the longest subject, in bytes. OpenID Connect allows 255 ASCII characters.
	maxSubject = 255
	// maxName is the longest name that is shown of a person, in characters, as that of a key.
	maxName = 200
	// skew is how far the clocks of issuer and server may be apart.
	skew = time.Minute
	// prefix begins the ids of principals; those of keys begin with key_.
	prefix = "oidc:"
	// maxKnown is how many names are remembered.
	maxKnown = 10_000
)

// Role is what the holder of a token may do.
type Role string

// The roles that rules give, the strongest first: where rules of several hold, a token has the first of these. No rule that holds is no role: the empty text.
const (
	Admin   Role = "admin"
	Analyst Role = "analyst"
	Granted Role = "granted" // an analyst for whom there is what it was granted, and nothing else
)

// Config says which tokens are believed.
type Config struct {
	Issuer   string // the issuer's URL, exactly as its tokens have it in iss
	Audience string // what a token must name in aud: the id that this server has at the issuer
	// Keys is where the issuer's keys are, as a JSON Web Key Set: an https URL or a file. Empty: where the issuer's discovery document says.
	Keys string
	// Admin, Analyst and Granted are who may do what: a token has the strongest role for which one of the rules holds. They are in that order.
	Admin, Analyst, Granted []Rule
	Logger                  *slog.Logger     // of refreshes that fail; nil: no log
	Now                     func() time.Time // nil: time.Now
}

// Identity is whom a token is of.
type Identity struct {
	ID      string // of the principal: see [ID]
	Name    string // for people: the user name, the address, the name or the subject
	Role    Role   // empty where no rule gives one
	Expires time.Time
}

// Refusal is why a token is not believed, for its holder.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return "oidc: the token is refused: " + r.Reason }

func refuse(format string, args ...any) *Refusal { return &Refusal{fmt.Sprintf(format, args...)} }

// ErrNoKeys says that the issuer's keys could not be read for so long that the known ones are not used any more.
var ErrNoKeys = errors.New("oidc: the issuer's keys could not be read for too long")

// Verifier checks the tokens of one issuer. It is safe for concurrent use.
type Verifier struct {
	config Config
	keys   *keySet

	mu    sync.Mutex
	known map[string]string // names, by id
}

// discard is the log of who wants none.
var discard = slog.New(slog.DiscardHandler)

// Open reads the issuer's keys, and fails where it cannot. It goes on reading them until ctx is done.
func Open(ctx context.Context, c Config) (*Verifier, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = discard
	}
	v := &Verifier{config: c, known: map[string]string{}}
	v.keys = &keySet{read: c.source(), now: c.Now, log: c.Logger}
	if err := v.keys.refresh(ctx); err != nil {
		return nil, err
	}
	go v.keys.follow(ctx)
	return v, nil
}

// ConfigError is a setting that makes no sense. Setting is its name on the command line without "oidc-".
type ConfigError struct{ Setting, Detail string }

func (e *ConfigError) Error() string { return "oidc: " + e.Setting + " " + e.Detail }

func (c Config) check() error {
	if err := checkURL(c.Issuer); err != nil {
		return &ConfigError{"issuer", err.Error()}
	}
	if strings.ContainsAny(c.Issuer, "?#") {
		return &ConfigError{"issuer", "must have neither ? nor #"}
	}
	if c.Audience == "" {
		return &ConfigError{"audience", "is missing: what the issuer's tokens for this server have in aud"}
	}
	if strings.Contains(c.Keys, "://") {
		if err := checkURL(c.Keys); err != nil {
			return &ConfigError{"jwks", err.Error()}
		}
	}
	if len(c.Admin)+len(c.Analyst)+len(c.Granted) == 0 {
		return &ConfigError{"analyst", "is missing, and so are oidc-granted and oidc-admin, so that no token could do anything"}
	}
	return c.checkGranted()
}

// checkGranted refuses a rule that would limit nobody: whoever it holds for is an analyst or an admin by another one, which is stronger.
func (c Config) checkGranted() error {
	for _, stronger := range []struct {
		setting string
		rules   []Rule
	}{{"admin", c.Admin}, {"analyst", c.Analyst}} {
		for _, wide := range stronger.rules {
			for _, granted := range c.Granted {
				if granted.within(wide) {
					return &ConfigError{"granted", fmt.Sprintf("%q limits nobody: oidc-%s %q holds for the same tokens, and is stronger; name others there", granted, stronger.setting, wide)}
				}
			}
		}
	}
	return nil
}

// IsToken reports whether a bearer text has the form of a token: three parts with dots between them. No key of the server has one.
func IsToken(text string) bool { return strings.Count(text, ".") == 2 }

// Check says whom a token is of. Errors are a [*Refusal], [ErrNoKeys], or that of ctx, while a key was waited for.
func (v *Verifier) Check(ctx context.Context, token string) (Identity, error) {
	h, err := readHeader(token)
	if err != nil {
		return Identity{}, err
	}
	key, err := v.keys.find(ctx, h.kid, h.alg)
	if err != nil {
		return Identity{}, err
	}
	// The algorithm is the one that the key was found for. A key that the header brings along is never used.
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{h.alg})
	if err != nil {
		return Identity{}, refuse("it is not a signed token in the compact form")
	}
	payload, err := signed.Verify(key.Key)
	if err != nil {
		return Identity{}, refuse("its signature is not the issuer's")
	}
	claims, err := readClaims(payload)
	if err != nil {
		return Identity{}, err
	}
	return v.identify(claims)
}

func (v *Verifier) identify(c claims) (Identity, error) {
	expires, err := c.check(v.config.Issuer, v.config.Audience, v.config.Now())
	if err != nil {
		return Identity{}, err
	}
	who := Identity{ID: ID(v.config.Issuer, c.text("sub")), Name: c.name(), Expires: expires}
	switch {
	case anyHolds(v.config.Admin, c):
		who.Role = Admin
	case anyHolds(v.config.Analyst, c):
		who.Role = Analyst
	case anyHolds(v.config.Granted, c):
		who.Role = Granted
	}
	if who.Role != "" {
		v.remember(who)
	}
	return who, nil
}

// ID is the id of the principal with a subject: "oidc:" and 32 characters that issuer and subject determine (160 bits of SHA-256). It stays the same
// for as long as the issuer calls somebody the same, whatever else a token says.
func ID(issuer, subject string) string {
	h := sha256.Sum256([]byte(issuer + "\x00" + subject)) // no issuer has a zero byte: it is a URL
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(h[:20]))
}

// IsID reports whether a principal is one whose token came from an issuer.
func IsID(id string) bool { return strings.HasPrefix(id, prefix) }

// remember keeps the name of who came, so that people can be shown it beside what they asked. Nothing follows from it.
func (v *Verifier) remember(who Identity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.known[who.ID]; !ok && len(v.known) >= maxKnown {
		for id := range v.known { // any of them
			delete(v.known, id)
			break
		}
	}
	v.known[who.ID] = who.Name
}

// NameOf is the name that a principal had when its last token was checked. It is not known before a first one came since the start.
func (v *Verifier) NameOf(id string) (name string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	name, ok = v.known[id]
	return name, ok
}
