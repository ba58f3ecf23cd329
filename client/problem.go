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

// UnmarshalJSON keeps all members beside those that every problem has.
func (p *Problem) UnmarshalJSON(b []byte) error {
	type plain Problem
	if err := json.Unmarshal(b, (*plain)(p)); err != nil {
		return err
	}
	return json.Unmarshal(b, &p.Members)
}

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
	return p
}
