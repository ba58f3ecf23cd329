package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/session/workload"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// PlanRequest asks what could be promised: of n units, for a number of questions or at a half-width.
type PlanRequest struct {
	N          int64   `json:"n" doc:"units of the holdout"`
	Questions  int64   `json:"questions,omitempty" doc:"how many; without it, as many as fit half_width, or as a holdout of this size gets"`
	Confidence float64 `json:"confidence,omitempty" default:"0.95" doc:"of all intervals together"`
	HalfWidth  float64 `json:"half_width,omitempty" doc:"wanted, in (0,1): each method then also says how many questions it answers"`
	Rounds     int64   `json:"rounds,omitempty" doc:"in how many requests the questions are asked; default: one question after the other"`
	Training   int64   `json:"training,omitempty" doc:"units of the training part"`
	Tokens     int64   `json:"tokens,omitempty" doc:"how many guesses may be wrong; each one costs a token"`
	Published  bool    `json:"published,omitempty" doc:"only bounds of the literature"`
	Cells      int64   `json:"cells,omitempty" doc:"how many cells are declared, where all questions are about declared columns with listed values and edges: the mechanism cells is then planned, too"`
	Workload   string  `json:"workload,omitempty" example:"60 accuracy, 60 auc, 10 groups of 12 in -60..180 sd 39" doc:"what is to be asked: kinds of questions, each COUNT TYPE [of CATEGORIES] [in LOW..HIGH] [sd DEVIATION] [at MEAN] [where SHARE]. Then questions may be left out"`
}

// PlanReport is the comparison of the methods and, where a workload was named, what it costs.
type PlanReport struct {
	compare.Report
	Workload *workload.Estimate `json:"workload,omitempty" doc:"what the workload costs under each mechanism, and how wide its intervals are in its own units; methods are then about as many questions as the recommended plan has"`
}

type planReply struct{ Body PlanReport }

func (a *API) registerPlans() {
	typed(a, huma.Operation{
		OperationID: "plan", Method: http.MethodPost, Path: "/v1/plans", Tags: []string{"plans"}, Security: needsKey,
		Summary: "Plan a guarantee", Description: "What every method promises for so many units and questions, and which is the narrowest. It looks at no data and costs nothing.",
		Middlewares: huma.Middlewares{a.inTime, a.withBody(a.limits.KeyBytes)},
		RequestBody: a.jsonBody(a.schemaOf(PlanRequest{})), SkipValidateBody: true,
	}, func(ctx context.Context, _ *struct{}) (*planReply, error) {
		report, err := a.plan(ctx, bodyOf(ctx))
		return &planReply{report}, err
	})
}

// plan reads what is planned, and works in its turn.
func (a *API) plan(ctx context.Context, body []byte) (report PlanReport, err error) {
	r, err := readPlan(body)
	if err != nil {
		return report, err
	}
	err = a.service.InTurn(ctx, caller(ctx), holdout.Work{Steps: planSteps, Bytes: planBytes}, func(ctx context.Context) (err error) {
		report, err = r.plan(ctx)
		return err
	})
	var wrong *compare.RequestError
	if errors.As(err, &wrong) {
		return report, wrongMember("/"+wrong.Field, wrong.Detail)
	}
	var misread *workload.RequestError
	if errors.As(err, &misread) {
		return report, wrongMember("/"+misread.Field, misread.Detail)
	}
	return report, err
}

// plan compares the methods for the questions, or for those of the workload.
func (r PlanRequest) plan(ctx context.Context) (report PlanReport, err error) {
	general := compare.Request{N: r.N, Questions: r.Questions, Confidence: r.Confidence, HalfWidth: r.HalfWidth, Rounds: r.Rounds, Training: r.Training, Tokens: r.Tokens, Published: r.Published, Cells: r.Cells}
	if r.Workload != "" {
		estimate, questions, err := workload.For(ctx, general, r.Workload)
		if err != nil {
			return report, err
		}
		report.Workload, general.Questions = &estimate, questions
	}
	report.Report, err = compare.Plan(ctx, general)
	return report, err
}

const (
	planSteps = 1e9     // a second: what the dearest plans take, which only end with their request
	planBytes = 1 << 20 // far more than a plan takes
)

func readPlan(body []byte) (r PlanRequest, err error) {
	into := map[string]any{
		"n": &r.N, "questions": &r.Questions, "confidence": &r.Confidence, "half_width": &r.HalfWidth,
		"rounds": &r.Rounds, "training": &r.Training, "tokens": &r.Tokens, "published": &r.Published, "cells": &r.Cells, "workload": &r.Workload,
	}
	members, err := readObject(body, "n", "questions", "confidence", "half_width", "rounds", "training", "tokens", "published", "cells", "workload")
	if err != nil {
		return r, err
	}
	if _, ok := members["n"]; !ok {
		return r, wrongMember("", `"n" is missing, the number of units of the holdout`)
	}
	r.Confidence = thresholdout.DefaultConfidence
	for name, value := range members {
		if json.Unmarshal(value, into[name]) == nil && string(value) != "null" {
			switch into[name].(type) {
			case *int64, *float64:
				if name != "training" && isZero(string(value)) {
					return r, wrongMember("/"+name, "must not be zero; leave it out where it is not given")
				}
			}
			continue
		}
		expected := "a number"
		switch into[name].(type) {
		case *int64:
			expected = "a whole number"
		case *bool:
			expected = "true or false"
		case *string:
			expected = "a text, such as \"60 accuracy, 60 auc\""
		}
		return r, wrongMember("/"+name, "must be "+expected)
	}
	return r, nil
}
