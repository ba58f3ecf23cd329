package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// modelHoldout is what a holdout should be: the fold of what was done to it.
type modelHoldout struct {
	h       ledger.Holdout
	state   string
	spent   ledger.Meters
	entries []ledger.Entry
	grants  []modelGrant
}

// model runs random histories against the ledger and a simple model of it, with restarts, crashes and failed commits.
func model(t *testing.T, s *suite) {
	limitChecks(t, s)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		m := &machine{suite: s, prefix: fmt.Sprint("ho_", runs, "_"), known: map[string]*modelHoldout{}, used: map[string][32]byte{}, now: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)}
		m.suite.clock = func() time.Time { return m.now }
		defer func() { m.suite.clock = nil }()
		m.open(rt)
		defer func() { m.l.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"create":   m.create,
			"update":   m.update,
			"delete":   m.remove,
			"grant":    m.grant,
			"endGrant": m.endGrant,
			"later":    func(rt *rapid.T) { m.now = m.now.Add(rapid.SampledFrom(minutes).Draw(rt, "later")) },
			"end":      m.end,
			"reopen": func(rt *rapid.T) {
				m.verify(rt)
				if err := m.l.Close(); err != nil {
					rt.Fatal(err)
				}
				m.open(rt)
			},
			"crash": func(rt *rapid.T) {
				survivor := m.suite.store.Crash(t)
				if err := m.l.Close(); err != nil {
					rt.Fatal(err)
				}
				m.suite.store = survivor
				m.open(rt)
			},
			"": m.check,
		})
		m.verify(rt)
	})
}

// limitChecks lets rapid try fewer histories than its 100: each of them opens a ledger several times and syncs it
// some thirty times. Where each look goes to a server there are fewer still. -rapid.checks on the command line goes before.
func limitChecks(t *testing.T, s *suite) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	checks := "16"
	if _, shared := s.store.(Shared); shared {
		checks = "5"
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		t.Fatal(err)
	}
}

// machine plays one history, on holdouts of its own.
type machine struct {
	*suite
	prefix string // of the history's ids
	l      ledger.Ledger
	known  map[string]*modelHoldout
	used   map[string][32]byte // idempotency keys
	now    time.Time
	grants int // made, for their ids
}

func (m *machine) open(t *rapid.T) {
	l, err := m.suite.tryOpen()
	if err != nil {
		t.Fatal(err)
	}
	m.l = l
}

// failNext makes the next commit fail at a step. happened reports whether it has, and mends it.
func (m *machine) failNext(at string) (happened func() bool) {
	var failed atomic.Bool
	m.plant(func(step string) error {
		if step == at && failed.CompareAndSwap(false, true) {
			return errors.New("planted")
		}
		return nil
	})
	return func() bool {
		m.plant(nil)
		return failed.Load()
	}
}

var ids = rapid.SampledFrom([]string{"a", "b", "c"})

func (m *machine) create(t *rapid.T) {
	id := m.prefix + ids.Draw(t, "id")
	h := testHoldout(id, rapid.Int64Range(0, 12).Draw(t, "questions"), rapid.Int64Range(0, 4).Draw(t, "tokens"))
	entries, begins := []ledger.Entry{{}}, ledger.Meters{"questions": 0, "tokens": 0}
	if rapid.Bool().Draw(t, "inherits") {
		begins["questions"] = rapid.Int64Range(0, h.Limits["questions"]).Draw(t, "opening")
		h.Opening = []ledger.Opening{{From: "ho_before", Spent: ledger.Meters{"questions": begins["questions"]}}}
		entries = append(entries, ledger.Entry{})
	}
	err := m.l.CreateHoldout(context.Background(), h, nil)
	if m.known[id] != nil {
		var exists *ledger.ExistsError
		if !errors.As(err, &exists) || exists.ID != id {
			t.Fatalf("create again: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.known[id] = &modelHoldout{h: h, state: "state 0", entries: entries, spent: begins}
}

// update does what a batch does: replays, new answers, a new state, perhaps an idempotency key, perhaps a failure.
func (m *machine) update(t *rapid.T) {
	id := m.prefix + ids.Draw(t, "id")
	queries := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 5).Draw(t, "queries")
	tokens := rapid.Int64Range(0, 1).Draw(t, "tokens")
	state := rapid.StringN(0, 8, 16).Draw(t, "state")
	key := rapid.SampledFrom([]string{"", m.prefix + "k1", m.prefix + "k2"}).Draw(t, "key")
	request := [32]byte{byte(rapid.IntRange(0, 1).Draw(t, "request"))}
	fails := rapid.SampledFrom([]string{"", "", "", "fn", ledger.StepCommit, ledger.StepCommitted}).Draw(t, "fails")
	errFn := errors.New("fn fails")

	model := m.known[id]
	payer := m.draw(t, model, "payer")
	void := rapid.Bool().Draw(t, "void") // the last of the queries
	var next modelHoldout
	update := func(tx *ledger.Tx) error {
		next = *model
		next.entries = append([]ledger.Entry(nil), model.entries...)
		if string(tx.State()) != model.state {
			return fmt.Errorf("state %q, want %q", tx.State(), model.state)
		}
		if key != "" {
			if err := tx.Idempotent(ledger.Idempotency{Key: key, Request: request}); err != nil {
				return err
			}
		}
		next.spent = maps.Clone(model.spent)
		for i, q := range queries {
			d := numbered(q)
			d.Cost["tokens"], d.Grant = tokens, payer
			d.Void = void && i == len(queries)-1
			if body, ok := tx.Answer(d.Query); ok {
				if want := next.answer(d.Query); !bytes.Equal(body, want) {
					return fmt.Errorf("replay %s, want %s", body, want)
				}
				continue
			}
			if next.answer(d.Query) != nil {
				return fmt.Errorf("query %d is not found", q)
			}
			r, err := tx.Append(d)
			if err != nil {
				return err
			}
			if want := int64(len(next.entries)); r.Seq != want {
				return fmt.Errorf("seq %d, want %d", r.Seq, want)
			}
			next.spent["questions"]++
			next.spent["tokens"] += tokens
			e := ledger.Entry{Seq: r.Seq, Query: d.Query, Body: r.Body, Kind: ledger.KindAnswer, Debit: d.Cost, Spent: maps.Clone(next.spent), Grant: payer}
			if d.Void {
				e.Kind = ledger.KindVoid
			}
			next.entries = append(next.entries, e)
		}
		tx.SetState([]byte(state))
		next.state = state
		if fails == "fn" {
			return errFn
		}
		return nil
	}
	happened := func() bool { return false }
	if fails == ledger.StepCommit || fails == ledger.StepCommitted {
		happened = m.failNext(fails)
	}
	err := m.l.Update(context.Background(), id, update)
	planted := happened()

	used, again := m.used[key]
	switch {
	case model == nil:
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Fatalf("update of nothing: %v", err)
		}
		return
	case model.h.Deleted:
		if !errors.Is(err, ledger.ErrDeleted) {
			t.Fatalf("update of a deleted holdout: %v", err)
		}
		return
	case model.h.End != "" && m.asksNew(model, queries):
		if !errors.Is(err, ledger.ErrEnded) && !(again && used != request && errors.Is(err, ledger.ErrIdempotencyMismatch)) {
			t.Fatalf("update of a holdout that was ended: %v", err)
		}
		return
	case planted:
		if !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatalf("failed commit: %v", err)
		}
		ready(m.l)
		if fails == ledger.StepCommit {
			return
		}
	case again && used != request:
		if !errors.Is(err, ledger.ErrIdempotencyMismatch) {
			t.Fatalf("key %q used before: %v", key, err)
		}
		return
	case m.fresh(model, queries) > 0 && !model.live(payer, m.now):
		if !errors.Is(err, ledger.ErrGrant) {
			t.Fatalf("grant %q does not pay any more: %v", payer, err)
		}
		return
	case m.exceeds(model, payer, queries, tokens):
		if !errors.Is(err, ledger.ErrBudget) {
			t.Fatalf("over budget of %q: %v", payer, err)
		}
		return
	case fails == "fn":
		if err != errFn {
			t.Fatalf("fn fails: %v", err)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	*model = next
	if key != "" {
		m.used[key] = request
	}
}

func (m *machine) asksNew(model *modelHoldout, queries []int) bool {
	return slices.ContainsFunc(queries, func(q int) bool { return model.answer(numbered(q).Query) == nil })
}

// end ends a holdout's questions, or finds them ended.
func (m *machine) end(t *rapid.T) {
	id := m.prefix + ids.Draw(t, "id")
	how := rapid.SampledFrom([]ledger.End{ledger.Closed, ledger.Retired}).Draw(t, "how")
	err := m.l.Update(context.Background(), id, func(tx *ledger.Tx) error { return tx.End(how, "admin", time.Time{}) })
	model := m.known[id]
	switch {
	case model == nil:
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Fatalf("end of nothing: %v", err)
		}
	case model.h.Deleted:
		if !errors.Is(err, ledger.ErrDeleted) {
			t.Fatalf("end of a deleted holdout: %v", err)
		}
	case err != nil:
		t.Fatal(err)
	case model.h.End != how && model.h.End != ledger.Retired:
		model.h.End, model.spent = how, model.h.Limits
		model.entries = append(model.entries, ledger.Entry{})
	}
}

// fresh is how many of the queries have no answer.
func (m *machine) fresh(model *modelHoldout, queries []int) int64 {
	fresh := map[int]bool{}
	for _, q := range queries {
		if model.answer(numbered(q).Query) == nil {
			fresh[q] = true
		}
	}
	return int64(len(fresh))
}

func (m *machine) exceeds(model *modelHoldout, payer string, queries []int, tokens int64) bool {
	n, free := m.fresh(model, queries), model.free(payer, m.now)
	return n > free["questions"] || n*tokens > free["tokens"]
}

func (h *modelHoldout) answer(query string) []byte {
	for _, e := range h.entries {
		if e.Query == query && e.Kind == ledger.KindAnswer {
			return e.Body
		}
	}
	return nil
}

func (m *machine) remove(t *rapid.T) {
	id := m.prefix + ids.Draw(t, "id")
	err := m.l.DeleteHoldout(context.Background(), id, "admin")
	model := m.known[id]
	if model == nil {
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Fatalf("delete nothing: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !model.h.Deleted {
		model.h.Deleted = true
		model.entries = append(model.entries, ledger.Entry{})
	}
}

// check compares everything that can be read with the model.
func (m *machine) check(t *rapid.T) {
	ctx := context.Background()
	for id, model := range m.known {
		h, err := m.l.Holdout(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if h.Deleted != model.h.Deleted || h.End != model.h.End || !h.Limits.Equal(model.h.Limits) || !h.Spent.Equal(model.spent) ||
			!h.Deleted && (string(h.State) != model.state || !bytes.Equal(h.Secret, model.h.Secret)) {
			t.Fatalf("holdout %+v, want %+v", h, model)
		}
		answers, err := m.l.Answers(ctx, id, "", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range answers {
			want := model.entries[e.Seq]
			if !bytes.Equal(e.Body, want.Body) || e.Grant != want.Grant || e.Query != want.Query || e.Kind != want.Kind || !e.Spent.Equal(want.Spent) || e.Debit["tokens"] != want.Debit["tokens"] {
				t.Fatalf("answer %+v, want %+v", e, want)
			}
			if body, ok, err := m.l.Answer(ctx, id, e.Query); !ok || err != nil || !bytes.Equal(body, want.Body) {
				t.Fatalf("replay %s %v %v, want %s", body, ok, err, want.Body)
			}
		}
	}
	m.checkGrants(t)
	for key, request := range m.used {
		if i, ok, err := m.l.Idempotency(ctx, "", key); !ok || err != nil || i.Request != request {
			t.Fatalf("idempotency key %q: %+v %v %v, want %x", key, i, ok, err, request)
		}
	}
}

// verify compares what a verification reports with the model.
func (m *machine) verify(t *rapid.T) {
	reports, err := m.suite.store.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		model := m.known[r.Holdout]
		if model == nil {
			continue // of another history
		}
		if !r.Spent.Equal(model.spent) || r.Entries != int64(len(model.entries)) || r.Deleted != model.h.Deleted || r.End != model.h.End || r.Grants != int64(len(model.grants)) {
			t.Fatalf("report %+v, want %+v", r, model)
		}
	}
}
