package holdout

//holdoutd:race

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/internal/await"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// These tests are by the worst enemy of the stages: requests that meet in the middle, disks that fail at the wrong moment.

// disagree creates a holdout whose training part says nothing true of its rows: every guess is wrong.
func disagree(t *testing.T, s *Service, set Settings) string {
	t.Helper()
	set.Name, set.Split = "disagree", "given"
	training, rows := visits(t, 3000, 11), visits(t, 3000, 12)
	for _, name := range []string{"x", "score", "chart"} {
		c, _ := training.Lookup(name)
		for i := range c.Numbers {
			c.Numbers[i] = 0
		}
		c, _ = rows.Lookup(name)
		for i := range c.Numbers {
			c.Numbers[i] = 1
		}
	}
	card, _, err := s.Create(t.Context(), admin, set, givenUpload(parquet(t, training), parquet(t, rows)), "")
	if err != nil {
		t.Fatal(err)
	}
	return card.ID
}

const screening = `{"type":"screen","label":"x","features":["score","chart","x"],"statistic":"product","range":[0,1],"range_label":[0,1]}`

// TestOptionalTakesItsOwnTokens: a screen takes as many tokens as there are, so nothing that needs one is read together with it. It would
// notice a question that is scanned behind a screen, finds its token gone, and is void.
func TestOptionalTakesItsOwnTokens(t *testing.T) {
	for _, mechanism := range []string{"guess_and_check", "thresholdout"} {
		t.Run(mechanism, func(t *testing.T) {
			s := open(t, t.TempDir())
			id := disagree(t, s, Settings{Mechanism: mechanism, Questions: 60, Tokens: 4, Sigma: map[string]float64{"thresholdout": 0.02}[mechanism]})
			b, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(0), screening, mean(1), mean(2)), false, "")
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"", "", TokensExhausted, TokensExhausted} {
				if b.Answers[i].NotAsked != want || want == "" && b.Answers[i].Body == nil {
					t.Errorf("item %d: %q %s", i, b.Answers[i].NotAsked, b.Answers[i].Body)
				}
			}
			if questions, tokens := spentOf(t, s, id); questions != 4 || tokens != 4 {
				t.Errorf("%d questions and %d tokens spent", questions, tokens)
			}
		})
	}
}

// reopenLedger opens the ledger of a service again with a fault.
func reopenLedger(t *testing.T, s *Service, fault func(step string) error) {
	t.Helper()
	if err := s.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	secret, _, err := loadServerSecret(s.dir, true)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := sqlite.Open(t.Context(), s.path(ledgerFile), ledger.Options{Key: secret.derive("ledger"), Fault: fault})
	if err != nil {
		t.Fatal(err)
	}
	s.ledger = opened
}

// atRest waits until nothing of a holdout is in flight, and checks that nothing is reserved then.
func atRest(t *testing.T, s *Service, id string) {
	t.Helper()
	acc := s.accounts.of(id)
	var last string
	for deadline := time.Now().Add(await.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		acc.mu.Lock()
		last = fmt.Sprintf("%d questions, %d tokens, asking %v, %d shared, alone %v, line %v", acc.questions, acc.tokens, acc.asking, acc.shared, acc.exclusive, len(acc.line))
		rest := acc.questions == 0 && acc.tokens == 0 && len(acc.asking) == 0 && acc.shared == 0 && !acc.exclusive && len(acc.line) == 0
		acc.mu.Unlock()
		s.accounts.mu.Lock()
		rest = rest && len(s.accounts.keys) == 0
		s.accounts.mu.Unlock()
		if rest {
			return
		}
	}
	t.Errorf("still reserved: %s", last)
}

// TestVoidIsDebitedOnce: when the scan fails, and the commit of the void is durable but said to have failed, it is debited once: what the
// question had reserved is all that it takes. It would notice voids that are recorded again because nobody knows them.
func TestVoidIsDebitedOnce(t *testing.T) {
	for _, set := range staged {
		t.Run(set.label(), func(t *testing.T) {
			set.Questions = 2
			set.Tokens, set.Rounds = min(set.Tokens, 2), min(set.Rounds, 2)
			s := open(t, t.TempDir())
			id := create(t, s, set, visits(t, 3000, 1)).ID
			var broken atomic.Bool
			reopenLedger(t, s, func(step string) error {
				if step == "committed" && broken.CompareAndSwap(true, false) {
					return errors.New("the disk is gone")
				}
				return nil
			})
			c := count(t, s, id)
			c.before = func() error { return errors.New("a fault") }
			broken.Store(true)
			_, err := s.Ask(t.Context(), analyst, id, []byte(newQuestion(set, 0)), "k")
			wantKind(t, "a failing scan and a failing commit", err, Unavailable)
			c.before = nil
			atRest(t, s, id)
			if n, _ := spentOf(t, s, id); n != 1 {
				t.Errorf("%d questions spent", n)
			}
			ask(t, s, id, newQuestion(set, 1))
			atRest(t, s, id)
		})
	}
}

// TestNobodyStarves: neither a stream of questions that must be alone, free ones at that, nor one of others keeps anybody waiting. It would notice
// flights that overtake, and a look at the recorded answers that begins anew whenever somebody else's flight ends.
func TestNobodyStarves(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 100_000, Tokens: 1000}, visits(t, 3000, 1)).ID
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	var n atomic.Int64
	hammer := func(key string, query func(i int64) string) {
		group.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Ask(ctx, Principal{KeyID: key, Scope: Analyst}, id, []byte(query(n.Add(1))), "")
			}
		})
	}
	for range 12 { // free for ever: no guess can pass
		hammer("hog", func(i int64) string {
			return fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d],"guess":0,"half_width":1e-9}`, i)
		})
	}
	for i := range 20 { // who starves waits for ever
		if _, err := s.Ask(await.Context(t), analyst, id, []byte(fmt.Sprintf(`{"type":"fraction","of":"x > 0.%d"}`, i+1)), ""); err != nil {
			t.Fatalf("behind questions that must be alone: question %d: %v", i, err)
		}
	}
	stop()
	group.Wait()
	ctx, stop2 := context.WithCancel(t.Context())
	defer stop2()
	for range 4 {
		group.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Ask(ctx, Principal{KeyID: "hog", Scope: Analyst}, id, []byte(fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d]}`, 1_000_000+n.Add(1))), "")
			}
		})
	}
	var batch []json.RawMessage
	for i := range 2000 {
		batch = append(batch, json.RawMessage(fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d]}`, 10_000_000+i)))
	}
	if _, err := s.AskBatch(await.Context(t), analyst, id, batch, false, ""); err != nil {
		t.Errorf("a batch beside single questions: %v", err)
	}
	stop2()
	group.Wait()
	atRest(t, s, id)
}

// TestTakeOffInOrder: flights take off in the order they came. It would notice one kind that overtakes the other.
func TestTakeOffInOrder(t *testing.T) {
	acc := newAccounts().of("ho")
	leave := func(alone bool) {
		acc.mu.Lock()
		defer acc.mu.Unlock()
		acc.leave(alone)
	}
	yes := func() (bool, error) { return true, nil }
	must(t, acc.enter(t.Context(), false, yes))
	order := make(chan int, 6)
	for i, alone := range []bool{true, false, true, true, false, false} {
		go func() {
			if err := acc.enter(context.Background(), alone, yes); err == nil {
				order <- i
				leave(alone)
			}
		}()
		for waiting := 0; waiting < i+1; time.Sleep(time.Millisecond) {
			acc.mu.Lock()
			waiting = len(acc.line) + len(order)
			acc.mu.Unlock()
		}
	}
	leave(false)
	var got []int
	for range 6 {
		got = append(got, <-order)
	}
	if got[0] != 0 || got[1] != 1 || got[2] != 2 || got[3] != 3 {
		t.Errorf("took off as %v", got)
	}
}

// TestStress: many askers with all kinds of requests, of which some leave at any moment, while scans and commits fail now and then. At the
// end nothing is reserved, the ledger has what the answers say that they cost and the voids, no question that was admitted failed for
// want of tokens, and the books verify. It would notice reservations that leak or are given back twice.
func TestStress(t *testing.T) {
	for _, set := range staged {
		t.Run(set.label(), func(t *testing.T) {
			set.Questions, set.Tokens, set.Rounds = 150, min(set.Tokens, 25), min(set.Rounds, 30)
			if set.Mechanism == "thresholdout" {
				set.Sigma = 0.02
			}
			s := open(t, t.TempDir(), func(o *Options) { o.Limits.Questions = 12 })
			id := ""
			if set.Mechanism == "split" || set.Mechanism == "ladder" {
				id = create(t, s, set, visits(t, 3000, 1)).ID
			} else {
				id = disagree(t, s, set)
			}
			var trips, scans atomic.Int64
			reopenLedger(t, s, func(step string) error {
				if step == "commit" && trips.Add(1)%41 == 0 || step == "committed" && trips.Add(1)%53 == 0 {
					return errors.New("the disk is gone")
				}
				return nil
			})
			c := count(t, s, id)
			c.before = func() error {
				if scans.Add(1)%17 == 0 {
					return errors.New("a fault")
				}
				return nil
			}
			var group sync.WaitGroup
			for who := range 12 {
				r := rand.New(rand.NewPCG(uint64(who), 3))
				p := Principal{KeyID: fmt.Sprint("key ", who%5), Scope: Analyst}
				one := func() string {
					if set.Mechanism == "guess_and_check" {
						switch r.IntN(5) {
						case 0:
							return fmt.Sprintf(`{"type":"mean","of":"x","range":[0,1],"guess":%v,"half_width":%v}`, r.Float64(), 0.3*r.Float64())
						case 1:
							return screening
						}
					}
					return newQuestion(set, r.IntN(60))
				}
				group.Go(func() {
					for range 12 {
						ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(400))*time.Millisecond)
						key := []string{"", "", fmt.Sprint("k", r.IntN(4))}[r.IntN(3)]
						var err error
						if r.IntN(2) == 0 {
							_, err = s.Ask(ctx, p, id, []byte(one()), key)
						} else {
							_, err = s.AskBatch(ctx, p, id, batchOf(one(), one(), one(), one()), r.IntN(2) == 0, key)
						}
						cancel()
						if errors.Is(err, thresholdout.ErrNoTokens) || errors.Is(err, ledger.ErrBudget) {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			atRest(t, s, id)
			var export bytes.Buffer
			must(t, s.Export(t.Context(), admin, id, &export))
			report, err := ledger.VerifyExport(&export)
			if err != nil {
				t.Fatal(err)
			}
			c.before = nil
			acc := s.accounts.of(id)
			cached := acc.state
			acc.forget()
			h, release, err := s.tables.take(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			durable, err := acc.current(t.Context(), s, h, 0)
			release()
			if err != nil || cached != nil && fmt.Sprintf("%+v", *cached) != fmt.Sprintf("%+v", durable) && set.Rounds == 0 && set.Mechanism != "ladder" {
				t.Errorf("the state is %+v and was believed to be %+v: %v", durable, cached, err)
			}
			if durable.Questions != report.Spent["questions"] || set.Tokens > 0 && durable.Tokens != report.Spent["tokens"] {
				t.Errorf("the state is %+v, the books say %+v", durable, report.Spent)
			}
			t.Logf("%d answers, %d voids, %+v spent, %d scans", report.Answers, report.Voids, report.Spent, scans.Load())
		})
	}
}
