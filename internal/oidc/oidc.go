// Package oidc checks bearer tokens of an OpenID Connect issuer: signed JWTs, by the keys that the issuer publishes. It knows no holdout and gives no
// rights: it says whom a token names. Signatures and claims are go-jose's to check; what is decided here is which tokens are looked at, whose keys count, and how
// often they are read.
package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// MaxTokenBytes is the longest token: those that name a person's many groups have some 4 KiB, and a proxy often takes no header above 8.
	MaxTokenBytes = 16 << 10
	// MaxSubjectBytes is the longest subject. OpenID Connect has at most 255 characters; workloads' are paths and can be longer.
	MaxSubjectBytes = 512
	// Leeway is how far the clocks of issuer and server may differ: a token is good so much longer, and so much earlier.
	Leeway = time.Minute
)

// Algorithms are those that a token may be signed with. All are of a key pair: a secret that both sides know would have to be the issuer's public key, which everyone has.
var Algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// types are what the header of a token may call it, in lower case. Other tokens of an issuer, such as those that say that somebody signed out, are not for signing in.
var types = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// Error says why a token is not taken. It holds nothing of the token but what its subject may read.
type Error struct {
	Detail      string
	Unavailable bool          // the issuer's keys are not to be had now: the token may be right
	RetryAfter  time.Duration // when they are read again
}

func (e *Error) Error() string { return "oidc: " + e.Detail }

func refuse(format string, args ...any) error { return &Error{Detail: fmt.Sprintf(format, args...)} }

// Identity is whom a token names, and until when.
type Identity struct {
	Subject string    // the value of the claim
	Issued  time.Time // when the issuer made the token, to the second; zero where it does not say (iat)
	Until   time.Time // its end, with the leeway
}

// An Issuer is one whose tokens are taken.
type Issuer struct {
	name, audience, claim string
	keys                  *keys
	now                   func() time.Time
}

// Name is the issuer's, as its tokens say it.
func (i *Issuer) Name() string { return i.name }

// Claim is the one that says whom a token names.
func (i *Issuer) Claim() string { return i.claim }

// Shaped reports whether a bearer looks like a token: three texts with dots between them. No key has a dot.
func Shaped(bearer string) bool { return strings.Count(bearer, ".") == 2 }

// Identify checks a token and says whom it names. Its error is an *Error, or that of ctx.
func (i *Issuer) Identify(ctx context.Context, token string) (Identity, error) {
	if len(token) > MaxTokenBytes {
		return Identity{}, refuse("the token has %d bytes, and at most %d are read", len(token), MaxTokenBytes)
	}
	signed, err := jwt.ParseSigned(token, Algorithms)
	if err != nil {
		return Identity{}, refuse("the token is not one that is signed by an algorithm of this list: %s", algorithms())
	}
	header := signed.Headers[0]
	if kind, _ := header.ExtraHeaders["typ"].(string); !slices.Contains(types, strings.ToLower(kind)) {
		return Identity{}, refuse("the token is not one for signing in: its header has another typ than JWT and at+jwt")
	}
	candidates, err := i.keys.find(ctx, header.KeyID)
	if err != nil {
		return Identity{}, err
	}
	var claims jwt.Claims
	var members map[string]any
	verified := false
	for _, key := range candidates {
		if fits(key, header.Algorithm) && signed.Claims(key.Key, &claims, &members) == nil {
			verified = true
			break
		}
	}
	if !verified {
		return Identity{}, refuse("the token's signature is not of the issuer's key, or its claims are no JSON of one spelling")
	}
	return i.read(&claims, members)
}

// read checks what a token with a right signature says.
func (i *Issuer) read(claims *jwt.Claims, members map[string]any) (Identity, error) {
	if claims.Expiry == nil {
		return Identity{}, refuse("the token has no end (exp)")
	}
	err := claims.ValidateWithLeeway(jwt.Expected{Issuer: i.name, AnyAudience: jwt.Audience{i.audience}, Time: i.now()}, Leeway)
	switch {
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return Identity{}, refuse("the token is of another issuer (iss) than %q", i.name)
	case errors.Is(err, jwt.ErrInvalidAudience):
		return Identity{}, refuse("the token is for another audience (aud) than %q: ask the issuer for one that is for it", i.audience)
	case errors.Is(err, jwt.ErrExpired):
		return Identity{}, refuse("the token has expired: get a new one of the issuer")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return Identity{}, refuse("the token begins later (nbf or iat): compare the clocks of the issuer and this server")
	case err != nil:
		return Identity{}, refuse("the token's claims are not right")
	}
	subject, ok := members[i.claim].(string)
	if !ok {
		return Identity{}, refuse("the token has no claim %q that is a text", i.claim)
	}
	if err := CheckSubject(subject); err != nil {
		return Identity{}, refuse("the token's claim %q %v", i.claim, err)
	}
	if i.claim == "email" && members["email_verified"] != true { // some issuers let people write an address of others there, and leave the member out
		return Identity{}, refuse("the token does not say that the issuer has verified its address (email_verified); take another claim, such as sub")
	}
	who := Identity{Subject: subject, Until: claims.Expiry.Time().Add(Leeway)}
	if claims.IssuedAt != nil {
		who.Issued = claims.IssuedAt.Time()
	}
	return who, nil
}

// CheckSubject says what is wrong with a subject: one that two spellings could stand for, or that is no line of text.
func CheckSubject(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > MaxSubjectBytes:
		return fmt.Errorf("is longer than %d bytes", MaxSubjectBytes)
	case !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError): // what is no UTF-8 is read as this character: two subjects would be one
		return errors.New("is not a text in UTF-8")
	case strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return errors.New("has control characters")
	}
	return nil
}

func algorithms() string {
	names := make([]string, len(Algorithms))
	for n, a := range Algorithms {
		names[n] = string(a)
	}
	return strings.Join(names, ", ")
}

// fits reports whether a key may sign by an algorithm: by its kind, and by what the issuer says of it.
func fits(key jose.JSONWebKey, algorithm string) bool {
	if key.Algorithm != "" && key.Algorithm != algorithm {
		return false
	}
	switch key.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		return strings.HasPrefix(algorithm, "ES")
	case ed25519.PublicKey:
		return algorithm == string(jose.EdDSA)
	}
	return false
}
