package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// These tests are by the worst enemy of the stages: requests that meet in the middle, disks that fail at the wrong moment.

// disagree creates a holdout whose training part says nothing true of its rows: every guess is wrong.
func disagree(t *testing.T, s *Service, set Settings) string {
	t.Helper()
	set.Name, set.Split = "disagree", "given"
	training, rows := visits(t, 3000, 11), visits(t, 3000, 12)
	for _, name := range []string{"x", "score", "patient"} {
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

const screening = `{"type":"screen","label":"x","features":["score","patient","x"],"statistic":"product","range":[0,1],"range_label":[0,1]}`

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
	if s.ledger, err = ledger.Open(t.Context(), ledger.Options{Path: s.path(ledgerFile), Key: secret.derive("ledger"), Fault: fault}); err != nil {
		t.Fatal(err)
	}
}

// atRest waits until nothing of a holdout is in flight, and checks that nothing is reserved then.
func atRest(t *testing.T, s *Service, id string) {
	t.Helper()
	acc := s.accounts.of(id)
	var last string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
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
		t.Run(set.kind(), func(t *testing.T) {
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
	wait, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i := range 20 {
		if _, err := s.Ask(wait, analyst, id, []byte(fmt.Sprintf(`{"type":"fraction","of":"x > 0.%d"}`, i+1)), ""); err != nil {
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
	begun := time.Now()
	wait, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := s.AskBatch(wait, analyst, id, batch, false, ""); err != nil {
		t.Errorf("a batch beside single questions: %v", err)
	}
	t.Log("batch", time.Since(begun))
	stop2()
	group.Wait()
	atRest(t, s, id)
}
