package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

func testGrant(id, parent string, questions, tokens int64) ledger.Grant {
	return ledger.Grant{ID: id, Parent: parent, Holder: "key_of_" + id, Name: "a slice", Shows: "value", MayGrant: true, By: "key_admin",
		Limits: ledger.Meters{"questions": questions, "tokens": tokens}}
}

func grant(l ledger.Ledger, holdout string, g ledger.Grant) error {
	return l.Update(context.Background(), holdout, func(tx *ledger.Tx) error { return tx.MakeGrant(g) })
}

func mustGrant(t testing.TB, l ledger.Ledger, holdout string, g ledger.Grant) {
	t.Helper()
	if err := grant(l, holdout, g); err != nil {
		t.Fatal(err)
	}
}

func endGrant(t testing.TB, l ledger.Ledger, holdout, id string) {
	t.Helper()
	if err := l.Update(context.Background(), holdout, func(tx *ledger.Tx) error { return tx.EndGrant(id, "key_admin") }); err != nil {
		t.Fatal(err)
	}
}

// paidBy is a debit on a grant.
func paidBy(name, grant string, questions, tokens int64) ledger.Debit {
	d := testDebit(name)
	d.Grant, d.Cost = grant, ledger.Meters{"questions": questions, "tokens": tokens}
	return d
}

// free demands what is free of accounts, as it is read and as an update sees it.
func free(t testing.TB, l ledger.Ledger, holdout string, want map[string][2]int64) {
	t.Helper()
	b, err := l.Books(context.Background(), holdout)
	if err != nil {
		t.Fatal(err)
	}
	for account, amounts := range want {
		got, m := b.Free(), ledger.Meters{"questions": amounts[0], "tokens": amounts[1]}
		if account != "" {
			g, err := l.Grant(context.Background(), account)
			if err != nil {
				t.Error(err)
			}
			got = g.Free()
		}
		if !got.Equal(m) {
			t.Errorf("%v are free of %q, want %v", got, account, m)
		}
	}
	inside := map[string]ledger.Meters{} // by the last run, which counts
	err = l.Update(context.Background(), holdout, func(tx *ledger.Tx) error {
		for account := range want {
			got, err := tx.Free(account)
			if err != nil {
				return err
			}
			inside[account] = got
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for account, amounts := range want {
		if m := (ledger.Meters{"questions": amounts[0], "tokens": amounts[1]}); !inside[account].Equal(m) {
			t.Errorf("in an update %v are free of %q, want %v", inside[account], account, m)
		}
	}
}

// grantsArePartsOfABudget: what is granted is there for its holder and for nobody else, a grant within a grant is a part of that, a debit is charged to all that it
// is a part of, and what a grant has not spent when it ends is there again.
func grantsArePartsOfABudget(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 20, 8))
	create(t, l, testHoldout("ho_2", 5, 5))
	mustAsk(t, l, "ho_1", paidBy("before", "", 2, 1))
	mustGrant(t, l, "ho_1", testGrant("gr_a", "", 10, 4))
	mustGrant(t, l, "ho_1", testGrant("gr_b", "gr_a", 6, 3))
	mustGrant(t, l, "ho_1", testGrant("gr_c", "gr_b", 2, 0))
	mustGrant(t, l, "ho_1", testGrant("gr_d", "", 0, 1))
	free(t, l, "ho_1", map[string][2]int64{"": {8, 2}, "gr_a": {4, 1}, "gr_b": {4, 3}, "gr_c": {2, 0}, "gr_d": {0, 1}})

	for _, c := range []struct {
		account           string
		questions, tokens int64
	}{{"", 9, 0}, {"", 0, 3}, {"gr_a", 5, 0}, {"gr_a", 0, 2}, {"gr_b", 5, 0}, {"gr_c", 0, 1}, {"gr_d", 1, 0}, {"", 1<<63 - 1, 0}} {
		var short *ledger.BudgetError
		if _, err := ask(l, t.Context(), "ho_1", paidBy("too much", c.account, c.questions, c.tokens)); !errors.As(err, &short) || short.Grant != c.account {
			t.Errorf("%d questions and %d tokens of %q: %v", c.questions, c.tokens, c.account, err)
		}
		if err := grant(l, "ho_1", testGrant("gr_x", c.account, c.questions, c.tokens)); !errors.As(err, &short) || short.Grant != c.account {
			t.Errorf("a grant of %d questions and %d tokens of %q: %v", c.questions, c.tokens, c.account, err)
		}
	}
	mustAsk(t, l, "ho_1", paidBy("c", "gr_c", 1, 0))
	mustAsk(t, l, "ho_1", paidBy("b", "gr_b", 1, 2))
	void := paidBy("a", "gr_a", 4, 1)
	void.Void = true
	mustAsk(t, l, "ho_1", void)
	mustAsk(t, l, "ho_1", paidBy("all that is not granted", "", 8, 2))
	spent(t, l, "ho_1", ledger.Meters{"questions": 16, "tokens": 6})
	free(t, l, "ho_1", map[string][2]int64{"": {0, 0}, "gr_a": {0, 0}, "gr_b": {3, 1}, "gr_c": {1, 0}, "gr_d": {0, 1}})

	check := func(l ledger.Ledger) {
		t.Helper()
		all, err := l.Grants(t.Context(), "ho_1", "")
		if err != nil || len(all) != 4 {
			t.Fatalf("grants %+v %v", all, err)
		}
		for i, want := range []struct {
			id, parent        string
			questions, tokens int64 // spent
		}{{"gr_a", "", 6, 3}, {"gr_b", "gr_a", 2, 2}, {"gr_c", "gr_b", 1, 0}, {"gr_d", "", 0, 0}} {
			g := all[i]
			if g.ID != want.id || g.Parent != want.parent || g.Holdout != "ho_1" || !g.Spent.Equal(ledger.Meters{"questions": want.questions, "tokens": want.tokens}) ||
				g.Holder != "key_of_"+want.id || g.Name != "a slice" || g.Shows != "value" || !g.MayGrant || g.By != "key_admin" || g.Created.IsZero() || !g.Expires.IsZero() || g.EndedBy != "" {
				t.Errorf("grant %+v, want %+v", g, want)
			}
			if one, err := l.Grant(t.Context(), want.id); err != nil || !reflect.DeepEqual(one, g) {
				t.Errorf("one by one %+v %v, in the list %+v", one, err, g)
			}
		}
		if mine, err := l.Grants(t.Context(), "", "key_of_gr_c"); err != nil || len(mine) != 1 || mine[0].ID != "gr_c" {
			t.Errorf("the grants of a holder: %+v %v", mine, err)
		}
		if mine, err := l.Grants(t.Context(), "ho_2", "key_of_gr_c"); err != nil || len(mine) != 0 {
			t.Errorf("the grants of a holder on another holdout: %+v %v", mine, err)
		}
		entries, err := l.Answers(t.Context(), "ho_1", "", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var paid []string
		for _, e := range entries {
			paid = append(paid, e.Grant)
		}
		if got := strings.Join(paid, ","); got != ",gr_c,gr_b," {
			t.Errorf("the answers were paid by %q", got)
		}
		spending, err := l.Spending(t.Context(), "ho_1")
		want := []ledger.Spending{
			{Principal: "key_a", Answers: 2, Spent: ledger.Meters{"questions": 10, "tokens": 3}},
			{Principal: "key_a", Grant: "gr_a", Voids: 1, Spent: ledger.Meters{"questions": 4, "tokens": 1}},
			{Principal: "key_a", Grant: "gr_b", Answers: 1, Spent: ledger.Meters{"questions": 1, "tokens": 2}},
			{Principal: "key_a", Grant: "gr_c", Answers: 1, Spent: ledger.Meters{"questions": 1, "tokens": 0}},
		}
		if err != nil || !reflect.DeepEqual(spending, want) {
			t.Errorf("spending %+v %v, want %+v", spending, err, want)
		}
	}
	check(l)
	if reports := s.verify(t, l); reports[0].Grants != 4 {
		t.Errorf("reports %+v", reports)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = s.open(t)
	check(l)

	for range 2 {
		endGrant(t, l, "ho_1", "gr_b") // and gr_c with it
	}
	free(t, l, "ho_1", map[string][2]int64{"": {0, 0}, "gr_a": {4, 1}})
	for _, id := range []string{"gr_b", "gr_c"} {
		var over *ledger.GrantError
		if _, err := ask(l, t.Context(), "ho_1", paidBy("after the end", id, 0, 0)); !errors.As(err, &over) || over.Reason != ledger.GrantEnded || over.ID != id {
			t.Errorf("a debit of %s, which has ended: %v", id, err)
		}
		if err := grant(l, "ho_1", testGrant("gr_x", id, 0, 0)); !errors.As(err, &over) {
			t.Errorf("a grant of %s, which has ended: %v", id, err)
		}
		if g, err := l.Grant(t.Context(), id); err != nil || g.Live(time.Now()) || (g.EndedBy == "key_admin") != (id == "gr_b") {
			t.Errorf("%s has ended and is %+v %v", id, g, err)
		}
	}
	mustAsk(t, l, "ho_1", paidBy("what came back", "gr_a", 4, 1))
	endGrant(t, l, "ho_1", "gr_d")
	free(t, l, "ho_1", map[string][2]int64{"": {0, 1}, "gr_a": {0, 0}})
	s.verify(t, l)

	if err := l.DeleteHoldout(t.Context(), "ho_1", "key_admin"); err != nil {
		t.Fatal(err)
	}
	if all, err := l.Grants(t.Context(), "ho_1", ""); err != nil || len(all) != 4 {
		t.Errorf("the grants of a deleted holdout: %+v %v", all, err)
	}
	s.verify(t, l)
}

// grantsExpire: from its time on a grant pays nothing, nor does what is a part of it, and what it has not spent is there again, to be read and to be spent, though
// nobody ended it. A clock that goes back wakes no grant that was ended.
func grantsExpire(t *testing.T, s *suite) {
	begin := time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	now := begin
	set := func(at time.Time) { mu.Lock(); defer mu.Unlock(); now = at }
	s.clock = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 20, 5))
	a, b, c := testGrant("gr_a", "", 10, 5), testGrant("gr_b", "gr_a", 4, 1), testGrant("gr_c", "gr_b", 2, 1)
	a.Expires, b.Expires = begin.Add(2*time.Hour), begin.Add(time.Hour)
	past := testGrant("gr_x", "", 1, 1)
	past.Expires = begin
	if err := grant(l, "ho_1", past); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a grant that has expired: %v", err)
	}
	for _, g := range []ledger.Grant{a, b, c} {
		mustGrant(t, l, "ho_1", g)
	}
	set(b.Expires.Add(-1))
	mustAsk(t, l, "ho_1", paidBy("in the last moment", "gr_c", 1, 0))
	free(t, l, "ho_1", map[string][2]int64{"": {10, 0}, "gr_a": {6, 4}, "gr_b": {2, 0}, "gr_c": {1, 1}})

	set(b.Expires)
	if g, err := l.Grant(t.Context(), "gr_c"); err != nil || g.Live(b.Expires) || !g.Until.Equal(b.Expires) {
		t.Errorf("a part of a grant that expired: %+v %v", g, err)
	}
	if g, err := l.Grant(t.Context(), "gr_a"); err != nil || !g.Free().Equal(ledger.Meters{"questions": 9, "tokens": 5}) {
		t.Errorf("before an update %v are free (%v)", g.Free(), err)
	}
	var over *ledger.GrantError
	for _, id := range []string{"gr_b", "gr_c"} {
		if _, err := ask(l, t.Context(), "ho_1", paidBy("too late", id, 0, 0)); !errors.As(err, &over) || over.Reason != ledger.GrantExpired {
			t.Errorf("a debit of %s after its time: %v", id, err)
		}
	}
	mustAsk(t, l, "ho_1", paidBy("what came back", "gr_a", 9, 5))
	s.verify(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = s.open(t)
	set(begin)
	if _, err := ask(l, t.Context(), "ho_1", paidBy("the clock went back", "gr_b", 0, 0)); !errors.As(err, &over) {
		t.Errorf("a debit of an ended grant after the clock went back: %v", err)
	}
	set(a.Expires.Add(time.Minute))
	if b, err := l.Books(t.Context(), "ho_1"); err != nil || !b.Free().Equal(ledger.Meters{"questions": 10, "tokens": 0}) {
		t.Errorf("books with %v free (%v)", b.Free(), err)
	}
	if h, err := l.Holdout(t.Context(), "ho_1"); err != nil || !h.Held.Equal(ledger.Meters{"questions": 0, "tokens": 0}) {
		t.Errorf("grants hold %v (%v)", h.Held, err)
	}
	free(t, l, "ho_1", map[string][2]int64{"": {10, 0}})
	mustGrant(t, l, "ho_1", testGrant("gr_d", "", 10, 0))
	s.verify(t, l)
}

// grantsRefuse: what is no grant is not recorded, and leaves nothing.
func grantsRefuse(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 1<<63-1, 5))
	create(t, l, testHoldout("ho_2", 5, 5))
	mustGrant(t, l, "ho_1", testGrant("gr_a", "", 1<<62, 1))
	for name, c := range map[string]struct {
		change func(g *ledger.Grant)
		want   error
	}{
		"the same id":             {func(g *ledger.Grant) { g.ID = "gr_a" }, ledger.ErrExists},
		"no id":                   {func(g *ledger.Grant) { g.ID = "" }, ledger.ErrInvalid},
		"no holder":               {func(g *ledger.Grant) { g.Holder = "" }, ledger.ErrInvalid},
		"a negative amount":       {func(g *ledger.Grant) { g.Limits["tokens"] = -1 }, ledger.ErrInvalid},
		"a meter too few":         {func(g *ledger.Grant) { delete(g.Limits, "tokens") }, ledger.ErrInvalid},
		"a meter too many":        {func(g *ledger.Grant) { g.Limits["rounds"] = 0 }, ledger.ErrInvalid},
		"something spent":         {func(g *ledger.Grant) { g.Spent = ledger.Meters{"questions": 1} }, ledger.ErrInvalid},
		"a sum that overflows":    {func(g *ledger.Grant) { g.Limits["questions"] = 1<<63 - 1 }, ledger.ErrBudget},
		"a bit too much":          {func(g *ledger.Grant) { g.Limits["questions"] = 1 << 62 }, ledger.ErrBudget},
		"more than its parent":    {func(g *ledger.Grant) { g.Parent, g.Limits["tokens"] = "gr_a", 2 }, ledger.ErrBudget},
		"an unknown parent":       {func(g *ledger.Grant) { g.Parent = "gr_9" }, ledger.ErrGrant},
		"a name that is too long": {func(g *ledger.Grant) { g.Name = strings.Repeat("x", ledger.MaxTextBytes+1) }, ledger.ErrInvalid},
		"a time beyond all":       {func(g *ledger.Grant) { g.Expires = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }, ledger.ErrInvalid},
	} {
		g := testGrant("gr_x", "", 1, 1)
		c.change(&g)
		if err := grant(l, "ho_1", g); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	var unknown *ledger.GrantError
	if _, err := ask(l, t.Context(), "ho_2", paidBy("of another holdout", "gr_a", 0, 0)); !errors.As(err, &unknown) || unknown.Reason != ledger.GrantUnknown {
		t.Errorf("a debit on another holdout's grant: %v", err)
	}
	if err := grant(l, "ho_2", testGrant("gr_x", "gr_a", 0, 0)); !errors.As(err, &unknown) {
		t.Errorf("a part of another holdout's grant: %v", err)
	}
	if err := l.Update(t.Context(), "ho_2", func(tx *ledger.Tx) error { return tx.EndGrant("gr_a", "key_admin") }); !errors.As(err, &unknown) {
		t.Errorf("another holdout's grant is ended: %v", err)
	}
	if _, err := l.Grant(t.Context(), "gr_x"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a grant that was refused: %v", err)
	}
	if _, err := l.Grants(t.Context(), "", ""); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("grants of nothing: %v", err)
	}
	if _, err := l.Spending(t.Context(), "ho_9"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("spending of nothing: %v", err)
	}
	for i, parent := 1, "gr_a"; i <= ledger.MaxGrantDepth; i++ {
		id := fmt.Sprint("gr_", i)
		err := grant(l, "ho_1", testGrant(id, parent, 1, 1))
		if want := i < ledger.MaxGrantDepth; (err == nil) != want || err != nil && !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("a grant within %d others: %v", i, err)
		}
		parent = id
	}
	// All of it in one update: made, made a part of, spent, ended. And nothing of it when the update fails.
	whole := func(fails error) error {
		return l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			err := errors.Join(tx.MakeGrant(testGrant("gr_p", "", 4, 2)), tx.MakeGrant(testGrant("gr_q", "gr_p", 3, 1)))
			_, err2 := tx.Append(paidBy("in one", "gr_q", 2, 1))
			return errors.Join(err, err2, tx.EndGrant("gr_p", "key_admin"), fails)
		})
	}
	if err := whole(syscall.EIO); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if _, err := l.Grant(t.Context(), "gr_p"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a grant of an update that failed: %v", err)
	}
	if err := whole(nil); err != nil {
		t.Error(err)
	}
	if g, err := l.Grant(t.Context(), "gr_p"); err != nil || g.Live(time.Now()) || !g.Spent.Equal(ledger.Meters{"questions": 2, "tokens": 1}) {
		t.Errorf("a grant of one update: %+v %v", g, err)
	}
	s.verify(t, l)
}

// grantsOfManyCallers: however many ask at once on nested grants and beside them, no account is overspent, each debit is charged to all that its grant is a part of,
// and all of the budget can be spent.
func grantsOfManyCallers(t *testing.T, s *suite) {
	servers := s.openAll(t)
	create(t, servers[0], testHoldout("ho_1", 60, 60))
	for _, g := range []ledger.Grant{testGrant("gr_a", "", 40, 40), testGrant("gr_b", "gr_a", 15, 15), testGrant("gr_c", "gr_a", 10, 10)} {
		mustGrant(t, servers[0], "ho_1", g)
	}
	accounts := []string{"", "gr_a", "gr_b", "gr_c"}
	var mu sync.Mutex
	paid := map[string]int64{}
	var wg sync.WaitGroup
	for i := range 160 {
		wg.Go(func() {
			account := accounts[i%len(accounts)]
			_, err := ask(servers[i/4%len(servers)], t.Context(), "ho_1", paidBy(fmt.Sprint(i), account, 1, 1))
			var short *ledger.BudgetError
			switch {
			case err == nil:
				mu.Lock()
				paid[account]++
				mu.Unlock()
			case !errors.As(err, &short) || short.Grant != account:
				t.Errorf("%q: %v", account, err)
			}
		})
	}
	wg.Wait()
	if want := map[string]int64{"": 20, "gr_a": 15, "gr_b": 15, "gr_c": 10}; !reflect.DeepEqual(paid, want) {
		t.Errorf("paid %v, want %v", paid, want)
	}
	for _, l := range servers {
		free(t, l, "ho_1", map[string][2]int64{"": {0, 0}, "gr_a": {0, 0}, "gr_b": {0, 0}, "gr_c": {0, 0}})
	}
	s.verify(t, servers[0])
}

// grantsAndFailedCommits: a grant, a debit of it and its end are durable or are not, whole, and whoever asks again after a commit that failed finds which.
func grantsAndFailedCommits(t *testing.T, s *suite) {
	l := s.open(t)
	for i, c := range []struct {
		step    string
		durable bool
	}{{ledger.StepBegin, false}, {ledger.StepCommit, false}, {ledger.StepCommitted, true}} {
		holdout, id := fmt.Sprint("ho_", i), fmt.Sprint("gr_", i)
		create(t, l, testHoldout(holdout, 10, 10))
		failed := func(do func() error) {
			t.Helper()
			s.plant(func(step string) error {
				if step == c.step {
					return syscall.EIO
				}
				return nil
			})
			if err := do(); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("%s: %v", c.step, err)
			}
			s.plant(nil)
			ready(l)
		}
		failed(func() error { return grant(l, holdout, testGrant(id, "", 6, 6)) })
		if err := grant(l, holdout, testGrant(id, "", 6, 6)); (err == nil) == c.durable || err != nil && !errors.Is(err, ledger.ErrExists) {
			t.Errorf("%s: granted again: %v", c.step, err)
		}
		failed(func() error { _, err := ask(l, t.Context(), holdout, paidBy("q", id, 2, 1)); return err })
		if _, err := ask(l, t.Context(), holdout, paidBy("q", id, 2, 1)); (err == nil) == c.durable || err != nil && !errors.Is(err, ledger.ErrAnswered) {
			t.Errorf("%s: asked again: %v", c.step, err)
		}
		free(t, l, holdout, map[string][2]int64{"": {4, 4}, id: {4, 5}})
		failed(func() error {
			return l.Update(t.Context(), holdout, func(tx *ledger.Tx) error { return tx.EndGrant(id, "key_admin") })
		})
		endGrant(t, l, holdout, id)
		free(t, l, holdout, map[string][2]int64{"": {8, 9}})
	}
	s.verify(t, l)
}
