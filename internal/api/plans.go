package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// PlanRequest asks what could be promised: of n units, for a number of questions or at a half-width.
type PlanRequest struct {
	N          int64   `json:"n" doc:"units of the holdout"`
	Questions  int64   `json:"questions,omitempty" doc:"how many; without it, as many as fit half_width"`
	Confidence float64 `json:"confidence,omitempty" default:"0.95" doc:"of all intervals together"`
	HalfWidth  float64 `json:"half_width,omitempty" doc:"wanted, in (0,1): each method then also says how many questions it answers"`
	Rounds     int64   `json:"rounds,omitempty" doc:"in how many requests the questions are asked; default: one question after the other"`
	Training   int64   `json:"training,omitempty" doc:"units of the training part"`
	Tokens     int64   `json:"tokens,omitempty" doc:"how many guesses may be wrong; each one costs a token"`
	Published  bool    `json:"published,omitempty" doc:"only bounds of the literature"`
}

type planReply struct{ Body compare.Report }

func (a *API) registerPlans() {
	typed(a, huma.Operation{
		OperationID: "plan", Method: http.MethodPost, Path: "/v1/plans", Tags: []string{"plans"}, Security: needsKey,
		Summary: "Plan a guarantee", Description: "What every method promises for so many units and questions, and which is the narrowest. It looks at no data and costs nothing.",
		Middlewares: huma.Middlewares{a.inTime, a.withBody(a.limits.KeyBytes)},
		RequestBody: a.jsonBody(a.schemaOf(PlanRequest{})), SkipValidateBody: true,
	}, func(ctx context.Context, _ *struct{}) (*planReply, error) {
		r, err := readPlan(bodyOf(ctx))
		if err != nil {
			return nil, err
		}
		var report compare.Report
		err = a.service.InTurn(ctx, caller(ctx), holdout.Work{Steps: planSteps, Bytes: planBytes}, func(ctx context.Context) (err error) {
			report, err = compare.Plan(ctx, compare.Request(r))
			return err
		})
		var wrong *compare.RequestError
		if errors.As(err, &wrong) {
			return nil, wrongMember("/"+wrong.Field, wrong.Detail)
		}
		return &planReply{report}, err
	})
}

const (
	planSteps = 1e9     // a second: what the dearest plans take, which only end with their request
	planBytes = 1 << 20 // far more than a plan takes
)

func readPlan(body []byte) (r PlanRequest, err error) {
	into := map[string]any{
		"n": &r.N, "questions": &r.Questions, "confidence": &r.Confidence, "half_width": &r.HalfWidth,
		"rounds": &r.Rounds, "training": &r.Training, "tokens": &r.Tokens, "published": &r.Published,
	}
	members, err := readObject(body, "n", "questions", "confidence", "half_width", "rounds", "training", "tokens", "published")
	if err != nil {
		return r, err
	}
	if _, ok := members["n"]; !ok {
		return r, wrongMember("", `"n" is missing, the number of units of the holdout`)
	}
	r.Confidence = thresholdout.DefaultConfidence
	for name, value := range members {
		if json.Unmarshal(value, into[name]) == nil && string(value) != "null" {
			if _, truth := into[name].(*bool); !truth && name != "training" && isZero(string(value)) {
				return r, wrongMember("/"+name, "must not be zero; leave it out where it is not given")
			}
			continue
		}
		expected := "a number"
		switch into[name].(type) {
		case *int64:
			expected = "a whole number"
		case *bool:
			expected = "true or false"
		}
		return r, wrongMember("/"+name, "must be "+expected)
	}
	return r, nil
}
