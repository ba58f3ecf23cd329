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
}

// CreatedKey is a key with its secret, which is shown this once.
type CreatedKey struct {
	holdout.KeyInfo
	Secret string `json:"secret" doc:"the bearer token, hk_…; it is kept hashed and cannot be shown again"`
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
		Summary: "Make a key", Description: "Admin only. There is no Idempotency-Key here: a secret is shown once and kept hashed, so it cannot be replayed.",
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
	members, err := readObject(bodyOf(ctx), "name", "scope")
	if err != nil {
		return nil, err
	}
	var k NewKey
	for _, name := range []string{"name", "scope"} {
		into := (*string)(&k.Scope)
		if name == "name" {
			into = &k.Name
		}
		value, ok := members[name]
		if !ok {
			return nil, wrongMember("", `"`+name+`" is missing`)
		}
		if json.Unmarshal(value, into) != nil || string(value) == "null" {
			return nil, wrongMember("/"+name, "must be a text")
		}
	}
	if k.Scope != holdout.Admin && k.Scope != holdout.Analyst && k.Scope != holdout.Granted {
		return nil, wrongMember("/scope", "must be admin, analyst or granted")
	}
	info, secret, err := a.service.CreateKey(ctx, caller(ctx), k.Name, k.Scope)
	return &createdKeyReply{"/v1/keys/" + info.ID, CreatedKey{info, secret}}, err
}
