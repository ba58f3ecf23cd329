//go:build engines

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
)

// TestSourceCrash kills the server while ClickHouse works on the statement of a question: after a restart the question is held, so that no other takes its
// place, and asked again it is answered. No password is in the log, nor a name of a user in a reply.
func TestSourceCrash(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	to, err := url.Parse(cluster.Address(0, "reader"))
	if err != nil {
		t.Fatal(err)
	}
	var holding atomic.Bool
	sent := make(chan string, 8)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		statement, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(statement))
		if text := string(statement); holding.Load() && strings.HasPrefix(text, "SELECT") && strings.Contains(text, "holdoutd_") && !strings.Contains(text, "_probe") {
			sent <- text
			<-r.Context().Done() // the server is gone
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer between.Close()
	t.Setenv("HOLDOUTD_SOURCE_WAREHOUSE_PASSWORD", "reader")
	t.Setenv("HOLDOUTD_SOURCE_WAREHOUSE_LOADER_PASSWORD", "loader")
	flag := "--source=warehouse=clickhouse://reader@" + strings.TrimPrefix(between.URL, "http://") + "/default?loader=loader"
	dir := t.TempDir()
	p := startServer(t, dir, flag)
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 2, Source: "warehouse"})
	if err != nil {
		t.Fatal(err)
	}
	question := func(high int) map[string]any {
		return map[string]any{"type": "mean", "of": "delay", "range": []int{0, high}}
	}
	first, err := c.Ask(t.Context(), card.ID, question(100))
	if err != nil {
		t.Fatal(err)
	}
	holding.Store(true)
	lost := make(chan error)
	go func() {
		_, err := c.Ask(t.Context(), card.ID, question(50))
		lost <- err
	}()
	<-sent
	p.kill()
	if err := <-lost; err == nil {
		t.Fatal("a question was answered without its rows")
	}
	holding.Store(false)
	p = startServer(t, dir, flag)
	c = connect(t, p, dir)
	if _, err := c.Ask(t.Context(), card.ID, question(70)); err == nil || !strings.Contains(err.Error(), "kept for questions") {
		t.Errorf("another question in the place of the one that was sent: %v", err)
	}
	if again, err := c.Ask(t.Context(), card.ID, question(50)); err != nil || again.Replayed {
		t.Errorf("the question that was sent: %+v, %v", again, err)
	}
	if again, err := c.Ask(t.Context(), card.ID, question(100)); err != nil || !again.Replayed || string(again.Answer.ID) != string(first.Answer.ID) {
		t.Errorf("a recorded answer: %+v, %v", again, err)
	}
	out, _ := done(t, "verify", dir)
	if !strings.Contains(out, card.ID) {
		t.Errorf("verified: %s", out)
	}
	if log := p.stderr.String(); strings.Contains(log, "reader") || strings.Contains(log, "loader") {
		t.Errorf("the log names users or passwords: %s", log)
	}
}
