package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// How often AwaitRegistration asks: soon at first, for a small table, and then as often as a person looks.
const (
	firstLook   = 200 * time.Millisecond
	longestLook = 2 * time.Second
)

// Sources lists the places whose tables can become holdouts without being uploaded. For admins.
func (c *Client) Sources(ctx context.Context) ([]Source, error) {
	var list sourceList
	err := c.decode(ctx, call{method: http.MethodGet, path: "/v1/sources"}, &list)
	return list.Sources, err
}

// Register begins to make a holdout of a table of a source. AwaitRegistration says when it is there.
func (c *Client) Register(ctx context.Context, source, table string, s Settings) (r Registration, err error) {
	values := s.values()
	values.Set("source", source)
	values.Set("table", table)
	return r, c.decode(ctx, call{method: http.MethodPost, path: "/v1/holdouts", query: values, idempotent: true}, &r)
}

// Registration says how far a registration is.
func (c *Client) Registration(ctx context.Context, id string) (r Registration, err error) {
	return r, c.decode(ctx, call{method: http.MethodGet, path: registration(id)}, &r)
}

// Registrations lists those that are under way and those that have ended since the server started.
func (c *Client) Registrations(ctx context.Context) ([]Registration, error) {
	var list registrationList
	err := c.decode(ctx, call{method: http.MethodGet, path: "/v1/registrations"}, &list)
	return list.Registrations, err
}

// CancelRegistration asks the server to end a registration and to remove what it has made. One that has ended stays as it is.
func (c *Client) CancelRegistration(ctx context.Context, id string) (r Registration, err error) {
	return r, c.decode(ctx, call{method: http.MethodDelete, path: registration(id)}, &r)
}

// AwaitRegistration asks until a registration has ended and returns the card of its holdout. Each state is told to progress, which may be nil. What a
// failed one says is the error, a *Problem; of one that was cancelled it is [ErrCancelled].
func (c *Client) AwaitRegistration(ctx context.Context, id string, progress func(Registration)) (Card, error) {
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		r, err := c.Registration(ctx, id)
		if err != nil {
			return Card{}, err
		}
		if progress != nil {
			progress(r)
		}
		switch r.Stage {
		case "done":
			return c.Holdout(ctx, r.Holdout)
		case "cancelled":
			return Card{}, ErrCancelled
		case "failed":
			if r.Problem == nil {
				return Card{}, fmt.Errorf("client: the registration %s failed", id)
			}
			return Card{}, r.Problem
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return Card{}, ctx.Err()
		}
	}
}

// ErrCancelled is that of a registration that was cancelled.
var ErrCancelled = fmt.Errorf("client: the registration was cancelled")

// A Piece is one piece of a training part, or its rest, that is being received. The caller closes it.
type Piece struct {
	io.ReadCloser
	Pieces int   // of how many pieces it is one
	Bytes  int64 // of the whole piece; -1 where the server does not say
	From   int64 // where the rest begins: what was asked for, or 0 where the server sends all
}

// TrainingPiece opens one piece of the training part as Parquet, from 0 on. The training part of an upload is one piece; how many there are is on the card. from is where to begin:
// the bytes of it that are there already.
func (c *Client) TrainingPiece(ctx context.Context, id string, piece int, from int64) (Piece, error) {
	r := call{method: http.MethodGet, path: holdout(id, "/training"), query: url.Values{"piece": {strconv.Itoa(piece)}}}
	if from > 0 {
		r.from = from
	}
	reply, err := c.send(ctx, r)
	if err != nil {
		return Piece{}, err
	}
	p := Piece{ReadCloser: reply.Body, Pieces: 1, Bytes: reply.ContentLength}
	if n, err := strconv.Atoi(reply.Header.Get("X-Holdoutd-Pieces")); err == nil && n > 0 {
		p.Pieces = n
	}
	if reply.StatusCode == http.StatusPartialContent && p.Bytes >= 0 {
		p.From = from
		p.Bytes += from
	}
	return p, nil
}

func registration(id string) string { return "/v1/registrations/" + url.PathEscape(id) }
