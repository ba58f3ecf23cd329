package clickhouse

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/sources"
)

const (
	// attempts is how often a statement that reads is sent, where the connection fails. A statement of a question only reads, so it may be sent again.
	attempts = 3
	// firstPause is waited before the second attempt, and three times as long before the next.
	firstPause = 150 * time.Millisecond
	// killTimeout is for the statement that ends another one. Where that one had not begun to answer it is sent up to killAttempts times, later and later, until it has found the
	// other one: an engine that still reads a long statement does not list it yet.
	killTimeout  = 5 * time.Second
	killAttempts = 4
	// connectTimeout is for a connection to a server of the same house.
	connectTimeout = 5 * time.Second
	// idleConnections are kept for the next statements.
	idleConnections = 16
	// maxErrorText is how much of an engine's error is kept for the operator.
	maxErrorText = 4 << 10
)

// conn speaks HTTP with the servers. It is safe for concurrent use.
type conn struct {
	o      options
	client *http.Client
	kills  sync.WaitGroup
	pause  time.Duration // before a statement is sent again
	closed chan struct{} // ends the pauses of kills
	close1 sync.Once
}

func newConn(o options) *conn {
	return &conn{o: o, pause: firstPause, closed: make(chan struct{}), client: &http.Client{Transport: &http.Transport{
		Proxy:               nil, // rows go to the named server, and to no other
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSClientConfig:     o.tls,
		TLSHandshakeTimeout: connectTimeout,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     time.Second, // servers close connections after 3 s
	}}}
}

// close waits for kills that are under way, which try once more at once and then give up: the engine's own limit ends what they did not find.
func (c *conn) close() {
	c.close1.Do(func() { close(c.closed) })
	c.kills.Wait()
	c.client.CloseIdleConnections()
}

// statement is one of SQL, and where it goes.
type statement struct {
	text     string
	as       user
	server   string            // "": that which is asked
	settings map[string]string // the loader's alone: a readonly user may set none
	rows     io.Reader         // of an INSERT
	whole    bool              // the reply is small: the server sends it when it is complete, and an error comes as an error
}

// reply is what a statement reads. Closing it before its end stops the statement at the server.
type reply struct {
	body  io.ReadCloser
	ended bool
	stop  func()
	cut   context.CancelFunc
}

func (r *reply) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if errors.Is(err, io.EOF) {
		r.ended = true
	}
	return n, err
}

func (r *reply) Close() {
	if !r.ended {
		r.stop()
	}
	r.cut()
	r.body.Close()
}

// send sends a statement and returns what it answers, once it begins to. Whoever calls closes the reply. Errors are [*sources.Error].
func (c *conn) send(ctx context.Context, s statement) (*reply, error) {
	id := queryID()
	server := s.server
	if server == "" {
		server = c.o.server
	}
	query := url.Values{"query_id": {id}}
	if s.whole {
		query.Set("wait_end_of_query", "1")
	}
	for k, v := range s.settings {
		query.Set(k, v)
	}
	body := io.Reader(strings.NewReader(s.text))
	if s.rows != nil {
		query.Set("query", s.text)
		body = s.rows
	}
	// The deadline of ctx must not cut the connection before the statement is killed by its id: a server notices a connection that is gone late, or never.
	running, cut := context.WithCancel(ctx)
	at := url.URL{Scheme: c.o.scheme, Host: server, Path: "/", RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(running, http.MethodPost, at.String(), body)
	if err != nil {
		cut()
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	r.Header.Set("X-ClickHouse-User", s.as.name)
	r.Header.Set("X-ClickHouse-Key", s.as.password)
	got, err := c.client.Do(r)
	if err != nil {
		cut()
		if ctx.Err() != nil {
			c.kill(server, s.as, id, killAttempts)
		}
		return nil, c.lost(ctx, err)
	}
	if got.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(got.Body, maxErrorText))
		got.Body.Close()
		cut()
		return nil, refusal(got.StatusCode, text)
	}
	return &reply{body: got.Body, stop: func() { c.kill(server, s.as, id, 1) }, cut: cut}, nil
}

// kill ends a statement at the server, in the background. Where it fails the server's own limit ends the statement.
func (c *conn) kill(server string, as user, id string, times int) {
	c.kills.Go(func() {
		pause, last := c.pause, false
		for attempt := 1; ; attempt++ {
			if found, err := c.killOnce(server, as, id); found || err != nil || last || attempt == times {
				return
			}
			select {
			case <-time.After(pause):
			case <-c.closed:
				last = true
			}
			pause *= 3
		}
	})
}

func (c *conn) killOnce(server string, as user, id string) (found bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	at := url.URL{Scheme: c.o.scheme, Host: server, Path: "/"}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), strings.NewReader("KILL QUERY WHERE query_id = '"+id+"' ASYNC"))
	if err != nil {
		return false, err
	}
	r.Header.Set("X-ClickHouse-User", as.name)
	r.Header.Set("X-ClickHouse-Key", as.password)
	got, err := c.client.Do(r)
	if err != nil {
		return false, err
	}
	defer got.Body.Close()
	list, err := io.ReadAll(io.LimitReader(got.Body, maxErrorText))
	return len(list) > 0, err
}

// text runs a statement once and returns a small reply.
func (c *conn) text(ctx context.Context, s statement) ([]byte, error) {
	s.whole = true
	r, err := c.send(ctx, s)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	return text, nil
}

// retry runs work, which reads, again where the connection failed.
func (c *conn) retry(ctx context.Context, work func() error) error {
	pause := c.pause
	for attempt := 1; ; attempt++ {
		err := work()
		var lost *connectionLost
		if err == nil || attempt == attempts || !errors.As(err, &lost) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
			pause *= 3
		}
	}
}

// connectionLost is a failure of the network, or of a server that went away: the same statement may succeed.
type connectionLost struct{ err error }

func (e *connectionLost) Error() string { return e.err.Error() }
func (e *connectionLost) Unwrap() error { return e.err }

// lost is the error of a connection. That of a context that has ended is the context's.
func (c *conn) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &sources.Error{Kind: sources.Unavailable, Detail: "the source took longer than the server waits; ask again later", Err: fmt.Errorf("clickhouse: after the deadline: %w", ctx.Err())}
		}
		return ctx.Err()
	}
	return &sources.Error{Kind: sources.Unavailable, Detail: "the source does not answer; ask again later", Err: &connectionLost{fmt.Errorf("clickhouse: %w", err)}}
}

// broken is the error of a reply that is none: cut off, or with an error of the engine in its middle.
func broken(rest []byte, err error) error {
	if code := codeOf(rest); code != 0 {
		return refusal(0, rest)
	}
	if errors.Is(err, errOtherType) { // somebody has altered the table
		return changed(partChanged, fmt.Errorf("clickhouse: %w", err))
	}
	return &sources.Error{Kind: sources.Unavailable, Detail: "the source's answer was cut off; ask again later",
		Err: &connectionLost{fmt.Errorf("clickhouse: the reply is not what was asked for: %w: %q", err, rest)}}
}

var codes = regexp.MustCompile(`Code: (\d{1,4})[,.]`)

// codeOf is the number of an engine's error in a text, 0 where there is none.
func codeOf(text []byte) int {
	found := codes.FindSubmatch(text)
	if found == nil {
		return 0
	}
	code, _ := strconv.Atoi(string(found[1]))
	return code
}

// refusal is the error of an engine that answers with one. Its text may quote rows, so it is for the operator alone: what is said depends on the number alone.
func refusal(status int, text []byte) error {
	text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	code := codeOf(text)
	e := &sources.Error{Kind: sources.Unavailable, Err: &engineError{code, fmt.Errorf("clickhouse: status %d: %s", status, bytes.TrimSpace(text))}}
	switch code {
	case 60, 81, 218, 390: // UNKNOWN_TABLE, UNKNOWN_DATABASE, TABLE_IS_DROPPED, CANNOT_GET_CREATE_TABLE_QUERY
		e.Kind, e.Detail = sources.NotFound, "the source has no such table"
	case 10, 16, 47: // NOT_FOUND_COLUMN_IN_BLOCK, NO_SUCH_COLUMN_IN_TABLE, UNKNOWN_IDENTIFIER
		e.Kind, e.Detail = sources.NotFound, "the source's table has no such column"
	case 241, 173, 49_000: // MEMORY_LIMIT_EXCEEDED, CANNOT_ALLOCATE_MEMORY
		e.Detail = "the source has not the memory that this takes; ask for less at once, or have its owner raise max_memory_usage of the reader"
	case 158, 159, 160, 307, 396: // TOO_MANY_ROWS, TIMEOUT_EXCEEDED, TOO_SLOW, TOO_MANY_BYTES, TOO_MANY_ROWS_OR_BYTES
		e.Detail = "the source ended this at one of its limits; ask for less at once, or have its owner raise the limits of the reader"
	case 202, 203, 252: // TOO_MANY_SIMULTANEOUS_QUERIES, NO_FREE_CONNECTION, TOO_MANY_PARTS
		e.Detail = "the source is busy; ask again later"
	case 279, 209, 210, 32, 33, 101, 198: // ALL_CONNECTION_TRIES_FAILED, SOCKET_TIMEOUT, NETWORK_ERROR, ATTEMPT_TO_READ_AFTER_EOF, CANNOT_READ_ALL_DATA, UNEXPECTED_PACKET_FROM_SERVER, DNS_ERROR
		e.Detail = "a server of the source does not answer; ask again later"
	case 394: // QUERY_WAS_CANCELLED
		e.Detail = "the source ended this before it was done; ask again later"
	case 192, 193, 194, 516, 195: // UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, AUTHENTICATION_FAILED, IP_ADDRESS_NOT_ALLOWED
		e.Detail = "the source does not know the server's users or passwords; the operator must mend its URL"
	case 164, 291, 497: // READONLY, DATABASE_ACCESS_DENIED, ACCESS_DENIED
		e.Detail = "the source does not let the server's users do what they must; the operator must grant it"
	default:
		e.Detail = "the source refused the statement; the operator finds its reason in the log"
	}
	return e
}

// engineError is an error of the engine, with its number.
type engineError struct {
	code int
	err  error
}

func (e *engineError) Error() string { return e.err.Error() }

// queryID is a random name for a statement, by which it can be killed.
func queryID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
