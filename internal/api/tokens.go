package api

import (
	"context"
	"errors"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/oidc"
)

// isToken reports whether a bearer text is to be checked by the issuer's keys. No key of this server looks like one.
func (a *API) isToken(bearer string) bool { return a.tokens != nil && oidc.IsToken(bearer) }

// ofToken is whom an issuer's token is of: the one place where a token becomes a principal. What its holder may do follows from its claims alone, at each
// request anew, and nothing of it is stored.
func (a *API) ofToken(ctx context.Context, token string) (holdout.Principal, error) {
	who, err := a.tokens.Check(ctx, token)
	var refused *oidc.Refusal
	switch {
	case errors.As(err, &refused):
		return holdout.Principal{}, problem(classes[holdout.Unauthorized], "the token is not accepted: %s", refused.Reason)
	case err != nil:
		return holdout.Principal{}, &holdout.Error{Kind: holdout.Unavailable, Detail: "the keys of the tokens' issuer cannot be read; keys of this server go on working", Err: err}
	}
	p := holdout.Principal{KeyID: who.ID, Name: who.Name}
	switch who.Role {
	case oidc.Admin:
		p.Scope = holdout.Admin
	case oidc.Analyst:
		p.Scope = holdout.Analyst
	case oidc.Granted: // as a key with only_granted
		p.Scope, p.OnlyGranted = holdout.Analyst, true
	default:
		return holdout.Principal{}, problem(classes[holdout.Forbidden], "the token is valid, but no rule of this server (--oidc-admin, --oidc-analyst, --oidc-granted) is about its holder")
	}
	return p, nil
}
