package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Error is the problem in one line: its status, its code and what happened.
func (p *Problem) Error() string { return fmt.Sprintf("client: %d %s: %s", p.Status, p.Code, p.Detail) }

// Is makes errors.Is(err, &Problem{Code: "conflict"}) true for every problem with that code.
func (p *Problem) Is(target error) bool {
	t, ok := target.(*Problem)
	return ok && t.Code == p.Code
}

// Member reads one member of the problem into v and says whether it was there and fitted.
func (p *Problem) Member(name string, v any) bool {
	raw, ok := p.Members[name]
	return ok && json.Unmarshal(raw, v) == nil
}

// IsBudgetExhausted says whether a question was refused because the budget is spent.
func IsBudgetExhausted(err error) bool { return errors.Is(err, &Problem{Code: "budget-exhausted"}) }

// IsNotFound says whether what was asked for is not there, or not there for this key.
func IsNotFound(err error) bool { return errors.Is(err, &Problem{Code: "not-found"}) }

// ExistingHoldout is the id of the holdout that was made of the same table before, where that is why an upload was
// refused.
func ExistingHoldout(err error) (id string, ok bool) {
	var p *Problem
	if !errors.As(err, &p) || p.Code != "holdout-exists" {
		return "", false
	}
	return id, p.Member("holdout", &id)
}

// UnitChoice is what one observation of a table may be, and what that would give.
type UnitChoice struct {
	Unit      string   `json:"unit"`       // the value of Settings.Unit
	Units     int64    `json:"units"`      // of the table; of a column about, rounded up
	Rows      float64  `json:"rows"`       // a unit has on average
	HalfWidth *float64 `json:"half_width"` // of a share's planned interval; nil where it cannot be planned
}

// UnitChoices is what one observation may be, where an upload was refused because nobody said it: a column of the table names something of which each
// has several rows.
func UnitChoices(err error) (choices []UnitChoice, ok bool) {
	var p *Problem
	if !errors.As(err, &p) || p.Code != "unit-undecided" {
		return nil, false
	}
	return choices, p.Member("choices", &choices) && len(choices) > 0
}

func readProblem(reply *http.Response) *Problem {
	p := &Problem{Status: reply.StatusCode, RetryAfter: retryAfter(reply.Header), RequestID: reply.Header.Get("X-Request-Id")}
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxProblem))
	if err == nil {
		err = json.Unmarshal(body, p)
	}
	if err != nil || p.Code == "" { // not our server: a proxy, perhaps
		p.Title, p.Detail = http.StatusText(reply.StatusCode), "the reply is not a problem document"
		return p
	}
	json.Unmarshal(body, &p.Members)
	return p
}
