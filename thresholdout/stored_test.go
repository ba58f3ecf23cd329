package thresholdout

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"testing"
)

// storedFiles are what was recorded, the oldest first: guarantees that are planned otherwise since then go on as they were stored. -update records the last.
var storedFiles = []string{"testdata/stored.jsonl", "testdata/stored-2.jsonl", "testdata/stored-3.jsonl", "testdata/stored-4.jsonl", "testdata/stored-5.jsonl", "testdata/stored-6.jsonl"}

// recorded is a guarantee and a state as they were once stored, and what came of the next question.
type recorded struct {
	Guarantee json.RawMessage `json:"guarantee"`
	State     json.RawMessage `json:"state"`
	Value     float64         `json:"value"`
	Low       float64         `json:"low"` // with High 0 where there was no interval
	High      float64         `json:"high"`
	Next      json.RawMessage `json:"next"`
}

// ask asks a recorded guarantee in its recorded state.
func (r recorded) ask(t *testing.T) (Guarantee, recorded) {
	t.Helper()
	var g Guarantee
	if err := json.Unmarshal(r.Guarantee, &g); err != nil {
		t.Fatalf("%s: %v", r.Guarantee, err)
	}
	s, err := g.ReadState(r.State)
	if err != nil {
		t.Fatalf("%s: %v", r.State, err)
	}
	from, to := g.Slice(s)
	key := Keyed{Query: "sha256:q"}
	key.Key[0] = 5
	out, next, err := Step(g, s, Input{Holdout: mean(0.25, to-from), Training: mean(0.75, g.Training)}, key)
	if err != nil {
		t.Fatal(err)
	}
	again := recorded{Value: out.Value}
	if out.Interval != nil {
		again.Low, again.High = out.Interval.Low, out.Interval.High
	}
	for to, v := range map[*json.RawMessage]any{&again.Guarantee: g, &again.State: s, &again.Next: next} {
		if *to, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	return g, again
}

// TestRecorded: a guarantee of every variant and a state of it, as they were once stored, are read, are written with the same bytes, and answer
// with the same value, interval (to 1e-9) and next state. It would notice any change of a stored form, a number that is planned again, and noise
// that is drawn otherwise. -update records anew what is planned today, which is a change of the format.
func TestRecorded(t *testing.T) {
	if *update {
		record(t)
	}
	var text []byte
	for _, file := range storedFiles {
		lines, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, lines...)
	}
	read := map[reflect.Type]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var want recorded
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		g, got := want.ask(t)
		read[reflect.TypeOf(g.own)] = true
		if math.Abs(got.Low-want.Low) > 1e-9 || math.Abs(got.High-want.High) > 1e-9 {
			t.Errorf("%s: [%v, %v], it was [%v, %v]", want.Guarantee, got.Low, got.High, want.Low, want.High)
		}
		if got.Low, got.High = want.Low, want.High; !reflect.DeepEqual(got, want) {
			t.Errorf("recorded %s %s, %v, %s;\nnow %s %s, %v, %s", want.Guarantee, want.State, want.Value, want.Next, got.Guarantee, got.State, got.Value, got.Next)
		}
	}
	for _, k := range Kinds() {
		for _, v := range k.Variants {
			if !read[reflect.TypeOf(v.Is)] {
				t.Errorf("%s: no %T is recorded", k.Name, v.Is)
			}
		}
	}
}

// record writes the file anew.
func record(t *testing.T) {
	var out bytes.Buffer
	var before []byte
	for _, file := range storedFiles[:len(storedFiles)-1] {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, text...)
	}
	for _, spec := range everyVariant {
		g := must(t, spec)
		s := State{Questions: 3}
		switch {
		case g.Rounds > 0:
			s = State{Questions: 20, Rounds: 1, InRound: 2}
		case g.TakesGuesses():
			s.Tokens, s.Memory = 1, account{Wide: 2, Paid: 5 << 20}
		case g.TakesSubmissions():
			s.Memory = Board{Shown: 40, Moves: 2, Place: 2}
		case g.HasTokens():
			s.Tokens = 1
			if _, ok := g.own.(*comparedRuns); ok {
				s.Memory = books{Wide: 1, Paid: 2 << 20, Noisy: 1}
			}
		}
		var r recorded
		var err error
		if r.Guarantee, err = json.Marshal(g); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(before, r.Guarantee) { // it is planned as it was
			continue
		}
		if r.State, err = json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		_, r = r.ask(t)
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	if err := os.WriteFile(storedFiles[len(storedFiles)-1], out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
