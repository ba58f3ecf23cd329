package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/await"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// grantee is a new key with the scope granted.
func grantee(t rapid.TB, s *Service) Principal {
	t.Helper()
	k, _, err := s.CreateKey(context.Background(), admin, "agent", Granted)
	if err != nil {
		t.Fatal(err)
	}
	return Principal{KeyID: k.ID, Name: k.Name, Scope: Granted}
}

// grant makes a grant that must come to be, for a new key.
func grant(t rapid.TB, s *Service, n NewGrant) (Principal, GrantInfo) {
	t.Helper()
	p := grantee(t, s)
	n.Key = p.KeyID
	g, err := s.CreateGrant(context.Background(), admin, n)
	if err != nil {
		t.Fatal(err)
	}
	return p, g
}

// wantGrantExhausted fails unless err says of a meter that the grant lacks it.
func wantGrantExhausted(t *testing.T, what string, err error, grant, meter string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != GrantExhausted || e.Members["grant"] != grant || e.Members["meter"] != meter {
		t.Errorf("%s: %v %+v, want that the grant %s lacks %s", what, err, e, grant, meter)
	}
}

// TestGrantPays: what a key asks is its grant's and the holdout's in one debit; a replay is free; what the grant cannot pay is refused before a row is read, and is called the grant's want.
func TestGrantPays(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 100}, visits(t, 400, 1)).ID
	p, g := grant(t, s, NewGrant{Holdout: id, Questions: 3})
	c := count(t, s, id)
	for i := range 2 {
		if a, err := s.Ask(t.Context(), p, id, []byte(mean(i)), ""); err != nil || a.Budget.Questions != (Meter{Left: int64(2 - i), Of: 3}) {
			t.Fatalf("question %d: %+v %v", i, a.Budget, err)
		}
	}
	ask(t, s, id, mean(7))
	read := c.functions.Load()
	for _, again := range []int{0, 7} { // its own, and another key's
		if a, err := s.Ask(t.Context(), p, id, []byte(mean(again)), ""); err != nil || !a.Replayed || a.Budget.Questions.Left != 1 {
			t.Errorf("a replay: %+v %v", a, err)
		}
	}
	_, err := s.AskBatch(t.Context(), p, id, batchOf(mean(2), mean(3)), false, "")
	wantGrantExhausted(t, "a batch that costs two", err, g.ID, "questions")
	if c.functions.Load() != read {
		t.Error("rows were read for what was refused")
	}
	b, err := s.AskBatch(t.Context(), p, id, batchOf(mean(2), mean(3), mean(0)), true, "")
	if err != nil || b.Answers[0].Body == nil || b.Answers[1].NotAsked != GrantQuestionsExhausted || !b.Answers[2].Replayed {
		t.Errorf("a batch in part: %+v %v", b, err)
	}
	_, err = s.Ask(t.Context(), p, id, []byte(mean(4)), "")
	wantGrantExhausted(t, "a fourth question", err, g.ID, "questions")
	if _, err := s.Ask(t.Context(), analyst, id, []byte(mean(4)), ""); err != nil {
		t.Errorf("the holdout's own budget: %v", err)
	}
	spenders, err := s.Spenders(t.Context(), admin, id)
	if err != nil || len(spenders) != 2 || spenders[0].Key.ID != p.KeyID || *spenders[0].Key.Name != "agent" || spenders[0].Questions != 3 || spenders[1].Questions != 2 {
		t.Errorf("spenders %+v %v", spenders, err)
	}
	all, err := s.Grants(t.Context(), p, "")
	if err != nil || len(all) != 1 || all[0].Questions.Own != 3 || all[0].Questions.Spent != 3 || all[0].Questions.Left != 0 || *all[0].Questions.Of != 3 || all[0].State != "valid" {
		t.Errorf("the own grant: %+v %v", all, err)
	}
}

// TestGrantPaysTokens: a question is held against a grant's tokens by all that it can take, also one that takes as many as there are.
func TestGrantPaysTokens(t *testing.T) {
	s := open(t, t.TempDir())
	id := disagree(t, s, Settings{Mechanism: "guess_and_check", Questions: 60, Tokens: 20})
	p, g := grant(t, s, NewGrant{Holdout: id, Questions: 50, Tokens: new(int64(4))})
	tokens := func() int64 {
		_, spent := spentOf(t, s, id)
		return spent
	}
	if b, err := s.AskBatch(t.Context(), p, id, batchOf(mean(0), mean(1)), false, ""); err != nil || b.Budget.Tokens == nil || *b.Budget.Tokens != (Meter{Left: 2, Of: 4}) {
		t.Fatalf("two wrong guesses: %+v %v", b, err)
	}
	_, err := s.Ask(t.Context(), p, id, []byte(screening), "")
	wantGrantExhausted(t, "a screen of three features", err, g.ID, "tokens")
	if tokens() != 2 {
		t.Errorf("%d tokens spent, want the 2 of before", tokens())
	}
	b, err := s.AskBatch(t.Context(), p, id, batchOf(mean(2), mean(3), mean(4)), false, "")
	if err != nil || b.Answers[1].Body == nil || b.Answers[2].NotAsked != GrantTokensExhausted || tokens() != 4 {
		t.Errorf("three questions for two tokens: %+v %v, %d spent", b.Answers, err, tokens())
	}
	_, err = s.Ask(t.Context(), p, id, []byte(mean(5)), "")
	wantGrantExhausted(t, "a token too many", err, g.ID, "tokens")
	if _, err := s.Ask(t.Context(), analyst, id, []byte(screening), ""); err != nil {
		t.Errorf("the holdout's own tokens: %v", err)
	}
}

// TestDebitsAreReadAgain: where the chain has another entry than the one up to which debits were added up, as after a failover to a database that lacked it, they are added up anew.
func TestDebitsAreReadAgain(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 100}, visits(t, 400, 1)).ID
	p, g := grant(t, s, NewGrant{Holdout: id, Questions: 2})
	for i := range 2 {
		if _, err := s.Ask(t.Context(), p, id, []byte(mean(i)), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.debits(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	acc := s.accounts.of(id)
	for what, lost := range map[string]func(){
		"another entry": func() { acc.debitedHead = strings.Repeat("0", len(acc.debitedHead)) },
		"no entry":      func() { acc.debitedTo += 3 },
	} {
		acc.mu.Lock()
		acc.debited = map[string]ledger.Meters{"key_of_another_chain": {"questions": 2}}
		lost()
		acc.mu.Unlock()
		_, err := s.Ask(t.Context(), p, id, []byte(mean(2)), "")
		wantGrantExhausted(t, what, err, g.ID, "questions")
	}
}

// TestGrantsRace: keys that ask at the same time spend their common grant to the last question, or token, and no further. It would notice a grant whose reservations are not counted.
func TestGrantsRace(t *testing.T) {
	for _, test := range []struct {
		set   Settings
		n     NewGrant
		meter string
	}{
		{Settings{Mechanism: "gaussian", Questions: 1000}, NewGrant{Questions: 6}, "questions"},
		{Settings{Mechanism: "guess_and_check", Questions: 1000, Tokens: 100}, NewGrant{Questions: 100, Tokens: new(int64(6))}, "tokens"},
	} {
		t.Run(test.meter, func(t *testing.T) {
			s := open(t, t.TempDir())
			id := disagree(t, s, test.set)
			test.n.Holdout = id
			_, team := grant(t, s, test.n)
			test.n.Parent = team.ID
			var answered atomic.Int64
			var group sync.WaitGroup
			for key := range 4 {
				p, _ := grant(t, s, test.n)
				for i := range 4 {
					group.Go(func() {
						_, err := s.Ask(context.Background(), p, id, []byte(mean(10*key+i)), "")
						switch {
						case err == nil:
							answered.Add(1)
						case KindOf(err) != GrantExhausted:
							t.Error(err)
						}
					})
				}
			}
			group.Wait()
			questions, tokens := spentOf(t, s, id)
			if paid := map[string]int64{"questions": questions, "tokens": tokens}[test.meter]; answered.Load() != 6 || paid != 6 {
				t.Errorf("%d answered, %d questions and %d tokens spent of a grant of 6 %s", answered.Load(), questions, tokens, test.meter)
			}
			atRest(t, s, id)
			if acc := s.accounts.of(id); len(acc.held) != 0 {
				t.Errorf("still held: %v", acc.held)
			}
		})
	}
}

// grantsInMemory is a ledger whose grants are a test's.
type grantsInMemory struct {
	ledger.Ledger
	list []ledger.Grant
}

func (l *grantsInMemory) Grants(context.Context, string) ([]ledger.Grant, error) { return l.list, nil }

// TestGrantsAddUp: whatever is asked, alone or in batches, in part or whole, answered or void, under any tree of grants: each grant's tree has spent at most its limit, and what is refused could not have been paid.
func TestGrantsAddUp(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 20_000}, visits(t, 400, 1)).ID
	c := count(t, s, id)
	kept := &grantsInMemory{Ledger: s.ledger} // a commit of their own for each grant would take minutes
	s.ledger = kept
	next := 0
	rapid.Check(t, func(t *rapid.T) {
		c.before, kept.list = nil, nil
		type node struct {
			key      Principal
			id       string
			above    []int // itself first
			limit    int64
			spent    int64
			finished bool
		}
		var tree []node
		for i := range rapid.IntRange(1, 6).Draw(t, "grants") {
			parent, limit := -1, int64(rapid.IntRange(1, 8).Draw(t, "limit"))
			if i > 0 {
				parent = rapid.IntRange(-1, i-1).Draw(t, "parent")
			}
			above := []int{i}
			if parent >= 0 {
				limit, above = min(limit, tree[parent].limit), append(above, tree[parent].above...)
			}
			n := node{key: Principal{KeyID: fmt.Sprint("key_", next, "_", i), Scope: Granted}, id: fmt.Sprint("gr_", i), above: above, limit: limit}
			g := ledger.Grant{ID: n.id, Key: n.key.KeyID, Holdout: id, Limits: ledger.Meters{"questions": limit}, Shows: "full"}
			if parent >= 0 {
				g.Parent = tree[parent].id
			}
			tree, kept.list = append(tree, n), append(kept.list, g)
		}
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			at := rapid.IntRange(0, len(tree)-1).Draw(t, "who")
			who := &tree[at]
			if rapid.IntRange(0, 9).Draw(t, "revoke") == 0 {
				kept.list[at].Revoked, who.finished = true, true
			}
			left, ended := int64(1<<40), false
			for _, i := range who.above {
				left, ended = min(left, tree[i].limit-tree[i].spent), ended || tree[i].finished
			}
			cost, partial, void := int64(rapid.IntRange(1, 5).Draw(t, "cost")), rapid.Bool().Draw(t, "partial"), rapid.IntRange(0, 4).Draw(t, "void") == 0
			var batch []string
			for range cost {
				batch, next = append(batch, mean(next)), next+1
			}
			if c.before = nil; void {
				c.before = func() error { return errors.New("the disk burns") }
			}
			b, err := s.AskBatch(context.Background(), who.key, id, batchOf(batch...), partial, "")
			paid := min(cost, left)
			switch {
			case ended:
				if paid = 0; KindOf(err) != GrantEnded {
					t.Fatalf("a grant that ended: %v", err)
				}
			case !partial && cost > left:
				if paid = 0; KindOf(err) != GrantExhausted {
					t.Fatalf("%d questions of %d: %v", cost, left, err)
				}
			case void && paid > 0:
				if KindOf(err) != Internal {
					t.Fatalf("a void: %v", err)
				}
			case err != nil:
				t.Fatal(err)
			}
			if err == nil {
				for i, a := range b.Answers {
					if (a.Body != nil) != (int64(i) < paid) || a.Body == nil && a.NotAsked != GrantQuestionsExhausted {
						t.Fatalf("item %d of %d that are paid: %+v", i, paid, a)
					}
				}
			}
			for _, i := range who.above {
				tree[i].spent += paid
			}
		}
		infos, err := s.Grants(context.Background(), admin, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			for i, n := range tree {
				if n.id == info.ID && (info.Questions.Spent != n.spent || n.spent > n.limit) {
					t.Fatalf("grant %d has spent %d, want %d, at most %d", i, info.Questions.Spent, n.spent, n.limit)
				}
			}
		}
	})
}

// methods are all ways to a holdout's facts and answers: what each says to a principal.
var methods = map[string]func(ctx context.Context, s *Service, p Principal, id string) (any, error){
	"Ask": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Ask(ctx, p, id, []byte(decided), "")
	},
	"AskBatch": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.AskBatch(ctx, p, id, batchOf(decided), false, "")
	},
	"Explain": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Explain(ctx, p, id, []byte(decided))
	},
	"Answers": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Answers(ctx, p, id, 0, 0)
	},
	"Card": func(ctx context.Context, s *Service, p Principal, id string) (any, error) { return s.Card(ctx, p, id) },
	"Budget": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Budget(ctx, p, id)
	},
	"Training": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		f, err := s.Training(ctx, p, id)
		if err == nil {
			f.Close()
		}
		return nil, err
	},
	"Features": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		f, err := s.Features(ctx, p, id)
		if err == nil {
			f.Close()
		}
		return nil, err
	},
	"Report": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Report(ctx, p, id)
	},
	"PlanReport": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.PlanReport(ctx, p, id, batchOf(mean(50)))
	},
	"Export": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return nil, s.Export(ctx, p, id, &bytes.Buffer{})
	},
	"Delete": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return nil, s.Delete(ctx, p, id)
	},
	"Retire": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Retire(ctx, p, id)
	},
	"VoidHeld": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.VoidHeld(ctx, p, id)
	},
	"Released": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Released(ctx, p, id)
	},
	"Release": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Release(ctx, p, id, aRelease(1))
	},
	"Releases": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Releases(ctx, p, id, 0)
	},
	"CloseWithReport": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.CloseWithReport(ctx, p, id, batchOf(mean(50)), "", "")
	},
	"Spenders": func(ctx context.Context, s *Service, p Principal, id string) (any, error) {
		return s.Spenders(ctx, p, id)
	},
}

// A query with a verdict, whose answer has all that an answer can have.
const decided = `{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.1}`

// elsewhere are the methods whose text is no holdout's id, or that tell everyone their own.
var elsewhere = []string{"RevokeKey", "RevokeGrant", "Grants", "CreateKey", "BindKey"}

// TestEveryWayIsGuarded: a key with the scope granted finds no holdout without a grant, and none whose grant has ended, by any method of the service that takes a holdout's id. A method that is not listed above fails the test.
func TestEveryWayIsGuarded(t *testing.T) {
	s := open(t, t.TempDir())
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	s.clock = func() time.Time { return now }
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 50, Tokens: 10, Label: "late", Features: "public"}, visits(t, 400, 1)).ID
	other := create(t, s, Settings{Questions: 50}, visits(t, 400, 2)).ID
	service := reflect.TypeFor[*Service]()
	for m := range service.Methods() {
		takesID := m.Type.NumIn() > 3 && m.Type.In(2) == reflect.TypeFor[Principal]() && m.Type.In(3) == reflect.TypeFor[string]()
		if takesID && methods[m.Name] == nil && !strings.Contains(fmt.Sprint(elsewhere), m.Name) {
			t.Errorf("%s takes a holdout's id, and no test says what it says to a key without a grant", m.Name)
		}
	}
	refused := func(what string, p Principal, want Kind) {
		t.Helper()
		for name, call := range methods {
			if _, err := call(t.Context(), s, p, id); KindOf(err) != want && KindOf(err) != Forbidden || err == nil {
				t.Errorf("%s: %s: %v", what, name, err)
			}
		}
		if cards, err := s.List(t.Context(), p); err != nil || len(cards) > 1 || len(cards) == 1 && cards[0].ID != other {
			t.Errorf("%s: listed %+v %v", what, cards, err)
		}
	}
	refused("no grant", grantee(t, s), NotFound)
	elsewhere, _ := grant(t, s, NewGrant{Holdout: other, Questions: 5})
	refused("a grant of another holdout", elsewhere, NotFound)
	if cards, err := s.List(t.Context(), elsewhere); err != nil || len(cards) != 1 {
		t.Errorf("its own holdout: %+v %v", cards, err)
	}
	works := func(what string, p Principal) {
		t.Helper()
		if _, err := s.Ask(t.Context(), p, id, []byte(decided), ""); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	expiring, _ := grant(t, s, NewGrant{Holdout: id, Questions: 5, Expires: new(now.Add(time.Hour))})
	now = now.Add(time.Hour - 1)
	works("a moment before its end", expiring)
	now = now.Add(1)
	refused("at its end", expiring, GrantEnded)

	team, g := grant(t, s, NewGrant{Holdout: id, Questions: 9})
	child, _ := grant(t, s, NewGrant{Holdout: id, Questions: 9, Parent: g.ID})
	works("a child", child)
	if err := s.RevokeGrant(t.Context(), admin, g.ID); err != nil {
		t.Fatal(err)
	}
	refused("revoked", team, GrantEnded)
	refused("a child of one that is revoked", child, GrantEnded)

	team, g = grant(t, s, NewGrant{Holdout: id, Questions: 9})
	child, _ = grant(t, s, NewGrant{Holdout: id, Questions: 9, Parent: g.ID})
	if err := s.RevokeKey(t.Context(), admin, team.KeyID); err != nil {
		t.Fatal(err)
	}
	refused("a child whose parent's key is revoked", child, GrantEnded)
}

// TestGrantEndsBeforeItsTurn: a request that waits while its grant is revoked reads no row.
func TestGrantEndsBeforeItsTurn(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 50}, visits(t, 400, 1)).ID
	p, g := grant(t, s, NewGrant{Holdout: id, Questions: 9})
	release, err := s.accounts.of(id).ground(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := s.Ask(context.Background(), p, id, []byte(mean(0)), "")
		done <- err
	}()
	await.Until(t, "the question is in line", func() bool {
		acc := s.accounts.of(id)
		acc.mu.Lock()
		defer acc.mu.Unlock()
		return len(acc.line) == 1
	})
	if err := s.RevokeGrant(t.Context(), admin, g.ID); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-done; KindOf(err) != GrantEnded {
		t.Errorf("asked before the revocation, reserved after it: %v", err)
	}
	if questions, _ := spentOf(t, s, id); questions != 0 {
		t.Errorf("%d questions spent", questions)
	}
}

// TestShown: what a key is shown is decided by its own grant, whoever asked first. Of a narrowed answer nothing else leaves by any way: no number of the recorded answer, no head of the chain, no token. It would notice a way that forgets the grant.
func TestShown(t *testing.T) {
	for _, first := range []string{"asked by the key", "asked by another"} {
		t.Run(first, func(t *testing.T) {
			s := open(t, t.TempDir())
			id := disagree(t, s, Settings{Mechanism: "guess_and_check", Questions: 50, Tokens: 10})
			value, _ := grant(t, s, NewGrant{Holdout: id, Questions: 20, Tokens: new(int64(5)), Shows: ShowsValue})
			bit, _ := grant(t, s, NewGrant{Holdout: id, Questions: 20, Tokens: new(int64(5)), Shows: ShowsBit})
			asker := map[string]Principal{"asked by another": analyst, "asked by the key": bit}[first]
			if _, err := s.Ask(t.Context(), asker, id, []byte(decided), ""); err != nil {
				t.Fatal(err)
			}
			full := ask(t, s, id, decided)
			recorded := read(t, full.Body)
			secrets := []string{recorded.Ledger.Head, text(recorded.Interval.Low), recorded.Interval.Bound, "differs", `"interval":{`, `"low":0`, `"outcome":"`, `"value_from"`, "p_value", `"tokens":1`, `"tokens":9`, `"tokens":{`}
			for p, hidden := range map[Principal][]string{value: nil, bit: {`"value":0`, text(*recorded.Value), `"verdict"`}} {
				for name, call := range methods {
					said, err := call(t.Context(), s, p, id)
					if err != nil {
						if kind := KindOf(err); kind != Forbidden && kind != NotShown && kind != NotFound {
							t.Errorf("%s: %v", name, err)
						}
						continue
					}
					b, err := json.Marshal(said)
					if err != nil {
						t.Fatal(err)
					}
					if name == "Card" { // which has the guarantee
						b, _ = json.Marshal(said.(Card).Budget)
					}
					for _, secret := range append(hidden, secrets...) {
						if bytes.Contains(b, []byte(secret)) {
							t.Errorf("%s says %q: %s", name, secret, b)
						}
					}
				}
			}
			var narrowed Narrowed
			a, err := s.Ask(t.Context(), bit, id, []byte(decided), "")
			if err != nil || json.Unmarshal(a.Body, &narrowed) != nil || narrowed.Passed == nil || !*narrowed.Passed || narrowed.Value != nil {
				t.Errorf("bit: %s %v", a.Body, err)
			}
			a, err = s.Ask(t.Context(), value, id, []byte(decided), "")
			if narrowed = (Narrowed{}); err != nil || json.Unmarshal(a.Body, &narrowed) != nil || narrowed.Passed != nil || *narrowed.Value != *recorded.Value || narrowed.Verdict != "yes" {
				t.Errorf("value: %s %v", a.Body, err)
			}
			if again := ask(t, s, id, decided); !bytes.Equal(again.Body, full.Body) {
				t.Errorf("the recorded answer changed: %s", again.Body)
			}
			// What has no bit is not asked under one, answered or not, and no half-width finds out how many tokens are spent.
			ask(t, s, id, mean(0))
			for _, query := range []string{mean(0), mean(1)} {
				_, err = s.Ask(t.Context(), bit, id, []byte(query), "")
				wantKind(t, "a question without a verdict", err, NotShown)
			}
			_, err = s.Ask(t.Context(), value, id, []byte(`{"type":"mean","of":"x","range":[0,1],"half_width":0.0001}`), "")
			wantKind(t, "a half-width", err, NotShown)
		})
	}
}

func text(number float64) string { b, _ := json.Marshal(number); return string(b) }

// TestTokensAreNotTold: a refusal for want of the holdout's tokens does not say to whom tokens are not shown how many there are.
func TestTokensAreNotTold(t *testing.T) {
	s := open(t, t.TempDir())
	id := disagree(t, s, Settings{Mechanism: "guess_and_check", Questions: 60, Tokens: 2})
	ask(t, s, id, mean(0))
	ask(t, s, id, mean(1))
	p, _ := grant(t, s, NewGrant{Holdout: id, Questions: 20, Shows: ShowsValue})
	_, err := s.Ask(t.Context(), p, id, []byte(mean(2)), "")
	var e *Error
	if !errors.As(err, &e) || e.Kind != BudgetExhausted || e.Members["questions_left"] != nil || e.Members["remaining"] != nil || strings.Contains(e.Detail, "are left;") {
		t.Errorf("%v %+v", err, e)
	}
	if _, err = s.Ask(t.Context(), analyst, id, []byte(mean(2)), ""); KindOf(err) != BudgetExhausted || !strings.Contains(err.Error(), "needs 1 tokens and 0 are left") {
		t.Errorf("to an analyst: %v", err)
	}
}

// TestWrongGrants: a grant that says something wrong is refused, with where.
func TestWrongGrants(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 50}, visits(t, 400, 1)).ID
	rounds := create(t, s, Settings{Questions: 50, Rounds: 5}, visits(t, 400, 2)).ID
	_, parent := grant(t, s, NewGrant{Holdout: id, Questions: 5, Tokens: new(int64(2)), Shows: ShowsValue})
	_, ended := grant(t, s, NewGrant{Holdout: id, Questions: 5})
	if err := s.RevokeGrant(t.Context(), admin, ended.ID); err != nil {
		t.Fatal(err)
	}
	free, _, err := s.CreateKey(t.Context(), admin, "ana", Analyst)
	if err != nil {
		t.Fatal(err)
	}
	key := grantee(t, s).KeyID
	for name, test := range map[string]struct {
		n       NewGrant
		kind    Kind
		pointer string
	}{
		"no questions":                {NewGrant{Holdout: id}, Invalid, "/questions"},
		"negative tokens":             {NewGrant{Holdout: id, Questions: 1, Tokens: new(int64(-1))}, Invalid, "/tokens"},
		"an end that is over":         {NewGrant{Holdout: id, Questions: 1, Expires: new(time.Now().Add(-time.Hour))}, Invalid, "/expires"},
		"an end out of reach":         {NewGrant{Holdout: id, Questions: 1, Expires: new(time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC))}, Invalid, "/expires"},
		"shows nothing known":         {NewGrant{Holdout: id, Questions: 1, Shows: "half"}, Invalid, "/shows"},
		"no such holdout":             {NewGrant{Holdout: "ho_x", Questions: 1}, NotFound, "/holdout"},
		"a holdout in rounds":         {NewGrant{Holdout: rounds, Questions: 1}, Conflict, ""},
		"no such key":                 {NewGrant{Holdout: id, Questions: 1, Key: "key_x"}, Invalid, "/key"},
		"a key that nothing limits":   {NewGrant{Holdout: id, Questions: 1, Key: free.ID}, Invalid, "/key"},
		"no such parent":              {NewGrant{Holdout: id, Questions: 1, Parent: "gr_x"}, Invalid, "/parent"},
		"a parent that has ended":     {NewGrant{Holdout: id, Questions: 1, Parent: ended.ID}, Invalid, "/parent"},
		"more questions than above":   {NewGrant{Holdout: id, Questions: 6, Parent: parent.ID, Shows: ShowsBit}, Invalid, "/questions"},
		"more tokens than above":      {NewGrant{Holdout: id, Questions: 5, Tokens: new(int64(3)), Parent: parent.ID, Shows: ShowsBit}, Invalid, "/tokens"},
		"shows more than above":       {NewGrant{Holdout: id, Questions: 5, Parent: parent.ID}, Invalid, "/shows"},
		"a second one for one key":    {NewGrant{Holdout: id, Questions: 5, Key: parent.Key.ID}, Conflict, ""},
		"a parent of another holdout": {NewGrant{Holdout: create(t, s, Settings{Questions: 50}, visits(t, 400, 3)).ID, Questions: 5, Parent: parent.ID, Shows: ShowsBit}, Invalid, "/parent"},
	} {
		if test.n.Key == "" {
			test.n.Key = key
		}
		_, err := s.CreateGrant(t.Context(), admin, test.n)
		var e *Error
		if !errors.As(err, &e) || e.Kind != test.kind || e.Pointer != test.pointer {
			t.Errorf("%s: %v (%+v), want kind %d at %q", name, err, e, test.kind, test.pointer)
		}
	}
	for _, p := range []Principal{analyst, {KeyID: key, Scope: Granted}} {
		_, err1 := s.CreateGrant(t.Context(), p, NewGrant{Key: key, Holdout: id, Questions: 1})
		err2 := s.RevokeGrant(t.Context(), p, parent.ID)
		_, err3 := s.Spenders(t.Context(), p, id)
		for _, err := range []error{err1, err2, err3} {
			wantKind(t, "not an admin", err, Forbidden)
		}
		if all, err := s.Grants(t.Context(), p, ""); err != nil || len(all) != 0 {
			t.Errorf("others' grants: %+v %v", all, err)
		}
	}
	wantKind(t, "an unknown grant", s.RevokeGrant(t.Context(), admin, "gr_x"), NotFound)
	if _, err := s.CreateGrant(t.Context(), admin, NewGrant{Key: key, Holdout: id, Questions: 5, Parent: parent.ID, Shows: ShowsBit, Expires: new(time.Now().Add(time.Hour))}); err != nil {
		t.Errorf("a slice of a slice: %v", err)
	}
}

// TestLeastOfAChain: what a chain of grants pays is the least that one of them has left, with what is reserved below it.
func TestLeastOfAChain(t *testing.T) {
	of := func(id, parent string, questions int64) ledger.Grant {
		return ledger.Grant{ID: id, Key: "key " + id, Parent: parent, Limits: ledger.Meters{thresholdout.MeterQuestions: questions}}
	}
	all := ledger.GrantsOf([]ledger.Grant{of("team", "", 20), of("ann", "team", 12), of("run", "ann", 5), of("bob", "team", 20)})
	spent := map[string]ledger.Meters{"key run": {"questions": 1}, "key bob": {"questions": 6}, "key ann": {"questions": 2}, "key x": {"questions": 99}}
	reserved := map[string]held{"key bob": {questions: 9}, "key ann": {questions: 1}}
	for id, want := range map[string][2]int64{"team": {11, 1}, "ann": {9, 1}, "run": {4, 1}, "bob": {11, 1}} {
		s := levels(all, id, spent, reserved)
		if left, now := s.left("questions"), s.now("questions"); left != want[0] || now != want[1] {
			t.Errorf("%s: %d left and %d now, want %v", id, left, now, want)
		}
	}
}

// TestManyGrants: what it takes to list the grants of a holdout grows with their number and not with its square: any key with a grant can ask for the list.
func TestManyGrants(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 100}, visits(t, 400, 1)).ID
	kept := &grantsInMemory{Ledger: s.ledger}
	s.ledger = kept
	const many = ledger.MaxGrants / 4
	for i := range many {
		g := ledger.Grant{ID: fmt.Sprint("gr_", i), Key: fmt.Sprint("key_", i), Holdout: id, Limits: ledger.Meters{"questions": 5}, Shows: "full"}
		if i%ledger.MaxGrantDepth != 0 {
			g.Parent = fmt.Sprint("gr_", i-1)
		}
		kept.list = append(kept.list, g)
	}
	last := Principal{KeyID: fmt.Sprint("key_", many-1), Scope: Granted}
	const each = 64 // allocations for each grant; some 30 are needed
	if took := testing.AllocsPerRun(1, func() {
		if all, err := s.Grants(t.Context(), last, ""); err != nil || len(all) != 1 || all[0].Questions.Left != 5 {
			t.Errorf("%+v %v", all, err)
		}
	}); took > each*many {
		t.Errorf("a list of %d grants took %v allocations, at most %d each are allowed", many, took, each)
	}
}
