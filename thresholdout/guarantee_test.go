package thresholdout

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// everyVariant plans each variant of each mechanism.
var everyVariant = []Spec{
	{Mechanism: Gaussian, N: 5000, Questions: 50},
	{Mechanism: Gaussian, N: 5000, Questions: 50, Sigma: 0.01},
	{Mechanism: Gaussian, N: 5000, HalfWidth: 0.1},
	{Mechanism: Gaussian, N: 5000, Questions: 50, Tokens: 3},
	{Mechanism: GuessAndCheck, N: 5000, Training: 9000},
	{Mechanism: GuessAndCheck, N: 5000, Training: 9000, Sealed: 0.5},
	{Mechanism: GuessAndCheck, N: 100, Training: 90, Tokens: 3, Confidence: 0.9},
	{Mechanism: Thresholdout, N: 5000, Training: 7000, Questions: 50},
	{Mechanism: Thresholdout, N: 5000, Training: 7000, Preset: PresetScience2015},
	{Mechanism: Thresholdout, Form: FormLaplace, N: 5000, Training: 7000, Questions: 50},
	{Mechanism: Split, N: 5000},
	{Mechanism: Split, N: 5000, Published: true},
	{Mechanism: Naive, N: 5000},
	{Mechanism: Auto, N: 5000},
	{Mechanism: Auto, N: 5000, Training: 9000},
	{Mechanism: Gaussian, N: 5000, Questions: 50, Rounds: 3},
	{Mechanism: Gaussian, N: 5000, Questions: 50, Published: true},
	{Mechanism: Ladder, N: 5000},
	{Mechanism: Cells, N: 5000, Cells: 24},
	{Mechanism: Cells, N: 5000, Cells: 600},
}

// TestStoredGuarantees: a stored guarantee is the one that was planned, to the last bit, and is not planned again: other numbers than Plan
// would choose are used as they are. It would notice a number of a mechanism that is not stored, and one that is computed from others when it is read.
func TestStoredGuarantees(t *testing.T) {
	variants := map[reflect.Type]bool{}
	for _, spec := range everyVariant {
		g := must(t, spec)
		variants[reflect.TypeOf(g.own)] = true
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		var stored Guarantee
		if err := json.Unmarshal(text, &stored); err != nil || !reflect.DeepEqual(g, stored) {
			t.Errorf("%s\n%+v\nread %+v, %v", text, g.own, stored.own, err)
		}
		members := map[string]any{}
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		for name, v := range members {
			if number, is := v.(float64); is && number != math.Trunc(number) {
				members[name] = number * 0.75 // as no plan has it
			}
		}
		if text, err = json.Marshal(members); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		again := map[string]any{}
		if text, err = json.Marshal(stored); err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || !reflect.DeepEqual(members, again) {
			t.Errorf("%s reads as %s, %v", members, text, err)
		}
	}
	for _, k := range kinds {
		for _, v := range k.Variants {
			if !variants[reflect.TypeOf(v.Is)] {
				t.Errorf("%s: no test plans a %T", k.Name, v.Is)
			}
		}
	}
}

// TestStoredGuaranteesRefused: what this program does not know is refused and not guessed.
func TestStoredGuaranteesRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"mechanism":"naive","n":10,"training":0,"questions":5,"confidence":0.95}`:                                                        "the guarantee has version 0; this program reads version 1",
		`{"version":2,"mechanism":"naive","n":10,"training":0,"questions":5,"confidence":0.95}`:                                            "the guarantee has version 2; this program reads version 1",
		`{"version":1,"mechanism":"pmw","n":10,"training":0,"questions":5,"confidence":0.95}`:                                              `mechanism "pmw"`,
		`{"version":1,"mechanism":"auto","n":10,"training":0,"questions":5,"confidence":0.95}`:                                             `mechanism "auto"`,
		`{"version":1,"mechanism":"naive","n":0,"training":0,"questions":5,"confidence":0.95}`:                                             "numbers that none has",
		`{"version":1,"mechanism":"naive","n":10,"training":0,"questions":0,"confidence":0.95}`:                                            "numbers that none has",
		`{"version":1,"mechanism":"naive","n":10,"training":0,"questions":5,"confidence":1}`:                                               "numbers that none has",
		`{"version":1,"mechanism":"gaussian","n":10,"training":0,"questions":5,"confidence":0.95,"subsample":5}`:                           "numbers that none has",
		`{"version":1,"mechanism":"gaussian","n":10,"training":0,"questions":5,"rounds":2,"confidence":0.9,"sigma":0.1}`:                   "numbers that none has",
		`{"version":2,"mechanism":"guess_and_check","n":10,"training":9,"questions":5,"tokens":1,"confidence":0.95}`:                       "numbers that none has",
		`{"version":1,"mechanism":"guess_and_check","n":10,"training":9,"questions":5,"tokens":1,"confidence":0.95,"widths":2,"cells":12}`: "the guarantee has version 1; this program reads version 5",
		`{"version":1,"mechanism":7}`: "guarantee",
	} {
		var g Guarantee
		if err := json.Unmarshal([]byte(text), &g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestStoredStates: a state that is stored after every step of every mechanism is read as it was, byte for byte. It would notice a memory that
// is not stored.
func TestStoredStates(t *testing.T) {
	remembered := 0
	for i, spec := range everyVariant {
		g, r := must(t, spec), rand.New(rand.NewPCG(uint64(i), 4))
		s := State{}
		for j := range min(g.Questions, 12) {
			from, to := g.Slice(s)
			out, next, err := Step(g, s, Input{Holdout: mean(0.4+0.1*r.Float64(), to-from), Training: mean(0.45, g.Training)}, Seeded{Question: j})
			if err != nil {
				break // out of tokens
			}
			text, err := json.Marshal(next)
			if err != nil {
				t.Fatal(err)
			}
			read, err := g.ReadState(text)
			again, _ := json.Marshal(read)
			if err != nil || read != next || string(again) != string(text) {
				t.Fatalf("%s after %+v: %s reads as %+v, %v", g.Mechanism, out, text, read, err)
			}
			if s = next; j%4 == 3 {
				s = g.EndRound(s)
			}
		}
		if s.Memory != nil {
			remembered++
		}
	}
	if remembered < 2 {
		t.Errorf("only %d guarantees remembered anything", remembered)
	}
}

// TestStoredStatesRefused: a state of another version, or that is none of the guarantee's.
func TestStoredStatesRefused(t *testing.T) {
	plain := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 5, Sigma: 0.01})
	rounds := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 5, Rounds: 2})
	for _, c := range []struct {
		g    Guarantee
		text string
	}{
		{plain, `{"questions":1}`},
		{plain, `{"version":2,"questions":1}`},
		{plain, `{"version":1,"questions":6}`},
		{plain, `{"version":1,"questions":-1}`},
		{plain, `{"version":1,"questions":1,"tokens":1}`},
		{plain, `{"version":1,"questions":1,"in_round":1}`},
		{plain, `{"version":1,"questions":1,"memory":{"wide":1}}`},
		{plain, `{"version":1,"questions":1,"wide":1}`},
		{plain, `[]`},
		{rounds, `{"version":1,"questions":1,"rounds":2,"in_round":1}`},
		{rounds, `{"version":1,"questions":1,"in_round":2}`},
	} {
		if s, err := c.g.ReadState([]byte(c.text)); err == nil {
			t.Errorf("%s was read as %+v", c.text, s)
		}
	}
	var s State
	if err := json.Unmarshal([]byte(`{"version":1,"questions":1}`), &s); err == nil {
		t.Error("a state was read without its guarantee")
	}
}
