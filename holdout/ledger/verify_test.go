package ledger

import (
	"fmt"
	"testing"
	"time"
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

// TestClosedChain: a chain ends with its closing, which debits all that is left; nothing follows it but a deletion.
func TestClosedChain(t *testing.T) {
	h := Holdout{ID: "ho_1", Public: []byte("{}"), Limits: Meters{"questions": 3, "tokens": 1}}
	closing := func() Entry {
		return Entry{Version: EntryVersion, Seq: 2, Kind: KindClosed, Debit: Meters{"questions": 2, "tokens": 1}, Spent: Meters{"questions": 3, "tokens": 1}}
	}
	for name, c := range map[string]struct {
		change func(*Entry)
		after  string
	}{
		"":                      {},
		"and a deletion":        {after: KindDeleted},
		"and a retirement":      {after: KindRetired},
		"and an answer":         {after: KindAnswer},
		"and a void":            {after: KindVoid},
		"and another":           {after: KindClosed},
		"that leaves something": {change: func(e *Entry) { e.Debit["questions"], e.Spent["questions"] = 1, 2 }},
		"with a query":          {change: func(e *Entry) { e.Query = "sha256:9" }},
	} {
		v := newVerifier(&h)
		answer := Entry{Version: EntryVersion, Seq: 1, Kind: KindAnswer, Query: "sha256:0", Debit: Meters{"questions": 1, "tokens": 0}, Spent: Meters{"questions": 1, "tokens": 0}}
		end := closing()
		if c.change != nil {
			c.change(&end)
		}
		chain := []Entry{h.Genesis(), answer, end}
		if c.after != "" {
			chain = append(chain, Entry{Version: EntryVersion, Seq: 3, Kind: c.after, Debit: Meters{"questions": 0, "tokens": 0}, Spent: Meters{"questions": 3, "tokens": 1}})
		}
		var err error
		for i := 0; i < len(chain) && err == nil; i++ {
			e := &chain[i]
			core := []byte(`{"value":0.5}`)
			switch e.Kind {
			case KindDeleted:
				core = deletionCore(h.ID)
			case KindAnswer, KindVoid:
				e.Query = fmt.Sprint("sha256:", e.Seq)
			}
			if e.Kind != KindGenesis {
				e.seal(v.prev, core)
			}
			err = v.add(e)
		}
		if good := name == "" || name == "and a deletion" || name == "and a retirement"; good != (err == nil) {
			t.Errorf("a closing %s: %v", name, err)
		}
		if err == nil && !v.closed {
			t.Errorf("a closing %s does not close", name)
		}
	}
}

// TestReleasedChain: releases debit no meter, spend no more than the first one's limit, and are made once; a chain that says otherwise is refused. What is hashed of one is frozen.
func TestReleasedChain(t *testing.T) {
	h := Holdout{ID: "ho_1", Created: time.Unix(5, 0).UTC(), Public: []byte("{}"), Limits: Meters{"questions": 3}}
	for name, change := range map[string]func(*Entry){
		"":                      nil,
		"that costs a question": func(e *Entry) { e.Debit, e.Spent = Meters{"questions": 1}, Meters{"questions": 1} },
		"without an id":         func(e *Entry) { e.Query = "" },
		"that was made before":  func(e *Entry) { e.Query = "sha256:1" },
		"of more than is left":  func(e *Entry) { e.Canonical = []byte(`{"epsilon":0.600001,"release_epsilon":1}`) },
		"under another limit":   func(e *Entry) { e.Canonical = []byte(`{"epsilon":0.6,"release_epsilon":2}`) },
		"of no epsilon":         func(e *Entry) { e.Canonical = []byte(`{"release_epsilon":1}`) },
		"after a closing":       nil,
	} {
		v := newVerifier(&h)
		made := func(seq int64, epsilon string) Entry {
			return Entry{Version: EntryVersion, Seq: seq, Kind: KindRelease, Time: time.Unix(6, 0).UTC(), Query: fmt.Sprint("sha256:", seq), Principal: "key_admin",
				Canonical: []byte(`{"epsilon":` + epsilon + `,"release_epsilon":1}`), Debit: Meters{"questions": 0}, Spent: Meters{"questions": 0}}
		}
		chain := []Entry{h.Genesis(), made(1, "0.4"), made(2, "0.6")}
		if name == "after a closing" {
			chain = []Entry{h.Genesis(), made(1, "0.4"), {Version: EntryVersion, Seq: 2, Kind: KindClosed, Debit: Meters{"questions": 3}, Spent: Meters{"questions": 3}}, made(3, "0.6")}
			chain[3].Spent = Meters{"questions": 3}
		} else if change != nil {
			change(&chain[2])
		}
		var err error
		for i := 0; i < len(chain) && err == nil; i++ {
			if i > 0 {
				chain[i].seal(v.prev, []byte(`{"released":true}`))
			}
			err = v.add(&chain[i])
		}
		if (name == "") != (err == nil) {
			t.Errorf("a release %s: %v", name, err)
		}
		const frozen = "sha256:0e5620636bfa7e9ba2912723e8cb177a0eb8273426ef971677be0a6c2d92f047"
		if name == "" && (HeadText(v.prev) != frozen || v.epsilons.Made != 2 || v.epsilons.Spent != 1e6) {
			t.Errorf("head %s, %d releases, %d spent", HeadText(v.prev), v.epsilons.Made, v.epsilons.Spent)
		}
	}
}
