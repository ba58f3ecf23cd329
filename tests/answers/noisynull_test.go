package answers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestPlainPValues: a plain p-value comes with a test of which nothing had been told before: all tests of the first request of a gaussian
// holdout, every test under split, and none where the training part had a say.
func TestPlainPValues(t *testing.T) {
	s := open(t, t.TempDir())
	test := func(null string) string {
		return `{"type":"test","test":"proportion","of":"late","equals":` + null + `}`
	}
	alone := func(body json.RawMessage) *float64 {
		var a struct {
			Alone *float64 `json:"plain_p_value"`
			P     *float64 `json:"p_value"`
		}
		if err := json.Unmarshal(body, &a); err != nil || a.P == nil {
			t.Fatalf("%v: %s", err, body)
		}
		if a.Alone != nil && *a.Alone > *a.P {
			t.Errorf("the plain p-value %v is above the simultaneous one, %v", *a.Alone, *a.P)
		}
		return a.Alone
	}
	id := create(t, s, holdout.Settings{Questions: 100}, visits(t, 20_000, 1)).ID
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(test("0.2"), test("0.4")), false, "")
	if err != nil {
		t.Fatal(err)
	}
	if fair, false_ := alone(b.Answers[0].Body), alone(b.Answers[1].Body); fair == nil || false_ == nil || *fair < 1e-4 || *false_ > 1e-4 {
		t.Errorf("in the first request: %v and %v", fair, false_)
	}
	if late := alone(ask(t, s, id, test("0.3")).Body); late != nil {
		t.Errorf("after it: %v", *late)
	}
	id = create(t, s, holdout.Settings{Mechanism: "split", Questions: 4}, visits(t, 20_000, 2)).ID
	for _, null := range []string{"0.2", "0.21"} {
		if alone(ask(t, s, id, test(null)).Body) == nil {
			t.Error("a slice of its own gives none")
		}
	}
	// Tests of two groups have one where answers are read by their own sample: in a batch, and under split.
	groups := `{"type":"test","test":"two-proportions","of":"late","between":["clinic == 'clinic 1'"],"equals":%s}`
	two := func(equals string) string { return strings.Replace(groups, "%s", equals, 1) }
	id = create(t, s, holdout.Settings{Mechanism: "gaussian", Questions: 40, Rounds: 1}, visits(t, 20_000, 4)).ID
	b, err = s.AskBatch(t.Context(), analyst, id, batchOf(two("0"), two("0.2")), false, "")
	if err != nil {
		t.Fatal(err)
	}
	if fair, false_ := alone(b.Answers[0].Body), alone(b.Answers[1].Body); fair == nil || false_ == nil || *false_ > 1e-4 {
		t.Errorf("of two groups in a batch: %v and %v", fair, false_)
	}
	id = create(t, s, holdout.Settings{Mechanism: "split", Questions: 4}, visits(t, 20_000, 5)).ID
	if alone(ask(t, s, id, two("0")).Body) == nil || alone(ask(t, s, id, two("0.1")).Body) == nil {
		t.Error("of two groups in slices: none")
	}
	id = create(t, s, holdout.Settings{Mechanism: "gaussian", Questions: 40, Rounds: 2}, visits(t, 20_000, 6)).ID
	for _, round := range []string{"0", "0.1"} { // the first has noise, and before the last something was told
		if p := alone(ask(t, s, id, two(round)).Body); p != nil {
			t.Errorf("in rounds: %v", *p)
		}
	}
	id = create(t, s, holdout.Settings{Mechanism: "guess_and_check", Questions: 4}, visits(t, 20_000, 3)).ID
	if alone(ask(t, s, id, test("0.2")).Body) == nil { // nothing was told before it
		t.Error("the first question under guess_and_check gives none")
	}
	if p := alone(ask(t, s, id, test("0.3")).Body); p != nil {
		t.Errorf("after an answer guess_and_check gives %v", *p)
	}
}
