package engine

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn"
)

// people is a table of ages 18 to 90, incomes around 50,000 and one of 50 towns, a hundredth of each null. bench/compare.py
// makes columns of the same shape.
func people(rows int) *dataset.Table {
	r := rand.New(rand.NewPCG(1, 2))
	age, income, town := make([]float64, rows), make([]float64, rows), make([]uint32, rows)
	towns := make([]string, 50)
	for i := range towns {
		towns[i] = "town " + string(rune('A'+i))
	}
	for i := range rows {
		age[i] = math.Floor(18 + 72*r.Float64())
		income[i] = 50000 * math.Exp(0.5*r.NormFloat64())
		town[i] = 1 + r.Uint32N(50)
		switch r.IntN(100) {
		case 0:
			age[i] = math.NaN()
		case 1:
			income[i] = math.NaN()
		case 2:
			town[i] = 0
		}
	}
	table, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "age", Kind: dataset.Number}, Numbers: age},
		dataset.Column{Field: dataset.Field{Name: "income", Kind: dataset.Number}, Numbers: income},
		dataset.Column{Field: dataset.Field{Name: "town", Kind: dataset.Text}, Codes: town, Dictionary: dataset.NewDictionary(towns...)})
	if err != nil {
		panic(err)
	}
	return table
}

const million = 1_000_000

// run reports the time of a row for one query, and the bytes of distinct columns that a second of one query's share reads.
func run(b *testing.B, functions []rowfn.Function, offsets []uint32, workers, bytesPerRow int) {
	runOn(b, people(million), functions, offsets, workers, bytesPerRow)
}

func runOn(b *testing.B, table *dataset.Table, functions []rowfn.Function, offsets []uint32, workers, bytesPerRow int) {
	s, err := NewTable(table, offsets, 100)
	if err != nil {
		b.Fatal(err)
	}
	s.workers = workers
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Sums(context.Background(), functions, 0, s.Units()); err != nil {
			b.Fatal(err)
		}
	}
	perRow := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / million / float64(len(functions))
	b.ReportMetric(perRow, "ns/row")
	b.ReportMetric(float64(bytesPerRow)/perRow, "GB/s")
}

// On one thread, as compare.py runs DuckDB and NumPy. In a batch a row's 16 bytes count for each of its queries.
func BenchmarkPredicate1M(b *testing.B)    { run(b, batch(1), nil, 1, 16) }
func BenchmarkBatch100x1M(b *testing.B)    { run(b, batch(100), nil, 1, 16) }
func BenchmarkParallel100x1M(b *testing.B) { run(b, batch(100), nil, runtime.GOMAXPROCS(0), 16) }

// BenchmarkDistinct100x1M has nothing that queries could share but the columns: every query scales both.
func BenchmarkDistinct100x1M(b *testing.B) {
	functions := make([]rowfn.Function, 100)
	for i := range functions {
		older := call(rowfn.OpGreater, rowfn.Condition, call(rowfn.OpMul, rowfn.Number, number("age"), constant(1/(1+float64(i)))), constant(20))
		poorer := call(rowfn.OpLess, rowfn.Condition, call(rowfn.OpMul, rowfn.Number, number("income"), constant(0.5/(1+float64(i)))), constant(30000))
		functions[i] = rowfn.Function{Lo: 0, Hi: 1, Value: call(rowfn.OpAnd, rowfn.Condition, older, poorer)}
	}
	run(b, functions, nil, 1, 16)
}

// BenchmarkCalendar1M has one part of a time, then two in a condition.
func BenchmarkCalendar1M(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	at := make([]float64, million)
	for i := range at {
		at[i] = float64(r.IntN(10*365)) * 86400e6 * (1 + r.Float64())
	}
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "at", Kind: dataset.Time}, Numbers: at})
	if err != nil {
		b.Fatal(err)
	}
	when := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Time, Text: "at"}
	part := func(o rowfn.Op, is float64) *rowfn.Node {
		return call(rowfn.OpEq, rowfn.Condition, call(o, rowfn.Number, when), constant(is))
	}
	for name, value := range map[string]*rowfn.Node{"hours": call(rowfn.OpGreaterEq, rowfn.Condition, call(rowfn.OpHours, rowfn.Number, when), constant(18)),
		"month and weekday": call(rowfn.OpAnd, rowfn.Condition, part(rowfn.OpMonth, 1), part(rowfn.OpDayOfWeek, 0))} {
		b.Run(name, func(b *testing.B) { runOn(b, table, []rowfn.Function{{Lo: 0, Hi: 1, Value: value}}, nil, 1, 8) })
	}
}

func BenchmarkMean1M(b *testing.B) {
	run(b, []rowfn.Function{{Value: number("income"), Lo: 0, Hi: 200000}}, nil, 1, 8)
}

func BenchmarkUnits1M(b *testing.B) {
	offsets := []uint32{0}
	r := rand.New(rand.NewPCG(3, 4))
	for at := uint32(0); at < million; {
		at = min(million, at+1+r.Uint32N(19))
		offsets = append(offsets, at)
	}
	run(b, batch(1), offsets, 1, 16)
}

func BenchmarkText1M(b *testing.B) {
	town := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Text, Text: "town"}
	name := &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: "town C"}
	run(b, []rowfn.Function{{Lo: 0, Hi: 1, Value: call(rowfn.OpEq, rowfn.Condition, town, name)}}, nil, 1, 4)
}

func BenchmarkTextContains1M(b *testing.B) {
	town := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Text, Text: "town"}
	name := &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: "n C"}
	run(b, []rowfn.Function{{Lo: 0, Hi: 1, Value: call(rowfn.OpContains, rowfn.Condition, town, name)}}, nil, 1, 4)
}

// BenchmarkScreen10k is one screen of 10,000 features against a label over 10,000 rows, on all cores; bench/compare.py has
// NumPy's X.T @ y of the same size.
func BenchmarkScreen10k(b *testing.B) {
	const features, rows = 10_000, 10_000
	r := rand.New(rand.NewPCG(1, 2))
	columns := make([]dataset.Column, features+1)
	for j := range columns {
		x := make([]float64, rows)
		for i := range x {
			x[i] = 8*r.Float64() - 4
		}
		columns[j] = dataset.Column{Field: dataset.Field{Name: fmt.Sprintf("f%05d", j), Kind: dataset.Number}, Numbers: x}
	}
	columns[features].Name = "y"
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		b.Fatal(err)
	}
	s, err := NewTable(table, nil, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, statistic := range []string{"product", "correlation"} {
		b.Run(statistic, func(b *testing.B) {
			q, err := queries.Parse([]byte(`{"type":"screen","label":"y > 0.0","features":"f*","statistic":"` + statistic + `","range":[-4,4]}`))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				plan, err := q.Compile(context.Background(), table.Schema(), queries.Training(trainingTable{s}))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Sums(context.Background(), plan.Functions, 0, s.Units()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/features/rows, "ns/value")
		})
	}
}

// trainingTable is a training part that is a table in memory.
type trainingTable struct{ *Table }

func (t trainingTable) Means(ctx context.Context, functions []rowfn.Function) ([]float64, error) {
	sums, err := t.Sums(ctx, functions, 0, t.Units())
	means := make([]float64, len(sums))
	for i, sum := range sums {
		means[i] = float64(sum) / float64(t.Units()*rowfn.One)
	}
	return means, err
}

func (trainingTable) Texts(string) []string { return nil }

// Column implements queries.TrainingPart: nothing is known.
func (trainingTable) Column(string) (queries.ColumnFacts, bool) { return queries.ColumnFacts{}, false }

// Numbers implements queries.TrainingPart.
func (trainingTable) Numbers(string, int) []float64 { return nil }
