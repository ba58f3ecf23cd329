package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/queries"
)

// A class is a kind of problem: its stable code, the HTTP status, the title, and what a caller can do about it.
type class struct {
	code   string
	status int
	title  string
	advice string
}

// The classes that this package finds by itself.
var (
	methodNotAllowed = &class{"method-not-allowed", http.StatusMethodNotAllowed, "Method not allowed", "The Allow header names the methods of this path."}
	unsupportedMedia = &class{"unsupported-media-type", http.StatusUnsupportedMediaType, "Unsupported media type", "Queries are JSON, uploads are Parquet (as the body, or as parts of multipart/form-data)."}
	requestTimeout   = &class{"request-timeout", http.StatusRequestTimeout, "The request came too slowly", "Send the whole request again, faster."}
	rateLimited      = &class{"rate-limited", http.StatusTooManyRequests, "Too many requests", "Wait for the seconds of Retry-After. This is about requests, not about the budget."}
	badRange         = &class{"range-not-satisfiable", http.StatusRequestedRangeNotSatisfiable, "The range is beyond the file", "Content-Range names the length of the file."}
	foreignOrigin    = &class{"foreign-origin", http.StatusForbidden, "The request is from a page of another site", "Agents and programs send no Origin header; a page of another site cannot use this server."}
	tooSlow          = &class{"timeout", http.StatusServiceUnavailable, "The server took too long", "Ask again with the same question. If the first attempt was answered, the same answer comes back and costs nothing more; if it ended without an answer (void), asking again costs again."}
)

// classes maps each kind of error of the service to its class: the only place where it is decided.
var classes = map[holdout.Kind]*class{
	holdout.Internal:            {"internal", http.StatusInternalServerError, "Internal error", "A fault of the server; its log has the request under X-Request-Id."},
	holdout.Malformed:           {"malformed", http.StatusBadRequest, "The request cannot be read", "Send one JSON object in UTF-8 in which no key occurs twice."},
	holdout.Invalid:             {"invalid", http.StatusUnprocessableEntity, "The request is wrong", "The member errors names each place and what is wrong there."},
	holdout.BadUpload:           {"bad-upload", http.StatusUnprocessableEntity, "The file cannot become a holdout", "Mend the file as detail says and upload it again; nothing was kept."},
	holdout.TooLarge:            {"too-large", http.StatusRequestEntityTooLarge, "The request is too large", "Stay below the limit that detail names."},
	holdout.Unauthorized:        {"unauthorized", http.StatusUnauthorized, "A key is needed", "Send Authorization: Bearer hk_… with a key that is not revoked; where the server takes tokens of an issuer, a token that has not expired."},
	holdout.Forbidden:           {"forbidden", http.StatusForbidden, "The key may not do this", "Use a key with the scope admin."},
	holdout.NotFound:            {"not-found", http.StatusNotFound, "Not found", "Check the path and the id."},
	holdout.UnitUndecided:       {"unit-undecided", http.StatusUnprocessableEntity, "What is one observation?", "A column names something of which each has several rows, such as customers. Send the same upload with unit=COLUMN or unit=row; the member choices has both with what they give. Nothing was kept."},
	holdout.Exists:              {"holdout-exists", http.StatusConflict, "The same table was uploaded before", "Use the holdout named by the member holdout. The member reason says why it cannot be created again with other settings."},
	holdout.RowsKnown:           {"rows-known", http.StatusConflict, "Rows of the table are known", "The member overlaps names the holdouts, what is known and how many rows at least. Use them, or upload other rows; an admin who knows why can send overlap=accepted, which the card then says for good. Nothing was kept."},
	holdout.Conflict:            {"conflict", http.StatusConflict, "The request collides with another", "Wait for the other request, then look again."},
	holdout.IdempotencyMismatch: {"idempotency-mismatch", http.StatusUnprocessableEntity, "The Idempotency-Key was used for another request", "Use a new key for a new request, and the same key only for the same request."},
	holdout.BudgetExhausted:     {"budget-exhausted", http.StatusForbidden, "The budget does not pay for it", "Questions that were answered before can still be asked; asking for less may still be possible (affordable)."},
	holdout.GrantExhausted:      {"grant-exhausted", http.StatusForbidden, "The key's grant does not pay for it", "The holdout may still have budget: ask whoever made the grant, which the member grant names. Questions that were answered before can still be asked."},
	holdout.GrantEnded:          {"grant-ended", http.StatusForbidden, "The key's grant has ended", "Ask whoever made the grant, which the member grant names. The member reason says whether it was revoked or expired."},
	holdout.NotShown:            {"not-shown", http.StatusForbidden, "The key's grant does not show it", "Ask for what the grant shows, as detail says, or for a key with a grant that shows more."},
	holdout.EpsilonExhausted:    {"epsilon-exhausted", http.StatusForbidden, "The releases of this holdout have no such epsilon left", "Ask for a release with a smaller epsilon, at most remaining. Releases that were made are still replayed."},
	holdout.ReleasedBefore:      {"released-before", http.StatusConflict, "The same rows were released of before", "The member earlier_releases names the holdouts whose releases are of the same rows, with what they have spent. Use their releases. earlier_releases=accepted makes it all the same, and the cards say so for good."},
	holdout.Unconfirmed:         {"max-questions", http.StatusUnprocessableEntity, "The request costs more than it may", "Nothing was read and nothing was debited. Ask for less, or, if the price is meant, send the same request with the parameter max_questions, at least as large as the member requested."},
	holdout.Busy:                {"busy", http.StatusServiceUnavailable, "The server is busy", "Nothing was done. Ask again after the seconds of Retry-After."},
	holdout.Unavailable:         {"unavailable", http.StatusServiceUnavailable, "The server cannot answer now", "Nothing was released. Ask again after the seconds of Retry-After. An answer that was recorded comes back and costs nothing more."},
	holdout.Damaged:             {"holdout-damaged", http.StatusServiceUnavailable, "The holdout is damaged", "Its files or its place in the ledger are not what was written. Restore what detail names from a backup; recorded answers still replay."},
	holdout.RolledBack:          {"ledger-rolled-back", http.StatusServiceUnavailable, "The ledger is older than it was", "Answers that this holdout has given are missing from the ledger. Restore the newest copy of the data directory; recorded answers still replay."},
	holdout.DiskFull:            {"disk-full", http.StatusInsufficientStorage, "The disk is full", "Make room on the disk of the data directory and send the request again; nothing was kept."},
}

// allClasses lists every class, by status and code, for the documentation.
func allClasses() []*class {
	all := slices.Collect(maps.Values(classes))
	all = append(all, methodNotAllowed, unsupportedMedia, requestTimeout, badRange, rateLimited, foreignOrigin, tooSlow)
	slices.SortFunc(all, func(a, b *class) int {
		if a.status != b.status {
			return a.status - b.status
		}
		return strings.Compare(a.code, b.code)
	})
	return all
}

// Violation is one thing that is wrong with a request.
type Violation struct {
	Pointer    string `json:"pointer,omitempty" doc:"RFC 6901 pointer into the body"`
	Parameter  string `json:"parameter,omitempty" doc:"the name of the parameter, header or part that is wrong"`
	Detail     string `json:"detail" doc:"what is wrong; it does not repeat the body's values"`
	Suggestion string `json:"suggestion,omitempty" doc:"what was probably meant"`
	Line       int    `json:"line,omitempty" doc:"from 1: in the body if it is malformed, else in the expression at pointer"`
	Column     int    `json:"column,omitempty" doc:"from 1, in characters"`
}

// Problem is the body of every error reply (RFC 9457). Members of its class stand beside these.
type Problem struct {
	Type   string      `json:"type" doc:"identifies the class of problem: /problems/ and the code"`
	Title  string      `json:"title" doc:"the class in words; the same for every occurrence"`
	Status int         `json:"status" doc:"the HTTP status"`
	Code   string      `json:"code" doc:"the last part of type, to compare with"`
	Detail string      `json:"detail" doc:"what happened this time and what can be done"`
	Errors []Violation `json:"errors,omitempty" doc:"each thing that is wrong, in the order of the request"`

	members    map[string]any
	retryAfter time.Duration // 0: no Retry-After header
	cause      error         // for the log
}

func problem(c *class, format string, args ...any) *Problem {
	return &Problem{Type: "/problems/" + c.code, Title: c.title, Status: c.status, Code: c.code, Detail: fmt.Sprintf(format, args...)}
}

// invalid is a problem with one parameter, header or part.
func invalid(parameter, suggestion, format string, args ...any) *Problem {
	p := problem(classes[holdout.Invalid], format, args...)
	p.Errors = []Violation{{Parameter: parameter, Detail: p.Detail, Suggestion: suggestion}}
	if suggestion != "" {
		p.Detail += "; did you mean " + suggestion + "?"
	}
	return p
}

// Error makes a Problem an error and, with GetStatus, one that huma replies with.
func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType replaces JSON's media type by that of RFC 9457.
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// MarshalJSON writes the members of the class after those of every problem.
func (p *Problem) MarshalJSON() ([]byte, error) {
	type plain Problem
	b, err := marshal((*plain)(p))
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(p.members)) {
		value, err := marshal(p.members[name])
		if err != nil {
			return nil, err
		}
		b = append(b[:len(b)-1], ',')
		b = append(strconv.AppendQuote(b, name), ':')
		b = append(append(b, value...), '}')
	}
	return b, nil
}

// problemOf turns an error of the service into the problem that is replied.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var e *holdout.Error
	if errors.As(err, &e) && e.Members["void"] == true { // before any cause is looked at: the others say that nothing was debited
		p := problem(classes[e.Kind], "%s", e.Detail)
		p.members, p.cause = e.Members, err
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		p := problem(tooSlow, "the server did not finish in time; ask again")
		p.cause, p.retryAfter = err, time.Second
		return p
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		p := problem(classes[holdout.Unavailable], "the server has too many files and connections open")
		p.cause, p.retryAfter = err, time.Second
		return p
	}
	if e == nil || e.Kind == holdout.Internal {
		p := problem(classes[holdout.Internal], "the server failed; the request was not answered")
		p.cause = err
		return p
	}
	p = problem(classes[e.Kind], "%s", e.Detail)
	p.members, p.cause = e.Members, e.Err
	if e.Kind == holdout.Unavailable || e.Kind == holdout.Busy {
		p.retryAfter = max(e.RetryAfter, time.Second)
	}
	var q *queries.Error
	switch {
	case errors.As(err, &q) && e.Pointer == "":
		for _, v := range q.Violations {
			p.Errors = append(p.Errors, Violation{Pointer: v.Pointer, Detail: v.Detail, Suggestion: v.Suggestion, Line: v.Line, Column: v.Column})
		}
	case strings.HasPrefix(e.Pointer, "/"):
		p.Errors = []Violation{{Pointer: e.Pointer, Detail: e.Detail, Suggestion: e.Meant}}
	case e.Pointer != "":
		p.Errors = []Violation{{Parameter: e.Pointer, Detail: e.Detail, Suggestion: e.Meant}}
	}
	return p
}

// headers sets what goes with a problem beside its body.
func (p *Problem) headers(h http.Header) {
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="holdoutd"`)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
}

// GetHeaders gives huma the headers that go with the problem.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	p.headers(h)
	return h
}

// reply writes the problem, unless a reply has begun: then all that is left is to cut the connection, so that the
// client cannot take the piece for the whole.
func (p *Problem) reply(c *gin.Context) {
	c.Abort()
	if c.Writer.Written() {
		panic(http.ErrAbortHandler)
	}
	body, err := marshal(p)
	if err != nil { // a member that is no JSON: the problem without members always is
		p.members = nil
		body, _ = marshal(p)
	}
	media := problemType
	if c.FullPath() == mcpPath {
		media, body = "application/json", p.forAgents(bodyOf(c.Request.Context()), body)
	}
	p.headers(c.Writer.Header())
	c.Set(keyProblem, p)
	c.Writer.Header().Set("Content-Type", media) // whatever the handler was about to send
	c.Data(p.Status, media, body)
}

// The errors of huma become ours, without the values that were sent. It calls this with what it found wrong with
// parameters, before any handler of ours runs.
//
// A list in a reply is never null, so its schema does not say it could be.
func init() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		for _, err := range errs {
			var p *Problem
			if errors.As(err, &p) {
				return p
			}
		}
		p := problem(classOf(status), "%s", message)
		for _, err := range errs {
			var d huma.ErrorDetailer
			if errors.As(err, &d) {
				in, at, _ := strings.Cut(d.ErrorDetail().Location, ".")
				v := Violation{Parameter: at, Detail: d.ErrorDetail().Message}
				if in == "body" {
					v = Violation{Pointer: "/" + strings.ReplaceAll(at, ".", "/"), Detail: v.Detail}
				}
				p.Errors = append(p.Errors, v)
			}
		}
		if len(p.Errors) > 0 {
			p.Detail = fmt.Sprintf("%s: %s", p.Errors[0].Parameter+p.Errors[0].Pointer, p.Errors[0].Detail)
		}
		if status >= http.StatusInternalServerError {
			p.Detail, p.cause = "the server failed; the request was not answered", errors.Join(append(errs, errors.New(message))...)
		}
		return p
	}
}

func classOf(status int) *class {
	switch status {
	case http.StatusBadRequest:
		return classes[holdout.Malformed]
	case http.StatusUnprocessableEntity:
		return classes[holdout.Invalid]
	case http.StatusRequestEntityTooLarge:
		return classes[holdout.TooLarge]
	case http.StatusRequestTimeout:
		return requestTimeout
	case http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		return unsupportedMedia
	}
	return classes[holdout.Internal]
}

// marshal writes JSON without the escapes that only HTML needs, so that a condition reads delay < 5.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
