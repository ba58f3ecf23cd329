//go:build engines

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/sources/clickhouse/chtest"
)

// asked is a holdout of an engine's table, and what a client knows of it.
type asked struct {
	*engineServer
	id      string
	answers map[int][]byte // by the minutes of the question
	voids   int64
	sums    int // statements that read rows, of one question
}

func isSum(text string) bool { return strings.Contains(text, "~local`") }

// askEngine registers a table and asks two questions: behind the first, parts are open.
func askEngine(t *testing.T, questions int64) *asked {
	t.Helper()
	e := chtest.NewCluster(t)
	a := &asked{engineServer: startWithEngine(t, e), answers: map[int][]byte{}}
	c := connect(t, a.process, a.dir)
	r, err := c.Register(t.Context(), "wh", engineTable(t, e, 0), client.Settings{Unit: "patient", Mechanism: "gaussian", Questions: questions})
	if err != nil {
		t.Fatal(err)
	}
	a.id = ended(t, c, r)
	a.mustAnswer(t, 4000)
	a.wire.arm(0, before, func(text string) bool {
		if isSum(text) {
			a.sums++
		}
		return false
	}, nil)
	a.mustAnswer(t, 4001)
	a.wire.disarm()
	if a.sums == 0 {
		t.Fatal("a question has no statements")
	}
	return a
}

// ask asks with the question's Idempotency-Key.
func (a *asked) ask(t *testing.T, minutes int) (client.Reply, error) {
	t.Helper()
	return connect(t, a.process, a.dir).Ask(client.WithIdempotencyKey(t.Context(), keyOf(minutes)), a.id, above(minutes))
}

// asks asks until the source is found to answer: whether it does is remembered for a second, and a busy machine may not say so within the second that it has. What is refused for that is not debited.
func (a *asked) asks(t *testing.T, minutes int) (reply client.Reply, err error) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if reply, err = a.ask(t, minutes); !isAway(err) {
			break
		}
	}
	return reply, err
}

// mustAnswer demands an answer, and the same one as before if there was one.
func (a *asked) mustAnswer(t *testing.T, minutes int) {
	t.Helper()
	reply, err := a.asks(t, minutes)
	if err != nil {
		t.Fatalf("%d: %v", minutes, err)
	}
	known, ok := a.answers[minutes]
	if ok && (!reply.Replayed || !bytes.Equal(known, reply.Answer.Raw)) {
		t.Errorf("%d: replayed: %v, the answer is\n%s\nand was\n%s", minutes, reply.Replayed, reply.Answer.Raw, known)
	}
	a.answers[minutes] = bytes.Clone(reply.Answer.Raw)
}

// checkBooks demands that the ledger has all answers that were received, one debit for each and each void, and nothing else.
func (a *asked) checkBooks(t *testing.T, what string) {
	t.Helper()
	var export bytes.Buffer
	if err := connect(t, a.process, a.dir).Ledger(t.Context(), a.id, &export); err != nil {
		t.Fatal(err)
	}
	recorded := bodies(t, export.Bytes())
	for minutes, answer := range a.answers {
		if !recorded[string(answer)] {
			t.Errorf("%s: the answer about %d is not in the ledger", what, minutes)
		}
	}
	report, err := ledger.VerifyExport(&export)
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(len(a.answers)); report.Answers != n || report.Voids != a.voids || report.Spent["questions"] != n+a.voids {
		t.Errorf("%s: the ledger has %d answers and %d voids, and %d questions are spent; %d answers were received and %d questions are void", what, report.Answers, report.Voids, report.Spent["questions"], n, a.voids)
	}
}

// isVoid reports whether a reply says that the question is debited and has no answer, as docs/API.md has it.
func isVoid(err error) bool {
	var p *client.Problem
	var void bool
	return errors.As(err, &p) && p.Status == 500 && p.Code == "internal" && p.Member("void", &void) && void
}

// isAway reports whether a reply says that the source does not answer, and nothing was debited.
func isAway(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Status == 503 && p.Code == "source-unavailable"
}

// TestSourceGoesAway cuts the network between the real server and a cluster of ClickHouse at exact moments of a question: after it was reserved and before its statement reaches the engine, while the engine answers,
// and after the last byte of its last answer, before the ledger's commit. A question whose sums did not come is void, with the error of docs/API.md; one whose sums came is answered; each is debited once. What was answered
// replays while the source is away, a new question is refused without a debit, and when the source is back the same request is answered. A reply that is cut off once is asked for again, and costs nothing. It would notice
// a question that is not debited though its rows were read, a debit that nobody is told of, one that is made twice, and an answer that waits for a source that it does not need.
func TestSourceGoesAway(t *testing.T) {
	a := askEngine(t, 1000)
	minutes := 0
	for _, skip := range []int{0, a.sums - 1} {
		for _, when := range []moment{before, sent, done, short, arrived} {
			what := string(when)
			minutes++
			a.wire.arm(skip, when, isSum, func() error { a.wire.cut(true); return nil })
			reply, err := a.asks(t, minutes)
			if !a.wire.disarm() {
				t.Fatalf("%s: the statement does not come", what)
			}
			switch {
			case when == arrived && skip == a.sums-1:
				if err != nil {
					t.Errorf("%s, which was the last one: %v", what, err)
				}
				a.answers[minutes] = bytes.Clone(reply.Answer.Raw)
			case isVoid(err):
				a.voids++
			default:
				t.Errorf("statement %d, %s: %v %s", skip, what, err, reply.Answer.Raw)
			}
			a.checkBooks(t, what)
			a.mustAnswer(t, 4000)
			if when == done {
				time.Sleep(1100 * time.Millisecond) // now the server asks the source again whether it answers
				if _, err := a.ask(t, 3000); !isAway(err) {
					t.Errorf("%s: a new question to a source that is away: %v", what, err)
				}
				a.checkBooks(t, what+", and away")
			}
			a.wire.cut(false)
			a.mustAnswer(t, minutes)
			a.checkBooks(t, what+", and back")
			if t.Failed() {
				t.Fatalf("%s\n%s", what, a.stderr)
			}
		}
	}
	for _, when := range []moment{before, sent, done, short} {
		minutes++
		a.wire.arm(0, when, isSum, func() error { return nil })
		a.mustAnswer(t, minutes)
		if !a.wire.disarm() {
			t.Fatalf("%s: the statement does not come", when)
		}
		a.checkBooks(t, "cut off once "+string(when))
	}
}

// TestKilledQuestionsOfAnEngine kills the real server with SIGKILL at exact moments between a question's statement and its answer, and at random ones under load, and starts it again. The ledger has all answers that were
// received, and one debit for each question: of one that was cut off none, or one with the answer that the same request gets now. It would notice an answer without its debit, two debits, and noise that is drawn twice.
func TestKilledQuestionsOfAnEngine(t *testing.T) {
	a := askEngine(t, crashBudget)
	minutes, recorded := 5000, 0
	for skip := range a.sums {
		for _, when := range []moment{before, done, arrived} {
			minutes++
			a.wire.arm(skip, when, isSum, a.cmd.Process.Kill)
			if _, err := a.asks(t, minutes); err == nil && when != arrived {
				t.Errorf("killed %s of statement %d, the server answers", when, skip)
			}
			<-a.ended
			if !a.wire.disarm() {
				t.Fatalf("the server has ended by itself\n%s", a.stderr)
			}
			reports, err := sqlite.Verify(t.Context(), filepath.Join(a.dir, ledgerFile))
			if err != nil || len(reports) != 1 {
				t.Fatal(reports, err)
			}
			before := int64(len(a.answers))
			if spent := reports[0].Spent["questions"]; spent != reports[0].Answers || spent != before && spent != before+1 {
				t.Errorf("killed %s of statement %d: the ledger has %d debits and %d answers; %d answers were received", when, skip, spent, reports[0].Answers, before)
			} else if spent > before {
				recorded++
				if when != arrived || skip != a.sums-1 {
					t.Errorf("killed %s of statement %d of %d, the question is debited", when, skip, a.sums)
				}
			}
			a.again(t)
			a.mustAnswer(t, minutes)
			a.mustAnswer(t, minutes)
			a.checkBooks(t, string(when))
			if t.Failed() {
				t.FailNow()
			}
		}
	}

	random := rand.New(rand.NewPCG(crashSeed, 1))
	w := &world{holdout: a.id, answers: map[string][]byte{}, left: crashBudget, keyed: true, lost: map[int]bool{}}
	c := connect(t, a.process, a.dir)
	const loads = 6
	for i := range loads {
		clients := w.load(t, c, false, random)
		w.await(t, len(w.answers)+5)
		time.Sleep(time.Duration(random.Int64N(int64(longestUpload))))
		a.kill()
		clients.Wait()
		w.checkBooks(t, a.dir)
		c = a.again(t)
		w.checkRestart(t, c, a.dir)
		for minutes := range w.lost {
			reply, err := a.asks(t, minutes)
			if err != nil {
				t.Fatalf("a question that a kill has cut off: %v", err)
			}
			w.received(t, minutes, reply.Answer.Raw, reply.Budget)
			delete(w.lost, minutes)
		}
		if t.Failed() {
			t.Fatalf("after kill %d under load\n%s", i+1, a.stderr)
		}
	}
	w.checkAnswers(t, c)
	for query, answer := range w.answers {
		var minutes int
		if err := json.Unmarshal([]byte(query), &minutes); err != nil {
			t.Fatal(err)
		}
		a.answers[minutes] = answer
	}
	a.checkBooks(t, "in the end")
	t.Logf("%d statements of a question; %d of the questions that were cut off were recorded; %d answers under load", a.sums, recorded, len(w.answers))
}
