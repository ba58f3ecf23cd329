// Package oidctest is an issuer of tokens for tests: a real one on a socket, over TLS, whose keys change and which can be down, slow or talkative.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Audience is whom its tokens are for.
const Audience = "holdoutd"

// Issuer signs tokens and publishes the keys to check them with.
type Issuer struct {
	*httptest.Server
	t testing.TB

	mu    sync.Mutex
	keys  []jose.JSONWebKey // private
	reply http.HandlerFunc  // in place of the key set; nil: the set

	Read atomic.Int64 // how often the key set was asked for
}

// New starts an issuer with one RSA key, "one". It ends with the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256"]}`, i.URL, i.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		i.Read.Add(1)
		i.mu.Lock()
		reply := i.reply
		i.mu.Unlock()
		if reply != nil {
			reply(w, r)
			return
		}
		w.Write(i.Set())
	})
	i.Server = httptest.NewTLSServer(mux)
	t.Cleanup(i.Server.Close)
	i.Rotate("one", RSA(t))
	return i
}

// RSA is a new key pair for RS256.
func RSA(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// EC is a new key pair for ES256.
func EC(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Ed is a new key pair for EdDSA.
func Ed(t testing.TB) crypto.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Rotate makes a key the issuer's only one.
func (i *Issuer) Rotate(id string, key crypto.Signer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = []jose.JSONWebKey{{Key: key, KeyID: id, Use: "sig"}}
}

// Reply is what the issuer does when its keys are asked for; nil: it gives them.
func (i *Issuer) Reply(f http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reply = f
}

// Add publishes another key, with which the issuer does not sign yet.
func (i *Issuer) Add(id string, key crypto.Signer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, jose.JSONWebKey{Key: key, KeyID: id, Use: "sig"})
}

// Key is the pair that the issuer signs with.
func (i *Issuer) Key() crypto.Signer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[0].Key.(crypto.Signer)
}

// Set is the issuer's key set, as JSON.
func (i *Issuer) Set() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, key := range i.keys {
		set.Keys = append(set.Keys, key.Public())
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	return text
}

// Claims are those of a right token for a subject, good for an hour from now.
func (i *Issuer) Claims(subject string, now time.Time) map[string]any {
	return map[string]any{"iss": i.URL, "aud": Audience, "sub": subject, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
}

// Token is a right token for a subject.
func (i *Issuer) Token(subject string) string { return i.Sign(i.Claims(subject, time.Now())) }

// Sign signs claims with the issuer's key.
func (i *Issuer) Sign(claims any) string {
	i.mu.Lock()
	key := i.keys[0]
	i.mu.Unlock()
	algorithm := jose.RS256
	switch key.Key.(type) {
	case *ecdsa.PrivateKey:
		algorithm = jose.ES256
	case ed25519.PrivateKey:
		algorithm = jose.EdDSA
	}
	return SignWith(i.t, jose.SigningKey{Algorithm: algorithm, Key: key}, "JWT", claims)
}

// SignWith signs claims by any key and algorithm; a []byte as it is.
func SignWith(t testing.TB, key jose.SigningKey, kind jose.ContentType, claims any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType(kind))
	if err != nil {
		t.Fatal(err)
	}
	var token string
	if text, ok := claims.([]byte); ok {
		var signed *jose.JSONWebSignature
		if signed, err = signer.Sign(text); err == nil {
			token, err = signed.CompactSerialize()
		}
	} else {
		token, err = jwt.Signed(signer).Claims(claims).Serialize()
	}
	if err != nil {
		t.Fatal(err)
	}
	return token
}
