package holdout

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// stageHook is a Tracer that calls a function when a stage has ended, once for each time that it was armed.
type stageHook struct {
	stage string
	armed atomic.Int64 // stages until the call; 0: none
	call  func()
}

func (h *stageHook) Stage(ctx context.Context, stage, _ string, _ int) (context.Context, func()) {
	return ctx, func() {
		if stage == h.stage && h.armed.Load() > 0 && h.armed.Add(-1) == 0 {
			h.call()
		}
	}
}

// granting is a service with a holdout of which the analyst has a grant, and a hook.
func granting(t *testing.T, set Settings, n NewGrant, hook *stageHook) (s *Service, id string, g GrantInfo, pass func(time.Duration)) {
	t.Helper()
	var passed atomic.Int64
	s = open(t, t.TempDir(), func(o *Options) {
		o.Tracer = hook
		o.now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	})
	id = create(t, s, set, visits(t, 3000, 1)).ID
	key, _, err := s.CreateKey(t.Context(), admin, "ana", Analyst)
	must(t, err)
	n.Holder = key.ID
	g, _, err = s.MakeGrant(t.Context(), admin, id, n, "")
	must(t, err)
	return s, id, g, func(d time.Duration) { passed.Add(int64(d)) }
}

func holderOf(g GrantInfo) Principal {
	return Principal{KeyID: g.Holder.ID, Name: "ana", Scope: Analyst}
}

func someMeans(n int) (batch []json.RawMessage) {
	for i := range n {
		batch = append(batch, json.RawMessage(mean(i)))
	}
	return batch
}

// TestGrantEndsWhileRowsAreRead: a question whose grant is ended, or expires, while its rows are read is not asked: nothing is debited, not even where reading them failed, nothing stays
// reserved, and what the grant had is there again. It would notice a commit that looks at the rows first, one that debits the holdout's own budget instead, and a reservation that nobody gives back.
func TestGrantEndsWhileRowsAreRead(t *testing.T) {
	for _, how := range []string{"ended", "expired"} {
		for _, partial := range []bool{false, true} {
			t.Run(fmt.Sprint(how, " partial ", partial), func(t *testing.T) {
				hook := &stageHook{stage: StageScan}
				until := time.Now().Add(time.Hour)
				s, id, g, pass := granting(t, Settings{Questions: 100}, NewGrant{Questions: 50, Expires: &until}, hook)
				hook.call = func() {
					if how == "ended" {
						must(t, s.EndGrant(t.Context(), admin, g.ID))
					} else {
						pass(2 * time.Hour)
					}
				}
				who := holderOf(g)
				hook.armed.Store(1)
				if !partial {
					if _, err := s.Ask(t.Context(), who, id, []byte(mean(0)), "once"); KindOf(err) != GrantOver {
						t.Errorf("asked: %v", err)
					}
				} else if b, err := s.AskBatch(t.Context(), who, id, someMeans(3), true, "once"); err != nil || b.Answers[0].NotAsked != GrantEnded || b.Answers[2].Body != nil || b.Budget.Questions.Left != 0 {
					t.Errorf("asked in a batch: %+v %v", b, err)
				}
				atRest(t, s, id)
				if questions, tokens := spentOf(t, s, id); questions != 0 || tokens != 0 {
					t.Errorf("%d questions and %d tokens were debited", questions, tokens)
				}
				if _, err := s.Ask(t.Context(), who, id, []byte(mean(0)), ""); KindOf(err) != GrantOver {
					t.Errorf("asked after it: %v", err)
				}
				if page, err := s.Answers(t.Context(), admin, id, 0, 0); err != nil || len(page.Answers) != 0 {
					t.Errorf("the history has %+v %v", page, err)
				}
				again, _, err := s.MakeGrant(t.Context(), admin, id, NewGrant{Holder: who.KeyID, Questions: 100}, "")
				if err != nil {
					t.Fatalf("what it had is not there again: %v", err)
				}
				if a, err := s.Ask(t.Context(), who, id, []byte(mean(0)), "once"); err != nil || a.Replayed || a.Budget.Grant != again.ID {
					t.Errorf("on another grant: %+v %v", a, err)
				}
			})
		}
	}
}

// TestGrantExpiresWithinABatch: a batch whose grant expires after its first answers is answered as far as these go, and says of the rest why it was not asked: between two waves, and
// between two pieces of one that is recorded in several. It would notice a batch of which answers were paid for and an error is the reply.
func TestGrantExpiresWithinABatch(t *testing.T) {
	for name, c := range map[string]struct {
		set         Settings
		grant       NewGrant
		stage       string
		asked, paid int
	}{
		"between waves":  {Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 4}, NewGrant{Questions: 50, Tokens: new(int64(2))}, StageCommit, 5, 2},
		"between pieces": {Settings{Questions: 1000}, NewGrant{Questions: 500}, StageLedger, pieceQuestions + 44, pieceQuestions},
	} {
		for _, partial := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " partial ", partial), func(t *testing.T) {
				hook := &stageHook{stage: c.stage}
				until := time.Now().Add(time.Hour)
				c.grant.Expires = &until
				s, id, g, pass := granting(t, c.set, c.grant, hook)
				hook.call = func() { pass(2 * time.Hour) }
				hook.armed.Store(1)
				b, err := s.AskBatch(t.Context(), holderOf(g), id, someMeans(c.asked), partial, "once")
				if err != nil {
					t.Fatal(err)
				}
				for i, a := range b.Answers {
					if answered := i < c.paid; (a.Body != nil) != answered || (a.NotAsked == GrantEnded) == answered {
						t.Errorf("item %d: %+v", i, a)
					}
				}
				atRest(t, s, id)
				if questions, _ := spentOf(t, s, id); questions != int64(c.paid) {
					t.Errorf("%d questions were debited, want %d", questions, c.paid)
				}
				if info, err := s.Grant(t.Context(), admin, g.ID); err != nil || info.Questions.Spent != int64(c.paid) || info.Live {
					t.Errorf("the grant is %+v %v", info, err)
				}
				if a, err := s.Ask(t.Context(), holderOf(g), id, []byte(mean(0)), ""); err != nil || !a.Replayed {
					t.Errorf("a replay: %+v %v", a, err)
				}
			})
		}
	}
}
