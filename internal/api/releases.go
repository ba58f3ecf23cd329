package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
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
			"It protects from people who have only releases: keys may download the training part. No held-out row is read. Admin only.",
		RequestBody: a.jsonBody(a.schemaOf(holdout.NewRelease{})), SkipValidateBody: true,
		Responses: a.jsonReply("The release, as it is recorded", PrivateRelease{}, false),
	}, a.makeRelease)
	typed(a, huma.Operation{
		OperationID: "list-releases", Method: http.MethodGet, Path: base, Tags: []string{"releases"}, Security: needsKey, Middlewares: admin,
		Summary: "List the releases", Description: "All releases of a holdout's training part, with what they have spent, and what is left. Admin only.",
		Responses: a.jsonReply("The releases", PrivateReleases{}, false),
	}, func(ctx context.Context, in *holdoutPath) (*writtenReply, error) {
		list, err := a.service.Releases(ctx, caller(ctx), in.ID)
		if err != nil {
			return nil, err
		}
		body, err := marshal(list)
		return written(body, false), err
	})
}

func (a *API) makeRelease(ctx context.Context, in *holdoutPath) (*writtenReply, error) {
	members, err := readObject(bodyOf(ctx), "epsilon", "release_epsilon", "rows_per_unit", "columns")
	if err != nil {
		return nil, err
	}
	var n holdout.NewRelease
	for _, m := range []struct {
		name     string
		into     any
		what     string
		required bool
	}{
		{"epsilon", &n.Epsilon, "a number above 0", true}, {"release_epsilon", &n.ReleaseEpsilon, "a number above 0", false},
		{"rows_per_unit", &n.RowsPerUnit, "a whole number of at least 1", false}, {"columns", &n.Columns, "a list of objects with name, and low and high, quantiles, edges or texts", false},
	} {
		value, ok := members[m.name]
		switch {
		case !ok && m.required:
			return nil, wrongMember("", `"`+m.name+`" is missing`)
		case ok && (string(value) == "null" || decodeStrictly(value, m.into) != nil):
			return nil, wrongMember("/"+m.name, "must be "+m.what)
		}
	}
	body, err := a.service.Release(ctx, caller(ctx), in.ID, n)
	if err != nil {
		return nil, err
	}
	return written(body, false), nil
}

// decodeStrictly refuses members that are not known: a misspelt bound would be none.
func decodeStrictly(text json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
