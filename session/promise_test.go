package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// promising is a holdout of 30,000 rows and a training part of 70,000 like it: two models a and b that are right in .97 of the rows and differ in 2% of them, and a delay between
// -60 and 180 that varies little.
func promising(t testing.TB, spec thresholdout.Spec) *Local {
	t.Helper()
	part := func(n int, seed uint64) (*dataset.Table, *engine.Table) {
		r := rand.New(rand.NewPCG(seed, 11))
		columns := make([]dataset.Column, 4)
		for i, name := range []string{"a", "b", "coin", "delay"} {
			columns[i] = dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Bool, Source: "BOOLEAN"}}
		}
		columns[3].Kind, columns[3].Source = dataset.Number, "DOUBLE"
		for range n {
			a := r.Float64() < 0.97
			b := a != (r.Float64() < 0.02)
			for i, v := range []bool{a, b, r.IntN(2) == 1} {
				columns[i].Bools = append(columns[i].Bools, map[bool]uint8{true: 1}[v])
			}
			columns[3].Numbers = append(columns[3].Numbers, min(max(10+20*r.NormFloat64(), -60), 180))
		}
		all, err := dataset.FromColumns(columns...)
		if err != nil {
			t.Fatal(err)
		}
		source, err := engine.NewTable(all, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		return all, source
	}
	data, holdout := part(30_000, 1)
	_, training := part(70_000, 2)
	spec.Mechanism, spec.N, spec.Training = thresholdout.Gaussian, 30_000, 70_000
	g, err := thresholdout.Plan(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &Local{Session: Session{Guarantee: g, Noise: Seeded(1), RandomSplit: true}, Schema: data.Schema(), Holdout: holdout, Training: training}
}

func (a Answer) halfWidth() float64 { return (*a.Interval.High - *a.Interval.Low) / 2 }

const (
	compareAB = `{"type":"compare","a":{"type":"fraction","of":"a"},"b":{"type":"fraction","of":"b"}%s}`
	fractionA = `{"type":"fraction","of":"a"%s}`
	delays    = `{"type":"mean","of":"delay","range":[-60,180]%s}`
)

// TestPromisesOnTheRealPath: of 1,000 questions about 30,000 rows, a compare of two models that differ in 2% of the rows, an accuracy of .97 and a delay are known as narrowly as the page of the
// proofs says, whether the question names the promise or the training part suggests it; and the answer says so. A broken one is as wide as any answer after it, costs a token, and its name stays another
// question.
func TestPromisesOnTheRealPath(t *testing.T) {
	spec := thresholdout.Spec{Questions: 1000, Tokens: 2}
	for _, c := range []struct {
		query, promise string
		truth, width   float64 // half of the interval's length
		from           string
		held           bool
		tokens         int64
	}{
		{compareAB, ``, -0.0188, 0.0200, FromTraining, true, 0},
		{compareAB, `,"promise":{"disagreement":0.021}`, -0.0188, 0.0186, FromQuestion, true, 0},
		{compareAB, `,"promise":{"variance":0.021}`, -0.0188, 0.0212, FromQuestion, true, 0},
		{compareAB, `,"promise":{"disagreement":0.015}`, -0.0188, 0.146, FromQuestion, false, 1},
		{fractionA, ``, 0.97, 0.0224, FromTraining, true, 0},
		{fractionA, `,"promise":{"at_least":0.968}`, 0.97, 0.0214, FromQuestion, true, 0},
		{fractionA, `,"promise":{"at_least":0.98}`, 0.97, 0.0410, FromQuestion, false, 1},
		{delays, ``, 10, 3.01, FromTraining, true, 0},
		{delays, `,"promise":{"variance":410}`, 10, 2.88, FromQuestion, true, 0},
		{delays, `,"promise":{"at_most":11}`, 10, 12.9, FromQuestion, true, 0},
		{delays, `,"promise":{"at_most":9}`, 10, 17.5, FromQuestion, false, 1},
	} {
		l := promising(t, spec)
		body := fmt.Sprintf(c.query, c.promise)
		a, err := l.Ask(context.Background(), []byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if a.Promise == nil || a.Promise.From != c.from || a.Promise.Held == nil || *a.Promise.Held != c.held || a.Cost.Tokens != c.tokens || l.State.Tokens != c.tokens {
			t.Errorf("%s: %+v, cost %+v", body, a.Promise, a.Cost)
		}
		if got := a.halfWidth(); math.Abs(got-c.width) > 0.03*c.width || math.Abs(*a.Value-c.truth) > 1.2*got {
			t.Errorf("%s: %v ± %.4f, not %v ± %v", body, *a.Value, got, c.truth, c.width)
		}
		if c.promise != "" {
			if text, _ := a.JSON(); !strings.Contains(string(text), strings.TrimSuffix(c.promise[len(`,"promise":{`):], "}")) {
				t.Errorf("%s: the answer does not say the promise as it was given: %s", body, text)
			}
		}
	}
	l := promising(t, spec)
	first, err := l.Ask(context.Background(), []byte(fmt.Sprintf(fractionA, `,"promise":{"at_least":0.96}`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{``, `,"promise":{"at_least":0.95}`} { // another promise is another question, with noise of its own and at its price
		a, err := l.Ask(context.Background(), []byte(fmt.Sprintf(fractionA, other)))
		if err != nil || a.ID == first.ID || a.Query == first.Query || *a.Value == *first.Value || a.Cost.Questions != 1 {
			t.Errorf("%q: %+v, %v", other, a, err)
		}
	}
	again, err := l.Ask(context.Background(), []byte(`{"promise":{"at_least":9.6e-1},"of":"a","type":"fraction"}`))
	if err != nil || again.ID != first.ID || l.State.Questions != 3 {
		t.Errorf("a replay: %+v, %v, %+v", again, err, l.State)
	}
}

// TestPromisesWithoutTokens: when the tokens are spent a question that names a promise is refused before a row is read, at no cost; all other questions are answered, without a promise.
func TestPromisesWithoutTokens(t *testing.T) {
	l := promising(t, thresholdout.Spec{Questions: 1000, Tokens: 1})
	ask := func(query, promise string) (Answer, error) {
		return l.Ask(context.Background(), []byte(fmt.Sprintf(query, promise)))
	}
	if a, err := ask(fractionA, `,"promise":{"at_most":0.5}`); err != nil || a.Cost.Tokens != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	holdout := l.Holdout
	l.Holdout = nil // no row may be read
	var short *ShortError
	if _, err := ask(fractionA, `,"promise":{"at_least":0.9}`); !errors.As(err, &short) || short.Reason != TokensExhausted || l.State.Questions != 1 {
		t.Errorf("without tokens: %v, %+v", err, l.State)
	}
	l.Holdout = holdout
	for _, query := range []string{fractionA, delays, compareAB, `{"type":"histogram","of":"delay","edges":[-60,0,60,180]%s}`} {
		if a, err := ask(query, ``); err != nil || a.Promise != nil || a.Cost.Tokens != 0 {
			t.Errorf("%s: %+v, %v", query, a.Promise, err)
		}
	}
}

// TestSuggestedPromises: the training part's promise is taken where it is worth something and likely kept: not for a coin, not where the question may have been fitted to the training part, not where the
// holdout's rows are of another time, and not for a test that would lose its plain p-value.
func TestSuggestedPromises(t *testing.T) {
	spec := thresholdout.Spec{Questions: 1000, Tokens: 2}
	for _, c := range []struct {
		query string
		other bool // the parts are not alike
		want  bool
	}{
		{fmt.Sprintf(fractionA, ``), false, true},
		{fmt.Sprintf(fractionA, ``), true, false},
		{`{"type":"fraction","of":"coin"}`, false, false},
		{`{"type":"accuracy","label":"coin","prediction":"coin"}`, false, false},
		{`{"type":"loss","loss":"zero_one","label":"coin","prediction":"coin"}`, false, false},
		{`{"type":"compare","a":{"type":"accuracy","label":"coin","prediction":"a"},"b":{"type":"accuracy","label":"coin","prediction":"b"}}`, false, false},
		{`{"type":"test","test":"proportion","of":"a"}`, false, false},
		{`{"type":"count","of":"!a"}`, false, true},
		{`{"type":"mean","of":"delay","range":[-60,180],"where":"a"}`, false, false},
	} {
		l := promising(t, spec)
		l.RandomSplit = !c.other
		a, err := l.Ask(context.Background(), []byte(c.query))
		if err != nil || (a.Promise != nil) != c.want {
			t.Errorf("%s: %+v, %v", c.query, a.Promise, err)
		}
		if strings.Contains(c.query, `"test"`) && a.Plain == nil {
			t.Errorf("%s: no plain p-value", c.query)
		}
	}
}

// TestPromisedTests: the p-value of a test with a promise is of its own interval, and stands without a plain one, whatever was asked before.
func TestPromisedTests(t *testing.T) {
	l := promising(t, thresholdout.Spec{Questions: 1000, Tokens: 2})
	if _, err := l.Ask(context.Background(), []byte(fmt.Sprintf(delays, ``))); err != nil {
		t.Fatal(err)
	}
	a, err := l.Ask(context.Background(), []byte(`{"type":"test","test":"proportion","of":"a","equals":0.92}`))
	if err != nil || a.Promise == nil || !*a.Promise.Held || a.Plain != nil || a.PValue == nil || *a.PValue > 1e-3 {
		t.Errorf("%+v, p %v, %v", a.Promise, a.PValue, err)
	}
}

// TestPromisesAreRefused: what is no promise about one mean over all rows, or says nothing, is refused before a row is read.
func TestPromisesAreRefused(t *testing.T) {
	l := promising(t, thresholdout.Spec{Questions: 1000, Tokens: 2})
	l.Holdout = nil
	for _, c := range [][2]string{
		{`{"type":"fraction","of":"a","promise":{"at_least":0.4}}`, "/promise/at_least"},
		{`{"type":"fraction","of":"a","promise":{"at_least":1}}`, "/promise/at_least"},
		{`{"type":"fraction","of":"a","promise":{"at_most":0.6}}`, "/promise/at_most"},
		{`{"type":"fraction","of":"a","promise":{"at_most":-1}}`, "/promise/at_most"},
		{`{"type":"fraction","of":"a","promise":{"disagreement":0.1}}`, "/promise/disagreement"},
		{`{"type":"fraction","of":"a","promise":{"variance":0.3}}`, "/promise/variance"},
		{`{"type":"fraction","of":"a","where":"b","promise":{"at_most":0.1}}`, "/promise"},
		{`{"type":"mean","of":"delay","range":[-60,180],"weights":{"of":"delay","range":[0,1]},"promise":{"variance":1}}`, "/promise"},
	} {
		var wrong *WrongError
		if _, err := l.Ask(context.Background(), []byte(c[0])); !errors.As(err, &wrong) || wrong.Pointer != c[1] {
			t.Errorf("%s: %v", c[0], err)
		}
	}
	for _, spec := range []thresholdout.Spec{{Questions: 10, Sigma: 0.01}, {Questions: 10, Rounds: 2}, {Questions: 10, Published: true}} {
		l := promising(t, spec)
		var wrong *WrongError
		if _, err := l.Ask(context.Background(), []byte(fmt.Sprintf(fractionA, `,"promise":{"at_least":0.9}`))); !errors.As(err, &wrong) || wrong.Pointer != "/promise" {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

// TestPromisedVoids: a question that failed after its rows were read has spent the token that its promise could have taken, so that a failure tells nothing for free; any other has not.
func TestPromisedVoids(t *testing.T) {
	l := promising(t, thresholdout.Spec{Questions: 1000, Tokens: 1})
	for _, c := range []struct {
		query string
		spent int64
		want  int64
	}{
		{fmt.Sprintf(fractionA, `,"promise":{"at_least":0.9}`), 0, 1},
		{fmt.Sprintf(fractionA, ``), 0, 1}, // the training part suggests one
		{fmt.Sprintf(fractionA, ``), 1, 1},
		{`{"type":"mean","of":"delay","range":[-60,180],"where":"a"}`, 0, 0},
	} {
		parsed, err := queries.Parse([]byte(c.query))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := parsed.Compile(context.Background(), l.Schema)
		if err != nil {
			t.Fatal(err)
		}
		q, err := l.Question(parsed, plan)
		if err != nil {
			t.Fatal(err)
		}
		before := thresholdout.State{Questions: 3, Tokens: c.spent}
		cost, after := l.Void(before, q, l.Price(q.Plan))
		if after.Tokens != c.want || cost.Tokens != c.want-c.spent || after.Questions != 3+l.Price(q.Plan).Questions {
			t.Errorf("%s: %+v, %+v", c.query, cost, after)
		}
	}
}
