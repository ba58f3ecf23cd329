package answers

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// decided is a decision or a test as a client reads it.
type decided struct {
	Value    *float64
	Interval *struct{ Low, High *float64 }
	Items    []holdout.Item
	Selected string
	Regret   *float64
	Verdict  string
	PValue   *float64 `json:"p_value"`
	Cost     holdout.Cost
}

const choosing = `{"type":"argmax","of":[{"type":"fraction","of":"x > 0.9"},{"type":"fraction","of":"x > 0.1"},{"type":"fraction","of":"x > 0.5"}],"names":["few","most","half"]}`

// TestDecisions asks for every kind of decision and test where the truth is plain, under each mechanism: verdicts, p-values at most the level exactly where the
// verdict is yes, prices as explained, and the same bytes again.
func TestDecisions(t *testing.T) {
	s := open(t, t.TempDir())
	type expected struct {
		verdict  string
		selected string
		price    int64 // under gaussian
		numbers  int64 // under others
		root     bool  // the root of an equation, or the difference of two, one question under guess_and_check
	}
	questions := map[string]expected{
		`{"type":"compare","a":{"type":"fraction","of":"x > 0.9"},"b":{"type":"fraction","of":"x > 0.1"}}`:                     {"yes", "", 1, 1, false},
		`{"type":"compare","a":{"type":"fraction","of":"x > 0.9"},"b":{"type":"fraction","of":"x > 0.1"},"least":true}`:        {"no", "", 1, 1, false},
		`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.9}`:                                            {"no", "", 1, 1, false},
		`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1],"where":"x > 0.2"},"below":0.99}`:                         {"yes", "", 2, 2, true},
		`{"type":"difference","of":"x","range":[0,1],"between":["x > 0.5"]}`:                                                   {"", "", 3, 4, true},
		`{"type":"test","test":"mean","of":"x","range":[0,1],"equals":0.9}`:                                                    {"yes", "", 1, 1, false},
		`{"type":"test","test":"mean","of":"x","range":[0,1],"equals":0.5}`:                                                    {"undecided", "", 1, 1, false},
		`{"type":"test","test":"proportion","of":"late","equals":0.9,"alternative":"greater"}`:                                 {"undecided", "", 1, 1, false},
		`{"type":"test","test":"two-sample","of":"x","range":[0,1],"between":["x > 0.5","x < 0.3"]}`:                           {"yes", "", 3, 4, true},
		`{"type":"test","test":"two-proportions","of":"late","between":["x < 0.2"]}`:                                           {"yes", "", 3, 4, true},
		`{"type":"test","test":"correlation","x":"x","y":"x > 0.5 ? 1 : 0","range_x":[0,1],"range_y":[0,1]}`:                   {"yes", "", 3, 3, true},
		`{"type":"test","test":"slope","x":"x","y":"0 - x","range_x":[0,1],"range_y":[-1,0],"alternative":"less"}`:             {"yes", "", 4, 4, true},
		`{"type":"test","test":"goodness-of-fit","cells":["x < 0.5"],"expected":[0.9]}`:                                        {"yes", "", 2, 2, false},
		`{"type":"test","test":"goodness-of-fit","cells":["x < 0.2","x < 0.7"],"expected":[0.2,0.5]}`:                          {"undecided", "", 3, 3, false},
		`{"type":"test","test":"independence","rows":["x > 0.5"],"columns":["x > 0.6"]}`:                                       {"yes", "", 3, 4, false},
		`{"type":"test","test":"value","query":{"type":"variance","of":"x","range":[0,1]},"equals":0.25,"alternative":"less"}`: {"yes", "", 2, 2, true},
		choosing: {"", "most", 1, 3, false},
	}
	for seed, mechanism := range []string{"gaussian", "guess_and_check", "split", "thresholdout"} {
		set := holdout.Settings{Mechanism: mechanism, Questions: 200}
		if mechanism == "split" {
			set.Questions = 42
		}
		id := create(t, s, set, visits(t, 80_000, uint64(seed+40))).ID
		for body, want := range questions {
			e, err := s.Explain(t.Context(), analyst, id, []byte(body))
			if err != nil {
				t.Fatalf("%s: %s: %v", mechanism, body, err)
			}
			a := ask(t, s, id, body)
			var got decided
			if err := json.Unmarshal(a.Body, &got); err != nil {
				t.Fatal(err)
			}
			price := want.numbers
			switch {
			case mechanism == "gaussian":
				price = want.price
			case want.root:
				price = 1
			}
			if got.Cost.Questions != price || e.Cost.Questions != price {
				t.Errorf("%s: %s costs %d, explained as %d, want %d", mechanism, body, got.Cost.Questions, e.Cost.Questions, price)
			}
			if got.Verdict != want.verdict || got.Selected != want.selected || got.Interval == nil {
				t.Errorf("%s: %s: %s", mechanism, body, a.Body)
			}
			if tested := bytes.Contains([]byte(body), []byte(`"test"`)); tested != (got.PValue != nil) || tested && (*got.PValue <= 0.05) != (got.Verdict == "yes") {
				t.Errorf("%s: %s: %s", mechanism, body, a.Body)
			}
			if body == choosing && (got.Regret == nil || (got.Items == nil) != (mechanism == "gaussian") || *got.Regret > 0.6) {
				t.Errorf("%s: %s", mechanism, a.Body)
			}
			if again := ask(t, s, id, body); !again.Replayed || !bytes.Equal(again.Body, a.Body) {
				t.Errorf("%s: %s was answered twice", mechanism, body)
			}
		}
	}
}

// TestDecisionsWithoutBounds: under naive, and under published bounds, which have no levels, a test has its effect and no p-value.
func TestDecisionsWithoutBounds(t *testing.T) {
	s := open(t, t.TempDir(), func(o *holdout.Options) { o.AllowNaive = true })
	body := `{"type":"test","test":"mean","of":"x","range":[0,1],"equals":0.9}`
	for seed, set := range []holdout.Settings{{Mechanism: "naive", Questions: 50}, {Mechanism: "gaussian", Bounds: "published", Questions: 50}} {
		id := create(t, s, set, visits(t, 40_000, uint64(seed+60))).ID
		var got decided
		if err := json.Unmarshal(ask(t, s, id, body).Body, &got); err != nil {
			t.Fatal(err)
		}
		if naive := seed == 0; got.PValue != nil || got.Value == nil || (got.Interval == nil) != naive || (got.Verdict == "undecided") != naive {
			t.Errorf("%+v: %+v", set, got)
		}
	}
}
