package queries

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/shape"
)

// hoeffding are parts around values of n units whose intervals are those of Hoeffding's inequality for k questions, at any level.
func hoeffding(n, k, level float64, values ...float64) Outcome {
	o := Outcome{N: int64(n), Level: level}
	for _, m := range values {
		at := func(level float64) (low, high float64, ok bool) {
			w := math.Sqrt(math.Log(2*k/level) / (2 * n))
			return max(0, m-w), min(1, m+w), level >= shape.LeastLevel && level < 1
		}
		low, high, _ := at(level)
		o.Parts = append(o.Parts, Part{Value: m, Low: low, High: high, Bounded: true, At: at})
	}
	return o
}

// TestPValue: of one mean it is the level at which its interval ends at the null, rounded up by less than 1 in 1000.
func TestPValue(t *testing.T) {
	p, err := mustParse(t, `{"type":"test","test":"mean","of":"delay","range":[-100,100],"equals":20}`).Compile(context.Background(), flights)
	if err != nil {
		t.Fatal(err)
	}
	const n, k = 1000.0, 10.0
	for _, value := range []float64{0.1, 0.5, 0.52, 0.55, 0.6, 0.605, 0.65, 0.7, 0.99} {
		want := min(1, 2*k*math.Exp(-2*n*(value-0.6)*(value-0.6)))
		want = max(want, shape.LeastLevel)
		got := p.Combine(hoeffding(n, k, 0.05, value))
		if *got.PValue < want*(1-1e-9) || *got.PValue > want*1.001 {
			t.Errorf("a mean of %v: p = %v, want %v", value, *got.PValue, want)
		}
		if (got.Verdict == Yes) != (want <= 0.05) || got.Verdict == No {
			t.Errorf("a mean of %v with p = %v: %s", value, want, got.Verdict)
		}
	}
	for alternative, want := range map[string]bool{"two-sided": true, "greater": true, "less": false} {
		p, err := mustParse(t, `{"type":"test","test":"proportion","of":"late","equals":0.3,"alternative":"`+alternative+`"}`).Compile(context.Background(), flights)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Combine(hoeffding(n, k, 0.05, 0.5))
		if rejected := got.Verdict == Yes; rejected != want || (*got.PValue <= 0.05) != want || !want && *got.PValue != 1 {
			t.Errorf("%s: %s, p = %v", alternative, got.Verdict, *got.PValue)
		}
	}
	const confidence = 0.95 // a level that floating-point numbers put above 0.05
	ends := 0.6 + math.Sqrt(math.Log(2*k/(1-confidence))/(2*n))
	if got := p.Combine(hoeffding(n, k, 1-confidence, ends*(1+1e-9))); got.Verdict != Yes || *got.PValue != 0.05 {
		t.Errorf("of an interval that ends at the null: %s, p = %v, want 0.05", got.Verdict, *got.PValue)
	}
	bare := p.Combine(Outcome{N: 10, Parts: []Part{{Value: 0.9}}})
	if bare.PValue != nil || bare.Verdict != Undecided || bare.Value == nil {
		t.Errorf("without an interval: %+v", bare)
	}
	unread := hoeffding(n, k, 0.05, 0.9)
	unread.Parts[0].At = nil
	if got := p.Combine(unread); got.PValue != nil || got.Verdict != Yes {
		t.Errorf("with an interval at one level: %+v", got)
	}
}

// TestPValuesAgree: for every test, the p-value is at most the guarantee's level exactly where the verdict is yes, and it is a level that
// rejects: at the p-value itself some interval excludes the null.
func TestPValuesAgree(t *testing.T) {
	for _, body := range decisionBodies {
		q := mustParse(t, body)
		if q.Type() != "test" {
			continue
		}
		rapid.Check(t, func(t *rapid.T) {
			units := drawUnits(t, false)
			p, err := q.Compile(context.Background(), small)
			if err != nil {
				t.Fatal(err)
			}
			var values []float64
			for _, part := range exactParts(p, units) {
				values = append(values, part.Value)
			}
			n := rapid.SampledFrom([]float64{10, 100, 1000, 1e5, 1e8}).Draw(t, "n")
			level := rapid.SampledFrom([]float64{0.01, 0.05, 0.5}).Draw(t, "level")
			o := hoeffding(n, 7, level, values...)
			got := p.Combine(o)
			if got.PValue == nil || *got.PValue > 1 || *got.PValue < shape.LeastLevel {
				t.Fatalf("p = %v", show(got.PValue))
			}
			if rejected := got.Verdict == Yes; rejected != (*got.PValue <= level) {
				t.Fatalf("%s with p = %v at %v", got.Verdict, *got.PValue, level)
			}
			if *got.PValue < 1 {
				o.Level = *got.PValue
				if read, ok := o.At(o.Level); !ok || p.Combine(read).Verdict != Yes {
					t.Fatalf("p = %v does not reject", *got.PValue)
				}
			}
		})
	}
}

// TestTestValues: from exact parts the effects are what their definitions say, computed from the rows directly.
func TestTestValues(t *testing.T) {
	x := func(r reference.Row) float64 { return clampTo(number0(r, -60), -60, 180) }
	y := func(r reference.Row) float64 { // of w ? v : 0 - v, null as the low end
		v, ok := r["v"].(float64)
		switch {
		case !ok:
			return -100
		case isW(r):
			return clampTo(v, -100, 100)
		}
		return clampTo(-v, -100, 100)
	}
	q := func(body string) *Query { return mustParse(t, body) }
	correlation, slope := q(decisionBodies[10]), q(decisionBodies[11])
	cells, table := q(decisionBodies[12]), q(decisionBodies[13])
	rapid.Check(t, func(t *rapid.T) {
		grouped := rapid.Bool().Draw(t, "grouped")
		units := drawUnits(t, grouped)
		answer := func(q *Query) Result {
			p, err := q.Compile(context.Background(), small, Grouped(grouped))
			if err != nil {
				t.Fatal(err)
			}
			return p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
		}
		mean := func(f func(reference.Row) float64) float64 { m, _ := direct(units, f, anyRow, false); return m }
		mx, my := mean(x), mean(y)
		covariance := mean(func(r reference.Row) float64 { return (x(r) - mx) * (y(r) - my) })
		variance := mean(func(r reference.Row) float64 { return (x(r) - mx) * (x(r) - mx) })
		near := func(what string, got *float64, want float64, tolerance float64) {
			if got == nil || math.Abs(*got-want) > tolerance {
				t.Fatalf("%s: %v, want %v", what, show(got), want)
			}
		}
		near("covariance", answer(correlation).Value, covariance, 1e-8)
		if variance > 1 {
			near("slope", answer(slope).Value, covariance/variance, 1e-8)
		}
		columns := []func(reference.Row) bool{
			func(r reference.Row) bool { return number0(r, -1) > 5 },
			func(r reference.Row) bool { return number0(r, -1) > 0 && number0(r, -1) <= 5 },
			func(r reference.Row) bool { return number0(r, -1) <= 0 },
		}
		largest := 0.0
		for i, item := range answer(cells).Items {
			want := mean(func(r reference.Row) float64 { return indicator(columns[i](r)) }) - []float64{0.5, 0.25, 0.25}[i]
			near(item.Of, item.Value, want, 1e-9)
			largest = max(largest, math.Abs(want))
		}
		near("largest deviation", answer(cells).Value, largest, 1e-9)
		items := answer(table).Items
		if len(items) != 6 || items[0].Of != "w and v > 5" || items[5].Of != "other and other" {
			t.Fatalf("%+v", items)
		}
		for i, item := range items {
			row := func(r reference.Row) bool { return isW(r) == (i < 3) }
			joint := mean(func(r reference.Row) float64 { return indicator(row(r) && columns[i%3](r)) })
			margins := mean(func(r reference.Row) float64 { return indicator(row(r)) }) * mean(func(r reference.Row) float64 { return indicator(columns[i%3](r)) })
			near(item.Of, item.Value, joint-margins, 1e-9)
		}
	})
}

// TestEqualsHasOneSpelling: saying the default is saying nothing, but where there is none.
func TestEqualsHasOneSpelling(t *testing.T) {
	for _, pair := range [][2]string{
		{`{"type":"test","test":"proportion","of":"late","equals":0.5}`, `{"type":"test","test":"proportion","of":"late","alternative":"two-sided"}`},
		{`{"type":"test","test":"mean","of":"delay","range":[-60,180],"equals":0,"null":-60}`, `{"type":"test","test":"mean","of":"delay","range":[-60,180.0]}`},
		{`{"type":"difference","of":"delay","range":[-60,180],"between":["late"],"null":-60}`, `{"type":"difference","of":"delay","range":[-60,180],"between":["(late)"]}`},
	} {
		if a, b := mustParse(t, pair[0]), mustParse(t, pair[1]); a.ID() != b.ID() {
			t.Errorf("%s\n%s", a.Canonical(), b.Canonical())
		}
	}
	if a := mustParse(t, `{"type":"test","test":"value","query":{"type":"fraction","of":"late"},"equals":0}`); mustParse(t, string(a.Canonical())).ID() != a.ID() {
		t.Errorf("%s", a.Canonical())
	}
}
