package holdout

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
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
