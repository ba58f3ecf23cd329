package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
)

type grantPath struct {
	ID string `path:"id" doc:"id of the grant: gr_…"`
}

type grantRequest struct {
	ID             string `path:"id" doc:"id of the holdout: ho_…"`
	IdempotencyKey string `header:"Idempotency-Key" doc:"1 to 255 visible ASCII characters; the same key with another body is 422"`
}

// Grants is a list of grants.
type Grants struct {
	Grants []holdout.GrantInfo `json:"grants" doc:"in the order in which they were made: each comes after the one that it is a part of"`
}

type grantReply struct {
	Body holdout.GrantInfo
}

type madeGrantReply struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Idempotent-Replayed"`
	Body     holdout.GrantInfo
}

type grantsReply struct{ Body Grants }

type spendingReply struct{ Body holdout.Spending }

func (a *API) registerGrants() {
	tags := []string{"grants"}
	const base = "/v1/holdouts/{id}"
	typed(a, huma.Operation{
		OperationID: "create-grant", Method: http.MethodPost, Path: base + "/grants", Tags: tags, Security: needsKey,
		Summary: "Grant a part of the budget", Description: "A grant is a slice of a holdout's questions and tokens for one holder: a person, a run, an agent. It is there for that holder and for nobody else until it ends. An admin grants what is neither spent nor granted of the holdout, or of a grant; the holder of a grant with `may_grant` grants parts of it. What is not there to be granted is 403 `budget-exhausted`.",
		DefaultStatus: http.StatusCreated, Middlewares: huma.Middlewares{a.inTime, a.withBody(a.limits.KeyBytes)},
		RequestBody: a.jsonBody(a.schemaOf(holdout.NewGrant{})), SkipValidateBody: true,
	}, a.createGrant)
	typed(a, huma.Operation{
		OperationID: "list-grants", Method: http.MethodGet, Path: base + "/grants", Tags: tags, Security: needsKey,
		Summary: "List the grants of a holdout", Description: "Ended ones too. An admin sees all, others their own and the parts of these.", Middlewares: huma.Middlewares{a.inTime},
	}, func(ctx context.Context, in *holdoutPath) (*grantsReply, error) {
		all, err := a.service.Grants(ctx, caller(ctx), in.ID)
		if all == nil {
			all = []holdout.GrantInfo{}
		}
		return &grantsReply{Grants{all}}, err
	})
	typed(a, huma.Operation{
		OperationID: "get-grant", Method: http.MethodGet, Path: "/v1/grants/{id}", Tags: tags, Security: needsKey,
		Summary: "One grant", Description: "For admins, its holder, and the holders of the grants that it is a part of.", Middlewares: huma.Middlewares{a.inTime},
	}, func(ctx context.Context, in *grantPath) (*grantReply, error) {
		g, err := a.service.Grant(ctx, caller(ctx), in.ID)
		return &grantReply{g}, err
	})
	typed(a, huma.Operation{
		OperationID: "end-grant", Method: http.MethodDelete, Path: "/v1/grants/{id}", Tags: tags, Security: needsKey,
		Summary: "End a grant", Description: "And with it the grants that are parts of it. What is left of it is there again for what it was a part of; what was spent stays spent. For admins, its holder, and the holders of the grants that it is a part of. A question that is under way is not asked then, unless it was recorded before.",
		DefaultStatus: http.StatusNoContent, Middlewares: huma.Middlewares{a.inTime},
	}, func(ctx context.Context, in *grantPath) (*struct{}, error) {
		return nil, a.service.EndGrant(ctx, caller(ctx), in.ID)
	})
	typed(a, huma.Operation{
		OperationID: "get-spending", Method: http.MethodGet, Path: base + "/spending", Tags: tags, Security: needsKey,
		Summary: "Who has spent what", Description: "By who asked and by the grant that paid, with what is granted and what is free. Admin only.", Middlewares: huma.Middlewares{a.inTime, a.mustBeAdmin},
	}, func(ctx context.Context, in *holdoutPath) (*spendingReply, error) {
		s, err := a.service.Spending(ctx, caller(ctx), in.ID)
		return &spendingReply{s}, err
	})
}

func (a *API) createGrant(ctx context.Context, in *grantRequest) (*madeGrantReply, error) {
	if err := checkIdempotencyKey(in.IdempotencyKey); err != nil {
		return nil, err
	}
	n, err := readGrant(bodyOf(ctx))
	if err != nil {
		return nil, err
	}
	g, replayed, err := a.service.MakeGrant(ctx, caller(ctx), in.ID, n, in.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	out := &madeGrantReply{Status: http.StatusCreated, Location: "/v1/grants/" + g.ID, Body: g}
	if replayed {
		out.Replayed = "true"
	}
	return out, nil
}

// readGrant reads what is to be granted, strictly.
func readGrant(body []byte) (n holdout.NewGrant, err error) {
	kinds := map[string]string{"holder": "a text", "questions": "a whole number", "tokens": "a whole number", "rounds": "a whole number", "shows": "full, value or bit",
		"may_grant": "true or false", "expires": "a time as in RFC 3339, such as 2026-12-24T18:00:00Z", "name": "a text", "parent": "a text"}
	names := []string{"holder", "questions", "tokens", "rounds", "shows", "may_grant", "expires", "name", "parent"}
	members, err := readObject(body, names...)
	if err != nil {
		return n, err
	}
	for _, name := range []string{"holder", "questions"} {
		if _, ok := members[name]; !ok {
			return n, wrongMember("", `"`+name+`" is missing`)
		}
	}
	for _, name := range names {
		value, ok := members[name]
		if !ok {
			continue
		}
		one, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err != nil || string(value) == "null" || json.NewDecoder(bytes.NewReader(one)).Decode(&n) != nil || name == "shows" && !strings.Contains(" full value bit ", " "+string(n.Shows)+" ") {
			return n, wrongMember("/"+name, "must be "+kinds[name])
		}
	}
	return n, nil
}

// grantParam is the header that names a grant, for the document.
func grantParam() *huma.Param {
	return &huma.Param{Name: holdout.GrantHeader, In: "header", Schema: &huma.Schema{Type: "string"},
		Description: "the grant that the request is made on: gr_…, one of the key's. Default: its only live one; where it has several, a question must name one"}
}

// documentGrants adds the header to every operation about one holdout.
func documentGrants(doc *huma.OpenAPI) {
	for path, item := range doc.Paths {
		if !strings.HasPrefix(path, "/v1/holdouts/{id}") && path != mcpPath {
			continue
		}
		for _, op := range []*huma.Operation{item.Get, item.Post} {
			if op != nil {
				op.Parameters = append(op.Parameters, grantParam())
			}
		}
	}
}
