package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What a reader is shown of answers is decided here, when they are read: an answer is recorded whole, whoever asked for it, and replayed to whoever asks again. Whatever else follows from a recorded
// answer, or from what answers cost, is narrowed with it.

// Shows is what a grant shows of answers. Each shows less than the one before.
type Shows string

const (
	ShowsFull  Shows = "full"  // the recorded answer
	ShowsValue Shows = "value" // its numbers and verdict, without intervals, p-values, sources and tokens
	ShowsBit   Shows = "bit"   // whether its verdict is yes
)

var showsOrder = map[Shows]int{ShowsBit: 1, ShowsValue: 2, ShowsFull: 3}

func (s Shows) known() bool { return showsOrder[s] > 0 }

// less reports whether s shows less than other.
func (s Shows) less(other Shows) bool { return showsOrder[s] < showsOrder[other] }

// right is what a principal may see of a holdout.
type right struct{ shows Shows }

// rightTo is what a principal may see of a holdout. Where it may see nothing, the holdout is not there for it.
func (s *Service) rightTo(ctx context.Context, p Principal, id string) (right, error) {
	if p.Scope != Granted {
		return right{ShowsFull}, nil
	}
	_, g, err := s.grantOf(ctx, p, id)
	return right{Shows(g.Shows)}, err
}

// grantOf is the grant of a principal, with all grants of the holdout. It fails with NotFound where there is none and with GrantEnded where it has ended.
func (s *Service) grantOf(ctx context.Context, p Principal, id string) (ledger.Grants, ledger.Grant, error) {
	list, err := s.grantsIn(ctx, id)
	if err != nil {
		return nil, ledger.Grant{}, err
	}
	for _, g := range list {
		if id == "" || g.Key != p.KeyID {
			continue
		}
		all := ledger.GrantsOf(list)
		if ended := s.live(all, g.ID); ended != nil {
			return nil, ledger.Grant{}, ended
		}
		return all, g, nil
	}
	return nil, ledger.Grant{}, s.ledgerError(ledger.ErrNotFound)
}

// grantedTo says which holdouts are there for a principal.
func (s *Service) grantedTo(ctx context.Context, p Principal) (func(id string) bool, error) {
	if p.Scope != Granted {
		return func(string) bool { return true }, nil
	}
	list, err := s.grantsIn(ctx, "")
	if err != nil {
		return nil, err
	}
	all, mine := ledger.GrantsOf(list), map[string]bool{}
	for _, g := range list {
		if g.Key == p.KeyID && s.live(all, g.ID) == nil {
			mine[g.Holdout] = true
		}
	}
	return func(id string) bool { return mine[id] }, nil
}

// all refuses who is not shown everything.
func (r right) all(what string) error {
	if r.shows != ShowsFull {
		return fail(NotShown, "the grant of this key shows %q of answers, and %s says more", r.shows, what)
	}
	return nil
}

// noWidth is the refusal of a half-width under a grant that shows no intervals: whether a guess can pass at it says how many tokens are spent.
func (r right) noWidth() error {
	return &Error{Kind: NotShown, Pointer: "/half_width", Detail: fmt.Sprintf("the grant of this key shows %q of answers, and no intervals; leave half_width out", r.shows)}
}

// report refuses to replay an answer of a final report to whom reports are not shown: it is the holdout's own number, where an answer of a question may be the one that it was compared with.
func (r right) report(q *queries.Query) error {
	if q.IsReported() {
		return r.all("an answer of the final report")
	}
	return nil
}

// noBit is the refusal of a question under a grant that shows bits.
func noBit() *Error {
	return fail(NotShown, "the grant of this key shows whether a verdict is yes, and this question has no verdict; ask one that decides: a compare, a passes or a test")
}

// Narrowed is an answer as a reader is shown it who is not shown all of it: the members of an answer, of which those that are not shown are null, 0 or empty. The head of the chain is one of them: it commits to the whole
// answer, and who knows the rest of that could find it by trying.
type Narrowed struct {
	session.Answer
	Shown
	Ledger struct {
		Seq  int64  `json:"seq"`
		Head string `json:"head"`
	} `json:"ledger"`
}

// Shown are the members that only a narrowed answer has.
type Shown struct {
	Shows  Shows `json:"shows,omitempty" enum:"value,bit" doc:"of an answer that is not shown whole: what the grant of the key shows. Intervals are null then, p-values and outcomes absent, source is hidden, cost has no tokens, and the head of the chain is empty"`
	Passed *bool `json:"passed,omitempty" doc:"where a grant shows bit: whether the verdict is yes"`
}

// sourceHidden stands for the source of a narrowed answer.
const sourceHidden thresholdout.Source = "hidden"

// has reports whether a recorded answer has what the reader is shown.
func (r right) has(body []byte) bool {
	if r.shows != ShowsBit {
		return true
	}
	var said struct{ Verdict queries.Verdict }
	return json.Unmarshal(body, &said) == nil && said.Verdict != ""
}

// shown is a recorded answer as the reader is shown it.
func (r right) shown(body []byte) ([]byte, error) {
	if r.shows == ShowsFull || body == nil {
		return body, nil
	}
	var a Narrowed
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("holdout: the recorded answer: %w", err)
	}
	n := Narrowed{Shown: Shown{Shows: r.shows}, Answer: session.Answer{Version: a.Version, ID: a.ID, Holdout: a.Holdout, Query: a.Query, Mechanism: a.Mechanism, Source: sourceHidden, Cost: Cost{Questions: a.Cost.Questions}}}
	n.Ledger.Seq = a.Ledger.Seq
	switch r.shows {
	case ShowsValue:
		n.Value, n.Selected, n.Verdict = a.Value, a.Selected, a.Verdict
		for _, i := range a.Items {
			n.Items = append(n.Items, Item{Of: i.Of, Value: i.Value})
		}
	default:
		passed := a.Verdict == queries.Yes
		n.Passed = &passed
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // as answers are recorded
	err := e.Encode(n)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// narrow leaves of a reply, or of a refusal, what the reader is shown.
func (s *Service) narrow(ctx context.Context, p Principal, id string, r right, b *BatchAnswer, failed error) (err error) {
	if failed != nil {
		return r.refusal(failed)
	}
	for i := range b.Answers {
		body := b.Answers[i].Body
		if body != nil && !r.has(body) {
			err = noBit()
		} else {
			b.Answers[i].Body, err = r.shown(body)
		}
		if err != nil {
			*b = BatchAnswer{}
			return err
		}
	}
	if b.Budget, err = s.budgetFor(ctx, p, id, r, b.Budget); err != nil {
		*b = BatchAnswer{}
	}
	return err
}

// refusal is a refusal as the reader is shown it: how many tokens the holdout has left, and what half-width an answer would have now, follow from what answers cost.
func (r right) refusal(err error) error {
	var e *Error
	if r.shows == ShowsFull || !errors.As(err, &e) {
		return err
	}
	var width *session.NarrowError
	switch {
	case errors.As(err, &width):
		return &Error{Kind: e.Kind, Pointer: e.Pointer, Err: err, Detail: "no guess can pass at this half_width; name a wider one, or none. Nothing was debited"}
	case e.Kind == BudgetExhausted && e.Members["meter"] == thresholdout.MeterTokens:
		return &Error{Kind: e.Kind, Err: err, Detail: "too few tokens of the holdout are left for the question; questions that were answered before are still replayed",
			Members: map[string]any{"requested": e.Members["requested"], "meter": thresholdout.MeterTokens}}
	}
	return err
}

// budgetFor is a holdout's budget as a principal sees it: to a key with a grant it is what the grant can still spend. Tokens are shown where all is: whether an answer took one says how it came out.
func (s *Service) budgetFor(ctx context.Context, p Principal, id string, r right, b Budget) (Budget, error) {
	if p.Scope != Granted {
		return b, nil
	}
	all, g, err := s.grantOf(ctx, p, id)
	if err != nil {
		return b, err
	}
	by, err := s.debits(ctx, id)
	if err != nil {
		return b, err
	}
	if b.Held != nil { // to a key with a grant it is spent, by whom is not for it to know
		b.Questions.Left = max(0, b.Questions.Left-b.Held.Questions)
		if b.Tokens != nil {
			b.Tokens = &Meter{Left: max(0, b.Tokens.Left-b.Held.Tokens), Of: b.Tokens.Of}
		}
		b.Held = nil
	}
	chain := levels(all, g.ID, by, nil)
	narrowed := func(m Meter, name string) Meter {
		own := chain.meter(name, by[g.Key], m.Left)
		if own.Of != nil {
			m.Of = *own.Of
		}
		return Meter{Left: own.Left, Of: m.Of}
	}
	b.Questions = narrowed(b.Questions, thresholdout.MeterQuestions)
	if b.Tokens != nil && r.shows == ShowsFull {
		tokens := narrowed(*b.Tokens, thresholdout.MeterTokens)
		b.Tokens = &tokens
	} else {
		b.Tokens = nil
	}
	return b, nil
}
