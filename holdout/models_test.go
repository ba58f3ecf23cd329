package holdout

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/queries/model"
)

// stumps is the JSON of an ensemble of n trees as arrays: x > 0.1 adds 1/n. On that side each tree splits some levels further, to no effect.
func stumps(n, levels int) string {
	var nodes, thresholds, leaves []byte
	var below func(level int)
	below = func(level int) {
		if level == 0 {
			nodes, leaves = append(nodes, 0), append(leaves, 0, 0, 0x80, 0x3f) // 1
			return
		}
		nodes, thresholds = append(nodes, 1), append(thresholds, 0, 0, 0, 0, 0, 0, 0x59, 0x40) // 100
		below(level - 1)
		below(level - 1)
	}
	for range n {
		nodes, leaves = append(nodes, 1, 0), append(leaves, 0, 0, 0, 0)
		thresholds = append(thresholds, 0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f) // 0.1
		below(levels)
	}
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`{"trees":{"average":true,"trees":{"reads":[["x"]],"nodes":{"u8":%q},"thresholds":{"f64":%q},"leaves":{"f32":%q}}}}`, text(nodes), text(thresholds), text(leaves))
}

// TestKeptModels: a model is sent once and named by its digest, in questions about any holdout. However it is sent, it is one question. A long one has its
// digest in the record, a short one itself.
func TestKeptModels(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Holdout: 0.4, Questions: 20}, visits(t, 1000, 1))
	accuracy := func(model string) string {
		return `{"type":"accuracy","label":"late","model":` + model + `}`
	}
	for _, c := range []struct {
		name, body string
		large      bool
	}{{"small", stumps(2, 0), false}, {"large", stumps(model.MaxNodes>>7, 7), true}} {
		kept, err := s.KeepModel(t.Context(), analyst, []byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.KeepModel(t.Context(), rival, []byte(c.body))
		if err != nil || again.SHA256 != kept.SHA256 || s.models.bytes < kept.Bytes || kept.Until.Before(time.Now().Add(ModelTime-time.Minute)) {
			t.Errorf("%s: %v, %+v, %+v", c.name, err, again, kept)
		}
		named := `{"sha256":"` + kept.SHA256 + `"}`
		a := ask(t, s, card.ID, accuracy(named))
		b := ask(t, s, card.ID, accuracy(c.body))
		if a.Replayed || !b.Replayed {
			t.Errorf("%s: named, then sent: %v and %v replayed", c.name, a.Replayed, b.Replayed)
		}
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(accuracy(named)))
		if err != nil {
			t.Fatal(err)
		}
		if digest := strings.Contains(string(e.Canonical), kept.SHA256); digest != c.large {
			t.Errorf("%s: %.300s", c.name, e.Canonical)
		}
		decided := strings.Replace(accuracy(named), named, named[:len(named)-1]+`,"threshold":0.75}`, 1)
		if c := ask(t, s, card.ID, decided); c.Replayed {
			t.Error("another threshold is another question")
		}
		if found, err := s.FindModel(kept.SHA256); err != nil || found.SHA256 != kept.SHA256 || found.Bytes != kept.Bytes {
			t.Errorf("%s: %+v, %v", c.name, found, err)
		}
	}
	past, err := s.Answers(t.Context(), analyst, card.ID, 0, 10)
	if err != nil || len(past.Answers) != 4 {
		t.Fatalf("%d answers, %v", len(past.Answers), err)
	}
	for _, p := range past.Answers {
		if p.Reference == nil || len(p.Canonical) > 2000 {
			t.Errorf("a past answer about a model that is kept: %+v, of %d bytes", p.Reference, len(p.Canonical))
		}
	}
}

// TestModelsGo: a model that is not used for a day goes, one that is used stays; who names one that is gone is told so, and nothing is debited.
func TestModelsGo(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Holdout: 0.4, Questions: 20}, visits(t, 1000, 1))
	now := time.Now()
	s.models.now = func() time.Time { return now }
	used, err := s.KeepModel(t.Context(), analyst, []byte(stumps(2, 0)))
	if err != nil {
		t.Fatal(err)
	}
	idle, err := s.KeepModel(t.Context(), analyst, []byte(stumps(3, 0)))
	if err != nil {
		t.Fatal(err)
	}
	question := func(sha256 string) []byte {
		return []byte(`{"type":"accuracy","label":"late","model":{"sha256":"` + sha256 + `"}}`)
	}
	now = now.Add(ModelTime - time.Minute)
	if _, err := s.Explain(t.Context(), analyst, card.ID, question(used.SHA256)); err != nil {
		t.Error(err)
	}
	now = now.Add(2 * time.Minute)
	if _, err := s.Explain(t.Context(), analyst, card.ID, question(used.SHA256)); err != nil {
		t.Error(err)
	}
	_, err = s.Ask(t.Context(), analyst, card.ID, question(idle.SHA256), "")
	wantKind(t, "a model that is gone", err, Invalid)
	if !strings.Contains(err.Error(), "/model/sha256: the model of this digest is not kept") {
		t.Error(err)
	}
	_, err = s.FindModel(idle.SHA256)
	wantKind(t, "looking for it", err, NotFound)
	if b, err := s.Budget(t.Context(), analyst, card.ID); err != nil || b.Questions.Left != 20 || s.models.bytes != used.Bytes {
		t.Errorf("%+v, %v; %d bytes are kept", b, err, s.models.bytes)
	}
}

func TestModelsThatAreNotKept(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.Memory, o.Limits.ModelBytes = minMemory, 1<<20 })
	for body, want := range map[string]Kind{
		`{"linear":{}}`: Invalid,
		`{"linear":{"weights":{"x":1}},"threshold":0}`:        Invalid,
		`{"linear":{"weights":{"x":1}},"features":{"x":"y"}}`: Invalid,
		`{"sha256":"` + strings.Repeat("0", 64) + `"}`:        Invalid,
		`{"linear":`: Invalid,
		strings.Repeat(" ", 1<<20) + `{"linear":{"weights":{}}}`: TooLarge,
	} {
		_, err := s.KeepModel(t.Context(), analyst, []byte(body))
		wantKind(t, fmt.Sprintf("%.60s", body), err, want)
	}
	s.models.most = 1000
	_, err := s.KeepModel(t.Context(), analyst, []byte(stumps(2, 5)))
	wantKind(t, "a model that takes more than all may", err, TooLarge)
	if s.models.bytes != 0 {
		t.Errorf("%d bytes are kept", s.models.bytes)
	}
}

// TestNamedModelsCount: a model that is named counts as what it puts into the record, against the limit of a query and the memory of a request.
func TestNamedModelsCount(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.QueryBytes = 2000 })
	card := create(t, s, Settings{Holdout: 0.4, Questions: 20}, visits(t, 1000, 1))
	kept, err := s.KeepModel(t.Context(), analyst, []byte(stumps(200, 0)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Ask(t.Context(), analyst, card.ID, []byte(`{"type":"accuracy","label":"late","model":{"sha256":"`+kept.SHA256+`"}}`), "")
	wantKind(t, "a query that is longer than the limit with its model", err, TooLarge)
}

// TestMemoryOfModels: all that reading a model allocates is at most what it is admitted with.
func TestMemoryOfModels(t *testing.T) {
	var lists, weights strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lists, `,[["x",%d],0,1]`, i)
		fmt.Fprintf(&weights, `,"c%d":1`, i)
	}
	full := `0`
	for range 10 {
		full = `["x",1],` + full + `,` + full
	}
	for name, body := range map[string]string{
		"arrays":  stumps(1000, 9),
		"stumps":  stumps(4000, 0),
		"lists":   `{"trees":{"trees":[` + lists.String()[1:40_000] + `]}}`,
		"full":    `{"trees":{"trees":[[` + full + `],[` + full + `],[` + full + `]]}}`,
		"weights": `{"linear":{"weights":{` + weights.String()[1:] + `}}}`,
	} {
		if name == "lists" {
			body = body[:strings.LastIndex(body, ",[[")] + `]}}`
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := model.Parse([]byte(body)); err != nil {
			t.Fatalf("%s: %.300s", name, err)
		}
		runtime.ReadMemStats(&after)
		if got, most := int64(after.TotalAlloc-before.TotalAlloc), modelWork([]byte(body)).Bytes; got > most || got < most/20 {
			t.Errorf("%s: %d bytes, and %d are reserved", name, got, most)
		} else {
			t.Logf("%s: %d bytes, and %d are reserved", name, got, most)
		}
	}
}
