package holdout

//holdoutd:race

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/internal/await"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// These tests hold the class: past the first row of the holdout there is no way back. Whatever is refused is refused before a row is read,
// and whatever was read is debited.

// counted is a holdout part that counts what is read of it, and can be made to fail or to wait.
type counted struct {
	engine.MomentSource
	functions atomic.Int64 // row functions that were summed
	before    func() error // called before rows are read; nil: nothing
}

func (c *counted) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	sums, err := c.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

func (c *counted) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	if c.before != nil {
		if err := c.before(); err != nil {
			return rowfn.Sums{}, err
		}
	}
	c.functions.Add(int64(len(batch.Functions)))
	return c.MomentSource.Moments(ctx, batch, from, to)
}

// count puts a counter before the rows of a holdout.
func count(t *testing.T, s *Service, id string) *counted {
	t.Helper()
	h, release, err := s.tables.take(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c := &counted{MomentSource: h.holdout}
	h.holdout = c
	return c
}

// spentOf is what the ledger has of a holdout.
func spentOf(t *testing.T, s *Service, id string) (questions, tokens int64) {
	t.Helper()
	h, err := s.ledger.Holdout(t.Context(), id)
	questions, tokens = h.Spent["questions"], h.Spent["tokens"]
	if err != nil {
		t.Fatal(err)
	}
	return questions, tokens
}

// mechanisms of which each has its own way through the stages.
var staged = []Settings{
	{Mechanism: "gaussian", Questions: 60},
	{Mechanism: "gaussian", Questions: 60, Rounds: 12},
	{Mechanism: "guess_and_check", Questions: 60, Tokens: 40},
	{Mechanism: "thresholdout", Questions: 60, Tokens: 40},
	{Mechanism: "split", Questions: 60},
	{Mechanism: "ladder", Questions: 60},
}

func (s Settings) label() string { return fmt.Sprintf("%s-%d", s.Mechanism, s.Rounds) }

// newQuestion is a question that the mechanism takes, another for each i.
func newQuestion(set Settings, i int) string {
	if set.Mechanism == "ladder" {
		return submission(0.9 - float64(i)/1000)
	}
	return mean(i)
}

// TestFailuresAreDebited: an error, a panic or a refusal of the ledger at any point after the first row was about to be read is debited,
// under every mechanism; it is a void entry in the ledger, the reply says nothing of the cause, and the next question is answered.
// It would notice a rollback, a refund, and a reservation that is lost or never given back.
func TestFailuresAreDebited(t *testing.T) {
	cause := errors.New("the cause, which holds 4711 from a row")
	for _, set := range staged {
		t.Run(set.label(), func(t *testing.T) {
			s := open(t, t.TempDir())
			card := create(t, s, set, visits(t, 3000, 1))
			id, c := card.ID, count(t, s, card.ID)
			h, release, err := s.tables.take(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			noise := h.session.Noise
			next := 0
			faults := []struct {
				name string
				set  func()
			}{
				{"the scan fails", func() { c.before = func() error { return cause } }},
				{"the scan panics", func() { c.before = func() error { panic(cause) } }},
				{"the sums are not those of the plan", func() { h.holdout = wrongSums{c} }},
				{"the answer panics", func() { h.session.Noise = func(string, int) thresholdout.Noise { panic(cause) } }},
				{"the answer cannot be written", func() {
					c.before = func() error { h.session.Holdout = strings.Repeat("h", ledger.MaxCoreBytes); return nil }
				}},
			}
			for _, f := range faults {
				if f.name == "the answer panics" && (set.Mechanism != "gaussian" || set.Rounds > 0) {
					continue // no noise is drawn for every question
				}
				before, _ := spentOf(t, s, id)
				f.set()
				_, err := s.Ask(t.Context(), analyst, id, []byte(newQuestion(set, next)), "")
				h.holdout, c.before, h.session.Noise, h.session.Holdout = c, nil, noise, id
				wantKind(t, f.name, err, Internal)
				var ours *Error
				if !errors.As(err, &ours) || ours.Members["void"] != true || strings.Contains(ours.Detail, "4711") {
					t.Errorf("%s: %+v", f.name, ours)
				}
				if after, _ := spentOf(t, s, id); after != before+1 {
					t.Errorf("%s: %d questions spent, then %d", f.name, before, after)
				}
				// The same question can be asked again, and is paid again.
				a := ask(t, s, id, newQuestion(set, next))
				if after, _ := spentOf(t, s, id); a.Replayed || after != before+2 {
					t.Errorf("%s: asked again: %v, %d questions spent after %d", f.name, a.Replayed, after, before)
				}
				next++
			}
			// In a batch what was read with the failing question is void with it.
			before, _ := spentOf(t, s, id)
			c.before = func() error { return cause }
			_, err = s.AskBatch(t.Context(), analyst, id, batchOf(newQuestion(set, 100), newQuestion(set, 101), newQuestion(set, 102)), false, "")
			c.before = nil
			wantKind(t, "a batch", err, Internal)
			if after, _ := spentOf(t, s, id); after != before+3 {
				t.Errorf("a batch: %d questions spent, then %d", before, after)
			}
		})
	}
}

// wrongSums loses the last sum.
type wrongSums struct{ engine.MomentSource }

func (w wrongSums) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	sums, err := w.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

func (w wrongSums) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	sums, err := w.MomentSource.Moments(ctx, batch, from, to)
	for i := range sums.Values {
		sums.Values[i] = math.MaxInt64 // more than every unit can have
	}
	return sums, err
}

// TestLedgerFailsAfterTheScan: while the ledger cannot commit, the asker is told to come back, and what was read stays reserved: it is
// debited and recorded as soon as the ledger can, without anybody asking again, and asking again is a replay.
func TestLedgerFailsAfterTheScan(t *testing.T) {
	for _, set := range staged {
		t.Run(set.label(), func(t *testing.T) {
			s := open(t, t.TempDir())
			id := seen(t, s, create(t, s, set, visits(t, 3000, 1))).ID // the first look needs the ledger, too
			var broken atomic.Bool
			if err := s.ledger.Close(); err != nil {
				t.Fatal(err)
			}
			secret, _, err := loadServerSecret(s.dir, true)
			if err != nil {
				t.Fatal(err)
			}
			s.ledger, err = sqlite.Open(t.Context(), s.path(ledgerFile), ledger.Options{Key: secret.derive("ledger"), Fault: func(step string) error {
				if broken.Load() && step == "commit" {
					return errors.New("the disk is gone")
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			first := newQuestion(set, 0)
			broken.Store(true)
			_, err = s.Ask(t.Context(), analyst, id, []byte(first), "")
			wantKind(t, "no commit", err, Unavailable)
			if n, _ := spentOf(t, s, id); n != 0 {
				t.Fatalf("%d questions were spent without a commit", n)
			}
			broken.Store(false)
			await.Until(t, "what was read is debited", func() bool { n, _ := spentOf(t, s, id); return n == 1 })
			atRest(t, s, id) // the commit is durable a moment before the account knows
			if a := ask(t, s, id, first); !a.Replayed || a.Budget.Questions.Left != 59 && set.Rounds == 0 {
				t.Errorf("asked again: %v, %+v", a.Replayed, a.Budget)
			}
			if a := ask(t, s, id, newQuestion(set, 1)); a.Replayed {
				t.Error("another question is a replay")
			}
		})
	}
}

// TestRaceForTheLastQuestion: of many who ask for the last question one is answered and the others are refused, and rows were read once.
// It would notice a budget that is looked at before the scan and debited after it.
func TestRaceForTheLastQuestion(t *testing.T) {
	for _, set := range staged {
		t.Run(set.label(), func(t *testing.T) {
			set.Questions = 1
			summed := int64(1)
			if set.Rounds > 0 {
				set.Rounds = 1
			}
			if set.Mechanism == "gaussian" || set.Mechanism == "split" {
				summed = 2 // an answer that is read by its own sample is read by the function's square beside
			}
			set.Tokens = min(set.Tokens, 1)
			s := open(t, t.TempDir())
			id := create(t, s, set, visits(t, 3000, 1)).ID
			c := count(t, s, id)
			c.before = func() error { time.Sleep(20 * time.Millisecond); return nil } // others come meanwhile
			var answered, refused atomic.Int64
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					_, err := s.Ask(context.Background(), analyst, id, []byte(newQuestion(set, i)), "")
					switch {
					case err == nil:
						answered.Add(1)
					case KindOf(err) == BudgetExhausted:
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			group.Wait()
			if answered.Load() != 1 || refused.Load() != 7 || c.functions.Load() != summed {
				t.Errorf("%d answered, %d refused, %d row functions summed", answered.Load(), refused.Load(), c.functions.Load())
			}
		})
	}
}

// TestKeyIsReserved: while a question is in flight under an Idempotency-Key, another request under the same key is refused before it is read, a
// replay too, and the question is answered and paid.
func TestKeyIsReserved(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "gaussian", Questions: 10}, visits(t, 3000, 1)).ID
	ask(t, s, id, mean(0))
	c := count(t, s, id)
	reading, goOn := make(chan struct{}), make(chan struct{})
	c.before = sync.OnceValue(func() error { close(reading); <-goOn; return nil })
	result := make(chan error)
	go func() {
		_, err := s.Ask(context.Background(), analyst, id, []byte(mean(1)), "k")
		result <- err
	}()
	<-reading
	_, err := s.Ask(t.Context(), analyst, id, []byte(mean(0)), "k")
	wantKind(t, "a replay under the key in flight", err, IdempotencyMismatch)
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(2)), "k")
	wantKind(t, "another question under the key in flight", err, IdempotencyMismatch)
	close(goOn)
	if err := <-result; err != nil {
		t.Errorf("the question that had the key: %v", err)
	}
	if n, _ := spentOf(t, s, id); n != 2 || c.functions.Load() != 1 {
		t.Errorf("%d questions spent, %d row functions summed", n, c.functions.Load())
	}
}

// TestNotAskedIsNotRead: what a batch does not ask is not read: a half-width that cannot pass, and what comes behind the last token.
// It would notice items that are summed with the others and dropped afterwards.
func TestNotAskedIsNotRead(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 2000, Tokens: 2}, visits(t, 3000, 1)).ID
	c := count(t, s, id)
	narrow := func(i int) string {
		return fmt.Sprintf(`{"type":"mean","of":"chart == %d.0 ? x : 0","range":[0,1],"guess":0,"half_width":1e-9}`, i)
	}
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(narrow(1), narrow(2), mean(0), narrow(3)), false, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{HalfWidthTooNarrow, HalfWidthTooNarrow, "", HalfWidthTooNarrow} {
		if b.Answers[i].NotAsked != want {
			t.Errorf("item %d: %q", i, b.Answers[i].NotAsked)
		}
	}
	if b.Budget.Questions.Left != 1999 || c.functions.Load() != 1 {
		t.Errorf("%+v, %d row functions summed", b.Budget, c.functions.Load())
	}
	// Wrong guesses take both tokens; at most two questions are read at a time, so that none is read that cannot be asked.
	var wrong []json.RawMessage
	for i := range 20 {
		wrong = append(wrong, json.RawMessage(fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d],"guess":%v}`, i+2, float64(i)+1.5)))
	}
	c.functions.Store(0)
	if b, err = s.AskBatch(t.Context(), analyst, id, wrong, false, ""); err != nil {
		t.Fatal(err)
	}
	answered := int64(0)
	for _, item := range b.Answers {
		if item.NotAsked == "" {
			answered++
		}
	}
	if b.Budget.Tokens.Left != 0 || answered != 2 || c.functions.Load() != answered || b.Budget.Questions.Left != 1999-answered {
		t.Errorf("%d answered, %d row functions summed, %+v %+v", answered, c.functions.Load(), b.Budget, b.Budget.Tokens)
	}
}

// TestSizesAreKnownBeforehand: an answer that could not be recorded because of the names in it is refused before a row is read, and what
// could is answered, at the edge too. It would notice a bound that leaves out the names of few row functions, or the one that is
// selected, or a number that can be longer.
func TestSizesAreKnownBeforehand(t *testing.T) {
	for _, set := range staged[:2] { // which release vectors and selections, and one by one
		set.Mechanism = []string{"gaussian", "split"}[set.Rounds/12]
		set.Rounds, set.Questions = 0, 200
		t.Run(set.label(), func(t *testing.T) {
			s := open(t, t.TempDir(), func(o *Options) { o.Limits.QueryBytes = 16 << 20 })
			id := create(t, s, set, visits(t, 3000, 1)).ID
			c := count(t, s, id)
			answered, refused := 0, 0
			for _, size := range []int{ledger.MaxCoreBytes - 3000, ledger.MaxCoreBytes - 1700, ledger.MaxCoreBytes - 900, ledger.MaxCoreBytes - 300} {
				for _, query := range []string{
					`{"type":"groups","of":"x","range":[0,1],"by":"clinic","values":["clinic 1","` + strings.Repeat("p", size) + `"]}`,
					`{"type":"argmax","of":[` + mean(1) + `,` + mean(1) + `],"names":["` + strings.Repeat("p", size/2) + `","q"]}`,
				} {
					spent, _ := spentOf(t, s, id)
					c.functions.Store(0)
					_, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
					after, _ := spentOf(t, s, id)
					switch {
					case err == nil && after > spent:
						answered++
					case KindOf(err) == TooLarge && after == spent && c.functions.Load() == 0:
						refused++
					default:
						t.Errorf("%d bytes: %v, %d questions spent, then %d, %d row functions summed", size, err, spent, after, c.functions.Load())
					}
				}
			}
			if answered == 0 || refused == 0 {
				t.Errorf("%d answered, %d refused: the edge was not met", answered, refused)
			}
		})
	}
}

// TestVoidIsInTheBooks: a void is an entry of the chain like any other, and the export verifies.
func TestVoidIsInTheBooks(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "gaussian", Questions: 10}, visits(t, 3000, 1)).ID
	c := count(t, s, id)
	c.before = func() error { return errors.New("a fault") }
	if _, err := s.Ask(t.Context(), analyst, id, []byte(mean(1)), ""); err == nil {
		t.Fatal("a failing scan was answered")
	}
	c.before = nil
	ask(t, s, id, mean(1))
	var export strings.Builder
	if err := s.Export(t.Context(), admin, id, &export); err != nil {
		t.Fatal(err)
	}
	report, err := ledger.VerifyExport(strings.NewReader(export.String()))
	if err != nil || report.Answers != 1 || report.Voids != 1 || report.Spent["questions"] != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	page, err := s.Answers(t.Context(), admin, id, 0, 10)
	if err != nil || len(page.Answers) != 1 {
		t.Errorf("the history has %d answers, %v", len(page.Answers), err)
	}
}

// TestAsManyTokensAsThereAre: the shares of a histogram are told as far as the tokens last, which may be all that are left. Whatever stands
// beside it in a batch, and in which order, is answered or not asked for want of tokens: nothing is read that cannot be answered any more,
// and nothing is void. It would notice a wave in which a question is read behind one that may take its tokens.
func TestAsManyTokensAsThereAre(t *testing.T) {
	shares := func(i int) string { // each disagrees with the training part half of the time
		return fmt.Sprintf(`{"type":"histogram","of":"x","edges":[0,0.%d,0.9]}`, i+100)
	}
	next, behind := 0, 0
	for _, tokens := range []int64{2, 5, 8, 12} {
		for _, kinds := range []string{"sm", "ss", "msmm"} {
			s := open(t, t.TempDir())
			id := create(t, s, Settings{Mechanism: "thresholdout", Questions: 100, Tokens: tokens, Threshold: 1e-6, Sigma: 0.2}, visits(t, 1000, 3)).ID
			c := count(t, s, id)
			h, release, err := s.tables.take(t.Context(), id)
			must(t, err)
			defer release()
			var batch []string
			for _, kind := range kinds {
				next++
				batch = append(batch, map[rune]string{'s': shares(next), 'm': mean(next)}[kind])
			}
			var explained []Explanation
			for _, query := range batch {
				e, err := s.Explain(t.Context(), analyst, id, []byte(query))
				must(t, err)
				explained = append(explained, e)
			}
			b, err := s.AskBatch(t.Context(), analyst, id, batchOf(batch...), false, "")
			if err != nil {
				t.Errorf("%d tokens, %s: %v", tokens, kinds, err)
				continue
			}
			paid, summed := Cost{}, int64(0)
			for i, item := range b.Answers {
				switch {
				case item.NotAsked == TokensExhausted && item.Body == nil && b.Budget.Tokens.Left == 0:
				case item.NotAsked == "" && item.Body != nil:
					cost := read(t, item.Body).Cost
					paid.Questions, paid.Tokens = paid.Questions+cost.Questions, paid.Tokens+cost.Tokens
					q, err := s.parse(t.Context(), []byte(batch[i]), nil, nil)
					must(t, err)
					asked, err := h.question(t.Context(), q)
					must(t, err)
					summed += int64(len(asked.Plan.Pass(false).Functions))
					if e := explained[i]; e.Cost.Tokens != min(int64(asked.Plan.Numbers()), tokens) { // it can take no more than there are
						t.Errorf("%s: explained at %+v", batch[i], e.Cost)
					}
					if i > 0 && strings.Contains(kinds[:i], "s") {
						behind++
					}
				default:
					t.Errorf("%d tokens, %s: item %d: %+v", tokens, kinds, i, item)
				}
			}
			if questions, spent := spentOf(t, s, id); questions != paid.Questions || spent != paid.Tokens || spent > tokens {
				t.Errorf("%d tokens, %s: the answers cost %+v, and %d questions and %d tokens were spent", tokens, kinds, paid, questions, spent)
			}
			if got := c.functions.Load(); got != summed {
				t.Errorf("%d tokens, %s: %d row functions summed, %d answered", tokens, kinds, got, summed)
			}
		}
	}
	if behind == 0 {
		t.Error("nothing was answered behind a histogram")
	}
}
