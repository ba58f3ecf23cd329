package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/await"
)

// What servers of one ledger are, if they are one: a holdout with its answers, of which there is one for each question, a budget and an end.

// linearQuestions is how many questions a history has.
const linearQuestions = 60

// account is a holdout's state.
type account struct {
	spent   int64
	closed  bool
	answers [linearQuestions]string
}

// call is what a client wants: an answer, the budget, or the end.
type call struct {
	kind     string // ask, budget or close
	question int
}

// outcome is what it was told.
type outcome struct {
	refused  string // code of the problem
	answer   string // the bytes of an answer
	replayed bool
	seq      int64 // the answer's place in the chain
	left     int64 // of a budget
	closed   bool
}

// accounts is the model of a holdout with so many questions.
func accounts(budget int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return account{} },
		Step: func(state, input, output any) (bool, any) {
			a, in, out := state.(account), input.(call), output.(outcome)
			known := ""
			if in.kind == "ask" {
				known = a.answers[in.question]
			}
			switch {
			case in.kind == "budget":
				return out.closed == a.closed && (a.closed || out.left == budget-a.spent), a
			case in.kind == "close" && out.refused == "":
				was := a.closed
				a.closed = true
				return !was && out.seq == a.spent+2, a // behind the report's one answer
			case in.kind == "close":
				return false, a // one client closes, once, and nothing is in its way
			case known != "":
				return out.refused == "" && out.replayed && out.answer == known, a
			case a.closed, a.spent == budget: // a report has taken what was left
				return out.refused == "budget-exhausted", a
			}
			a.spent++
			a.answers[in.question] = out.answer
			return out.refused == "" && !out.replayed && out.seq == a.spent, a
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
	}
}

// history is what clients did and were told, with the times at which they were.
type history struct {
	begin time.Time
	mu    sync.Mutex
	all   []porcupine.Operation
}

func (h *history) record(client int, in call, do func() outcome) {
	from := time.Since(h.begin)
	out := do()
	to := time.Since(h.begin)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: client, Input: in, Call: int64(from), Output: out, Return: int64(to)})
}

// TestReplicasAreOne: what callers of three servers that race were told is what one server could have told, that does one thing after the other: each answer, each replay, each refusal, the budget,
// and the final report that closes a holdout. Histories that are wrong in one place are refuted.
func TestReplicasAreOne(t *testing.T) {
	r := startReplicas(t, 3)
	for i, c := range []struct {
		settings client.Settings
		closes   bool
	}{
		{client.Settings{Name: "exhausted", Holdout: 0.4, Mechanism: "gaussian", Questions: 20}, false},
		{client.Settings{Name: "closed", Holdout: 0.4, Mechanism: "guess_and_check", Questions: linearQuestions + 10}, true},
	} {
		budget := c.settings.Questions
		card, err := r.clients[0].CreateHoldout(t.Context(), bytes.NewReader(randomTable(t, rand.New(rand.NewPCG(crashSeed, uint64(20+i))))), c.settings)
		if err != nil {
			t.Fatal(err)
		}
		h := &history{begin: time.Now()}
		ask := func(client, question int) {
			h.record(client, call{"ask", question}, func() outcome {
				reply, err := r.clients[client%3].Ask(await.Context(t), card.ID, map[string]any{"type": "fraction", "of": fmt.Sprintf("x > %g", float64(question)/linearQuestions)})
				if err != nil {
					return outcome{refused: codeOf(t, err)}
				}
				return outcome{answer: string(reply.Answer.Raw), replayed: reply.Replayed, seq: reply.Answer.Ledger.Seq}
			})
		}
		balance := func(client int) {
			h.record(client, call{kind: "budget"}, func() outcome {
				b, err := r.clients[client%3].Budget(await.Context(t), card.ID)
				if err != nil {
					t.Error(err)
				}
				return outcome{left: b.Questions.Left, closed: b.Closed}
			})
		}
		var wg sync.WaitGroup
		for caller := range 9 {
			draw := rand.New(rand.NewPCG(crashSeed, uint64(3+caller)))
			wg.Go(func() {
				for n := range 30 {
					switch {
					case n%5 == 4:
						balance(caller)
					case c.closes && caller == 0 && n == 6:
						h.record(caller, call{kind: "close"}, func() outcome {
							report, err := r.clients[0].CloseWithReport(await.Context(t), card.ID, []any{map[string]any{"type": "fraction", "of": "x > 0.123"}}, "")
							if err != nil {
								t.Error(err)
							}
							return outcome{seq: report.Ledger.Seq}
						})
					default:
						ask(caller, draw.IntN(linearQuestions))
					}
				}
			})
		}
		wg.Wait()
		balance(0)
		model := accounts(budget)
		judge := func(what string, all []porcupine.Operation, want porcupine.CheckResult) {
			t.Helper()
			if got := porcupine.CheckOperationsTimeout(model, all, await.Patience); got != want {
				t.Errorf("%s: %s: the history is %s, want %s", c.settings.Name, what, got, want)
			}
		}
		judge("as recorded", h.all, porcupine.Ok)
		told := map[string]int{}
		for _, op := range h.all {
			in, out := op.Input.(call), op.Output.(outcome)
			switch {
			case out.refused != "":
				told[out.refused]++
			case in.kind == "ask" && out.replayed:
				told["replayed"]++
			default:
				told[in.kind]++
			}
		}
		t.Logf("%s: %d calls: %v", c.settings.Name, len(h.all), told)

		// changed is the history with the last outcome changed that says something of a kind.
		changed := func(says func(call, outcome) bool, change func(*outcome)) []porcupine.Operation {
			all := slices.Clone(h.all)
			for i := range slices.Backward(all) {
				if out := all[i].Output.(outcome); says(all[i].Input.(call), out) {
					change(&out)
					all[i].Output = out
					return all
				}
			}
			t.Fatalf("%s: nothing of that kind was told: %v", c.settings.Name, told)
			return nil
		}
		replay := func(in call, out outcome) bool { return in.kind == "ask" && out.replayed }
		paid := func(in call, out outcome) bool { return in.kind == "ask" && out.refused == "" && !out.replayed }
		judge("a replay of other bytes", changed(replay, func(o *outcome) { o.answer += "x" }), porcupine.Illegal)
		judge("a replay that was paid", changed(replay, func(o *outcome) { o.replayed = false }), porcupine.Illegal)
		judge("an answer that cost nothing", changed(paid, func(o *outcome) { o.replayed = true }), porcupine.Illegal)
		judge("two answers in one place", changed(paid, func(o *outcome) { o.seq++ }), porcupine.Illegal)
		judge("a budget of before the end", changed(func(in call, o outcome) bool { return in.kind == "budget" }, func(o *outcome) { o.left, o.closed = 1, false }), porcupine.Illegal)
		judge("an answer beyond the end", changed(func(_ call, o outcome) bool { return o.refused != "" }, func(o *outcome) { *o = outcome{answer: "more", seq: budget + 1} }), porcupine.Illegal)
	}
}

// codeOf is that of a problem.
func codeOf(t *testing.T, err error) string {
	t.Helper()
	var problem *client.Problem
	if !errors.As(err, &problem) {
		t.Error(err)
		return "none"
	}
	return problem.Code
}
