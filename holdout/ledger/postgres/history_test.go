//go:build postgres

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// What several servers do at once is held against a model that does one thing after another: there must be an order of all that was done, in which whatever
// had ended before something began comes before it, and in which the model says what each caller was told.

const (
	historyQuestions = 14
	historyGrants    = 5 // grant 0 is the holdout's own budget
	historyLimit     = 24
)

// did is one call.
type did struct {
	holdout  string
	what     string // ask, replay, look, grant, end
	question int
	cost     int64
	account  int // that pays, is a part of which, or ends
	made     int // the grant
}

// heard is what its caller was told.
type heard struct {
	outcome string // "", budget, ended, exists
	body    string // of ask and replay; "" where there is no answer
	replay  bool
	spent   int64 // of look
	again   bool  // the caller had not been told at first, and asked again
}

// slice is an account of the model.
type slice struct {
	made, ended        bool
	part               int
	limit, spent, held int64
}

// world is the model's state of a holdout.
type world struct {
	seq      int64
	answers  [historyQuestions]string
	accounts [historyGrants]slice
}

func (w *world) live(a int) bool {
	for ; a != 0; a = w.accounts[a].part {
		if w.accounts[a].ended {
			return false
		}
	}
	return true
}

func (w *world) free(a int) int64 {
	s := w.accounts[a]
	return s.limit - s.spent - s.held
}

// step is what the ledger promises.
func step(w world, d did, h heard) (bool, world) {
	switch d.what {
	case "look":
		return h.spent == w.accounts[0].spent, w
	case "replay":
		return h.body == w.answers[d.question], w
	case "ask":
		known := w.answers[d.question]
		switch {
		case known != "": // whoever asks is told the same, and pays nothing
			return h.outcome == "" && h.body == known && h.replay, w
		case !w.live(d.account):
			return h.outcome == "ended", w
		case d.cost > w.free(d.account):
			return h.outcome == "budget", w
		case h.outcome != "" || h.replay && !h.again:
			return false, w
		}
		var place struct{ Ledger struct{ Seq int64 } }
		if err := json.Unmarshal([]byte(h.body), &place); err != nil || place.Ledger.Seq != w.seq+1 {
			return false, w
		}
		w.seq++
		w.answers[d.question] = h.body
		for a := d.account; ; a = w.accounts[a].part {
			w.accounts[a].spent += d.cost
			if a == 0 {
				return true, w
			}
			w.accounts[w.accounts[a].part].held -= d.cost
		}
	case "grant":
		switch {
		case w.accounts[d.made].made:
			return h.outcome == "exists" || h.outcome == "" && h.again, w
		case !w.live(d.account):
			return h.outcome == "ended", w
		case d.cost > w.free(d.account):
			return h.outcome == "budget", w
		case h.outcome != "" && !(h.outcome == "exists" && h.again):
			return false, w
		}
		w.accounts[d.made] = slice{made: true, part: d.account, limit: d.cost}
		w.accounts[d.account].held += d.cost
		return true, w
	case "end":
		s := &w.accounts[d.account]
		if !s.ended {
			s.ended = true
			w.accounts[s.part].held -= s.limit - s.spent
		}
		return h.outcome == "", w
	}
	return false, w
}

var historyModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := map[string][]porcupine.Operation{}
		for _, o := range all {
			id := o.Input.(did).holdout
			by[id] = append(by[id], o)
		}
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any {
		w := world{}
		w.accounts[0] = slice{made: true, limit: historyLimit}
		return w
	},
	Step: func(state, input, output any) (bool, any) {
		return step(state.(world), input.(did), output.(heard))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

func grantID(holdout string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint("gr_", holdout, "_", n)
}

// do makes the call, again where the outcome was not known.
func do(l *postgres.Ledger, d did) (h heard, err error) {
	ctx := context.Background()
	for ; ; h.again = true {
		switch d.what {
		case "look":
			err = l.Update(ctx, d.holdout, func(tx *ledger.Tx) error { h.spent = tx.Spent()["questions"]; return nil })
		case "replay":
			var body []byte
			body, _, err = l.Answer(ctx, d.holdout, question(d.question).Query)
			h.body = string(body)
		case "ask":
			q := question(d.question)
			q.Cost, q.Grant = ledger.Meters{"questions": d.cost}, grantID(d.holdout, d.account)
			h.body, h.replay, err = ask(ctx, l, d.holdout, q)
		case "grant":
			g := ledger.Grant{ID: grantID(d.holdout, d.made), Parent: grantID(d.holdout, d.account), Holder: "key_a", By: "key_admin", Limits: ledger.Meters{"questions": d.cost}}
			err = l.Update(ctx, d.holdout, func(tx *ledger.Tx) error { return tx.MakeGrant(g) })
		case "end":
			err = l.Update(ctx, d.holdout, func(tx *ledger.Tx) error { return tx.EndGrant(grantID(d.holdout, d.account), "key_admin") })
		}
		switch {
		case errors.Is(err, ledger.ErrUnavailable):
			time.Sleep(time.Millisecond)
			continue
		case errors.Is(err, ledger.ErrBudget):
			h.outcome, h.body, h.replay, err = "budget", "", false, nil
		case errors.Is(err, ledger.ErrGrant):
			h.outcome, h.body, h.replay, err = "ended", "", false, nil
		case errors.Is(err, ledger.ErrExists):
			h.outcome, err = "exists", nil
		}
		return h, err
	}
}

// recorder writes a history down.
type recorder struct {
	t     *testing.T
	begin time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func (r *recorder) do(client int, l *postgres.Ledger, d did) heard {
	call := time.Since(r.begin).Nanoseconds()
	h, err := do(l, d)
	back := time.Since(r.begin).Nanoseconds()
	if err != nil {
		r.t.Errorf("%+v: %v", d, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: d, Call: call, Output: h, Return: back})
	return h
}

// TestHistoriesHaveAnOrder records what three servers of one ledger do on two holdouts at once, with commits that fail before and after they are durable, and
// holds it against the model. Then it changes what somebody was told, and the model must object.
func TestHistoriesHaveAnOrder(t *testing.T) {
	db := pgtest.NewDatabase(t)
	newLedger(t, db, historyLimit)
	var random sync.Mutex
	draws := rand.New(rand.NewPCG(3, 4))
	draw := func(n int) int { random.Lock(); defer random.Unlock(); return draws.IntN(n) }
	var ledgers []*postgres.Ledger
	for range 3 {
		l, err := postgres.Open(t.Context(), db.Service, ledger.Options{Key: testKey, Fault: func(step string) error {
			if draw(40) == 0 {
				return errors.New("planted")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ledgers = append(ledgers, l)
	}
	for err := errors.New("not yet"); err != nil && !errors.Is(err, ledger.ErrExists); {
		err = ledgers[0].CreateHoldout(t.Context(), testHoldout("ho_2", historyLimit), nil)
	}
	r := &recorder{t: t, begin: time.Now()}
	// First what needs no luck to be told wrongly: each server has seen the books, another one moves them, and each looks again.
	for n := range 3 {
		for client, l := range ledgers {
			r.do(client, l, did{holdout: "ho_1", what: "look"})
		}
		r.do(n, ledgers[n], did{holdout: "ho_1", what: "ask", question: n, cost: 1})
		for client, l := range ledgers {
			r.do(client, l, did{holdout: "ho_1", what: "replay", question: n})
			r.do(client, l, did{holdout: "ho_1", what: "ask", question: n, cost: 1})
		}
	}
	alone := len(r.ops)                           // calls that were made one after another
	for _, id := range []string{"ho_1", "ho_2"} { // each of them in one call: an account's number says of what it is a part
		r.do(0, ledgers[0], did{holdout: id, what: "grant", made: 1, account: 0, cost: 9})
		r.do(1, ledgers[1], did{holdout: id, what: "grant", made: 2, account: 1, cost: 5})
	}
	var all sync.WaitGroup
	for client := range 6 {
		all.Go(func() {
			for range 24 {
				d := did{holdout: []string{"ho_1", "ho_2"}[draw(2)], question: draw(historyQuestions), cost: int64(1 + draw(4))}
				switch n := draw(20); {
				case n < 10:
					d.what, d.account = "ask", []int{0, 0, 1, 2}[draw(4)]
				case n < 13:
					d.what = "replay"
				case n < 16:
					d.what = "look"
				case n < 18:
					d.what, d.made = "grant", 3+draw(2)
					d.account = d.made - 2 // 3 is a part of 1, and 4 of 2
				default:
					d.what, d.account = "end", 2
				}
				r.do(client, ledgers[client%3], d)
			}
		})
	}
	all.Wait()
	for _, id := range []string{"ho_1", "ho_2"} {
		r.do(0, ledgers[0], did{holdout: id, what: "look"})
	}
	if _, err := postgres.Verify(t.Context(), db.Service); err != nil {
		t.Error(err)
	}
	check := func(ops []porcupine.Operation) porcupine.CheckResult {
		return porcupine.CheckOperationsTimeout(historyModel, ops, 3*time.Minute)
	}
	if got := check(r.ops); got != porcupine.Ok {
		t.Fatalf("no order of what was done explains what was told: %v", got)
	}
	counts := map[string]int{}
	for _, o := range r.ops {
		d, h := o.Input.(did), o.Output.(heard)
		what := d.what
		if what == "ask" && h.outcome == "" {
			what = map[bool]string{true: "ask, replayed", false: "ask, answered"}[h.replay]
		} else if h.outcome != "" {
			what += ", " + h.outcome
		}
		counts[what]++
		if h.again {
			counts["again"]++
		}
	}
	t.Log(counts)

	// The model can object.
	for name, spoil := range map[string]func(d did, h *heard) bool{
		"one more is spent than was asked": func(d did, h *heard) bool { h.spent++; return d.what == "look" },
		"a replay is of other bytes":       func(d did, h *heard) bool { h.body += " "; return d.what == "replay" && h.body != " " },
		"an answer is not found":           func(d did, h *heard) bool { had := h.body; h.body = ""; return d.what == "replay" && had != "" },
		"a question is answered a second time": func(d did, h *heard) bool {
			was := h.replay
			h.replay, h.again = false, false
			return d.what == "ask" && was && h.outcome == ""
		},
		"a refusal where there was enough": func(d did, h *heard) bool {
			ok := d.what == "ask" && h.outcome == "" && h.replay
			h.outcome, h.body, h.replay = "budget", "", false
			return ok
		},
	} {
		spoiled := slices.Clone(r.ops[:alone]) // where there is one order, that none explains it is found at once
		found := false
		for i := len(spoiled) - 1; i >= 0 && !found; i-- {
			h := spoiled[i].Output.(heard)
			if found = spoil(spoiled[i].Input.(did), &h); found {
				spoiled[i].Output = h
			}
		}
		if got := check(spoiled); !found || got != porcupine.Illegal {
			t.Errorf("%s: the model says %v", name, got)
		}
	}
}
