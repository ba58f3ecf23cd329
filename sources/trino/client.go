package trino

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client runs statements of one user by Trino's REST protocol: a POST, then a GET of each nextUri until there is none.
type client struct {
	http     *http.Client
	base     *url.URL // scheme and host
	user     string
	password string
	catalog  string
	schema   string
	longest  time.Duration // that the engine may take for a statement
}

const (
	// waitForPage is for one reply, which the engine keeps back for about a second while there is nothing to say.
	waitForPage = 30 * time.Second
	// waitForEnd is for telling the engine that a statement is not wanted any more.
	waitForEnd = 5 * time.Second
	// maxPage bounds one reply. The engine makes pages of about a megabyte, of at most 128.
	maxPage = 160 << 20
	// attempts is how often a statement that only reads is sent: once more where a node went away, and once more where the whole engine was started anew.
	attempts = 3
	// betweenAttempts is the first pause; the next one is five times as long.
	betweenAttempts = 500 * time.Millisecond
	// pollErrors is how many requests for a page may fail, one after the other, with the statement still going on.
	pollErrors = 5
)

// failure is what the engine says of a statement that failed. Its text may quote rows and is for the operator.
type failure struct {
	Message string `json:"message"`
	Name    string `json:"errorName"`
	Type    string `json:"errorType"` // USER_ERROR, INTERNAL_ERROR, INSUFFICIENT_RESOURCES, EXTERNAL
}

func (f *failure) Error() string { return fmt.Sprintf("trino: %s: %s", f.Name, f.Message) }

// statusError is a reply that is none of the protocol's.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("trino: HTTP status %d: %s", e.status, e.text)
}

// passing reports whether the same statement may succeed a moment later: a node or the coordinator went away, or has too much to do.
func passing(err error) bool {
	if f := (*failure)(nil); errors.As(err, &f) {
		switch f.Name {
		case "CLUSTER_OUT_OF_MEMORY", "QUERY_QUEUE_FULL", "SERVER_STARTING_UP", "ADMINISTRATIVELY_PREEMPTED":
			return true
		}
		return f.Type == "INTERNAL_ERROR" || f.Type == "EXTERNAL"
	}
	if s := (*statusError)(nil); errors.As(err, &s) {
		return s.status >= 500 || s.status == http.StatusTooManyRequests || s.status == http.StatusNotFound // of a page: the coordinator was started anew
	}
	return err != nil && !errors.Is(err, errProtocol)
}

var errProtocol = errors.New("trino: the reply is none of the statement protocol")

// page is a reply.
type page struct {
	ID      string          `json:"id"`
	NextURI string          `json:"nextUri"`
	Columns []column        `json:"columns"`
	Data    json.RawMessage `json:"data"`
	Error   *failure        `json:"error"`
	Stats   struct {
		State string `json:"state"`
	} `json:"stats"`
	Updated int64 `json:"updateCount"`
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// run sends a statement once and hands each page that has columns or rows to take, in order. When it returns nil the statement has finished and all of its rows were handed over.
// When ctx ends, or take fails, the engine is told to stop.
func (c *client) run(ctx context.Context, statement string, take func(page) error) error {
	p, err := c.post(ctx, statement)
	failures := 0
	for {
		switch {
		case err != nil && p.NextURI == "": // nothing was begun that is known of
			return err
		case err != nil:
			failures++
			if failures > pollErrors || !passing(err) || ctx.Err() != nil {
				c.stop(p.NextURI)
				return firstOf(ctx.Err(), err)
			}
			if pause(ctx, time.Duration(failures)*100*time.Millisecond) != nil {
				c.stop(p.NextURI)
				return ctx.Err()
			}
		default:
			failures = 0
			if p.Error != nil {
				return p.Error
			}
			if take != nil && (len(p.Data) > 0 || len(p.Columns) > 0) {
				if err := take(p); err != nil {
					c.stop(p.NextURI)
					return err
				}
			}
			if p.NextURI == "" {
				if p.Stats.State != "FINISHED" {
					return fmt.Errorf("%w: it ends in the state %q", errProtocol, p.Stats.State)
				}
				return nil
			}
		}
		if ctx.Err() != nil {
			c.stop(p.NextURI)
			return ctx.Err()
		}
		var next page
		if next, err = c.get(ctx, p.NextURI); err == nil {
			p = next
		}
	}
}

// read runs a statement that only reads, again where what failed may pass. begin is called before each attempt, and forgets what the one before has brought.
func (c *client) read(ctx context.Context, statement string, begin func(), take func(page) error) error {
	wait := betweenAttempts
	for attempt := 1; ; attempt++ {
		if begin != nil {
			begin()
		}
		var taking error // of ours, which no second attempt mends
		err := c.run(ctx, statement, func(p page) error {
			if take != nil {
				taking = take(p)
			}
			return taking
		})
		if err == nil || taking != nil || ctx.Err() != nil || attempt == attempts || !passing(err) {
			return err
		}
		if pause(ctx, wait) != nil {
			return ctx.Err()
		}
		wait *= 5
	}
}

// rows runs a statement that only reads and returns all of its rows, of which there are few: each value is a string, a json.Number, a bool or nil.
func (c *client) rows(ctx context.Context, statement string) (rows [][]any, err error) {
	err = c.read(ctx, statement, func() { rows = nil }, func(p page) error {
		more, err := decode(p)
		rows = append(rows, more...)
		return err
	})
	return rows, err
}

func decode(p page) (rows [][]any, err error) {
	if len(p.Data) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(p.Data))
	d.UseNumber()
	if err := d.Decode(&rows); err != nil {
		return nil, fmt.Errorf("%w: %w", errProtocol, err)
	}
	for _, row := range rows {
		if len(row) != len(p.Columns) {
			return nil, fmt.Errorf("%w: a row has %d values of %d columns", errProtocol, len(row), len(p.Columns))
		}
	}
	return rows, nil
}

// exec runs a statement that writes: once, for nobody knows what a second one would do.
func (c *client) exec(ctx context.Context, statement string) error { return c.run(ctx, statement, nil) }

// post sends a statement. It is not cut off by ctx, for then nobody would know what to stop; the reply comes within about a second.
func (c *client) post(ctx context.Context, statement string) (page, error) {
	if err := ctx.Err(); err != nil {
		return page{}, err
	}
	request, err := http.NewRequest(http.MethodPost, c.base.JoinPath("/v1/statement").String(), strings.NewReader(statement))
	if err != nil {
		return page{}, err
	}
	c.sign(request)
	h := request.Header
	h.Set("X-Trino-Catalog", c.catalog)
	h.Set("X-Trino-Schema", c.schema)
	h.Set("X-Trino-Time-Zone", "UTC")
	h.Set("X-Trino-Language", "en")
	h.Set("X-Trino-Client-Capabilities", "PARAMETRIC_DATETIME")
	seconds := max(1, int64(c.longest/time.Second))
	h.Set("X-Trino-Session", fmt.Sprintf("query_max_run_time=%ds,query_max_execution_time=%ds", seconds, seconds))
	return c.send(context.WithoutCancel(ctx), request)
}

func (c *client) get(ctx context.Context, uri string) (page, error) {
	request, err := c.follow(http.MethodGet, uri)
	if err != nil {
		return page{}, err
	}
	return c.send(ctx, request)
}

// stop tells the engine that a statement is not wanted any more, whatever became of its context.
func (c *client) stop(uri string) {
	if uri == "" {
		return
	}
	request, err := c.follow(http.MethodDelete, uri)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitForEnd)
	defer cancel()
	reply, err := c.http.Do(request.WithContext(ctx))
	if err != nil {
		return // the engine gives up by itself what nobody asks for: query.client.timeout
	}
	reply.Body.Close()
}

// follow is a request for an address that the engine gave. It goes to the host that we know, whatever host the engine believes to be: its password goes nowhere else.
func (c *client) follow(method, uri string) (*http.Request, error) {
	given, err := url.Parse(uri)
	if err != nil || !strings.HasPrefix(given.Path, "/v1/statement/") {
		return nil, fmt.Errorf("%w: its nextUri is none", errProtocol)
	}
	given.Scheme, given.Host, given.User = c.base.Scheme, c.base.Host, nil
	request, err := http.NewRequest(method, given.String(), nil)
	if err == nil {
		c.sign(request)
	}
	return request, err
}

func (c *client) sign(r *http.Request) {
	r.Header.Set("X-Trino-User", c.user)
	r.Header.Set("X-Trino-Source", "holdoutd")
	if c.password != "" {
		r.SetBasicAuth(c.user, c.password)
	}
}

func (c *client) send(ctx context.Context, request *http.Request) (p page, err error) {
	ctx, cancel := context.WithTimeout(ctx, waitForPage)
	defer cancel()
	reply, err := c.http.Do(request.WithContext(ctx))
	if err != nil {
		return page{}, fmt.Errorf("trino: %w", err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(reply.Body, 500))
		return page{}, &statusError{reply.StatusCode, string(text)}
	}
	body := &io.LimitedReader{R: reply.Body, N: maxPage}
	if err := json.NewDecoder(body).Decode(&p); err != nil {
		if body.N <= 0 {
			return page{}, fmt.Errorf("%w: a page is longer than %d bytes", errProtocol, maxPage)
		}
		return page{}, fmt.Errorf("trino: read a page: %w", err)
	}
	return p, nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// describe runs a statement that has no rows and says its columns.
func (c *client) describe(ctx context.Context, statement string, columns *[]column) error {
	return c.read(ctx, statement, nil, func(p page) error {
		*columns = p.Columns
		return nil
	})
}
