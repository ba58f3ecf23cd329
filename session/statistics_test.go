package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// grouped is a table of some rows: x in [0,1], a text g with three values, a bool late and a score in [0,1]; with units of three rows, or of one. late is as frequent as
// each group's share says.
func grouped(t testing.TB, seed uint64, rows int, units bool, late map[string]float64) (dataset.Schema, *engine.Table) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 29))
	x := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}}
	score := dataset.Column{Field: dataset.Field{Name: "score", Kind: dataset.Number}}
	is := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool}}
	var names []string
	for range rows {
		name := []string{"a", "b", "b", "c", "c", "c"}[r.IntN(6)]
		names = append(names, name)
		v := r.Float64()
		x.Numbers, score.Numbers = append(x.Numbers, v*v), append(score.Numbers, r.Float64())
		b := uint8(0)
		if r.Float64() < late[name] {
			b = 1
		}
		is.Bools = append(is.Bools, b)
	}
	all, err := dataset.FromColumns(x, score, is, dataset.NewText("g", names, func(int) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	offsets, largest := []uint32(nil), int64(1)
	if units {
		for at := range uint32(rows/3 + 1) {
			offsets = append(offsets, 3*at)
		}
		largest = 3
	}
	source, err := engine.NewTable(all, offsets, largest)
	if err != nil {
		t.Fatal(err)
	}
	return all.Schema(), source
}

var someLate = map[string]float64{"a": 0.5, "b": 0.3, "c": 0.1}

// local is a holdout of its own under guess_and_check, and as much training.
func local(t testing.TB, seed uint64, rows int, units bool, questions, tokens int64, confidence float64, late map[string]float64) *Local {
	t.Helper()
	schema, holdout := grouped(t, 2*seed, rows, units, late)
	_, training := grouped(t, 2*seed+1, rows, units, late)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: holdout.Units(), Training: training.Units(), Questions: questions, Tokens: tokens, Confidence: confidence})
	if err != nil {
		t.Fatal(err)
	}
	return &Local{Session: Session{Guarantee: p, Noise: Seeded(seed)}, Schema: schema, Holdout: holdout, Training: training, Compile: []queries.Option{queries.Grouped(units)}}
}

// TestItemsAreAskedAsWithWhere: each item of a plan of several equations is one question, and is what the same number gets that is asked for with where: the same value, interval,
// cost and state, byte for byte, over tables in which guesses pass, pass widely and fail. It would notice items that share a question or a level, that cost two, that are divided by another
// condition, and a plan that is released by means.
func TestItemsAreAskedAsWithWhere(t *testing.T) {
	type item struct {
		at    int // in the answer's items
		where string
	}
	seen := map[string]bool{}
	for _, c := range []struct {
		body  string
		items []item
	}{
		{`{"type":"groups","of":"x","range":[0,2],"by":"g","values":["a","b"]}`, []item{
			{0, `{"type":"mean","of":"x","range":[0,2],"where":"g == 'a'"}`}, {1, `{"type":"mean","of":"x","range":[0,2],"where":"g == 'b'"}`}, {2, `{"type":"mean","of":"x","range":[0,2],"where":"g != 'a' && g != 'b'"}`}}},
		{`{"type":"groups","of":"late ? 1 : 0","range":[0,1],"by":"g","values":["a","b"],"where":"x < 0.5"}`, []item{
			{0, `{"type":"fraction","of":"late","where":"x < 0.5 && g == 'a'"}`}, {1, `{"type":"fraction","of":"late","where":"x < 0.5 && g == 'b'"}`}, {2, `{"type":"fraction","of":"late","where":"x < 0.5 && g == 'c'"}`}}},
		{`{"type":"frequencies","of":"g","values":["a","b"]}`, []item{
			{0, `{"type":"fraction","of":"g == 'a'"}`}, {1, `{"type":"fraction","of":"g == 'b'"}`}, {2, `{"type":"fraction","of":"g != 'a' && g != 'b'"}`}}},
		{`{"type":"frequencies","of":"g","values":["a","b"],"where":"late"}`, []item{
			{0, `{"type":"fraction","of":"g == 'a'","where":"late"}`}, {1, `{"type":"fraction","of":"g == 'b'","where":"late"}`}, {2, `{"type":"fraction","of":"g != 'a' && g != 'b'","where":"late"}`}}},
		{`{"type":"histogram","of":"x","edges":[0,0.2,1],"where":"late"}`, []item{
			{0, `{"type":"fraction","of":"x < 0.0","where":"late"}`}, {1, `{"type":"fraction","of":"x >= 0.0 && x < 0.2","where":"late"}`}, {2, `{"type":"fraction","of":"x >= 0.2 && x <= 1.0","where":"late"}`}}},
		{`{"type":"confusion","label":"late","prediction":"x < 0.3","where":"g != 'a'"}`, []item{
			{0, `{"type":"fraction","of":"!late && x >= 0.3","where":"g != 'a'"}`}, {1, `{"type":"fraction","of":"!late && x < 0.3","where":"g != 'a'"}`}, {2, `{"type":"fraction","of":"late && x >= 0.3","where":"g != 'a'"}`}}},
		{`{"type":"calibration","label":"late","prediction":"score","edges":[0,0.5,1],"where":"g != 'a'"}`, []item{
			{0, `{"type":"fraction","of":"score >= 0.0 && score < 0.5 && g != 'a'"}`}, {1, `{"type":"fraction","of":"late","where":"score >= 0.0 && score < 0.5 && g != 'a'"}`},
			{2, `{"type":"mean","of":"score","range":[0,0.5],"where":"score >= 0.0 && score < 0.5 && g != 'a'"}`},
			{3, `{"type":"fraction","of":"score >= 0.5 && score <= 1.0 && g != 'a'"}`}}},
		{`{"type":"calibration","label":"late","prediction":"score","edges":[0,0.5,1],"where":"g != 'a'","form":"gap"}`, []item{
			{0, `{"type":"mean","of":"(late ? 1.0 : 0.0) - score","range":[-1,1],"where":"score >= 0.0 && score < 0.5 && g != 'a'"}`},
			{1, `{"type":"mean","of":"(late ? 1.0 : 0.0) - score","range":[-1,1],"where":"score >= 0.5 && score <= 1.0 && g != 'a'"}`}}},
	} {
		for seed := range uint64(25) {
			late := map[string]float64{"a": 0.5, "b": 0.3, "c": 0.05 * float64(seed%4)}
			together, single := local(t, seed, 300, false, 60, 30, 0.95, late), local(t, seed, 300, false, 60, 30, 0.95, late)
			if seed%2 == 1 { // another holdout than the training part: failures
				_, together.Holdout = grouped(t, 1000+seed, 300, false, map[string]float64{"a": 0.1, "b": 0.9, "c": 0.6})
				single.Holdout = together.Holdout
			}
			a, err := together.Ask(context.Background(), []byte(c.body))
			if err != nil {
				t.Fatalf("%s: %v", c.body, err)
			}
			if a.Cost.Questions != int64(len(a.Items)) || together.State.Questions != int64(len(a.Items)) || a.Cost.Tokens > a.Cost.Questions {
				t.Fatalf("%s: %d items cost %+v", c.body, len(a.Items), a.Cost)
			}
			for _, i := range c.items {
				b, err := single.Ask(context.Background(), []byte(i.where))
				if err != nil {
					t.Fatalf("%s: %v", i.where, err)
				}
				got, want := a.Items[i.at], Item{Of: a.Items[i.at].Of, Value: b.Value, Low: b.Interval.Low, High: b.Interval.High}
				x, _ := json.Marshal(got)
				y, _ := json.Marshal(want)
				if string(x) != string(y) {
					t.Errorf("%s: item %s, asked with %s it is %s", c.body, x, i.where, y)
				}
				seen[fmt.Sprint(b.Cost.Tokens > 0)] = true
			}
			if len(c.items) == len(a.Items) && single.State != together.State {
				t.Errorf("%s: the state is %+v, after the same questions by themselves %+v", c.body, together.State, single.State)
			}
		}
	}
	if !seen["true"] || !seen["false"] {
		t.Errorf("outcomes seen: failures %v", seen)
	}
}

// TestDifferenceIsOneQuestion: a difference of two groups is one question and at most one token, and narrower than the difference of the two means that are asked for with where
// (of units of several rows it is two questions, as two weighted roots, where nothing is known of the training part: TestPairedDifference). The value is that of the two means. It would notice a difference by its four means.
func TestDifferenceIsOneQuestion(t *testing.T) {
	for _, units := range []bool{false, true} {
		l := local(t, 3, 3000, units, 60, 30, 0.95, someLate)
		for _, of := range []string{`"of":"x","range":[0,2]`, `"of":"late"`} {
			ask := func(body string) (value, low, high float64, cost Cost) {
				a, err := l.Ask(context.Background(), []byte(body))
				if err != nil {
					t.Fatalf("%s: %v", body, err)
				}
				return *a.Value, *a.Interval.Low, *a.Interval.High, a.Cost
			}
			v, low, high, cost := ask(`{"type":"difference",` + of + `,"between":["g == 'a'","g == 'b'"]}`)
			want := int64(1)
			if units {
				want = 2
			}
			if cost.Questions != want || cost.Tokens > want {
				t.Errorf("units of several rows %v: %s costs %+v", units, of, cost)
			}
			if units {
				continue // two means with where are about other weights of the units
			}
			kind := "fraction"
			if of != `"of":"late"` {
				kind = "mean"
			}
			a, aLow, aHigh, _ := ask(`{"type":"` + kind + `",` + of + `,"where":"g == 'a'"}`)
			b, bLow, bHigh, _ := ask(`{"type":"` + kind + `",` + of + `,"where":"g == 'b'"}`)
			if high-low >= 0.95*(aHigh-bLow-aLow+bHigh) || math.Abs(v-a+b) > 1e-6 {
				t.Errorf("%s: [%v, %v] about %v; by two means [%v, %v] about %v", of, low, high, v, aLow-bHigh, aHigh-bLow, a-b)
			}
		}
	}
}

// TestPairedDifference: of units of several rows a difference is one question, too, whose value is the training part's difference, or the analyst's guess, and which is narrower than that of two roots; a half-width that is asked for
// is kept, and a guess that is far off costs one token. In a batch its value is the holdout's own difference, to the grid, though groups are of other sizes there than in the training part, and the interval is narrower, too.
// It would notice a product that is left out, a mean that is divided by the other group's share, and what two questions cost.
func TestPairedDifference(t *testing.T) {
	for _, of := range []string{`"of":"x","range":[0,2]`, `"of":"late"`} {
		query := `{"type":"difference",` + of + `,"between":["g == 'a'","g == 'b'"]`
		l := local(t, 3, 9000, true, 60, 30, 0.95, someLate)
		_, l.Training = grouped(t, 77, 6000, true, map[string]float64{"a": 0.52, "b": 0.3, "c": 0.1})
		var err error
		if l.Guarantee, err = thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: l.Holdout.Units(), Training: l.Training.Units(), Questions: 60, Tokens: 30}); err != nil {
			t.Fatal(err)
		}
		ask := func(l *Local, body string) Answer {
			t.Helper()
			a, err := l.Ask(context.Background(), []byte(body))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			return a
		}
		width := func(a Answer) float64 { return *a.Interval.High - *a.Interval.Low }
		apart := &Local{Session: l.Session, Schema: l.Schema, Holdout: l.Holdout, Training: l.Training, Compile: []queries.Option{queries.Grouped(true)}}
		roots := ask(apart, query+`}`)
		l.Compile = append(l.Compile, queries.Training(trainingOf{l.Training}))
		one := ask(l, query+`}`)
		if one.Cost != (Cost{Questions: 1}) || roots.Cost.Questions != 2 || math.Abs(*one.Value-*roots.Value) > 1e-6 || width(one) > 0.95*width(roots) {
			t.Errorf("%s; by two roots %s", text(one), text(roots))
		}
		if a := ask(l, query+fmt.Sprintf(`,"guess":%v}`, *one.Value+0.01)); a.Cost != (Cost{Questions: 1}) || math.Abs(*a.Value-*one.Value-0.01) > 1e-6 {
			t.Errorf("a guess: %s", text(a))
		}
		half := width(one) / 2 * 0.9
		if a := ask(l, query+fmt.Sprintf(`,"half_width":%v}`, half)); a.Cost.Tokens == 0 && width(a) > 2*half+1e-6 {
			t.Errorf("±%v was asked for: %s", half, text(a))
		}
		if a := ask(l, query+`,"guess":-0.9}`); a.Cost != (Cost{Questions: 1, Tokens: 1}) || math.Abs(*a.Value-*one.Value) > 0.2 {
			t.Errorf("a wrong guess: %s", text(a))
		}

		batch, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: l.Holdout.Units(), Training: l.Training.Units(), Questions: 40, Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		of := func(options ...queries.Option) *Local {
			return &Local{Session: Session{Guarantee: batch, Noise: Seeded(1)}, Schema: l.Schema, Holdout: l.Holdout, Training: l.Training, Compile: options}
		}
		before, after := ask(of(queries.Grouped(true)), query+`}`), ask(of(l.Compile...), query+`}`)
		if math.Abs(*before.Value-*after.Value) > 1e-6 || width(after) > 0.9*width(before) || before.Cost != after.Cost {
			t.Errorf("in a batch %s; by two roots %s", text(after), text(before))
		}
	}
}

// TestWeightedSums: what a weighted question gets of a part is what a loop over its rows adds up, on the grid. It would notice a product in the place of another.
func TestWeightedSums(t *testing.T) {
	l := local(t, 5, 60, false, 10, 5, 0.95, someLate)
	query, err := queries.Parse([]byte(`{"type":"mean","of":"x","range":[0,1],"weights":{"of":"score","range":[0,1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := query.Compile(context.Background(), l.Schema)
	if err != nil {
		t.Fatal(err)
	}
	q, err := l.Question(query, plan)
	if err != nil {
		t.Fatal(err)
	}
	e := plan.Equation()
	var want thresholdout.WeightedSums
	for u := range l.Holdout.Units() {
		values, err := l.Holdout.Sums(context.Background(), []queries.RowFunction{e.A, *e.B}, u, u+1)
		if err != nil {
			t.Fatal(err)
		}
		want.Add(values[0], values[1])
	}
	sums, err := l.Scan(context.Background(), l.State, []*Question{q}, l.Holdout, l.reference())
	if err != nil || sums[0].Holdout.Statistics[0] != want {
		t.Errorf("%+v, the rows have %+v, %v", sums[0].Holdout.Statistics, want, err)
	}
}

// TestStatisticsCover: through the whole session, in at most a share of runs of 1-confidence does any interval miss (false alarm 1e-6 each): of groups, differences, weighted means and units of several
// rows, whose training parts are drawn so that many guesses fail. The analyst asks next about what came out lowest. Intervals of a third of the width are missed in nearly all runs.
func TestStatisticsCover(t *testing.T) {
	const runs, rows = 60, 360
	for _, units := range []bool{false, true} {
		for _, confidence := range []float64{0.5, 0.9} {
			missed, narrow, tokens := 0, 0, int64(0)
			for run := range uint64(runs) {
				l := local(t, 500+run, rows, units, 40, 40, confidence, someLate)
				_, l.Training = grouped(t, 9000+run, rows, units, map[string]float64{"a": 0.1, "b": 0.8, "c": 0.6})
				l.Compile = append(l.Compile, queries.Training(trainingOf{l.Training})) // by which differences of units are five means
				any, anyNarrow := false, false
				see := func(truth float64, low, high *float64) {
					if low == nil || high == nil {
						return
					}
					any = any || truth < *low || truth > *high
					anyNarrow = anyNarrow || math.Abs(truth-(*low+*high)/2) > (*high-*low)/6
				}
				ask := func(body string) Answer {
					a, err := l.Ask(context.Background(), []byte(body))
					if err != nil {
						t.Fatalf("%s: %v", body, err)
					}
					tokens += a.Cost.Tokens
					return a
				}
				least, lowest := 2.0, "a"
				groups := ask(`{"type":"groups","of":"late ? 1 : 0","range":[0,1],"by":"g","values":["a","b"]}`)
				for i, name := range []string{"a", "b", "c"} {
					see(someLate[name], groups.Items[i].Low, groups.Items[i].High)
					if v := groups.Items[i].Value; v != nil && *v < least {
						least, lowest = *v, name
					}
				}
				a := ask(fmt.Sprintf(`{"type":"difference","of":"late","between":["g == '%s'"]}`, lowest))
				see(someLate[lowest]-others(lowest), a.Interval.Low, a.Interval.High)
				a = ask(`{"type":"difference","of":"late","between":["g == 'a'","g == 'c'"]}`)
				see(someLate["a"]-someLate["c"], a.Interval.Low, a.Interval.High)
				a = ask(`{"type":"difference","of":"x","range":[0,1],"between":["score < 0.5"]}`)
				see(0, a.Interval.Low, a.Interval.High)
				for _, weight := range []string{`"weights":{"of":"score","range":[0,1]}`, `"weights":{"of":"score","range":[0,1]},"where":"g == 'c'"`} {
					a = ask(`{"type":"mean","of":"x","range":[0,1],` + weight + `}`)
					see(1.0/3, a.Interval.Low, a.Interval.High)
					a = ask(`{"type":"mean","of":"x","range":[0,1],"guess":0.7,` + weight + `}`)
					see(1.0/3, a.Interval.Low, a.Interval.High)
				}
				if any {
					missed++
				}
				if anyNarrow {
					narrow++
				}
			}
			t.Logf("units of several rows %v, confidence %v: %d of %d runs missed, at a third of the width %d; %d tokens", units, confidence, missed, runs, narrow, tokens)
			if err := stattest.AtMost(missed, runs, 1-confidence, 1e-6); err != nil {
				t.Errorf("confidence %v: %v", confidence, err)
			}
			if stattest.AtMost(narrow, runs, 1-confidence, 1e-6) == nil {
				t.Errorf("confidence %v: intervals of a third of the width were missed in %d of %d runs only", confidence, narrow, runs)
			}
			if tokens < runs/2 {
				t.Errorf("confidence %v: only %d guesses failed", confidence, tokens)
			}
		}
	}
}

// others is how frequent late is outside of a group.
func others(name string) float64 {
	shares := map[string]float64{"a": 1, "b": 2, "c": 3}
	sum, all := 0.0, 0.0
	for other, share := range shares {
		if other != name {
			sum, all = sum+share*someLate[other], all+share
		}
	}
	return sum / all
}

// experiment is an A/B test of so many rows: of the half with the group a, share+effect are late, of the other share.
func experiment(t testing.TB, rows int, share, effect float64) (dataset.Schema, *engine.Table) {
	t.Helper()
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool}, Bools: make([]uint8, rows)}
	names := make([]string, rows)
	for i := range rows {
		names[i] = []string{"a", "b"}[i%2]
		p := share
		if i%2 == 0 {
			p += effect
		}
		if float64(i/2) < math.Round(p*float64(rows/2)) {
			late.Bools[i] = 1
		}
	}
	all, err := dataset.FromColumns(late, dataset.NewText("g", names, func(int) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(all, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all.Schema(), source
}

// TestEffectHasAPValue: an A/B effect of 5.45 standard errors on the holdout, which a textbook gives a p-value of 5e-8, is found among 5, 20 and 110 questions with nothing but the question itself, and one of 5.5 among 1,000; one of
// 6 among 1,000 about 9,000 rows. So it is where a half-width is asked for at which the guess passes. No effect has none, and one of the other side than the alternative none. It would notice groups that are read by four means, or by
// margins that add up, tests that are checked at the margins of any question, or that leave as much room on the other side of the guess as on that of the null, or say no more of each group than any question: then they are 1 and undecided.
func TestEffectHasAPValue(t *testing.T) {
	const share = 0.1
	for _, c := range []struct {
		rows        int
		more        float64 // standard errors by which the holdout's effect is larger than the training part's
		effect      float64
		questions   int64
		halfWidth   float64 // in standard errors; 0: planned
		alternative string
		most        float64 // of the p-value
		verdict     queries.Verdict
	}{{60_000, 0, 5.45, 5, 0, "two-sided", 0.0501, queries.Yes}, {60_000, 0, 5.45, 20, 0, "greater", 0.0501, queries.Yes}, {60_000, 0, 5.45, 110, 0, "two-sided", 0.0501, queries.Yes}, {60_000, 0, 5.5, 1000, 0, "two-sided", 0.0501, queries.Yes}, {60_000, 0, 5.45, 110, 5.4, "two-sided", 0.0501, queries.Yes},
		{9000, 0, 6, 1000, 0, "two-sided", 0.0501, queries.Yes}, {9000, 1.5, 6, 1000, 0, "two-sided", 0.0501, queries.Yes}, {9000, 0, -6.5, 1000, 0, "less", 0.0501, queries.Yes}, {9000, 0, 6, 1000, 0, "less", 1, queries.Undecided},
		{60_000, 0, 5.45, 110, 0, "less", 1, queries.Undecided}, {60_000, 0, 0, 5, 0, "two-sided", 1, queries.Undecided}, {60_000, 0, 0, 110, 5.4, "two-sided", 1, queries.Undecided}} {
		se := math.Sqrt(share * (1 - share) * 4 / float64(c.rows))
		schema, holdout := experiment(t, c.rows, share, c.effect*se)
		_, training := experiment(t, c.rows*7/3, share, c.effect*se)
		if c.more > 0 {
			_, holdout = experiment(t, c.rows, share, (c.effect+c.more)*se)
		}
		p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: holdout.Units(), Training: training.Units(), Questions: c.questions})
		if err != nil {
			t.Fatal(err)
		}
		l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
		half := fmt.Sprintf(`,"alternative":%q`, c.alternative)
		if c.halfWidth > 0 {
			half += fmt.Sprintf(`,"half_width":%v`, c.halfWidth*se)
		}
		a, err := l.Ask(context.Background(), []byte(`{"type":"test","test":"two-proportions","of":"late","between":["g == 'a'"]`+half+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if *a.PValue > c.most || c.most == 1 && *a.PValue < 1 || a.Verdict != c.verdict || a.Cost != (Cost{Questions: 1}) {
			t.Errorf("%+v: p = %v, %s, %+v", c, *a.PValue, a.Verdict, a.Cost)
		}
	}
}

// TestFirstTestAlone: under guess_and_check the first question of all has a plain p-value, of every test that can have one: the p-value without the union over so many questions. Later ones have none, for what was told before may have chosen
// them. It would notice one that is given later, and one that is divided by more or less.
func TestFirstTestAlone(t *testing.T) {
	const rows, share, questions = 9000, 0.3, 200
	se := math.Sqrt(share * (1 - share) * 4 / rows)
	schema, holdout := experiment(t, rows, share, 8*se)
	_, training := experiment(t, rows*7/3, share, 8*se)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: holdout.Units(), Training: training.Units(), Questions: questions})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []string{`"test":"two-proportions","of":"late","between":["g == 'a'"]`, `"test":"two-proportions","of":"late","between":["g == 'a'"],"alternative":"greater"`,
		`"test":"proportion","of":"late","equals":0.2`, `"test":"proportion","of":"late","where":"g == 'a'","equals":0.2`, `"test":"mean","of":"late ? 1 : 0","range":[0,1],"equals":0.2`} {
		l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
		ask := func(body string) Answer {
			a, err := l.Ask(context.Background(), []byte(`{"type":"test",`+body+`}`))
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		ends := 2.0
		if strings.Contains(test, "greater") {
			ends = 1
		}
		first := ask(test)
		if first.Plain == nil || *first.PValue > 0.051 {
			t.Fatalf("%s: %s", test, text(first))
		}
		if want := *first.PValue / questions * ends / 2; *first.PValue > 1e-6 && (*first.Plain < want*0.995 || *first.Plain > want*1.005) || *first.PValue <= 1e-6 && *first.Plain > 1e-8 {
			t.Errorf("%s: plain %v, want %v", test, *first.Plain, want)
		}
		if later := ask(`"test":"two-proportions","of":"late","between":["g == 'b'"]`); later.Plain != nil {
			t.Errorf("after an answer: %s", text(later))
		}
	}
}

// TestTestsAreTold: over samples with an effect of 6.1 standard errors a test of 110 finds most, where the same difference says nothing of it; one that is not found is as narrow as the difference, but for both margins of
// its groups together, and costs no token. Tests in which the training part sees no effect are the difference, byte for byte: nothing is spent where nothing can be told. It would notice a test at the planned margins alone, a narrower one for every
// test, and a token for a wide pass.
func TestTestsAreTold(t *testing.T) {
	const rows, share, runs = 6000, 0.3, 12
	se := math.Sqrt(share * (1 - share) * 4 / rows)
	found, plain, rough := 0, 0, 0
	for run := range uint64(runs) {
		for _, effect := range []float64{6.1 * se, 0} {
			late := map[string]float64{"a": share + effect, "b": share}
			schema, holdout := sampled(t, 2*run, rows, late)
			_, training := sampled(t, 2*run+1, rows*7/3, late)
			p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: holdout.Units(), Training: training.Units(), Questions: 110})
			if err != nil {
				t.Fatal(err)
			}
			ask := func(body string) Answer {
				l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
				a, err := l.Ask(context.Background(), []byte(body))
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			a, d := ask(`{"type":"test","test":"two-proportions","of":"late","between":["g == 'a'"]}`), ask(`{"type":"difference","of":"late","between":["g == 'a'"]}`)
			wide := (*a.Interval.High - *a.Interval.Low) / (*d.Interval.High - *d.Interval.Low)
			switch {
			case a.Cost.Tokens != d.Cost.Tokens || *a.Value != *d.Value:
				t.Errorf("run %d: the test is %s, the difference %s", run, text(a), text(d))
			case effect == 0 && (*a.Interval.Low != *d.Interval.Low || *a.Interval.High != *d.Interval.High || a.Outcome != d.Outcome || a.Verdict == queries.Yes):
				t.Errorf("run %d: without an effect the test is %s, the difference %s", run, text(a), text(d))
			case a.Outcome == thresholdout.Rough && d.Outcome == thresholdout.Close:
				rough++
				if wide > 1.01 || wide < 0.95 { // or it is what a pass at the narrower margin would say
					t.Errorf("run %d: a wide pass is %v times as wide as the difference", run, wide)
				}
			}
			if effect > 0 && a.Verdict == queries.Yes {
				found++
			}
			if effect > 0 && *d.Interval.Low > 0 {
				plain++
			}
		}
	}
	t.Logf("%d of %d found, %d by the difference, %d wide passes", found, runs, plain, rough)
	if found < runs*6/10 || plain > runs/3 || rough == 0 {
		t.Errorf("%d of %d found, %d by the difference, %d wide passes", found, runs, plain, rough)
	}
}

// sampled is a drawn A/B test of so many rows: of a row of group a, or b, late is as probable as said.
func sampled(t testing.TB, seed uint64, rows int, probable map[string]float64) (dataset.Schema, *engine.Table) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 31))
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool}, Bools: make([]uint8, rows)}
	names := make([]string, rows)
	for i := range rows {
		names[i] = []string{"a", "b"}[i%2]
		if r.Float64() < probable[names[i]] {
			late.Bools[i] = 1
		}
	}
	all, err := dataset.FromColumns(late, dataset.NewText("g", names, func(int) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(all, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all.Schema(), source
}
