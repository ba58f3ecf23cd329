package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
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
		Summary: "Download the training part", Description: "The rows that the analyst may see and fit models to, as Parquet. Those of the check part are not among them. A large one comes in pieces, as many as `training_pieces` of the card says; each is a file of its own, with the same columns. Ranges are served.",
		Parameters: []*huma.Param{idParam(), pieceParam()},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file", Headers: pieceHeaders(), Content: binary(parquetType)},
			"206": {Description: "The range of the file that was asked for", Headers: pieceHeaders(), Content: binary(parquetType)},
		},
	}, a.training)
	a.raw(huma.Operation{
		OperationID: "get-features", Method: http.MethodGet, Path: "/v1/holdouts/{id}/features", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Download the features of the holdout's rows", Description: "For holdouts that were created with features=public: every column but the label, and row_id, as Parquet: the holdout's rows, then those of the check part. Predictions are given in the order of row_id. Ranges are served.",
		Parameters: []*huma.Param{idParam()},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file", Content: binary(parquetType)},
			"206": {Description: "The range of the file that was asked for", Content: binary(parquetType)},
		},
	}, a.features)
	typed(a, huma.Operation{
		OperationID: "retire-holdout", Method: http.MethodPost, Path: "/v1/holdouts/{id}/retire", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Retire a holdout", Description: "Ends its questions for good and releases its rows: from then on everybody with a key can download them at `/v1/holdouts/{id}/released/{part}`. Recorded answers replay. It cannot be undone. A later upload may name it as `follows`. While another holdout that answers holds out rows of it, it is refused (409 `holdout-exists` with the `reason` `reused-rows`; `holdout` is the other one): retire or delete that one first. Admin only.",
		Middlewares: huma.Middlewares{a.inTime, a.mustBeAdmin},
	}, func(ctx context.Context, in *holdoutPath) (*cardReply, error) {
		card, err := a.service.Retire(ctx, caller(ctx), in.ID)
		return &cardReply{card}, err
	})
	a.raw(huma.Operation{
		OperationID: "get-released", Method: http.MethodGet, Path: "/v1/holdouts/{id}/released/{part}", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Download the rows of a retired holdout", Description: "The rows that were held out (`holdout`), or those that answers about models were compared with (`check`), as Parquet, of a holdout that was retired. Many come in pieces, as a training part does. Ranges are served.",
		Parameters: []*huma.Param{idParam(), {Name: "part", In: "path", Required: true, Description: "holdout or check", Schema: &huma.Schema{Type: "string", Enum: []any{"holdout", "check"}}}, pieceParam()},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file", Headers: pieceHeaders(), Content: binary(parquetType)},
			"206": {Description: "The range of the file that was asked for", Headers: pieceHeaders(), Content: binary(parquetType)},
		},
	}, a.released)
	a.raw(huma.Operation{
		OperationID: "export-ledger", Method: http.MethodGet, Path: "/v1/holdouts/{id}/ledger", Tags: []string{"holdouts"}, Security: needsKey,
		Summary: "Export the ledger", Description: "Every debit and answer of the holdout with the hash chain that binds them, one JSON object a line. `holdoutd verify FILE` recomputes chain and balances offline. Admin only.",
		Parameters:  []*huma.Param{idParam()},
		Middlewares: huma.Middlewares{a.mustBeAdmin},
		Responses: map[string]*huma.Response{
			"200": {Description: "The ledger", Content: map[string]*huma.MediaType{ledgerType: {Schema: &huma.Schema{Type: "string"}}}},
		},
	}, a.ledger)
}

const ledgerType = "application/jsonl"

// idParam is the holdout of a path. The document of each server has parameters and schemas of its own: huma writes to them.
func idParam() *huma.Param {
	return &huma.Param{Name: "id", In: "path", Required: true, Description: "id of the holdout: ho_…", Schema: &huma.Schema{Type: "string"}}
}

func binary(media string) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: &huma.Schema{Type: "string", Format: "binary"}}}
}

const (
	// pieceParameter names a piece of a part.
	pieceParameter = "piece"
	// piecesHeader says of how many pieces a training part is.
	piecesHeader = "X-Holdoutd-Pieces"
)

func pieceParam() *huma.Param {
	return &huma.Param{Name: pieceParameter, In: "query", Schema: &huma.Schema{Type: "integer", Format: "int32", Minimum: number(0)},
		Description: "which piece of the part, from 0 on; default: the only one. Of a part in several pieces it must be named"}
}

func pieceHeaders() map[string]*huma.Param {
	return map[string]*huma.Param{piecesHeader: {Description: "how many pieces there are", Schema: &huma.Schema{Type: "string"}}}
}

// training sends the training part, or the piece of it that is named.
func (a *API) training(c *gin.Context) error {
	return sendPiece(c, "training", a.service.TrainingPiece)
}

// sendPiece sends a part, or the piece of it that is named. One of several pieces is never sent to who names none: that would look like all of it.
func sendPiece(c *gin.Context, name string, open func(ctx context.Context, p holdout.Principal, id string, piece int) (*os.File, int, error)) error {
	given, named := c.GetQuery(pieceParameter)
	piece, err := strconv.ParseUint(given, 10, 31)
	if named && (err != nil || !whole.MatchString(given)) {
		return invalid(pieceParameter, "", "%s must be a whole number from 0 on", pieceParameter)
	}
	file := name
	if piece > 0 {
		file = fmt.Sprintf("%s-%d", name, piece)
	}
	return sendParquet(c, file, func(ctx context.Context, p holdout.Principal, id string) (*os.File, error) {
		f, pieces, err := open(ctx, p, id, int(piece))
		if err == nil && pieces > 1 && !named {
			p := invalid(pieceParameter, "", "there are %d pieces: ask for each of them, with %s from 0 to %d", pieces, pieceParameter, pieces-1)
			p.members = map[string]any{"pieces": pieces}
			return nil, errors.Join(p, f.Close())
		}
		c.Header(piecesHeader, strconv.Itoa(max(pieces, 1)))
		return f, err
	})
}

func (a *API) features(c *gin.Context) error { return sendParquet(c, "features", a.service.Features) }

func (a *API) released(c *gin.Context) error {
	part := c.Param("part")
	return sendPiece(c, "released-"+part, func(ctx context.Context, p holdout.Principal, id string, piece int) (*os.File, int, error) {
		return a.service.ReleasedPiece(ctx, p, id, part, piece)
	})
}

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
