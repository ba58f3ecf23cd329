package holdout

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestKeptNumbers: the least recently used go first, one too large is not taken, and what one holdout was sent is not another's.
func TestKeptNumbers(t *testing.T) {
	k := newKept[keptName, []float64](100, 0)
	name := func(s string) keptName { return keptName{"ho_1", s} }
	for _, s := range []string{"a", "b", "c"} {
		k.keep(name(s), nil, 32)
	}
	k.get(name("a"))
	k.keep(name("d"), nil, 32)
	for s, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if _, _, got := k.get(name(s)); got != want {
			t.Errorf("%s is kept: %v, want %v", s, got, want)
		}
	}
	k.keep(name("huge"), nil, 104)
	if _, _, huge := k.get(name("huge")); huge || k.bytes != 96 {
		t.Errorf("%d bytes are kept, one too large: %v", k.bytes, huge)
	}
	if _, _, other := k.get(keptName{"ho_2", "a"}); other {
		t.Error("one holdout has another's numbers")
	}
}

// TestNumbersByDigest: predictions are sent once, as bytes, by explain or by a question, and named by their digest afterwards: in other questions, in one that chooses the best of sixty,
// and within the batch that brings them. What is not kept is asked for again, and no holdout knows what another was sent.
func TestNumbersByDigest(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 1000, 1)
	card := create(t, s, Settings{Holdout: 0.4, Check: new(0.0), Label: "late", Features: "public", Questions: 20}, table)
	f, err := s.Features(t.Context(), analyst, card.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x := numbers(t, tableOf(t, s, f), "x")

	bytes := func(model int) string {
		b := make([]byte, 0, 4*len(x))
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(1/(1+math.Exp(-v-float64(model)/30)))))
		}
		return `{"f32":"` + base64.StdEncoding.EncodeToString(b) + `"}`
	}
	accuracy := func(predictions string) string {
		return `{"type":"accuracy","label":"late","predictions":` + predictions + `}`
	}
	digest := func(model int) string {
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(accuracy(bytes(model))))
		if err != nil {
			t.Fatal(err)
		}
		var q struct{ Predictions json.RawMessage }
		if err := json.Unmarshal(e.Canonical, &q); err != nil || !strings.Contains(string(q.Predictions), "sha256") {
			t.Fatalf("%v: %s", err, e.Canonical)
		}
		return string(q.Predictions)
	}
	var candidates []string
	for model := range 60 {
		candidates = append(candidates, accuracy(digest(model)))
	}
	best := `{"type":"argmax","of":[` + strings.Join(candidates, ",") + `]}`
	var a struct{ Selected string }
	if err := json.Unmarshal(ask(t, s, card.ID, best).Body, &a); err != nil {
		t.Fatal(err)
	}
	if a.Selected == "" || len(best) > 20_000 {
		t.Errorf("the best of 60 is %q, by %d bytes", a.Selected, len(best))
	}
	ask(t, s, card.ID, `{"type":"loss","loss":"brier","label":"late","predictions":`+digest(3)+`}`)
	again := ask(t, s, card.ID, `{"type":"loss","loss":"brier","label":"late","predictions":`+bytes(3)+`}`)
	if !again.Replayed {
		t.Errorf("the numbers and their digest are two questions")
	}

	if q, err := s.parse(t.Context(), []byte(candidates[0]), nil, s.numbersOf(t.Context(), card.ID)); err != nil {
		t.Error(err)
	} else if h, release, err := s.tables.take(t.Context(), card.ID); err != nil {
		t.Error(err)
	} else {
		defer release()
		plan, err := h.compile(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if held := heldWork(plan).Bytes; held < 8*400 {
			t.Errorf("a plan of 400 numbers that are named holds %d bytes", held)
		}
	}

	unknown := strings.Repeat("0", 64)
	_, err = s.Ask(t.Context(), analyst, card.ID, []byte(accuracy(`{"sha256":"`+unknown+`","count":400}`)), "")
	wantKind(t, "numbers that nobody sent", err, Invalid)
	other := create(t, s, Settings{Holdout: 0.4, Check: new(0.0), Label: "late", Features: "public"}, visits(t, 1000, 2))
	_, err = s.Ask(t.Context(), analyst, other.ID, []byte(accuracy(digest(3))), "")
	wantKind(t, "numbers that another holdout was sent", err, Invalid)
	short := accuracy(`{"bits":"` + base64.StdEncoding.EncodeToString(make([]byte, 4)) + `","count":30}`)
	_, err = s.Ask(t.Context(), analyst, card.ID, []byte(short), "")
	wantKind(t, "numbers of other rows", err, Invalid)
	if s.numbers.bytes != 60*8*400 {
		t.Errorf("%d bytes are kept; 60 models have %d", s.numbers.bytes, 60*8*400)
	}

	// A batch brings what its later queries name.
	zeros := sha256.Sum256(make([]byte, 8*400))
	fresh := fmt.Sprintf(`{"bits":"%s","count":400}`, base64.StdEncoding.EncodeToString(make([]byte, 50)))
	if _, err := s.AskBatch(t.Context(), analyst, card.ID, []json.RawMessage{json.RawMessage(accuracy(fresh)),
		json.RawMessage(`{"type":"loss","loss":"brier","label":"late","predictions":{"sha256":"` + hex.EncodeToString(zeros[:]) + `","count":400}}`)}, false, ""); err != nil {
		var e *Error
		errors.As(err, &e)
		t.Errorf("%v %+v", err, e)
	}
}
