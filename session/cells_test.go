package session_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn/cells"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// cellsOfShop: 2·4·4 cells.
const cellsOfShop = `{"member":[true,false],"region":["north","south",null],"age":[18,40,65]}`

// shop is a table of so many rows, row i being row pick(i) of a population of 60.
func shop(t *testing.T, rows int, pick func(i int) int) (dataset.Schema, session.Source) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 3)) // of the population: the same each time
	var members [60]uint8
	var regions [60]string
	var ages [60]float64
	for i := range ages {
		members[i], regions[i], ages[i] = uint8(r.IntN(2)), []string{"north", "south", "east", "north"}[r.IntN(4)], float64(r.IntN(90))
	}
	member := dataset.Column{Field: dataset.Field{Name: "member", Kind: dataset.Bool, Source: "BOOLEAN"}}
	age := dataset.Column{Field: dataset.Field{Name: "age", Kind: dataset.Number, Source: "DOUBLE"}}
	var region []string
	for i := range rows {
		at := pick(i)
		member.Bools, age.Numbers, region = append(member.Bools, members[at]), append(age.Numbers, ages[at]), append(region, regions[at])
	}
	table, err := dataset.FromColumns(member, age, dataset.NewText("region", region, func(int) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return table.Schema(), source
}

func shopHoldout(t *testing.T, spec thresholdout.Spec, rows int, pick func(i int) int) *session.Local {
	t.Helper()
	spec.N = int64(rows)
	g, err := thresholdout.Plan(spec)
	if err != nil {
		t.Fatal(err)
	}
	domain, err := cells.Parse(cellsOfShop)
	if err != nil {
		t.Fatal(err)
	}
	schema, source := shop(t, rows, pick)
	return &session.Local{Session: session.Session{Guarantee: g, Noise: session.Seeded(1), Cells: &domain}, Schema: schema, Holdout: source}
}

// TestCellsNeedTheirDomain: a guarantee about cells answers nothing where the cells are not known, or others are: not even what would be about them.
func TestCellsNeedTheirDomain(t *testing.T) {
	of := func(cells int64) *session.Local {
		return shopHoldout(t, thresholdout.Spec{Mechanism: thresholdout.Cells, Cells: cells}, 600, func(i int) int { return i % 60 })
	}
	ask := func(l *session.Local) error {
		_, err := l.Ask(t.Context(), []byte(`{"type":"fraction","of":"member"}`))
		return err
	}
	if err := ask(of(32)); err != nil {
		t.Error(err)
	}
	unknown := of(32)
	unknown.Cells = nil
	for name, l := range map[string]*session.Local{"unknown": unknown, "others": of(31)} {
		var wrong *session.WrongError
		if err := ask(l); !errors.As(err, &wrong) || !strings.Contains(wrong.Detail, "nothing can be answered") || l.State != (thresholdout.State{}) {
			t.Errorf("%s: %v, %+v", name, err, l.State)
		}
	}
}

// TestCellsHoldTogether: what answers are made of, conditions, differences, ratios and groups among them, holds at once, and whoever asks for all cells first and then for what these make look best is no worse: at a false-alarm probability of 1e-6
// all intervals of a holdout contain what the population has in as many samples as the confidence says. Their widths are no luck: a good part of the answers is further off than a fifth of the half-width.
func TestCellsHoldTogether(t *testing.T) {
	var asked []string
	for _, region := range []string{"region == 'north'", "region == 'south'", "!(region in ['north','south'])"} {
		for _, age := range []string{"!(age >= 18)", "age >= 18 && !(age >= 40)", "age >= 40 && !(age >= 65)", "age >= 65"} {
			for _, member := range []string{"member", "!member"} {
				asked = append(asked, fmt.Sprintf("%s && %s && %s", region, age, member))
			}
		}
	}
	made := []string{
		`{"type":"mean","of":"age >= 65 ? 4.0 : age >= 40 ? 1.0 : 0.0","range":[0,4],"where":"member"}`,
		`{"type":"difference","of":"age >= 40","between":["member","!member"]}`,
		`{"type":"groups","of":"member","by":"region","values":["north","south"]}`,
		`{"type":"accuracy","label":"member","prediction":"age >= 40"}`,
		`{"type":"variance","of":"age >= 65 ? 4.0 : age >= 40 ? 1.0 : 0.0","range":[0,4]}`,
	}
	schema, _ := shop(t, 60, func(i int) int { return i })
	truth := shopHoldout(t, thresholdout.Spec{Mechanism: thresholdout.Naive}, 60, func(i int) int { return i })
	truth.Schema = schema
	exact := func(query string) session.Answer {
		a, err := truth.Ask(t.Context(), []byte(query))
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return a
	}
	const samples, rows, confidence = 120, 400, 0.8
	missed, far := 0, 0
	for sample := range uint64(samples) {
		r := rand.New(rand.NewPCG(sample, 12))
		l := shopHoldout(t, thresholdout.Spec{Mechanism: thresholdout.Cells, Cells: 32, Confidence: confidence}, rows, func(int) int { return r.IntN(60) })
		miss := false
		ask := func(query string) session.Answer {
			a, err := l.Ask(t.Context(), []byte(query))
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			want := exact(query)
			outside := func(i *session.Interval, value *float64) bool {
				return i != nil && value != nil && (i.Low != nil && *value < *i.Low-1e-7 || i.High != nil && *value > *i.High+1e-7)
			}
			miss = miss || outside(a.Interval, want.Value)
			for k := range a.Items {
				miss = miss || outside(&session.Interval{Low: a.Items[k].Low, High: a.Items[k].High}, want.Items[k].Value)
			}
			return a
		}
		var over []string
		for _, cell := range asked {
			query := fmt.Sprintf(`{"type":"fraction","of":%q}`, cell)
			if a := ask(query); *a.Value > *exact(query).Value {
				over = append(over, "("+cell+")")
			}
		}
		worst := fmt.Sprintf(`{"type":"fraction","of":%q}`, strings.Join(over, " || "))
		if a := ask(worst); math.Abs(*a.Value-*exact(worst).Value) > l.Guarantee.HalfWidth/5 {
			far++
		}
		for _, query := range made {
			ask(query)
		}
		if miss {
			missed++
		}
	}
	if err := stattest.AtMost(missed, samples, 1-confidence, 1e-6); err != nil {
		t.Error(err)
	}
	if t.Logf("%d of %d missed, the worst set is far off in %d", missed, samples, far); far < samples/2 {
		t.Errorf("the worst set is far off in %d of %d samples only", far, samples)
	}
}
