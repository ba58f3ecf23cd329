package statements

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// explained is an explanation and the answer that came.
type explained struct {
	body  string
	e     holdout.Explanation
	a     session.Answer
	token int64 // that were left
}

// wrongs are what an explanation said that the answer does not keep.
func (x explained) wrongs() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var came *holdout.ForeseenOutcome
	for i := range x.e.Outcomes {
		if x.e.Outcomes[i].Outcome == x.a.Outcome {
			came = &x.e.Outcomes[i]
		}
	}
	if came == nil {
		say("the outcome %q is none of %+v", x.a.Outcome, x.e.Outcomes)
		return wrong
	}
	if x.a.Cost.Questions != came.Cost.Questions || x.a.Cost.Tokens > came.Cost.Tokens || x.a.Outcome != session.Mixed && x.a.Cost.Tokens != min(came.Cost.Tokens, x.token) {
		say("%s costs %+v and not %+v", x.a.Outcome, x.a.Cost, came.Cost)
	}
	recorded, err := session.ReadProspect(&x.a)
	switch {
	case err != nil:
		say("%v", err)
	case recorded.HalfWidth == nil:
	case x.a.Mechanism != thresholdout.Naive && (came.Widest == nil || x.e.Widest == nil):
		say("nothing is said of how wide %s can be, and it is ±%v", x.a.Outcome, *recorded.HalfWidth)
	case came.Widest != nil && *recorded.HalfWidth > *came.Widest:
		say("%s is ±%v, and at most ±%v was said", x.a.Outcome, *recorded.HalfWidth, *came.Widest)
	case x.e.Widest != nil && *recorded.HalfWidth > *x.e.Widest:
		say("%s is ±%v, and at most ±%v was said of all outcomes", x.a.Outcome, *recorded.HalfWidth, *x.e.Widest)
	}
	return wrong
}

// TestWhatComesWasExplained: for every query type, every mechanism, rows and units of several rows, training parts that are like the holdout and such that are not, the outcome that comes is one
// of those that explain named just before, at its price, and no wider than explain said; afterwards explain says what was recorded, at no cost. It would notice an explained width that is that of another
// outcome, of another state or of the planned variance alone, a token that is not named, and an outcome that is missing.
func TestWhatComesWasExplained(t *testing.T) {
	s := open(t)
	r := rand.New(rand.NewPCG(12, 3))
	var all []string
	for _, s := range statements() {
		all = append(all, s.body)
	}
	var promised []string
	for _, promise := range []string{`"at_most":0.3`, `"at_most":0.01`, `"at_least":0.99`, `"variance":0.2`} { // of which some are kept and some broken
		promised = append(promised, `{"type":"mean","of":"w ? 0.2 : 0.1","range":[0,1],"promise":{`+promise+`}}`)
	}
	came, wider := map[thresholdout.Outcome]int{}, 0
	for i, mechanism := range []holdout.Settings{
		{Mechanism: "guess_and_check", Questions: 400, Tokens: 300},
		{Mechanism: "guess_and_check", Questions: 400, Tokens: 40},
		{Mechanism: "gaussian", Questions: 300},
		{Mechanism: "gaussian", Questions: 300, Rounds: 2},
		{Mechanism: "gaussian", Questions: 600, Rounds: 1},
		{Mechanism: "gaussian", Questions: 80, Bounds: "published"},
		{Mechanism: "thresholdout", Questions: 400, Tokens: 200},
		{Mechanism: "thresholdout", Form: "laplace", Questions: 80, Tokens: 40},
		{Mechanism: "split", Questions: 12},
		{Mechanism: "naive", Questions: 300},
	} {
		set, alike, grouped := mechanism, i%2 == 0, i%3 == 1
		set.Name = fmt.Sprintf("%d %s alike=%v grouped=%v", i, set.Mechanism, alike, grouped)
		if grouped {
			set.Unit = "ward"
		}
		set.Split = "given"
		from := population(r, grouped, false)
		other := from
		if !alike { // every fourth unit is from elsewhere
			other = nil
			for i, part := range [][]clinic{from, population(r, grouped, false)} {
				for _, c := range part {
					c.probability *= []float64{0.75, 0.25}[i]
					other = append(other, c)
				}
			}
		}
		training, rows := sampled(t, r, other, 900), sampled(t, r, from, 1500)
		if grouped { // no unit is in both parts
			for at := range training.Column(0).Numbers {
				training.Column(0).Numbers[at] += 1e6
			}
		}
		card, _, err := s.Create(t.Context(), admin, set, given(t, training, rows), "")
		if err != nil {
			t.Fatal(err)
		}
		var seen []explained
		bodies := all
		if set.Mechanism == "guess_and_check" {
			bodies = append(guessesAround(t, s, card.ID), all...)
		} else {
			r.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
			bodies = append(bodies[:len(bodies)/2:len(bodies)/2], promised...)
		}
		for _, body := range bodies {
			x := explained{body: body}
			var err error
			if x.e, err = s.Explain(t.Context(), analyst, card.ID, []byte(x.body)); holdout.KindOf(err) == holdout.Invalid {
				continue // not a question for this mechanism
			} else if err != nil {
				t.Fatalf("%s: %s: %v", set.Name, x.body, err)
			}
			if set.Rounds == 0 && !x.ask(t, s, card.ID) {
				continue
			}
			seen = append(seen, x)
		}
		if set.Rounds > 0 {
			seen = askInRounds(t, s, card.ID, seen, int(set.Rounds))
		}
		if len(seen) < 5 {
			t.Fatalf("%s: only %d answers", set.Name, len(seen))
		}
		for _, x := range seen {
			for _, wrong := range x.wrongs() {
				t.Errorf("%s: %s: %s", set.Name, x.body, wrong)
			}
			came[x.a.Outcome]++
			after, err := s.Explain(t.Context(), analyst, card.ID, []byte(x.body))
			recorded, _ := session.ReadProspect(&x.a)
			if err != nil || !after.Answered || after.Cost != (holdout.Cost{}) || len(after.Outcomes) != 1 || !after.Outcomes[0].Recorded || after.Outcomes[0].Outcome != x.a.Outcome ||
				fmt.Sprint(number(after.HalfWidth), number(after.Widest)) != fmt.Sprint(number(recorded.HalfWidth), number(recorded.HalfWidth)) {
				t.Errorf("%s: %s: explained afterwards: %+v, %v", set.Name, x.body, after, err)
			}
			for _, o := range x.e.Outcomes {
				if o.Outcome == x.a.Outcome && o.HalfWidth != nil && recorded.HalfWidth != nil && *recorded.HalfWidth > *o.HalfWidth*1.000001 {
					wider++
				}
			}
		}
	}
	t.Logf("outcomes %v; %d answers were wider than the planned half-width of their outcome", came, wider)
	for _, outcome := range []thresholdout.Outcome{"close", "rough", "differs", "agrees", "measured", "kept", "broken", "selected"} {
		if came[outcome] == 0 {
			t.Errorf("no answer came out %q", outcome)
		}
	}
}

// guessesAround are questions with guesses from where the training part has the answer to far from it: some are close, some rough, some differ.
func guessesAround(t *testing.T, s *holdout.Service, id string) (queries []string) {
	t.Helper()
	for _, query := range []string{`{"type":"mean","of":"s","range":[0,1]`, `{"type":"mean","of":"s","range":[0,1],"where":"z"`, `{"type":"fraction","of":"w"`} {
		e, err := s.Explain(t.Context(), analyst, id, []byte(query+"}"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			queries = append(queries, fmt.Sprintf(`%s,"guess":%v}`, query, *e.Training+*e.HalfWidth*float64(i-6)/4))
		}
	}
	return queries
}

func number(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// ask asks alone; false where the budget does not pay.
func (x *explained) ask(t *testing.T, s *holdout.Service, id string) bool {
	t.Helper()
	b, err := s.Budget(t.Context(), analyst, id)
	if err != nil {
		t.Fatal(err)
	}
	if b.Tokens != nil {
		x.token = b.Tokens.Left
	}
	a, err := s.Ask(t.Context(), analyst, id, []byte(x.body), "", holdout.MaxQuestions(1000))
	if holdout.KindOf(err) == holdout.BudgetExhausted || holdout.KindOf(err) == holdout.Invalid {
		return false
	}
	if err != nil {
		t.Fatalf("%s: %v", x.body, err)
	}
	x.read(t, a.Body)
	return !a.Replayed
}

func (x *explained) read(t *testing.T, body []byte) {
	t.Helper()
	if err := json.Unmarshal(body, &x.a); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	x.a.Cost.Rounds = 0
}

// askInRounds asks what was explained in so many batches. What is explained for a round is explained before it.
func askInRounds(t *testing.T, s *holdout.Service, id string, all []explained, rounds int) (seen []explained) {
	t.Helper()
	for round := range rounds {
		some := all[round*len(all)/rounds : (round+1)*len(all)/rounds]
		var bodies []json.RawMessage
		for i := range some {
			var err error
			if some[i].e, err = s.Explain(t.Context(), analyst, id, []byte(some[i].body)); err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, json.RawMessage(some[i].body))
		}
		b, err := s.AskBatch(t.Context(), analyst, id, bodies, true, "", holdout.MaxQuestions(1000))
		if err != nil {
			t.Fatal(err)
		}
		for i, item := range b.Answers {
			if item.NotAsked == "" {
				some[i].read(t, item.Body)
				seen = append(seen, some[i])
			}
		}
	}
	return seen
}

// given is the upload of two parts.
func given(t *testing.T, training, rows *dataset.Table) holdout.Upload {
	names, files := []string{"training", "holdout"}, []io.Reader{parquet(t, training), parquet(t, rows)}
	return func() (string, io.Reader, error) {
		if len(names) == 0 {
			return "", nil, io.EOF
		}
		name, file := names[0], files[0]
		names, files = names[1:], files[1:]
		return name, file, nil
	}
}
