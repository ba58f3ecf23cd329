package soak

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const testHoldout = "ho_test"

// forge writes an export whose hashes are in order, of entries as given: a server that is at fault would write it like this. Bodies get their
// place here.
func forge(t *testing.T, limits map[string]int64, entries []Entry) []byte {
	t.Helper()
	meters := []string{"questions", "tokens"}
	var before [sha256.Size]byte
	var lines bytes.Buffer
	spent := map[string]int64{}
	for i := range entries {
		e := &entries[i]
		e.Version, e.Seq = entryVersion, int64(i)
		core := e.Body
		before = e.hash(before, meters, core)
		e.Head = "sha256:" + hex.EncodeToString(before[:])
		e.Body = fmt.Sprintf(`%s,"ledger":{"seq":%d,"head":"%s"}}`, strings.TrimSuffix(core, "}"), i, e.Head)
		spent = e.Spent
	}
	write := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(text, '\n'))
	}
	write(map[string]any{"format": exportFormat, "holdout": testHoldout, "limits": limits, "spent": spent, "entries": len(entries)})
	for _, e := range entries {
		write(e)
	}
	return lines.Bytes()
}

// entries are a genesis and three answers, of which the second cost a token.
func honest() []Entry {
	all := []Entry{{Kind: "genesis", Body: `{"holdout":"ho_test"}`, Debit: map[string]int64{"questions": 0, "tokens": 0}, Spent: map[string]int64{"questions": 0, "tokens": 0}}}
	tokens := int64(0)
	for i := range int64(3) {
		token := i % 2
		tokens += token
		query := fmt.Sprintf("sha256:%d", i)
		all = append(all, Entry{Kind: "answer", Query: query, Debit: map[string]int64{"questions": 1, "tokens": token}, Spent: map[string]int64{"questions": i + 1, "tokens": tokens},
			Body: fmt.Sprintf(`{"holdout":"ho_test","query":"%s","value":0.%d,"cost":{"questions":1,"tokens":%d}}`, query, i, token)})
	}
	return all
}

// received are the books of clients that were given the answers of a chain, in its order.
func received(t *testing.T, export []byte) (*Books, *Chain) {
	t.Helper()
	c, err := ReadChain(bytes.NewReader(export))
	if err != nil {
		t.Fatal(err)
	}
	b := NewBooks()
	for i, e := range c.Entries[1:] {
		atMost := b.Sent(testHoldout, int64(i))
		b.Answered(testHoldout, int64(i), []byte(e.Body), false)
		b.Budget(testHoldout, map[string]int64{"questions": 10 - e.Spent["questions"]}, atMost)
	}
	return b, c
}

// TestBooksBalance: what is in order is said to be, and each way in which a server could cheat or lose is found. Every case would go
// unnoticed if its check were missing.
func TestBooksBalance(t *testing.T) {
	limits := map[string]int64{"questions": 10, "tokens": 2}
	budget := map[string]int64{"questions": 7, "tokens": 1}
	for _, c := range []struct {
		name  string
		forge func(entries []Entry) []Entry   // of the chain that is exported in the end
		told  func(b *Books, entries []Entry) // what clients were told besides
		lie   func(export []byte) []byte      // in the export's text
		left  map[string]int64                // by the server, at the end
		says  string
	}{
		{name: "in order"},
		{name: "an acknowledged answer is lost", forge: func(e []Entry) []Entry { return e[:3] }, left: map[string]int64{"questions": 8, "tokens": 1}, says: "which the chain does not have"},
		{name: "another answer is in its place", forge: func(e []Entry) []Entry {
			e[2].Body = strings.Replace(e[2].Body, "0.1", "0.2", 1)
			return e
		}, says: "is not the answer to question 1"},
		{name: "a debit is forgotten", forge: func(e []Entry) []Entry {
			e[3].Debit["questions"], e[3].Spent["questions"] = 0, 2
			return e
		}, left: map[string]int64{"questions": 8, "tokens": 1}, says: "the answer says that it cost 1"},
		{name: "sums do not add up", forge: func(e []Entry) []Entry {
			e[3].Spent["questions"] = 2
			return e
		}, says: "the debits so far come to 3"},
		{name: "charged twice", forge: func(e []Entry) []Entry {
			again := e[3]
			again.Debit, again.Spent = map[string]int64{"questions": 1, "tokens": 0}, map[string]int64{"questions": 4, "tokens": 1}
			return append(e, again)
		}, left: map[string]int64{"questions": 6, "tokens": 1}, says: "answered and charged twice"},
		{name: "overspent", forge: func(e []Entry) []Entry {
			e[3].Debit["tokens"], e[3].Spent["tokens"] = 2, 3
			return e
		}, says: "3 tokens are spent by entry 3, of 2"},
		{name: "a void", forge: func(e []Entry) []Entry {
			return append(e, Entry{Kind: "void", Query: "sha256:9", Body: `{"void":true}`, Debit: map[string]int64{"questions": 1, "tokens": 0}, Spent: map[string]int64{"questions": 4, "tokens": 1}})
		}, left: map[string]int64{"questions": 6, "tokens": 1}, says: "is void"},
		{name: "an answer that nobody asked for", forge: func(e []Entry) []Entry {
			return append(e, Entry{Kind: "answer", Query: "sha256:9", Body: `{"value":0}`, Debit: map[string]int64{"questions": 1, "tokens": 0}, Spent: map[string]int64{"questions": 4, "tokens": 1}})
		}, left: map[string]int64{"questions": 6, "tokens": 1}, says: "4 answers are recorded and 3 were received"},
		{name: "a head that does not follow", lie: func(e []byte) []byte {
			return bytes.Replace(e, []byte(`"principal":""`), []byte(`"principal":"key_eve"`), 1)
		}, says: "does not follow"},
		{name: "the header lies", lie: func(e []byte) []byte {
			return bytes.Replace(e, []byte(`"spent":{"questions":3`), []byte(`"spent":{"questions":1`), 1)
		}, says: "the header says"},
		{name: "the server says more is left", left: map[string]int64{"questions": 8}, says: "the server says that 8 questions are left"},
		{name: "a budget went up", told: func(b *Books, _ []Entry) {
			atMost := b.Sent(testHoldout)
			b.Budget(testHoldout, map[string]int64{"questions": 8}, atMost)
		}, says: "after an earlier one said 7"},
		{name: "a budget was below the chain's", told: func(b *Books, _ []Entry) {
			b.Budget(testHoldout, map[string]int64{"questions": 6}, b.Sent(testHoldout))
		}, says: "by the chain it was never below 7"},
		{name: "a replay has other bytes", told: func(b *Books, e []Entry) {
			b.Sent(testHoldout, 1)
			b.Answered(testHoldout, 1, append([]byte(e[2].Body), ' '), true)
		}, says: "question 1 has two answers"},
		{name: "the history shows something else", told: func(b *Books, e []Entry) {
			b.Shown(testHoldout, []byte(strings.Replace(e[2].Body, "0.1", "0.3", 1)))
		}, says: "the history showed an answer at place 2"},
		{name: "another holdout's answer", told: func(b *Books, _ []Entry) {
			b.Sent(testHoldout, 9)
			b.Answered(testHoldout, 9, []byte(`{"holdout":"ho_other"}`), false)
			b.Refused(testHoldout, 9)
		}, says: "no answer of this holdout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, chain := received(t, forge(t, limits, honest()))
			if c.told != nil {
				c.told(b, chain.Entries)
			}
			entries := honest()
			if c.forge != nil {
				entries = c.forge(entries)
			}
			export := forge(t, limits, entries)
			if c.lie != nil {
				lied := c.lie(export)
				if bytes.Equal(lied, export) {
					t.Fatal("the lie changes nothing")
				}
				export = lied
			}
			chain, err := ReadChain(bytes.NewReader(export))
			if err != nil {
				t.Fatal(err)
			}
			left := budget
			if c.left != nil {
				left = c.left
			}
			_, wrong := b.Check(chain, left)
			wrong = append(wrong, b.Faults()...)
			switch said := strings.Join(wrong, "\n"); {
			case c.says == "" && said != "":
				t.Errorf("it is in order, and is said to be wrong:\n%s", said)
			case !strings.Contains(said, c.says):
				t.Errorf("not noticed: %q is not in\n%s", c.says, said)
			}
		})
	}
}

// TestDoubt: a question whose reply was lost is asked again by one client, and may be in the chain or not until it is.
func TestDoubt(t *testing.T) {
	limits := map[string]int64{"questions": 10, "tokens": 2}
	export := forge(t, limits, honest())
	chain, err := ReadChain(bytes.NewReader(export))
	if err != nil {
		t.Fatal(err)
	}
	b := NewBooks()
	b.Sent(testHoldout, 0, 1, 2)
	b.Answered(testHoldout, 0, []byte(chain.Entries[1].Body), false)
	b.Answered(testHoldout, 1, []byte(chain.Entries[2].Body), false)
	b.Lost(testHoldout, 1, 2)
	sum, wrong := b.Check(chain, nil)
	if len(wrong) > 0 || sum.InDoubt != 1 || sum.Recorded != 3 || sum.Answers != 2 {
		t.Errorf("with a reply that was lost: %+v %q", sum, wrong)
	}
	if q, ok := b.Again(testHoldout); !ok || q != 2 {
		t.Errorf("to be asked again: %d, %v", q, ok)
	}
	if q, ok := b.Again(testHoldout); ok {
		t.Errorf("%d is asked again by two", q)
	}
	b.Answered(testHoldout, 2, []byte(chain.Entries[3].Body), true)
	if sum, wrong = b.Check(chain, nil); len(wrong) > 0 || sum.InDoubt != 0 || sum.Told["questions"] != 3 || sum.Told["tokens"] != 1 {
		t.Errorf("at the end: %+v %q", sum, wrong)
	}
}
