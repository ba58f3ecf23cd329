package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/internal/oidc"
)

// oidcFlags say whose tokens are believed beside the server's own keys.
type oidcFlags struct {
	issuer, audience, keys string
	admin, analyst         []string
	granted                []string // analysts for whom there is what they were granted alone
}

func (f *oidcFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.issuer, "oidc-issuer", "", "accept tokens (JWT) of this OpenID Connect issuer beside keys: its URL, exactly as its tokens have it in iss")
	flags.StringVar(&f.audience, "oidc-audience", "", "what the issuer's tokens for this server have in aud, such as its client id")
	flags.StringVar(&f.keys, "oidc-jwks", "", "where the issuer's keys are, a file or an https URL (default: where its discovery document says)")
	flags.StringArrayVar(&f.admin, "oidc-admin", nil, "whose tokens may do what admin keys may, as CLAIM=VALUE, or several with AND between them; may be given again")
	flags.StringArrayVar(&f.analyst, "oidc-analyst", nil, "whose tokens may do what analyst keys may, written in the same way")
	flags.StringArrayVar(&f.granted, "oidc-granted", nil, "whose tokens may use what was granted to their holder and nothing else, written in the same way; counts where no rule of the other two holds")
}

// open reads the issuer's keys, which are read again until ctx is done. Without an issuer there is nil.
func (f *oidcFlags) open(ctx context.Context, logger *slog.Logger) (*oidc.Verifier, error) {
	if f.issuer == "" {
		if f.audience+f.keys != "" || len(f.admin)+len(f.analyst)+len(f.granted) > 0 {
			return nil, misuse("--oidc-issuer is missing: the flags --oidc-… say which of its tokens are accepted")
		}
		return nil, nil
	}
	c := oidc.Config{Issuer: f.issuer, Audience: f.audience, Keys: f.keys, Logger: logger}
	for _, rules := range []struct {
		flag  string
		texts []string
		into  *[]oidc.Rule
	}{{"admin", f.admin, &c.Admin}, {"analyst", f.analyst, &c.Analyst}, {"granted", f.granted, &c.Granted}} {
		for _, text := range rules.texts {
			rule, err := oidc.ParseRule(text)
			if err != nil {
				return nil, misuse("--oidc-%s: %v", rules.flag, err)
			}
			*rules.into = append(*rules.into, rule)
		}
	}
	v, err := oidc.Open(ctx, c)
	var setting *oidc.ConfigError
	switch {
	case errors.As(err, &setting):
		return nil, misuse("--oidc-%s %s", setting.Setting, setting.Detail)
	case err != nil:
		return nil, fmt.Errorf("the keys of the tokens' issuer cannot be read, so no token could be checked: %w", err)
	}
	return v, nil
}
