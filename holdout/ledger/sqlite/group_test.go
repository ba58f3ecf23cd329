package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

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
	for l.Waiting() < n {
		time.Sleep(100 * time.Microsecond)
	}
}

func TestGroupSharesACommit(t *testing.T) {
	var commits atomic.Int64
	l, err := Open(t.Context(), newPath(t), ledger.Options{Key: testKey, Fault: func(step string) error {
		if step == "committed" {
			commits.Add(1)
		}
		return nil
	}})
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
			if _, err := ask(l, ctx, "ho_1", testDebit(fmt.Sprint("leaves ", i))); !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that left: %v", err)
			}
		})
	}
	queued(l, 20)
	cancel()
	gone.Wait()
	release()
	wg.Wait()
	if q, _ := spent(l, t.Context(), "ho_1"); q != 10 {
		t.Errorf("%d answers, want those of the 10 who stayed", q)
	}
	mustVerify(t, l)
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
	for l.Ready(t.Context()) != ledger.ErrClosed {
		time.Sleep(100 * time.Microsecond)
	}
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if q, _ := spent(openTest(t, path), t.Context(), "ho_1"); q != 20 {
		t.Errorf("%d answers, want 20", q)
	}
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
			if (err != nil) != (i == 4) || errors.Is(err, ledger.ErrUnavailable) {
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

// TestReleasesOfOneCommit: of releases that share a commit, each sees what those before it spend, and that its request was released.
func TestReleasesOfOneCommit(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	release := hold(t, l)
	defer release()
	var wg sync.WaitGroup
	var made, refused atomic.Int64
	for i := range 6 {
		wg.Go(func() {
			err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
				_, err := tx.Release(ledger.Release{Query: fmt.Sprint("sha256:", i), Canonical: []byte(`{"epsilon":1,"release_epsilon":2}`), Core: []byte(`{"released":true}`)})
				return err
			})
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, ledger.ErrEpsilon):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	queued(l, 6)
	release()
	wg.Wait()
	if made.Load() != 2 || refused.Load() != 4 {
		t.Errorf("%d made and %d refused, want 2 and 4", made.Load(), refused.Load())
	}
	mustCreate(t, l, testHoldout("ho_2", 100, 0))
	release = hold(t, l)
	defer release()
	var one, known atomic.Int64
	for range 3 {
		wg.Go(func() {
			err := l.Update(t.Context(), "ho_2", func(tx *ledger.Tx) error {
				_, err := tx.Release(ledger.Release{Query: "sha256:same", Canonical: []byte(`{"epsilon":0.1,"release_epsilon":2}`), Core: []byte(`{"released":true}`)})
				return err
			})
			switch {
			case err == nil:
				one.Add(1)
			case errors.Is(err, ledger.ErrAnswered):
				known.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	queued(l, 3)
	release()
	wg.Wait()
	if one.Load() != 1 || known.Load() != 2 {
		t.Errorf("of one request %d releases and %d that know it, want 1 and 2", one.Load(), known.Load())
	}
	mustVerify(t, l)
}
