package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// These tests hold several services on one ledger to the same as one: what one of them spends between another's scan and its commit is found by the commit.

// lent is a ledger that several services have open: it is closed by the test.
type lent struct{ ledger.Ledger }

func (lent) Close() error { return nil }

// testServerKey is that of replicas.
var testServerKey = strings.Repeat("4b", 32)

// replicas opens n services on one ledger and one directory of tables.
func replicas(t *testing.T, n int, change ...func(*Options)) []*Service {
	t.Helper()
	dir := t.TempDir()
	secret, err := parseServerSecret("the test's", testServerKey)
	must(t, err)
	shared, err := sqlite.Open(t.Context(), filepath.Join(dir, "ledger.db"), ledger.Options{Key: secret.derive("ledger")})
	must(t, err)
	t.Cleanup(func() { must(t, shared.Close()) })
	all := make([]*Service, n)
	for i := range all {
		all[i] = replica(t, shared, filepath.Join(dir, fmt.Sprint("replica", i)), filepath.Join(dir, "tables"), change...)
	}
	return all
}

// replica opens a service on a ledger that others have, too.
func replica(t *testing.T, shared ledger.Ledger, dir, tables string, change ...func(*Options)) *Service {
	t.Helper()
	return open(t, dir, append([]func(*Options){func(o *Options) {
		o.Tables, o.ServerKey = tables, func() (string, error) { return testServerKey, nil }
		o.OpenLedger = func(context.Context, ledger.Options) (ledger.Ledger, error) { return lent{shared}, nil }
	}}, change...)...)
}

// chainOf is a holdout's chain, verified.
func chainOf(t *testing.T, s *Service, id string) (ledger.Report, string) {
	t.Helper()
	var export bytes.Buffer
	must(t, s.Export(t.Context(), admin, id, &export))
	text := export.String()
	report, err := ledger.VerifyExport(&export)
	must(t, err)
	return report, text
}

// elsewhere asks another server while this one reads rows. It must not end the test there: what is in flight would never land.
func elsewhere(t *testing.T, s *Service, id, query string) Answer {
	t.Helper()
	a, err := s.Ask(context.Background(), rival, id, []byte(query), "")
	if err != nil {
		t.Errorf("elsewhere: %s: %v", query, err)
	}
	return a
}

// duringScan runs do at the moment at which the rows of a question have been asked for and were not read.
func duringScan(c *counted, do func()) {
	c.before = sync.OnceValue(func() error { do(); return nil })
}

// TestLastQuestionIsTakenMeanwhile: the last question, or the last token, goes to another server between this one's scan and its commit. The question is
// not asked: it costs nothing, no void is recorded, and the refusal is the one of admission. It would notice a commit that does not admit again.
func TestLastQuestionIsTakenMeanwhile(t *testing.T) {
	for _, set := range staged {
		for _, short := range []string{"questions", "tokens"} {
			if short == "tokens" && set.Tokens == 0 {
				continue
			}
			t.Run(set.label()+"-"+short, func(t *testing.T) {
				set.Questions = map[string]int64{"questions": 1, "tokens": 20}[short]
				set.Rounds, set.Tokens = min(set.Rounds, 1), min(set.Tokens, 1)
				if set.Mechanism == "thresholdout" {
					set.Sigma = 0.02
				}
				all := replicas(t, 2)
				var id string
				if short == "tokens" {
					id = disagree(t, all[0], set)
				} else {
					id = create(t, all[0], set, visits(t, 3000, 1)).ID
				}
				c := count(t, all[0], id)
				duringScan(c, func() { elsewhere(t, all[1], id, newQuestion(set, 1)) })
				_, err := all[0].Ask(t.Context(), analyst, id, []byte(newQuestion(set, 0)), "key")
				wantKind(t, "after the last was taken", err, BudgetExhausted)
				report, _ := chainOf(t, all[0], id)
				if report.Answers != 1 || report.Voids != 0 || report.Spent["questions"] != 1 {
					t.Errorf("recorded: %+v", report)
				}
				_, again := all[0].Ask(t.Context(), analyst, id, []byte(newQuestion(set, 0)), "another key")
				if again == nil || again.Error() != err.Error() {
					t.Errorf("refused at the commit with %q, at admission with %q", err, again)
				}
				// The key was not used up by the question that was not asked.
				if a, err := all[0].Ask(t.Context(), analyst, id, []byte(newQuestion(set, 1)), "key"); err != nil || !a.Replayed {
					t.Errorf("a replay under the key: %v", err)
				}
				atRest(t, all[0], id)
			})
		}
	}
}

// TestRefusalAfterTheScanKnowsNoRows: whatever the rows are, and whatever became of reading them, a question whose budget was taken meanwhile is refused
// with the same words, and the ledger has the same bytes. It would notice a second admission that comes behind the mechanism, or behind a scan that failed.
func TestRefusalAfterTheScanKnowsNoRows(t *testing.T) {
	for _, set := range []Settings{{Mechanism: "gaussian", Questions: 1}, {Mechanism: "guess_and_check", Questions: 20, Tokens: 1}, {Mechanism: "split", Questions: 1}} {
		t.Run(set.Mechanism, func(t *testing.T) {
			all := replicas(t, 2)
			said := map[string]bool{}
			for seed, reading := range map[uint64]func() error{
				1: func() error { return nil },
				2: func() error { return nil },
				3: func() error { return errors.New("a fault of the disk, which holds 4711 from a row") },
				4: func() error { panic("a row that nobody expected") },
			} {
				var id string
				if set.Tokens > 0 {
					set.Name = fmt.Sprint("table ", seed)
					id = disagree2(t, all[0], set, seed)
				} else {
					id = create(t, all[0], set, visits(t, 3000, seed)).ID
				}
				c := count(t, all[0], id)
				c.before = func() error {
					c.before = reading
					elsewhere(t, all[1], id, newQuestion(set, 1))
					return reading()
				}
				_, err := all[0].Ask(t.Context(), analyst, id, []byte(newQuestion(set, 0)), "")
				var ours *Error
				if !errors.As(err, &ours) {
					t.Fatal(err)
				}
				report, _ := chainOf(t, all[1], id)
				members, _ := json.Marshal(ours.Members)
				said[fmt.Sprint(ours.Kind, ours.Detail, string(members), report.Entries, report.Voids, report.Spent)] = true
			}
			if len(said) != 1 {
				t.Errorf("the refusals say of the rows: %v", said)
			}
		})
	}
}

// disagree2 is disagree with rows of this seed.
func disagree2(t *testing.T, s *Service, set Settings, seed uint64) string {
	t.Helper()
	set.Split = "given"
	training, rows := visits(t, 3000, 100+seed), visits(t, 3000, 200+seed)
	for i := range 3000 {
		x, _ := training.Lookup("x")
		x.Numbers[i] = 0
		x, _ = rows.Lookup("x")
		x.Numbers[i] = 1 - float64(seed)/1000
	}
	card, _, err := s.Create(t.Context(), admin, set, givenUpload(parquet(t, training), parquet(t, rows)), "")
	must(t, err)
	return card.ID
}

// TestAnsweredMeanwhile: another server answers the same question between this one's scan and its commit. It is a replay: the same bytes, paid once, also where
// reading the rows failed here. It would notice a void beside an answer.
func TestAnsweredMeanwhile(t *testing.T) {
	for _, set := range staged {
		t.Run(set.label(), func(t *testing.T) {
			all := replicas(t, 2)
			id := create(t, all[0], set, visits(t, 3000, 1)).ID
			c := count(t, all[0], id)
			for i, fault := range []error{nil, errors.New("a fault")} {
				var first Answer
				c.before = func() error {
					if c.before = nil; first.Body == nil {
						first = elsewhere(t, all[1], id, newQuestion(set, i))
					}
					return fault
				}
				b, err := all[0].AskBatch(t.Context(), analyst, id, batchOf(newQuestion(set, i)), false, "")
				if err != nil || !b.Answers[0].Replayed || !bytes.Equal(b.Answers[0].Body, first.Body) {
					t.Errorf("%v: %+v, first\n%s", err, b.Answers, first.Body)
				}
			}
			if report, _ := chainOf(t, all[0], id); report.Answers != 2 || report.Voids != 0 || report.Spent["questions"] != 2 {
				t.Errorf("recorded: %+v", report)
			}
			atRest(t, all[0], id)
		})
	}
}

// TestOvertakenIsReadAgain: a question that must be alone was read for a state that another server has left. It is read again and answered by the new state,
// its own rows under split, and a server that is overtaken each time says so in the end. It would notice an answer by the rows of another question, a void, and
// a loop without an end.
func TestOvertakenIsReadAgain(t *testing.T) {
	for _, set := range []Settings{{Mechanism: "split", Questions: 60}, {Mechanism: "gaussian", Questions: 60, Rounds: 30}, {Mechanism: "guess_and_check", Questions: 60, Tokens: 40}} {
		t.Run(set.label(), func(t *testing.T) {
			alone := func(i int) string {
				if set.Mechanism == "guess_and_check" {
					return fmt.Sprintf(`{"type":"fraction","of":"x > 0.%d","guess":0.5,"half_width":0.4}`, 100+i)
				}
				return newQuestion(set, i)
			}
			all := replicas(t, 2)
			id := create(t, all[0], set, visits(t, 3000, 1)).ID
			c := count(t, all[0], id)
			var scans, next atomic.Int64
			next.Store(100)
			overtake := int64(3)
			c.before = func() error {
				if n := scans.Add(1); n <= overtake {
					elsewhere(t, all[1], id, alone(int(next.Add(1))))
				}
				return nil
			}
			a, err := all[0].Ask(t.Context(), analyst, id, []byte(alone(0)), "")
			if err != nil || a.Replayed || read(t, a.Body).Cost.Questions != 1 {
				t.Fatalf("%v: %s", err, a.Body)
			}
			report, _ := chainOf(t, all[0], id)
			if report.Answers != 4 || report.Voids != 0 || report.Spent["questions"] != 4 {
				t.Errorf("recorded: %+v", report)
			}
			if n := scans.Load(); n < 4 {
				t.Errorf("%d scans", n)
			}
			overtake = 1 << 40
			_, err = all[0].Ask(t.Context(), analyst, id, []byte(alone(1)), "")
			wantKind(t, "overtaken for ever", err, Unavailable)
			before := report.Spent["questions"]
			if report, _ = chainOf(t, all[0], id); report.Spent["questions"] != before+maxScans || report.Voids != 0 {
				t.Errorf("recorded: %+v", report)
			}
			atRest(t, all[0], id)
		})
	}
}

// TestKeyIsUsedMeanwhile: an Idempotency-Key that another server has recorded for another request between scan and commit refuses this one, at no cost, and
// one that it has recorded for the same request brings the recorded answer.
func TestKeyIsUsedMeanwhile(t *testing.T) {
	all := replicas(t, 2)
	set := Settings{Mechanism: "gaussian", Questions: 10}
	id := create(t, all[0], set, visits(t, 3000, 1)).ID
	c := count(t, all[0], id)
	meanwhile := func(query string) {
		duringScan(c, func() {
			if _, err := all[1].Ask(t.Context(), analyst, id, []byte(query), query); err != nil {
				t.Error(err)
			}
		})
	}
	meanwhile(mean(1))
	_, err := all[0].Ask(t.Context(), analyst, id, []byte(mean(2)), mean(1))
	wantKind(t, "the key of another request", err, IdempotencyMismatch)
	meanwhile(mean(3))
	if a, err := all[0].Ask(t.Context(), analyst, id, []byte(mean(3)), mean(3)); err != nil || !a.Replayed {
		t.Errorf("the key of the same request: %v", err)
	}
	if n, _ := spentOf(t, all[0], id); n != 2 {
		t.Errorf("%d questions spent", n)
	}
	atRest(t, all[0], id)
}

// TestBatchIsPaidWholeOrNot: where another server leaves too little for a batch that is asked all or none, nothing of it is asked; a batch in part is asked
// as far as the budget goes.
func TestBatchIsPaidWholeOrNot(t *testing.T) {
	all := replicas(t, 2)
	id := create(t, all[0], Settings{Mechanism: "gaussian", Questions: 6}, visits(t, 3000, 1)).ID
	c := count(t, all[0], id)
	duringScan(c, func() { elsewhere(t, all[1], id, mean(0)) })
	_, err := all[0].AskBatch(t.Context(), analyst, id, batchOf(mean(1), mean(2), mean(3), mean(4), mean(5), mean(6)), false, "")
	wantExhausted(t, "a batch for which too little was left", err, 6, 5, 5)
	duringScan(c, func() { elsewhere(t, all[1], id, mean(7)) })
	b, err := all[0].AskBatch(t.Context(), analyst, id, batchOf(mean(1), mean(2), mean(3), mean(4), mean(5)), true, "")
	must(t, err)
	for i, item := range b.Answers {
		if want := map[bool]string{true: QuestionsExhausted}[i == 4]; item.NotAsked != want || (item.Body == nil) != (want != "") {
			t.Errorf("item %d: %+v", i, item)
		}
	}
	if report, _ := chainOf(t, all[0], id); b.Budget.Questions.Left != 0 || report.Answers != 6 || report.Voids != 0 {
		t.Errorf("%+v, recorded %+v", b.Budget, report)
	}
	atRest(t, all[0], id)
}

// TestDeletedElsewhere: a holdout that another server deletes or replaces is gone here at the next request, and a question whose rows were just read gets no
// answer. It would notice tables that stay open, and a state that is remembered.
func TestDeletedElsewhere(t *testing.T) {
	all := replicas(t, 2)
	id := create(t, all[0], Settings{Mechanism: "gaussian", Questions: 6}, visits(t, 3000, 1)).ID
	ask(t, all[0], id, mean(0))
	duringScan(count(t, all[0], id), func() {
		if err := all[1].Delete(t.Context(), admin, id); err != nil {
			t.Error(err)
		}
	})
	_, err := all[0].Ask(t.Context(), analyst, id, []byte(mean(1)), "")
	wantKind(t, "deleted while its rows were read", err, NotFound)
	for _, s := range all {
		_, err = s.Ask(t.Context(), analyst, id, []byte(mean(0)), "")
		wantKind(t, "a replay of a deleted holdout", err, NotFound)
		_, err = s.Training(t.Context(), analyst, id)
		wantKind(t, "its training part", err, NotFound)
	}
	if all[0].tables.has(id) {
		t.Error("the tables of a deleted holdout are open")
	}
	set := Settings{Mechanism: "gaussian", Questions: 6}
	first := seen(t, all[0], create(t, all[0], set, visits(t, 3000, 2)))
	set.Questions = 7
	second := create(t, all[1], set, visits(t, 3000, 2))
	_, err = all[0].Ask(t.Context(), analyst, first.ID, []byte(mean(0)), "")
	wantKind(t, "replaced", err, NotFound)
	var ours *Error
	if !errors.As(err, &ours) || ours.Members["holdout"] != second.ID {
		t.Errorf("the refusal names no successor: %v", err)
	}
	ask(t, all[0], second.ID, mean(0))
}

// TestReplicasRace: many askers at two and three servers, with single questions, batches and keys, all the same ones, until nothing is left. Nothing is
// overspent, each question is paid once and has the same bytes wherever it is asked, nothing is void, and at the end nothing is reserved.
func TestReplicasRace(t *testing.T) {
	for _, set := range staged {
		for n := 2; n <= 3; n++ {
			t.Run(fmt.Sprintf("%s-%d", set.label(), n), func(t *testing.T) {
				set.Questions, set.Tokens, set.Rounds = 40, min(set.Tokens, 12), min(set.Rounds, 12)
				if set.Mechanism == "thresholdout" {
					set.Sigma = 0.02
				}
				all := replicas(t, n)
				var id string
				if set.Mechanism == "split" || set.Mechanism == "ladder" {
					id = create(t, all[0], set, visits(t, 3000, 1)).ID
				} else {
					id = disagree(t, all[0], set)
				}
				var mu sync.Mutex
				bodies, cost := map[string]string{}, Cost{}
				heard := func(query string, body []byte) {
					mu.Lock()
					defer mu.Unlock()
					if known, ok := bodies[query]; ok && known != string(body) {
						t.Errorf("%s has two answers:\n%s\n%s", query, known, body)
					} else if !ok {
						bodies[query] = string(body)
						c := read(t, body).Cost
						cost.Questions, cost.Tokens = cost.Questions+c.Questions, cost.Tokens+c.Tokens
					}
				}
				var group sync.WaitGroup
				for who := range 4 * n {
					s, r := all[who%n], rand.New(rand.NewPCG(uint64(who), 8))
					p := Principal{KeyID: fmt.Sprint("key ", who%5), Scope: Analyst}
					one := func() string {
						if set.Mechanism == "guess_and_check" && r.IntN(5) == 0 {
							return []string{screening, fmt.Sprintf(`{"type":"mean","of":"x","range":[0,1],"guess":%v,"half_width":0.3}`, float64(r.IntN(5))/5)}[r.IntN(2)]
						}
						return newQuestion(set, r.IntN(60))
					}
					group.Go(func() {
						for range 8 {
							asked := []string{one(), one(), one()}
							key := ""
							if r.IntN(3) == 0 {
								key = asked[0]
							}
							var err error
							if r.IntN(2) == 0 {
								var a Answer
								if a, err = s.Ask(context.Background(), p, id, []byte(asked[0]), key); err == nil {
									heard(asked[0], a.Body)
								}
							} else {
								var b BatchAnswer
								b, err = s.AskBatch(context.Background(), p, id, batchOf(asked...), true, "")
								for i, item := range b.Answers {
									if item.Body != nil {
										heard(asked[i], item.Body)
									}
								}
							}
							if kind := KindOf(err); err != nil && kind != BudgetExhausted && kind != Unavailable && kind != Invalid {
								t.Error(err)
							}
						}
					})
				}
				group.Wait()
				report, _ := chainOf(t, all[0], id)
				if report.Voids != 0 || report.Spent["questions"] > report.Limits["questions"] || report.Spent["tokens"] > report.Limits["tokens"] {
					t.Errorf("recorded %+v", report)
				}
				for _, s := range all {
					atRest(t, s, id)
					for query, body := range bodies {
						a, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
						if err != nil || !a.Replayed || string(a.Body) != body {
							t.Errorf("%s: %v, %s, was %s", query, err, a.Body, body)
						}
					}
				}
				if report.Answers != int64(len(bodies)) || report.Spent["questions"] != cost.Questions || report.Spent["tokens"] != cost.Tokens {
					t.Errorf("%d answers that cost %+v, recorded %+v", len(bodies), cost, report)
				}
				if len(bodies) == 0 {
					t.Error("nothing was answered")
				}
			})
		}
	}
}

// TestNewsOfOthers: whoever follows a holdout hears of what another server has recorded.
func TestNewsOfOthers(t *testing.T) {
	all := replicas(t, 2)
	id := create(t, all[0], Settings{Mechanism: "gaussian", Questions: 6}, visits(t, 3000, 1)).ID
	for i := range 2 {
		news, err := all[0].News(t.Context(), admin, id)
		must(t, err)
		if i == 1 { // the first may be told of what was before
			time.Sleep(2 * followEvery)
			news, err = all[0].News(t.Context(), admin, id)
			must(t, err)
		}
		ask(t, all[1], id, mean(i))
		select {
		case <-news:
		case <-time.After(30 * time.Second):
			t.Fatal("no news of another server's answer")
		}
	}
}

// TestNoNewsOfNothing: whoever asks for news of holdouts that are not there leaves nothing behind. It would notice a server that remembers, and looks for, every id that
// somebody has made up.
func TestNoNewsOfNothing(t *testing.T) {
	all := replicas(t, 1)
	id := create(t, all[0], Settings{Mechanism: "gaussian", Questions: 6}, visits(t, 3000, 1)).ID
	for who, p := range map[string]Principal{"ho_made-up": admin, id: {KeyID: "key_limited", Scope: Analyst, Holdouts: []string{"ho_another"}}} {
		if _, err := all[0].News(t.Context(), p, who); KindOf(err) != NotFound {
			t.Errorf("news of %s: %v", who, err)
		}
	}
	if waiting := all[0].news.awaited(); len(waiting) != 0 {
		t.Errorf("news are awaited of %v", waiting)
	}
}
