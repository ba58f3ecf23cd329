package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// docBlock is the first fenced block of the document whose fence line is "```"+fence.
func docBlock(t testing.TB, fence string) string {
	t.Helper()
	doc, err := os.ReadFile(formatDoc)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "\n```"+fence+"\n")
	block, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatalf("no block ```%s in %s", fence, formatDoc)
	}
	return block
}

const formatDoc = "../../docs/format/ledger.md"

// example makes the document's example with a ledger.
func example(t *testing.T) string {
	t.Helper()
	at := func(second int) time.Time { return time.Date(2026, 11, 21, 9, 30, second, 500_000_000, time.UTC) }
	l, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{Key: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = l.CreateHoldout(t.Context(), ledger.Holdout{
		ID: "ho_example", Created: at(0), Digest: sha256.Sum256([]byte("a keyed digest of the table")),
		Public: []byte(`{"name":"flights"}`), Secret: []byte("secret"), State: []byte("state"),
		Limits: ledger.Meters{"questions": 1000, "tokens": 20},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range []string{"delay > 15.0", "distance < 500.0"} {
		canonical := []byte(`{"of":"` + of + `","type":"fraction"}`)
		d := ledger.Debit{
			Query: ledger.HeadText(sha256.Sum256(canonical)), Canonical: canonical, Principal: "key_ann", Time: at(i + 1),
			Cost: ledger.Meters{"questions": 1, "tokens": int64(i)},
			Core: []byte(`{"holdout":"ho_example","value":0.` + []string{"3121", "4407"}[i] + `}`),
		}
		if err := l.Update(t.Context(), "ho_example", func(tx *ledger.Tx) error { _, err := tx.Append(d); return err }); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := l.Export(t.Context(), "ho_example", &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDocumentedExample keeps docs/format/ledger.md true: its example is what a ledger writes, byte for byte.
func TestDocumentedExample(t *testing.T) {
	want := docBlock(t, "jsonl")
	if got := example(t); got != want {
		t.Errorf("the ledger writes\n%s\nthe document says\n%s", got, want)
	}
	if _, err := ledger.VerifyExport(strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestStrangersVerifier recomputes the example's heads from the words of the document, with none of the ledger's code.
func TestStrangersVerifier(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(docBlock(t, "jsonl"), "\n"), "\n")
	prev := make([]byte, 32)
	for _, line := range lines[1:] {
		var e struct {
			Seq                                                 int64
			Kind, Time, Query, Canonical, Principal, Body, Head string
			Debit, Spent                                        map[string]int64
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		cut := strings.LastIndex(e.Body, `,"ledger":`)
		core := sha256.Sum256([]byte(e.Body[:cut] + "}"))
		var b bytes.Buffer
		n := func(v int64) { binary.Write(&b, binary.BigEndian, v) }
		s := func(v string) { n(int64(len(v))); b.WriteString(v) }
		b.WriteString("holdoutd ledger entry 2\n")
		b.Write(prev)
		n(e.Seq)
		for _, v := range []string{e.Kind, e.Time, e.Query, e.Canonical, e.Principal} {
			s(v)
		}
		n(int64(len(e.Spent)))
		for _, meter := range slices.Sorted(maps.Keys(e.Spent)) {
			s(meter)
			n(e.Debit[meter])
			n(e.Spent[meter])
		}
		b.Write(core[:])
		head := sha256.Sum256(b.Bytes())
		if got := "sha256:" + hex.EncodeToString(head[:]); got != e.Head {
			t.Errorf("seq %d: %s, the document says %s", e.Seq, got, e.Head)
		}
		if e.Seq == 1 {
			if want := strings.TrimSpace(docBlock(t, "hex")); strings.Join(strings.Fields(want), "") != hex.EncodeToString(b.Bytes()) {
				t.Errorf("the bytes hashed for seq 1 are\n%s", hexLines(b.Bytes()))
			}
		}
		prev = head[:]
	}
}

// hexLines is hex in lines of 32 bytes.
func hexLines(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		n := min(32, len(b))
		s.WriteString(hex.EncodeToString(b[:n]) + "\n")
		b = b[n:]
	}
	return s.String()
}

// FuzzVerifyExport: whatever the bytes, VerifyExport returns; and what it accepts is spelled in one way only, so that
// an accepted export with any byte appended is not accepted.
func FuzzVerifyExport(f *testing.F) {
	// The documented example is the seed: a database run by the fuzzing worker would drown what it watches.
	f.Add([]byte(docBlock(f, "jsonl")))
	f.Add([]byte(`{"format":"holdoutd-ledger/2"}` + "\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := ledger.VerifyExport(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ledger.ErrCorrupt) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		for meter, spent := range report.Spent {
			if limit, ok := report.Limits[meter]; report.Entries < 1 || !ok || spent > limit || len(report.Spent) != len(report.Limits) {
				t.Fatalf("accepted %+v", report)
			}
		}
		if _, err := ledger.VerifyExport(bytes.NewReader(append(bytes.Clone(data), '\n'))); err == nil {
			t.Fatal("another spelling is accepted too")
		}
	})
}
