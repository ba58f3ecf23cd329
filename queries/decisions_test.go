package queries

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties

	"github.com/holdoutd/holdoutd/queries/internal/reference"
)

func number0(r reference.Row, null float64) float64 {
	if x, ok := r["v"].(float64); ok {
		return x
	}
	return null
}

func clampTo(x, low, high float64) float64 { return min(max(x, low), high) }

func isW(r reference.Row) bool { return r["w"] == true }

func anyRow(reference.Row) bool { return true }

// TestCompareIsTheMeanDifference: from exact parts, the value is the mean of the rows' differences by the definition.
func TestCompareIsTheMeanDifference(t *testing.T) {
	for _, c := range []struct {
		body  string
		row   func(reference.Row) float64
		where func(reference.Row) bool
		rows  bool
	}{
		{`{"type":"compare","a":{"type":"mean","of":"v","range":[-60,180]},"b":{"type":"mean","of":"v * 2","range":[0,10],"null":7}}`,
			func(r reference.Row) float64 {
				b := 7.0
				if x, ok := r["v"].(float64); ok {
					b = 2 * x
				}
				return clampTo(b, 0, 10) - clampTo(number0(r, -60), -60, 180)
			}, anyRow, false},
		{`{"type":"compare","a":{"type":"fraction","of":"v > 0"},"b":{"type":"fraction","of":"w"}}`,
			func(r reference.Row) float64 { return indicator(isW(r)) - indicator(number0(r, -1) > 0) }, anyRow, false},
		{`{"type":"compare","a":{"type":"fraction","of":"v > 0"},"b":{"type":"mean","of":"v","range":[-60,180]},"where":"w"}`,
			func(r reference.Row) float64 {
				return clampTo(number0(r, -60), -60, 180) - indicator(number0(r, -1) > 0)
			}, isW, false},
		{`{"type":"compare","a":{"type":"fraction","of":"w"},"b":{"type":"fraction","of":"v > 0"},"weight":"row"}`,
			func(r reference.Row) float64 { return indicator(number0(r, -1) > 0) - indicator(isW(r)) }, anyRow, true},
	} {
		q := mustParse(t, c.body)
		rapid.Check(t, func(t *rapid.T) {
			grouped := rapid.Bool().Draw(t, "grouped")
			units := drawUnits(t, grouped)
			p, err := q.Compile(context.Background(), small, Grouped(grouped))
			if err != nil {
				t.Fatal(err)
			}
			want, defined := direct(units, c.row, c.where, c.rows)
			checkResult(t, p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)}), want, defined)
		})
	}
}

// TestVerdicts: yes and no need the whole interval; what is on the bar is not beyond it; without an interval nothing is decided.
func TestVerdicts(t *testing.T) {
	fraction := `{"type":"fraction","of":"late"}`
	for _, c := range []struct {
		body      string
		low, high float64
		want      Verdict
	}{
		{`{"type":"passes","of":` + fraction + `,"above":0.3}`, 0.31, 0.4, Yes},
		{`{"type":"passes","of":` + fraction + `,"above":0.3}`, 0.3, 0.4, Undecided},
		{`{"type":"passes","of":` + fraction + `,"above":0.3}`, 0.2, 0.29, No},
		{`{"type":"passes","of":` + fraction + `,"below":0.3}`, 0.2, 0.29, Yes},
		{`{"type":"passes","of":` + fraction + `,"below":0.3}`, 0.2, 0.3, Undecided},
		{`{"type":"passes","of":` + fraction + `,"below":0.3}`, 0.31, 0.4, No},
		{`{"type":"compare","a":` + fraction + `,"b":` + fraction + `}`, 0.51, 0.6, Yes}, // a part of 1/2 is a difference of 0
		{`{"type":"compare","a":` + fraction + `,"b":` + fraction + `,"by":0.1}`, 0.51, 0.6, Undecided},
		{`{"type":"compare","a":` + fraction + `,"b":` + fraction + `,"by":0.1}`, 0.5, 0.54, No},
		{`{"type":"compare","a":` + fraction + `,"b":` + fraction + `,"by":0.1,"least":true}`, 0.3, 0.44, Yes},
		{`{"type":"compare","a":` + fraction + `,"b":` + fraction + `,"by":0.1,"least":true}`, 0.46, 0.6, No},
		{`{"type":"compare","a":` + fraction + `,"b":` + fraction + `,"by":0.1,"least":true}`, 0.4, 0.6, Undecided},
	} {
		p, err := mustParse(t, c.body).Compile(context.Background(), flights)
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		part := Part{Value: (c.low + c.high) / 2, Low: c.low, High: c.high, Bounded: true}
		if got := p.Combine(Outcome{N: 10, Parts: []Part{part}}); got.Verdict != c.want {
			t.Errorf("%s with [%v, %v]: %s, want %s", c.body, c.low, c.high, got.Verdict, c.want)
		}
		if got := p.Combine(Outcome{N: 10, Parts: []Part{{Value: 0.99}}}); got.Verdict != Undecided || got.Low != nil {
			t.Errorf("%s without an interval: %+v", c.body, got)
		}
	}
}

// TestArgmax: the candidate with the largest mean, or the least, by numbers and by a choice, with the regret in the query's units.
func TestArgmax(t *testing.T) {
	body := func(more string) string {
		return `{"type":"argmax","of":[{"type":"mean","of":"v","range":[-60,180]},{"type":"mean","of":"0 - v","range":[-60,180]},{"type":"mean","of":"w ? 100 : 0","range":[-60,180]}]` + more + `}`
	}
	rows := []func(reference.Row) float64{
		func(r reference.Row) float64 { return clampTo(number0(r, -60), -60, 180) },
		func(r reference.Row) float64 {
			if x, ok := r["v"].(float64); ok {
				return clampTo(-x, -60, 180)
			}
			return -60
		},
		func(r reference.Row) float64 { return 100 * indicator(isW(r)) },
	}
	names := []string{"0", "1", "2"}
	for _, sign := range []float64{1, -1} {
		more := ""
		if sign < 0 {
			more = `,"least":true`
		}
		q := mustParse(t, body(more))
		rapid.Check(t, func(t *rapid.T) {
			units := drawUnits(t, false)
			p, err := q.Compile(context.Background(), small)
			if err != nil {
				t.Fatal(err)
			}
			best, means := 0, make([]float64, 3)
			for i, row := range rows {
				means[i], _ = direct(units, row, anyRow, false)
				if sign*means[i] > sign*means[best] {
					best = i
				}
			}
			parts := exactParts(p, units)
			got := p.Combine(Outcome{N: int64(len(units)), Parts: parts})
			chosen := int(got.Selected[0] - '0')
			if math.Abs(means[chosen]-means[best]) > 1e-9 || *got.Regret > 1e-9 || len(got.Items) != 3 {
				t.Fatalf("%v: selected %s with regret %v, best is %s", means, got.Selected, *got.Regret, names[best])
			}
			for i, item := range got.Items {
				if item.Of != names[i] || math.Abs(*item.Value-means[i]) > 1e-9 || *item.Low > means[i]+1e-9 || *item.High < means[i]-1e-9 {
					t.Fatalf("%+v, want %v", item, means[i])
				}
			}
			// The regret holds for means anywhere in their intervals.
			for i := range parts {
				parts[i].Value += rapid.Float64Range(-0.2, 0.2).Draw(t, "noise")
				parts[i].Low = min(parts[i].Value, parts[i].Low) - 1e-12
				parts[i].High = max(parts[i].Value, parts[i].High) + 1e-12
			}
			got = p.Combine(Outcome{N: int64(len(units)), Parts: parts})
			moved := sign * (means[best] - means[int(got.Selected[0]-'0')])
			if moved > *got.Regret+1e-9 {
				t.Fatalf("%v: selected %s, %v worse than the best, with regret %v", means, got.Selected, moved, *got.Regret)
			}
			choice := p.Combine(Outcome{N: 5, Choices: []Choice{{Index: 2, Regret: 0.1, Bounded: true}}})
			if choice.Selected != "2" || math.Abs(*choice.Regret-24) > 1e-9 || choice.Items != nil {
				t.Fatalf("%+v", choice)
			}
		})
	}
	p, err := mustParse(t, body(`,"names":["a","b","c"]`)).Compile(context.Background(), small)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Combine(Outcome{Choices: []Choice{{Index: 1}}}); got.Selected != "b" || got.Regret != nil {
		t.Errorf("%+v", got)
	}
	if got := p.Combine(Outcome{Parts: []Part{{Value: 0.1}, {Value: 0.2}, {Value: 0.3}}}); got.Selected != "c" || got.Regret != nil {
		t.Errorf("%+v", got)
	}
}

// TestDifference: the difference of two groups' means by the definition, with one group, with two that overlap, and with where.
func TestDifference(t *testing.T) {
	late := func(r reference.Row) bool { return number0(r, -1) > 0 }
	for _, c := range []struct {
		body          string
		row           func(reference.Row) float64
		first, second func(reference.Row) bool
	}{
		{`{"type":"difference","of":"v","range":[-60,180],"between":["w"]}`, func(r reference.Row) float64 { return clampTo(number0(r, -60), -60, 180) },
			isW, func(r reference.Row) bool { return !isW(r) }},
		{`{"type":"difference","of":"v","range":[-60,180],"between":["w","v > 0"],"null":5}`, func(r reference.Row) float64 { return clampTo(number0(r, 5), -60, 180) },
			isW, func(r reference.Row) bool { return late(r) && !isW(r) }},
		{`{"type":"difference","of":"w","between":["v > 5","v > 0"],"where":"v < 100"}`, func(r reference.Row) float64 { return indicator(isW(r)) },
			func(r reference.Row) bool { return number0(r, -1) > 5 && number0(r, 200) < 100 },
			func(r reference.Row) bool { return late(r) && number0(r, -1) <= 5 }},
	} {
		q := mustParse(t, c.body)
		rapid.Check(t, func(t *rapid.T) {
			grouped := rapid.Bool().Draw(t, "grouped")
			units := drawUnits(t, grouped)
			p, err := q.Compile(context.Background(), small, Grouped(grouped))
			if err != nil {
				t.Fatal(err)
			}
			a, someA := byShare(units, c.row, c.first)
			b, someB := byShare(units, c.row, c.second)
			got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
			checkResult(t, got, a-b, someA && someB)
		})
	}
}

// byShare is the mean of a row's value over the rows of a group, each row having its part of its unit's vote.
func byShare(units []unit, row func(reference.Row) float64, in func(reference.Row) bool) (float64, bool) {
	total, votes := 0.0, 0.0
	for _, u := range units {
		for _, r := range u {
			if in(r) {
				total, votes = total+row(r)/float64(len(u)), votes+1/float64(len(u))
			}
		}
	}
	return total / votes, votes > 0
}

// decisionBodies are bodies of all types of this file and of tests, over the table small.
var decisionBodies = []string{
	`{"type":"compare","a":{"type":"mean","of":"v","range":[-60,180]},"b":{"type":"fraction","of":"w"}}`,
	`{"type":"compare","a":{"type":"mean","of":"v","range":[-60,180]},"b":{"type":"fraction","of":"w"},"where":"w"}`,
	`{"type":"passes","of":{"type":"mean","of":"v","range":[-60,180],"where":"w"},"above":3}`,
	`{"type":"passes","of":{"type":"variance","of":"v","range":[-60,180]},"above":3}`,
	`{"type":"difference","of":"v","range":[-60,180],"between":["w"]}`,
	`{"type":"difference","of":"w","between":["v > 5","v > 0"],"where":"v < 100"}`,
	`{"type":"test","test":"mean","of":"v","range":[-60,180],"equals":5}`,
	`{"type":"test","test":"proportion","of":"w","where":"v > 0","alternative":"less"}`,
	`{"type":"test","test":"two-sample","of":"v","range":[-60,180],"between":["w"]}`,
	`{"type":"test","test":"two-proportions","of":"w","between":["v > 5","v < 0"],"alternative":"greater"}`,
	`{"type":"test","test":"correlation","x":"v","y":"w ? v : 0 - v","range_x":[-60,180],"range_y":[-100,100]}`,
	`{"type":"test","test":"slope","x":"v","y":"w ? v : 0 - v","range_x":[-60,180],"range_y":[-100,100]}`,
	`{"type":"test","test":"goodness-of-fit","cells":["v > 5","v > 0"],"expected":[0.5,0.25]}`,
	`{"type":"test","test":"independence","rows":["w"],"columns":["v > 5","v > 0"]}`,
	`{"type":"test","test":"value","query":{"type":"variance","of":"v","range":[-60,180]},"equals":100}`,
}

// TestDecisionIntervals: wherever the noise puts the parts and however wide their intervals are, the answer's interval and those of its
// items hold what exact parts give, as long as the parts' intervals hold these; and a verdict is never against the truth.
func TestDecisionIntervals(t *testing.T) {
	for _, body := range decisionBodies {
		q := mustParse(t, body)
		rapid.Check(t, func(t *rapid.T) {
			grouped := rapid.Bool().Draw(t, "grouped")
			units := drawUnits(t, grouped)
			p, err := q.Compile(context.Background(), small, Grouped(grouped))
			if err != nil {
				t.Fatal(err)
			}
			parts := exactParts(p, units)
			exact := p.Combine(Outcome{N: 10, Parts: parts})
			for i := range parts {
				m := parts[i].Value
				noise := rapid.Float64Range(-0.3, 0.3).Draw(t, "noise")
				wide := rapid.SampledFrom([]float64{0, 1e-3, 0.05, 0.3})
				parts[i] = Part{Value: m + noise, Low: min(m, m+noise) - wide.Draw(t, "low"), High: max(m, m+noise) + wide.Draw(t, "high"), Bounded: true}
			}
			got := p.Combine(Outcome{N: 10, Parts: parts})
			holds := func(what string, value, low, high *float64) {
				if value == nil {
					return
				}
				slack := 1e-9 * (1 + math.Abs(*value))
				if low == nil || high == nil || *low > *value+slack || *high < *value-slack {
					t.Fatalf("%s: [%v, %v] does not hold %v", what, show(low), show(high), *value)
				}
			}
			holds("answer", exact.Value, got.Low, got.High)
			if got.Value != nil {
				holds("its own value", got.Value, got.Low, got.High)
			}
			for i := range got.Items {
				holds(got.Items[i].Of, exact.Items[i].Value, got.Items[i].Low, got.Items[i].High)
			}
			if exact.Verdict != got.Verdict && got.Verdict != Undecided && exact.Value != nil && !onTheBar(exact) {
				t.Fatalf("%s, with exact parts %s: %+v", got.Verdict, exact.Verdict, exact)
			}
		})
	}
}

// onTheBar: exact parts leave undecided only what the rounding of intervals leaves.
func onTheBar(exact Result) bool { return exact.Verdict == Undecided }

// TestDecisionPrices pins what decisions and tests cost: by numbers, and as they may be released.
func TestDecisionPrices(t *testing.T) {
	oneHot := func(d float64) float64 { return 1 - 1/d }
	for _, c := range []struct {
		body    string
		numbers int
		release Release
	}{
		{decisionBodies[0], 1, Release{Kind: Number, Count: 1, Variance: 0, Optional: false}},
		{decisionBodies[1], 2, Release{Kind: Number, Count: 2, Variance: 0, Optional: false}},
		{`{"type":"argmax","of":[{"type":"fraction","of":"w"},{"type":"fraction","of":"!w"},{"type":"fraction","of":"v > 0"}]}`, 3, Release{Kind: Selection, Count: 3, Variance: 0, Optional: false}},
		{decisionBodies[4], 4, Release{Kind: Vector, Count: 4, Variance: 0.75, Optional: false}},
		{decisionBodies[6], 1, Release{Kind: Number, Count: 1, Variance: 0, Optional: false}},
		{decisionBodies[8], 4, Release{Kind: Vector, Count: 4, Variance: 0.75, Optional: false}},
		{decisionBodies[10], 3, Release{Kind: Number, Count: 3, Variance: 0, Optional: false}},
		{decisionBodies[11], 4, Release{Kind: Number, Count: 4, Variance: 0, Optional: false}},
		{decisionBodies[12], 3, Release{Kind: Vector, Count: 3, Variance: oneHot(3), Optional: false}},
		{decisionBodies[13], 6, Release{Kind: Vector, Count: 6, Variance: oneHot(6), Optional: false}},
	} {
		p, err := mustParse(t, c.body).Compile(context.Background(), small)
		if err != nil {
			t.Fatal(err)
		}
		if r := p.Releases(); p.Numbers() != c.numbers || len(r) != 1 || r[0] != c.release {
			t.Errorf("%s: %d numbers, %+v", c.body, p.Numbers(), r)
		}
		d := p.Describe()
		for _, text := range append(d.Functions, d.Combine, d.Null, d.Target) {
			if text == "" {
				t.Errorf("%s: %+v", c.body, d)
			}
		}
	}
}

// TestVectorVariances: over random tables the variances of what is released as a vector add up to no more than is said.
func TestVectorVariances(t *testing.T) {
	for _, body := range []string{decisionBodies[4], decisionBodies[5], decisionBodies[12], decisionBodies[13],
		`{"type":"difference","of":"w ? v : 0 - v","range":[-60,180],"between":["w","v > 0"]}`} {
		q := mustParse(t, body)
		rapid.Check(t, func(t *rapid.T) {
			grouped := rapid.Bool().Draw(t, "grouped")
			units := drawUnits(t, grouped)
			p, err := q.Compile(context.Background(), small, Grouped(grouped))
			if err != nil {
				t.Fatal(err)
			}
			total := 0.0
			for _, f := range p.Functions {
				m, s := 0.0, 0.0
				for _, u := range units {
					x := unitValue(f, u, 4)
					m, s = m+x/float64(len(units)), s+x*x/float64(len(units))
				}
				total += s - m*m
			}
			if said := p.Releases()[0].Variance; total > said+1e-12 {
				t.Fatalf("variances add up to %v, %v was said", total, said)
			}
		})
	}
}

// TestNestedQueries: a query inside of another has its canonical form there, without its note, and its errors at its place.
func TestNestedQueries(t *testing.T) {
	a := mustParse(t, `{"type":"compare","a":{"note":"x","of":"(delay)","type":"mean","range":[-6e1,180.0],"null":-60},"b":{"type":"fraction","of":"15 < delay"},"by":0.0,"least":false}`)
	b := mustParse(t, `{"by":0,"b":{"of":"delay > 15","type":"fraction"},"a":{"type":"mean","of":"delay","range":[-60,180]},"type":"compare"}`)
	want := `{"a":{"of":"delay","range":[-60,180],"type":"mean"},"b":{"of":"delay > 15","type":"fraction"},"type":"compare"}`
	if a.ID() != b.ID() || string(a.Canonical()) != want {
		t.Errorf("%s\n%s", a.Canonical(), b.Canonical())
	}
	for body, want := range map[string]string{
		`{"type":"compare","a":{"type":"mean","of":"delay"},"b":3}`:                                                                   `/a: "range" is missing`,
		`{"type":"compare","a":{"type":"passes","of":{"type":"fraction","of":"late"},"above":1},"b":{"type":"fraction","of":"late"}}`: `/a/type: a passes holds queries itself`,
		`{"type":"compare","a":{"type":"fraction","of":"late","guess":0.5},"b":{"type":"fraction","of":"late"}}`:                      `/a: a query inside of another has no guess`,
		`{"type":"compare","a":{"type":"fraction","of":"late"},"b":{"type":"fraction","of":"late"},"by":-1}`:                          `/by: must not be negative`,
		`{"type":"passes","of":{"type":"fraction","of":"late"}}`:                                                                      `either "above" or "below"`,
		`{"type":"passes","of":{"type":"fraction","of":"late"},"above":1,"below":2}`:                                                  `either "above" or "below"`,
		`{"type":"argmax","of":[{"type":"fraction","of":"late"}]}`:                                                                    `/of: must be a list of 2 to 1000 queries`,
		`{"type":"argmax","of":[{"type":"fraction","of":"late"},{"type":"fraction","of":"!late"}],"names":["a"]}`:                     `/names: has 1 names for 2 candidates`,
		`{"type":"difference","of":"delay","range":[0,1],"between":[]}`:                                                               `/between: must be a list of 1 to 2 conditions`,
		`{"type":"difference","of":"delay","range":[0,1],"between":["late","late"]}`:                                                  `/between/1: occurs twice`,
		`{"type":"test","test":"mean","of":"delay"}`:                                                                                  `"range" is missing`,
		`{"type":"test","test":"mean","of":"delay","range":[0,1],"between":["late"]}`:                                                 `/between: does not go with this test, which has of, range, equals`,
		`{"type":"test","test":"men"}`: `did you mean mean?`,
		`{"type":"test"}`:              `"test" is missing`,
		`{"type":"test","test":"goodness-of-fit","cells":["late"],"expected":[0.5,0.5]}`:                    `/expected: has 2 shares for 1 cells`,
		`{"type":"test","test":"goodness-of-fit","cells":["late","delay > 3"],"expected":[0.6,0.5]}`:        `/expected: adds up to more than 1`,
		`{"type":"test","test":"goodness-of-fit","cells":["late"],"expected":[1.5]}`:                        `/expected/0: must be a number from 0 to 1`,
		`{"type":"test","test":"value","query":{"type":"fraction","of":"late"}}`:                            `"equals" is missing`,
		`{"type":"test","test":"value","query":{"type":"test","test":"proportion","of":"late"},"equals":1}`: `holds queries itself`,
	} {
		if _, err := Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", body, err, want)
		}
	}
	for body, want := range map[string]string{
		`{"type":"compare","a":{"type":"count","of":"late"},"b":{"type":"fraction","of":"late"}}`:                        "/a: must be the mean of one row function",
		`{"type":"compare","a":{"type":"fraction","of":"late"},"b":{"type":"fraction","of":"late","where":"delay > 1"}}`: "/b: must be the mean of one row function",
		`{"type":"compare","a":{"type":"fraction","of":"latte"},"b":{"type":"fraction","of":"late"}}`:                    `/a/of: 1:1: unknown column "latte"; did you mean late?`,
		`{"type":"argmax","of":[{"type":"fraction","of":"late"},{"type":"mean","of":"delay","range":[0,2]}]}`:            "/of/1: has the range [0, 2], the first candidate [0, 1]",
		`{"type":"passes","of":{"type":"frequencies","of":"origin","values":["SFO"]},"above":1}`:                         "/of: must be a query whose answer is one number",
		`{"type":"test","test":"value","query":{"type":"frequencies","of":"origin","values":["SFO"]},"equals":1}`:        "/query: must be a query whose answer is one number",
		`{"type":"difference","of":"late","range":[0,1],"between":["delay > 1"]}`:                                        "/range: a condition is 1 or 0",
		`{"type":"difference","of":"delay","between":["late"]}`:                                                          "/range: is missing",
		`{"type":"difference","of":"origin","between":["late"]}`:                                                         "/of: 1:1: the expression is text; expected a number or a condition",
		`{"type":"difference","of":"late","between":["delay"]}`:                                                          "/between/0: 1:1: this is a number",
		`{"type":"test","test":"independence","rows":["late"],"columns":["delay"]}`:                                      "/columns/0: 1:1: this is a number",
	} {
		_, err := mustParse(t, body).Compile(context.Background(), flights)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", body, err, want)
		}
	}
	if _, err := mustParse(t, `{"type":"passes","of":{"type":"fraction","of":"latte"},"above":1}`).Compile(context.Background(), flights, At("/queries/2")); err == nil || !strings.Contains(err.Error(), "/queries/2/of/of: ") {
		t.Error(err)
	}
}
