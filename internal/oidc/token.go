package oidc

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json" // refuses members that occur twice, and tells their names apart by case
)

// algorithms are those whose keys are public. With the others ("none", HS256) whoever knows the public key could sign.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// types are what a token may call itself: an ID token, or an access token (RFC 9068). Others, such as logout+jwt, are no leave to do anything.
var types = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// letters are those of a token in the compact form. Readers of base64 pass over some others.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// header is what is used of a token's header. Nothing else in it is: where it names a key by an address or brings one along, that is ignored.
type header struct {
	alg jose.SignatureAlgorithm
	kid string // empty where there is none
}

func readHeader(token string) (header, error) {
	if len(token) > MaxTokenBytes {
		return header{}, refuse("it is longer than %d bytes", MaxTokenBytes)
	}
	first, _, _ := strings.Cut(token, ".")
	if !IsToken(token) || strings.ContainsFunc(token, func(r rune) bool { return !strings.ContainsRune(letters, r) }) {
		return header{}, refuse("it is not a signed token in the compact form")
	}
	if len(first) > maxHeaderBytes {
		return header{}, refuse("its header is longer than %d bytes", maxHeaderBytes)
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(first)
	var members map[string]any
	if err != nil || json.Unmarshal(text, &members) != nil || members == nil {
		return header{}, refuse("its header is not a JSON object in base64url in which no name occurs twice")
	}
	for _, name := range []string{"crit", "b64", "enc", "zip"} {
		if _, ok := members[name]; ok {
			return header{}, refuse("its header has %s, which this server does not understand", name)
		}
	}
	alg, _ := members["alg"].(string)
	if !slices.Contains(algorithms, jose.SignatureAlgorithm(alg)) {
		return header{}, refuse("its algorithm is not one of those that are signed with a private key, such as RS256, ES256 and EdDSA")
	}
	typ, ok := textOr(members, "typ")
	if !ok || !slices.Contains(types, strings.ToLower(typ)) {
		return header{}, refuse("its type is neither JWT nor at+jwt")
	}
	kid, ok := textOr(members, "kid")
	if !ok {
		return header{}, refuse("the kid of its header is not a text")
	}
	return header{jose.SignatureAlgorithm(alg), kid}, nil
}

// textOr is a member that is a text, or "" where it is absent; false where it is something else.
func textOr(members map[string]any, name string) (text string, ok bool) {
	value, there := members[name]
	if !there {
		return "", true
	}
	text, ok = value.(string)
	return text, ok
}

// claims are the members of a token whose signature was checked.
type claims map[string]any

func readClaims(payload []byte) (claims, error) {
	var c claims
	if !utf8.Valid(payload) || json.Unmarshal(payload, &c) != nil || c == nil {
		return nil, refuse("its claims are not a JSON object in which no name occurs twice")
	}
	return c, nil
}

// check refuses tokens that are for others, of others, over, or of the future.
func (c claims) check(issuer, audience string, now time.Time) (expires time.Time, err error) {
	switch sub := c.text("sub"); {
	case c.text("iss") != issuer:
		return expires, refuse("its issuer (iss) is not the one of this server")
	case !slices.Contains(c.texts("aud"), audience):
		return expires, refuse("its audience (aud) does not name this server")
	case sub == "" || len(sub) > maxSubject:
		return expires, refuse("its subject (sub) is not a text of 1 to %d bytes", maxSubject)
	case c["cnf"] != nil:
		return expires, refuse("it is bound to a key of its holder (cnf), which this server does not check")
	}
	expires, there, ok := c.time("exp")
	if !there || !ok {
		return expires, refuse("it does not say when it ends (exp)")
	}
	if !now.Before(expires.Add(skew)) {
		return expires, refuse("it ended at %s (exp); get a new one", expires.UTC().Format(time.RFC3339))
	}
	for _, name := range []string{"nbf", "iat"} {
		switch at, there, ok := c.time(name); {
		case !there:
		case !ok:
			return expires, refuse("its %s is not a time", name)
		case at.After(now.Add(skew)):
			return expires, refuse("it is not valid before %s (%s); compare the clocks of issuer and server", at.UTC().Format(time.RFC3339), name)
		}
	}
	return expires, nil
}

// text is a claim that is a text, or "".
func (c claims) text(name string) string {
	text, _ := c[name].(string)
	return text
}

// texts are those of a claim that is a text or a list. What is no text in a list is left out.
func (c claims) texts(name string) []string { return textsOf(c[name]) }

func textsOf(value any) (texts []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case bool:
		if v {
			return []string{"true"}
		}
		return []string{"false"}
	case []any:
		for _, item := range v {
			if text, ok := item.(string); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// maxSeconds is the year 9999: later times are no times that a token has.
const maxSeconds = 253402300799

// time is a claim in seconds since 1970, which may have a fraction (RFC 7519, section 2).
func (c claims) time(name string) (at time.Time, there, ok bool) {
	value, there := c[name]
	seconds, ok := value.(float64)
	if !ok || !(seconds >= 0 && seconds <= maxSeconds) {
		return at, there, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), there, true
}

// name is what people call the holder: in one line, and not too long. It says nothing about what the holder may do.
func (c claims) name() string {
	for _, claim := range []string{"preferred_username", "email", "name", "sub"} {
		name := strings.TrimSpace(strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, c.text(claim)))
		if runes := []rune(name); len(runes) > maxName {
			name = string(runes[:maxName])
		}
		if name != "" {
			return name
		}
	}
	return "?" // a subject of characters that are not shown
}
