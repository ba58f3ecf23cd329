package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// acknowledgedIsDurable: nobody is told, and nobody reads, what a crash could still take; what was told survives one.
func acknowledgedIsDurable(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 100, 0))
	for _, step := range []string{ledger.StepBegin, ledger.StepCommit} {
		d := testDebit("told when it is durable, held at " + step)
		entered, release := s.hold(t, step)
		told := make(chan ledger.Receipt, 1)
		go func() {
			r, err := ask(l, t.Context(), "ho_1", d)
			if err != nil {
				t.Error(err)
			}
			told <- r
		}()
		select {
		case <-entered:
		case <-told:
			t.Fatalf("an update ends before its commit comes to %s", step)
		}
		select {
		case r := <-told:
			t.Errorf("acknowledged at %s: %s", step, r.Body)
			told <- r
		case <-time.After(20 * time.Millisecond): // an acknowledgement too early comes at once
		}
		if _, ok, err := l.Answer(t.Context(), "ho_1", d.Query); ok || err != nil {
			t.Errorf("%s: an answer is read that is not durable: %v", step, err)
		}
		before := s.store.Crash(t)
		release()
		want := <-told
		after := s.store.Crash(t)
		for state, store := range map[bool]Store{false: before, true: after} {
			crashed := &suite{store: store}
			survivor := crashed.open(t)
			body, ok, err := survivor.Answer(t.Context(), "ho_1", d.Query)
			if err != nil || ok != state || ok && !bytes.Equal(body, want.Body) {
				t.Errorf("%s: acknowledged %v; after the crash: %s %v %v", step, state, body, ok, err)
			}
			crashed.verify(t, survivor)
			if err := survivor.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	// So does everything else that was acknowledged.
	use := ledger.Idempotency{Principal: "p", Key: "k", Request: [32]byte{7}, Resource: "ho_2"}
	key := ledger.Key{ID: "key_1", Scope: "admin", Created: time.Unix(7, 0).UTC(), Hash: [32]byte{9}}
	for name, c := range map[string]struct {
		do   func(l ledger.Ledger) error
		done func(l ledger.Ledger) (bool, error)
	}{
		"a holdout": {
			func(l ledger.Ledger) error { return l.CreateHoldout(t.Context(), testHoldout("ho_2", 5, 5), nil) },
			func(l ledger.Ledger) (bool, error) {
				h, err := l.Holdout(t.Context(), "ho_2")
				return string(h.Secret) == "the holdout key" && string(h.State) == "state 0", err
			},
		},
		"a state and an idempotency key": {
			func(l ledger.Ledger) error {
				return l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
					tx.SetState([]byte("next"))
					return tx.Idempotent(use)
				})
			},
			func(l ledger.Ledger) (bool, error) {
				h, err := l.Holdout(t.Context(), "ho_1")
				got, _, err2 := l.Idempotency(t.Context(), "p", "k")
				return string(h.State) == "next" && got == use, errors.Join(err, err2)
			},
		},
		"an API key": {
			func(l ledger.Ledger) error { return l.CreateKey(t.Context(), key) },
			func(l ledger.Ledger) (bool, error) {
				got, _, err := l.KeyByHash(t.Context(), key.Hash)
				return reflect.DeepEqual(got, key), err
			},
		},
	} {
		if err := c.do(l); err != nil {
			t.Fatal(name, err)
		}
		crashed := &suite{store: s.store.Crash(t)}
		if done, err := c.done(crashed.open(t)); !done || err != nil {
			t.Errorf("%s was acknowledged and is gone after a crash: %v", name, err)
		}
	}
}

// failedCommit fails commits before they begin, before they are durable, and after. Every caller hears of it; asking again gives one
// answer at one price, whichever way the commit went; and the ledger comes back by itself.
func failedCommit(t *testing.T, s *suite) {
	l := s.open(t)
	next := 0
	for _, c := range []struct {
		step    string
		durable bool
	}{{ledger.StepBegin, false}, {ledger.StepCommit, false}, {ledger.StepCommitted, true}} {
		next++
		id := fmt.Sprint("ho_", next)
		create(t, l, testHoldout(id, 100, 100))
		mustAsk(t, l, id, testDebit("before"))
		const callers = 20
		update := func(i int) (body []byte, replay bool, err error) {
			err = l.Update(t.Context(), id, func(tx *ledger.Tx) error {
				if body, replay = tx.Answer(numbered(i).Query); replay {
					return nil
				}
				d := numbered(i)
				d.Cost["tokens"] = 2
				tx.SetState([]byte(strconv.FormatInt(tx.Spent()["questions"], 10)))
				r, err := tx.Append(d)
				body = r.Body
				return err
			})
			return body, replay, err
		}
		s.plant(func(step string) error {
			if step == c.step {
				return syscall.EIO
			}
			return nil
		})
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				if _, _, err := update(i); !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
					t.Errorf("%s: caller %d: %v", c.step, i, err)
				}
			})
		}
		wg.Wait()
		if err := l.Ready(t.Context()); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s: ready while it cannot commit: %v", c.step, err)
		}
		if err := l.CreateKey(t.Context(), ledger.Key{ID: "key of " + c.step, Scope: "admin", Hash: [32]byte{byte(next)}}); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s: create a key: %v", c.step, err)
		}
		if _, ok, err := l.Answer(t.Context(), id, testDebit("before").Query); !ok || err != nil {
			t.Errorf("%s: a replay while the ledger cannot commit: %v %v", c.step, ok, err)
		}
		s.plant(nil)
		ready(l)
		replays := 0
		bodies := map[int][]byte{}
		for range 2 {
			for i := range callers {
				body, replay, err := update(i)
				if err != nil {
					t.Fatal(err)
				}
				if bodies[i] != nil && (!bytes.Equal(body, bodies[i]) || !replay) {
					t.Errorf("%s: question %d has two answers: %s and %s", c.step, i, bodies[i], body)
				}
				if replay && bodies[i] == nil {
					replays++
				}
				bodies[i] = body
			}
		}
		if c.durable != (replays > 0) {
			t.Errorf("%s: %d answers of failed commits were durable", c.step, replays)
		}
		spent(t, l, id, ledger.Meters{"questions": callers + 1, "tokens": 2 * callers})
		s.verify(t, l)
	}
}

// deadlineWhileACommitHangs: callers leave when their time is over, nothing of theirs runs after that, and the ledger goes on when it can.
func deadlineWhileACommitHangs(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 10_000, 0))
	_, release := s.hold(t, ledger.StepCommit)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 1000 { // more than any implementation takes at once
		wg.Go(func() {
			var left atomic.Bool
			err := l.Update(ctx, "ho_1", func(tx *ledger.Tx) error {
				if left.Load() {
					t.Errorf("the update of caller %d runs although it has left", i)
				}
				_, err := tx.Append(numbered(i))
				return err
			})
			left.Store(true)
			if !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	release()
	mustAsk(t, l, "ho_1", testDebit("after"))
	s.verify(t, l)
}

// begunUpdateCommitsWithoutItsCaller: the caller's time ends while the commit is under way.
func begunUpdateCommitsWithoutItsCaller(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 100, 0))
	entered, release := s.hold(t, ledger.StepCommit)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := ask(l, ctx, "ho_1", testDebit("a"))
		left <- err
	}()
	<-entered
	cancel()
	if err := <-left; !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who left: %v", err)
	}
	if _, err := ask(l, ctx, "ho_1", testDebit("never")); !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who had left before: %v", err)
	}
	release()
	mustAsk(t, l, "ho_1", testDebit("b"))
	if _, ok, err := l.Answer(t.Context(), "ho_1", testDebit("a").Query); !ok || err != nil {
		t.Errorf("the update that had begun: %v %v", ok, err)
	}
	if _, ok, err := l.Answer(t.Context(), "ho_1", testDebit("never").Query); ok || err != nil {
		t.Errorf("the update that had not begun: %v %v", ok, err)
	}
}

// manyCallersNeverOverspend lets many goroutines, of several servers if they can share a ledger, ask overlapping questions at three
// holdouts, each with less of both meters than they want, and then compares what they were told with what is recorded.
func manyCallersNeverOverspend(t *testing.T, s *suite) {
	const callers, each, questions, tokens = 32, 40, 300, 20
	servers := s.openAll(t)
	for h := range 3 {
		create(t, servers[h%len(servers)], testHoldout(fmt.Sprint("ho_", h), questions, tokens))
	}
	var refused atomic.Int64
	told := make([]map[string]string, callers) // body by holdout and query
	var wg sync.WaitGroup
	for c := range callers {
		told[c] = map[string]string{}
		wg.Go(func() {
			for i := range each {
				// The callers overlap: two of them ask each question.
				d := numbered(c/2*each + i)
				d.Cost["tokens"] = int64(i % 2)
				id := fmt.Sprint("ho_", i%3)
				var body []byte
				err := servers[c%len(servers)].Update(t.Context(), id, func(tx *ledger.Tx) error {
					if known, ok := tx.Answer(d.Query); ok {
						body = known
						return nil
					}
					tx.SetState([]byte(strconv.FormatInt(tx.Spent()["questions"]+1, 10)))
					r, err := tx.Append(d)
					body = r.Body
					return err
				})
				switch {
				case errors.Is(err, ledger.ErrBudget):
					refused.Add(1)
				case err != nil:
					t.Error(err)
				default:
					told[c][id+d.Query] = string(body)
				}
			}
		})
	}
	wg.Wait()
	if refused.Load() == 0 {
		t.Error("no budget ran out: the test asks too little")
	}
	for _, l := range servers {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l := s.open(t)
	answers := 0
	for _, r := range s.verify(t, l) {
		answers += int(r.Answers)
		if r.Answers != r.Spent["questions"] || r.Spent["questions"] > questions || r.Spent["tokens"] > tokens {
			t.Errorf("report %+v", r)
		}
		h, err := l.Holdout(t.Context(), r.Holdout)
		if err != nil || !h.Spent.Equal(r.Spent) || string(h.State) != strconv.FormatInt(r.Spent["questions"], 10) {
			t.Errorf("state %q, spent %v after %d answers: %v", h.State, h.Spent, r.Answers, err)
		}
	}
	known := map[string]string{}
	for c := range told {
		for key, body := range told[c] {
			if other, ok := known[key]; ok && other != body {
				t.Errorf("one question, two answers: %s and %s", other, body)
			}
			known[key] = body
			recorded, ok, err := l.Answer(t.Context(), key[:4], key[4:])
			if err != nil || !ok || string(recorded) != body {
				t.Fatalf("told %s, recorded %s: %v %v", body, recorded, ok, err)
			}
		}
	}
	if len(known) != answers {
		t.Errorf("%d answers recorded, %d told", answers, len(known))
	}
}

// answersAreSeenByTheNext: of two who ask the same while a commit is under way one pays, and both hear the same.
func answersAreSeenByTheNext(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 100, 0))
	entered, release := s.hold(t, ledger.StepCommit)
	first := make(chan error, 1)
	go func() {
		_, err := ask(l, t.Context(), "ho_1", testDebit("first"))
		first <- err
	}()
	<-entered
	bodies, replays := make(chan string, 10), make(chan bool, 10)
	for range 10 {
		go func() {
			var body []byte
			var replay bool
			err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
				if body, replay = tx.Answer(testDebit("a").Query); replay {
					return nil
				}
				r, err := tx.Append(testDebit("a"))
				body = r.Body
				return err
			})
			if err != nil {
				t.Error(err)
			}
			bodies <- string(body)
			replays <- replay
		}()
	}
	time.Sleep(10 * time.Millisecond) // for them to be in one commit, if the implementation makes one of them
	release()
	if err := <-first; err != nil {
		t.Error(err)
	}
	want, replayed := <-bodies, 0
	for i := range 10 {
		if i > 0 {
			if got := <-bodies; got != want || got == "" {
				t.Errorf("bodies %s and %s", want, got)
			}
		}
		if <-replays {
			replayed++
		}
	}
	if replayed != 9 {
		t.Errorf("%d of 10 heard a replay, want 9", replayed)
	}
	spent(t, l, "ho_1", ledger.Meters{"questions": 2, "tokens": 0})
	s.verify(t, l)
}

// closeFinishesWhatWasAccepted closes the ledger under updates that wait.
func closeFinishesWhatWasAccepted(t *testing.T, s *suite) {
	l, err := s.tryOpen()
	if err != nil {
		t.Fatal(err)
	}
	create(t, l, testHoldout("ho_1", 100, 0))
	entered, release := s.hold(t, ledger.StepCommit)
	var wg sync.WaitGroup
	var answered atomic.Int64
	for i := range 20 {
		wg.Go(func() {
			switch _, err := ask(l, t.Context(), "ho_1", numbered(i)); {
			case err == nil:
				answered.Add(1)
			case !errors.Is(err, ledger.ErrClosed): // it came after Close
				t.Error(err)
			}
		})
	}
	<-entered
	closed := make(chan error)
	go func() { closed <- l.Close() }()
	for !errors.Is(l.Ready(t.Context()), ledger.ErrClosed) {
		time.Sleep(100 * time.Microsecond)
	}
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("late")); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("update of a closed ledger: %v", err)
	}
	if answered.Load() == 0 {
		t.Error("the update whose commit was under way was not finished")
	}
	spent(t, s.open(t), "ho_1", ledger.Meters{"questions": answered.Load(), "tokens": 0})
}

// panicIsTheCallersOwn: a panic in one update reaches its caller and nobody else, and nothing of the update is kept.
func panicIsTheCallersOwn(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 100, 0))
	func() {
		defer func() {
			if p := recover(); p != "oops" {
				t.Errorf("recovered %v", p)
			}
		}()
		l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			if _, err := tx.Append(testDebit("lost")); err != nil {
				t.Error(err)
			}
			panic("oops")
		})
	}()
	if r := mustAsk(t, l, "ho_1", testDebit("a")); r.Seq != 1 {
		t.Errorf("seq %d: the update that panicked left something", r.Seq)
	}
	s.verify(t, l)
}

// committedIsTold: who listens hears where each chain ends before its answers are given, and nothing before it is durable.
func committedIsTold(t *testing.T, s *suite) {
	type place struct {
		seq  int64
		head string
	}
	var mu sync.Mutex
	told := map[string]place{}
	durable := false
	l, err := s.store.Open(t.Context(), ledger.Options{Key: serverKey, Fault: func(step string) error {
		mu.Lock()
		defer mu.Unlock()
		durable = step == ledger.StepCommitted
		return nil
	}, Committed: func(id string, seq int64, head string) {
		mu.Lock()
		defer mu.Unlock()
		if !durable {
			t.Errorf("told of %s at %d before it was durable", id, seq)
		}
		told[id] = place{seq, head}
	}})
	if err != nil {
		t.Fatal(err)
	}
	create(t, l, testHoldout("ho_1", 100, 0))
	for _, name := range []string{"a", "b"} {
		r := mustAsk(t, l, "ho_1", testDebit(name))
		mu.Lock()
		if told["ho_1"] != (place{r.Seq, r.Head}) {
			t.Errorf("told %+v when the answer with seq %d and %s is given", told, r.Seq, r.Head)
		}
		mu.Unlock()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
