package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestManyCallersNeverOverspend lets many goroutines ask overlapping questions at three holdouts, each with less
// budget than they want, and then compares what they were told with what is recorded.
func TestManyCallersNeverOverspend(t *testing.T) {
	const callers, each, questions = 32, 40, 300
	path := newPath(t)
	l := openTest(t, path)
	for h := range 3 {
		mustCreate(t, l, testHoldout(fmt.Sprint("ho_", h), questions, 20))
	}
	var refused atomic.Int64
	told := make([]map[string]string, callers) // body by holdout and query
	var wg sync.WaitGroup
	for c := range callers {
		told[c] = map[string]string{}
		wg.Go(func() {
			for i := range each {
				// The callers overlap: two of them ask each question.
				d := testDebit(strconv.Itoa(c/2*each + i))
				d.Tokens = int64(i % 2)
				id := fmt.Sprint("ho_", i%3)
				var body []byte
				err := l.Update(t.Context(), id, func(tx *Tx) error {
					if known, ok := tx.Answer(d.Query); ok {
						body = known
						return nil
					}
					spent, _ := tx.Spent()
					tx.SetState([]byte(strconv.FormatInt(spent+1, 10)))
					r, err := tx.Append(d)
					body = r.Body
					return err
				})
				switch {
				case errors.Is(err, ErrBudget):
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
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, path)
	answers := 0
	for _, r := range mustVerify(t, l) {
		answers += int(r.Answers)
		if r.Answers != r.Spent.Questions || r.Spent.Questions > questions || r.Spent.Tokens > 20 {
			t.Errorf("report %+v", r)
		}
		h, err := l.Holdout(t.Context(), r.Holdout)
		if err != nil || string(h.State) != strconv.FormatInt(r.Spent.Questions, 10) {
			t.Errorf("state %q after %d answers: %v", h.State, r.Spent.Questions, err)
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

// hold keeps the writer busy until release is called, so that what is queued behind it shares a group.
func hold(t *testing.T, l *Ledger) (release func()) {
	t.Helper()
	begun, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- l.alone(context.Background(), func(context.Context, *sql.Tx) error {
			close(begun)
			<-goOn
			return nil
		})
	}()
	<-begun
	return sync.OnceFunc(func() {
		close(goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// queued waits until n requests wait for the writer.
func queued(l *Ledger, n int) {
	for len(l.queue) < n {
		time.Sleep(100 * time.Microsecond)
	}
}

func TestGroupSharesACommit(t *testing.T) {
	var commits atomic.Int64
	l, err := open(t.Context(), Options{Path: newPath(t), Key: testKey}, func(step string) error {
		if step == "committed" {
			commits.Add(1)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	before := commits.Load()
	release := hold(t, l)
	defer release()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := ask(l, t.Context(), "ho_1", testDebit(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	queued(l, 50)
	release()
	wg.Wait()
	if n := commits.Load() - before; n != 2 { // the holder's and the group's
		t.Errorf("%d commits for 50 updates that were queued together", n-1)
	}
	mustVerify(t, l)
}

// TestAnswersAreSeenWithinAGroup lets the second caller of a group find the first one's answer.
func TestAnswersAreSeenWithinAGroup(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 1, 0))
	release := hold(t, l)
	defer release()
	bodies := make(chan string, 2)
	replays := make(chan bool, 2)
	for n := range 2 {
		go func() {
			var body []byte
			var replay bool
			err := l.Update(t.Context(), "ho_1", func(tx *Tx) error {
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
		queued(l, n+1)
	}
	release()
	if a, b := <-bodies, <-bodies; a != b || a == "" {
		t.Errorf("bodies %s and %s", a, b)
	}
	if a, b := <-replays, <-replays; a == b {
		t.Errorf("replays %v and %v, want one", a, b)
	}
}

// TestOneCallersEndIsNotTheOthers cancels some callers of a group: those that leave before it begins are not
// recorded, the others are.
func TestOneCallersEndIsNotTheOthers(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	release := hold(t, l)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg, gone sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if _, err := ask(l, t.Context(), "ho_1", testDebit(fmt.Sprint("stays ", i))); err != nil {
				t.Error(err)
			}
		})
		gone.Go(func() {
			if _, err := ask(l, ctx, "ho_1", testDebit(fmt.Sprint("leaves ", i))); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that left: %v", err)
			}
		})
	}
	queued(l, 20)
	cancel()
	gone.Wait()
	release()
	wg.Wait()
	if q, _, _ := l.Balance(t.Context(), "ho_1"); q != 10 {
		t.Errorf("%d answers, want those of the 10 who stayed", q)
	}
	mustVerify(t, l)
}

// TestBegunUpdateCommitsWithoutItsCaller lets a caller's time end while the commit is under way.
func TestBegunUpdateCommitsWithoutItsCaller(t *testing.T) {
	var armed atomic.Bool
	committing, goOn := make(chan struct{}), make(chan struct{})
	l, err := open(t.Context(), Options{Path: newPath(t), Key: testKey}, func(step string) error {
		if step == "commit" && armed.CompareAndSwap(true, false) {
			close(committing)
			<-goOn
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	armed.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := ask(l, ctx, "ho_1", testDebit("a"))
		left <- err
	}()
	<-committing
	cancel()
	if err := <-left; !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who left: %v", err)
	}
	close(goOn)
	mustAsk(t, l, "ho_1", testDebit("b"))
	if _, ok, err := l.Answer(t.Context(), "ho_1", testDebit("a").Query); !ok || err != nil {
		t.Errorf("the update that had begun: %v %v", ok, err)
	}
}

// TestCloseFinishesWhatWasAccepted closes the ledger under queued updates.
func TestCloseFinishesWhatWasAccepted(t *testing.T) {
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	release := hold(t, l)
	defer release()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := ask(l, t.Context(), "ho_1", testDebit(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	queued(l, 20)
	closed := make(chan error)
	go func() { closed <- l.Close() }()
	for l.Ready(t.Context()) != ErrClosed {
		time.Sleep(100 * time.Microsecond)
	}
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if q, _, _ := openTest(t, path).Balance(t.Context(), "ho_1"); q != 20 {
		t.Errorf("%d answers, want 20", q)
	}
}

// TestPanicIsTheCallersOwn shows that a panic in one update reaches its caller and nobody else.
func TestPanicIsTheCallersOwn(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	func() {
		defer func() {
			if p := recover(); p != "oops" {
				t.Errorf("recovered %v", p)
			}
		}()
		l.Update(t.Context(), "ho_1", func(tx *Tx) error {
			if _, err := tx.Append(testDebit("lost")); err != nil {
				t.Error(err)
			}
			panic("oops")
		})
	}()
	if r := mustAsk(t, l, "ho_1", testDebit("a")); r.Seq != 1 {
		t.Errorf("seq %d: the update that panicked left something", r.Seq)
	}
	mustVerify(t, l)
}

// TestRefusalByTheDatabaseIsItsOwn makes the database refuse one update of a group, as a bug of the writer would.
func TestRefusalByTheDatabaseIsItsOwn(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	mustCreate(t, l, testHoldout("ho_2", 100, 0))
	if _, err := l.writer.db.Exec(`CREATE TRIGGER planted BEFORE INSERT ON entries WHEN NEW.query = 'planted'
		BEGIN SELECT RAISE(ABORT, 'planted'); END`); err != nil {
		t.Fatal(err)
	}
	release := hold(t, l)
	defer release()
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() {
			d := testDebit(fmt.Sprint(i))
			if i == 4 {
				d.Query = "planted"
			}
			_, err := ask(l, t.Context(), fmt.Sprint("ho_", 1+i%2), d)
			if (err != nil) != (i == 4) || errors.Is(err, ErrUnavailable) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	queued(l, 9)
	release()
	wg.Wait()
	mustVerify(t, l)
	if err := l.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
