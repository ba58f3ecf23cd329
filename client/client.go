// Package client speaks the HTTP interface of holdoutd: it uploads tables, asks questions and reads ledgers.
//
//	c, err := client.New("http://127.0.0.1:8080", key)
//	card, err := c.CreateHoldout(ctx, file, client.Settings{Name: "flights", Holdout: 0.3})
//	reply, err := c.Ask(ctx, card.ID, map[string]any{"type": "fraction", "of": "delay > 15"})
//	if client.IsBudgetExhausted(err) { … }
//
// Errors of the server are *Problem. A request that can be sent again without harm is sent again, with the same
// Idempotency-Key, when the connection breaks or the server is unavailable for a moment. An answer costs once,
// however often its question is sent; a question that ended without an answer (void) costs again when it is asked again.
package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// What a client does unless it is told otherwise.
const (
	DefaultRetries = 4                      // after the first attempt; with the pauses below about 3 seconds in all
	firstPause     = 200 * time.Millisecond // doubled for each further attempt
	longestPause   = 30 * time.Second       // also of what a server asks for with Retry-After
	maxProblem     = 1 << 20                // bytes of an error reply that are read
)

// Client is a connection to one server with one key. It may be used from many goroutines.
type Client struct {
	base    string
	key     string
	grant   string // that pays; "": which one is up to the server
	http    *http.Client
	retries int
}

// Option changes how a Client works.
type Option func(*Client)

// direct follows no redirect: the key, and what a question says, go to the server that they were meant for, and a reply comes from it.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// WithHTTPClient replaces the client that requests are sent with: one like http.DefaultClient that follows no redirects.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithRetries sets how often a request is sent again; 0 for never.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// New makes a client for the server at base, such as http://127.0.0.1:8080, that shows key, hk_….
func New(base, key string, options ...Option) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("client: %q is not the URL of a server, such as http://127.0.0.1:8080", base)
	}
	c := &Client{base: strings.TrimSuffix(base, "/"), key: key, http: direct, retries: DefaultRetries}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

// OnGrant makes every call on a grant of the client's key, as WithGrant makes one.
func OnGrant(id string) Option { return func(c *Client) { c.grant = id } }

type idempotencyKey struct{}

// WithIdempotencyKey gives the next call its Idempotency-Key, for callers that send a request again themselves, such as
// after their own restart. Without it each call makes a random one.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

type maxQuestions struct{}

// WithMaxQuestions lets a call of Ask or AskBatch cost at most n questions, from 1, all of its queries together. Without it the server refuses a
// query that costs more than a tenth of the holdout's questions, with the code max-questions.
func WithMaxQuestions(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, maxQuestions{}, n)
}

type grantKey struct{}

// WithGrant makes calls on a grant of the caller's key. Without it a question is paid by the only live grant that the key has of the holdout; a key that has
// several must name one.
func WithGrant(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, grantKey{}, id)
}

// asking are the parameters of a request that asks questions.
func asking(ctx context.Context) url.Values {
	if n, ok := ctx.Value(maxQuestions{}).(int64); ok {
		return url.Values{"max_questions": {strconv.FormatInt(n, 10)}}
	}
	return nil
}

func keyFor(ctx context.Context) string {
	if key, ok := ctx.Value(idempotencyKey{}).(string); ok {
		return key
	}
	return rand.Text()
}

// A call is one request, which may take several attempts.
type call struct {
	method, path string
	query        url.Values
	media        string
	body         func() (io.Reader, error) // a fresh body for each attempt; nil: no body
	once         bool                      // never sent again
	idempotent   bool                      // carries an Idempotency-Key
	prefer       string                    // how the reply should be, or ""
	from         int64                     // the rest of a file from here on, by a range; 0: all of it
}

// send returns a reply with a 2xx status; its body is the caller's to close.
func (c *Client) send(ctx context.Context, r call) (*http.Response, error) {
	key := ""
	if r.idempotent {
		key = keyFor(ctx)
	}
	for attempt := 0; ; attempt++ {
		reply, err := c.attempt(ctx, r, key)
		if err == nil {
			return reply, nil
		}
		pause, again := retryable(err, attempt)
		if !again || r.once || attempt >= c.retries || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

func (c *Client) attempt(ctx context.Context, r call, key string) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		var err error
		if body, err = r.body(); err != nil {
			return nil, &permanent{err}
		}
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, &permanent{err}
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	if r.media != "" {
		request.Header.Set("Content-Type", r.media)
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	if r.prefer != "" {
		request.Header.Set("Prefer", r.prefer)
	}
	if r.from > 0 {
		request.Header.Set("Range", "bytes="+strconv.FormatInt(r.from, 10)+"-")
	}
	grant, ok := ctx.Value(grantKey{}).(string)
	if !ok {
		grant = c.grant
	}
	if grant != "" {
		request.Header.Set("X-Holdoutd-Grant", grant)
	}
	reply, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if reply.StatusCode < 300 {
		return reply, nil
	}
	defer reply.Body.Close()
	return nil, readProblem(reply)
}

// permanent is an error that another attempt cannot mend.
type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// retryable says whether to try again, and after which pause.
func retryable(err error, attempt int) (time.Duration, bool) {
	var never *permanent
	if errors.As(err, &never) {
		return 0, false
	}
	pause := min(firstPause<<min(attempt, 10), longestPause)
	var p *Problem
	if errors.As(err, &p) {
		if void := false; p.Member("void", &void) && void {
			return 0, false // it was debited, and would be again
		}
		if p.Status != http.StatusServiceUnavailable && p.Status != http.StatusTooManyRequests {
			return 0, false
		}
		if p.Code == "holdout-damaged" || p.Code == "ledger-rolled-back" || p.Code == "source-changed" {
			return 0, false // somebody has to restore a backup, or mend a table, first
		}
		pause = min(max(pause, p.RetryAfter), longestPause)
	}
	return pause/2 + mathrand.N(pause/2+1), true // spread, so that clients do not return all at once
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
