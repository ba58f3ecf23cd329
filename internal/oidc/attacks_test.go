package oidc

import (
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/holdoutd/holdoutd/internal/oidc/oidctest"
)

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// hs256 signs as with a shared secret.
func hs256(header string, payload string, secret []byte) string {
	signed := encode(header) + "." + payload
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signed))
	return signed + "." + encode(string(mac.Sum(nil)))
}

// TestForgeries: nobody but the issuer makes a token. Each case is a known attack on readers of tokens; it notices one that works, and one that makes
// the server ask the network.
func TestForgeries(t *testing.T) {
	key := oidctest.NewKey(t, "k1", jose.RS256)
	x := try(t, key)
	token := x.token(nil)
	x.believed("the issuer's", token)
	parts := strings.Split(token, ".")
	payload, signature := parts[1], parts[2]
	public := key.Private.Public().(*rsa.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	foreign := oidctest.NewKey(t, "k1", jose.RS256)
	foreignJWK, err := json.Marshal(jose.JSONWebKey{Key: foreign.Private.Public(), KeyID: "k1"})
	if err != nil {
		t.Fatal(err)
	}
	elliptic := oidctest.NewKey(t, "k1", jose.ES256)
	claims := x.issuer.Claims(audience, x.clock.now(), nil)
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	evil := encode(strings.Replace(string(text), `"data"`, `"owners"`, 1))
	fetches := x.issuer.Fetches.Load()

	for what, forged := range map[string]string{
		"no algorithm":                       encode(`{"alg":"none"}`) + "." + evil + ".",
		"no algorithm, with a key":           encode(`{"alg":"none","kid":"k1","typ":"JWT"}`) + "." + evil + ".",
		"no algorithm, in capitals":          encode(`{"alg":"NONE","kid":"k1"}`) + "." + evil + "." + signature,
		"no algorithm named":                 encode(`{"kid":"k1"}`) + "." + evil + "." + signature,
		"an algorithm that is a list":        encode(`{"alg":["RS256"],"kid":"k1"}`) + "." + payload + "." + signature,
		"the public key as a secret, PEM":    hs256(`{"alg":"HS256","kid":"k1","typ":"JWT"}`, evil, pemKey),
		"the public key as a secret, DER":    hs256(`{"alg":"HS256","kid":"k1","typ":"JWT"}`, evil, der),
		"the modulus as a secret":            hs256(`{"alg":"HS256","kid":"k1","typ":"JWT"}`, evil, public.N.Bytes()),
		"an empty secret":                    hs256(`{"alg":"HS256","kid":"k1","typ":"JWT"}`, evil, nil),
		"another issuer's key":               oidctest.Sign(t, foreign, claims),
		"another key and algorithm":          oidctest.Sign(t, elliptic, claims),
		"a key that it brings along":         oidctest.SignBytes(t, foreign, text, map[string]any{"jwk": json.RawMessage(foreignJWK)}),
		"a key at an address":                oidctest.SignBytes(t, foreign, text, map[string]any{"jku": "https://evil.example/keys", "x5u": "https://evil.example/cert"}),
		"other claims":                       parts[0] + "." + evil + "." + signature,
		"no signature":                       parts[0] + "." + payload + ".",
		"half a signature":                   parts[0] + "." + payload + "." + signature[:len(signature)/2],
		"a signature of zeros":               parts[0] + "." + payload + "." + encode(strings.Repeat("\x00", 256)),
		"another header":                     encode(`{"alg":"RS256","kid":"k1","typ":"JWT"} `) + "." + payload + "." + signature,
		"another algorithm of the same key":  oidctest.Sign(t, oidctest.Key{ID: "k1", Algorithm: jose.PS256, Private: key.Private}, claims),
		"critical members":                   oidctest.SignBytes(t, key, text, map[string]any{"crit": []string{"exp2"}, "exp2": 1}),
		"critical members that are known":    oidctest.SignBytes(t, key, text, map[string]any{"crit": []string{"b64"}, "b64": true}),
		"no critical members":                oidctest.SignBytes(t, key, text, map[string]any{"crit": []string{}}),
		"a payload that is not encoded":      oidctest.SignBytes(t, key, text, map[string]any{"b64": true}),
		"compressed":                         oidctest.SignBytes(t, key, text, map[string]any{"zip": "DEF"}),
		"a token to sign out":                oidctest.SignBytes(t, key, text, map[string]any{"typ": "logout+jwt"}),
		"a security event":                   oidctest.SignBytes(t, key, text, map[string]any{"typ": "secevent+jwt"}),
		"a type that is no text":             oidctest.SignBytes(t, key, text, map[string]any{"typ": 1}),
		"an algorithm twice":                 encode(`{"alg":"RS256","kid":"k1","alg":"none"}`) + "." + payload + "." + signature,
		"an algorithm twice, escaped":        encode(`{"alg":"none","kid":"k1","\u0061lg":"RS256"}`) + "." + payload + "." + signature,
		"a key that is no text":              encode(`{"alg":"RS256","kid":1}`) + "." + payload + "." + signature,
		"a header that is a list":            encode(`["RS256"]`) + "." + payload + "." + signature,
		"a header that is null":              encode(`null`) + "." + payload + "." + signature,
		"two headers":                        encode(`{"alg":"RS256","kid":"k1"}{}`) + "." + payload + "." + signature,
		"a header in another base64":         base64.StdEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"k1"}`)) + "." + payload + "." + signature,
		"a line break within":                parts[0] + "." + payload + "\n." + signature,
		"five parts, as if it was encrypted": token + ".a.b",
		"two parts":                          parts[0] + "." + payload,
		"nothing":                            "",
		"dots":                               "..",
		"a key of the server":                "hk_" + strings.Repeat("a", 43),
		"a JSON serialization":               `{"payload":"` + payload + `","signatures":[{"protected":"` + parts[0] + `","signature":"` + signature + `"}]}`,
		"an endless token":                   parts[0] + "." + payload + "." + strings.Repeat("A", MaxTokenBytes),
		"an endless header":                  encode(`{"alg":"RS256","kid":"`+strings.Repeat("k", maxHeaderBytes)+`"}`) + "." + payload + "." + signature,
		"deep claims":                        oidctest.SignBytes(t, foreign, []byte(strings.Repeat("[", 5000)), nil),
	} {
		x.refused(what, forged, "")
	}
	if now := x.issuer.Fetches.Load(); now != fetches {
		t.Errorf("tokens with known keys made the server read the keys %d times", now-fetches)
	}
	x.believed("the issuer's, after all that", token)
	// A compact form is decoded more than once on its way: the last letter of a part has bits that mean nothing, and some readers ignore them.
	if who, err := x.verifier.Check(t.Context(), token+"="); err == nil {
		t.Errorf("a token with padding is believed: %+v", who)
	}
}

// TestKeyIDs: the id of a key is compared and nothing else. It notices one that is a path, an address or a statement to somebody, an answer that has
// it, and a key without an id that is taken for any.
func TestKeyIDs(t *testing.T) {
	x := try(t, oidctest.NewKey(t, "k1", jose.ES256), oidctest.NewKey(t, "k2", jose.ES256), oidctest.NewKey(t, "r", jose.RS256))
	x.believed("k1", x.token(nil))
	for _, id := range []string{"../../dev/null", "k1'; DROP TABLE keys; --", "https://evil.example/keys", "k1\x00", "K1", " k1", "k", "k2"} {
		k := x.key
		k.ID = id
		x.refused(fmt.Sprintf("kid %q", id), oidctest.Sign(t, k, x.issuer.Claims(audience, x.clock.now(), nil)), "")
	}
	k := x.key
	k.ID = ""
	unnamed := func() string { return oidctest.Sign(t, k, x.issuer.Claims(audience, x.clock.now(), nil)) }
	x.refused("no id, of two keys", unnamed(), "several keys")
	x.issuer.Publish(x.key, oidctest.NewKey(t, "r", jose.RS256))
	if err := x.verifier.keys.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.believed("no id, of the only key for the algorithm", unnamed())
}

// FuzzHeader signs whatever header comes with the issuer's own key, and gives the text as it is too. What is believed has an allowed algorithm, no critical
// members and no member twice.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{
		`{"alg":"ES256","kid":"k"}`, `{"alg":"none"}`, `{"alg":"ES256","kid":"k","crit":["x"],"x":1}`, `{"alg":"ES256","alg":"none"}`, `{"alg":"HS256"}`,
		`{"alg":"ES256","kid":"k","typ":"at+JWT","x5t":"AA"}`, `{"alg":"ES256","jwk":{"kty":"EC"}}`, `{"alg":"ES256","kid":null}`, "{}", "a.b.c", "..",
	} {
		f.Add(seed)
	}
	key := oidctest.NewKey(f, "k", jose.ES256)
	issuer := oidctest.NewIssuer(f, key)
	v, err := Open(f.Context(), Config{Issuer: issuer.URL, Audience: audience, Analyst: []Rule{{{"sub", "1"}}}})
	if err != nil {
		f.Fatal(err)
	}
	payload := `{"iss":"` + issuer.URL + `","aud":"` + audience + `","sub":"1","exp":253402300799}`
	f.Fuzz(func(t *testing.T, text string) {
		if who, err := v.Check(t.Context(), text); err == nil {
			t.Fatalf("%q is believed, of %+v", text, who)
		}
		signed := encode(text) + "." + encode(payload)
		who, err := v.Check(t.Context(), signed+"."+encode(string(oidctest.ES256(t, key, signed))))
		if err != nil {
			return
		}
		var h map[string]any
		if json.Unmarshal([]byte(text), &h) != nil || h["alg"] != "ES256" || h["crit"] != nil || !slices.Contains([]any{"k", "", nil}, h["kid"]) || strings.Count(text, `"alg"`) > 1 {
			t.Fatalf("the header %q is believed, of %+v", text, who)
		}
	})
}

// TestAlgorithmsArePublic: every algorithm that is accepted has a public and a private key. It notices one with a shared secret, for which the keys that the
// issuer publishes would be the secret: no key here has it, but the list is the first of two doors.
func TestAlgorithmsArePublic(t *testing.T) {
	for _, alg := range algorithms {
		if !slices.Contains([]string{"RS", "PS", "ES", "Ed"}, string(alg)[:2]) {
			t.Errorf("%s is accepted", alg)
		}
	}
	for _, alg := range []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512, "none"} {
		if _, err := readHeader(encode(`{"alg":"`+string(alg)+`"}`) + ".e30.AA"); err == nil {
			t.Errorf("a header with %s is read", alg)
		}
	}
	if got := algorithmsOf([]byte("a secret of some length, published")); got != nil {
		t.Errorf("a shared secret signs by %v", got)
	}
}
