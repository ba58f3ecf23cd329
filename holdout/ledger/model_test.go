package ledger

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// modelHoldout is what a holdout should be: the fold of what was done to it.
type modelHoldout struct {
	h       Holdout
	state   string
	spent   Amount
	entries []Entry
}

// TestModel runs random histories against the ledger and a simple model of it, restarts and failed commits included.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	limitChecks(t)
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		m := &machine{path: filepath.Join(dir, strconv.Itoa(runs)+".db"), known: map[string]*modelHoldout{}, used: map[string][32]byte{}}
		m.open(t)
		defer func() { m.l.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create,
			"update": m.update,
			"delete": m.remove,
			"reopen": func(t *rapid.T) {
				m.verify(t)
				if err := m.l.Close(); err != nil {
					t.Fatal(err)
				}
				m.open(t)
			},
			"": m.check,
		})
		m.verify(t)
	})
}

// limitChecks lets rapid try fewer histories than its 100: each of them opens a database several times and syncs it
// some thirty times. -rapid.checks on the command line goes before.
func limitChecks(t *testing.T) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	if err := flag.Set("rapid.checks", "16"); err != nil {
		t.Fatal(err)
	}
}

type machine struct {
	path  string
	l     *Ledger
	plan  sync.Mutex // the ledger's writer takes what is planned, also when it recovers
	fault error      // of the next commit
	late  bool       // whether the fault comes when the commit is durable
	known map[string]*modelHoldout
	used  map[string][32]byte // idempotency keys
}

// plant sets the fault of the next commit and returns the one that was planned, nil if it has come.
func (m *machine) plant(fault error, late bool) (before error) {
	m.plan.Lock()
	defer m.plan.Unlock()
	before, m.fault, m.late = m.fault, fault, late
	return before
}

func (m *machine) open(t *rapid.T) {
	l, err := open(context.Background(), Options{Path: m.path, Key: testKey}, func(step string) error {
		m.plan.Lock()
		defer m.plan.Unlock()
		if step == "commit" && !m.late || step == "committed" && m.late {
			err := m.fault
			m.fault = nil
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	m.l = l
}

var ids = rapid.SampledFrom([]string{"ho_a", "ho_b", "ho_c"})

func (m *machine) create(t *rapid.T) {
	id := ids.Draw(t, "id")
	h := testHoldout(id, rapid.Int64Range(0, 12).Draw(t, "questions"), rapid.Int64Range(0, 4).Draw(t, "tokens"))
	err := m.l.CreateHoldout(context.Background(), h, nil)
	if m.known[id] != nil {
		var exists *ExistsError
		if !errors.As(err, &exists) || exists.ID != id {
			t.Fatalf("create again: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.known[id] = &modelHoldout{h: h, state: "state 0", entries: []Entry{{}}}
}

// update does what a batch does: replays, new answers, a new state, perhaps an idempotency key, perhaps a failure.
func (m *machine) update(t *rapid.T) {
	id := ids.Draw(t, "id")
	queries := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 5).Draw(t, "queries")
	tokens := rapid.Int64Range(0, 1).Draw(t, "tokens")
	state := rapid.StringN(0, 8, 16).Draw(t, "state")
	key := rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(t, "key")
	request := [32]byte{byte(rapid.IntRange(0, 1).Draw(t, "request"))}
	fails := rapid.SampledFrom([]string{"", "", "", "fn", "commit", "committed"}).Draw(t, "fails")
	errFn := errors.New("fn fails")

	model := m.known[id]
	var next modelHoldout
	update := func(tx *Tx) error {
		next = *model
		next.entries = append([]Entry(nil), model.entries...)
		if string(tx.State()) != model.state {
			return fmt.Errorf("state %q, want %q", tx.State(), model.state)
		}
		if key != "" {
			if err := tx.Idempotent(Idempotency{Key: key, Request: request}); err != nil {
				return err
			}
		}
		for _, q := range queries {
			d := testDebit(strconv.Itoa(q))
			d.Tokens = tokens
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
			next.spent.Questions++
			next.spent.Tokens += tokens
			next.entries = append(next.entries, Entry{Seq: r.Seq, Query: d.Query, Body: r.Body})
		}
		tx.SetState([]byte(state))
		next.state = state
		if fails == "fn" {
			return errFn
		}
		return nil
	}
	if fails == "commit" || fails == "committed" {
		m.plant(errors.New("planted"), fails == "committed")
	}
	err := m.l.Update(context.Background(), id, update)
	planted := (fails == "commit" || fails == "committed") && m.plant(nil, false) == nil

	used, again := m.used[key]
	switch {
	case model == nil:
		if !errors.Is(err, ErrNotFound) {
			t.Fatalf("update of nothing: %v", err)
		}
		return
	case model.h.Deleted:
		if !errors.Is(err, ErrDeleted) {
			t.Fatalf("update of a deleted holdout: %v", err)
		}
		return
	case planted:
		if !errors.Is(err, ErrUnavailable) {
			t.Fatalf("failed commit: %v", err)
		}
		for m.l.Ready(context.Background()) != nil {
		}
		if fails == "commit" {
			return
		}
	case again && used != request:
		if !errors.Is(err, ErrIdempotencyMismatch) {
			t.Fatalf("key %q used before: %v", key, err)
		}
		return
	case m.exceeds(model, queries, tokens):
		if !errors.Is(err, ErrBudget) {
			t.Fatalf("over budget: %v", err)
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

func (m *machine) exceeds(model *modelHoldout, queries []int, tokens int64) bool {
	fresh := map[int]bool{}
	for _, q := range queries {
		if model.answer(testDebit(strconv.Itoa(q)).Query) == nil {
			fresh[q] = true
		}
	}
	n := int64(len(fresh))
	return model.spent.Questions+n > model.h.Questions || model.spent.Tokens+n*tokens > model.h.Tokens
}

func (h *modelHoldout) answer(query string) []byte {
	for _, e := range h.entries {
		if e.Query == query {
			return e.Body
		}
	}
	return nil
}

func (m *machine) remove(t *rapid.T) {
	id := ids.Draw(t, "id")
	err := m.l.DeleteHoldout(context.Background(), id, "admin")
	model := m.known[id]
	if model == nil {
		if !errors.Is(err, ErrNotFound) {
			t.Fatalf("delete nothing: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !model.h.Deleted {
		model.h.Deleted = true
		model.entries = append(model.entries, Entry{})
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
		if h.Deleted != model.h.Deleted || h.Questions != model.h.Questions || !h.Deleted && (string(h.State) != model.state || !bytes.Equal(h.Secret, model.h.Secret)) {
			t.Fatalf("holdout %+v, want %+v", h, model)
		}
		q, tokens, err := m.l.Balance(ctx, id)
		if (Amount{q, tokens}) != model.spent || err != nil {
			t.Fatalf("balance %d %d %v, want %v", q, tokens, err, model.spent)
		}
		answers, err := m.l.Answers(ctx, id, "", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range answers {
			if want := model.entries[e.Seq]; !bytes.Equal(e.Body, want.Body) || e.Query != want.Query {
				t.Fatalf("answer %+v, want %+v", e, want)
			}
		}
	}
}

// verify compares what a verification reports with the model.
func (m *machine) verify(t *rapid.T) {
	reports, err := VerifyDatabase(context.Background(), m.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		model := m.known[r.Holdout]
		if r.Spent != model.spent || r.Entries != int64(len(model.entries)) || r.Deleted != model.h.Deleted {
			t.Fatalf("report %+v, want %+v", r, model)
		}
	}
}
