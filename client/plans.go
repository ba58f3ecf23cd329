package client

import (
	"context"
)

// PlanRequest asks what could be promised of N units: for Questions, or at a HalfWidth in units of a row function's [0,1].
type PlanRequest struct {
	N          int64   `json:"n"`
	Questions  int64   `json:"questions,omitempty"`
	Confidence float64 `json:"confidence,omitempty"` // 0: 0.95
	HalfWidth  float64 `json:"half_width,omitempty"`
	Rounds     int64   `json:"rounds,omitempty"`
	Training   int64   `json:"training,omitempty"`
	Tokens     int64   `json:"tokens,omitempty"`
	Published  bool    `json:"published,omitempty"` // only bounds of the literature
}

// Plan compares the methods. It repeats what was asked, with the defaults filled in.
type Plan struct {
	N           int64        `json:"n"`
	Questions   int64        `json:"questions"`
	Confidence  float64      `json:"confidence"`
	HalfWidth   float64      `json:"half_width"`
	Rounds      int64        `json:"rounds"`
	Training    int64        `json:"training"`
	Tokens      int64        `json:"tokens"`
	Published   bool         `json:"published"`
	Methods     []MethodPlan `json:"methods"`
	Recommended string       `json:"recommended"`
	Notes       []string     `json:"notes"` // sentences for a person
}

// MethodPlan is what one method promises. HalfWidth is nil where it promises nothing.
type MethodPlan struct {
	Method          string             `json:"method"`
	Mechanism       string             `json:"mechanism"`
	HalfWidth       *float64           `json:"half_width"`
	NoiseSigma      float64            `json:"noise_sigma"`
	Parts           map[string]float64 `json:"parts"`
	Published       bool               `json:"published"`
	Assumes         string             `json:"assumes"`
	Rounds          int64              `json:"rounds"`
	QuestionsWithin *int64             `json:"questions_within"`
}

// Plan says what every method promises, before there is a holdout. It looks at no data and costs nothing.
func (c *Client) Plan(ctx context.Context, r PlanRequest) (p Plan, err error) {
	return p, c.post(ctx, "/v1/plans", r, false, &p)
}
