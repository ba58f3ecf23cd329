package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// fresh is a ledger's own memory emptied, so that what is read next is read from the database.
func fresh(l *Ledger) *Ledger {
	l.memory.forget()
	return l
}

// TestMemorySaysWhatTheDatabaseSays compares look-ups with and without memory after each of many updates and a deletion. It would notice books that
// are remembered before or longer than they hold, and an answer that is denied.
func TestMemorySaysWhatTheDatabaseSays(t *testing.T) {
	l := openTest(t, newPath(t))
	ctx := t.Context()
	compare := func(what string) {
		t.Helper()
		type seen struct {
			books  ledger.Books
			bodies []string
			grants int
		}
		look := func() (s seen) {
			var err error
			if s.books, err = l.Books(ctx, "ho_1"); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for i := range 12 {
				body, _, err := l.Answer(ctx, "ho_1", testDebit(fmt.Sprint(i)).Query)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				s.bodies = append(s.bodies, string(body))
			}
			grants, err := l.Grants(ctx, "ho_1", "")
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			s.grants = len(grants)
			return s
		}
		remembered := look()
		if read := func() seen { fresh(l); return look() }(); !reflect.DeepEqual(remembered, read) {
			t.Errorf("%s: remembered %+v\nread %+v", what, remembered, read)
		}
	}
	mustCreate(t, l, testHoldout("ho_1", 100, 10))
	compare("created")
	for i := range 10 {
		mustAsk(t, l, "ho_1", testDebit(fmt.Sprint(i)))
		if i%3 == 0 { // the writer reads books and queries again; else its next change is remembered
			if err := l.alone(ctx, func(context.Context, *sql.Tx) error { l.forget(); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		mustAsk(t, l, "ho_1", testDebit(fmt.Sprint(100+i)))
		if l.memory.of("ho_1") == nil {
			t.Fatalf("after %d answers nothing is remembered: this test compares the database with itself", i)
		}
		compare(fmt.Sprintf("%d answers", i))
	}
	b, err := l.Books(ctx, "ho_1")
	if err != nil {
		t.Fatal(err)
	}
	clear(b.Spent) // the caller's own copy
	compare("changed by a reader")
	mustAsk(t, l, "ho_1", testDebit("x"))
	if err := l.DeleteHoldout(ctx, "ho_1", "p"); err != nil {
		t.Fatal(err)
	}
	compare("deleted")
}

// TestMemoryAfterACommitThatFailed: what became of the commit is not known to its caller, and durable here. It would notice a memory that outlives
// the failure: an answer that is denied, books that are too old.
func TestMemoryAfterACommitThatFailed(t *testing.T) {
	for _, step := range []string{ledger.StepBegin, ledger.StepCommit, ledger.StepCommitted} {
		t.Run(step, func(t *testing.T) {
			var fails atomic.Bool
			l, err := Open(t.Context(), newPath(t), ledger.Options{Key: testKey, Fault: func(at string) error {
				if at == step && fails.Swap(false) {
					return errors.New("planned")
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			mustCreate(t, l, testHoldout("ho_1", 100, 0))
			mustAsk(t, l, "ho_1", testDebit("a"))
			fails.Store(true)
			if _, err := ask(l, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ledger.ErrUnavailable) {
				t.Fatal(err)
			}
			for l.Ready(t.Context()) != nil {
				time.Sleep(time.Millisecond)
			}
			_, answered, err := l.Answer(t.Context(), "ho_1", testDebit("b").Query)
			if err != nil || answered != (step == ledger.StepCommitted) {
				t.Errorf("answered: %v, %v", answered, err)
			}
			b, err := l.Books(t.Context(), "ho_1")
			want := int64(1)
			if answered {
				want = 2
			}
			if err != nil || b.Seq != want || b.Spent["questions"] != want {
				t.Errorf("seq %d, spent %v, %v; want %d", b.Seq, b.Spent, err, want)
			}
			mustVerify(t, l)
		})
	}
}

// TestRevokedKeyIsForgotten reads a key while it is revoked, over and over. It would notice a key that is put into the memory by a reader that began before the
// revocation: it would open the door for ever.
func TestRevokedKeyIsForgotten(t *testing.T) {
	l := openTest(t, newPath(t))
	for n := range 30 {
		k := ledger.Key{ID: fmt.Sprint("key_", n), Name: "n", Scope: "ask", Hash: [32]byte{byte(n), 1}}
		if err := l.CreateKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					if _, _, err := l.KeyByHash(context.Background(), k.Hash); err != nil {
						t.Error(err)
						return
					}
				}
			}
		}()
		time.Sleep(time.Millisecond)
		if err := l.RevokeKey(t.Context(), k.ID); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := l.KeyByHash(t.Context(), k.Hash); ok || err != nil {
			t.Fatalf("a revoked key is found, %v", err)
		}
		close(stop)
		<-done
		if _, ok, err := l.KeyByHash(t.Context(), k.Hash); ok || err != nil {
			t.Fatalf("a revoked key is found later, %v", err)
		}
	}
	// The order of that race, by hand: read before the write, kept after it.
	k := ledger.Key{Hash: [32]byte{9}}
	_, _, epoch := l.memory.key(k.Hash)
	l.memory.forgetKeys()
	if l.memory.keepKey(k, epoch); len(l.memory.keys) > 0 {
		t.Error("a key is remembered that was read before keys were forgotten")
	}
}

// TestReadWhileItIsCommitted: when an update is durable and nobody has heard of it, readers see all of it: books and answer. It would notice books that are older than an answer that can be read.
func TestReadWhileItIsCommitted(t *testing.T) {
	var l *Ledger
	var watched atomic.Bool
	looked := 0
	l, err := Open(t.Context(), newPath(t), ledger.Options{Key: testKey, Fault: func(at string) error {
		if at == ledger.StepCommitted && watched.Load() {
			looked++
			b, err := l.Books(context.Background(), "ho_1")
			_, answered, errA := l.Answer(context.Background(), "ho_1", testDebit("b").Query)
			if err != nil || errA != nil || b.Seq != 2 || b.Spent["questions"] != 2 || !answered {
				t.Errorf("seq %d, spent %v, answered %v, %v, %v", b.Seq, b.Spent, answered, err, errA)
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	mustAsk(t, l, "ho_1", testDebit("a"))
	if l.memory.of("ho_1") == nil {
		t.Fatal("nothing is remembered")
	}
	watched.Store(true)
	mustAsk(t, l, "ho_1", testDebit("b"))
	watched.Store(false)
	if looked != 1 {
		t.Errorf("looked %d times", looked)
	}
}

// TestKeyReadWhileItIsRevoked: a reader comes when the revocation is written and not yet durable, and still finds the key. When the revocation is acknowledged nobody does. It would notice keys that are
// forgotten only before the commit, or after the caller has heard.
func TestKeyReadWhileItIsRevoked(t *testing.T) {
	var l *Ledger
	var watched atomic.Bool
	found := 0
	k := ledger.Key{ID: "key_1", Name: "n", Scope: "ask", Hash: [32]byte{7}}
	l, err := Open(t.Context(), newPath(t), ledger.Options{Key: testKey, Fault: func(at string) error {
		if at == ledger.StepCommit && watched.Load() {
			if _, ok, err := l.KeyByHash(context.Background(), k.Hash); ok && err == nil {
				found++
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.CreateKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	watched.Store(true)
	err = l.RevokeKey(t.Context(), k.ID)
	watched.Store(false)
	if err != nil || found != 1 {
		t.Fatalf("%v; the key was found %d times before the commit, want once", err, found)
	}
	if _, ok, err := l.KeyByHash(t.Context(), k.Hash); ok || err != nil {
		t.Fatalf("a revoked key is found, %v", err)
	}
}

// TestMemoryIsBounded: beyond the limit a holdout's queries are looked up in the database, and none is denied.
func TestMemoryIsBounded(t *testing.T) {
	m := newMemory()
	queries := make([]string, maxAsked)
	for i := range queries {
		queries[i] = fmt.Sprint(i)
	}
	m.begin(&books{Books: ledger.Books{ID: "ho_1"}}, queries)
	if m.unanswered("ho_1", "7") || !m.unanswered("ho_1", "new") {
		t.Error("queries at the limit")
	}
	g := &group{answers: map[string]map[string][]byte{"ho_1": {"new": nil}}}
	m.foresee(g)
	if m.asked != 0 || m.unanswered("ho_1", "new") || m.unanswered("ho_1", "newer") {
		t.Errorf("%d queries remembered beyond the limit", m.asked)
	}
}
