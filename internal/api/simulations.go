package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/experiments/selection"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/turns"
)

// simulationsAtOnce is how many simulations run at a time: each takes a processor for a tenth of a second, and none may keep them from questions.
const simulationsAtOnce = 1

// Simulation is one play of feature selection.
type Simulation struct {
	Seed   int64             `json:"seed" doc:"the same seed plays the same again"`
	Rows   int               `json:"rows" doc:"of the training part, of the holdout and of the fresh data; there are as many columns"`
	Signal bool              `json:"signal" doc:"whether a five-hundredth of the columns knows a little of the label"`
	Rounds []selection.Round `json:"rounds"`
}

type simulationRequest struct {
	Seed   int64 `query:"seed" minimum:"0" maximum:"9007199254740991" doc:"the same seed plays the same again"`
	Signal bool  `query:"signal" doc:"whether a five-hundredth of the columns knows a little of the label; else every classifier is right half of the time"`
}

type simulationReply struct{ Body Simulation }

// registerSimulations plays an experiment for a page. It reads no holdout: all of its data is made up from the seed.
func (a *API) registerSimulations() {
	typed(a, huma.Operation{
		OperationID: "simulate-feature-selection", Method: http.MethodGet, Path: "/v1/simulations/feature-selection", Tags: []string{"simulations"}, Security: needsKey,
		Summary: "Play the feature-selection experiment", Description: "An analyst asks a holdout for the correlation of every column with the label, keeps those on which it agrees with the training part, and asks for the accuracy of the k strongest together, for k from 1 on: once of a holdout that tells its own numbers, once through " +
			"Thresholdout. The data is made up from the seed; no holdout of the server is read.",
		Middlewares: huma.Middlewares{a.inTime},
	}, func(ctx context.Context, in *simulationRequest) (*simulationReply, error) {
		wait, cancel := context.WithTimeout(ctx, a.asked.Wait)
		defer cancel()
		place, err := a.simulations.Acquire(wait, caller(ctx).KeyID, turns.Load{Cost: 1})
		if err != nil {
			return nil, &holdout.Error{Kind: holdout.Busy, RetryAfter: time.Second, Detail: "other simulations are under way"}
		}
		defer place.Release()
		return &simulationReply{Simulation{in.Seed, selection.PlayedSize, in.Signal, selection.Play(uint64(in.Seed), in.Signal)}}, nil
	})
}
