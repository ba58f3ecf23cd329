package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestLabelOfTheCard: a query about a model that names no label has the holdout's, alone, in a batch, inside of another and in explain. It is the same question as the one that names it, so that one of them
// is a replay. Where the owner named none it is missing, as ever. A label that does not reach the canonical form is paid twice; one that reaches only some queries is refused.
func TestLabelOfTheCard(t *testing.T) {
	s := open(t, t.TempDir())
	labelled := create(t, s, holdout.Settings{Name: "labelled", Questions: 100, Mechanism: "gaussian", Label: "late"}, scores(t, 0, 2000, 0))
	other := create(t, s, holdout.Settings{Name: "other", Questions: 100, Mechanism: "gaussian"}, scores(t, 9000, 2000, 0))
	for _, c := range []struct{ without, with string }{
		{`{"type":"accuracy","prediction":"x > 3"}`, `{"type":"accuracy","label":"late","prediction":"x > 3"}`},
		{`{"type":"loss","loss":"brier","prediction":"x / 200"}`, `{"type":"loss","loss":"brier","prediction":"x / 200","label":"late"}`},
		{`{"type":"auc","prediction":"x"}`, `{"type":"auc","prediction":"x","label":"late"}`},
		{`{"type":"confusion","prediction":"x > 3","null":"skip"}`, `{"type":"confusion","prediction":"x > 3","label":"late","where":"x != null && late != null"}`},
		{`{"type":"screen","features":["x"],"range":[0,200]}`, `{"type":"screen","features":["x"],"range":[0,200],"label":"late"}`},
		{`{"type":"compare","a":{"type":"accuracy","prediction":"x > 3"},"b":{"type":"accuracy","prediction":"x > 9"}}`,
			`{"type":"compare","a":{"type":"accuracy","label":"late","prediction":"x > 3"},"b":{"type":"accuracy","label":"late","prediction":"x > 9"}}`},
	} {
		with, err := s.Explain(t.Context(), analyst, labelled.ID, []byte(c.with))
		if err != nil {
			t.Fatal(c.with, err)
		}
		if e, err := s.Explain(t.Context(), analyst, labelled.ID, []byte(c.without)); err != nil || e.Query != with.Query || !bytes.Equal(e.Canonical, with.Canonical) {
			t.Errorf("explain %s: %s, %v", c.without, e.Canonical, err)
		}
		first := ask(t, s, labelled.ID, c.without)
		if again := ask(t, s, labelled.ID, c.with); !again.Replayed || !bytes.Equal(again.Body, first.Body) {
			t.Errorf("%s is another question than %s", c.without, c.with)
		}
		b, err := s.AskBatch(context.Background(), analyst, labelled.ID, []json.RawMessage{json.RawMessage(c.without), json.RawMessage(c.with)}, false, "")
		if err != nil || !b.Answers[0].Replayed || !b.Answers[1].Replayed {
			t.Errorf("%s in a batch: %+v, %v", c.without, b, err)
		}
		if _, err := s.Ask(t.Context(), analyst, other.ID, []byte(c.without), ""); holdout.KindOf(err) != holdout.Invalid || !strings.Contains(err.Error(), `"label" is missing`) {
			t.Errorf("%s without a label on the card: %v", c.without, err)
		}
		if _, err := s.Ask(t.Context(), analyst, "nowhere", []byte(c.without), ""); holdout.KindOf(err) != holdout.Invalid {
			t.Errorf("%s of no holdout: %v", c.without, err)
		}
	}
}
