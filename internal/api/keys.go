package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
)

type keyPath struct {
	ID string `path:"id" doc:"id of the key"`
}

type keyRequest struct {
	IdempotencyKey string `header:"Idempotency-Key" hidden:"true"`
}

// NewKey asks for a key.
type NewKey struct {
	Name  string        `json:"name" minLength:"1" maxLength:"200" pattern:"^[^\\x00-\\x1f\\x7f]*$" doc:"who will use it, for people"`
	Scope holdout.Scope `json:"scope" enum:"admin,analyst,granted" doc:"what it may do; granted: what its grants say, and nothing without one"`

	Subject string `json:"oidc_subject,omitempty" minLength:"1" maxLength:"512" doc:"a subject of the server's OpenID Connect issuer, whose tokens stand for the key; it then has no secret"`
}

// CreatedKey is a key with its secret, which is shown this once.
type CreatedKey struct {
	holdout.KeyInfo
	Secret string `json:"secret,omitempty" doc:"the bearer token, hk_…; it is kept hashed and cannot be shown again. Absent of a key with an oidc_subject"`
}

// Keys is a list of keys.
type Keys struct {
	Keys []holdout.KeyInfo `json:"keys"`
}

type createdKeyReply struct {
	Location string `header:"Location"`
	Body     CreatedKey
}

type keysReply struct{ Body Keys }

func (a *API) registerKeys() {
	admin := huma.Middlewares{a.inTime, a.mustBeAdmin}
	typed(a, huma.Operation{
		OperationID: "create-key", Method: http.MethodPost, Path: "/v1/keys", Tags: []string{"keys"}, Security: needsKey,
		Summary: "Make a key", Description: "Admin only. There is no Idempotency-Key here: a secret is shown once and kept hashed, so it cannot be replayed. With `oidc_subject` the key has none: tokens of that subject stand for it, where the server was started with `--oidc-issuer`.",
		DefaultStatus: http.StatusCreated, Middlewares: append(admin, a.withBody(a.limits.KeyBytes)),
		RequestBody: a.jsonBody(a.schemaOf(NewKey{})), SkipValidateBody: true,
	}, a.createKey)
	typed(a, huma.Operation{
		OperationID: "list-keys", Method: http.MethodGet, Path: "/v1/keys", Tags: []string{"keys"}, Security: needsKey,
		Summary: "List the keys", Description: "Without their secrets. Admin only.", Middlewares: admin,
	}, func(ctx context.Context, _ *struct{}) (*keysReply, error) {
		keys, err := a.service.Keys(ctx, caller(ctx))
		if keys == nil {
			keys = []holdout.KeyInfo{}
		}
		return &keysReply{Keys{keys}}, err
	})
	typed(a, huma.Operation{
		OperationID: "revoke-key", Method: http.MethodDelete, Path: "/v1/keys/{id}", Tags: []string{"keys"}, Security: needsKey,
		Summary: "Revoke a key", Description: "It stops working at once. Admin only.",
		DefaultStatus: http.StatusNoContent, Middlewares: admin,
	}, func(ctx context.Context, in *keyPath) (*struct{}, error) {
		return nil, a.service.RevokeKey(ctx, caller(ctx), in.ID)
	})
}

func (a *API) createKey(ctx context.Context, in *keyRequest) (*createdKeyReply, error) {
	if in.IdempotencyKey != "" {
		return nil, invalid("Idempotency-Key", "", "a key's secret is shown once and cannot be replayed; leave Idempotency-Key out")
	}
	members, err := readObject(bodyOf(ctx), "name", "scope", "oidc_subject")
	if err != nil {
		return nil, err
	}
	var k NewKey
	for _, m := range []struct {
		name string
		into *string
	}{{"name", &k.Name}, {"scope", (*string)(&k.Scope)}, {"oidc_subject", &k.Subject}} {
		value, ok := members[m.name]
		switch {
		case !ok && m.into == &k.Subject:
		case !ok:
			return nil, wrongMember("", `"`+m.name+`" is missing`)
		case json.Unmarshal(value, m.into) != nil || string(value) == "null":
			return nil, wrongMember("/"+m.name, "must be a text")
		}
	}
	if k.Scope != holdout.Admin && k.Scope != holdout.Analyst && k.Scope != holdout.Granted {
		return nil, wrongMember("/scope", "must be admin, analyst or granted")
	}
	if _, bound := members["oidc_subject"]; bound {
		info, err := a.service.BindKey(ctx, caller(ctx), k.Name, k.Scope, k.Subject)
		return &createdKeyReply{"/v1/keys/" + info.ID, CreatedKey{KeyInfo: info}}, err
	}
	info, secret, err := a.service.CreateKey(ctx, caller(ctx), k.Name, k.Scope)
	return &createdKeyReply{"/v1/keys/" + info.ID, CreatedKey{info, secret}}, err
}
