package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

const formatDoc = "../../docs/format/ledger.md"

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

// exampleExport makes the document's example with a ledger.
func exampleExport(t *testing.T) []byte {
	t.Helper()
	at := func(second int) time.Time { return time.Date(2026, 11, 21, 9, 30, second, 500_000_000, time.UTC) }
	l := openTest(t, newPath(t))
	mustCreate(t, l, Holdout{
		ID: "ho_example", Created: at(0), Digest: sha256.Sum256([]byte("a keyed digest of the table")),
		Public: []byte(`{"name":"flights"}`), Secret: []byte("secret"), State: []byte("state"), Questions: 1000,
	})
	for i, of := range []string{"delay > 15.0", "distance < 500.0"} {
		canonical := []byte(`{"of":"` + of + `","type":"fraction"}`)
		mustAsk(t, l, "ho_example", Debit{
			Query: headText(sha256.Sum256(canonical)), Canonical: canonical, Principal: "key_ann", Questions: 1, Time: at(i + 1),
			Core: []byte(`{"holdout":"ho_example","value":0.` + []string{"3121", "4407"}[i] + `}`),
		})
	}
	return export(t, l, "ho_example")
}

// TestDocumentedExample keeps docs/format/ledger.md true: its example is what a ledger writes, byte for byte.
func TestDocumentedExample(t *testing.T) {
	want := docBlock(t, "jsonl")
	if got := exampleExport(t); string(got) != want {
		t.Errorf("the ledger writes\n%s\nthe document says\n%s", got, want)
	}
	if _, err := VerifyExport(strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestStrangersVerifier recomputes the example's heads from the words of the document, with none of the ledger's code.
func TestStrangersVerifier(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(docBlock(t, "jsonl"), "\n"), "\n")
	prev := make([]byte, 32)
	for _, line := range lines[1:] {
		var e struct {
			Seq, Questions, Tokens                              int64
			Kind, Time, Query, Canonical, Principal, Body, Head string
			Spent                                               struct{ Questions, Tokens int64 }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		cut := strings.LastIndex(e.Body, `,"ledger":`)
		core := sha256.Sum256([]byte(e.Body[:cut] + "}"))
		var b bytes.Buffer
		n := func(v int64) { binary.Write(&b, binary.BigEndian, v) }
		s := func(v string) { n(int64(len(v))); b.WriteString(v) }
		b.WriteString("holdoutd ledger entry 1\n")
		b.Write(prev)
		n(e.Seq)
		for _, v := range []string{e.Kind, e.Time, e.Query, e.Canonical, e.Principal} {
			s(v)
		}
		for _, v := range []int64{e.Questions, e.Tokens, e.Spent.Questions, e.Spent.Tokens} {
			n(v)
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

// TestExportIsConsistentWhileWriting exports while others ask: every export verifies.
func TestExportIsConsistentWhileWriting(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 1<<40, 0))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := ask(l, t.Context(), "ho_1", testDebit(time.Duration(i).String())); err != nil {
				t.Error(err)
			}
		}
	}()
	var last int64
	for range 8 {
		r, err := VerifyExport(bytes.NewReader(export(t, l, "ho_1")))
		if err != nil || r.Entries < last {
			t.Fatalf("%+v after %d entries: %v", r, last, err)
		}
		last = r.Entries
		reports, err := VerifyDatabase(t.Context(), l.path)
		if err != nil || reports[0].Entries < last {
			t.Fatalf("%+v after %d entries: %v", reports, last, err)
		}
	}
	cancel()
	<-ended
}
