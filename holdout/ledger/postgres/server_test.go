//go:build postgres

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// load asks new questions at several ledgers until stop is called, and again where the outcome is not known.
type load struct {
	stop    context.CancelFunc
	asking  sync.WaitGroup
	mu      sync.Mutex
	told    told
	unknown int // outcomes that were not known at first
}

func startLoad(t *testing.T, ledgers ...*postgres.Ledger) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{stop: stop, told: told{}}
	for n, to := range ledgers {
		for g := range 6 {
			l.asking.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					name := fmt.Sprintf("%d/%d/%d", n, g, i)
					for ctx.Err() == nil {
						body, _, err := ask(t.Context(), to, "ho_1", named(name, 1))
						if err == nil {
							l.mu.Lock()
							l.told[name] = body
							l.mu.Unlock()
							break
						}
						if !errors.Is(err, ledger.ErrUnavailable) {
							t.Error(err)
							return
						}
						l.mu.Lock()
						l.unknown++
						l.mu.Unlock()
						time.Sleep(5 * time.Millisecond)
					}
				}
			})
		}
	}
	return l
}

// more waits until so many more answers were given.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	count := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.told) }
	for want, deadline := count()+n, time.Now().Add(time.Minute); count() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the ledger does not answer any more")
		}
	}
}

// end stops asking and looks for all that was told.
func (l *load) end(t *testing.T, url string) {
	t.Helper()
	l.stop()
	l.asking.Wait()
	r := l.told.check(t, url)
	if r.Spent["questions"] != r.Answers {
		t.Errorf("%d spent by %d answers", r.Spent["questions"], r.Answers)
	}
	t.Logf("%d answers were acknowledged, none is missing; %d more are recorded; %d times the outcome was not known at first", len(l.told), int(r.Answers)-len(l.told), l.unknown)
}

// TestServerStops stops PostgreSQL without a checkpoint, and kills all its processes with SIGKILL, under the load of two ledgers, and starts it again.
func TestServerStops(t *testing.T) {
	c := pgtest.NewCluster(t)
	db := c.NewDatabase(t)
	newLedger(t, db, 1<<40)
	l := startLoad(t, open(t, db.Service), open(t, db.Service))
	for round := range 4 {
		l.more(t, 50)
		if round%2 == 0 {
			c.Stop()
		} else if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	l.more(t, 50)
	l.end(t, db.Service)
}

// TestFailover kills a primary with SIGKILL under load and promotes its synchronous standby. What was acknowledged is there, and the ledgers, which know both
// by their URL, go on by themselves. Then the old primary comes back, and does not know that it was replaced: nobody is led astray by it.
func TestFailover(t *testing.T) {
	primary := pgtest.NewCluster(t)
	db := primary.NewDatabase(t)
	newLedger(t, db, 1<<40)
	standby := primary.Standby(t, "s1")
	if err := errors.Join(primary.Configure("synchronous_standby_names = 's1'"), primary.Reload()); err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("postgres://service@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", primary.Port, standby.Port, db.Name)
	first := open(t, url)
	l := startLoad(t, first, open(t, url))
	l.more(t, 200)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	l.more(t, 50)

	if err := primary.Start(); err != nil { // it waits for its standby, for ever
		t.Fatal(err)
	}
	l.more(t, 20)
	// A new server of the ledger, which the URL leads to the old primary first.
	if err := standby.Configure("synchronous_standby_names = ''"); err != nil {
		t.Fatal(err)
	}
	l.more(t, 20)
	l.end(t, standby.Database(db.Name).Service)
	late, err := postgres.Open(t.Context(), url, ledger.Options{Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	for name, body := range l.told {
		if got, ok, err := late.Answer(t.Context(), "ho_1", named(name, 1).Query); err != nil || !ok || string(got) != body {
			t.Fatalf("the old primary misleads who comes later: %q, told %q: %v", got, body, err)
		}
	}
	if _, _, err := ask(t.Context(), late, "ho_1", named("late", 1)); err != nil {
		t.Error(err)
	}
}

// TestUnreplicatedIsUnknown: a commit that waits for its standby is nobody's to know. It would notice a request to cancel that this package sends itself
// (the wait would end, and the commit be visible without a standby that has it), and a commit that is acknowledged although the server warned of it.
func TestUnreplicatedIsUnknown(t *testing.T) {
	c := pgtest.NewCluster(t)
	db := c.NewDatabase(t)
	newLedger(t, db, 100)
	l, reader := open(t, db.Service), open(t, db.Service)
	if _, _, err := ask(t.Context(), l, "ho_1", named("before", 1)); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := reader.Answer(t.Context(), "ho_1", named("before", 1).Query); err != nil || !ok { // it has a connection now
		t.Fatal(ok, err)
	}
	if err := errors.Join(c.Configure("synchronous_standby_names = 'nobody'"), c.Reload()); err != nil {
		t.Fatal(err)
	}
	waiting := func() { // for the reload, and for the commit to wait
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if err := db.Exec("DO $$ BEGIN ASSERT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'service'); END $$"); err == nil {
				return
			} else if time.Now().After(deadline) {
				t.Fatal("no commit waits for a standby:", err)
			}
		}
	}
	postgres.Hurry(l, time.Second)
	var outcome error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, outcome = ask(t.Context(), l, "ho_1", named("given up", 1))
	}()
	waiting()
	<-done
	if !errors.Is(outcome, ledger.ErrUnavailable) {
		t.Errorf("a commit that no standby has: %v", outcome)
	}
	time.Sleep(300 * time.Millisecond) // for a request to cancel, if one was sent
	if _, ok, err := reader.Answer(t.Context(), "ho_1", named("given up", 1).Query); ok || err != nil {
		t.Errorf("a commit that no standby has is visible: %v %v", ok, err)
	}
	// Now somebody else cancels the wait of another one.
	second := make(chan error, 1)
	if err := c.Exec("ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	for l.Ready(t.Context()) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	postgres.Hurry(l, time.Minute)
	if _, _, err := ask(t.Context(), l, "ho_1", named("after", 1)); err != nil {
		t.Fatal(err)
	}
	if err := c.Exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	go func() {
		_, _, err := ask(t.Context(), l, "ho_1", named("cancelled", 1))
		second <- err
	}()
	waiting()
	if err := db.Exec("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'service'"); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a commit whose wait was cancelled: %v", err)
	}
}
