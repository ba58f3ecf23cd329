package api

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

// parquetType is the registered media type of Parquet files.
const parquetType = "application/vnd.apache.parquet"

type holdoutPath struct {
	ID string `path:"id" doc:"id of the holdout: ho_…"`
}

type cardReply struct{ Body holdout.Card }

type cardsReply struct{ Body Holdouts }

// Holdouts is a list of cards.
type Holdouts struct {
	Holdouts []holdout.Card `json:"holdouts"`
}

func (a *API) registerHoldouts() {
	typed(a, huma.Operation{
		OperationID: "list-holdouts", Method: http.MethodGet, Path: "/v1/holdouts", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "List the holdouts", Description: "The cards of all holdouts, oldest first.",
		Middlewares: huma.Middlewares{a.inTime},
	}, func(ctx context.Context, _ *struct{}) (*cardsReply, error) {
		cards, err := a.service.List(ctx, caller(ctx))
		if cards == nil {
			cards = []holdout.Card{}
		}
		return &cardsReply{Holdouts{cards}}, err
	})
	typed(a, huma.Operation{
		OperationID: "get-holdout", Method: http.MethodGet, Path: "/v1/holdouts/{id}", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "The card of a holdout", Description: "Columns as the training part shows them, sizes, mechanism, guarantee, warnings and what is left of the budget.",
		Middlewares: huma.Middlewares{a.inTime},
	}, func(ctx context.Context, in *holdoutPath) (*cardReply, error) {
		card, err := a.service.Card(ctx, caller(ctx), in.ID)
		return &cardReply{card}, err
	})
	typed(a, huma.Operation{
		OperationID: "delete-holdout", Method: http.MethodDelete, Path: "/v1/holdouts/{id}", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Delete a holdout", Description: "Removes its rows and secrets. Its table stays known: uploading it again is refused once something of it was shown, for a fresh split would put old holdout rows into a new training part. Admin only.",
		DefaultStatus: http.StatusNoContent, Middlewares: huma.Middlewares{a.inTime, a.mustBeAdmin},
	}, func(ctx context.Context, in *holdoutPath) (*struct{}, error) {
		return nil, a.service.Delete(ctx, caller(ctx), in.ID)
	})
	a.raw(huma.Operation{
		OperationID: "get-training", Method: http.MethodGet, Path: "/v1/holdouts/{id}/training", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Download the training part", Description: "The rows that the analyst may see and fit models to, as Parquet. Those of the check part are not among them. Ranges are served.",
		Parameters: []*huma.Param{idParam},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file", Content: binary(parquetType)},
			"206": {Description: "The range of the file that was asked for", Content: binary(parquetType)},
		},
	}, a.training)
	a.raw(huma.Operation{
		OperationID: "get-features", Method: http.MethodGet, Path: "/v1/holdouts/{id}/features", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Download the features of the holdout's rows", Description: "For holdouts that were created with features=public: every column but the label, and row_id, as Parquet: the holdout's rows, then those of the check part. Predictions are given in the order of row_id. Ranges are served.",
		Parameters: []*huma.Param{idParam},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file", Content: binary(parquetType)},
			"206": {Description: "The range of the file that was asked for", Content: binary(parquetType)},
		},
	}, a.features)
	typed(a, huma.Operation{
		OperationID: "retire-holdout", Method: http.MethodPost, Path: "/v1/holdouts/{id}/retire", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Retire a holdout", Description: "Ends its questions for good, and releases its rows and those of its check part to training (`/retired`). Refused (409 `rows-known`) while another holdout of which questions are left holds out the same rows. Recorded answers, the history and the final report stay. " +
			"What is left of the budget is gone. A later upload can name it as its predecessor (`succeeds`). Retiring again does nothing. Admin only.",
		Middlewares: huma.Middlewares{a.inTime, a.mustBeAdmin},
	}, func(ctx context.Context, in *holdoutPath) (*cardReply, error) {
		card, err := a.service.Retire(ctx, caller(ctx), in.ID)
		return &cardReply{card}, err
	})
	a.raw(huma.Operation{
		OperationID: "get-retired", Method: http.MethodGet, Path: "/v1/holdouts/{id}/retired", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Download the rows of a retired holdout", Description: "The rows of the holdout and of its check part with all columns, as Parquet: a further training part. 409 while the holdout is not retired. Not for keys with grants alone. Ranges are served.",
		Parameters: []*huma.Param{idParam},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file", Content: binary(parquetType)},
			"206": {Description: "The range of the file that was asked for", Content: binary(parquetType)},
		},
	}, a.retired)
	a.raw(huma.Operation{
		OperationID: "export-ledger", Method: http.MethodGet, Path: "/v1/holdouts/{id}/ledger", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Export the ledger", Description: "Every debit and answer of the holdout with the hash chain that binds them, one JSON object a line. `holdoutd verify FILE` recomputes chain and balances offline. Admin only.",
		Parameters:  []*huma.Param{idParam},
		Middlewares: huma.Middlewares{a.mustBeAdmin},
		Responses: map[string]*huma.Response{
			"200": {Description: "The ledger", Content: map[string]*huma.MediaType{ledgerType: {Schema: &huma.Schema{Type: "string"}}}},
		},
	}, a.ledger)
}

const ledgerType = "application/jsonl"

var idParam = &huma.Param{Name: "id", In: "path", Required: true, Description: "id of the holdout: ho_…", Schema: &huma.Schema{Type: "string"}}

func binary(media string) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: &huma.Schema{Type: "string", Format: "binary"}}}
}

func (a *API) training(c *gin.Context) error { return sendParquet(c, "training", a.service.Training) }

func (a *API) features(c *gin.Context) error { return sendParquet(c, "features", a.service.Features) }

func (a *API) retired(c *gin.Context) error { return sendParquet(c, "retired", a.service.Released) }

// sendParquet sends a part of a holdout that never changes: its name and id are its entity tag.
func sendParquet(c *gin.Context, name string, open func(context.Context, holdout.Principal, string) (*os.File, error)) error {
	id := c.Param("id")
	f, err := open(c.Request.Context(), caller(c.Request.Context()), id)
	if err != nil {
		return err
	}
	defer f.Close()
	c.Header("Content-Type", parquetType)
	c.Header("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+"-"+id+".parquet"))
	c.Header("ETag", `"`+name+"-"+id+`"`)
	w := &rangeWriter{ResponseWriter: c.Writer}
	http.ServeContent(w, c.Request, "", time.Time{}, f)
	if w.refused {
		return problem(badRange, "the range is not within the file")
	}
	return nil
}

// A rangeWriter holds back the plain text that http.ServeContent says to a range that it cannot serve.
type rangeWriter struct {
	gin.ResponseWriter
	refused bool
}

func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// ledger streams the export. If it fails on the way, the connection is cut: half an export must not look whole.
func (a *API) ledger(c *gin.Context) error {
	c.Header("Content-Type", ledgerType)
	err := a.service.Export(c.Request.Context(), caller(c.Request.Context()), c.Param("id"), c.Writer)
	if err == nil {
		c.Writer.WriteHeaderNow()
	}
	return err
}
