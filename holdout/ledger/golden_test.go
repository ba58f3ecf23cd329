package ledger

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// recorded are the exports of testdata/golden, which holdout.TestGolden records.
const recorded = "../testdata/golden*/exports/*.jsonl"

// nothing is a holdout of which nothing is recorded.
type nothing struct{}

func (nothing) Answer(string) ([]byte, error)                            { return nil, nil }
func (nothing) Released(string) (bool, error)                            { return false, nil }
func (nothing) Voided(string, time.Time) (bool, error)                   { return false, nil }
func (nothing) Idempotency(_, _ string) (_ Idempotency, _ bool, _ error) { return }

// TestGoldenChains: recorded exports verify, and the chains in them are written again from what was debited: every kind of entry, every byte. It
// would notice a change of what is hashed, of the bodies that are sent, or of the spelling of an export.
func TestGoldenChains(t *testing.T) {
	paths, err := filepath.Glob(recorded)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no exports in %s: %v", recorded, err)
	}
	kinds := map[string]bool{}
	for _, path := range paths {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := VerifyExport(bytes.NewReader(whole)); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		lines := bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
		var header exportHeader
		if err := json.Unmarshal(lines[0], &header); err != nil {
			t.Fatal(err)
		}
		h, err := header.holdout()
		if err != nil {
			t.Fatal(err)
		}
		genesis := h.Genesis()
		books := Books{ID: h.ID, Limits: h.Limits, Spent: h.Limits.none(), Head: genesis.Head}
		again := []Entry{genesis}
		for _, line := range lines[1:] {
			var r exportRecord
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			e, err := r.entry()
			if err != nil {
				t.Fatal(err)
			}
			kinds[e.Kind] = true
			core, _ := split(e.Body, e.Seq, e.Head)
			switch e.Kind {
			case KindAnswer, KindVoid:
				d, err := Draft(books, nothing{}, func(tx *Tx) error {
					_, err := tx.Append(Debit{Query: e.Query, Canonical: e.Canonical, Principal: e.Principal, Cost: e.Debit, Core: core, Time: e.Time, Void: e.Kind == KindVoid})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				books = d.Books
				again = append(again, d.Entries...)
			case KindClosed:
				d, err := Draft(books, nothing{}, func(tx *Tx) error {
					_, err := tx.Close(Closing{Principal: e.Principal, Core: core, Time: e.Time})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				books = d.Books
				again = append(again, d.Entries...)
			case KindDeleted:
				last, err := books.Deletion(e.Principal, e.Time)
				if err != nil {
					t.Fatal(err)
				}
				books.Seq, books.Head, books.Deleted = last.Seq, last.Head, true
				again = append(again, last)
			}
			if last := again[len(again)-1]; last.Head != e.Head || !bytes.Equal(last.Body, e.Body) || !reflect.DeepEqual(last.Debit, e.Debit) {
				t.Fatalf("%s: seq %d is written otherwise: %s, not %s", path, e.Seq, last.Body, e.Body)
			}
		}
		h.Spent = books.Spent
		chain := Chain{Holdout: h, Seq: books.Seq, Head: books.Head, Entries: func(yield func(Entry, error) bool) {
			for _, e := range again {
				if !yield(e, nil) {
					return
				}
			}
		}}
		var b bytes.Buffer
		if err := chain.Export(&b); err != nil || !bytes.Equal(b.Bytes(), whole) {
			t.Errorf("%s is written otherwise: %v", path, err)
		}
	}
	for _, kind := range []string{KindGenesis, KindAnswer, KindVoid, KindClosed, KindDeleted} {
		if !kinds[kind] {
			t.Errorf("no entry of the kind %q is recorded", kind)
		}
	}
}
