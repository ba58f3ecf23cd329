package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/internal/await"
)

// answerOnce is answer once the database can be reached: a server notices by its first attempt that a connection leads nowhere any more.
func answerOnce(t *testing.T, l ledger.Ledger, id, name string) (body []byte, paid bool, err error) {
	t.Helper()
	await.Until(t, "the server has found the primary", func() bool {
		body, paid, err = answer(t.Context(), l, id, name)
		return !errors.Is(err, ledger.ErrUnavailable)
	})
	return body, paid, err
}

// TestLostCommits is why a failover needs a synchronous standby: another one lacks what was acknowledged, and is promoted all the same. The server that had it recorded appends nothing more to
// that holdout, and says why; it goes on with the others. One that never saw it cannot know.
func TestLostCommits(t *testing.T) {
	c := pgtest.New(t)
	l := c.New(t)
	second := c.Standby(t, false)
	a, b := open(t, l.Followed(second)), open(t, l.Followed(second))
	for _, id := range []string{"ho_1", "ho_2"} {
		create(t, a, id, 10)
		for _, s := range []ledger.Ledger{a, b} {
			if _, _, err := answer(t.Context(), s, id, "first"); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.At(second).Await(t, "SELECT count(*) = 2 FROM entries WHERE kind = 'answer'")
	second.Crash(t) // it is away, and comes back as it was
	if _, paid, err := answer(t.Context(), a, "ho_1", "lost"); err != nil || !paid {
		t.Fatalf("a commit waits for an asynchronous standby: %v", err)
	}
	c.Kill(t)
	second.Restart(t)
	second.Promote(t)
	if _, _, err := answerOnce(t, a, "ho_1", "next"); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("a server goes on with a holdout whose commits were lost: %v", err)
	}
	if h, err := a.Holdout(t.Context(), "ho_1"); err != nil || !errors.Is(h.Damage, ledger.ErrCorrupt) {
		t.Errorf("the holdout is not damaged: %v %v", h.Damage, err)
	}
	if _, _, err := answerOnce(t, a, "ho_2", "next"); err != nil {
		t.Errorf("another holdout is concerned: %v", err)
	}
	if r := verify(t, l.At(second))["ho_1"]; r.Answers != 1 {
		t.Errorf("the standby was to lack an answer: %+v", r)
	}
	if _, paid, err := answerOnce(t, b, "ho_1", "lost"); err != nil || !paid {
		t.Errorf("a server that never saw the answer: paid %v, %v", paid, err)
	}
}

// TestNothingIsReadBeforeItIsConfirmed: a primary that crashed while a commit waited for the standby shows the commit after its restart, and the standby may lack it. No server reads it
// before the standby has it; in a failover it would be lost, and would have been told.
func TestNothingIsReadBeforeItIsConfirmed(t *testing.T) {
	c := pgtest.New(t)
	l := c.New(t)
	second := c.Standby(t, true)
	if opened, err := postgres.Open(t.Context(), l.At(second).Address(), ledger.Options{Key: key}); err == nil || !strings.Contains(err.Error(), "is a standby") {
		t.Errorf("a standby is opened: %v", err)
		if err == nil {
			opened.Close()
		}
	}
	a, b := open(t, l.At(second).Followed(c)), open(t, l.Address())
	create(t, a, "ho_1", 10)
	second.Pause(t)
	asked := make(chan error, 1)
	go func() {
		_, _, err := answer(context.Background(), a, "ho_1", "waiting")
		asked <- err
	}()
	l.Await(t, "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
	query := debit("waiting").Query
	if _, ok, err := b.Answer(t.Context(), "ho_1", query); ok || err != nil {
		t.Fatalf("it is read before the standby has it: %v", err)
	}
	c.Crash(t)
	if err := <-asked; !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("acknowledged without the standby: %v", err)
	}
	c.Restart(t)
	l.Await(t, "SELECT EXISTS (SELECT 1 FROM entries WHERE kind = 'answer')") // it is there, and not for servers
	for range 2 {
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, ok, err := b.Answer(short, "ho_1", query); ok || !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("after a restart it is read before the standby has it: %v %v", ok, err)
		}
		cancel()
	}
	second.Resume(t)
	var body []byte
	await.Until(t, "the standby has it, and servers read it", func() (ok bool) {
		body, ok, _ = b.Answer(t.Context(), "ho_1", query)
		return ok
	})
	c.Kill(t)
	second.Promote(t)
	third := open(t, l.At(second).Address())
	if again, ok, err := third.Answer(t.Context(), "ho_1", query); err != nil || !ok || !bytes.Equal(again, body) {
		t.Errorf("after a failover %s is %s: %v", body, again, err)
	}
	if r := verify(t, l.At(second))["ho_1"]; r.Answers != 1 {
		t.Errorf("%+v", r)
	}
}

// TestCancelledWait: a commit whose wait for the standby somebody cancels succeeds, with a warning. The server does not take it for recorded, and reads it once the standby has it.
func TestCancelledWait(t *testing.T) {
	c := pgtest.New(t)
	l := c.New(t)
	second := c.Standby(t, true)
	a := open(t, l.Address())
	create(t, a, "ho_1", 10)
	second.Pause(t)
	asked := make(chan error, 1)
	go func() {
		_, _, err := answer(context.Background(), a, "ho_1", "waiting")
		asked <- err
	}()
	l.Await(t, "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
	l.Exec(t, false, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	if err := <-asked; !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("acknowledged without the standby: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, ok, err := a.Answer(short, "ho_1", debit("waiting").Query); ok || !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("it is read before the standby has it: %v %v", ok, err)
	}
	second.Resume(t)
	if _, paid, err := answerOnce(t, a, "ho_1", "waiting"); err != nil || paid {
		t.Errorf("asked again: paid %v, %v", paid, err)
	}
	if _, paid, err := answer(t.Context(), a, "ho_1", "next"); err != nil || !paid {
		t.Errorf("the next question: paid %v, %v", paid, err)
	}
}
