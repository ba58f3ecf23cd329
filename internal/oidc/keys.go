package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// refreshEvery is how often the keys are read: a key that the issuer withdraws is believed no longer than this.
	refreshEvery = 10 * time.Minute
	// refreshLeast is the least time between two readings, whatever tokens come: whoever makes up ids of keys makes no more than two requests a minute
	// to the issuer, and a new key of the issuer is believed after this time at the latest.
	refreshLeast = 30 * time.Second
	// keysLife is how long keys are believed that cannot be read again. Tokens end sooner, and an issuer that is down makes no new ones.
	keysLife = 6 * time.Hour
	// fetchTime is for one document of the issuer. A request with an unknown key waits for two at most.
	fetchTime = 5 * time.Second
	// maxDocument is the largest document of the issuer, in bytes. Large ones have 20 kB.
	maxDocument = 256 << 10
	// maxKeys is how many keys an issuer may have.
	maxKeys = 100
	// RSA keys outside of these, in bits, are too weak, or so large that checking a signature takes long.
	leastRSA, mostRSA = 2048, 8192
)

// key is one of the issuer's, with the algorithms that it may be used for.
type key struct {
	jose.JSONWebKey
	algorithms []jose.SignatureAlgorithm
}

// keySet is what is known of the issuer's keys.
type keySet struct {
	read func(context.Context) ([]byte, error) // the JSON Web Key Set
	now  func() time.Time
	log  *slog.Logger

	mu       sync.Mutex
	keys     []key
	fresh    time.Time     // when they were last read
	tried    time.Time     // when that was last tried
	underway chan struct{} // closed when the reading that is under way ends; nil: none is
}

// find is the key with an id that signs by an algorithm. A token without an id has the only key for its algorithm.
func (s *keySet) find(ctx context.Context, kid string, alg jose.SignatureAlgorithm) (*key, error) {
	k, err := s.lookup(kid, alg)
	if !errors.Is(err, errUnknown) {
		return k, err
	}
	if err := s.again(ctx); err != nil {
		return nil, err
	}
	if k, err = s.lookup(kid, alg); errors.Is(err, errUnknown) {
		return nil, refuse("it is signed with a key that its issuer does not publish, or has published in the last %.0f seconds", refreshLeast.Seconds())
	}
	return k, err
}

var errUnknown = errors.New("oidc: no such key is known")

func (s *keySet) lookup(kid string, alg jose.SignatureAlgorithm) (*key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.fresh) > keysLife {
		return nil, ErrNoKeys
	}
	var named bool
	var fit []*key
	for i := range s.keys {
		k := &s.keys[i]
		if kid != "" && k.KeyID != kid {
			continue
		}
		named = true
		if slices.Contains(k.algorithms, alg) {
			fit = append(fit, k)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return nil, refuse("several keys of its issuer have its kid and algorithm")
	case named:
		return nil, refuse("its algorithm is not that of its key")
	}
	return nil, errUnknown
}

// again reads the keys, unless that was tried a moment ago, and waits. Requests that come meanwhile wait for the same reading.
func (s *keySet) again(ctx context.Context) error {
	s.mu.Lock()
	done := s.underway
	if done == nil && s.now().Sub(s.tried) >= refreshLeast {
		done = s.begin(context.WithoutCancel(ctx)) // who waits may leave; others wait too
	}
	s.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin reads the keys in the background. The caller holds the lock.
func (s *keySet) begin(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	s.underway, s.tried = done, s.now()
	go func() {
		defer close(done)
		if err := s.update(ctx); err != nil {
			s.log.Warn("the keys of the tokens' issuer could not be read; the known ones stay in use for now", "error", err)
		}
	}()
	return done
}

// update reads the keys and ends what begin began.
func (s *keySet) update(ctx context.Context) error {
	keys, err := s.fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway = nil
	if err == nil {
		s.keys, s.fresh = keys, s.now()
	}
	return err
}

func (s *keySet) fetch(ctx context.Context) ([]key, error) {
	text, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	return readKeys(text)
}

// refresh reads the keys now.
func (s *keySet) refresh(ctx context.Context) error {
	s.mu.Lock()
	s.tried = s.now()
	s.mu.Unlock()
	return s.update(ctx)
}

// follow reads the keys now and then until ctx is done.
func (s *keySet) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(refreshEvery):
		}
		s.mu.Lock()
		if s.underway == nil {
			s.begin(ctx)
		}
		s.mu.Unlock()
	}
}

// readKeys reads a JSON Web Key Set. Keys of kinds that are not known, and keys for encryption, are left out, as RFC 7517 says.
func readKeys(text []byte) ([]key, error) {
	var set struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("oidc: the issuer's keys are no JSON Web Key Set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("oidc: the issuer has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	var keys []key
	for _, text := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(text) != nil || k.Use != "" && k.Use != "sig" {
			continue
		}
		algorithms := algorithmsOf(k.Key)
		if k.Algorithm != "" {
			if !slices.Contains(algorithms, jose.SignatureAlgorithm(k.Algorithm)) {
				continue
			}
			algorithms = []jose.SignatureAlgorithm{jose.SignatureAlgorithm(k.Algorithm)}
		}
		if len(algorithms) > 0 {
			keys = append(keys, key{k, algorithms})
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("oidc: the issuer publishes no key that signs by " + fmt.Sprint(algorithms))
	}
	return keys, nil
}

// algorithmsOf are those that a public key signs by; none for private and symmetric keys, which nobody may publish.
func algorithmsOf(public any) []jose.SignatureAlgorithm {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= leastRSA && bits <= mostRSA {
			return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
		}
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return []jose.SignatureAlgorithm{jose.ES256}
		case elliptic.P384():
			return []jose.SignatureAlgorithm{jose.ES384}
		case elliptic.P521():
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}

// source is how the issuer's keys are read: from the file or the address that was given, or from where the issuer says.
func (c Config) source() func(context.Context) ([]byte, error) {
	client := newClient()
	switch {
	case strings.Contains(c.Keys, "://"):
		return func(ctx context.Context) ([]byte, error) { return get(ctx, client, c.Keys) }
	case c.Keys != "":
		return func(context.Context) ([]byte, error) { return readFile(c.Keys) }
	}
	return func(ctx context.Context) ([]byte, error) {
		at := strings.TrimSuffix(c.Issuer, "/") + "/.well-known/openid-configuration"
		text, err := get(ctx, client, at)
		if err != nil {
			return nil, err
		}
		var says struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		if err := json.Unmarshal(text, &says); err != nil {
			return nil, fmt.Errorf("oidc: %s is no discovery document: %w", at, err)
		}
		if says.Issuer != c.Issuer {
			return nil, fmt.Errorf("oidc: %s says that its issuer is %q, not %q; they must be the same, letter by letter", at, says.Issuer, c.Issuer)
		}
		if err := checkURL(says.Keys); err != nil {
			return nil, fmt.Errorf("oidc: the jwks_uri of %s %w", at, err)
		}
		return get(ctx, client, says.Keys)
	}
}

// checkURL refuses addresses that others could answer for: all but https, and http of this machine.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is not an https URL", text)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return fmt.Errorf("%q must begin with https:// (http:// is for this machine alone)", text)
	}
	return nil
}

func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.DisableKeepAlives = true // one request in minutes
	return &http.Client{
		Transport: transport, Timeout: fetchTime,
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it leads on to %s, and redirects are not followed", r.URL.Redacted())
		},
	}
}

func get(ctx context.Context, client *http.Client, at string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	r.Header.Set("Accept", "application/json")
	reply, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("oidc: the issuer does not answer: %w", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("oidc: %s answers %s", at, reply.Status)
	}
	return readLimited(reply.Body, at)
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("oidc: the issuer's keys: %w", err)
	}
	defer f.Close()
	return readLimited(f, name)
}

func readLimited(r io.Reader, from string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("oidc: %s: %w", from, err)
	}
	if len(text) > maxDocument {
		return nil, fmt.Errorf("oidc: %s is larger than %d bytes", from, maxDocument)
	}
	return text, nil
}
