package holdout

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// counts are what the service has done since its start.
type counts struct {
	commits  atomic.Int64
	failures atomic.Int64
	voids    atomic.Int64

	mu    sync.Mutex
	asked map[Asked]int64
}

// Asked is what became of a query: its type, and its outcome of a closed set.
type Asked struct{ Type, Outcome string }

// Outcomes of a query that was asked and not refused with its request. What is not asked has the reason of the reply.
const (
	OutcomeAnswered = "answered"
	OutcomeReplayed = "replayed"
)

// note counts the queries of a request that has its reply.
func (c *counts) note(items []*question, b BatchAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = map[Asked]int64{}
	}
	for i, item := range b.Answers {
		outcome := OutcomeAnswered
		switch {
		case item.NotAsked != "":
			outcome = item.NotAsked
		case item.Replayed:
			outcome = OutcomeReplayed
		}
		c.asked[Asked{items[i].query.Type(), outcome}]++
	}
}

// Activity is what was done since the start. It is for the operator: no count says more than what was paid for, but together with times they say when somebody asks.
type Activity struct {
	Asked    map[Asked]int64 // queries by type and outcome
	Voids    int64           // questions that failed after their rows were read
	Commits  int64           // updates of the ledger that became durable, or were refused by its rules
	Failures int64           // updates that the ledger could not make durable
	Waiting  int             // requests that wait for their turn
}

// Activity says what was done since the start.
func (s *Service) Activity() Activity {
	_, _, waiting := s.turns.Load()
	c := Activity{Asked: map[Asked]int64{}, Voids: s.counts.voids.Load(), Commits: s.counts.commits.Load(), Failures: s.counts.failures.Load(), Waiting: waiting}
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	for k, n := range s.counts.asked {
		c.Asked[k] = n
	}
	return c
}

// countedLedger is the ledger, with its updates counted and told to the tracer.
type countedLedger struct {
	ledger.Ledger
	service *Service
}

func (w countedLedger) Update(ctx context.Context, id string, fn func(tx *ledger.Tx) error) error {
	ctx, done := w.service.stage(ctx, StageLedger, id, 0)
	defer done()
	err := w.Ledger.Update(ctx, id, fn)
	if errors.Is(err, ledger.ErrUnavailable) {
		w.service.counts.failures.Add(1)
	} else {
		w.service.counts.commits.Add(1)
	}
	return err
}
