package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Options of a connection.
type Options struct {
	// Transport is what requests go through; nil: one of its own, which uses no proxy.
	Transport http.RoundTripper
	// Tell is given an engine's own words about a failure, which can have values of rows in them: for the owner's log. nil: they are dropped.
	Tell func(text string)
}

// connection is the way to an engine. The password is in no URL, so that none is in an error of net/http.
type connection struct {
	base           url.URL
	user, password string
	client         *http.Client
	tell           func(string)
	engine         string
}

// address takes a URL of an engine apart: http or https, user and password, and a path of words.
func address(engine, text string, o Options) (connection, string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return connection{}, "", fmt.Errorf("remote: the address of %s is not http://USER:PASSWORD@HOST:PORT/… or https://…", engine) // the text has a password
	}
	c := connection{base: url.URL{Scheme: u.Scheme, Host: u.Host}, user: u.User.Username(), tell: o.Tell, engine: engine}
	c.password, _ = u.User.Password()
	if c.tell == nil {
		c.tell = func(string) {}
	}
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8, ResponseHeaderTimeout: StatementWait, TLSHandshakeTimeout: 10 * time.Second}
	}
	// A redirection would take the statement, and the user's name, to another host.
	c.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, u.Path, nil
}

// fault is why an attempt failed: another one may succeed where again is set.
type fault struct {
	err   *Error
	again bool
}

func (f *fault) Error() string { return f.err.Error() }

// fail tells the owner what an engine said, and is what everyone else hears.
func (c *connection) fail(kind Kind, again bool, words string) *fault {
	c.tell(words)
	return &fault{&Error{Kind: kind, Engine: c.engine}, again}
}

// attempts does something until it succeeds, for good fails, or has been tried [Attempts] times.
func attempts(ctx context.Context, once func() *fault) error {
	for n := 1; ; n++ {
		f := once()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f == nil {
			return nil
		}
		if !f.again || n == Attempts {
			return f.err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(n) * 100 * time.Millisecond):
		}
	}
}

// readAll reads a body to its end, at most so many bytes.
func readAll(body io.Reader, most int64) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(body, most+1))
	if err == nil && int64(len(all)) > most {
		err = errTooLong
	}
	return all, err
}

var errTooLong = errors.New("the answer is too long")
