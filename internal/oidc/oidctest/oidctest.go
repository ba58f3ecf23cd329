// Package oidctest is an OpenID Connect issuer for tests: a real one on a socket of this machine, with discovery, keys that rotate, and tokens.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Key is one with which an issuer signs.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// Issuer serves its discovery document and its keys.
type Issuer struct {
	URL     string
	Fetches atomic.Int64 // of the keys

	mu   sync.Mutex
	keys []Key
	jwks http.Handler // nil: the keys
}

// NewIssuer starts one with no keys. It ends with the test.
func NewIssuer(t testing.TB, keys ...Key) *Issuer {
	t.Helper()
	i := &Issuer{keys: keys}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.URL = server.URL
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "response_types_supported": []string{"id_token"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		i.Fetches.Add(1)
		i.mu.Lock()
		instead := i.jwks
		i.mu.Unlock()
		if instead != nil {
			instead.ServeHTTP(w, r)
			return
		}
		w.Write(i.JWKS())
	})
	return i
}

// Publish replaces the keys.
func (i *Issuer) Publish(keys ...Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Answer serves something else than the keys where they are; nil serves them again.
func (i *Issuer) Answer(h http.Handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.jwks = h
}

// JWKS is the set of public keys.
func (i *Issuer) JWKS() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"})
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	return text
}

// Claims are those of a token of ana, in the group data, that lasts five minutes from now on. What is given replaces members; nil removes one.
func (i *Issuer) Claims(audience string, now time.Time, other map[string]any) map[string]any {
	c := map[string]any{
		"iss": i.URL, "sub": "7a1d", "aud": audience, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"preferred_username": "ana", "groups": []string{"data"},
	}
	for name, value := range other {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// Sign makes a token.
func Sign(t testing.TB, k Key, claims any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return SignBytes(t, k, payload, nil)
}

// SignBytes signs a payload, with members of the header beside alg and kid; no id of the key if it is empty.
func SignBytes(t testing.TB, k Key, payload []byte, header map[string]any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("JWT")
	for name, value := range header {
		o = o.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}, o)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// NewKey makes a key for an algorithm: RSA of 2048 bits, an elliptic curve, or Ed25519.
func NewKey(t testing.TB, id string, alg jose.SignatureAlgorithm) Key {
	t.Helper()
	var private crypto.Signer
	var err error
	switch alg {
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.ES512:
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, alg, private}
}

// ES256 signs a text as the algorithm of this name does, whatever the text is: no library would sign some of those that attacks are made of.
func ES256(t testing.TB, k Key, text string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.Private.(*ecdsa.PrivateKey), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signature
}
