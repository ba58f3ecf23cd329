package queries

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/rowfn"
)

// A table of units for tests: a number v, a condition w.
var small = dataset.Schema{Fields: []dataset.Field{{Name: "v", Kind: dataset.Number}, {Name: "w", Kind: dataset.Bool}}}

type unit []reference.Row

func drawUnits(t *rapid.T, grouped bool) []unit {
	units := make([]unit, rapid.IntRange(1, 8).Draw(t, "units"))
	for i := range units {
		rows := 1
		if grouped {
			rows = rapid.IntRange(1, 4).Draw(t, "rows")
		}
		for range rows {
			units[i] = append(units[i], reference.Row{
				"v": rapid.SampledFrom([]any{nil, -100.0, -60.0, -1.0, 0.0, 0.5, 7.0, 42.0, 180.0, 1e6}).Draw(t, "v"),
				"w": rapid.SampledFrom([]any{nil, true, true, false}).Draw(t, "w"),
			})
		}
	}
	return units
}

// unitValue is what the contract of RowFunction says of one unit, without the grid.
func unitValue(f RowFunction, u unit, largest int) float64 {
	sum, rows := 0.0, 0
	for _, row := range u {
		if f.Where != nil && !reference.Evaluate(f.Where, row).(bool) {
			continue
		}
		rows++
		sum += rowValue(f, row)
	}
	m := float64(len(u))
	switch {
	case f.PerUnit == UnitAny:
		return min(float64(rows), 1)
	case f.PerUnit == UnitShare:
		return sum / m * min(m, float64(largest)) / float64(largest)
	case rows == 0:
		return 0
	}
	return sum / float64(rows)
}

func rowValue(f RowFunction, row reference.Row) float64 {
	x := 1.0
	if f.Value != nil {
		switch v := reference.Evaluate(f.Value, row).(type) {
		case bool:
			x = 0
			if v {
				x = 1
			}
		case float64:
			if x = v; math.IsNaN(x) {
				x = f.Null
			}
		}
	} else {
		return 1
	}
	return (min(max(x, f.Lo), f.Hi) - f.Lo) / (f.Hi - f.Lo)
}

// exactParts are the row functions' means over the units, as parts with point intervals.
func exactParts(p *Plan, units []unit) []Part {
	largest := 0
	for _, u := range units {
		largest = max(largest, len(u))
	}
	parts := make([]Part, len(p.Functions))
	for i, f := range p.Functions {
		sum := 0.0
		for _, u := range units {
			sum += unitValue(f, u, largest)
		}
		m := sum / float64(len(units))
		parts[i] = Part{Value: m, Low: m, High: m, Bounded: true}
	}
	return parts
}

// TestPlansMeanWhatTheySay: from exact means of its row functions, a plan's answer is the answer by the definition in
// words, computed here from the rows directly.
func TestPlansMeanWhatTheySay(t *testing.T) {
	value := func(r reference.Row, null float64) float64 {
		if v, ok := r["v"].(float64); ok {
			return v
		}
		return null
	}
	clamp := func(x, lo, hi float64) float64 { return min(max(x, lo), hi) }
	holds := func(r reference.Row) bool { return r["w"] == true }
	all := func(reference.Row) bool { return true }
	known := func(r reference.Row) bool { _, ok := r["v"].(float64); return ok }
	cases := []struct {
		body  string
		row   func(reference.Row) float64
		where func(reference.Row) bool
		rows  bool // one vote a row
		total bool // the sum over all rows, whatever units they are of
	}{
		{`{"type":"mean","of":"v","range":[-60,180]}`, func(r reference.Row) float64 { return clamp(value(r, -60), -60, 180) }, all, false, false},
		{`{"type":"mean","of":"v","range":[-60,180],"null":5}`, func(r reference.Row) float64 { return clamp(value(r, 5), -60, 180) }, all, false, false},
		{`{"type":"mean","of":"v","range":[-60,180],"where":"w"}`, func(r reference.Row) float64 { return clamp(value(r, -60), -60, 180) }, holds, false, false},
		{`{"type":"mean","of":"v","range":[-60,180],"weight":"row"}`, func(r reference.Row) float64 { return clamp(value(r, -60), -60, 180) }, all, true, false},
		{`{"type":"mean","of":"v","range":[-60,180],"where":"w","weight":"row"}`, func(r reference.Row) float64 { return clamp(value(r, -60), -60, 180) }, holds, true, false},
		{`{"type":"fraction","of":"v > 0"}`, func(r reference.Row) float64 { return indicator(value(r, -1) > 0) }, all, false, false},
		{`{"type":"fraction","of":"v > 0","where":"w"}`, func(r reference.Row) float64 { return indicator(value(r, -1) > 0) }, holds, false, false},
		{`{"type":"fraction","of":"v > 0","where":"w","weight":"row"}`, func(r reference.Row) float64 { return indicator(value(r, -1) > 0) }, holds, true, false},
		{`{"type":"mean","of":"v","range":[-60,180],"null":"skip"}`, func(r reference.Row) float64 { return clamp(value(r, -60), -60, 180) }, known, false, false},
		{`{"type":"mean","of":"v * 2.0","range":[-60,180],"null":"skip","where":"w","weight":"row"}`, func(r reference.Row) float64 { return clamp(2*value(r, -60), -60, 180) },
			func(r reference.Row) bool { return known(r) && holds(r) }, true, false},
		{`{"type":"fraction","of":"v > 0","null":"skip"}`, func(r reference.Row) float64 { return indicator(value(r, -1) > 0) }, known, false, false},
		{`{"type":"count","of":"w"}`, func(r reference.Row) float64 { return indicator(holds(r)) }, all, false, true},
		{`{"type":"count","where":"w"}`, func(r reference.Row) float64 { return indicator(holds(r)) }, all, false, true},
		{`{"type":"count","of":"v > 0","where":"w"}`, func(r reference.Row) float64 { return indicator(holds(r) && value(r, -1) > 0) }, all, false, true},
		{`{"type":"sum","of":"v","range":[-60,180]}`, func(r reference.Row) float64 { return clamp(value(r, 0), -60, 180) }, all, false, true},
		{`{"type":"sum","of":"v","range":[5,180]}`, func(r reference.Row) float64 { return sumTerm(r, 5, 180) }, all, false, true},
		{`{"type":"sum","of":"v","range":[-60,-5],"where":"w"}`, func(r reference.Row) float64 { return sumTerm(r, -60, -5) * indicator(holds(r)) }, all, false, true},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.body, "/", "|"), func(t *testing.T) {
			q := mustParse(t, c.body)
			rapid.Check(t, func(t *rapid.T) {
				grouped := rapid.Bool().Draw(t, "grouped")
				units := drawUnits(t, grouped)
				rows, sum := int64(0), 0.0
				for _, u := range units {
					for _, r := range u {
						rows, sum = rows+1, sum+c.row(r)
					}
				}
				p, err := q.Compile(context.Background(), small, Grouped(grouped), HoldoutRows(rows))
				if err != nil {
					t.Fatal(err)
				}
				got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
				want, defined := direct(units, c.row, c.where, c.rows)
				if c.total { // what a reader adds up: a mean of units' means times the number of units is another number
					want, defined = sum, rows > 0
				}
				checkResult(t, got, want, defined)
			})
		})
	}
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func sumTerm(r reference.Row, lo, hi float64) float64 {
	v, ok := r["v"].(float64)
	if !ok {
		return 0
	}
	return min(max(v, lo), hi)
}

// direct is the mean over rows in which where holds, or over units of the unit's mean over those rows.
func direct(units []unit, row func(reference.Row) float64, where func(reference.Row) bool, byRow bool) (float64, bool) {
	total, votes := 0.0, 0.0
	for _, u := range units {
		sum, rows := 0.0, 0.0
		for _, r := range u {
			if where(r) {
				sum, rows = sum+row(r), rows+1
			}
		}
		switch {
		case byRow:
			total, votes = total+sum, votes+rows
		case rows > 0:
			total, votes = total+sum/rows, votes+1
		}
	}
	return total / votes, votes > 0
}

func checkResult(t *rapid.T, got Result, want float64, defined bool) {
	if !defined {
		if got.Value != nil {
			t.Fatalf("got %v, want null", *got.Value)
		}
		return
	}
	tolerance := 1e-12 * (1 + math.Abs(want)) * 1000
	if got.Value == nil || math.Abs(*got.Value-want) > tolerance {
		t.Fatalf("got %v, want %v", show(got.Value), want)
	}
	if *got.Low > want+tolerance || *got.High < want-tolerance || *got.High-*got.Low > 2*tolerance || *got.Low > *got.Value || *got.Value > *got.High {
		t.Fatalf("the interval of exact parts is [%v, %v] around %v", *got.Low, *got.High, want)
	}
}

func show(x *float64) string {
	if x == nil {
		return "null"
	}
	return fmt.Sprint(*x)
}

// TestIntervalsHoldTheTarget: if every part's interval holds the part's true mean, the answer's interval holds the true
// answer, whatever the noise did to the values and however wide the intervals are.
func TestIntervalsHoldTheTarget(t *testing.T) {
	for _, body := range []string{
		`{"type":"mean","of":"v","range":[-60,180],"where":"w"}`, `{"type":"fraction","of":"v > 0","where":"w"}`,
		`{"type":"mean","of":"v","range":[-60,180]}`, `{"type":"count","of":"w"}`, `{"type":"sum","of":"v","range":[-60,180]}`,
	} {
		p, err := mustParse(t, body).Compile(context.Background(), small)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			share := rapid.Float64Range(0, 1)
			asked, u := share.Draw(t, "rows that are asked about"), share.Draw(t, "ratio")
			truth := []float64{asked * u, asked * (1 - u)}[:len(p.Functions)]
			answer := truth[0]
			if len(truth) == 2 {
				answer = truth[0] / (truth[0] + truth[1])
			}
			n := rapid.Int64Range(1, 1<<31).Draw(t, "n")
			parts := make([]Part, len(truth))
			for i, m := range truth {
				wide := rapid.Float64Range(0, 0.6)
				noise := rapid.Float64Range(-0.6, 0.6).Draw(t, "noise")
				parts[i] = Part{Value: m + noise, Low: min(m, m+noise) - wide.Draw(t, "low"), High: max(m, m+noise) + wide.Draw(t, "high"), Bounded: true}
			}
			got := p.Combine(Outcome{N: n, Parts: parts})
			if got.Low == nil || got.High == nil {
				t.Fatal("no interval")
			}
			if got.Value != nil && (*got.Value < *got.Low || *got.Value > *got.High) {
				t.Fatalf("%v is outside of its interval [%v, %v]", *got.Value, *got.Low, *got.High)
			}
			if math.IsNaN(answer) {
				return
			}
			scale := 1.0
			if strings.Contains(p.Describe().Combine, "times the number") {
				scale = float64(n)
			}
			lo, hi := p.Range.Low*scale, p.Range.High*scale
			answer = lo + (hi-lo)*answer
			if slack := 1e-9 * (hi - lo); *got.Low > answer+slack || *got.High < answer-slack || *got.Low < lo || *got.High > hi {
				t.Fatalf("[%v, %v] of [%v, %v] does not hold %v", *got.Low, *got.High, lo, hi, answer)
			}
		})
	}
}

func TestUndefinedAndUnbounded(t *testing.T) {
	p, err := mustParse(t, `{"type":"mean","of":"v","range":[-60,180],"where":"w"}`).Compile(context.Background(), small)
	if err != nil {
		t.Fatal(err)
	}
	for _, nothing := range []float64{0, -0.01, math.NaN()} {
		part := Part{Value: nothing, Low: -0.1, High: 0.1, Bounded: true}
		got := p.Combine(Outcome{N: 10, Parts: []Part{part, part}})
		if got.Value != nil || *got.Low != -60 || *got.High != 180 {
			t.Errorf("with both means at %v: %v in [%v, %v]", nothing, show(got.Value), *got.Low, *got.High)
		}
	}
	got := p.Combine(Outcome{N: 10, Parts: []Part{{Value: 0.1, Low: 0, High: 0.2, Bounded: true}, {Value: 0.1}}})
	if got.Value == nil || *got.Value != 60 || got.Low != nil || got.High != nil {
		t.Errorf("%v, %v, %v", show(got.Value), show(got.Low), show(got.High))
	}
}

// TestPlaceAndComplement holds what a conditional mean relies on: at every unit its two row functions add up to the unit's part in it.
func TestPlaceAndComplement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grouped := rapid.Bool().Draw(t, "grouped")
		weight := rapid.SampledFrom([]string{"unit", "row"}).Draw(t, "weight")
		q, err := Parse([]byte(`{"type":"mean","of":"v","range":[-60,180],"where":"w","weight":"` + weight + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		p, err := q.Compile(context.Background(), small, Grouped(grouped))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range drawUnits(t, grouped) {
			first, second := unitValue(p.Functions[0], u, 4), unitValue(p.Functions[1], u, 4)
			part := unitValue(RowFunction{Lo: 0, Hi: 1, Where: p.Functions[0].Where, PerUnit: p.Functions[0].PerUnit}, u, 4)
			if first < 0 || second < 0 || math.Abs(first+second-part) > 1e-12 {
				t.Fatalf("%v: %v and %v, want %v in all", u, first, second, part)
			}
		}
	})
}

// TestQuestions pins what a question costs: a change is a change of price.
func TestQuestions(t *testing.T) {
	for _, c := range []struct {
		body             string
		rows, inUnits    int
		target           string
		firstOf, perUnit PerUnit
	}{
		{`{"type":"mean","of":"delay","range":[-60,180]}`, 1, 1, "the mean of delay clamped to [-60, 180], in the population", UnitMean, UnitMean},
		{`{"type":"mean","of":"delay","range":[-60,180],"weight":"row"}`, 1, 2, "the mean of delay", UnitMean, UnitShare},
		{`{"type":"mean","of":"delay","range":[-60,180],"where":"late"}`, 2, 2, "over the rows in which late", UnitMean, UnitMean},
		{`{"type":"fraction","of":"late"}`, 1, 1, "the fraction of late", UnitMean, UnitMean},
		{`{"type":"count","of":"late","where":"delay > 1"}`, 1, 2, "the number of rows in the holdout times the fraction of (late) && (delay > 1)", UnitMean, UnitShare},
		{`{"type":"sum","of":"delay","range":[10,180],"where":"late"}`, 1, 2, "the number of rows in the holdout times", UnitMean, UnitShare},
	} {
		q := mustParse(t, c.body)
		for _, grouped := range []bool{false, true} {
			p, err := q.Compile(context.Background(), flights, Grouped(grouped), HoldoutRows(1000))
			if err != nil {
				t.Fatal(err)
			}
			want, per := c.rows, c.firstOf
			if grouped {
				want, per = c.inUnits, c.perUnit
			}
			d := p.Describe()
			if len(p.Functions) != want || p.Numbers() != want || len(d.Functions) != want || p.Functions[0].PerUnit != per {
				t.Errorf("%s grouped %v: %+v", c.body, grouped, d)
			}
			if !grouped && !strings.Contains(d.Target, c.target) {
				t.Errorf("%s: target %s", c.body, d.Target)
			}
			for _, text := range append(d.Functions, d.Combine, d.Null, d.Target) {
				if text == "" {
					t.Errorf("%s grouped %v: %+v", c.body, grouped, d)
				}
			}
			for _, f := range p.Functions {
				if !(f.Lo < f.Hi) || f.Null < f.Lo || f.Null > f.Hi || f.Value != nil && f.Value.Type == rowfn.Condition && (f.Lo != 0 || f.Hi != 1 || f.Null != 0) {
					t.Errorf("%s: %+v breaks the contract of RowFunction", c.body, f)
				}
			}
		}
	}
}

// TestMisspeltColumns: every example of every type, with each of its columns in turn misspelt, or of another kind, is refused, of rows and of units. It would notice a type that makes its plan of an
// expression that is wrong.
func TestMisspeltColumns(t *testing.T) {
	for _, kind := range kinds {
		for _, example := range kind.examples {
			for _, column := range []string{"delay", "distance", "origin", "date"} {
				for _, instead := range []string{"no_such_column", "unknown_text", "1 == 1"} {
					body := strings.ReplaceAll(example, column, instead)
					q, err := Parse([]byte(body))
					if body == example || err != nil {
						continue
					}
					for _, grouped := range []bool{false, true} {
						plan, err := q.Compile(context.Background(), flights, Grouped(grouped))
						if instead == "no_such_column" && err == nil {
							t.Errorf("%s: %v", body, plan)
						}
					}
				}
			}
		}
	}
}
