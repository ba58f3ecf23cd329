package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

func createKey(t testing.TB, l ledger.Ledger, id string) {
	t.Helper()
	var hash [32]byte
	copy(hash[:], id)
	if err := l.CreateKey(context.Background(), ledger.Key{ID: id, Scope: "granted", Hash: hash}); err != nil {
		t.Fatal(err)
	}
}

// testGrant is one of ten questions of ho_1 for a key.
func testGrant(id, key, parent string) ledger.Grant {
	return ledger.Grant{ID: id, Key: key, Holdout: "ho_1", Parent: parent, Limits: ledger.Meters{"questions": 10, "tokens": 2}, Shows: "full", Created: time.Unix(7, int64(len(id))).UTC()}
}

// grants are kept as they were made; they are revoked for good, by themselves and with their keys; and what cannot be a slice is refused and leaves nothing.
func grants(t *testing.T, s *suite) {
	l := s.open(t)
	ctx := t.Context()
	for _, id := range []string{"ho_1", "ho_2", "ho_3"} {
		create(t, l, testHoldout(id, 100, 10))
	}
	for _, id := range []string{"a", "b", "c"} {
		createKey(t, l, id)
	}
	if err := l.DeleteHoldout(ctx, "ho_3", "p"); err != nil {
		t.Fatal(err)
	}
	team, agent, other := testGrant("g", "a", ""), testGrant("gg", "b", "g"), testGrant("ggg", "a", "")
	agent.Expires, agent.Shows, agent.Limits = time.Unix(99, 5).UTC(), "bit", ledger.Meters{"questions": 3}
	other.Holdout = "ho_2"
	for _, g := range []ledger.Grant{team, agent, other} {
		if err := l.CreateGrant(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	changed := func(g ledger.Grant, change func(*ledger.Grant)) ledger.Grant {
		g.ID, g.Key = "new", "c"
		change(&g)
		return g
	}
	for name, refused := range map[string]struct {
		grant ledger.Grant
		want  error
	}{
		"a known id":                {changed(team, func(g *ledger.Grant) { g.ID = "g" }), ledger.ErrExists},
		"a second one of a key":     {changed(team, func(g *ledger.Grant) { g.Key = "a" }), ledger.ErrExists},
		"an unknown key":            {changed(team, func(g *ledger.Grant) { g.Key = "x" }), ledger.ErrNotFound},
		"an unknown holdout":        {changed(team, func(g *ledger.Grant) { g.Holdout = "x" }), ledger.ErrNotFound},
		"a deleted holdout":         {changed(team, func(g *ledger.Grant) { g.Holdout = "ho_3" }), ledger.ErrDeleted},
		"an unknown parent":         {changed(team, func(g *ledger.Grant) { g.Parent = "x" }), ledger.ErrNotFound},
		"another holdout's parent":  {changed(team, func(g *ledger.Grant) { g.Parent = "ggg" }), ledger.ErrInvalid},
		"itself as the parent":      {changed(team, func(g *ledger.Grant) { g.Parent = "new" }), ledger.ErrNotFound},
		"no limit":                  {changed(team, func(g *ledger.Grant) { g.Limits = nil }), ledger.ErrInvalid},
		"a negative limit":          {changed(team, func(g *ledger.Grant) { g.Limits = ledger.Meters{"questions": -1} }), ledger.ErrInvalid},
		"nothing that it shows":     {changed(team, func(g *ledger.Grant) { g.Shows = "" }), ledger.ErrInvalid},
		"made revoked":              {changed(team, func(g *ledger.Grant) { g.Revoked = true }), ledger.ErrInvalid},
		"an end that is no instant": {changed(team, func(g *ledger.Grant) { g.Expires = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }), ledger.ErrInvalid},
	} {
		if err := l.CreateGrant(ctx, refused.grant); !errors.Is(err, refused.want) {
			t.Errorf("%s: %v, want %v", name, err, refused.want)
		}
	}
	for range 2 {
		kept(t, l, "ho_1", team, agent)
		kept(t, l, "ho_2", other)
		kept(t, l, "", team, agent, other)
		kept(t, l, "ho_9")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = s.open(t)
	}
	for range 2 {
		if err := l.RevokeGrant(ctx, "g"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.RevokeGrant(ctx, "x"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("revoke an unknown grant: %v", err)
	}
	if err := l.RevokeKey(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	team.Revoked, agent.Revoked = true, true
	kept(t, l, "ho_1", team, agent)
	kept(t, l, "ho_2", other)
	if err := l.CreateGrant(ctx, changed(team, func(g *ledger.Grant) { g.Key, g.Revoked = "a", false })); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("a second grant after the first was revoked: %v", err)
	}
}

// kept demands the grants of a holdout.
func kept(t testing.TB, l ledger.Ledger, holdout string, want ...ledger.Grant) {
	t.Helper()
	if got, err := l.Grants(context.Background(), holdout); err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("grants of %q: %+v (%v), want %+v", holdout, got, err, want)
	}
}

// grantsAreNested: a chain of grants is as deep as it may be, and no deeper.
func grantsAreNested(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 100, 10))
	parent, depth := "", 0
	for err := error(nil); ; depth++ {
		id := fmt.Sprintf("g%d", depth)
		createKey(t, l, "key_"+id)
		if err = l.CreateGrant(t.Context(), testGrant(id, "key_"+id, parent)); err != nil {
			if !errors.Is(err, ledger.ErrInvalid) || depth != ledger.MaxGrantDepth {
				t.Fatalf("%d grants, one below the other, and then %v, want %d", depth, err, ledger.MaxGrantDepth)
			}
			break
		}
		parent = id
	}
	list, err := l.Grants(t.Context(), "ho_1")
	if err != nil {
		t.Fatal(err)
	}
	if chain := ledger.GrantsOf(list).Chain(parent); len(chain) != depth || chain[0].ID != parent || chain[depth-1].Parent != "" {
		t.Errorf("the chain of %s: %+v", parent, chain)
	}
	if chain := ledger.GrantsOf(list[1:]).Chain(parent); chain != nil {
		t.Errorf("a chain whose end is not known: %+v", chain)
	}
}

// grantsAreMadeOnce: of callers who race for the one grant of a key, one makes it, whichever server they came to.
func grantsAreMadeOnce(t *testing.T, s *suite) {
	all := s.openAll(t)
	create(t, all[0], testHoldout("ho_1", 100, 10))
	createKey(t, all[0], "a")
	var made atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			switch err := all[i%len(all)].CreateGrant(t.Context(), testGrant(fmt.Sprint("g", i), "a", "")); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, ledger.ErrExists):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := all[0].Grants(t.Context(), "ho_1"); made.Load() != 1 || len(list) != 1 || err != nil {
		t.Errorf("%d made, %d kept (%v), want one", made.Load(), len(list), err)
	}
}

// debitsAreTheChains: what principals spent is what the answers and voids of the chain debit, from any place on; a closing and a deletion are nobody's.
func debitsAreTheChains(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 100, 10))
	create(t, l, testHoldout("ho_2", 100, 10))
	mustAsk(t, l, "ho_2", numbered(0))
	want := map[int]map[string]ledger.Meters{}
	type paid struct {
		principal string
		cost      ledger.Meters
	}
	chain := []paid{{"a", ledger.Meters{"questions": 3, "tokens": 1}}, {"b", ledger.Meters{"questions": 1}}, {"a", ledger.Meters{"questions": 2}}, {"", ledger.Meters{"questions": 1, "tokens": 2}}}
	for after := range len(chain) + 1 {
		want[after] = map[string]ledger.Meters{}
		for _, p := range chain[after:] {
			m := want[after][p.principal]
			want[after][p.principal] = ledger.Meters{"questions": m["questions"] + p.cost["questions"], "tokens": m["tokens"] + p.cost["tokens"]}
		}
	}
	for i, p := range chain {
		d := numbered(i)
		d.Principal, d.Cost, d.Void = p.principal, p.cost, i == 2
		mustAsk(t, l, "ho_1", d)
	}
	check := func(when string) {
		t.Helper()
		for after, want := range want {
			if by, last, err := l.Debits(t.Context(), "ho_1", int64(after)); err != nil || !reflect.DeepEqual(by, want) || last != int64(len(chain)) {
				t.Errorf("%s, after %d: %v, last %d (%v), want %v, last %d", when, after, by, last, err, want, len(chain))
			}
		}
	}
	check("open")
	err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		_, err := tx.Close(ledger.Closing{Principal: "a", Core: []byte(`{"closed":true}`)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	check("closed")
	if err := l.DeleteHoldout(t.Context(), "ho_1", "a"); err != nil {
		t.Fatal(err)
	}
	check("deleted")
	if by, last, err := l.Debits(t.Context(), "ho_9", 4); len(by) != 0 || last != 4 || err != nil {
		t.Errorf("of an unknown holdout: %v %d %v", by, last, err)
	}
}
