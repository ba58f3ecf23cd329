package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// What the model knows of grants. What is spent of one, and what is free, it works out from the entries and from the definition, each time anew.

type modelGrant struct {
	id, parent, holder string
	limits             ledger.Meters
	expires, ended     time.Time
}

// minutes are steps of the clock, and lives of grants.
var minutes = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, time.Hour}

func (h *modelHoldout) grantOf(id string) *modelGrant {
	for i := range h.grants {
		if h.grants[i].id == id {
			return &h.grants[i]
		}
	}
	return nil
}

// over reports whether a grant has ended by itself.
func (g *modelGrant) over(now time.Time) bool {
	return !g.ended.IsZero() || !g.expires.IsZero() && !now.Before(g.expires)
}

// live reports whether an account can be spent.
func (h *modelHoldout) live(account string, now time.Time) bool {
	for ; account != ""; account = h.grantOf(account).parent {
		if h.grantOf(account).over(now) {
			return false
		}
	}
	return true
}

// isPart reports whether a grant is an account, or a part of it.
func (h *modelHoldout) isPart(grant, account string) bool {
	for ; grant != account; grant = h.grantOf(grant).parent {
		if grant == "" {
			return false
		}
	}
	return true
}

// spentOn is what was spent on an account and on its parts.
func (h *modelHoldout) spentOn(account string) ledger.Meters {
	if account == "" {
		return h.spent // with what it began with
	}
	sum := ledger.Meters{"questions": 0, "tokens": 0}
	for _, e := range h.entries {
		if e.Debit != nil && h.isPart(e.Grant, account) {
			sum["questions"] += e.Debit["questions"]
			sum["tokens"] += e.Debit["tokens"]
		}
	}
	return sum
}

// free is what is neither spent nor granted of an account.
func (h *modelHoldout) free(account string, now time.Time) ledger.Meters {
	limits := h.h.Limits
	if account != "" {
		limits = h.grantOf(account).limits
	}
	free := ledger.Meters{}
	for name, limit := range limits {
		free[name] = limit - h.spentOn(account)[name]
		for i := range h.grants {
			if g := &h.grants[i]; g.parent == account && !g.over(now) && (account != "" || h.h.End == "") {
				free[name] -= g.limits[name] - h.spentOn(g.id)[name]
			}
		}
	}
	return free
}

// draw is an account of a holdout: its own budget, or one of its grants.
func (m *machine) draw(t *rapid.T, model *modelHoldout, label string) string {
	accounts := []string{"", ""}
	if model != nil {
		for _, g := range model.grants {
			accounts = append(accounts, g.id)
		}
	}
	return rapid.SampledFrom(accounts).Draw(t, label)
}

func (m *machine) grant(t *rapid.T) {
	id := m.prefix + ids.Draw(t, "id")
	model := m.known[id]
	m.grants++
	g := ledger.Grant{ID: fmt.Sprint(m.prefix, "gr_", m.grants), Parent: m.draw(t, model, "parent"), Holder: rapid.SampledFrom([]string{"key_a", "key_b"}).Draw(t, "holder"),
		Shows: "full", By: "key_admin", Limits: ledger.Meters{"questions": rapid.Int64Range(0, 8).Draw(t, "questions"), "tokens": rapid.Int64Range(0, 3).Draw(t, "tokens")}}
	if rapid.Bool().Draw(t, "expires") {
		g.Expires = m.now.Add(rapid.SampledFrom(minutes).Draw(t, "life"))
	}
	err := m.l.Update(context.Background(), id, func(tx *ledger.Tx) error { return tx.MakeGrant(g) })
	switch {
	case model == nil:
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Fatalf("grant of nothing: %v", err)
		}
		return
	case model.h.Deleted:
		if !errors.Is(err, ledger.ErrDeleted) {
			t.Fatalf("grant of a deleted holdout: %v", err)
		}
		return
	case model.h.End != "":
		if !errors.Is(err, ledger.ErrEnded) {
			t.Fatalf("grant of a holdout that was ended: %v", err)
		}
		return
	case !model.live(g.Parent, m.now):
		if !errors.Is(err, ledger.ErrGrant) {
			t.Fatalf("grant of %q, which has ended: %v", g.Parent, err)
		}
		return
	case model.depth(g.Parent) >= ledger.MaxGrantDepth:
		if !errors.Is(err, ledger.ErrInvalid) {
			t.Fatalf("grant %d deep: %v", model.depth(g.Parent)+1, err)
		}
		return
	}
	free := model.free(g.Parent, m.now)
	if g.Limits["questions"] > free["questions"] || g.Limits["tokens"] > free["tokens"] {
		if !errors.Is(err, ledger.ErrBudget) {
			t.Fatalf("grant of %v where %v are free: %v", g.Limits, free, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	model.grants = append(model.grants, modelGrant{id: g.ID, parent: g.Parent, holder: g.Holder, limits: g.Limits, expires: g.Expires})
}

func (h *modelHoldout) depth(account string) (n int) {
	for ; account != ""; account = h.grantOf(account).parent {
		n++
	}
	return n
}

func (m *machine) endGrant(t *rapid.T) {
	id := m.prefix + ids.Draw(t, "id")
	model := m.known[id]
	grant := m.draw(t, model, "grant")
	if grant == "" || model.h.Deleted {
		return
	}
	if err := m.l.Update(context.Background(), id, func(tx *ledger.Tx) error { return tx.EndGrant(grant, "key_admin") }); err != nil {
		t.Fatal(err)
	}
	if g := model.grantOf(grant); !g.over(m.now) {
		g.ended = m.now
	}
}

// checkGrants compares what is read of grants, of books and of who spent what with the model.
func (m *machine) checkGrants(t *rapid.T) {
	ctx := context.Background()
	for id, model := range m.known {
		all, err := m.l.Grants(ctx, id, "")
		if err != nil || len(all) != len(model.grants) {
			t.Fatalf("%d grants (%v), want %d", len(all), err, len(model.grants))
		}
		for i, g := range all {
			want := &model.grants[i]
			if one, err := m.l.Grant(ctx, want.id); err != nil || one.ID != g.ID || !one.Spent.Equal(g.Spent) {
				t.Fatalf("grant %+v %v, in the list %+v", one, err, g)
			}
			if g.ID != want.id || g.Parent != want.parent || g.Holder != want.holder || g.Holdout != id || !g.Limits.Equal(want.limits) || !g.Expires.Equal(want.expires) ||
				!g.Spent.Equal(model.spentOn(g.ID)) || g.Live(m.now) != model.live(g.ID, m.now) || !g.Free().Equal(model.free(g.ID, m.now)) {
				t.Fatalf("grant %+v at %v, want %+v with %v spent and %v free", g, m.now, want, model.spentOn(g.ID), model.free(g.ID, m.now))
			}
		}
		b, err := m.l.Books(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if free := b.Free(); !free.Equal(model.free("", m.now)) {
			t.Fatalf("books with %v free, want %v", free, model.free("", m.now))
		}
		spending, err := m.l.Spending(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]int64{}
		for _, s := range spending {
			by[s.Grant] += s.Spent["questions"]
		}
		for _, e := range model.entries {
			by[e.Grant] -= e.Debit["questions"]
		}
		for grant, n := range by {
			if n != 0 {
				t.Fatalf("%d questions too many on %q by those who spent them", n, grant)
			}
		}
	}
}
