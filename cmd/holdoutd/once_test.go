package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/client"
)

// losing sends requests, and loses the first replies to those that ask.
type losing struct {
	lose int
	mu   sync.Mutex
	seen []string // the Idempotency-Keys of those that ask
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "/queries") {
		return reply, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, r.Header.Get("Idempotency-Key"))
	if len(l.seen) <= l.lose {
		reply.Body.Close()
		return nil, errors.New("the connection broke")
	}
	return reply, nil
}

// TestTheClientsOwnRetries: the Go client sends a batch in part again by itself, since its replies were lost. It is one round, and one price.
func TestTheClientsOwnRetries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startServer(t, dir)
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	var queries []any
	for i := range 30 {
		queries = append(queries, map[string]any{"type": "fraction", "of": fmt.Sprintf("x > %v", float64(i)/30)})
	}
	for i, c := range []struct {
		name     string
		settings client.Settings
		most     int64
		answered int
		budget   client.Meter
	}{
		{"rounds", client.Settings{Questions: 600, Rounds: 60}, 0, 10, client.Meter{Left: 590, Of: 600}},
		{"max_questions", client.Settings{Questions: 600}, 5, 5, client.Meter{Left: 595, Of: 600}},
	} {
		l := &losing{lose: 3}
		c1, err := client.New(p.url, strings.TrimSpace(string(key)), client.WithHTTPClient(&http.Client{Transport: l}))
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Context(t.Context())
		c.settings.Name, c.settings.Mechanism, c.settings.Holdout = c.name, "gaussian", 0.5
		card, err := c1.CreateHoldout(ctx, bytes.NewReader(randomTable(t, rand.New(rand.NewPCG(uint64(i), 7)))), c.settings)
		if err != nil {
			t.Fatal(err)
		}
		if c.most > 0 {
			ctx = client.WithMaxQuestions(ctx, c.most)
		}
		reply, err := c1.AskBatch(ctx, card.ID, queries, true)
		if err != nil {
			t.Fatal(err)
		}
		answered := 0
		for _, item := range reply.Answers {
			if item.Answer != nil {
				answered++
			}
		}
		if answered != c.answered || reply.Budget.Questions != c.budget || len(l.seen) != 4 || l.seen[0] != l.seen[3] {
			t.Errorf("%s: %d answered, budget %+v, keys %q", c.name, answered, reply.Budget, l.seen)
		}
	}
}
