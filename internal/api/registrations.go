package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

// The parameters of POST /v1/holdouts that name a table of a source, which is not uploaded.
const (
	sourceParameter = "source"
	tableParameter  = "table"
)

// Sources is a list of places with tables.
type Sources struct {
	Sources []holdout.SourceStatus `json:"sources"`
}

// Registration is a table of a source, or a large upload, on its way to a holdout. Admins alone see one, for its problem may say what is wrong with the table's rows.
type Registration struct {
	holdout.Registration
	Problem *Problem `json:"problem,omitempty" doc:"why it failed"`
}

func registrationOf(r holdout.Registration) Registration {
	out := Registration{Registration: r}
	if r.Problem != nil {
		out.Problem = problemOf(r.Problem)
	}
	return out
}

// Registrations is a list of tables that are or were being made into holdouts.
type Registrations struct {
	Registrations []Registration `json:"registrations"`
}

type registrationPath struct {
	ID string `path:"id" doc:"id of the registration: re_…"`
}

type (
	sourcesReply       struct{ Body Sources }
	registrationReply  struct{ Body Registration }
	registrationsReply struct{ Body Registrations }
)

func (a *API) registerSources() {
	admin := huma.Middlewares{a.inTime, a.mustBeAdmin}
	typed(a, huma.Operation{
		OperationID: "list-sources", Method: http.MethodGet, Path: "/v1/sources", Tags: []string{"sources"}, Security: needsKey,
		Summary: "List the sources", Description: "The places whose tables can become holdouts without being uploaded, as the server's owner named them at its start, and whether each answers now. Admin only.",
		Middlewares: admin,
	}, func(ctx context.Context, _ *struct{}) (*sourcesReply, error) {
		all, err := a.service.Sources(ctx, caller(ctx))
		if all == nil {
			all = []holdout.SourceStatus{}
		}
		return &sourcesReply{Sources{all}}, err
	})
	typed(a, huma.Operation{
		OperationID: "list-registrations", Method: http.MethodGet, Path: "/v1/registrations", Tags: []string{"sources"}, Security: needsKey,
		Summary: "List the registrations", Description: "Tables of sources and large uploads that are being made into holdouts, and those that were since the server started, newest first. Admin only.",
		Middlewares: admin,
	}, func(ctx context.Context, _ *struct{}) (*registrationsReply, error) {
		found, err := a.service.Registrations(ctx, caller(ctx))
		all := make([]Registration, len(found))
		for i, r := range found {
			all[i] = registrationOf(r)
		}
		return &registrationsReply{Registrations{all}}, err
	})
	typed(a, huma.Operation{
		OperationID: "get-registration", Method: http.MethodGet, Path: "/v1/registrations/{id}", Tags: []string{"sources"}, Security: needsKey,
		Summary: "How far a registration is", Description: "Ask again every second or so until `stage` is done, failed or cancelled. A server that was started again has forgotten those of before that are not done. Admin only.",
		Middlewares: admin,
	}, func(ctx context.Context, in *registrationPath) (*registrationReply, error) {
		r, err := a.service.Registration(ctx, caller(ctx), in.ID)
		return &registrationReply{registrationOf(r)}, err
	})
	typed(a, huma.Operation{
		OperationID: "cancel-registration", Method: http.MethodDelete, Path: "/v1/registrations/{id}", Tags: []string{"sources"}, Security: needsKey,
		Summary: "Cancel a registration", Description: "It ends soon, and what it had made is removed. One that has ended stays as it is; a holdout that it made is deleted as any other. Admin only.",
		Middlewares: admin,
	}, func(ctx context.Context, in *registrationPath) (*registrationReply, error) {
		r, err := a.service.CancelRegistration(ctx, caller(ctx), in.ID)
		return &registrationReply{registrationOf(r)}, err
	})
}

// tableOfSource names a table that is not uploaded.
type tableOfSource struct{ source, table string }

func (t tableOfSource) named() bool { return t.source != "" }

// readSource takes what names a table of a source out of the parameters of an upload. rest are the others.
func readSource(rawQuery string) (t tableOfSource, rest string, err error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil || values[sourceParameter] == nil && values[tableParameter] == nil {
		return t, rawQuery, nil // what is badly escaped is refused with the settings
	}
	for name, into := range map[string]*string{sourceParameter: &t.source, tableParameter: &t.table} {
		switch given := values[name]; {
		case len(given) > 1:
			return t, "", invalid(name, "", "%s: is given more than once", name)
		case len(given) == 0 || given[0] == "":
			return t, "", invalid(name, "", "%s is missing: a table of a source is named by both, %s and %s", name, sourceParameter, tableParameter)
		default:
			*into = given[0]
		}
		values.Del(name)
	}
	return t, values.Encode(), nil
}

// register begins to make a holdout of a table of a source.
func (a *API) register(c *gin.Context, set holdout.Settings, t tableOfSource, dry bool, key string) error {
	switch {
	case dry:
		return invalid(dryRun, "", "a dry run is of uploads: a table of a source is read as a whole to know its units. A new holdout is a draft, and nothing of it is final before the first look")
	case c.Request.ContentLength != 0:
		return problem(classes[holdout.Invalid], "a table of a source is not uploaded: send no body, or leave %s and %s out", sourceParameter, tableParameter)
	}
	begun, replayed, err := a.service.Register(c.Request.Context(), caller(c.Request.Context()), set, t.source, t.table, key)
	if err != nil {
		return err
	}
	return sayRegistration(c, begun, replayed)
}

// sayRegistration replies with a registration that has begun.
func sayRegistration(c *gin.Context, begun holdout.Registration, replayed bool) error {
	if replayed {
		c.Header("Idempotent-Replayed", "true")
	}
	reply, err := marshal(registrationOf(begun))
	if err != nil {
		return err
	}
	c.Header("Location", "/v1/registrations/"+begun.ID)
	c.Data(http.StatusAccepted, "application/json", reply)
	return nil
}
