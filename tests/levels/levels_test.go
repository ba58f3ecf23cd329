// Package levels holds tests of p-values and levels: what they rest on, and that they hold under an adaptive analyst.
package levels

import (
	"context"
	"fmt"
	"maps"
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

// What docs/proofs/p-values.md rests on, checked for every query that a test can be about under every mechanism with levels: at each level the
// parts' sets are about the same targets, and where they all hold these, the answer's interval holds its own.

// law is a population of finitely many rows, each as probable as any other, in which x, y and w are independent of each other.
type law struct {
	rows  *dataset.Table
	table *engine.Table
}

// columnsOf is a table of rows of x, y, w and g.
func columnsOf(x, y []float64, w []uint8, g []string) *dataset.Table {
	field := func(name string, kind dataset.Kind) dataset.Field {
		return dataset.Field{Name: name, Kind: kind, Source: "DOUBLE"}
	}
	table, err := dataset.FromColumns(dataset.Column{Field: field("x", dataset.Number), Numbers: x}, dataset.Column{Field: field("y", dataset.Number), Numbers: y},
		dataset.Column{Field: field("w", dataset.Bool), Bools: w}, dataset.NewText("g", g, func(int) bool { return false }))
	if err != nil {
		panic(err)
	}
	return table
}

func inUnits(table *dataset.Table) *engine.Table {
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		panic(err)
	}
	return source
}

// drawLaw draws the values of x between 0 and 1023, with a null, of y and of w. A share of x lies just below its middle and
// another just above, so that a search meets distribution functions near 1/2 at several of its rungs.
func drawLaw(r *rand.Rand) law {
	xs := []float64{math.NaN()}
	middle := 100 + 800*r.Float64()
	for range 16 {
		xs = append(xs, min(max(middle+900*(r.Float64()-0.5)*r.Float64(), 0), 1023))
	}
	var x, y []float64
	var w []uint8
	var g []string
	for _, xi := range xs {
		for _, yi := range []float64{-2, -0.5, 0, 1, 1.5} {
			for k := range 5 {
				x, y, w, g = append(x, xi), append(y, yi), append(w, uint8(k%2)), append(g, []string{"a", "b", "c", "a", "b"}[k])
			}
		}
	}
	rows := columnsOf(x, y, w, g)
	return law{rows, inUnits(rows)}
}

// sample draws n rows. With a tilt some rows are likelier than others, so that intervals miss: what follows from a miss is seen then.
func (l law) sample(r *rand.Rand, n int64, tilt float64) *engine.Table {
	order := r.Perm(l.rows.Rows())
	var x, y []float64
	var w []uint8
	var g []string
	text := l.rows.Column(3)
	for range n {
		i := order[int(math.Pow(r.Float64(), 1+tilt)*float64(len(order)))]
		x, y, w = append(x, l.rows.Column(0).Numbers[i]), append(y, l.rows.Column(1).Numbers[i]), append(w, l.rows.Column(2).Bools[i])
		g = append(g, text.Dictionary.Text(int(text.Codes[i])-1))
	}
	return inUnits(columnsOf(x, y, w, g))
}

// Means implements queries.TrainingPart, of the population: constants of a query are the same whatever was drawn.
func (l law) Means(_ context.Context, functions []queries.RowFunction) ([]float64, error) {
	sums, err := l.table.Sums(context.Background(), functions, 0, l.table.Units())
	means := make([]float64, len(sums))
	for i, s := range sums {
		means[i] = float64(s) / (float64(l.table.Units()) * float64(queries.One))
	}
	return means, err
}

// Texts implements queries.TrainingPart.
func (l law) Texts(string) []string { return []string{"a", "b", "c"} }

// Column implements queries.TrainingPart: nothing is known.
func (l law) Column(string) (queries.ColumnFacts, bool) { return queries.ColumnFacts{}, false }

// Numbers implements queries.TrainingPart.
func (l law) Numbers(string, int) []float64 { return []float64{1, 2, 3} }

// truth releases the population's own means.
type truth struct{ means []float64 }

func (truth) Together() bool { return false }
func (t truth) Number(f int) (queries.Part, error) {
	return queries.Part{Value: t.means[f], Low: t.means[f], High: t.means[f], Bounded: true}, nil
}
func (truth) Vector(int, int, float64) ([]queries.Part, error) { panic("never together") }
func (truth) Select(int, int, int64) (queries.Choice, error)   { panic("never together") }

// releasing releases by a mechanism.
type releasing struct {
	params            thresholdout.Guarantee
	state             thresholdout.State
	seed              uint64
	plan              *queries.Plan
	holdout, training *engine.Table
}

func (d *releasing) mean(t *engine.Table, f int, from, to int64) thresholdout.Mean {
	sums, err := t.Sums(context.Background(), d.plan.Functions[f:f+1], from, to)
	if err != nil {
		panic(err)
	}
	return thresholdout.Mean{Sum: sums[0], N: to - from}
}

func (d *releasing) noise(f int) thresholdout.Noise {
	return thresholdout.Seeded{Seed: d.seed, Question: d.state.Questions<<12 + int64(f)}
}

func (d *releasing) Together() bool { return d.params.Together() }

func (d *releasing) Number(f int) (queries.Part, error) {
	from, to := d.params.Slice(d.state)
	in := thresholdout.Input{Holdout: d.mean(d.holdout, f, from, to)}
	if d.params.UsesTraining() {
		in.Training = d.mean(d.training, f, 0, d.training.Units())
	}
	before := d.state
	out, next, err := thresholdout.Step(d.params, d.state, in, d.noise(f))
	if err != nil {
		return queries.Part{}, err
	}
	d.state = next
	return queries.Part{Value: out.Value, Low: out.Interval.Low, High: out.Interval.High, Bounded: true,
		At: func(u float64) (float64, float64, bool) { return d.params.IntervalAt(before, out, u) }}, nil
}

func (d *releasing) Vector(first, count int, variance float64) ([]queries.Part, error) {
	means := make([]thresholdout.Mean, count)
	for i := range means {
		means[i] = d.mean(d.holdout, first+i, 0, d.holdout.Units())
	}
	if d.params.AsNumbers(d.state, count, variance) {
		return queries.OneByOne(first, count, d.Number)
	}
	before := d.state
	outs, next, err := thresholdout.StepVector(d.params, d.state, means, variance, d.noise(first))
	if err != nil {
		return nil, err
	}
	d.state = next
	parts := make([]queries.Part, count)
	for i, o := range outs {
		parts[i] = queries.Part{Value: o.Value, Low: o.Interval.Low, High: o.Interval.High, Bounded: true,
			At: func(u float64) (float64, float64, bool) {
				return d.params.VectorIntervalAt(before, o, count, variance, u)
			}}
	}
	return parts, nil
}

func (d *releasing) Select(int, int, int64) (queries.Choice, error) { panic("no test selects") }

// testable are queries whose answer is one number, one of each form.
var testable = []string{
	`{"type":"mean","of":"x","range":[0,1023]}`,
	`{"type":"mean","of":"x","range":[0,800],"where":"w","null":300}`,
	`{"type":"mean","of":"x","range":[0,1023],"weights":{"of":"y","range":[0,2]}}`,
	`{"type":"fraction","of":"x > 512"}`,
	`{"type":"fraction","of":"x > 512","where":"y >= 0.0"}`,
	`{"type":"count","of":"w"}`,
	`{"type":"sum","of":"y","range":[-2,2],"where":"w"}`,
	`{"type":"variance","of":"y","range":[-3,3]}`,
	`{"type":"variance","of":"y","range":[-3,3],"where":"w"}`,
	`{"type":"stddev","of":"x","range":[0,1023]}`,
	`{"type":"covariance","x":"x","y":"y","range_x":[0,1023],"range_y":[-2,2]}`,
	`{"type":"covariance","x":"x","y":"y","range_x":[0,1023],"range_y":[-2,2],"form":"exact"}`,
	`{"type":"correlation","x":"x","y":"y","range_x":[0,1023],"range_y":[-2,2]}`,
	`{"type":"correlation","x":"y","y":"y","range_x":[-2,2],"range_y":[-1,2],"form":"exact"}`,
	`{"type":"median","of":"x","range":[0,1023],"resolution":1}`,
	`{"type":"quantile","of":"x","range":[0,1023],"p":0.5,"resolution":16,"null":500}`,
	`{"type":"quantile","of":"x","range":[0,1023],"p":0.25,"resolution":4,"where":"w"}`,
	`{"type":"quantile","of":"y","range":[-2,2],"p":0.9}`,
	`{"type":"difference","of":"x","range":[0,1023],"between":["y > 0.0"]}`,
	`{"type":"difference","of":"x > 500","between":["g == 'a'","g == 'b'"],"where":"y < 1.2"}`,
	`{"type":"accuracy","label":"w","prediction":"x > 500"}`,
	`{"type":"precision","label":"w","prediction":"y > 0.0"}`,
	`{"type":"f1","label":"w","prediction":"y > 0.0","where":"y < 1.2"}`,
	`{"type":"loss","loss":"absolute","label":"y","prediction":"x / 1000","range":[0,2]}`,
	`{"type":"rmse","label":"y","prediction":"x / 1000","max_error":2,"where":"w"}`,
	`{"type":"r2","label":"y","prediction":"y / 2","range":[-2,2]}`,
	`{"type":"auc","label":"y > 0.2","prediction":"x","edges":[200,500,700]}`,
	`{"type":"balanced_accuracy","label":"y > 0.2","prediction":"x > 500"}`,
}

// tested are tests of their own, of nulls that are true in every law; of the one with cells, the shares are put in.
var tested = []string{
	`{"type":"test","test":"two-sample","of":"x","range":[0,1023],"between":["y > 0.0","y < 0.0"]}`,
	`{"type":"test","test":"two-proportions","of":"x > 500","between":["w"]}`,
	`{"type":"test","test":"correlation","x":"x","y":"y","range_x":[0,1023],"range_y":[-2,2]}`,
	`{"type":"test","test":"slope","x":"y","y":"x","range_x":[-2,2],"range_y":[0,1023],"where":"w"}`,
	`{"type":"test","test":"goodness-of-fit","cells":["y < 0.0","y > 1.2"],"expected":[0.4,0.2]}`,
	`{"type":"test","test":"independence","rows":["y > 0.0"],"columns":["x > 600","x > 300"]}`,
	`{"type":"test","test":"proportion","of":"y > 0.0","equals":0.4}`,
	`{"type":"test","test":"mean","of":"y","range":[-2,2]}`,
}

// leveled are guarantees of every mechanism whose answers can be read at other levels. A search cannot be asked in rounds.
func leveled(t testing.TB, confidence float64) map[string]thresholdout.Guarantee {
	t.Helper()
	all := map[string]thresholdout.Guarantee{}
	for name, p := range map[string]thresholdout.Spec{
		"gaussian":              {Mechanism: thresholdout.Gaussian, N: 3000, Questions: 20},
		"gaussian, constant":    {Mechanism: thresholdout.Gaussian, N: 3000, Questions: 20, Sigma: 0.01},
		"gaussian, rounds":      {Mechanism: thresholdout.Gaussian, N: 3000, Questions: 30, Rounds: 2},
		"split":                 {Mechanism: thresholdout.Split, N: 6000, Questions: 12},
		"guess_and_check":       {Mechanism: thresholdout.GuessAndCheck, N: 3000, Training: 1000, Questions: 30, Tokens: 30},
		"guess_and_check, few":  {Mechanism: thresholdout.GuessAndCheck, N: 3000, Training: 60, Questions: 30, Tokens: 30},
		"thresholdout":          {Mechanism: thresholdout.Thresholdout, N: 3000, Training: 1000, Questions: 30, Tokens: 30},
		"thresholdout, laplace": {Mechanism: thresholdout.Thresholdout, Form: thresholdout.FormLaplace, N: 40_000, Training: 2000, Questions: 20, Tokens: 20},
	} {
		p.Confidence = confidence
		var err error
		if all[name], err = thresholdout.Plan(p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}

// read is what one test came to, with the population's means of what was released.
type read struct {
	plan    *queries.Plan
	outcome queries.Outcome
	targets []float64
	value   float64 // the true answer
	answer  queries.Result
}

// test asks a query in a new holdout of n rows of the law.
func (l law) test(t *testing.T, p thresholdout.Guarantee, r *rand.Rand, tilt float64, body string) (read, bool) {
	t.Helper()
	q, err := queries.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := q.Compile(context.Background(), l.rows.Schema(), queries.Training(l))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	means, err := l.Means(context.Background(), plan.Functions)
	if err != nil {
		t.Fatal(err)
	}
	exactly, err := plan.Release(p.N, truth{means})
	if err != nil {
		t.Fatal(err)
	}
	said := plan.Combine(exactly)
	d := &releasing{params: p, seed: r.Uint64(), plan: plan, holdout: l.sample(r, p.N, tilt)}
	if p.UsesTraining() {
		d.training = l.sample(r, p.Training, tilt)
	}
	got := read{plan: plan}
	if got.outcome, err = plan.Release(p.N, d); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	got.outcome.Level = p.Level()
	for _, part := range got.outcome.Parts {
		got.targets = append(got.targets, means[part.Function])
	}
	if got.answer = plan.Combine(got.outcome); said.Value != nil {
		got.value = *said.Value
	}
	return got, said.Value != nil
}

// at is the answer as it is read at a level, and by how much the parts' sets hold all of their targets.
func (r read) at(t *testing.T, level float64) (queries.Result, float64) {
	t.Helper()
	o, inside := r.outcome, math.Inf(1)
	o.Parts = slices.Clone(o.Parts)
	for i := range o.Parts {
		low, high, ok := o.Parts[i].At(level)
		if !ok {
			t.Fatalf("no interval at %v", level)
		}
		o.Parts[i].Low, o.Parts[i].High = low, high
		if low > 0 { // an end of what is possible is no end of a set
			inside = min(inside, r.targets[i]-low)
		}
		if high < 1 {
			inside = min(inside, high-r.targets[i])
		}
	}
	return r.plan.Combine(o), inside
}

// room is more than what the grid's rounding moves.
const room = 1e-7

// TestLevelsAreAboutTheSameTargets: for every query form, under every mechanism with levels: at any level at which all parts' sets hold their targets, the
// answer's interval holds the true answer and lies within the intervals of all smaller levels; and a true null has no p-value at which they all hold.
// These are implications, not frequencies: there is no false alarm. A search whose rungs are told anew at each level, by the sides that the parts have at that level,
// attributes released means to rungs that were not asked, and fails in most of the draws.
func TestLevelsAreAboutTheSameTargets(t *testing.T) {
	levels := []float64{1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999}
	r := rand.New(rand.NewPCG(3, 1))
	tests, rejected := 0, 0
	for _, confidence := range []float64{0.5, 0.95, 0.999999} {
		mechanisms := leveled(t, confidence)
		for _, name := range slices.Sorted(maps.Keys(mechanisms)) { // in one order, for they draw from one source
			p, l := mechanisms[name], drawLaw(r)
			for _, query := range slices.Concat(testable, tested) {
				body := query
				if !strings.Contains(query, `"type":"test"`) {
					body = `{"type":"test","test":"value","query":` + query + `,"equals":0}`
				}
				if p.Rounds > 0 && (strings.Contains(body, `"median"`) || strings.Contains(body, `"quantile"`)) {
					continue
				}
				got, defined := l.test(t, p, r, []float64{0, 1, 4}[r.IntN(3)], body)
				if !defined {
					t.Fatalf("%s has no true answer", body)
				}
				var last queries.Result
				for i, level := range levels {
					at, inside := got.at(t, level)
					if at.Low == nil {
						t.Fatalf("%s, %s at %v: no interval", name, body, level)
					}
					slack := 1e-6 * max(1, math.Abs(got.value))
					if inside > room && (*at.Low > got.value+slack || *at.High < got.value-slack) {
						t.Errorf("%s (%v), %s at %v: [%v, %v] misses %v, and no part misses", name, confidence, body, level, *at.Low, *at.High, got.value)
					}
					if i > 0 && inside > room && (*at.Low < *last.Low-slack || *at.High > *last.High+slack) {
						t.Errorf("%s (%v), %s: [%v, %v] at %v, not within [%v, %v] at %v", name, confidence, body, *at.Low, *at.High, level, *last.Low, *last.High, levels[i-1])
					}
					last = at
				}
				// The same outcome, with a true null.
				null := got
				if query != body {
					null.plan = compileTest(t, l, fmt.Sprintf(`{"type":"test","test":"value","query":%s,"equals":%v}`, query, got.value))
					null.answer = null.plan.Combine(got.outcome)
				}
				if null.answer.PValue == nil {
					t.Fatalf("%s, %s: no p-value", name, body)
				}
				tests++
				if p := *null.answer.PValue; p < 1 {
					rejected++
					if _, inside := null.at(t, p); inside > room {
						t.Errorf("%s (%v), %s: a true null has p = %v, and no part misses there", name, confidence, body, p)
					}
				}
			}
		}
	}
	t.Logf("%d tests of true nulls, %d with a p-value below 1", tests, rejected)
	if rejected < 20 {
		t.Errorf("only %d of %d p-values are below 1: the test shows little", rejected, tests)
	}
}

func compileTest(t *testing.T, l law, body string) *queries.Plan {
	t.Helper()
	q, err := queries.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := q.Compile(context.Background(), l.rows.Schema(), queries.Training(l))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestPValuesOfSearches: the median of a law is what a test says it is. Over new holdouts its p-value is at most u in no more than a share u of them, also for u far
// above 1-confidence (false alarm 1e-9 each, fixed seeds). Where the rungs were told anew at each level, p <= 0.05 was in about half of the runs of the first
// mechanism: the power against that is more than 1 - 1e-9.
func TestPValuesOfSearches(t *testing.T) {
	const runs = 120
	for name, p := range leveled(t, 0.999999) {
		if p.Rounds > 0 {
			continue
		}
		r := rand.New(rand.NewPCG(11, uint64(p.Questions)))
		below := map[float64]int{}
		for range runs {
			l := steps(r)
			got, _ := l.test(t, p, r, 0, `{"type":"test","test":"value","query":{"type":"median","of":"x","range":[0,1023],"resolution":1},"equals":600}`)
			if got.value != 600 {
				t.Fatalf("the median is %v", got.value)
			}
			for _, u := range []float64{1e-4, 0.01, 0.05, 0.2, 0.5} {
				if *got.answer.PValue <= u {
					below[u]++
				}
			}
		}
		for u, count := range below {
			if err := stattest.AtMost(count, runs, u, 1e-9); err != nil {
				t.Errorf("%s: p <= %v: %v", name, u, err)
			}
		}
	}
}

// steps is a law whose distribution function comes near 1/2 at the rungs that a search for its median, 600, asks first.
func steps(r *rand.Rand) law {
	gap := 0.02 + 0.1*r.Float64()
	var x []float64
	for i := range 500 {
		share := (float64(i) + 0.5) / 500
		switch {
		case share < 0.25:
			x = append(x, 100)
		case share < 0.5-gap:
			x = append(x, 400)
		case share < 0.5+gap:
			x = append(x, 600)
		default:
			x = append(x, 900)
		}
	}
	n := len(x)
	rows := columnsOf(x, make([]float64, n), make([]uint8, n), slices.Repeat([]string{"a"}, n))
	return law{rows, inUnits(rows)}
}
