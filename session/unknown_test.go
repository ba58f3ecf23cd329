package session

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// few are 3,000 rows of a number x in [0,1], a number y near it, a text g, and a bool is that is true in so many of the first rows; with units of three rows, or of one.
func few(t *testing.T, seed uint64, units bool, is int) (dataset.Schema, *engine.Table) {
	t.Helper()
	const rows = 3000
	x, y := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}}, dataset.Column{Field: dataset.Field{Name: "y", Kind: dataset.Number}}
	late, rare := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool}}, dataset.Column{Field: dataset.Field{Name: "rare", Kind: dataset.Bool}}
	var names []string
	for i := range rows {
		v := math.Mod(float64(i)*0.6180339887+float64(seed)/7, 1)
		x.Numbers, y.Numbers = append(x.Numbers, v), append(y.Numbers, v*v)
		late.Bools, rare.Bools = append(late.Bools, uint8(i%2)), append(rare.Bools, 0)
		if i < is {
			rare.Bools[i] = 1
		}
		names = append(names, []string{"a", "b"}[i%2])
	}
	all, err := dataset.FromColumns(x, y, late, rare, dataset.NewText("g", names, func(int) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	var offsets []uint32
	if units {
		for at := range uint32(rows/3 + 1) {
			offsets = append(offsets, 3*at)
		}
	}
	source, err := engine.NewTable(all, offsets, map[bool]int64{true: 3, false: 1}[units])
	if err != nil {
		t.Fatal(err)
	}
	return all.Schema(), source
}

// TestNothingToCompareWith: a number of which the training part has no unit, or so few that whatever is found says nothing, is not compared with the holdout: it has no value, its interval is the
// range, and it costs its question and no token, whether the holdout has such rows or not. The answer is byte for byte the same for every holdout; explanations name its outcome, its
// price and a width that it does not exceed. It would notice a token, an interval or a value that depends on whether the holdout has a row there, an empty item that makes an answer "mixed", and a
// price or a width that is explained of the others alone.
func TestNothingToCompareWith(t *testing.T) {
	for _, mechanism := range []thresholdout.Name{thresholdout.GuessAndCheck, thresholdout.Thresholdout} {
		for _, units := range []bool{false, true} {
			for _, training := range []int{0, 3} {
				t.Run(fmt.Sprintf("%s units=%v training=%d", mechanism, units, training), func(t *testing.T) {
					nothingToCompareWith(t, mechanism, units, training)
				})
			}
		}
	}
}

func nothingToCompareWith(t *testing.T, mechanism thresholdout.Name, units bool, training int) {
	_, reference := few(t, 1, units, training)
	for _, c := range []struct {
		body    string
		unknown int // numbers that say nothing; -1: all
		width   float64
		rows    bool // asked of rows alone: units have other forms of it
	}{
		{body: `{"type":"mean","of":"x","range":[0,2],"where":"rare"}`, unknown: -1, width: 2},
		{body: `{"type":"fraction","of":"late","where":"rare"}`, unknown: -1, width: 1},
		{body: `{"type":"fraction","of":"late","where":"rare","guess":0.4}`, unknown: -1, width: 1},
		{body: `{"type":"groups","of":"x","range":[0,2],"by":"g","values":["a","b","d"]}`, unknown: 3, width: 2}, // d, other and null
		{body: `{"type":"groups","of":"x","range":[0,2],"by":"rare"}`, unknown: 2, width: 2},                     // true and null
		{body: `{"type":"groups","of":"x","range":[0,2],"by":"g","values":["a","b"],"where":"rare"}`, unknown: -1, width: 2},
		{body: `{"type":"difference","of":"late","between":["rare","!rare"]}`, unknown: -1, width: 2, rows: true},
		{body: `{"type":"balanced_accuracy","label":"rare","prediction":"late"}`, unknown: -1, width: 1, rows: true},
		{body: `{"type":"quantile","of":"x","p":0.5,"range":[0,1],"resolution":0.01,"where":"rare"}`, unknown: -1, width: 1},
		{body: `{"type":"auc","label":"rare","prediction":"x","edges":[0.25,0.5,0.75]}`, unknown: -1, width: 1, rows: true},
		{body: `{"type":"variance","of":"x","range":[0,1],"where":"rare"}`, unknown: -1, width: 0.25, rows: true},
		{body: `{"type":"correlation","x":"x","y":"y","range_x":[0,1],"range_y":[0,1],"form":"exact","where":"rare"}`, unknown: -1, rows: true},
	} {
		if c.rows && units || mechanism == thresholdout.Thresholdout && bytes.Contains([]byte(c.body), []byte("guess")) {
			continue
		}
		var first []byte
		for _, holdout := range []int{0, 1, 40, 2900} {
			l := &Local{Compile: []queries.Option{queries.Grouped(units)}, Training: reference}
			var table *engine.Table
			l.Schema, table = few(t, 2, units, holdout)
			p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: mechanism, N: table.Units(), Training: reference.Units(), Questions: 100, Tokens: 20, Confidence: 0.95})
			if err != nil {
				t.Fatal(err)
			}
			l.Session, l.Holdout = Session{Guarantee: p, Noise: Seeded(3)}, table
			query, err := queries.Parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := query.Compile(t.Context(), l.Schema, l.Compile...)
			if err != nil {
				t.Fatalf("%s: %v", c.body, err)
			}
			q, err := l.Question(query, plan)
			if err != nil {
				t.Fatalf("%s: %v", c.body, err)
			}
			sums, err := TrainingSums(t.Context(), q.Plan, l.reference())
			if err != nil {
				t.Fatal(err)
			}
			ways, unknown, err := l.Prospects(l.State, q, sums)
			if err != nil {
				t.Fatal(err)
			}
			a, err := l.Ask(context.Background(), []byte(c.body))
			if err != nil {
				t.Fatalf("%s: %v", c.body, err)
			}
			all := c.unknown < 0
			if want := l.Price(q.Plan).Questions; a.Cost.Questions != want || all && (unknown != want || l.State.Memory != nil) || !all && unknown != int64(c.unknown) {
				t.Errorf("%s: costs %+v of a price of %d, %d numbers say nothing, the account is %+v", c.body, a.Cost, want, unknown, l.State)
			}
			var came *Prospect
			for i := range ways {
				if ways[i].Outcome == a.Outcome {
					came = &ways[i]
				}
				if c.width > 0 && ways[i].Widest != nil && *ways[i].Widest > c.width {
					t.Errorf("%s: %s is ±%v at most, in a range of width %v", c.body, ways[i].Outcome, *ways[i].Widest, c.width)
				}
				if most := l.MostTokens(q.Plan) - unknown; ways[i].Cost.Tokens > most {
					t.Errorf("%s: %s would cost %d tokens, and %d numbers can need one", c.body, ways[i].Outcome, ways[i].Cost.Tokens, most)
				}
			}
			if came == nil || came.Widest == nil || all && len(ways) != 1 {
				t.Fatalf("%s: %s, of %+v", c.body, a.Outcome, ways)
			}
			if a.Cost != came.Cost {
				t.Errorf("%s: %s costs %+v, and %+v was said", c.body, a.Outcome, a.Cost, came.Cost)
			}
			if half := widestEnds(a) / 2; half > *came.Widest {
				t.Errorf("%s: an interval is ±%v, and at most ±%v was said", c.body, half, *came.Widest)
			}
			if !all {
				nothing := 0
				for _, i := range a.Items {
					if i.Value == nil && i.Low != nil && *i.High-*i.Low == c.width {
						nothing++
					}
				}
				if nothing < c.unknown || a.Cost.Tokens == 0 && nothing != c.unknown || a.Outcome == thresholdout.Unknown || a.Outcome == Mixed || a.Source == fromBoth || a.Cost.Tokens > int64(len(a.Items)-c.unknown) {
					t.Errorf("%s: %d items say nothing, of %d: %s from %s for %+v", c.body, nothing, c.unknown, a.Outcome, a.Source, a.Cost)
				}
				continue
			}
			if a.Value != nil || a.Cost.Tokens != 0 || a.Outcome != thresholdout.Unknown || a.Source != thresholdout.FromNothing || a.ValueFrom != "" || c.width > 0 && widestEnds(a) != c.width {
				t.Errorf("%s: %v %+v, %s from %s for %+v", c.body, a.Value, a.Interval, a.Outcome, a.Source, a.Cost)
			}
			body, err := a.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = body
			}
			if !bytes.Equal(body, first) {
				t.Errorf("%s: with %d such rows in the holdout\n%s\nwith none\n%s", c.body, holdout, body, first)
			}
		}
	}
}

// widestEnds is how far apart the ends of an answer's intervals are, of items the farthest.
func widestEnds(a Answer) float64 {
	widest := 0.0
	if a.Interval != nil && a.Interval.Low != nil {
		widest = *a.Interval.High - *a.Interval.Low
	}
	for _, i := range a.Items {
		if i.Low != nil {
			widest = max(widest, *i.High-*i.Low)
		}
	}
	return widest
}
