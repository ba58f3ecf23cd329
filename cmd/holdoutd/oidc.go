package main

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/internal/oidc"
)

// oidcFlags say whose tokens a server takes beside keys.
type oidcFlags struct{ name, audience, keys, claim string }

func (f *oidcFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "oidc-issuer", "", "OpenID Connect issuer whose tokens are taken beside keys, as they name it: https://…")
	flags.StringVar(&f.audience, "oidc-audience", "", "whom a token must be for (aud)")
	flags.StringVar(&f.keys, "oidc-jwks", "", "URL or file of the issuer's keys, a JWK Set (default: what the issuer's /.well-known/openid-configuration names)")
	flags.StringVar(&f.claim, "oidc-claim", oidc.DefaultClaim, "the claim that names a token's subject; it must be one that the issuer gives to nobody else, ever")
}

// issuer is nil where no tokens are taken.
func (f *oidcFlags) issuer(logger *slog.Logger) (*oidc.Issuer, error) {
	switch {
	case f.name == "" && f.audience == "" && f.keys == "" && (f.claim == "" || f.claim == oidc.DefaultClaim):
		return nil, nil
	case f.name == "":
		return nil, misuse("--oidc-audience, --oidc-jwks and --oidc-claim are about the tokens of an issuer; name it with --oidc-issuer https://…")
	case f.audience == "":
		return nil, misuse("--oidc-issuer needs --oidc-audience: whom a token must be for. Without it each token of the issuer would do, also those that are for others")
	}
	issuer, err := oidc.New(oidc.Options{Issuer: f.name, Audience: f.audience, Keys: f.keys, Claim: f.claim, Logger: logger})
	if err != nil {
		return nil, misuse("--oidc-…: %v", err)
	}
	logger.Info("tokens of an issuer are taken beside keys", "issuer", f.name, "audience", f.audience, "claim", issuer.Claim())
	return issuer, nil
}
