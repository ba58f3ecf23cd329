package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
)

type grantPath struct {
	ID string `path:"id" doc:"id of the grant: gr_…"`
}

// Grants is a list of grants.
type Grants struct {
	Grants []holdout.GrantInfo `json:"grants" doc:"in the order of their creation"`
}

// Spending is what keys have spent of a holdout.
type Spending struct {
	Spenders []holdout.Spender `json:"spenders" doc:"who spent the most first; what a final report closed is nobody's"`
}

type createdGrantReply struct {
	Location string `header:"Location"`
	Body     holdout.GrantInfo
}

type grantsReply struct{ Body Grants }

type spendingReply struct{ Body Spending }

func (a *API) registerGrants() {
	admin := huma.Middlewares{a.inTime, a.mustBeAdmin}
	typed(a, huma.Operation{
		OperationID: "create-grant", Method: http.MethodPost, Path: "/v1/grants", Tags: []string{"keys"}, Security: needsKey,
		Summary: "Make a grant", Description: "Admin only. A slice of a holdout's questions and tokens for one key with the scope granted, which has no other grant of the holdout. It never changes; it can be revoked. Sent again, it is a `conflict`: there is one already.",
		DefaultStatus: http.StatusCreated, Middlewares: append(admin, a.withBody(a.limits.KeyBytes)),
		RequestBody: a.jsonBody(a.schemaOf(holdout.NewGrant{})), SkipValidateBody: true,
	}, a.createGrant)
	typed(a, huma.Operation{
		OperationID: "list-grants", Method: http.MethodGet, Path: "/v1/grants", Tags: []string{"keys"}, Security: needsKey,
		Summary: "List the grants", Description: "With what is spent of each and what is left. An admin sees all, other keys their own. Those of deleted holdouts are not among them.", Middlewares: huma.Middlewares{a.inTime},
	}, func(ctx context.Context, _ *struct{}) (*grantsReply, error) {
		grants, err := a.service.Grants(ctx, caller(ctx), "")
		return &grantsReply{Grants{grants}}, err
	})
	typed(a, huma.Operation{
		OperationID: "revoke-grant", Method: http.MethodDelete, Path: "/v1/grants/{id}", Tags: []string{"keys"}, Security: needsKey,
		Summary: "Revoke a grant", Description: "It and all grants below it stop working at once. What was spent stays spent; what was not is the holdout's, or the parent's. Admin only.",
		DefaultStatus: http.StatusNoContent, Middlewares: admin,
	}, func(ctx context.Context, in *grantPath) (*struct{}, error) {
		return nil, a.service.RevokeGrant(ctx, caller(ctx), in.ID)
	})
	typed(a, huma.Operation{
		OperationID: "get-spending", Method: http.MethodGet, Path: "/v1/holdouts/{id}/spending", Tags: []string{"keys"}, Security: needsKey,
		Summary: "Who spent what", Description: "What each key has spent of a holdout, with a grant or without, as its ledger says. Admin only.", Middlewares: admin,
	}, func(ctx context.Context, in *holdoutPath) (*spendingReply, error) {
		spenders, err := a.service.Spenders(ctx, caller(ctx), in.ID)
		return &spendingReply{Spending{spenders}}, err
	})
}

func (a *API) createGrant(ctx context.Context, _ *struct{}) (*createdGrantReply, error) {
	members, err := readObject(bodyOf(ctx), "key", "holdout", "parent", "questions", "tokens", "expires", "shows")
	if err != nil {
		return nil, err
	}
	var n holdout.NewGrant
	for _, m := range []struct {
		name     string
		into     any
		what     string
		required bool
	}{
		{"key", &n.Key, "a text: the id of a key", true}, {"holdout", &n.Holdout, "a text: the id of a holdout", true}, {"questions", &n.Questions, "a whole number of at least 1", true},
		{"parent", &n.Parent, "a text: the id of a grant", false}, {"tokens", &n.Tokens, "a whole number of at least 0", false}, {"expires", &n.Expires, "a time such as " + time.RFC3339, false}, {"shows", &n.Shows, "full, value or bit", false},
	} {
		value, ok := members[m.name]
		switch {
		case !ok && m.required:
			return nil, wrongMember("", `"`+m.name+`" is missing`)
		case ok && (string(value) == "null" || json.Unmarshal(value, m.into) != nil):
			return nil, wrongMember("/"+m.name, "must be "+m.what)
		}
	}
	info, err := a.service.CreateGrant(ctx, caller(ctx), n)
	return &createdGrantReply{"/v1/grants/" + info.ID, info}, err
}
