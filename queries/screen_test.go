package queries

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
)

// exact releases means over a table in memory, as a mechanism without noise would; after so many numbers the budget for surprises is
// spent.
type exact struct {
	parts []Part
	most  int
	asked []int
}

func (e *exact) Together() bool { return false }

func (e *exact) Number(function int) (Part, error) {
	if len(e.asked) == e.most {
		return Part{}, fmt.Errorf("%w: no tokens", ErrSpent)
	}
	e.asked = append(e.asked, function)
	return e.parts[function], nil
}

func (e *exact) Vector(int, int, float64) ([]Part, error) { return nil, errors.New("no vectors") }
func (e *exact) Select(int, int, int64) (Choice, error)   { return Choice{}, errors.New("no selections") }

// inMemory is a training part of units in memory.
type inMemory struct{ units []unit }

func (m inMemory) Means(_ context.Context, functions []RowFunction) ([]float64, error) {
	var means []float64
	for _, p := range exactParts(&Plan{Functions: functions}, m.units) {
		means = append(means, p.Value)
	}
	return means, nil
}

func (inMemory) Texts(string) []string { return nil }

var wide = dataset.Schema{Fields: []dataset.Field{{Name: "a", Kind: dataset.Number}, {Name: "a2", Kind: dataset.Number}, {Name: "b", Kind: dataset.Number},
	{Name: "w", Kind: dataset.Bool}, {Name: "atext", Kind: dataset.Text}}}

// TestScreen: each item is the feature's mean product, by its definition in words from the rows; correlations have the constants of
// the training part, and a feature that is constant there has none.
func TestScreen(t *testing.T) {
	rows := func(t *rapid.T, name string, constant bool) []unit {
		units := make([]unit, rapid.IntRange(2, 20).Draw(t, name))
		number := rapid.Float64Range(-5, 5)
		for i := range units {
			units[i] = unit{reference.Row{"a": number.Draw(t, "a"), "a2": number.Draw(t, "a2"), "b": number.Draw(t, "b"), "w": rapid.Bool().Draw(t, "w")}}
			if constant {
				units[i][0]["a2"] = 1.0
			}
		}
		return units
	}
	clamp := func(x, by float64) float64 { return min(max(x, -by), by) }
	label := func(u unit) float64 { return 2*indicator(u[0]["w"] == true) - 1 }
	moments := func(units []unit, of func(unit) float64) (mean, sd float64) {
		for _, u := range units {
			mean += of(u) / float64(len(units))
		}
		for _, u := range units {
			sd += (of(u) - mean) * (of(u) - mean) / float64(len(units))
		}
		return mean, math.Sqrt(sd)
	}
	rapid.Check(t, func(t *rapid.T) {
		constant := rapid.Bool().Draw(t, "constant")
		training, holdout := rows(t, "training", constant), rows(t, "holdout", false)
		statistic := rapid.SampledFrom([]string{"correlation", "product"}).Draw(t, "statistic")
		q, err := Parse([]byte(`{"type":"screen","label":"w","features":"a*","statistic":"` + statistic + `","range":[-4,4]}`))
		if err != nil {
			t.Fatal(err)
		}
		p, err := q.Compile(context.Background(), wide, Training(inMemory{training}))
		_, spread := moments(training, label)
		if statistic == "correlation" && spread < 1e-6 {
			if err == nil || !strings.Contains(err.Error(), "/label") {
				t.Fatalf("a constant label: %v", err)
			}
			return
		}
		if err != nil && strings.Contains(err.Error(), "none of the features varies") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Release(int64(len(holdout)), &exact{parts: exactParts(p, holdout), most: -1})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"a", "a2"} {
			feature := func(u unit) float64 { return clamp(u[0][name].(float64), 4) }
			want, _ := moments(holdout, func(u unit) float64 { return feature(u) * label(u) })
			if statistic == "correlation" {
				m, sd := moments(training, feature)
				ml, sl := moments(training, label)
				if item := p.Combine(out).Items[i]; sd < 1e-4*8 {
					if item.Value != nil {
						t.Fatalf("a constant feature has %v", *item.Value)
					}
					continue
				}
				want, _ = moments(holdout, func(u unit) float64 { return clamp((feature(u)-m)/sd*(label(u)-ml)/sl, 3) })
			}
			item := p.Combine(out).Items[i]
			if item.Of != name || item.Value == nil || math.Abs(*item.Value-want) > 1e-6*p.Range.High || *item.Low > want+1e-6 || *item.High < want-1e-6 {
				t.Fatalf("%s is %v, want %v", name, show(item.Value), want)
			}
		}
	})
}

// TestScreenEndsWithTheTokens: what was not released is null, and what was, is the same.
func TestScreenEndsWithTheTokens(t *testing.T) {
	p, err := mustParse(t, `{"type":"screen","label":"w","features":["b","a","a2"],"statistic":"product","range":[-4,4]}`).Compile(context.Background(), wide)
	if err != nil {
		t.Fatal(err)
	}
	released := &exact{parts: []Part{{Value: 1}, {Value: 0.5}, {Value: 0}}, most: 2}
	out, err := p.Release(10, released)
	if err != nil {
		t.Fatal(err)
	}
	items := p.Combine(out).Items
	if len(released.asked) != 2 || len(items) != 3 || *items[0].Value != 4 || *items[1].Value != 0 || items[2].Value != nil || items[2].Of != "a2" {
		t.Errorf("%v, %+v", released.asked, items)
	}
}

func TestScreenRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"screen","label":"w","features":"z*","range":[0,1],"statistic":"product"}`:                        "/features: no column of numbers",
		`{"type":"screen","label":"w","features":["a","c","w"],"range":[0,1],"statistic":"product"}`:               "/features/1: there is no column of this name; /features/2: the column holds no numbers",
		`{"type":"screen","label":"b","features":"a","range":[0,1],"statistic":"product"}`:                         "/range_label: is missing",
		`{"type":"screen","label":"w","features":"a","range":[0,1],"range_label":[0,1],"statistic":"product"}`:     "/range_label: a label that is a condition",
		`{"type":"screen","label":"w","features":"a","range":[0,1]}`:                                               "/features: is needed: this holdout has no training part",
		`{"type":"screen","label":"b + a","features":"*","range":[0,1],"range_label":[0,1],"statistic":"product"}`: "",
	} {
		_, err := mustParse(t, body).Compile(context.Background(), wide)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	for body, want := range map[string]string{
		`{"type":"screen","label":"w","features":[],"range":[0,1]}`:                                 "/features: must have between",
		`{"type":"screen","label":"w","features":["a","a"],"range":[0,1]}`:                          "/features/1: is in the list before",
		`{"type":"screen","label":"w","features":[1],"range":[0,1]}`:                                "/features/0: must be the name",
		`{"type":"screen","label":"w","features":"[a","range":[0,1]}`:                               "/features: is no pattern",
		`{"type":"screen","label":"w","features":"a","range":[0,1],"statistic":"corelation"}`:       "did you mean correlation?",
		`{"type":"screen","label":"w","features":"a","range":[0,1],"clip":0}`:                       "/clip: must lie in",
		`{"type":"screen","label":"w","features":"a","range":[0,1],"clip":2,"statistic":"product"}`: "/clip: belongs to",
	} {
		if _, err := Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	same := mustParse(t, `{"type":"screen","label":"w","features":"a*","range":[0,1],"clip":3.0,"statistic":"correlation"}`)
	if got := string(same.Canonical()); got != `{"features":"a*","label":"w","range":[0,1],"type":"screen"}` {
		t.Errorf("canonical: %s", got)
	}
}

// Column implements TrainingPart: nothing is known.
func (inMemory) Column(string) (ColumnFacts, bool) { return ColumnFacts{}, false }

// Numbers implements TrainingPart.
func (inMemory) Numbers(string, int) []float64 { return []float64{1, 2} }
