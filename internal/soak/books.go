package soak

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Books are what clients were told, kept by them: every answer that a reply acknowledged, and the least that any reply said was left of each
// meter. At the end they are held against the chain. An answer is kept as its SHA-256, so that a long run fits into memory.
type Books struct {
	mu       sync.Mutex
	holdouts map[string]*told
	wrong    []string
}

// told is what clients were told of one holdout.
type told struct {
	answers map[int64]receipt           // by the number of the question
	doubt   map[int64]bool              // questions that were sent, and nobody was told yet what became of them
	lost    []int64                     // those of them whose request is over: somebody should ask them again
	left    map[string]int64            // the least of each meter so far
	shown   map[int64][sha256.Size]byte // answers of the history, by their place
	replays int64
}

// A receipt is what an answer was, when it came first.
type receipt struct {
	body  [sha256.Size]byte
	query string
	seq   int64
	head  string
	cost  map[string]int64
}

// NewBooks returns books in which nothing is written yet.
func NewBooks() *Books { return &Books{holdouts: map[string]*told{}} }

func (b *Books) of(holdout string) *told {
	t := b.holdouts[holdout]
	if t == nil {
		t = &told{answers: map[int64]receipt{}, doubt: map[int64]bool{}, left: map[string]int64{}, shown: map[int64][sha256.Size]byte{}}
		b.holdouts[holdout] = t
	}
	return t
}

func (b *Books) say(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// Sent notes that questions are on their way. It returns what is left at most from now on: what a later reply may not exceed.
func (b *Books) Sent(holdout string, questions ...int64) (atMost map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.of(holdout)
	for _, q := range questions {
		if _, known := t.answers[q]; !known {
			t.doubt[q] = true
		}
	}
	return maps.Clone(t.left)
}

// Lost notes that a request is over, and nobody knows what became of its questions: they can be asked again.
func (b *Books) Lost(holdout string, questions ...int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.of(holdout)
	for _, q := range questions {
		if t.doubt[q] {
			t.lost = append(t.lost, q)
		}
	}
}

// Again takes a question that was lost, for one client to ask again.
func (b *Books) Again(holdout string) (question int64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.of(holdout)
	if len(t.lost) == 0 {
		return 0, false
	}
	question, t.lost = t.lost[len(t.lost)-1], t.lost[:len(t.lost)-1]
	return question, true
}

// Refused notes that questions were not asked: a reply said so.
func (b *Books) Refused(holdout string, questions ...int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.of(holdout)
	for _, q := range questions {
		delete(t.doubt, q)
	}
}

// Answered notes an answer to a question: the recorded bytes as they came, and whether the reply called them a replay. The same question must
// always have the same bytes.
func (b *Books) Answered(holdout string, question int64, body []byte, replayed bool) {
	var a struct {
		Holdout string           `json:"holdout"`
		Query   string           `json:"query"`
		Cost    map[string]int64 `json:"cost"`
		Ledger  struct {
			Seq  int64  `json:"seq"`
			Head string `json:"head"`
		} `json:"ledger"`
	}
	err := json.Unmarshal(body, &a)
	r := receipt{body: sha256.Sum256(body), query: a.Query, seq: a.Ledger.Seq, head: a.Ledger.Head, cost: a.Cost}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || a.Holdout != holdout {
		b.say("%s: question %d was answered by what is no answer of this holdout (%v): %.200s", holdout, question, err, body)
		return
	}
	t := b.of(holdout)
	first, known := t.answers[question]
	if !known {
		t.answers[question] = r
	}
	delete(t.doubt, question)
	if replayed {
		t.replays++
	}
	if known && first.body != r.body {
		b.say("%s: question %d has two answers, at the places %d and %d of the ledger", holdout, question, first.seq, r.seq)
	}
}

// Budget notes what a reply said is left of each meter. atMost is what Sent returned before the request: no budget goes up.
func (b *Books) Budget(holdout string, left, atMost map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.of(holdout)
	for meter, n := range left {
		if most, known := atMost[meter]; known && n > most {
			b.say("%s: a reply says that %d %s are left, after an earlier one said %d", holdout, n, meter, most)
		}
		if least, known := t.left[meter]; !known || n < least {
			t.left[meter] = n
		}
	}
}

// Shown notes an answer of the history.
func (b *Books) Shown(holdout string, body []byte) {
	var a struct {
		Ledger struct {
			Seq int64 `json:"seq"`
		} `json:"ledger"`
	}
	err := json.Unmarshal(body, &a)
	b.mu.Lock()
	defer b.mu.Unlock()
	t, digest := b.of(holdout), sha256.Sum256(body)
	if first, known := t.shown[a.Ledger.Seq]; err != nil || known && first != digest {
		b.say("%s: the history shows another answer at place %d than before (%v)", holdout, a.Ledger.Seq, err)
	}
	t.shown[a.Ledger.Seq] = digest
}

// Forget drops a holdout that was deleted after its books were checked.
func (b *Books) Forget(holdout string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.holdouts, holdout)
}

// Faults are the promises that clients saw broken by themselves.
func (b *Books) Faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrong)
}

// Wrong notes a broken promise that a client saw by itself.
func (b *Books) Wrong(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.say(format, args...)
}

// Balance is what one holdout's books and its chain come to.
type Balance struct {
	Holdout   string           `json:"holdout"`
	Mechanism string           `json:"mechanism"`
	Limits    map[string]int64 `json:"limits"`
	Spent     map[string]int64 `json:"spent"`    // by adding up the chain's debits
	Told      map[string]int64 `json:"told"`     // by adding up the costs of the answers that clients received
	Answers   int              `json:"answers"`  // distinct ones that were received
	Recorded  int              `json:"recorded"` // answers in the chain
	Replays   int64            `json:"replays"`
	InDoubt   int              `json:"in_doubt"` // questions of which nobody knows what became
}

// Check holds the chain of a holdout against what its clients were told, and against itself. budget is what the server says at the end is
// left. Every acknowledged answer must be in the chain, byte for byte and at its place, at the cost that it says; each query is charged once;
// and where no question is in doubt, the two sums agree. The balance's faults come beside it.
func (b *Books) Check(c *Chain, budget map[string]int64) (Balance, []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.of(c.Holdout)
	wrong := c.check()
	say := func(format string, args ...any) { wrong = append(wrong, c.Holdout+": "+fmt.Sprintf(format, args...)) }
	sum := Balance{Holdout: c.Holdout, Limits: c.Limits, Spent: map[string]int64{}, Told: map[string]int64{},
		Answers: len(t.answers), Replays: t.replays, InDoubt: len(t.doubt)}
	for meter := range c.Limits {
		sum.Spent[meter], sum.Told[meter] = 0, 0
	}
	for _, e := range c.Entries {
		if e.Kind == "answer" {
			sum.Recorded++
		}
		for meter, n := range e.Debit {
			sum.Spent[meter] += n
		}
	}
	for _, question := range slices.Sorted(maps.Keys(t.answers)) {
		r := t.answers[question]
		for meter, n := range r.cost {
			if _, metered := sum.Told[meter]; metered || n != 0 {
				sum.Told[meter] += n
			}
		}
		if r.seq < 1 || r.seq >= int64(len(c.Entries)) {
			say("the answer to question %d was acknowledged as entry %d, which the chain does not have", question, r.seq)
			continue
		}
		e := c.Entries[r.seq]
		if sha256.Sum256([]byte(e.Body)) != r.body || e.Head != r.head || e.Query != r.query {
			say("entry %d is not the answer to question %d that was acknowledged", r.seq, question)
		}
		for meter := range c.Limits {
			if e.Debit[meter] != r.cost[meter] {
				say("entry %d debits %d %s; the answer says that it cost %d", r.seq, e.Debit[meter], meter, r.cost[meter])
			}
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(t.shown)) {
		if seq < 1 || seq >= int64(len(c.Entries)) || sha256.Sum256([]byte(c.Entries[seq].Body)) != t.shown[seq] {
			say("the history showed an answer at place %d that the chain does not have there", seq)
		}
	}
	if unheard := sum.Recorded - sum.Answers; unheard > sum.InDoubt || unheard < 0 {
		say("%d answers are recorded and %d were received, with %d questions in doubt", sum.Recorded, sum.Answers, sum.InDoubt)
	}
	for _, meter := range slices.Sorted(maps.Keys(c.Limits)) {
		if sum.InDoubt == 0 && sum.Told[meter] != sum.Spent[meter] {
			say("the answers that were received cost %d %s together; %d are debited", sum.Told[meter], meter, sum.Spent[meter])
		}
		if left, said := budget[meter]; said && left != c.Limits[meter]-sum.Spent[meter] {
			say("the server says that %d %s are left; %d of %d are spent", left, meter, sum.Spent[meter], c.Limits[meter])
		}
		if least, said := t.left[meter]; said && least < c.Limits[meter]-sum.Spent[meter] {
			say("a reply said that %d %s are left; by the chain it was never below %d", least, meter, c.Limits[meter]-sum.Spent[meter])
		}
	}
	return sum, wrong
}
