package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/queries/model"
)

type modelPath struct {
	SHA256 string `path:"sha256" doc:"as POST /v1/models said it"`
}

type modelReply struct{ Body holdout.KeptModel }

// modelSchema is short: what a model may be is said by docs/MODELS.md, and by the errors.
func modelSchema() *huma.Schema {
	one, forms := 1, map[string]*huma.Schema{}
	for _, name := range model.Forms {
		forms[name] = &huma.Schema{Type: "object"}
	}
	return &huma.Schema{Type: "object", MinProperties: &one, MaxProperties: &one, AdditionalProperties: false, Properties: forms}
}

func (a *API) registerModels() {
	tags := []string{"models"}
	typed(a, huma.Operation{
		OperationID: "keep-model", Method: http.MethodPost, Path: "/v1/models", Tags: tags, Security: needsKey,
		Middlewares: huma.Middlewares{a.inTime, a.withBody(int64(a.asked.ModelBytes))},
		Summary:     "Send a model once",
		Description: "Questions then name it by its digest, `\"model\": {\"sha256\": …}`, instead of carrying it. It is the same question as with the model itself. The server keeps a model in memory, for a day after its last use, while there is room; a question that names one that is gone is refused, costs nothing, and you send the model again. `threshold` and `features` stand beside the digest.",
		RequestBody: a.jsonBody(modelSchema()), SkipValidateBody: true,
	}, func(ctx context.Context, _ *struct{}) (*modelReply, error) {
		k, err := a.service.KeepModel(ctx, caller(ctx), bodyOf(ctx))
		return &modelReply{k}, err
	})
	typed(a, huma.Operation{
		OperationID: "get-model", Method: http.MethodGet, Path: "/v1/models/{sha256}", Tags: tags, Security: needsKey, Middlewares: huma.Middlewares{a.inTime},
		Summary: "Whether a model is still kept", Description: "404 if it is not. Looking counts as a use.",
	}, func(_ context.Context, in *modelPath) (*modelReply, error) {
		k, err := a.service.FindModel(in.SHA256)
		return &modelReply{k}, err
	})
}
