package holdout

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
)

// TestLargeBatchIsRefused: a batch whose answers, or whose memory, would be too much is refused before a row is read, says how to ask
// instead, costs nothing and gives its place back. Without either bound one batch of histograms took gigabytes.
func TestLargeBatchIsRefused(t *testing.T) {
	var edges []string
	for i := range 101 {
		edges = append(edges, fmt.Sprint(float64(i)/100))
	}
	var batch []json.RawMessage
	for i := range 40 {
		batch = append(batch, json.RawMessage(fmt.Sprintf(`{"type":"histogram","of":"x + %d.0","edges":[%s]}`, i, strings.Join(edges, ","))))
	}
	for name, limit := range map[string]func(*Options){
		"are given at once":    func(o *Options) { o.Limits.AnswerBytes = 200_000 },
		"are given to one; as": func(o *Options) { o.Limits.Memory = minMemory; o.Limits.Questions = 2 },
	} {
		s := open(t, t.TempDir(), limit)
		card := create(t, s, Settings{Mechanism: "gaussian", Holdout: 0.5, Questions: 100_000}, visits(t, 400, 12))
		_, err := s.AskBatch(t.Context(), analyst, card.ID, append(batch, batches(batch)...), false, "")
		if KindOf(err) != TooLarge || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := s.Budget(t.Context(), analyst, card.ID); err != nil || b.Questions.Left != 100_000 || s.Working() != 0 {
			t.Errorf("%s: %+v, %v, %d places taken", name, b, err, s.Working())
		}
		ask(t, s, card.ID, `{"type":"fraction","of":"x > 0.5"}`)
	}
}

// batches is many more of them, each another query.
func batches(batch []json.RawMessage) (more []json.RawMessage) {
	for i, q := range batch {
		for j := range 5 {
			more = append(more, json.RawMessage(strings.Replace(string(q), "x + ", fmt.Sprintf("x + %d.5 + ", 100*(i+1)+j), 1)))
		}
	}
	return more
}

// TestLongAnswersAreRefusedBeforeCompiling: a batch whose queries say by themselves that its answers are too long is refused before one of
// them is compiled, and one of which compiling tells it before the last one is. Plans take a thousand times the memory of a query.
func TestLongAnswersAreRefusedBeforeCompiling(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.AnswerBytes = 20_000 })
	card := create(t, s, Settings{Mechanism: "gaussian", Holdout: 0.5, Questions: 1000}, visits(t, 400, 12))
	h, release, err := s.tables.take(t.Context(), card.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	refused := func(form string) (compiled int) {
		t.Helper()
		var parsed []*queries.Query
		for i := range 20 {
			q, err := queries.Parse(fmt.Appendf(nil, form, i))
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, q)
		}
		_, distinct, err := s.distinctQuestions(t.Context(), card.ID, parsed)
		must(t, err)
		a := admission{service: s, holdout: h, principal: analyst, questions: distinct}
		if _, err := a.recall(t.Context()); KindOf(err) != TooLarge || !strings.Contains(err.Error(), "are given at once") {
			t.Fatal(err)
		}
		for _, q := range distinct {
			if q.asked != nil {
				compiled++
			}
		}
		return compiled
	}
	if n := refused(`{"type":"histogram","of":"x + %d.0","edges":[0,1,2,3,4,5,6,7,8,9,10]}`); n != 0 {
		t.Errorf("%d histograms were compiled to see that their answers are too long", n)
	}
	if n := refused(`{"type":"fraction","of":"x > %d.5"}`); n == 0 || n == 20 {
		t.Errorf("%d of 20 fractions were compiled to see that their answers are too long", n)
	}
}
