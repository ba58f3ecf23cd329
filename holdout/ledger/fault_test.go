package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// faulty is a ledger whose commits fail at a step, while it is set.
type faulty struct {
	*Ledger
	step atomic.Pointer[string]
}

func openFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{}
	l, err := open(t.Context(), Options{Path: newPath(t), Key: testKey}, func(step string) error {
		if at := f.step.Load(); at != nil && *at == step {
			return syscall.EIO
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f.Ledger = l
	return f
}

func (f *faulty) breakAt(step string) { f.step.Store(&step) }

// heal mends the disk and waits until the ledger has found that out by itself.
func (f *faulty) heal(t *testing.T) {
	t.Helper()
	f.step.Store(nil)
	for f.Ready(t.Context()) != nil {
		time.Sleep(5 * time.Millisecond)
	}
}

// TestFailedCommit fails commits before they begin, before they are durable, and after; and checks that every caller
// hears of it, that asking again gives one answer at one price, and that the ledger comes back by itself.
func TestFailedCommit(t *testing.T) {
	for step, durable := range map[string]bool{"begin": false, "commit": false, "committed": true} {
		t.Run(step, func(t *testing.T) {
			f := openFaulty(t)
			mustCreate(t, f.Ledger, testHoldout("ho_1", 100, 0))
			mustAsk(t, f.Ledger, "ho_1", testDebit("before"))
			f.breakAt(step)
			const callers = 20
			update := func(i int) (body []byte, replay bool, err error) {
				err = f.Update(t.Context(), "ho_1", func(tx *Tx) error {
					if body, replay = tx.Answer(testDebit(fmt.Sprint(i)).Query); replay {
						return nil
					}
					tx.SetState([]byte("after"))
					r, err := tx.Append(testDebit(fmt.Sprint(i)))
					body = r.Body
					return err
				})
				return body, replay, err
			}
			release := make(chan struct{})
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					<-release
					if _, _, err := update(i); !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.EIO) {
						t.Errorf("caller %d: %v", i, err)
					}
				})
			}
			close(release)
			wg.Wait()
			if err := f.Ready(t.Context()); !errors.Is(err, ErrUnavailable) {
				t.Errorf("ready while it cannot commit: %v", err)
			}
			if err := f.CreateKey(t.Context(), Key{ID: "k", Scope: "admin"}); !errors.Is(err, ErrUnavailable) {
				t.Errorf("create a key: %v", err)
			}
			f.heal(t)
			replays := 0
			for i := range callers {
				_, replay, err := update(i)
				if err != nil {
					t.Fatal(err)
				}
				if replay {
					replays++
				}
			}
			if durable != (replays > 0) {
				t.Errorf("%d answers of failed commits were durable", replays)
			}
			if q, _, _ := f.Balance(t.Context(), "ho_1"); q != callers+1 {
				t.Errorf("spent %d, want %d: one for each question", q, callers+1)
			}
			mustVerify(t, f.Ledger)
		})
	}
}

// TestDeadlineWhileTheDiskHangs blocks a commit: callers leave when their time is over.
func TestDeadlineWhileTheDiskHangs(t *testing.T) {
	var armed atomic.Bool
	goOn := make(chan struct{})
	l, err := open(t.Context(), Options{Path: newPath(t), Key: testKey}, func(step string) error {
		if step == "commit" && armed.Load() {
			<-goOn
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustCreate(t, l, testHoldout("ho_1", 1000, 0))
	armed.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range queueSize + 10 { // some in the group, some in the queue, some before it
		wg.Go(func() {
			if _, err := ask(l, ctx, "ho_1", testDebit(fmt.Sprint(i))); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	armed.Store(false)
	close(goOn)
	mustAsk(t, l, "ho_1", testDebit("after"))
	mustVerify(t, l)
}

// TestAnotherWriterIsNoticed changes the books behind the ledger's back: what is believed about them is dropped.
func TestAnotherWriterIsNoticed(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	mustAsk(t, l, "ho_1", testDebit("a"))
	db, err := openWriter(t.Context(), l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// Another program appends what it would: the next entry, with books to match.
	var row books
	if row, err = l.balance(t.Context(), "ho_1"); err != nil {
		t.Fatal(err)
	}
	d := testDebit("b")
	r := record{Entry: Entry{Seq: 2, Time: d.Time, Query: d.Query, Principal: "other", Questions: 1, Canonical: d.Canonical, Kind: KindAnswer}, Spent: Amount{2, 0}}
	r.seal(row.head, d.Core)
	state, err := l.sealer.seal([]byte("state 2"), purposeState("ho_1", 2))
	if err != nil {
		t.Fatal(err)
	}
	var stmt statements
	if err := stmt.prepare(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	defer stmt.close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_, errDebit := tx.Stmt(stmt.debit).Exec(state, 2, 0, 2, r.Head[:], row.number, 1)
	if err := errors.Join(stmt.insertEntry(tx, row.number, &r), errDebit, tx.Commit()); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("c")); err == nil {
		t.Error("an update on stale books was accepted")
	}
	for l.Ready(t.Context()) != nil {
		time.Sleep(5 * time.Millisecond)
	}
	// The refusal above is of the gap trigger or of the books; either way they are read again.
	if r := mustAsk(t, l, "ho_1", testDebit("c")); r.Seq != 3 {
		t.Errorf("seq %d, want 3", r.Seq)
	}
	mustVerify(t, l)
}
