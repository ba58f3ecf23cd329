package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// sent is a request under an Idempotency-Key, as a client sends it again and again.
type sent struct {
	name    string
	set     Settings
	single  bool
	partial bool
	most    int64
	queries []string
}

// send sends the request, which may cost so many questions.
func (r sent) send(ctx context.Context, s *Service, id string, most int64) (BatchAnswer, error) {
	var o []AskOption
	if most > 0 {
		o = append(o, MaxQuestions(most))
	}
	if r.single {
		a, err := s.Ask(ctx, analyst, id, []byte(r.queries[0]), "key", o...)
		return BatchAnswer{Answers: []BatchItem{{Body: a.Body, Replayed: a.Replayed}}, Warnings: a.Warnings, Budget: a.Budget}, err
	}
	return s.AskBatch(ctx, analyst, id, batchOf(r.queries...), r.partial, "key", o...)
}

// outcomeText is what must be the same each time: the items byte for byte, and the warnings.
func outcomeText(t *testing.T, b BatchAnswer) string {
	t.Helper()
	var text bytes.Buffer
	for _, item := range b.Answers {
		if (item.Body == nil) == (item.NotAsked == "") {
			t.Fatalf("an item is neither answered nor not asked: %+v", item)
		}
		fmt.Fprintf(&text, "%s %s\n", item.Body, item.NotAsked)
	}
	warnings, err := json.Marshal(b.Warnings)
	must(t, err)
	return text.String() + string(warnings)
}

// meters are what the ledger says is spent of a holdout.
func meters(t *testing.T, s *Service, id string) ledger.Meters {
	t.Helper()
	h, err := s.ledger.Holdout(t.Context(), id)
	must(t, err)
	return maps.Clone(h.Spent)
}

// crashed is a service on a copy of what a killed process would leave now.
func crashed(t *testing.T, dir string) *Service {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "data")
	must(t, os.CopyFS(copied, os.DirFS(dir)))
	must(t, os.Chmod(copied, 0o700)) // CopyFS keeps no modes
	for _, name := range []string{serverKeyFile, adminKeyFile} {
		must(t, os.Chmod(filepath.Join(copied, name), 0o600))
	}
	return open(t, copied)
}

func several(n int, query func(i int) string) (queries []string) {
	for i := range n {
		queries = append(queries, query(i))
	}
	return queries
}

// requestsUnderKeys are one of each kind that has an outcome of its own.
var requestsUnderKeys = []sent{
	{name: "one question", set: Settings{}, single: true, queries: []string{conditional}},
	{name: "a last question", set: Settings{Questions: 1}, single: true, queries: []string{mean(0)}},
	{name: "a search", set: Settings{}, single: true, queries: []string{`{"type":"median","of":"x","range":[0,1],"resolution":0.125}`}, most: 50},
	{name: "a check", set: Settings{Mechanism: "guess_and_check", Tokens: 5}, single: true, queries: []string{`{"type":"mean","of":"x","range":[0,1],"guess":0.9}`}},
	{name: "a promise", set: Settings{Tokens: 2}, single: true, queries: []string{`{"type":"fraction","of":"x < 0.5","promise":{"at_most":0.01}}`}},
	{name: "a submission", set: Settings{Mechanism: "ladder", Questions: 9}, single: true, queries: []string{submission(0.5)}},
	{name: "a batch", set: Settings{}, queries: []string{mean(0), mean(1), mean(0), conditional}},
	{name: "a batch in part", set: Settings{Questions: 4}, partial: true, queries: []string{mean(0), conditional, mean(1), conditional, mean(2)}},
	{name: "a batch whose tokens end", set: Settings{Mechanism: "thresholdout", Tokens: 3, Threshold: 1e-6, Sigma: 0.2}, queries: several(40, mean)},
	{name: "wrong guesses", set: Settings{Mechanism: "guess_and_check", Tokens: 2}, queries: several(9, func(i int) string {
		return fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d],"guess":%v}`, i+2, float64(i)+1.5)
	})},
	{name: "measured answers, until tokens end", set: Settings{Mechanism: "guess_and_check", Tokens: 3, Questions: 300}, queries: several(5, func(i int) string {
		return fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d],"measure":true}`, i+2)
	}), most: 50},
	{name: "narrow half-widths", set: Settings{Mechanism: "guess_and_check", Tokens: 2}, queries: []string{mean(0), `{"type":"mean","of":"x","range":[0,1],"guess":0,"half_width":1e-9}`}},
	{name: "a round", set: Settings{Questions: 40, Rounds: 4}, queries: several(10, mean)},
	{name: "a round that is not full", set: Settings{Questions: 40, Rounds: 4}, single: true, queries: []string{mean(0)}},
	{name: "more than a round, in part", set: Settings{Questions: 40, Rounds: 4}, partial: true, queries: several(25, mean)},
	{name: "in part, within max_questions", set: Settings{}, partial: true, most: 5, queries: several(20, mean)},
	{name: "in part, too dear without max_questions", set: Settings{Questions: 39}, partial: true, queries: []string{mean(0), byClinic, mean(1)}},
	{name: "in part, all too dear", set: Settings{Questions: 39}, partial: true, most: 1, queries: []string{byClinic, conditional}},
	{name: "slices, in part", set: Settings{Mechanism: "split", Questions: 6}, partial: true, queries: several(9, mean)},
}

// TestOneOutcome sends every kind of request again and again under its key, after every way to lose its reply: on its way, with the server's end, by
// a crash, and by a commit that fails. It is one outcome, byte for byte, at one price; a repetition that may cost more is the same. It would notice a part
// of a batch that is asked on, a second round that is closed, a max_questions that is spent twice, a reason that changes, and a warning that is lost.
func TestOneOutcome(t *testing.T) {
	losses := map[string]func(t *testing.T, s *Service, dir, id string, r sent) (*Service, BatchAnswer){
		"on its way": func(t *testing.T, s *Service, _, id string, r sent) (*Service, BatchAnswer) {
			b, err := r.send(t.Context(), s, id, r.most)
			must(t, err)
			return s, b
		},
		"the server ends": func(t *testing.T, s *Service, dir, id string, r sent) (*Service, BatchAnswer) {
			b, err := r.send(t.Context(), s, id, r.most)
			must(t, errors.Join(err, s.Close()))
			return open(t, dir), b
		},
		"a crash": func(t *testing.T, s *Service, dir, id string, r sent) (*Service, BatchAnswer) {
			b, err := r.send(t.Context(), s, id, r.most)
			must(t, err)
			return crashed(t, dir), b
		},
		"no commit": func(t *testing.T, s *Service, dir, id string, r sent) (*Service, BatchAnswer) {
			plantFaults(t, dir)
			hit := false
			setFault(t, func(table string, _ int64) error {
				if table != "idempotency" {
					return nil
				}
				hit = true
				return errors.New("planted: the disk is full")
			})
			_, err := r.send(t.Context(), s, id, r.most)
			setFault(t, nil)
			wantKind(t, "without a commit", err, Unavailable)
			if !hit {
				t.Fatal("nothing was to be recorded of the key")
			}
			healthy(t, s)
			b, err := r.send(t.Context(), s, id, r.most)
			must(t, err)
			return s, b
		},
	}
	for i, r := range requestsUnderKeys {
		for _, loss := range slices.Sorted(maps.Keys(losses)) {
			t.Run(r.name+", "+loss, func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir)
				id := create(t, s, r.set, visits(t, 2000, uint64(300+i))).ID
				s, first := losses[loss](t, s, dir, id, r)
				want, spent := outcomeText(t, first), meters(t, s, id)
				asked, paid := int64(0), map[string]bool{}
				for _, item := range first.Answers {
					if item.Body != nil && !paid[string(item.Body)] {
						paid[string(item.Body)] = true
						asked += read(t, item.Body).Cost.Questions
					}
				}
				if rounds := r.set.Rounds; spent["questions"] < asked || rounds == 0 && spent["questions"] != asked || rounds > 0 && spent["rounds"] != 1 {
					t.Errorf("%v is spent for answers of %d questions", spent, asked)
				}
				if r.most > 0 && asked > r.most {
					t.Errorf("%d questions were asked, at most %d", asked, r.most)
				}
				for _, most := range []int64{r.most, 0, 1, 1000} {
					again, err := r.send(t.Context(), s, id, most)
					if err != nil {
						t.Fatalf("sent again with max_questions %d: %v", most, err)
					}
					if got := outcomeText(t, again); got != want {
						t.Errorf("sent again with max_questions %d:\n%s\nthe first time:\n%s", most, got, want)
					}
					if now := meters(t, s, id); !now.Equal(spent) {
						t.Errorf("sent again with max_questions %d, %v is spent after %v", most, now, spent)
					}
					if whole := !slices.ContainsFunc(again.Answers, func(b BatchItem) bool { return b.NotAsked != "" }); !again.Repeated && !r.single && !whole {
						t.Error("it does not say that it is what was recorded")
					}
				}
			})
		}
	}
}

// TestBrokenOffBetweenPieces kills the server between two commits of a large batch. Sent again, the request is what the first time had chosen: the rest is
// asked within what the first time might cost, and in rounds, where it would close a second one, it is not asked, for good. Others then have the budget
// that is left. It would notice a rest that is asked in a round of its own, a max_questions that begins anew, and a rest that is forgotten.
func TestBrokenOffBetweenPieces(t *testing.T) {
	const n = 300 // two pieces
	for _, c := range []struct {
		sent
		answered int
		reasons  map[string]int
		left     Meter // questions
	}{
		{sent{name: "a batch", set: Settings{Questions: 400}, queries: several(n, mean)}, n, map[string]int{}, Meter{Left: 100, Of: 400}},
		{sent{name: "within max_questions", set: Settings{Questions: 400}, partial: true, most: 280, queries: several(n, mean)}, 280, map[string]int{PriceUnconfirmed: 20}, Meter{Left: 120, Of: 400}},
		{sent{name: "in rounds", set: Settings{Questions: 700, Rounds: 2}, queries: several(n, mean)}, pieceQuestions, map[string]int{Interrupted: n - pieceQuestions}, Meter{Left: 350, Of: 700}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			id := create(t, s, c.set, visits(t, 2000, 400)).ID
			plantFaults(t, dir)
			var after *Service
			setFault(t, func(table string, seq int64) error { // in the second piece, with the first one durable
				if table == "entries" && seq == pieceQuestions+1 && after == nil {
					after = crashed(t, dir)
				}
				return nil
			})
			_, err := c.send(t.Context(), s, id, c.most)
			setFault(t, nil)
			must(t, err)
			if spent := meters(t, after, id)["questions"]; spent != pieceQuestions {
				t.Fatalf("the crash leaves %d questions spent, want those of one piece", spent)
			}
			var want string
			for i, most := range []int64{1000, 0, c.most} {
				b, err := c.send(t.Context(), after, id, most)
				must(t, err)
				answered, reasons := 0, map[string]int{}
				for _, item := range b.Answers {
					if item.NotAsked == "" {
						answered++
					} else {
						reasons[item.NotAsked]++
					}
				}
				if answered != c.answered || !maps.Equal(reasons, c.reasons) || b.Budget.Questions != c.left {
					t.Errorf("sent %d times: %d answered, not asked %v, budget %+v", i+2, answered, reasons, b.Budget)
				}
				if got := outcomeText(t, b); want != "" && got != want {
					t.Errorf("sent %d times, it is another outcome", i+2)
				} else {
					want = got
				}
			}
			if c.set.Rounds > 0 {
				b, err := after.AskBatch(t.Context(), analyst, id, batchOf(mean(n+1)), true, "another key")
				must(t, err)
				if b.Answers[0].Body == nil || *b.Budget.Rounds != (Meter{Left: 0, Of: 2}) {
					t.Errorf("the next round: %+v", b)
				}
			}
			must(t, after.Close())
			if _, err := Verify(t.Context(), after.dir, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBrokenOffBetweenWaves: a caller leaves while the first wave of a batch is read. Sent again, the rest is asked, and what the first time did not choose is not.
func TestBrokenOffBetweenWaves(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 2}, visits(t, 3000, 1)).ID
	c := count(t, s, id)
	ctx, leave := context.WithCancel(t.Context())
	c.before = func() error { leave(); return nil }
	r := sent{partial: true, most: 6, queries: several(9, mean)}
	_, err := r.send(ctx, s, id, r.most)
	wantKind(t, "a caller who has left", err, Unavailable)
	atRest(t, s, id)
	c.before = nil
	if spent := meters(t, s, id)["questions"]; spent == 0 || spent >= 6 {
		t.Fatalf("%d questions are spent, want those of a wave", spent)
	}
	b, err := r.send(t.Context(), s, id, 100)
	must(t, err)
	for i, item := range b.Answers {
		if (item.Body != nil) != (i < 6) {
			t.Errorf("item %d: %+v", i, item)
		}
	}
	if spent := meters(t, s, id)["questions"]; spent != 6 {
		t.Errorf("%d questions are spent, at most 6", spent)
	}
}

// TestOutcomesOfDamagedHoldouts: what was recorded of a request is replayed where nothing new can be asked, with what was not asked.
func TestOutcomesOfDamagedHoldouts(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 2}, visits(t, 500, 1)).ID
	r := sent{partial: true, queries: several(4, mean)}
	first, err := r.send(t.Context(), s, id, 0)
	must(t, errors.Join(err, s.Close()))
	must(t, os.WriteFile(filepath.Join(dir, holdoutsDir, id, holdoutDir, columnsOf), nil, 0o600))
	s = open(t, dir)
	again, err := r.send(t.Context(), s, id, 0)
	must(t, err)
	if got, want := outcomeText(t, again), outcomeText(t, first); got != want || !again.Repeated {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.queries = several(5, mean)
	_, err = r.send(t.Context(), s, id, 0)
	wantKind(t, "another request under the key", err, IdempotencyMismatch)
}

// TestOutcomesToCome: an outcome that a later program wrote is refused, and not taken for none.
func TestOutcomesToCome(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 2}, visits(t, 500, 1)).ID
	r := sent{partial: true, queries: several(4, mean)}
	_, err := r.send(t.Context(), s, id, 0)
	must(t, err)
	known, ok, err := s.ledger.Idempotency(t.Context(), analyst.KeyID, "key")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	known.Outcome = `{"version":2}`
	must(t, s.ledger.Update(t.Context(), id, func(tx *ledger.Tx) error { return tx.Idempotent(known) }))
	_, err = r.send(t.Context(), s, id, 0)
	wantKind(t, "an outcome of another version", err, Damaged)
	if !errors.Is(err, ledger.ErrVersion) {
		t.Error(err)
	}
}
