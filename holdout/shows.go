package holdout

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Shows is what of an answer a grant shows to its holder. What is recorded is the same for all.
type Shows string

const (
	ShowsFull  Shows = "full"  // the recorded bytes
	ShowsValue Shows = "value" // the numbers without their intervals, p-values, and what the mechanism found
	ShowsBit   Shows = "bit"   // the verdict alone, of questions that have one
)

// rank orders what is shown: more has a higher one, and what is not known has the lowest.
func (s Shows) rank() int {
	switch s {
	case ShowsFull:
		return 3
	case ShowsValue:
		return 2
	case ShowsBit:
		return 1
	}
	return 0
}

// and is the lesser of the two.
func (s Shows) and(other Shows) Shows {
	if other.rank() < s.rank() {
		return other
	}
	return s
}

// NotShown stands for the source of an answer that a grant does not show.
const NotShown thresholdout.Source = "not-shown"

// shownPlace is an answer's place in the chain without the head: it is a hash of all of the answer, by which guesses of what is not shown could be tried.
type shownPlace struct {
	Seq  int64  `json:"seq"`
	Head string `json:"head"`
}

// shownAnswer is what is shown of an answer that is not shown in full.
type shownAnswer struct {
	session.Answer
	Ledger shownPlace `json:"ledger"`
}

// shown is a recorded answer as a grant shows it: the one place where that is decided, for replies, replays, the history, streams and agents. What is shown is taken
// over member by member, so that a member to come is not shown until somebody has decided that it is.
func shown(body json.RawMessage, shows Shows) (json.RawMessage, error) {
	if shows == ShowsFull || body == nil {
		return body, nil
	}
	var recorded struct {
		session.Answer
		Ledger shownPlace `json:"ledger"`
	}
	if err := json.Unmarshal(body, &recorded); err != nil {
		return nil, fmt.Errorf("holdout: a recorded answer cannot be read: %w", err)
	}
	r := recorded.Answer
	a := shownAnswer{Ledger: shownPlace{Seq: recorded.Ledger.Seq}}
	a.Version, a.ID, a.Holdout, a.Query, a.Mechanism, a.Source, a.Shows = r.Version, r.ID, r.Holdout, r.Query, r.Mechanism, NotShown, string(shows)
	a.Verdict = r.Verdict
	a.Cost.Questions, a.Cost.Rounds = r.Cost.Questions, r.Cost.Rounds
	if shows == ShowsValue {
		a.Value, a.Selected, a.Best, a.Cost = r.Value, r.Selected, r.Best, r.Cost
		for _, item := range r.Items {
			a.Items = append(a.Items, session.Item{Of: item.Of, Value: item.Value})
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		return nil, fmt.Errorf("holdout: show an answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// show makes the items what a grant shows of them.
func (b *BatchAnswer) show(shows Shows) (err error) {
	for i := range b.Answers {
		if b.Answers[i].Body, err = shown(b.Answers[i].Body, shows); err != nil {
			return err
		}
	}
	return nil
}

// ofQuestion are the codes of warnings that follow from a question, from what is handed out and from what the asker can spend, and not from how wide intervals are.
var ofQuestion = map[string]bool{session.NullValues: true, session.ClampedValues: true, session.TrainingScore: true, PriceUnconfirmed: true, RoundNotFull: true,
	QuestionsExhausted: true, TokensExhausted: true, RoundsExhausted: true, GrantEnded: true}

// show leaves of an explanation what is said of the question, of the training part and of the price. How wide intervals are now, how an answer can come out and how
// a recorded one came out follow from what was found before.
func (e *Explanation) show(shows Shows) {
	if shows == ShowsFull {
		return
	}
	e.HalfWidth, e.Widest, e.Bound, e.Promise, e.Regret, e.Verdict = nil, nil, "", nil, nil, ""
	e.Outcomes = []ForeseenOutcome{}
	for i := range e.Items {
		e.Items[i].Low, e.Items[i].High = nil, nil
	}
	kept := []Warning{}
	for _, w := range e.Warnings {
		if ofQuestion[w.Code] {
			kept = append(kept, w)
		}
	}
	e.Warnings = kept
	if shows == ShowsBit {
		e.Cost.Tokens = 0
	}
}

// shownBudget leaves out of a budget what tells how answers came out.
func shownBudget(b Budget, shows Shows) Budget {
	if shows == ShowsFull {
		return b
	}
	if b.Shows = string(shows); shows == ShowsBit {
		b.Tokens = nil
	}
	return b
}
