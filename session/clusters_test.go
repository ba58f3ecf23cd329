package session

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// customersOf are units of one to four rows each, whose scores follow their labels, and the rows of a customer each other.
func customersOf(r *rand.Rand, n int) (units [][]scored) {
	for range n {
		own := r.Float64()
		var rows []scored
		for range 1 + r.IntN(4) {
			row := scored{late: r.Float64() < own, w: r.Float64() < 0.7}
			row.s, row.z = 0.5*own+0.5*r.Float64(), 0.3*own+0.7*r.Float64()
			rows = append(rows, row)
		}
		units = append(units, rows)
	}
	return units
}

// unitsTable is the table of units of several rows.
func unitsTable(t testing.TB, units [][]scored) (dataset.Schema, *engine.Table) {
	t.Helper()
	columns := []dataset.Column{{Field: dataset.Field{Name: "s", Kind: dataset.Number}}, {Field: dataset.Field{Name: "z", Kind: dataset.Number}},
		{Field: dataset.Field{Name: "late", Kind: dataset.Bool}}, {Field: dataset.Field{Name: "w", Kind: dataset.Bool}}}
	bit := map[bool]uint8{true: 1}
	offsets := []uint32{0}
	for _, rows := range units {
		for _, r := range rows {
			columns[0].Numbers, columns[1].Numbers = append(columns[0].Numbers, r.s), append(columns[1].Numbers, r.z)
			columns[2].Bools, columns[3].Bools = append(columns[2].Bools, bit[r.late]), append(columns[3].Bools, bit[r.w])
		}
		offsets = append(offsets, uint32(len(columns[0].Numbers)))
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, offsets, 1)
	if err != nil {
		t.Fatal(err)
	}
	return table.Schema(), source
}

// rankedUnits is the area by a loop over pairs of rows of two different units, one of each list; a unit's rows share its vote. Where the lists are the same, a unit is no pair with itself.
func rankedUnits(first, second [][]scored, among func(scored) bool, score func(scored) int) float64 {
	above, all := 0.0, 0.0
	for i, x := range first {
		for j, y := range second {
			if i == j && &first[0] == &second[0] {
				continue
			}
			for _, a := range x {
				for _, b := range y {
					if a.late == b.late || !among(a) || !among(b) {
						continue
					}
					d := score(a) - score(b)
					if b.late {
						d = -d
					}
					vote := 1 / float64(len(x)*len(y))
					above, all = above+vote*float64(sign(d)+1)/2, all+vote
				}
			}
		}
	}
	return above / all
}

func sBin(r scored) int { return binOf(r.s, 0.2, 0.5, 0.7) }
func zBin(r scored) int { return binOf(r.z, 0.4, 0.6) }

var clusteredQualities = []struct {
	name, body string
	of         func(first, second [][]scored) float64
	means      int64 // by which earlier guarantees release it
}{
	{"auc", `{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7]}`, func(first, second [][]scored) float64 { return rankedUnits(first, second, anyRow, sBin) }, 7},
	{"auc where", `{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7],"where":"w"}`, func(first, second [][]scored) float64 {
		return rankedUnits(first, second, func(r scored) bool { return r.w }, sBin)
	}, 8},
	{"two aucs", `{"type":"compare","a":{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7]},"b":{"type":"auc","label":"late","prediction":"z","edges":[0.4,0.6]}}`,
		func(first, second [][]scored) float64 {
			return rankedUnits(first, second, anyRow, zBin) - rankedUnits(first, second, anyRow, sBin)
		}, 12},
}

// earlier is the guarantee as an earlier version of its mechanism would have stored it.
func earlier(t testing.TB, p thresholdout.Guarantee) (before thresholdout.Guarantee) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.Replace(string(text), `"version":5`, `"version":3`, 1)), &before); err != nil || before.Version != 3 {
		t.Fatalf("version %d: %v", before.Version, err)
	}
	return before
}

// TestClusteredAreas: under guess_and_check an area of units of several rows, and the difference of two, are one question and at most one token. The training part's value is what a loop over pairs of rows of different
// units says, an answer from it has that value, and an interval holds what a loop over both halves of the holdout says; what is previewed is what a guess that passes gets. Earlier guarantees and other mechanisms, and holdouts whose
// units differ, release the bins' means as they did. It would notice rows in the place of units, halves that overlap, a unit's pairs with itself, and scores or labels that are exchanged.
func TestClusteredAreas(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 17))
	failed, asked := 0, 0
	for range 4 {
		held, trained := customersOf(r, 401), customersOf(r, 500)
		schema, holdout := unitsTable(t, held)
		_, training := unitsTable(t, trained)
		l := &Local{Session: Session{Guarantee: guessing(t, 401, 500, 50, 20, 0.95), Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training, Compile: []queries.Option{queries.Grouped(true)}}
		for _, q := range clusteredQualities {
			query, err := queries.Parse([]byte(q.body))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := query.Compile(context.Background(), schema, queries.Grouped(true))
			if err != nil {
				t.Fatal(err)
			}
			question, err := l.Question(query, plan)
			if err != nil {
				t.Fatal(err)
			}
			if price := l.Price(question.Plan); price != (Price{Questions: 1, Tokens: 1}) {
				t.Fatalf("%s costs %+v", q.name, price)
			}
			before, unlike, noisy := l.Session, l.Session, l.Session
			before.Guarantee, unlike.Unlike = earlier(t, l.Guarantee), true
			if noisy.Guarantee, err = thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 401, Training: 500, Questions: 50, Rounds: 1}); err != nil {
				t.Fatal(err)
			}
			for name, other := range map[string]Session{"earlier": before, "units that differ": unlike, "gaussian": noisy} {
				asked, err := other.Question(query, plan)
				if err != nil {
					t.Fatal(err)
				}
				for _, form := range other.Forms(asked.Plan) {
					if got := int64(form.Numbers()); got != q.means {
						t.Errorf("%s, %s: %d numbers, want %d", q.name, name, got, q.means)
					}
				}
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
			if own := q.of(held[:200], held[200:]); own < low-1e-6 || own > high+1e-6 {
				t.Errorf("%s: [%v, %v], the holdout's own pairs have %v", q.name, low, high, own)
			}
			if asked++; a.Cost.Questions != 1 || (a.Cost.Tokens == 0) != (a.Source == thresholdout.FromTraining) {
				t.Errorf("%s: %+v from %s", q.name, a.Cost, a.Source)
			}
			if a.Source != thresholdout.FromTraining {
				failed++
				continue
			}
			if want := q.of(trained, trained); math.Abs(*a.Value-want) > 1e-6 || math.Abs(*foreseen.Result.Value-want) > 1e-6 {
				t.Errorf("%s: the training part says %v, previewed %v; by its rows %v", q.name, *a.Value, *foreseen.Result.Value, want)
			}
			if *foreseen.Result.Low < low-1e-9 || *foreseen.Result.High > high+1e-9 || high-low > 0.9 || foreseen.Bound != a.Interval.Bound {
				t.Errorf("%s: previewed [%v, %v] by %s, answered [%v, %v] by %s", q.name, *foreseen.Result.Low, *foreseen.Result.High, foreseen.Bound, low, high, a.Interval.Bound)
			}
		}
	}
	if failed > 1 {
		t.Errorf("%d guesses of %d failed", failed, asked)
	}
}

// TestClusteredFailures: what a failure says holds the holdout's own area, when the guess is far off, and a test of an area has a p-value that agrees with its interval.
func TestClusteredFailures(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 17))
	held, trained := customersOf(r, 900), customersOf(r, 1500)
	schema, holdout := unitsTable(t, held)
	_, training := unitsTable(t, trained)
	l := &Local{Session: Session{Guarantee: guessing(t, 900, 1500, 50, 20, 0.95), Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training, Compile: []queries.Option{queries.Grouped(true)}}
	a, err := l.Ask(context.Background(), []byte(`{"type":"auc","label":"late","prediction":"s","edges":[0.2,0.5,0.7],"guess":0.2}`))
	if err != nil {
		t.Fatal(err)
	}
	own := clusteredQualities[0].of(held[:450], held[450:])
	if a.Cost.Tokens != 1 || *a.Interval.Low > own || *a.Interval.High < own || *a.Interval.High-*a.Interval.Low > 0.5 {
		t.Errorf("%+v, [%v, %v]; the holdout has %v", a.Cost, *a.Interval.Low, *a.Interval.High, own)
	}
	for _, equals := range []float64{0.1, 0.74} {
		body, err := json.Marshal(map[string]any{"type": "test", "test": "value", "equals": equals, "query": json.RawMessage(clusteredQualities[0].body)})
		if err != nil {
			t.Fatal(err)
		}
		a, err := l.Ask(context.Background(), body)
		if err != nil {
			t.Fatal(err)
		}
		rejects := *a.Interval.Low > equals || *a.Interval.High < equals
		if a.Cost.Questions != 1 || a.PValue == nil || (*a.PValue <= 0.05) != rejects {
			t.Errorf("%v: %+v, p=%v, [%v, %v]", equals, a.Cost, a.PValue, *a.Interval.Low, *a.Interval.High)
		}
	}
}
