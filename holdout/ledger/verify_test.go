package ledger

import (
	"fmt"
	"testing"
)

// TestForgedChains are chains whose hashes are right and whose books are not: what a dishonest server could write.
func TestForgedChains(t *testing.T) {
	h := Holdout{ID: "ho_1", Public: []byte("{}"), Limits: Meters{"questions": 3, "tokens": 1}}
	for name, change := range map[string]func(*Entry){
		"":                   func(*Entry) {},
		"overspent":          func(e *Entry) { e.Debit["questions"], e.Spent["questions"] = 9, 10 },
		"tokens overspent":   func(e *Entry) { e.Debit["tokens"], e.Spent["tokens"] = 2, 2 },
		"given back":         func(e *Entry) { e.Debit["questions"], e.Spent["questions"] = -1, 0 },
		"free":               func(e *Entry) { e.Spent["questions"]-- },
		"another meter":      func(e *Entry) { e.Debit["rounds"], e.Spent["rounds"] = 0, 0 },
		"a meter less":       func(e *Entry) { delete(e.Debit, "tokens"); delete(e.Spent, "tokens") },
		"debit of fewer":     func(e *Entry) { delete(e.Debit, "tokens") },
		"asked twice":        func(e *Entry) { e.Query = "sha256:0" },
		"a gap":              func(e *Entry) { e.Seq++ },
		"a second genesis":   func(e *Entry) { e.Kind, e.Query, e.Canonical = KindGenesis, "", nil },
		"no query":           func(e *Entry) { e.Query = "" },
		"an unknown kind":    func(e *Entry) { e.Kind = "gift" },
		"an unknown version": func(e *Entry) { e.Version++ },
		"deletion of others": func(e *Entry) {
			e.Kind, e.Query, e.Debit, e.Spent = KindDeleted, "", Meters{"questions": 0, "tokens": 0}, Meters{"questions": 1, "tokens": 0}
		},
	} {
		v := newVerifier(&h)
		first := h.Genesis()
		err := v.add(&first)
		if err != nil {
			t.Fatal(err)
		}
		for seq := int64(1); seq <= 2 && err == nil; seq++ {
			e := Entry{Version: EntryVersion, Seq: seq, Kind: KindAnswer, Query: fmt.Sprint("sha256:", seq-1),
				Debit: Meters{"questions": 1, "tokens": 0}, Spent: Meters{"questions": seq, "tokens": 0}}
			if seq == 2 {
				change(&e)
			}
			e.seal(v.prev, []byte(`{"value":0.5}`))
			err = v.add(&e)
		}
		if (name == "") != (err == nil) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
