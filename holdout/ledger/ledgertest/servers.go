package ledgertest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// What several servers of one ledger rest on. A store that one server has at a time is held to the same.

// firstKeyIsOne: of all servers that make a first key at the same time one succeeds, and none after it, also when it was revoked. It would notice a
// look for keys that is another transaction than the key.
func firstKeyIsOne(t *testing.T, s *suite) {
	servers := s.openAll(t)
	const each = 4
	errs := make([]error, each*len(servers))
	var callers sync.WaitGroup
	for i := range errs {
		callers.Go(func() {
			errs[i] = servers[i%len(servers)].FirstKey(t.Context(), ledger.Key{ID: fmt.Sprint("key_", i), Scope: "admin", Hash: [32]byte{1, byte(i)}})
		})
	}
	callers.Wait()
	first := ""
	for i, err := range errs {
		switch {
		case err == nil && first == "":
			first = fmt.Sprint("key_", i)
		case !errors.Is(err, ledger.ErrExists):
			t.Errorf("key %d, after %q: %v", i, first, err)
		}
	}
	for _, l := range servers {
		if all, err := l.Keys(t.Context()); err != nil || len(all) != 1 || all[0].ID != first {
			t.Errorf("keys %+v %v, want %s alone", all, err, first)
		}
	}
	if err := servers[0].RevokeKey(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := servers[0].FirstKey(t.Context(), ledger.Key{ID: "key_x", Scope: "admin", Hash: [32]byte{2}}); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("a first key after a revoked one: %v", err)
	}
	if err := servers[0].FirstKey(t.Context(), ledger.Key{ID: "key_x"}); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a key without a scope: %v", err)
	}
}

// booksAreTheNewest: whichever server is asked, the books are those of the last acknowledged update, and all of one moment. It would notice books that a
// server keeps in memory.
func booksAreTheNewest(t *testing.T, s *suite) {
	servers := s.openAll(t)
	first := servers[0]
	if _, err := first.Books(t.Context(), "ho_1"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("books of nothing: %v", err)
	}
	create(t, first, testHoldout("ho_1", 50, 50))
	for i := range 12 {
		l := servers[i%len(servers)]
		var seq int64
		var r ledger.Receipt
		err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) (err error) {
			if seq = tx.Seq(); seq != int64(i) {
				return fmt.Errorf("the update stands at seq %d", seq)
			}
			d := numbered(i)
			d.Cost = ledger.Meters{"questions": 2, "tokens": 1}
			if r, err = tx.Append(d); err == nil && tx.Seq() != r.Seq {
				err = fmt.Errorf("seq %d after the entry %d", tx.Seq(), r.Seq)
			}
			tx.SetState(fmt.Appendf(nil, "state %d", i+1))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range servers {
			n := int64(i + 1)
			b, err := l.Books(t.Context(), "ho_1")
			if err != nil || b.ID != "ho_1" || b.Seq != n || ledger.HeadText(b.Head) != r.Head || b.Deleted ||
				!b.Spent.Equal(ledger.Meters{"questions": 2 * n, "tokens": n}) || !b.Limits.Equal(ledger.Meters{"questions": 50, "tokens": 50}) ||
				!bytes.Equal(b.State, fmt.Appendf(nil, "state %d", n)) {
				t.Fatalf("books %+v %v after %d updates, the last %s", b, err, n, r.Head)
			}
		}
	}
	if err := first.DeleteHoldout(t.Context(), "ho_1", "key_admin"); err != nil {
		t.Fatal(err)
	}
	for _, l := range servers {
		if b, err := l.Books(t.Context(), "ho_1"); err != nil || !b.Deleted || b.State != nil || b.Seq != 13 {
			t.Errorf("books of a deleted holdout: %+v %v", b, err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if len(servers) > 1 {
		return
	}
	old, err := s.store.Open(t.Context(), ledger.Options{ReplayOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if b, err := old.Books(t.Context(), "ho_1"); err != nil || b.Seq != 13 || b.State != nil {
		t.Errorf("books without the key: %+v %v", b, err)
	}
}

// endedSessions: a session that was ended at one server is over at all of them, also after a restart, and no other one is.
func endedSessions(t *testing.T, s *suite) {
	servers := s.openAll(t)
	over := func(id byte, want bool) {
		t.Helper()
		for _, l := range servers {
			if ended, err := l.SessionEnded(t.Context(), [32]byte{id}); ended != want || err != nil {
				t.Errorf("session %d is ended: %v (%v), want %v", id, ended, err, want)
			}
		}
	}
	over(1, false)
	far := time.Now().Add(time.Hour)
	for _, until := range []time.Time{far, far.Add(-2 * time.Hour)} { // an earlier time shortens nothing
		if err := servers[len(servers)-1].EndSession(t.Context(), [32]byte{1}, until); err != nil {
			t.Fatal(err)
		}
		over(1, true)
	}
	if err := servers[0].EndSession(t.Context(), [32]byte{2}, far); err != nil { // which forgets those that are long over
		t.Fatal(err)
	}
	over(1, true)
	over(2, true)
	over(3, false)
	if err := servers[0].EndSession(t.Context(), [32]byte{3}, time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("until a time that cannot be recorded: %v", err)
	}
	for _, l := range servers {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	servers = s.openAll(t)
	over(1, true)
	over(3, false)
}
