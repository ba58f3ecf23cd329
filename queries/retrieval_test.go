package queries

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/reference"
)

// TestRetrievalMeansWhatItSays: from exact means of its row functions precision, recall and F1 are what their definitions make of the rows, and so are they from the
// exact sums of the equation of which they are one question. It would notice precision and recall interchanged, a where that the divisor forgets, and the share J given for F1.
func TestRetrievalMeansWhatItSays(t *testing.T) {
	for _, c := range []struct {
		body          string
		truth, picked func(reference.Row) bool
	}{
		{`"label":"u > 20",` + logisticModel, labelU, func(r reference.Row) bool { return logisticOf(r) > 0 }},
		{`"label":"u > 20","threshold":0.6,` + logisticModel, labelU, func(r reference.Row) bool { return probabilityOf(r) > 0.6 }},
		{`"label":"u > 20","prediction":"v > 10"`, labelU, func(r reference.Row) bool { v, ok := r["v"].(float64); return ok && v > 10 }},
		{`"label":"s","positive":"b",` + softmaxModel, func(r reference.Row) bool { return classS(r) == 1 }, func(r reference.Row) bool { return best(softmaxOf(r)) == 1 }},
	} {
		for _, kind := range []string{"precision", "recall", "f1"} {
			of, among := c.picked, c.truth
			switch kind {
			case "precision":
				of, among = c.truth, c.picked
			case "f1":
				of = func(r reference.Row) bool { return c.truth(r) && c.picked(r) }
				among = func(r reference.Row) bool { return c.truth(r) || c.picked(r) }
			}
			t.Run(kind+" "+c.body, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					more := rapid.SampledFrom([]string{"", `,"where":"w"`, `,"weight":"row"`, `,"where":"w","weight":"row"`}).Draw(t, "more")
					grouped := rapid.Bool().Draw(t, "grouped")
					units, rows := drawPeople(t, "units", grouped), grouped && strings.Contains(more, "weight")
					votes := votesOf(units, func(r reference.Row) bool { return among(r) && (!strings.Contains(more, "where") || whereW(r)) }, rows)
					q, err := Parse([]byte(`{"type":"` + kind + `",` + c.body + more + `}`))
					if err != nil {
						t.Fatal(err)
					}
					p, err := q.Compile(context.Background(), people, Grouped(grouped))
					if err != nil {
						t.Fatal(err)
					}
					want := weighted(votes, func(r reference.Row) float64 { return indicator(of(r)) })
					if kind == "f1" {
						want = 2 * want / (1 + want)
					}
					n := int64(len(units))
					checkResult(t, p.Combine(Outcome{N: n, Parts: exactParts(p, units)}), want, len(votes) > 0)
					e := p.Equation()
					if e == nil || e.Whole == rows {
						t.Fatalf("the equation is %+v", e)
					}
					if sums := exactParts(&Plan{Functions: []RowFunction{e.A, *e.B}}, units); len(votes) > 0 && !rows {
						root := sums[0].Value / sums[1].Value
						checkResult(t, p.AsChecked().Combine(Outcome{N: n, Parts: []Part{{Value: root, Low: root, High: root, Bounded: true}}}), want, true)
					}
				})
			})
		}
	}
}

// TestF1Interval: the interval of F1 is the link of that of J, and reaches both ends.
func TestF1Interval(t *testing.T) {
	p := compiled(t, `{"type":"f1","label":"w","prediction":"v > 1"}`, people)
	for _, c := range [][2]float64{{0, 0}, {1, 1}, {0.5, 2.0 / 3}, {0.25, 0.4}, {0, 1}} {
		r := p.AsChecked().Combine(Outcome{N: 10, Parts: []Part{{Value: c[0], Low: c[0], High: 0.5 + c[0]/2, Bounded: true}}})
		high := 0.5 + c[0]/2
		high = 2 * high / (1 + high)
		if c == [2]float64{0, 1} { // nothing is known
			r = p.AsChecked().Combine(Outcome{N: 10, Parts: []Part{{Value: 0.5, Low: 0, High: 1, Bounded: true}}})
			if r.Value != nil || *r.Low != 0 || *r.High != 1 {
				t.Errorf("of nothing: %v in [%v, %v]", r.Value, *r.Low, *r.High)
			}
			continue
		}
		want := 2 * c[0] / (1 + c[0])
		if r.Value == nil || !near(*r.Value, want) || !near(*r.Low, want) || !near(*r.High, high) || *r.Low > want || *r.High < high {
			t.Errorf("J = %v: %v in [%v, %v]", c[0], *r.Value, *r.Low, *r.High)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }

// TestRetrievalRefused: what is positive must be said where there are classes, and is no class where there are none.
func TestRetrievalRefused(t *testing.T) {
	const classes = `"label":"origin","model":{"softmax":{"classes":["a","b"],"weights":{}}}`
	for body, want := range map[string]string{
		`"type":"precision",` + classes:                                              "/positive: is missing: the class that counts as positive",
		`"type":"recall","positive":"c",` + classes:                                  "/positive: is no class of the model",
		`"type":"recall","positive":1,` + classes:                                    "/positive: is no class of the model",
		`"type":"recall","positive":true,` + classes:                                 "/positive: must be a text or a number",
		`"type":"f1","threshold":0.1,"positive":"a",` + classes:                      "/threshold: is for a model with one output",
		`"type":"f1","positive":"a","label":"late","prediction":"delay > 1"`:         "/positive: is for a model with classes",
		`"type":"f1","guess":-0.5,"label":"late","prediction":"delay > 1"`:           "/guess: must lie in the range",
		`"type":"precision","guess":1.5,"label":"late","prediction":"delay > 1"`:     "/guess: must lie in the range",
		`"type":"precision","label":"late"`:                                          "is missing: what predicts",
		`"type":"precision","label":"delay","prediction":"delay > 1"`:                "/label",
		`"type":"recall","label":"late","prediction":"delay > 1","where":"distance"`: "/where",
	} {
		q, err := Parse([]byte("{" + body + "}"))
		if err == nil {
			_, err = q.Compile(context.Background(), flights)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}

// TestRetrievalIdentity: a default has one spelling, and what changes the question changes its ID.
func TestRetrievalIdentity(t *testing.T) {
	const body = `{"type":"precision","label":"late","prediction":"distance"`
	if a, b := mustParse(t, body+`}`), mustParse(t, body+`,"threshold":0.5,"note":"x"}`); a.ID() != b.ID() {
		t.Errorf("%s and %s differ", a.Canonical(), b.Canonical())
	}
	seen := map[string]string{}
	for _, b := range []string{body + `}`, body + `,"threshold":1}`, body + `,"positive":1}`, body + `,"positive":"1"}`, body + `,"where":"late"}`,
		strings.Replace(body, "precision", "recall", 1) + `}`, strings.Replace(body, "precision", "f1", 1) + `}`} {
		id := mustParse(t, b).ID()
		if other := seen[id]; other != "" {
			t.Errorf("%s and %s are one question", b, other)
		}
		seen[id] = b
	}
}
