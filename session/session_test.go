package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

const rows = 400

// table has numbers x and y in [0,1] with nulls in y, a condition late, and five groups whose names JSON must escape.
func table(t testing.TB, seed uint64) (*dataset.Table, *engine.Table) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	x := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}}
	y := dataset.Column{Field: dataset.Field{Name: "y", Kind: dataset.Number, Source: "DOUBLE"}}
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	var groups []string
	for i := range rows {
		x.Numbers = append(x.Numbers, r.Float64())
		y.Numbers = append(y.Numbers, r.Float64())
		if i%7 == 0 {
			y.Numbers[i] = math.NaN()
		}
		late.Bools = append(late.Bools, uint8(r.IntN(2)))
		groups = append(groups, fmt.Sprintf("group\t\u2028\"%d\"", r.IntN(5)))
	}
	all, err := dataset.FromColumns(x, y, late, dataset.NewText("g", groups, func(int) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(all, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all, source
}

// guarantees are one of each way that questions are answered.
func guarantees(t testing.TB) map[string]thresholdout.Guarantee {
	t.Helper()
	all := map[string]thresholdout.Guarantee{}
	for name, p := range map[string]thresholdout.Spec{
		"gaussian":        {Mechanism: thresholdout.Gaussian, Questions: 200},
		"published":       {Mechanism: thresholdout.Gaussian, Questions: 200, Published: true},
		"rounds":          {Mechanism: thresholdout.Gaussian, Questions: 200, Rounds: 2},
		"guess_and_check": {Mechanism: thresholdout.GuessAndCheck, Questions: 200, Tokens: 150},
		"thresholdout":    {Mechanism: thresholdout.Thresholdout, Questions: 200, Tokens: 150},
		"laplace":         {Mechanism: thresholdout.Thresholdout, Form: thresholdout.FormLaplace, Questions: 200, Tokens: 150},
		"split":           {Mechanism: thresholdout.Split, Questions: 200},
		"naive":           {Mechanism: thresholdout.Naive, Questions: 200},
	} {
		p.N = rows
		if p.Mechanism == thresholdout.GuessAndCheck || p.Mechanism == thresholdout.Thresholdout {
			p.Training = rows
		}
		var err error
		if all[name], err = thresholdout.Plan(p); err != nil {
			t.Fatal(name, err)
		}
	}
	return all
}

// asked is a question of each shape that answers have.
var asked = []string{
	`{"type":"mean","of":"x","range":[0,1]}`,
	`{"type":"mean","of":"y","range":[-1e-149,1e149],"where":"late"}`,
	`{"type":"count","of":"late"}`,
	`{"type":"variance","of":"x","range":[0,1]}`,
	`{"type":"median","of":"x","range":[0,1],"resolution":0.1}`,
	`{"type":"covariance","x":"x","y":"y","range_x":[0,1],"range_y":[0,1],"center_x":0.5,"scale_x":0.3,"center_y":0.5,"scale_y":0.3}`,
	`{"type":"frequencies","of":"g","values":["group\t\u2028\"0\"","\u0001\u0002<&>"]}`,
	`{"type":"groups","of":"x","range":[0,1],"by":"g","values":["group\t\u2028\"0\"","none"]}`,
	`{"type":"histogram","of":"x","edges":[0,0.1,0.2,0.5,1]}`,
	`{"type":"argmax","of":[{"type":"mean","of":"x","range":[0,1]},{"type":"mean","of":"1.0 - x","range":[0,1]}],"names":["the longest of\u0001 names, or so it seems","b"]}`,
	`{"type":"difference","of":"x","range":[0,1],"between":["late"]}`,
	`{"type":"compare","a":{"type":"mean","of":"x","range":[0,1]},"b":{"type":"mean","of":"x * x","range":[0,1]}}`,
	`{"type":"test","test":"proportion","of":"late"}`,
	`{"type":"test","test":"two-proportions","of":"x > 0.5","between":["late"]}`,
}

func parse(t testing.TB, s *dataset.Table, body string) (*queries.Query, *queries.Plan) {
	t.Helper()
	q, err := queries.Parse([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	plan, err := q.Compile(context.Background(), s.Schema())
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return q, plan
}

// TestShareInPlaceOfASearch: a quantile that is asked in rounds is answered with a query that can be, and that is about the same rows.
func TestShareInPlaceOfASearch(t *testing.T) {
	data, source := table(t, 1)
	l := Local{Session: Session{Holdout: "ho_0123456789", Guarantee: guarantees(t)["rounds"], Noise: Seeded(1)}, Schema: data.Schema(), Holdout: source, Training: source}
	for body, want := range map[string]string{
		`{"type":"median","of":"x","range":[0,1]}`:                                             `{"of":"x <= 0.5","type":"fraction"}`,
		`{"type":"quantile","p":0.9,"of":"y + x","range":[-1,3],"where":"late","null":"skip"}`: `{"of":"(x + y) <= 1","type":"fraction","where":"((x + y) != null) && late"}`,
	} {
		query, plan := parse(t, data, body)
		_, err := l.Question(query, plan)
		var wrong *WrongError
		if !errors.As(err, &wrong) {
			t.Fatalf("%s: %v", body, err)
		}
		_, instead, _ := strings.Cut(wrong.Detail, "instead, such as ")
		if instead != want {
			t.Errorf("%s: %s", body, wrong.Detail)
			continue
		}
		query, plan = parse(t, data, instead)
		if _, err := l.Question(query, plan); err != nil {
			t.Errorf("%s: in its place %s: %v", body, instead, err)
		}
	}
}

// TestAnswersAreNoLongerThanTheirBound: under every mechanism and for every shape of answer the bytes are at most what was said before
// a row was read; and the bound is no idle one, within some hundreds of bytes an item. It would notice a name that is printed twice, a
// member that was forgotten, and a number that is longer than the longest.
func TestAnswersAreNoLongerThanTheirBound(t *testing.T) {
	for name, p := range guarantees(t) {
		for _, body := range asked {
			for seed := range uint64(3) {
				data, source := table(t, seed)
				l := Local{Session: Session{Holdout: "ho_0123456789", Guarantee: p, Noise: Seeded(seed)}, Schema: data.Schema(), Holdout: source, Training: source}
				query, plan := parse(t, data, body)
				q, err := l.Question(query, plan)
				var wrong *WrongError
				if errors.As(err, &wrong) {
					continue // a search in rounds
				}
				bound, err := l.AnswerBytes(q)
				if err != nil {
					t.Fatal(err)
				}
				a, err := l.Play(context.Background(), query, plan)
				if err != nil {
					t.Fatalf("%s: %s: %v", name, body, err)
				}
				got, err := a.JSON()
				if err != nil {
					t.Fatal(err)
				}
				if slack := 2500 + 400*(len(a.Items)+len(a.Functions)); len(got) > bound || bound > len(got)+slack {
					t.Errorf("%s: %s: %d bytes, the bound is %d:\n%s", name, body, len(got), bound, got)
				}
			}
		}
	}
}

// TestAskIsPure: the same arguments give the same answer, whatever was asked between, and no question moves a state but its own.
func TestAskIsPure(t *testing.T) {
	data, source := table(t, 1)
	all := guarantees(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"gaussian", "guess_and_check", "thresholdout", "laplace", "split"}).Draw(t, "mechanism")
		s := Session{Guarantee: all[name], Noise: Seeded(7)}
		state := s.Guarantee.Spend(thresholdout.State{}, rapid.Int64Range(0, 100).Draw(t, "spent"), 0)
		var questions []*Question
		for range 2 {
			q, err := queries.Parse([]byte(rapid.SampledFrom(asked).Draw(t, "query")))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := q.Compile(context.Background(), data.Schema())
			if err != nil {
				t.Fatal(err)
			}
			one, err := s.Question(q, plan)
			if err != nil {
				t.Fatal(err)
			}
			questions = append(questions, one)
		}
		sums, err := s.Scan(context.Background(), state, questions[:1], source, Reference{Training: source})
		if err != nil {
			t.Fatal(err)
		}
		first, next, err := s.Ask(state, state, questions[0], sums[0])
		if err != nil {
			t.Fatal(err)
		}
		if other, err := s.Scan(context.Background(), state, questions[1:], source, Reference{Training: source}); err != nil {
			t.Fatal(err)
		} else if _, _, err := s.Ask(state, state, questions[1], other[0]); err != nil {
			t.Fatal(err)
		}
		again, nextAgain, err := s.Ask(state, state, questions[0], sums[0])
		if err != nil {
			t.Fatal(err)
		}
		a, _ := first.JSON()
		b, _ := again.JSON()
		if !bytes.Equal(a, b) || fmt.Sprint(next) != fmt.Sprint(nextAgain) {
			t.Fatalf("%s, then %s", a, b)
		}
		// What is paid is the price, and the state says so.
		price := s.Price(questions[0].Plan)
		if s.Greedy(questions[0].Plan) { // takes as many tokens as there are
			price.Tokens = s.Guarantee.Tokens - state.Tokens
		}
		if first.Cost.Questions != price.Questions || next.Questions != state.Questions+price.Questions || first.Cost.Tokens > price.Tokens {
			t.Fatalf("price %+v, cost %+v", price, first.Cost)
		}
		cost, void := s.Void(state, questions[0], price)
		if cost.Questions != price.Questions || cost.Tokens != price.Tokens || void.Questions != next.Questions {
			t.Fatalf("void: %+v, %+v", cost, void)
		}
	})
}

// TestLocal: a program's own holdout answers once, replays, and refuses what its budget does not pay for before a row is read.
func TestLocal(t *testing.T) {
	data, source := table(t, 1)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: rows, Training: rows, Questions: 2, Tokens: 2})
	if err != nil {
		t.Fatal(err)
	}
	l := Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: data.Schema(), Holdout: source, Training: source}
	ask := func(body string) (Answer, error) { return l.Ask(context.Background(), []byte(body)) }
	first, err := ask(asked[0])
	if err != nil || first.Interval == nil || *first.Interval.Low > 0.5 || *first.Interval.High < 0.5 {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := ask(` {"range":[0,1.0],"of":"x","type":"mean"}`); err != nil || again.ID != first.ID || l.State.Questions != 1 {
		t.Errorf("again: %+v, %v, %+v", again, err, l.State)
	}
	var narrow *NarrowError
	if _, err := ask(`{"type":"mean","of":"x","range":[0,10],"half_width":0.001}`); !errors.As(err, &narrow) || !(narrow.Least > 0.001) || l.State.Questions != 1 {
		t.Errorf("a half-width that cannot pass: %v, %+v", err, l.State)
	}
	l.Holdout = nil // no row may be read
	var short *ShortError
	if _, err := ask(`{"type":"groups","of":"x","range":[0,1],"by":"g","values":["a"]}`); !errors.As(err, &short) || short.Reason != QuestionsExhausted || short.Left.Questions.Left != 1 {
		t.Errorf("beyond the budget: %v", err)
	}
	if _, err := ask(`{"type":"mean","of":"nothing","range":[0,1]}`); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("an unknown column: %v", err)
	}
}

// TestLeastBytes: what is known of an answer's size before a query is compiled is not above what is known then; a batch would be refused
// for answers that it cannot have.
func TestLeastBytes(t *testing.T) {
	all, _ := table(t, 1)
	asked := 0
	for name, params := range guarantees(t) {
		s := &Session{Holdout: "h", Guarantee: params}
		for _, body := range []string{
			`{"type":"mean","of":"x","range":[0,1]}`, `{"type":"fraction","of":"late"}`,
			`{"type":"histogram","of":"x","edges":[0,0.5,1]}`, `{"type":"histogram","of":"x","edges":[0,1,2,3,4,5,6,7,8,9],"where":"late"}`,
			`{"type":"frequencies","of":"g","values":["a","b"]}`, `{"type":"groups","of":"x","range":[0,1],"by":"g","values":["a","b","c"]}`,
		} {
			q, err := queries.Parse([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := q.Compile(context.Background(), all.Schema())
			if err != nil {
				t.Fatal(err)
			}
			question, err := s.Question(q, plan)
			if err != nil {
				continue // this guarantee has no such questions
			}
			asked++
			if most, err := s.AnswerBytes(question); err != nil || LeastBytes(q) > most {
				t.Errorf("%s: %s has at least %d bytes, and at most %d, %v", name, body, LeastBytes(q), most, err)
			}
		}
	}
	if asked < 12 {
		t.Errorf("%d questions were asked", asked)
	}
}
