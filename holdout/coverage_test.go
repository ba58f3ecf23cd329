package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// features is how many features the attack of TestCoverage asks about before its last question.
const features = 12

// noise features and a label, all fair coins: every "f == y" holds with probability 1/2, and so does every rule made of them.
func coins(t *testing.T, r *rand.Rand, n int) *dataset.Table {
	t.Helper()
	var columns []dataset.Column
	for i := range features + 1 {
		c := dataset.Column{Field: dataset.Field{Name: fmt.Sprintf("f%d", i), Kind: dataset.Number, Source: "DOUBLE"}}
		for range n {
			c.Numbers = append(c.Numbers, float64(r.IntN(2)))
		}
		columns = append(columns, c)
	}
	columns[features].Name = "y"
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestCoverage: simulated holdouts of 200 rows with a known truth, under the single-adaptive attack: ask how often each
// feature agrees with the label, then about the majority vote of the features in the directions that looked good. All
// intervals of a holdout together miss with probability 0.05 at most, so of 200 holdouts more than 27 do with a chance
// below 1e-6; and the attack must do harm: the last answers lie above 1/2 by more than five standard errors of their
// mean (0.06/14, the noise included), or the test shows nothing.
func TestCoverage(t *testing.T) {
	const repetitions, n, most = 200, 200, 27
	s := open(t, t.TempDir())
	r := rand.New(rand.NewPCG(2026, 11))
	missed, last := 0, 0.0
	for i := range repetitions {
		id := fmt.Sprintf("ho_%d", i)
		inMemory(t, s, id, coins(t, r, n), r)
		ok, value := attack(t, s, id)
		if !ok {
			missed++
		}
		last += value / repetitions
	}
	t.Logf("%d of %d holdouts with a missed interval; the attack's last answers have mean %.4f", missed, repetitions, last)
	if missed > most {
		t.Errorf("%d of %d holdouts had an interval that missed, more than %d", missed, repetitions, most)
	}
	if last < 0.5+5*0.06/14 {
		t.Errorf("the attack reaches %v: it does not overfit, so the test shows nothing", last)
	}
}

// inMemory makes a holdout without files: its ledger is real, its table lies in memory.
func inMemory(t *testing.T, s *Service, id string, table *dataset.Table, r *rand.Rand) {
	t.Helper()
	params, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: int64(table.Rows()), Questions: features + 1, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	h := &opened{id: id, card: Card{ID: id, Unit: rowUnit, Guarantee: params}, guarantee: params, schema: table.Schema()}
	for i := range h.secret.Noise {
		h.secret.Noise[i] = byte(r.IntN(256))
	}
	h.digest = sha256.Sum256([]byte(id))
	h.begin()
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	h.held = newTablePart(table, source, s.faulted(id))
	h.holdout = h.held
	state, err := json.Marshal(thresholdout.State{})
	if err != nil {
		t.Fatal(err)
	}
	public, err := writeCard(h.card)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ledger.CreateHoldout(t.Context(), ledger.Holdout{ID: id, Digest: h.digest, Public: public, Limits: limits(params), State: state}, nil); err != nil {
		t.Fatal(err)
	}
	s.tables.load = func(context.Context, string) (*opened, error) { return h, nil }
}

// attack asks and reports whether all intervals hold the truth, 1/2, and the last answer.
func attack(t *testing.T, s *Service, id string) (ok bool, last float64) {
	t.Helper()
	ok = true
	check := func(body json.RawMessage) float64 {
		a := read(t, body)
		if a.Interval == nil {
			t.Fatalf("no interval: %s", body)
		}
		ok = ok && a.Interval.Low <= 0.5 && 0.5 <= a.Interval.High
		return *a.Value
	}
	var first []json.RawMessage
	for i := range features {
		first = append(first, json.RawMessage(fmt.Sprintf(`{"type":"fraction","of":"f%d == y"}`, i)))
	}
	b, err := s.AskBatch(t.Context(), analyst, id, first, false, "")
	if err != nil {
		t.Fatal(err)
	}
	votes := make([]string, features)
	for i, item := range b.Answers {
		votes[i] = fmt.Sprintf("f%d", i)
		if check(item.Body) < 0.5 {
			votes[i] = "(1.0 - " + votes[i] + ")"
		}
	}
	vote := strings.Join(votes, " + ")
	last = check(ask(t, s, id, fmt.Sprintf(`{"type":"fraction","of":"%s > %d.0 ? y == 1.0 : y == 0.0"}`, vote, features/2)).Body)
	return ok, last
}
