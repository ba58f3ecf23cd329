package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Problem is an error reply of the server (RFC 9457).
type Problem struct {
	Type   string      `json:"type"`
	Title  string      `json:"title"`
	Status int         `json:"status"`
	Code   string      `json:"code"` // "budget-exhausted", "holdout-exists", …: the last part of Type
	Detail string      `json:"detail"`
	Errors []Violation `json:"errors"`

	// Members are all members of the problem, those of its code too, such as requested and remaining.
	Members map[string]json.RawMessage `json:"-"`
	// RetryAfter is how long the server asks to wait; 0 where it does not.
	RetryAfter time.Duration `json:"-"`
	// RequestID is what the server's log calls the request.
	RequestID string `json:"-"`
}

// Violation is one thing that is wrong with a request.
type Violation struct {
	Pointer    string `json:"pointer"`   // RFC 6901, into the body
	Parameter  string `json:"parameter"` // or the parameter, header or part
	Detail     string `json:"detail"`
	Suggestion string `json:"suggestion"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
}

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
