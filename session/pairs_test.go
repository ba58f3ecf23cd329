package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// scored is a row of the tables of these tests; x can be null.
type scored struct {
	x, s, z float64
	late, w bool
}

func scoredTable(t testing.TB, rows []scored) (dataset.Schema, *engine.Table) {
	t.Helper()
	columns := []dataset.Column{{Field: dataset.Field{Name: "x", Kind: dataset.Number}}, {Field: dataset.Field{Name: "s", Kind: dataset.Number}},
		{Field: dataset.Field{Name: "z", Kind: dataset.Number}}, {Field: dataset.Field{Name: "late", Kind: dataset.Bool}}, {Field: dataset.Field{Name: "w", Kind: dataset.Bool}}}
	bit := map[bool]uint8{true: 1}
	for _, r := range rows {
		columns[0].Numbers, columns[1].Numbers, columns[2].Numbers = append(columns[0].Numbers, r.x), append(columns[1].Numbers, r.s), append(columns[2].Numbers, r.z)
		columns[3].Bools, columns[4].Bools = append(columns[3].Bools, bit[r.late]), append(columns[4].Bools, bit[r.w])
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return table.Schema(), source
}

// quality is what a query of these tests says of rows, by loops over them and over pairs of them; false where it says nothing.
type quality struct {
	name, body string
	of         func(rows []scored) (float64, bool)
}

// binOf is how many edges a number is above; a null is above none.
func binOf(x float64, edges ...float64) (bin int) {
	for _, e := range edges {
		if x > e {
			bin++
		}
	}
	return bin
}

// ranked is the share of pairs of a row of first and one of second in which score is higher in the first, ties counting one half.
func ranked(first, second []scored, score func(scored) int) (float64, bool) {
	sum := 0.0
	for _, a := range first {
		for _, b := range second {
			switch d := score(a) - score(b); {
			case d > 0:
				sum++
			case d == 0:
				sum += 0.5
			}
		}
	}
	n := float64(len(first) * len(second))
	return sum / n, n > 0
}

func where(rows []scored, holds func(scored) bool) (chosen []scored) {
	for _, r := range rows {
		if holds(r) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

func byLabel(rows []scored) (with, without []scored) {
	return where(rows, func(r scored) bool { return r.late }), where(rows, func(r scored) bool { return !r.late })
}

func quantileQuality(p float64, among func(scored) bool) func([]scored) (float64, bool) {
	return func(rows []scored) (float64, bool) {
		var x []float64
		for _, r := range where(rows, among) {
			v := r.x
			if v != v {
				v = 0
			}
			x = append(x, min(max(math.Ceil(v), 0), 8))
		}
		if len(x) == 0 {
			return 0, false
		}
		slices.Sort(x)
		return x[max(int(math.Ceil(p*float64(len(x))-1e-9))-1, 0)], true
	}
}

// tau is Kendall's tau_a of the bins of s and z between the first half of the rows and the second.
func tau(rows []scored, among func(scored) bool) (float64, bool) {
	first, second := where(rows[:len(rows)/2], among), where(rows[len(rows)/2:], among)
	sum := 0.0
	for _, a := range first {
		for _, b := range second {
			sum += float64(sign(binOf(a.s, 0.2, 0.5, 0.7)-binOf(b.s, 0.2, 0.5, 0.7)) * sign(binOf(a.z, 0.4, 0.6)-binOf(b.z, 0.4, 0.6)))
		}
	}
	n := float64(len(first) * len(second))
	return sum / n, n > 0
}

func sign(x int) int {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

func anyRow(scored) bool { return true }

var qualities = []quality{
	{name: "quantile", body: `{"type":"quantile","of":"x","range":[0,8],"p":0.4,"resolution":1}`, of: quantileQuality(0.4, anyRow)},
	{name: "median where", body: `{"type":"median","of":"x","range":[0,8],"resolution":1,"where":"w"}`, of: quantileQuality(0.5, func(r scored) bool { return r.w })},
	{name: "auc", body: `{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7]}`, of: func(rows []scored) (float64, bool) {
		with, without := byLabel(rows)
		return ranked(with, without, func(r scored) int { return binOf(r.s, 0.2, 0.5, 0.7) })
	}},
	{name: "auc of the larger class", body: `{"type":"auc","label":"!late","prediction":"s","edges":[0.2,0.5,0.7]}`, of: func(rows []scored) (float64, bool) {
		with, without := byLabel(rows)
		return ranked(without, with, func(r scored) int { return binOf(r.s, 0.2, 0.5, 0.7) })
	}},
	{name: "auc where", body: `{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7],"where":"w"}`, of: func(rows []scored) (float64, bool) {
		with, without := byLabel(where(rows, func(r scored) bool { return r.w }))
		return ranked(with, without, func(r scored) int { return binOf(r.s, 0.2, 0.5, 0.7) })
	}},
	{name: "two aucs", body: `{"type":"compare","a":{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7]},"b":{"type":"auc","label":"late","prediction":"z","edges":[0.4,0.6]}}`, of: func(rows []scored) (float64, bool) {
		with, without := byLabel(rows)
		a, ok := ranked(with, without, func(r scored) int { return binOf(r.s, 0.2, 0.5, 0.7) })
		b, _ := ranked(with, without, func(r scored) int { return binOf(r.z, 0.4, 0.6) })
		return b - a, ok
	}},
	{name: "kendall", body: `{"type":"kendall","x":"s","y":"z","edges_x":[0.2,0.5,0.7],"edges_y":[0.4,0.6]}`, of: func(rows []scored) (float64, bool) { return tau(rows, anyRow) }},
	{name: "kendall where", body: `{"type":"kendall","x":"s","y":"z","edges_x":[0.2,0.5,0.7],"edges_y":[0.4,0.6],"where":"w"}`, of: func(rows []scored) (float64, bool) {
		return tau(rows, func(r scored) bool { return r.w })
	}},
}

// drawScored draws rows whose scores follow the label, and each other, as much as follows says.
func drawScored(r *rand.Rand, n int, follows float64) []scored {
	rows := make([]scored, n)
	for i := range rows {
		row := scored{x: math.Floor(9 * r.Float64()), late: r.Float64() < 0.4, w: r.Float64() < 0.6}
		if r.IntN(10) == 0 {
			row.x = math.NaN()
		}
		both := r.Float64()
		if row.late {
			both = min(1, both+0.3*follows)
		}
		row.s, row.z = follows*both+(1-follows)*r.Float64(), follows*both+(1-follows)*r.Float64()
		rows[i] = row
	}
	return rows
}

func guessing(t testing.TB, n, training, questions, tokens int64, confidence float64) thresholdout.Guarantee {
	t.Helper()
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: training, Questions: questions, Tokens: tokens, Confidence: confidence})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPairsAreTheAnswers: under guess_and_check quantiles, areas, their differences and Kendall's tau are one question and at most one token. The training part's value is what a loop over its
// rows says, an answer from the training part has that value, an interval holds what a loop over the holdout's rows says, and what is previewed is what a guess that passes
// gets. Nearly all guesses pass, as the parts are alike. It would notice counts of other rows, bins and classes that are exchanged, halves that overlap, and a price, a preview and an answer that
// differ.
func TestPairsAreTheAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 17))
	failed := 0
	for range 12 {
		held, trained := drawScored(r, 300+r.IntN(2), 0.5), drawScored(r, 500, 0.5)
		schema, holdout := scoredTable(t, held)
		_, training := scoredTable(t, trained)
		l := &Local{Session: Session{Guarantee: guessing(t, int64(len(held)), 500, 50, 20, 0.95), Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
		for _, q := range qualities {
			query, err := queries.Parse([]byte(q.body))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := query.Compile(context.Background(), schema)
			if err != nil {
				t.Fatal(err)
			}
			question, err := l.Question(query, plan)
			if err != nil {
				t.Fatal(err)
			}
			if price := l.Price(plan); price != (Price{Questions: 1, Tokens: 1}) || l.MostTokens(plan) != 1 {
				t.Fatalf("%s costs %+v", q.name, price)
			}
			told, err := TrainingSums(context.Background(), question.Plan, Reference{Training: training})
			if err != nil {
				t.Fatal(err)
			}
			foreseen, err := l.Preview(l.State, question, told)
			if err != nil {
				t.Fatal(err)
			}
			a, err := l.Ask(context.Background(), []byte(q.body))
			if err != nil {
				t.Fatalf("%s: %v", q.name, err)
			}
			low, high := *a.Interval.Low, *a.Interval.High
			if own, ok := q.of(held); !ok || own < low-1e-9 || own > high+1e-9 {
				t.Errorf("%s: [%v, %v], the holdout's own rows have %v", q.name, low, high, own)
			}
			if a.Cost.Questions != 1 || a.Cost.Tokens > 1 || (a.Cost.Tokens == 0) != (a.Source == thresholdout.FromTraining) {
				t.Errorf("%s: %+v from %s", q.name, a.Cost, a.Source)
			}
			if a.Source != thresholdout.FromTraining {
				failed++
				continue
			}
			// Kendall's tau of the training part is of all pairs of its rows, which is tau between it and itself.
			of := trained
			if strings.HasPrefix(q.name, "kendall") {
				of = slices.Concat(trained, trained)
			}
			if want, _ := q.of(of); math.Abs(*a.Value-want) > 1e-8 || math.Abs(*foreseen.Result.Value-want) > 1e-8 {
				t.Errorf("%s: the training part says %v, previewed %v; by its rows %v", q.name, *a.Value, *foreseen.Result.Value, want)
			}
			if *foreseen.Result.Low < low-1e-12 || *foreseen.Result.High > high+1e-12 || foreseen.Bound != a.Interval.Bound {
				t.Errorf("%s: previewed [%v, %v] by %s, answered [%v, %v] by %s", q.name, *foreseen.Result.Low, *foreseen.Result.High, foreseen.Bound, low, high, a.Interval.Bound)
			}
		}
	}
	if failed > 2 {
		t.Errorf("%d guesses of %d failed", failed, 12*len(qualities))
	}
}

// TestQuantileTestsSearch: a test of a quantile has a p-value, so that it is released by its search, as its price says: what counts say is known at one level alone. The test of an
// area has one by its counts, which is at most 1-confidence where the interval excludes the null, and only there. It would notice a p-value that is missing.
func TestQuantileTestsSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 17))
	schema, holdout := scoredTable(t, drawScored(r, 3000, 0.5))
	_, training := scoredTable(t, drawScored(r, 5000, 0.5))
	l := &Local{Session: Session{Guarantee: guessing(t, 3000, 5000, 100, 50, 0.95), Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
	for _, c := range []struct {
		body      string
		equals    float64
		questions int64
	}{
		{`{"type":"median","of":"x","range":[0,8],"resolution":1}`, 7, 4},
		{`{"type":"median","of":"x","range":[0,8],"resolution":1}`, 4, 4},
		{`{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7]}`, 0.5, 1},
		{`{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7]}`, 0.6, 1},
		{`{"type":"kendall","x":"s","y":"z","edges_x":[0.2,0.5,0.7],"edges_y":[0.4,0.6]}`, -0.3, 1},
	} {
		a, err := l.Ask(context.Background(), fmt.Appendf(nil, `{"type":"test","test":"value","query":%s,"equals":%v}`, c.body, c.equals))
		if err != nil {
			t.Fatal(err)
		}
		rejects := *a.Interval.Low > c.equals || *a.Interval.High < c.equals
		if a.Cost.Questions != c.questions || a.PValue == nil || (*a.PValue <= 0.05) != rejects || (a.Verdict == queries.Yes) != rejects {
			t.Errorf("%s is %v: %+v, p=%v, %s, [%v, %v]", c.body, c.equals, a.Cost, a.PValue, a.Verdict, *a.Interval.Low, *a.Interval.High)
		}
	}
}

// everyHoldout calls with each holdout of n rows of a law of few kinds, up to the order of its rows, and with its probability.
func everyHoldout(kinds []scored, law []float64, n int, f func(rows []scored, probability float64)) {
	var fill func(rows []scored, kind int, probability float64)
	fill = func(rows []scored, kind int, probability float64) {
		left := n - len(rows)
		if kind == len(kinds)-1 {
			f(slices.Concat(rows, slices.Repeat(kinds[kind:], left)), probability*math.Pow(law[kind], float64(left)))
			return
		}
		ways := 1.0
		for c := range left + 1 {
			fill(slices.Concat(rows, slices.Repeat(kinds[kind:kind+1], c)), kind+1, probability*ways*math.Pow(law[kind], float64(c)))
			ways *= float64(left-c) / float64(c+1)
		}
	}
	fill(nil, 0, 1)
}

// TestQuantilesByEnumeration goes the whole way for every holdout of a few rows, with its probability: each side of the first question misses with no more than half of 1-confidence,
// whatever the training part made the guess. Answers are no more than the price of a failure pays for: what an answer says is its outcome and nothing beside it. It would
// notice an answer with the holdout's own value in it, a level that pays for one side, counts at a point for those below it, and a failure that is not paid for.
func TestQuantilesByEnumeration(t *testing.T) {
	const n, confidence = 24, 0.4
	r := rand.New(rand.NewPCG(4, 17))
	worst := map[string]float64{}
	for _, q := range qualities[:2] {
		for range 4 {
			kinds := make([]scored, 3)
			for i := range kinds {
				kinds[i] = scored{x: float64(r.IntN(9)), w: r.IntN(3) > 0}
			}
			slices.SortFunc(kinds, func(a, b scored) int { return cmp.Compare(a.x, b.x) })
			// Where the distribution function just reaches p, misses are most probable.
			law := []float64{0.4, 0.2 + 0.4*math.Round(100*r.Float64())/100, 0}
			law[2] = 1 - law[0] - law[1]
			var population []scored // as many rows as they are probable
			for i, k := range kinds {
				population = append(population, slices.Repeat([]scored{k}, int(math.Round(250*law[i])))...)
			}
			target, ok := q.of(population)
			if !ok {
				continue
			}
			trained := population // or of another law
			if i := r.IntN(4); i < len(kinds) {
				trained = slices.Concat(population, slices.Repeat(kinds[i:i+1], 1+r.IntN(600)))
			}
			schema, training := scoredTable(t, trained)
			guarantee := guessing(t, n, int64(len(trained)), 1, 1, confidence)
			query, err := queries.Parse([]byte(q.body))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := query.Compile(context.Background(), schema)
			if err != nil {
				t.Fatal(err)
			}
			answers, below, above, paid := map[string]bool{}, 0.0, 0.0, 0.0
			everyHoldout(kinds, law, n, func(rows []scored, probability float64) {
				_, holdout := scoredTable(t, rows)
				l := &Local{Session: Session{Guarantee: guarantee, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
				a, err := l.Play(context.Background(), query, plan)
				if err != nil {
					t.Fatalf("%s: %v", q.name, err)
				}
				text, err := a.JSON()
				if err != nil {
					t.Fatal(err)
				}
				answers[string(text)] = true
				var state struct{ Memory struct{ Paid float64 } }
				stored, err := json.Marshal(l.State)
				if err == nil {
					err = json.Unmarshal(stored, &state)
				}
				if err != nil {
					t.Fatal(err)
				}
				paid = max(paid, state.Memory.Paid/(1<<20))
				if *a.Interval.Low > target {
					below += probability
				}
				if *a.Interval.High < target {
					above += probability
				}
			})
			share := max(below, above) / ((1 - confidence) / 2)
			if share > 1+1e-9 {
				t.Errorf("%s: a side misses %v with %v times half of 1-confidence; kinds %+v, law %v", q.name, target, share, kinds, law)
			}
			worst[q.name] = max(worst[q.name], share)
			if most := 2 + math.Exp(paid)*1.0001; float64(len(answers)) > most {
				t.Errorf("%s: %d answers, of which %v are paid for", q.name, len(answers), most)
			}
		}
	}
	t.Logf("largest probability of a miss, as a part of what is allowed: %v", worst)
	if worst["quantile"] < 0.5 {
		t.Errorf("quantiles miss with %v of what is allowed only: the test is too weak", worst["quantile"])
	}
}

// TestPairsCover: through the whole session, in at most a share of runs of 1-confidence does any interval miss (false alarm 1e-6 each). The training parts are of another law in half of
// the questions, so that guesses pass on the wrong side or fail, and the analyst follows the answers to the condition in which the last one is most extreme. Intervals of a
// fifteenth of the width are missed in nearly all runs, so that the test has power: the last line demands it.
func TestPairsCover(t *testing.T) {
	const runs, n = 30, 400
	for _, confidence := range []float64{0.5, 0.9} {
		missed, narrow := 0, 0
		for run := range uint64(runs) {
			r := rand.New(rand.NewPCG(run, 18))
			held, trained := drawScored(r, n, 0), drawScored(r, 2*n, 0.25*float64(run%2))
			schema, holdout := scoredTable(t, held)
			_, training := scoredTable(t, trained)
			l := &Local{Session: Session{Guarantee: guessing(t, n, 2*n, 40, 30, confidence), Noise: Seeded(run)}, Schema: schema, Holdout: holdout, Training: training}
			missedOne, missedNarrow, extreme, cut := false, false, 0.0, 0.5
			ask := func(target, targetHigh float64, format string, args ...any) float64 {
				a, err := l.Ask(context.Background(), fmt.Appendf(nil, format, args...))
				if err != nil {
					t.Fatal(err)
				}
				low, high := *a.Interval.Low, *a.Interval.High
				missedOne = missedOne || target < low || targetHigh > high
				middle, half := (low+high)/2, (high-low)/30
				missedNarrow = missedNarrow || math.Abs(target-middle) > half && math.Abs(targetHigh-middle) > half
				return middle
			}
			for j := 1; j <= 8 && l.State.Tokens < 22; j++ {
				// s, z and the label are independent of each other in the holdout.
				c := float64(j) / 10
				if away := math.Abs(ask(0.5, 0.5, `{"type":"auc","label":"late","prediction":"s","edges":[%v,%v]}`, c, c+0.1) - 0.5); away > extreme {
					extreme, cut = away, c
				}
				ask(0, 0, `{"type":"kendall","x":"s","y":"z","edges_x":[0.3,%v],"edges_y":[0.4,%v]}`, c/4+0.5, c/4+0.5)
				ask(0, 0, `{"type":"compare","a":{"type":"auc","label":"late","prediction":"s","edges":[0.3,%v]},"b":{"type":"auc","label":"late","prediction":"z","edges":[0.4,%v]}}`, c/4+0.5, c/4+0.5)
				// Of s below c, uniform: the quantile is a point of the grid or lies between two.
				at := 0.5 + c/4
				ask(math.Floor(at*64)/64, math.Ceil(at*64)/64, `{"type":"quantile","of":"s","range":[0,1],"p":%v,"resolution":0.015625,"where":"z > %v"}`, at, c/2)
			}
			ask(0.5, 0.5, `{"type":"auc","label":"late","prediction":"z","edges":[0.3,0.6],"where":"s > %v"}`, cut)
			if missedOne {
				missed++
			}
			if missedNarrow {
				narrow++
			}
		}
		t.Logf("confidence %v: %d of %d runs missed, at a fifteenth of the width %d", confidence, missed, runs, narrow)
		if err := stattest.AtMost(missed, runs, 1-confidence, 1e-6); err != nil {
			t.Errorf("confidence %v: %v", confidence, err)
		}
		if stattest.AtMost(narrow, runs, 1-confidence, 1e-6) == nil {
			t.Errorf("confidence %v: intervals of a fifteenth of the width were missed in %d of %d runs only", confidence, narrow, runs)
		}
	}
}
