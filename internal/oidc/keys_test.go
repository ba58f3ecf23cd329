package oidc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

// TestRotation: a new key of the issuer is believed when its first token comes, an old one until it is withdrawn. It notices a key set that is read
// once, one that is read for every token, and one that only grows.
func TestRotation(t *testing.T) {
	old, next := oidctest.NewKey(t, "old", jose.RS256), oidctest.NewKey(t, "new", jose.ES256)
	x := try(t, old)
	first := x.token(nil)
	for range 50 {
		x.believed("the old key", first)
	}
	if n := x.issuer.Fetches.Load(); n != 1 {
		t.Errorf("the keys were read %d times for one key", n)
	}
	x.issuer.Publish(old, next)
	x.key = next
	x.refused("the new key, at once after the last reading", x.token(nil), "published in the last 30 seconds")
	x.clock.pass(refreshLeast)
	x.believed("the new key", x.token(nil))
	x.believed("the old key", first)
	x.issuer.Publish(next)
	x.believed("the old key, before the keys are read", first)
	if err := x.verifier.keys.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.refused("the old key, withdrawn", first, "does not publish")
}

// TestFollow: the keys are read every ten minutes without any token, until the server stops.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		set := &keySet{now: time.Now, log: discard, read: func(context.Context) ([]byte, error) {
			reads++
			return nil, errors.New("down")
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go set.follow(ctx)
		time.Sleep(time.Hour + time.Minute)
		cancel()
		synctest.Wait()
		if reads != 6 {
			t.Errorf("the keys were read %d times in an hour", reads)
		}
	})
}

// TestUnknownKeys: whoever makes up ids of keys cannot make the server ask the issuer more than twice a minute, and requests that come together wait for
// one reading.
func TestUnknownKeys(t *testing.T) {
	x := try(t, oidctest.NewKey(t, "k", jose.ES256))
	made := make([]string, 200)
	for i := range made {
		k := x.key
		k.ID = fmt.Sprint("made-up-", i)
		made[i] = oidctest.Sign(t, k, x.issuer.Claims(audience, x.clock.now(), nil))
	}
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	x.issuer.Answer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-release
		w.Write(x.issuer.JWKS())
	}))
	x.clock.pass(refreshLeast)
	var all sync.WaitGroup
	for _, token := range made {
		all.Go(func() { x.refused("a key that nobody has", token, "does not publish") })
	}
	<-arrived
	x.believed("a known key, while the issuer is slow", x.token(nil))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.verifier.Check(gone, made[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait: %v", err)
	}
	close(release)
	all.Wait()
	for range 3 {
		for _, token := range made {
			x.refused("again", token, "does not publish")
		}
		x.clock.pass(refreshLeast / 4)
	}
	if n := x.issuer.Fetches.Load(); n != 2 {
		t.Errorf("%d made-up keys made the server read the keys %d times", 4*len(made), n-1)
	}
}

// TestOutage: the issuer's keys stay in use while they cannot be read, for some hours. It notices an outage of the issuer that ends the service at once, one
// that is never noticed, and an answer of the issuer that is taken for keys.
func TestOutage(t *testing.T) {
	x := try(t, oidctest.NewKey(t, "k", jose.ES256))
	private, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: private.Public(), KeyID: "weak"}, {Key: []byte(strings.Repeat("s", 32)), KeyID: "secret"}, {Key: x.key.Private, KeyID: "private"},
		{Key: x.key.Private.Public(), KeyID: "for-encryption", Use: "enc"}, {Key: x.key.Private.Public(), KeyID: "other", Algorithm: "RS256"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := oidctest.NewIssuer(t, oidctest.NewKey(t, "k", jose.ES256))
	many := `{"keys":[` + strings.Repeat(`{"kty":"x"},`, maxKeys) + `{"kty":"x"}]}`
	for what, answer := range map[string]http.HandlerFunc{
		"an error":           func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) },
		"not found":          func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"somewhere else":     func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/keys", 302) },
		"a page":             func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no keys":            func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
		"null":               func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `null`) },
		"keys for no tokens": func(w http.ResponseWriter, _ *http.Request) { w.Write(weak) },
		"too many keys":      func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, many) },
		"an endless document": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"keys":[`)
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		},
		"half a document": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"keys":[`)
		},
	} {
		x.issuer.Answer(answer)
		if err := x.verifier.keys.refresh(t.Context()); err == nil {
			t.Errorf("the issuer answers %s: the keys are %v", what, x.verifier.keys.keys)
		}
		x.believed("while the issuer answers "+what, x.token(nil))
	}
	x.clock.pass(keysLife)
	x.believed("keys of six hours ago", x.token(nil))
	x.clock.pass(time.Second)
	if _, err := x.verifier.Check(t.Context(), x.token(nil)); !errors.Is(err, ErrNoKeys) {
		t.Errorf("keys that could not be read for more than six hours: %v", err)
	}
	x.issuer.Answer(nil)
	if err := x.verifier.keys.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.believed("the issuer is back", x.token(nil))
}

// TestOddKeys: keys that this server does not know are left out, and the others are used.
func TestOddKeys(t *testing.T) {
	good := oidctest.NewKey(t, "good", jose.EdDSA)
	issuer := oidctest.NewIssuer(t, good)
	text := strings.Replace(string(issuer.JWKS()), `[`, `[{"kty":"OKP","crv":"X25519","kid":"x","x":"AAAA"},{"kty":"quantum","kid":"q"},{"kid":"nothing"},{"kty":"EC","crv":"P-256","kid":"off","x":"AA","y":"AA"},`, 1)
	keys, err := readKeys([]byte(text))
	if err != nil || len(keys) != 1 || keys[0].KeyID != "good" {
		t.Errorf("%v %v", keys, err)
	}
}
