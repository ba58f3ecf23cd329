package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"
)

// TestARefusedAnswerIsVoid: the ledger refuses the entry of an answer, once. The rows were read, so the question is recorded as void and
// paid, at the price of whatever its rows could have said; the reply has no byte of an answer. Sent again under its key it is void, at no cost; under
// another it is answered, and paid again. In a batch all of the refused piece is void. It would notice a refusal that ends unpaid, that ends the request without a record,
// or that is tried again with the same answer.
func TestARefusedAnswerIsVoid(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ids := make([]string, len(staged))
	for i, set := range staged {
		ids[i] = create(t, s, set, visits(t, 2000, uint64(60+i))).ID
	}
	plantFaults(t, dir)
	for i, set := range staged {
		h, release, err := s.tables.take(t.Context(), ids[i])
		must(t, err)
		release()
		for n, count := range []int{1, 3} {
			what := fmt.Sprintf("%s, %d questions", set.label(), count)
			var queries []string
			for j := range count {
				queries = append(queries, newQuestion(set, 10*n+j))
			}
			key := fmt.Sprint("key ", i, n)
			asking := func() (bodies []json.RawMessage, err error) {
				if count == 1 {
					a, err := s.Ask(t.Context(), analyst, ids[i], []byte(queries[0]), key)
					return []json.RawMessage{a.Body}, err
				}
				b, err := s.AskBatch(t.Context(), analyst, ids[i], batchOf(queries...), false, key)
				for _, item := range b.Answers {
					bodies = append(bodies, item.Body)
				}
				return bodies, err
			}
			before, tokens := spentOf(t, s, ids[i])
			refusals := 0
			setFault(t, func(table string, _ int64) error {
				if table == "entries" && refusals == 0 {
					refusals++
					return errRefused
				}
				return nil
			})
			bodies, err := asking()
			setFault(t, nil)
			var ours *Error
			if !errors.As(err, &ours) || ours.Kind != Internal || ours.Members["void"] != true || strings.Contains(ours.Detail, "planted") {
				t.Errorf("%s: %+v", what, err)
			}
			if slices.ContainsFunc(bodies, func(b json.RawMessage) bool { return b != nil }) {
				t.Errorf("%s: a refused answer was released: %s", what, bodies)
			}
			after, tokensAfter := spentOf(t, s, ids[i])
			price := int64(0)
			if h.guarantee.HasTokens() {
				price = min(int64(count), h.guarantee.Tokens-tokens) // each of these could have taken one, of a wrong guess or of a broken promise
			}
			// A round pays once, for all of its questions; what it leaves is gone.
			if refusals != 1 || after != before+int64(count) || set.Rounds == 0 && tokensAfter != tokens+price {
				t.Errorf("%s: %d refusals; %d questions and %d tokens spent, then %d and %d", what, refusals, before, tokens, after, tokensAfter)
			}
			void := func(what string, want int64) { // is the outcome under this key
				t.Helper()
				if _, err := asking(); !errors.As(err, &ours) || ours.Kind != Internal || ours.Members["void"] != true {
					t.Errorf("%s: %v", what, err)
				}
				if again, _ := spentOf(t, s, ids[i]); again != want {
					t.Errorf("%s: %d questions spent after %d", what, again, want)
				}
			}
			void(what+": under the same key", after)
			first := key
			key += " again"
			bodies, err = asking()
			if err != nil || slices.ContainsFunc(bodies, func(b json.RawMessage) bool { return b == nil }) {
				t.Errorf("%s: asked again: %s, %v", what, bodies, err)
			}
			if again, _ := spentOf(t, s, ids[i]); again != after+int64(count) {
				t.Errorf("%s: asked again, %d questions spent after %d", what, again, after)
			}
			key = first
			if got, err := asking(); err != nil || !slices.EqualFunc(got, bodies, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Errorf("%s: what another key was answered is no replay: %s, %v", what, got, err)
			}
		}
		page, err := s.Answers(t.Context(), admin, ids[i], 0, MaxPage)
		if err != nil || len(page.Answers) != 4 {
			t.Errorf("%s: the history has %d answers, %v", set.label(), len(page.Answers), err)
		}
	}
}

// readFaults are the data directories whose ledgers ask faults before they read.
var readFaults sync.Map

// readTables are what a ledger reads for a question.
var readTables = []string{"holdouts", "books", "entries", "idempotency"}

func init() {
	// Reading connections of such a ledger get views of their own in front of the tables, which ask before each look.
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, dsn string) error {
		path, _, _ := strings.Cut(dsn, "?")
		if _, planted := readFaults.Load(path); !planted || !strings.Contains(dsn, "mode=ro") {
			return nil
		}
		statements := []string{"PRAGMA query_only = 0"}
		for _, table := range readTables {
			statements = append(statements, fmt.Sprintf(`CREATE TEMP VIEW %[1]s AS SELECT r.*
				FROM (SELECT planted_fault('read %[1]s', 0) AS fault LIMIT 1) CROSS JOIN main.%[1]s r WHERE fault = 0`, table))
		}
		for _, s := range append(statements, "PRAGMA query_only = 1") {
			if _, err := conn.ExecContext(context.Background(), s, nil); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

// TestEveryReadOfAnAskFails: each look of an ask into the ledger fails in turn, by the database and by the caller's leaving meanwhile,
// right after a start (so that the state is looked up, too). No row is read, nothing is debited, no byte of an answer leaves; and asked
// again, the question is answered at one price. It would notice an error that is taken for "not answered yet", "a new key", or "nothing
// spent yet".
func TestEveryReadOfAnAskFails(t *testing.T) {
	for _, set := range []Settings{staged[0], {Mechanism: "gaussian", Questions: 60, Rounds: 60}, staged[2]} {
		t.Run(set.label(), func(t *testing.T) {
			dir := t.TempDir()
			path := "file://" + dir + "/" + ledgerFile
			readFaults.Store(path, true)
			defer readFaults.Delete(path)
			first := open(t, dir)
			id := create(t, first, set, visits(t, 2000, 71)).ID
			ask(t, first, id, newQuestion(set, 0))
			must(t, first.Close())
			hits := map[string]int{}
			next := 1
			for _, leaves := range []bool{false, true} {
				for at := 0; ; at++ {
					s := open(t, dir)
					<-s.rereadings.all            // which reads, too
					var c atomic.Pointer[counted] // a load goes on where its asker has left
					load := s.tables.load
					s.tables.load = func(ctx context.Context, id string) (*opened, error) {
						h, err := load(ctx, id)
						if err == nil {
							counting := &counted{MomentSource: h.holdout}
							h.holdout = counting
							c.Store(counting)
						}
						return h, err
					}
					query, key := newQuestion(set, next), fmt.Sprint("key ", next)
					next++
					before, tokens := spentOf(t, s, id)
					ctx, cancel := context.WithCancel(t.Context())
					var mu sync.Mutex
					looks, hit := 0, ""
					setFault(t, func(table string, _ int64) error {
						look, reading := strings.CutPrefix(table, "read ")
						if !reading {
							return nil
						}
						mu.Lock()
						defer mu.Unlock()
						looks++
						if looks != at+1 {
							return nil
						}
						hit = look
						if leaves {
							cancel()
							return nil
						}
						return errors.New("planted: cannot be read")
					})
					a, err := s.Ask(ctx, analyst, id, []byte(query), key)
					setFault(t, nil)
					cancel()
					mu.Lock() // nothing looks for this ask any more, or its look is let pass
					what := fmt.Sprintf("look %d, at %q, leaves %v", at, hit, leaves)
					mu.Unlock()
					answered := err == nil
					switch {
					case answered && (hit == "" || leaves): // whoever leaves when it is too late is answered, and has paid
					case answered:
						t.Errorf("%s: answered: %s", what, a.Body)
					case KindOf(err) != Unavailable && (leaves || KindOf(err) != Internal):
						t.Errorf("%s: %v (kind %d)", what, err, KindOf(err))
					case a.Body != nil || strings.Contains(err.(*Error).Detail, "planted"):
						t.Errorf("%s: %s, %v", what, a.Body, err)
					case c.Load() != nil && c.Load().functions.Load() != 0:
						t.Errorf("%s: %d row functions summed", what, c.Load().functions.Load())
					}
					if after, afterTokens := spentOf(t, s, id); !answered && (after != before || afterTokens != tokens) {
						t.Errorf("%s: %d questions and %d tokens spent, then %d and %d", what, before, tokens, after, afterTokens)
					}
					again, err := s.Ask(t.Context(), analyst, id, []byte(query), key)
					if err != nil || again.Replayed != answered {
						t.Errorf("%s: asked again: %v, %v", what, again.Replayed, err)
					}
					if after, _ := spentOf(t, s, id); after != before+1 {
						t.Errorf("%s: asked again, %d questions spent of %d", what, after, before)
					}
					must(t, s.Close())
					if hit == "" {
						break
					}
					hits[hit]++
				}
			}
			for _, table := range readTables {
				if hits[table] == 0 {
					t.Errorf("%s was never looked into: %v", table, hits)
				}
			}
		})
	}
}
