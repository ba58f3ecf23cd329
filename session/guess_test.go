package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// ofOneNumber are questions whose answer is one number, each checked as one: how far apart the answers are that it can give, and its members.
var ofOneNumber = []struct {
	step float64
	body string
}{
	{0, `"type":"mean","of":"x","range":[0,2]`},
	{0, `"type":"count","of":"late"`},
	{0, `"type":"sum","of":"x","range":[-1,2]`},
	{0, `"type":"mean","of":"x","range":[0,1],"weights":{"of":"score","range":[0,1]},"where":"g != 'a'"`},
	{0, `"type":"fraction","of":"late","where":"g != 'a'"`},
	{0, `"type":"difference","of":"late","between":["g == 'a'"]`},
	{0, `"type":"accuracy","label":"late","prediction":"x < 0.3"`},
	{0, `"type":"loss","label":"late","prediction":"score","loss":"log"`},
	{0, `"type":"compare","a":{"type":"accuracy","label":"late","prediction":"x < 0.3"},"b":{"type":"accuracy","label":"late","prediction":"x < 0.2"}`},
	{0, `"type":"compare","a":{"type":"auc","label":"late","prediction":"x","edges":[0.2,0.5]},"b":{"type":"auc","label":"late","prediction":"score","edges":[0.2,0.5]}`},
	{0, `"type":"rmse","label":"x","prediction":"score","max_error":1.5`},
	{0, `"type":"r2","label":"x","prediction":"0.3 + 0.01 * score","range":[0,1]`},
	{0, `"type":"variance","of":"x","range":[0,1.5],"where":"late"`},
	{0, `"type":"stddev","of":"x","range":[0,1]`},
	{0, `"type":"correlation","x":"x","y":"x + score","range_x":[0,1],"range_y":[0,2],"form":"clipped"`},
	{0, `"type":"correlation","x":"x","y":"score - x","range_x":[0,1],"range_y":[-1,1],"form":"exact"`},
	{0, `"type":"covariance","x":"x","y":"x + score","range_x":[0,1],"range_y":[0,2],"form":"clipped"`},
	{0, `"type":"covariance","x":"x","y":"x + score","range_x":[0,1],"range_y":[0,2],"form":"exact"`},
	{0, `"type":"auc","label":"late","prediction":"score","edges":[0.2,0.4,0.6,0.8]`},
	{0, `"type":"balanced_accuracy","label":"late","prediction":"x < 0.3"`},
	{0, `"type":"compare","a":{"type":"balanced_accuracy","label":"late","prediction":"x < 0.3"},"b":{"type":"balanced_accuracy","label":"late","prediction":"x < 0.2"}`},
	{0, `"type":"kendall","x":"x","y":"x + score","edges_x":[0.1,0.3,0.6],"edges_y":[0.5,1]`},
	{0.01, `"type":"quantile","of":"x","range":[0,1],"p":0.7,"resolution":0.01`},
	{0.015625, `"type":"median","of":"x","range":[0,1],"resolution":0.015625,"where":"late"`},
	{0, `"type":"precision","label":"late","prediction":"x < 0.3"`},
	{0, `"type":"recall","label":"late","prediction":"x < 0.3"`},
	{0, `"type":"f1","label":"late","prediction":"x < 0.3"`},
	{0, `"type":"passes","of":{"type":"auc","label":"late","prediction":"score","edges":[0.5]},"above":0.6`},
	{0, `"type":"test","test":"mean","of":"x","range":[0,1]`},
	{0, `"type":"test","test":"two-sample","of":"x","range":[0,1],"between":["late"]`},
	{0, `"type":"test","test":"correlation","x":"x","y":"x + score","range_x":[0,1],"range_y":[0,2]`},
	{0, `"type":"test","test":"slope","x":"x","y":"x + score","range_x":[0,1],"range_y":[0,2]`},
	{0, `"type":"test","test":"value","query":{"type":"stddev","of":"x","range":[0,1]},"equals":0.2`},
}

// TestGuessOfEveryNumber: of every question whose answer is one number a guess is in the answer's own units. One that is right passes, and is the answer, to the question's resolution; the
// interval of a pass is within the half-width that was asked for, and is what was previewed; a half-width at which no guess passes is refused with the least one, at which one does; a guess that is far off is a
// failure, whose interval has what the holdout has. It would notice a guess or a half-width in other units than the answer's, as of a mean square in place of its root, a guess that only moves what is printed, and
// a half-width that is not kept.
func TestGuessOfEveryNumber(t *testing.T) {
	const rows = 3000
	for _, of := range ofOneNumber {
		name := of.body
		l := local(t, 11, rows, false, 60, 30, 0.95, someLate)
		l.Compile = append(l.Compile, queries.Training(trainingOf{l.Training}))
		query := func(extra string) *Question {
			parsed, err := queries.Parse([]byte("{" + of.body + extra + "}"))
			if err != nil {
				t.Fatalf("%s%s: %v", name, extra, err)
			}
			plan, err := parsed.Compile(context.Background(), l.Schema, l.Compile...)
			if err != nil {
				t.Fatalf("%s%s: %v", name, extra, err)
			}
			q, err := l.Question(parsed, plan)
			if err != nil {
				t.Fatalf("%s%s: %v", name, extra, err)
			}
			return q
		}
		told, err := TrainingSums(context.Background(), query("").Plan, Reference{Training: l.Training})
		if err != nil {
			t.Fatal(err)
		}
		preview := func(extra string) (value, low, high float64, err error) {
			p, err := l.Preview(l.State, query(extra), told)
			if err != nil {
				return 0, 0, 0, err
			}
			return *p.Result.Value, *p.Result.Low, *p.Result.High, nil
		}
		held, err := TrainingSums(context.Background(), query("").Plan, Reference{Training: l.Holdout})
		if err != nil {
			t.Fatal(err)
		}
		exact, err := l.Session.Training(query("").Plan, held)
		if err != nil {
			t.Fatal(err)
		}
		own := *exact.Value
		near := of.step/2 + 1e-7*max(10, math.Abs(own)) // to the grid's step
		planned, low, high, err := preview("")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ask := func(extra string) Answer {
			a, err := l.Ask(context.Background(), []byte("{"+of.body+extra+"}"))
			if err != nil {
				t.Fatalf("%s%s: %v", name, extra, err)
			}
			return a
		}

		// A right guess.
		guess := fmt.Sprintf(`,"guess":%v`, own)
		value, l1, h1, err := preview(guess)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a := ask(guess)
		if math.Abs(*a.Value-own) > near || a.Source != thresholdout.FromGuess || a.Cost != (Cost{Questions: 1}) {
			t.Errorf("%s: the guess %v is answered by %v from %s, %+v", name, own, *a.Value, a.Source, a.Cost)
		}
		if *a.Interval.Low < l1-1e-9 && *a.Interval.High > h1+1e-9 && a.Outcome == thresholdout.Close || math.Abs(*a.Value-value) > 1e-12 {
			t.Errorf("%s: previewed %v [%v, %v], answered %v %v", name, value, l1, h1, *a.Value, text(a))
		}

		// A half-width: too narrow, then the least, then a comfortable one.
		var narrow *NarrowError
		if _, _, _, err := preview(guess + `,"half_width":1e-6`); !errors.As(err, &narrow) || narrow.HalfWidth != 1e-6 || !(narrow.Least > narrow.HalfWidth && narrow.Least <= narrow.Planned) {
			t.Fatalf("%s: at 1e-6: %v", name, err)
		}
		if _, _, _, err := preview(fmt.Sprintf(`%s,"half_width":%v`, guess, narrow.Least*0.98)); !errors.As(err, new(*NarrowError)) && of.step == 0 {
			t.Errorf("%s: at 0.98 of the least, %v: %v", name, narrow.Least, err)
		}
		for _, half := range []float64{narrow.Least * 1.001, 1.2 * max(high-planned, planned-low)} {
			extra := fmt.Sprintf(`%s,"half_width":%v`, guess, half)
			value, l1, h1, err := preview(extra)
			if err != nil {
				t.Fatalf("%s%s: %v", name, extra, err)
			}
			kept := func(what string, value, low, high float64) {
				if low < value-half*(1+1e-6)-1e-9 || high > value+half*(1+1e-6)+1e-9 {
					t.Errorf("%s: %s at half-width %v: %v in [%v, %v]", name, what, half, value, low, high)
				}
			}
			kept("previewed", value, l1, h1)
			if math.Abs(value-own) > near {
				t.Errorf("%s: previewed %v of the guess %v", name, value, own)
			}
			if half < narrow.Planned {
				continue
			}
			a := ask(extra)
			if a.Cost.Tokens > 0 {
				t.Errorf("%s: the right guess %v failed at half-width %v: %v", name, own, half, text(a))
			}
			kept("answered", *a.Value, *a.Interval.Low, *a.Interval.High)
		}
		// Without a guess the half-width is about the training part's answer.
		half := 1.2 * max(high-planned, planned-low)
		if value, l1, h1, err := preview(fmt.Sprintf(`,"half_width":%v`, half)); err != nil || value != planned || l1 < value-half*(1+1e-6)-1e-9 || h1 > value+half*(1+1e-6)+1e-9 {
			t.Errorf("%s: previewed %v in [%v, %v] for %v ± %v: %v", name, value, l1, h1, planned, half, err)
		}

		// Guesses that are far off.
		failed := 0
		for _, times := range []float64{-5, -3, -2, -1.5, 1.5, 2, 3, 5} {
			extra := fmt.Sprintf(`,"guess":%v`, own+times*(high-low))
			a, err := l.Ask(context.Background(), []byte("{"+of.body+extra+"}"))
			if err != nil {
				if !strings.Contains(err.Error(), "/guess: must lie in the ") {
					t.Fatalf("%s%s: %v", name, extra, err)
				}
				continue
			}
			if a.Cost.Tokens == 1 {
				failed++
			}
			if (a.Cost.Tokens == 1) != (a.Source == thresholdout.FromHoldout) || own < *a.Interval.Low-1e-9 || own > *a.Interval.High+1e-9 {
				t.Errorf("%s: the holdout has %v; %s is answered by %v", name, own, extra, text(a))
			}
		}
		if failed == 0 && !strings.Contains(name, "weights") { // of weights margins are wide where a guess is far from the ratio
			t.Errorf("%s: no guess failed", name)
		}
	}
}

// trainingOf is a training part that questions take their constants from.
type trainingOf struct{ Source }

func (m trainingOf) Means(ctx context.Context, functions []queries.RowFunction) ([]float64, error) {
	sums, err := m.Sums(ctx, functions, 0, m.Units())
	means := make([]float64, len(sums))
	for i, s := range sums {
		means[i] = float64(s) / float64(queries.One) / float64(m.Units())
	}
	return means, err
}

func (trainingOf) Texts(string) []string { return []string{"a", "b", "c"} }

func (trainingOf) Column(string) (queries.ColumnFacts, bool) { return queries.ColumnFacts{}, false }

func (trainingOf) Numbers(string, int) []float64 { return nil }

func text(a Answer) string {
	b, _ := json.Marshal(a)
	return string(b)
}

// TestEveryTypeTakesAGuess: every type whose answer is one number, or items that are each one question, has the member; of a number of several, half_width too. It would notice a new type without.
func TestEveryTypeTakesAGuess(t *testing.T) {
	without := []string{
		"gradient", "screen", // long vectors, of which each coordinate is a question: nobody names hundreds of guesses
	}
	items := []string{"groups", "frequencies", "histogram", "calibration", "confusion", "argmax"}
	for name, schema := range queries.JSONSchemas("") {
		var s struct {
			Title      string
			Properties map[string]struct {
				Type  string
				Const string
			}
		}
		if err := json.Unmarshal(schema, &s); err != nil || !strings.HasSuffix(name, "Query") || name == "Query" {
			continue
		}
		kind := s.Properties["type"].Const
		guess, half := s.Properties["guess"].Type, s.Properties["half_width"].Type
		want, wantHalf := "number", "number"
		switch {
		case slices.Contains(without, kind):
			want, wantHalf = "", ""
		case slices.Contains(items, kind):
			want, wantHalf = "object", ""
		}
		if guess != want || half != wantHalf {
			t.Errorf("%s: guess is %q and half_width is %q, want %q and %q", kind, guess, half, want, wantHalf)
		}
	}
}

// TestItemsAreGuessed: a guess of an item is one of the same number that is asked for with where, and other items keep the training part's: the same values, intervals, cost and state, byte for byte. It would
// notice guesses of other items, in other units, and of the candidates of an argmax of the least upside down.
func TestItemsAreGuessed(t *testing.T) {
	type item struct {
		of    string
		guess float64
		where string
	}
	for _, c := range []struct {
		body  string
		items []item // all of them, in order; a guess below -1 is none
	}{
		{`"type":"groups","of":"x","range":[0,2],"by":"g","values":["a","b"]`, []item{{"a", 0.35, `"type":"mean","of":"x","range":[0,2],"where":"g == 'a'"`},
			{"b", 1.5, `"type":"mean","of":"x","range":[0,2],"where":"g == 'b'"`}, {"other", -2, `"type":"mean","of":"x","range":[0,2],"where":"g != 'a' && g != 'b'"`}, {"null", -2, `"type":"mean","of":"x","range":[0,2],"where":"g == null"`}}},
		{`"type":"frequencies","of":"g","values":["a"]`, []item{{"a", -2, `"type":"fraction","of":"g == 'a'"`}, {"other", 0.8, `"type":"fraction","of":"g != 'a'"`}, {"null", 0.2, `"type":"fraction","of":"g == null"`}}},
		{`"type":"histogram","of":"x","edges":[0,0.2,1],"where":"late"`, []item{{"below 0", -2, `"type":"fraction","of":"x < 0.0","where":"late"`}, {"[0, 0.2)", 0.6, `"type":"fraction","of":"x >= 0.0 && x < 0.2","where":"late"`},
			{"[0.2, 1]", -2, `"type":"fraction","of":"x >= 0.2 && x <= 1.0","where":"late"`}, {"above 1", -2, `"type":"fraction","of":"x > 1.0","where":"late"`}, {"null", -2, `"type":"fraction","of":"x == null","where":"late"`}}},
		{`"type":"confusion","label":"late","prediction":"x < 0.3"`, []item{{"label false, predicted false", 0.3, `"type":"fraction","of":"!late && x >= 0.3"`}, {"label false, predicted true", -2, `"type":"fraction","of":"!late && x < 0.3"`},
			{"label true, predicted false", -2, `"type":"fraction","of":"late && x >= 0.3"`}, {"label true, predicted true", 0.9, `"type":"fraction","of":"late && x < 0.3"`}}},
		{`"type":"calibration","label":"late","prediction":"score","edges":[0,1]`, []item{{"[0, 1] share", -2, `"type":"fraction","of":"score >= 0.0 && score <= 1.0"`},
			{"[0, 1] label", 0.25, `"type":"fraction","of":"late","where":"score >= 0.0 && score <= 1.0"`}, {"[0, 1] prediction", 0.51, `"type":"mean","of":"score","range":[0,1],"where":"score >= 0.0 && score <= 1.0"`}}},
		{`"type":"argmax","of":[{"type":"mean","of":"x","range":[0,2]},{"type":"mean","of":"score","range":[0,2]}],"names":["x","s"]`, []item{{"x", 0.4, `"type":"mean","of":"x","range":[0,2]`}, {"s", -2, `"type":"mean","of":"score","range":[0,2]`}}},
	} {
		for seed := range uint64(4) {
			together, single := local(t, seed, 300, false, 60, 30, 0.95, someLate), local(t, seed, 300, false, 60, 30, 0.95, someLate)
			guesses := map[string]float64{}
			for _, i := range c.items {
				if i.guess >= -1 {
					guesses[i.of] = i.guess
				}
			}
			named, _ := json.Marshal(guesses)
			a, err := together.Ask(context.Background(), fmt.Appendf(nil, `{%s,"guess":%s}`, c.body, named))
			if err != nil {
				t.Fatalf("%s: %v", c.body, err)
			}
			if len(a.Items) != len(c.items) {
				t.Fatalf("%s has %d items: %s", c.body, len(a.Items), text(a))
			}
			for j, i := range c.items {
				extra := ""
				if i.guess >= -1 {
					extra = fmt.Sprintf(`,"guess":%v`, i.guess)
				}
				b, err := single.Ask(context.Background(), []byte("{"+i.where+extra+"}"))
				if err != nil {
					t.Fatalf("%s: %v", i.where, err)
				}
				got, want := a.Items[j], Item{Of: i.of, Value: b.Value, Low: b.Interval.Low, High: b.Interval.High}
				x, _ := json.Marshal(got)
				y, _ := json.Marshal(want)
				if string(x) != string(y) {
					t.Errorf("%s: item %s, asked with %s%s it is %s", c.body, x, i.where, extra, y)
				}
			}
			if single.State != together.State {
				t.Errorf("%s: the state is %+v, after the same questions by themselves %+v", c.body, together.State, single.State)
			}
		}
	}
	// Of the least, a candidate's guess is about the candidate.
	l := local(t, 9, 3000, false, 60, 30, 0.95, someLate)
	a, err := l.Ask(context.Background(), []byte(`{"type":"argmax","least":true,"of":[{"type":"mean","of":"x","range":[0,2]},{"type":"mean","of":"score","range":[0,2]}],"guess":{"1":0.51}}`))
	if err != nil || math.Abs(*a.Items[1].Value-0.51) > 1e-6 || a.Source != "mixed" && a.Cost.Tokens == 0 {
		t.Errorf("%s, %v", text(a), err)
	}
}

// TestGuessesAreRefused: by mechanisms that take none, of answers that are made of several released numbers, and of items that there are not.
func TestGuessesAreRefused(t *testing.T) {
	rows, units := local(t, 7, 300, false, 60, 30, 0.95, someLate), local(t, 7, 300, true, 60, 30, 0.95, someLate)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 300, Questions: 60})
	if err != nil {
		t.Fatal(err)
	}
	noisy := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: rows.Schema, Holdout: rows.Holdout}
	for _, c := range []struct {
		l          *Local
		body, want string
	}{
		{noisy, `{"type":"auc","label":"late","prediction":"x","edges":[0.5],"guess":0.5}`, "takes no guess"},
		{noisy, `{"type":"stddev","of":"x","range":[0,1],"half_width":0.1}`, "takes no half_width"},
		{noisy, `{"type":"groups","of":"x","range":[0,1],"by":"g","values":["a"],"guess":{"a":0.5}}`, "takes no guess"},
		{units, `{"type":"difference","of":"late","between":["g == 'a'"],"guess":0.1}`, "made of 2 numbers"},
		{units, `{"type":"variance","of":"x","range":[0,1],"weight":"row","half_width":0.1}`, "/half_width: this query is made of 2 numbers"},
		{rows, `{"type":"groups","of":"x","range":[0,1],"by":"g","values":["a","b"],"guess":{"d":0.5}}`, `"d" is no item of the answer; it has a, b, other, null`},
		{rows, `{"type":"groups","of":"x","range":[0,1],"by":"g","values":["a","b"],"guess":{"b":1.5}}`, "must lie in the item's range [0, 1]"},
		{rows, `{"type":"stddev","of":"x","range":[0,1],"guess":0.6}`, "/guess: must lie in the range of the answer, [0, 0.5]"},
		{rows, `{"type":"count","of":"late","guess":301}`, "/guess: must lie in the answer's range [0, 300]"},
		{rows, `{"type":"sum","of":"x","range":[1,2],"half_width":601}`, "/half_width: must not be more than the width of the answer's range [0, 600]"},
		{rows, `{"type":"compare","a":{"type":"fraction","of":"late"},"b":{"type":"fraction","of":"x > 0.3"},"half_width":2.5}`, "/half_width: must not be more than the width"},
		{rows, `{"type":"compare","a":{"type":"fraction","of":"late","guess":0.5},"b":{"type":"fraction","of":"x > 0.3"}}`, "has no guess"},
	} {
		if _, err := c.l.Ask(context.Background(), []byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.body, err, c.want)
		}
	}
}
