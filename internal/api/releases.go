package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/release"
)

// Private releases of the training part, for people who have nothing else of it.

func (a *API) registerReleases() {
	const base = "/v1/holdouts/{id}/releases"
	admin := huma.Middlewares{a.inTime, a.mustBeAdmin}
	typed(a, huma.Operation{
		OperationID: "make-release", Method: http.MethodPost, Path: base, Tags: []string{"releases"}, Security: needsKey, Middlewares: append(admin, a.withBody(int64(a.asked.QueryBytes))),
		Summary: "Release statistics of the training part",
		Description: "Differentially private statistics that may be shown to people without a key: how many units there are and, of each named column, the share of nulls, the rows in each declared cell, the mean and quantiles within declared bounds. " +
			"Bounds, edges and texts must be public, or chosen without a look at the rows. What a release spends is recorded before it is shown; the same request again is the recorded one, at no cost. " +
			"Where releases of other holdouts are of the same rows, it is 409 released-before, unless the request says earlier_releases=accepted: they add up. " +
			"It protects from people who have only releases: keys may download the training part. No held-out row is read. Admin only.",
		RequestBody: a.jsonBody(a.schemaOf(holdout.NewRelease{})), SkipValidateBody: true,
		Responses: a.jsonReply("The release, as it is recorded", PrivateRelease{}, false),
	}, a.makeRelease)
	typed(a, huma.Operation{
		OperationID: "list-releases", Method: http.MethodGet, Path: base, Tags: []string{"releases"}, Security: needsKey, Middlewares: admin,
		Summary: "List the releases", Description: "The releases of a holdout's training part, in pages of some megabytes, with what all have spent, and what is left. Admin only.",
		Responses: a.jsonReply("The releases", PrivateReleases{}, false),
	}, func(ctx context.Context, in *releasesPath) (*writtenReply, error) {
		list, err := a.service.Releases(ctx, caller(ctx), in.ID, in.After)
		if err != nil {
			return nil, err
		}
		body, err := marshal(list)
		return written(body, false), err
	})
}

// releasesPath asks for a page of releases.
type releasesPath struct {
	ID    string `path:"id" doc:"id of the holdout: ho_…"`
	After int64  `query:"after" minimum:"0" doc:"the cursor: next of the page before; 0 or none for the first page"`
}

func (a *API) makeRelease(ctx context.Context, in *holdoutPath) (*writtenReply, error) {
	members, err := readObject(bodyOf(ctx), "epsilon", "release_epsilon", "rows_per_unit", "earlier_releases", "columns")
	if err != nil {
		return nil, err
	}
	var n holdout.NewRelease
	var columns []json.RawMessage
	if err := decodeMembers("", members,
		member{"epsilon", &n.Epsilon, "a number above 0", true}, member{"release_epsilon", &n.ReleaseEpsilon, "a number above 0", false},
		member{"rows_per_unit", &n.RowsPerUnit, "a whole number of at least 1", false}, member{"earlier_releases", &n.EarlierReleases, "accepted", false},
		member{"columns", &columns, "a list of objects with name, and low and high, quantiles, edges or texts", false}); err != nil {
		return nil, err
	}
	for i, text := range columns {
		at := fmt.Sprintf("/columns/%d", i)
		of, err := readObject(text, "name", "low", "high", "quantiles", "edges", "texts")
		if err != nil {
			var p *Problem
			if errors.As(err, &p) && len(p.Errors) > 0 {
				moved := wrongMember(at+p.Errors[0].Pointer, p.Errors[0].Detail)
				moved.Errors[0].Suggestion = p.Errors[0].Suggestion
				return nil, moved
			}
			return nil, err
		}
		var c release.ColumnRequest
		if err := decodeMembers(at, of, member{"name", &c.Name, "the name of a column", true}, member{"low", &c.Low, "a number", false}, member{"high", &c.High, "a number", false},
			member{"quantiles", &c.Quantiles, "a list of numbers", false}, member{"edges", &c.Edges, "a list of numbers", false}, member{"texts", &c.Texts, "a list of texts", false}); err != nil {
			return nil, err
		}
		n.Columns = append(n.Columns, c)
	}
	body, err := a.service.Release(ctx, caller(ctx), in.ID, n)
	if err != nil {
		return nil, err
	}
	return written(body, false), nil
}

// member of an object, and what it must be.
type member struct {
	name     string
	into     any
	what     string
	required bool
}

// decodeMembers reads members of an object that is at a place of the body. Their names are exact: LOW is no low.
func decodeMembers(at string, members map[string]json.RawMessage, all ...member) error {
	for _, m := range all {
		value, ok := members[m.name]
		switch {
		case !ok && m.required:
			return wrongMember(at, `"`+m.name+`" is missing`)
		case ok && (hasNull(value) || json.Unmarshal(value, m.into) != nil):
			return wrongMember(at+"/"+m.name, "must be "+m.what)
		}
	}
	return nil
}

// hasNull reports whether a value, or one of a list, is null, which encoding/json would read as 0 or an empty text.
func hasNull(value json.RawMessage) bool {
	if bytes.Equal(value, []byte("null")) {
		return true
	}
	var list []json.RawMessage
	return json.Unmarshal(value, &list) == nil && slices.ContainsFunc(list, hasNull)
}
