package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

const (
	eventsType = "text/event-stream"
	// streamsOfKey is how many streams one key may follow at a time: the pages that a person has open. Each holds a connection.
	streamsOfKey = 16
	// heartbeat is how often a stream without news says that it lives: below the minute after which common proxies drop a silent connection. It also
	// looks at the ledger, which another server may write, and at the key.
	heartbeat = 20 * time.Second
	// gather is how long a stream waits after news: answers that come together are read together.
	gather = 200 * time.Millisecond
)

func (a *API) registerEvents() {
	a.raw(huma.Operation{
		OperationID: "follow-answers", Method: http.MethodGet, Path: "/v1/holdouts/{id}/answers/events", Tags: []string{"queries"}, Security: needsKey,
		Summary: "Follow the answers", Description: "Server-sent events: first the answers after the cursor, then each new one when it is recorded. An event `answer` has the members of an item of `GET …/answers` as its data and the cursor as its id, so that a browser goes on where it was. " +
			"An analyst sees their own answers, an admin all. The stream ends when the key is revoked, the holdout is deleted or the server stops; a key follows at most " + strconv.Itoa(streamsOfKey) + " at a time.",
		Parameters: []*huma.Param{idParam,
			{Name: "after", In: "query", Description: "the cursor: only answers after it; 0 or none for all", Schema: &huma.Schema{Type: "integer", Format: "int64", Minimum: number(0)}},
			{Name: "Last-Event-ID", In: "header", Description: "the cursor again, as browsers send it; it counts before the parameter", Schema: &huma.Schema{Type: "string"}}},
		Responses: map[string]*huma.Response{"200": {Description: "The events, without an end", Content: map[string]*huma.MediaType{eventsType: {Schema: &huma.Schema{Type: "string"}}}}},
	}, a.follow)
}

// streams counts those who follow, by key.
type streams struct {
	mu  sync.Mutex
	of  map[string]int
	end chan struct{} // closed when the server stops
}

func (s *streams) begin(key string) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[key] >= streamsOfKey {
		return nil, false
	}
	s.of[key]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.of[key]--; s.of[key] == 0 {
			delete(s.of, key)
		}
	}, true
}

// stop ends all streams: they have no end of their own, and a server that stops waits for replies.
func (s *streams) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.end:
	default:
		close(s.end)
	}
}

// cursor is where a stream begins.
func cursor(c *gin.Context) (after int64, err error) {
	for _, at := range []struct{ name, value string }{{"Last-Event-ID", c.GetHeader("Last-Event-ID")}, {"after", c.Query("after")}} {
		if at.value == "" {
			continue
		}
		if after, err = strconv.ParseInt(at.value, 10, 64); err != nil || after < 0 {
			return 0, invalid(at.name, "", "%s must be a cursor: a whole number of at least 0", at.name)
		}
		return after, nil
	}
	return 0, nil
}

// follow sends answers until the client leaves. What fails before the first byte is a problem; later the stream ends, and a client comes back with its cursor.
func (a *API) follow(c *gin.Context) error {
	ctx, id := c.Request.Context(), c.Param("id")
	after, err := cursor(c)
	if err != nil {
		return err
	}
	done, ok := a.streams.begin(caller(ctx).KeyID)
	if !ok {
		limited := problem(rateLimited, "this key follows %d streams, which is how many it may at a time", streamsOfKey)
		limited.retryAfter = heartbeat
		return limited
	}
	defer done()
	over := func() {}
	defer func() { over() }()
	for begun := false; ; {
		over()
		news, forget := a.service.News(id)
		over = forget
		page, err := a.pageOf(ctx, id, after)
		switch {
		case err == nil:
		case !begun:
			return err
		case holdout.KindOf(err) != holdout.Busy && holdout.KindOf(err) != holdout.Unavailable:
			return nil
		}
		if !begun {
			begun = true
			c.Header("Content-Type", eventsType)
			c.Header("X-Accel-Buffering", "no") // a proxy that gathers replies would hold events back
			c.Status(http.StatusOK)
			if headOnly(ctx) {
				c.Writer.WriteHeaderNow()
				return nil
			}
		}
		var b bytes.Buffer
		for i := range page.Answers {
			past := &page.Answers[i]
			fmt.Fprintf(&b, "event: answer\nid: %d\ndata: ", past.Seq)
			if err := writePast(&b, past); err != nil {
				return nil
			}
			b.WriteString("\n\n")
			after = past.Seq
		}
		if b.Len() == 0 {
			b.WriteString(": nothing new\n\n")
		}
		if _, err := c.Writer.Write(b.Bytes()); err != nil {
			return nil
		}
		c.Writer.Flush()
		if page.Next == 0 && !a.await(ctx, news) {
			return nil
		}
		// Revoked meanwhile; or revoked, and the token that it was asked for with stands for another key now.
		if p, err := a.principal(c); err != nil || p.KeyID != caller(ctx).KeyID {
			return nil
		}
	}
}

// pageOf reads what comes after the cursor.
func (a *API) pageOf(ctx context.Context, id string, after int64) (holdout.AnswerPage, error) {
	within, cancel := context.WithTimeout(ctx, a.limits.Handle)
	defer cancel()
	return a.service.Answers(within, caller(ctx), id, after, 0)
}

// await waits for news, or for the next sign of life; false if the stream is over.
func (a *API) await(ctx context.Context, news <-chan struct{}) bool {
	pause := heartbeat
	for {
		select {
		case <-ctx.Done():
			return false
		case <-a.streams.end:
			return false
		case <-time.After(pause):
			return true
		case <-news:
			news, pause = nil, gather
		}
	}
}
