package ledgertest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// manyOfGrants is how many grants a holdout has that is granted to everybody of a large course, or to each run of an agent.
const manyOfGrants = 10_000

// manyGrants: 10,000 grants of a holdout, half of them parts of others, that all expire at one moment. Before any update has ended them nobody holds anything of them, and the first update after
// it ends them all. It would notice a listing that looks through all that have expired for each of them, by the time that the package has, and one that forgets what parts had left.
func manyGrants(t *testing.T, s *suite) {
	begin := time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	now := begin
	set := func(at time.Time) { mu.Lock(); defer mu.Unlock(); now = at }
	s.clock = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 3*manyOfGrants, manyOfGrants))
	const each = 100 // in one update, which a busy machine commits in time, too
	for from := 0; from < manyOfGrants/2; from += each {
		if err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			for i := from; i < from+each; i++ {
				a, b := testGrant(fmt.Sprint("gr_a", i), "", 4, 1), testGrant(fmt.Sprint("gr_b", i), fmt.Sprint("gr_a", i), 3, 1)
				a.Expires, b.Expires = begin.Add(time.Hour), begin.Add(time.Hour)
				a.Holder, b.Holder = "key_one", "key_one"
				for _, g := range []ledger.Grant{a, b} {
					if err := tx.MakeGrant(g); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	mustAsk(t, l, "ho_1", paidBy("in time", "gr_b7", 2, 1))
	free(t, l, "ho_1", map[string][2]int64{"": {manyOfGrants, manyOfGrants / 2}, "gr_a7": {1, 0}, "gr_b7": {1, 0}, "gr_b8": {3, 1}})
	list := func(live bool) {
		t.Helper()
		for _, holder := range []string{"", "key_one"} {
			all, err := l.Grants(t.Context(), "ho_1", holder)
			if err != nil || len(all) != manyOfGrants {
				t.Fatalf("%d grants of %q are listed: %v", len(all), holder, err)
			}
			for i, g := range all {
				held := int64(0)
				if live && i%2 == 0 { // what its part has left
					held = 3
				}
				if i == 2*7 && live {
					held = 1
				}
				if g.Live(s.clock()) != live || g.Held["questions"] != held {
					t.Fatalf("%+v is listed, want %d held", g, held)
				}
			}
		}
	}
	list(true)
	set(begin.Add(time.Hour))
	list(false)
	const left = 3*manyOfGrants - 2
	if b, err := l.Books(t.Context(), "ho_1"); err != nil || b.Free()["questions"] != left {
		t.Errorf("books with %v free (%v)", b.Free(), err)
	}
	mustAsk(t, l, "ho_1", paidBy("after them", "", left, 1)) // more than there was before
	list(false)
	s.verify(t, l)
}
