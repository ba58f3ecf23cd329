package levels

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// False positives after adaptive looks: an analyst tests again and again on rows in which nothing is related to anything, each test chosen by the
// effects seen so far. Every null hypothesis is true, so every rejection is a false positive.

const (
	looks    = 200
	units    = 1000 // of the holdout, and as many of the training part
	features = 60   // fair coins, beside a label that is one too
	level    = 0.05
)

// coins draws a table of features f0, f1, … and a label y, which are all independent.
func coins(r *rand.Rand) *engine.Table {
	columns := make([]dataset.Column, features+1)
	for i := range columns {
		columns[i].Field = dataset.Field{Name: fmt.Sprintf("f%d", i), Kind: dataset.Number, Source: "DOUBLE"}
		for range units {
			columns[i].Numbers = append(columns[i].Numbers, float64(r.IntN(2)))
		}
	}
	columns[features].Name = "y"
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		panic(err)
	}
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		panic(err)
	}
	return source
}

func schema() (s dataset.Schema) {
	for i := range features {
		s.Fields = append(s.Fields, dataset.Field{Name: fmt.Sprintf("f%d", i), Kind: dataset.Number})
	}
	s.Fields = append(s.Fields, dataset.Field{Name: "y", Kind: dataset.Number})
	return s
}

// desk answers tests: by a mechanism, as a program does that keeps its own holdout, and beside it by the plain test on the same rows.
type desk struct{ session.Local }

func newDesk(p thresholdout.Guarantee, seed uint64, holdout, training *engine.Table) *desk {
	return &desk{session.Local{Session: session.Session{Guarantee: p, Noise: session.Seeded(seed)}, Schema: schema(), Holdout: holdout, Training: training}}
}

// ask is one look: the effect as the analyst sees it, the p-value as it is promised, and the plain test's.
func (d *desk) ask(body string) (effect, p, plain float64, err error) {
	q, err := queries.Parse([]byte(body))
	if err != nil {
		return 0, 0, 0, fmt.Errorf("%s: %w", body, err)
	}
	plan, err := q.Compile(context.Background(), d.Schema)
	if err != nil {
		return 0, 0, 0, err
	}
	sums, err := d.Holdout.Sums(context.Background(), plan.Functions, 0, units)
	if err != nil {
		return 0, 0, 0, err
	}
	exact := make([]float64, len(sums))
	for i, s := range sums {
		exact[i] = float64(s) / (units * float64(queries.One))
	}
	plain = plainP(exact)
	a, err := d.Play(context.Background(), q, plan)
	if err != nil {
		return 0, 0, 0, err
	}
	if a.Value != nil {
		effect = *a.Value
	}
	if a.PValue == nil { // naive
		return effect, plain, plain, nil
	}
	return effect, *a.PValue, plain, nil
}

// plainP is the p-value of the z-test: of a proportion against 1/2, or of two proportions from the shares of both groups.
func plainP(means []float64) float64 {
	z := (means[0] - 0.5) * 2 * math.Sqrt(units)
	if len(means) == 4 {
		a, b := means[0]+means[1], means[2]+means[3]
		pooled := means[0] + means[2]
		z = (means[0]/a - means[2]/b) / math.Sqrt(pooled*(1-pooled)*(1/a+1/b)/units)
	}
	return math.Erfc(math.Abs(z) / math.Sqrt2)
}

// found is what one run comes to.
type found struct {
	looks       int
	promised    float64 // the least p-value that was given
	plain       float64 // the least of the plain tests on the same rows
	last, inAll float64 // the plain p-value of the last look; least times the number of looks, as by Bonferroni
}

// search is the analyst: a test of each feature's agreement with the label, then of rules that weigh the features by what their tests showed, the most
// promising first, each as a proportion of rows and as the difference between the groups that it makes.
func search(d *desk) (found, error) {
	f := found{promised: 1, plain: 1}
	look := func(body string) (float64, error) {
		effect, p, plain, err := d.ask(body)
		if err == nil {
			f.looks++
			f.promised, f.plain, f.last = min(f.promised, p), min(f.plain, plain), plain
			f.inAll = min(1, f.plain*float64(f.looks))
		}
		return effect, err
	}
	type weighed struct {
		feature int
		weight  float64
	}
	var seen []weighed
	for i := range features {
		effect, err := look(fmt.Sprintf(`{"type":"test","test":"proportion","of":"f%d == y"}`, i))
		if err != nil {
			return f, over(err)
		}
		seen = append(seen, weighed{i, effect - 0.5})
	}
	sort.Slice(seen, func(a, b int) bool { return math.Abs(seen[a].weight) > math.Abs(seen[b].weight) })
	for size := 2; f.looks < looks; size++ {
		var terms []string
		for _, s := range seen[:2+(size-2)%(features-1)] {
			terms = append(terms, fmt.Sprintf("(f%d - 0.5) * %.6f", s.feature, s.weight))
		}
		rule := strings.Join(terms, " + ") + fmt.Sprintf(" > %.7f", 1e-7*float64(size)) // another question each time around
		if _, err := look(`{"type":"test","test":"two-proportions","of":"y > 0.5","between":["` + rule + `"]}`); err != nil {
			return f, over(err)
		}
		if _, err := look(`{"type":"test","test":"proportion","of":"((` + rule + `) ? 1 : 0) == y"}`); err != nil {
			return f, over(err)
		}
	}
	return f, nil
}

// over is nil where a run ended because its budget did.
func over(err error) error {
	var short *session.ShortError
	if errors.As(err, &short) {
		return nil
	}
	return err
}

// guarantees are those under which the analyst looks; naive gives exact values and no promise, so that the plain tests are all there is.
func guarantees(t testing.TB) map[string]thresholdout.Guarantee {
	all := map[string]thresholdout.Guarantee{}
	for name, p := range map[string]thresholdout.Spec{
		"gaussian":        {Mechanism: thresholdout.Gaussian, N: units, Questions: 400},
		"guess_and_check": {Mechanism: thresholdout.GuessAndCheck, N: units, Training: units, Questions: 500, Tokens: 100},
		"thresholdout":    {Mechanism: thresholdout.Thresholdout, N: units, Training: units, Questions: 500, Tokens: 100},
		"naive":           {Mechanism: thresholdout.Naive, N: units, Training: units, Questions: 1000},
	} {
		var err error
		if all[name], err = thresholdout.Plan(p); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// rates counts false positives in runs.
type rates struct{ looks, promised, plain, corrected, last int }

func falsePositives(t testing.TB, p thresholdout.Guarantee, runs int) (r rates) {
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 77))
		f, err := search(newDesk(p, uint64(run), coins(random), coins(random)))
		if err != nil {
			t.Fatal(err)
		}
		r.looks += f.looks
		for _, c := range []struct {
			p     float64
			count *int
		}{{f.promised, &r.promised}, {f.plain, &r.plain}, {f.inAll, &r.corrected}, {f.last, &r.last}} {
			if c.p <= level {
				*c.count++
			}
		}
	}
	return r
}

// TestFalsePositives: after 200 adaptive looks the promised tests have rejected a true null in at most 5% of runs (false alarm 1e-6), while the plain tests of the same looks, also at a level corrected for the number of looks, have in far more where
// they guide the analyst.
func TestFalsePositives(t *testing.T) {
	const runs, falseAlarm = 5, 1e-6
	for name, p := range guarantees(t) {
		if p.Mechanism == thresholdout.Thresholdout {
			continue // as guess_and_check, and slower; the benchmark has it
		}
		r := falsePositives(t, p, runs)
		t.Logf("%s: %.0f looks a run; of %d runs with false positives: promised %d; plain %d, with Bonferroni's correction %d, at the last look alone %d",
			name, float64(r.looks)/runs, runs, r.promised, r.plain, r.corrected, r.last)
		if name == "naive" {
			if stattest.AtMost(r.corrected, runs, level, falseAlarm) == nil || stattest.AtMost(r.last, runs, level, falseAlarm) == nil {
				t.Errorf("the plain test kept its level: the analyst does no harm")
			}
			continue
		}
		if err := stattest.AtMost(r.promised, runs, level, falseAlarm); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r.looks < runs*features {
			t.Errorf("%s: only %d looks in %d runs", name, r.looks, runs)
		}
	}
}

// BenchmarkFalsePositives measures the rates in more runs: go test ./tests/levels -run '^$' -bench FalsePositives -benchtime 200x
func BenchmarkFalsePositives(b *testing.B) {
	for name, p := range guarantees(b) {
		b.Run(name, func(b *testing.B) {
			r := falsePositives(b, p, b.N)
			runs := float64(b.N)
			b.ReportMetric(float64(r.looks)/runs, "looks/run")
			b.ReportMetric(100*float64(r.plain)/runs, "%plain")
			b.ReportMetric(100*float64(r.corrected)/runs, "%bonferroni")
			b.ReportMetric(100*float64(r.last)/runs, "%last")
			if p.Mechanism != thresholdout.Naive {
				b.ReportMetric(100*float64(r.promised)/runs, "%promised")
			}
		})
	}
}
