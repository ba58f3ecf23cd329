package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// table has rows of an age, a city and a truth value, each of which some rows have not.
func table(t testing.TB, rows int) *dataset.Table {
	t.Helper()
	ages, cities, members := make([]float64, rows), make([]string, rows), make([]uint8, rows)
	for i := range rows {
		ages[i], cities[i], members[i] = float64(18+i%73), []string{"Rome", "Oslo", "Lima"}[i%3], uint8(i%3)
		if i%10 == 7 {
			ages[i] = math.NaN()
		}
	}
	return of(t, ages, cities, members)
}

func of(t testing.TB, ages []float64, cities []string, members []uint8) *dataset.Table {
	t.Helper()
	out, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "age", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: ages},
		dataset.NewText("city", cities, func(row int) bool { return cities[row] == "" }),
		dataset.Column{Field: dataset.Field{Name: "member", Kind: dataset.Bool, Source: "BOOLEAN"}, Bools: members},
	)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// everything asks for all that there is.
func everything(epsilon Millionths) Request {
	return Request{Epsilon: epsilon, Columns: []ColumnRequest{
		{Name: "age", Low: new(20.), High: new(80.), Quantiles: []float64{.5}, Edges: []float64{30, 60}}, {Name: "city", Texts: []string{"Oslo", "Rome"}}, {Name: "member"}}}
}

func mustOf(t testing.TB, d *dataset.Table, owners []unit.Owner, r Request, s *noise.Stream) *Result {
	t.Helper()
	out, err := Of(t.Context(), d, owners, r.Sorted(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// misses counts by name how often an interval does not hold the truth.
type misses map[string]int

func (m misses) look(name string, i Statistic, truth float64) {
	if !(i.Low <= truth && truth <= i.High) {
		m[name]++
	}
	if !(i.Low <= i.Value && i.Value <= i.High) {
		m["a value outside of its interval"]++
	}
}

// TestIntervalsHold: each interval misses no more often than it says, for rows and for units of several, at large and small epsilons. A private release is
// refused with probability at most 1e-6 for each of its intervals; it would notice noise that is wider than its interval says.
func TestIntervalsHold(t *testing.T) {
	const rows, runs = 600, 60
	d := table(t, rows)
	owners := make([]unit.Owner, rows)
	for i := range owners {
		owners[i].User = uint64(i / 3) // three rows of each
	}
	for _, c := range []struct {
		name    string
		epsilon Millionths
		owners  []unit.Owner
		most    int
	}{{"rows", 8_000_000, nil, 0}, {"rows, little epsilon", 300_000, nil, 0}, {"units, all rows", 8_000_000, owners, 3}} {
		s, missed := noise.Seeded(41), misses{}
		for range runs {
			r := everything(c.epsilon)
			r.RowsPerUnit = c.most
			out := mustOf(t, d, c.owners, r, s)
			all, units := float64(rows), float64(rows)
			if c.owners != nil {
				units = rows / 3
				missed.look("rows", *out.Rows, all)
			}
			missed.look("units", out.Units, units)
			age, city, member := out.Columns[0], out.Columns[1], out.Columns[2]
			var known []float64
			below := [3]float64{}
			for _, x := range d.Column(0).Numbers {
				if x == x {
					known = append(known, min(max(x, 20), 80))
					switch {
					case x < 30:
						below[0]++
					case x < 60:
						below[1]++
					default:
						below[2]++
					}
				}
			}
			mean := 0.
			for _, x := range known {
				mean += x / float64(len(known))
			}
			slices.Sort(known)
			missed.look("nulls", age.Nulls, 1-float64(len(known))/all)
			missed.look("mean", *age.Mean, mean)
			missed.look("median", age.Quantiles[0].Statistic, known[len(known)/2])
			for i, n := range below {
				missed.look("a cell of age", age.Cells[i].Count, n)
				missed.look("a share of age", age.Cells[i].Share, n/all)
			}
			for _, cell := range append(city.Cells, member.Cells...) {
				missed.look("a third", cell.Share, 1./3)
			}
			missed.look("nulls of the truth values", member.Nulls, 1./3)
		}
		for name, n := range missed {
			trials := runs
			switch name {
			case "a value outside of its interval":
				t.Errorf("%s: %d values are outside of their intervals", c.name, n)
				continue
			case "a cell of age", "a share of age":
				trials *= 3
			case "a third":
				trials *= 5
			}
			if err := stattest.AtMost(n, trials, 1-Confidence, 1e-6); err != nil {
				t.Errorf("%s: %s: %v", c.name, name, err)
			}
		}
	}
}

// attack plays a release of two tables that differ in one unit.
func attack(t *testing.T, runs int, epsilon Millionths, claim float64, r func(Millionths) Request, without, with *dataset.Table, ownersWithout, ownersWith []unit.Owner, said func(*Result) float64) audit.Report {
	t.Helper()
	play := func(d *dataset.Table, owners []unit.Owner) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 {
			out, err := Of(t.Context(), d, owners, r(epsilon).Sorted(), s)
			if err != nil {
				t.Fatal(err)
			}
			return said(out)
		}
	}
	report, err := audit.Numbers(audit.Claim{Epsilon: claim}, audit.Settings{Runs: runs, Confidence: 1 - 1e-6}, noise.Seeded(5), play(without, ownersWithout), play(with, ownersWith))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestAudit: the counts that are released of tables that differ in one unit do not refute their epsilon; the attack finds most of it, and it refutes the same release
// with half of the noise. A private release is refuted with probability at most 1e-6 for each attack.
func TestAudit(t *testing.T) {
	// A unit of four rows of one city, all of which may be kept; the other unit is there in both.
	one := of(t, []float64{50}, []string{"Rome"}, []uint8{1})
	five := of(t, []float64{50, 90, 90, 90, 90}, []string{"Rome", "Oslo", "Oslo", "Oslo", "Oslo"}, []uint8{1, 0, 0, 0, 0})
	owners := []unit.Owner{{User: 1}, {User: 2}, {User: 2}, {User: 2}, {User: 2}}
	cells := func(e Millionths) Request {
		return Request{Epsilon: e, RowsPerUnit: 4, Columns: []ColumnRequest{{Name: "city", Texts: []string{"Oslo"}}}}
	}
	// What all parts say of the unit together, each by as much as its noise is worth.
	together := func(out *Result) float64 {
		return out.Units.Value + (out.Rows.Value+out.Columns[0].Cells[0].Count.Value)/4
	}
	if r := attack(t, 20_000, 2_000_000, 2, cells, one, five, owners[:1], owners, together); r.Refuted() || r.Epsilon < .8 {
		t.Errorf("units: %v; want a bound from 0.8", r)
	}
	if r := attack(t, 20_000, 4_000_000, 2, cells, one, five, owners[:1], owners, together); !r.Refuted() {
		t.Errorf("units, half of the noise: %v; that is not 2-private", r)
	}
}

// TestRowsOfUnits: a unit counts with as many rows as it may, and no unit with more; which rows were kept is no matter of their number.
func TestRowsOfUnits(t *testing.T) {
	const rows = 900
	d, owners := table(t, rows), make([]unit.Owner, rows)
	for i := range owners[:600] {
		owners[i].User = 1 // one of 600 rows
	}
	for i := 600; i < rows; i++ {
		owners[i].User = uint64(i)
	}
	r := Request{Epsilon: MaxEpsilon, RowsPerUnit: 1, Columns: []ColumnRequest{{Name: "member"}}}
	out := mustOf(t, d, owners, r, noise.Seeded(1))
	if out.Rows != nil || math.Abs(out.Units.Value-301) > 20 {
		t.Errorf("one row of a unit: %+v rows, %+v units, want 301 units", out.Rows, out.Units)
	}
	r.RowsPerUnit = 100
	out = mustOf(t, d, owners, r, noise.Seeded(1))
	if out.Rows == nil || math.Abs(out.Rows.Value-400) > 300 || out.Rows.High < 400 || math.Abs(out.Units.Value-301) > 20 {
		t.Errorf("100 rows of a unit: %+v rows, %+v units, want about 400 of 301", out.Rows, out.Units)
	}
}

// TestShares: an epsilon is shared among exactly the parts that are released, so that they add up to it.
func TestShares(t *testing.T) {
	r := everything(1_000_000)
	if n := r.Parts(true); n != 1+3+2 {
		t.Errorf("%d parts", n)
	}
	if n := (Request{RowsPerUnit: 2, Columns: r.Columns}).Parts(false); n != 1+1+3+2 {
		t.Errorf("%d parts of units of rows", n)
	}
	for epsilon := MinEpsilon; epsilon <= MaxEpsilon; epsilon = epsilon*3 + 1 {
		r.Epsilon = epsilon
		if e := r.each(true); e.Num*uint64(r.Parts(true))*perOne != uint64(epsilon)*e.Den {
			t.Errorf("%d parts of %v have %d/%d each", r.Parts(true), epsilon, e.Num, e.Den)
		}
	}
}

// TestOverspent: a release whose parts spend more than its epsilon is not made, and one that spends all of it is.
func TestOverspent(t *testing.T) {
	for epsilon := MinEpsilon; epsilon <= MaxEpsilon; epsilon = epsilon*3 + 1 {
		r := everything(epsilon)
		k := &maker{each: estimate.Laplace{Epsilon: r.each(true)}, account: account.Basic{}}
		for range r.Parts(true) {
			if _, err := k.pay(unit.Protection{Unit: unit.Row{}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.within(epsilon); err != nil {
			t.Error(err)
		}
		if _, err := k.pay(unit.Protection{Unit: unit.Row{}}); err != nil || !errors.Is(k.within(epsilon), errOverspent) {
			t.Errorf("a part too many of %v: %v %v", epsilon.Float(), err, k.within(epsilon))
		}
	}
}

// TestCanonical: requests for the same have one text, whatever their order; others have other ones.
func TestCanonical(t *testing.T) {
	r := everything(1_500_000)
	turned := Request{Epsilon: r.Epsilon, Columns: slices.Clone(r.Columns)}
	slices.Reverse(turned.Columns)
	turned.Columns[1].Texts = []string{"Rome", "Oslo"}
	turned.Columns[2].Quantiles, r.Columns[0].Quantiles = []float64{.25, .5, .75}, nil
	if a, b := r.Canonical(), turned.Canonical(); !bytes.Equal(a, b) {
		t.Errorf("%s\n%s", a, b)
	}
	if !slices.Equal(turned.Columns[1].Texts, []string{"Rome", "Oslo"}) {
		t.Error("the caller's request was changed")
	}
	turned.Columns[1].Texts = []string{"Rome"}
	if bytes.Equal(r.Canonical(), turned.Canonical()) {
		t.Error("other texts, and the same canonical form")
	}
	a, err := json.Marshal(mustOf(t, table(t, 50), nil, r, noise.Seeded(2)))
	b, _ := json.Marshal(mustOf(t, table(t, 50), nil, r, noise.Seeded(2)))
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("one stream, two releases: %s %s (%v)", a, b, err)
	}
}

// TestSameRequests: what asks for the same is one request, however it is written: an empty list or none, the sign of a zero, the order of columns and texts, defaults that are named.
func TestSameRequests(t *testing.T) {
	minus := math.Copysign(0, -1)
	for name, same := range map[string][2]string{
		"no columns":      {`{}`, `{"columns":[]}`},
		"columns null":    {`{"columns":null}`, `{"columns":[]}`},
		"texts":           {`{"columns":[{"name":"city","texts":[]}]}`, `{"columns":[{"name":"city"}]}`},
		"texts null":      {`{"columns":[{"name":"city","texts":null}]}`, `{"columns":[{"name":"city"}]}`},
		"edges":           {`{"columns":[{"name":"age","edges":[]}]}`, `{"columns":[{"name":"age"}]}`},
		"quantiles":       {`{"columns":[{"name":"age","low":0,"high":1,"quantiles":[]}]}`, `{"columns":[{"name":"age","low":0,"high":1,"quantiles":[0.25,0.5,0.75]}]}`},
		"zeros of bounds": {`{"columns":[{"name":"age","low":-0.0,"high":1}]}`, `{"columns":[{"name":"age","low":0,"high":1.0}]}`},
		"zeros of edges":  {`{"columns":[{"name":"age","edges":[-1,-0,2]}]}`, `{"columns":[{"name":"age","edges":[-1,0,2]}]}`},
		"order":           {`{"columns":[{"name":"city","texts":["b","a"]},{"name":"age"}]}`, `{"columns":[{"name":"age"},{"name":"city","texts":["a","b"]}]}`},
	} {
		var texts [2][]byte
		for i, text := range same {
			r := Request{Epsilon: 1_000_000}
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatal(err)
			}
			texts[i] = r.Canonical()
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Errorf("%s: %s and %s are two requests", name, texts[0], texts[1])
		}
	}
	edges := []float64{minus}
	_ = Request{Columns: []ColumnRequest{{Name: "age", Edges: edges}}}.Sorted()
	if !math.Signbit(edges[0]) {
		t.Error("the caller's request was changed")
	}
}

// TestLegalIsReleased: what Check takes is released, whatever the rows: no epsilon, no bounds and no number of rows of a unit fail behind it; and no result has more bytes than was said before. It would notice
// a setting that dp/estimate refuses and Check does not.
func TestLegalIsReleased(t *testing.T) {
	d := table(t, 60)
	fields := []dataset.Field{{Name: "age", Kind: dataset.Number}, {Name: "city", Kind: dataset.Text}, {Name: "member", Kind: dataset.Bool}}
	owners := make([]unit.Owner, d.Rows())
	for i := range owners {
		owners[i].User = uint64(i / 5)
	}
	bounds := []float64{-1e100, -1e30, -1, -1e-300, -5e-324, 0, 5e-324, 1e-323, 1e-300, 1, math.Nextafter(1, 2), 1 << 40, 1e30, 1e100}
	taken, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := Request{Epsilon: Millionths(rapid.SampledFrom([]int{1_000, 1_001, 333_333, 1_000_000, 20_000_000}).Draw(t, "epsilon"))}
		of := owners
		if rapid.Bool().Draw(t, "single") {
			of = nil
		} else {
			r.RowsPerUnit = rapid.SampledFrom([]int{1, 2, 100, MaxRowsPerUnit}).Draw(t, "rows")
		}
		low := rapid.IntRange(0, len(bounds)-2).Draw(t, "low")
		high := rapid.IntRange(low+1, len(bounds)-1).Draw(t, "high")
		age := ColumnRequest{Name: "age", Low: &bounds[low], High: &bounds[high], Quantiles: []float64{MinRank, .5, 1 - MinRank}, Edges: bounds[low : high+1]}
		texts := []string{strings.Repeat("\x00", rapid.IntRange(0, 9).Draw(t, "escaped")), "Rome"}
		r.Columns = []ColumnRequest{age, {Name: "city", Texts: texts}, {Name: "member"}}
		if err := r.Check(fields, of == nil); err != nil {
			refused++
			return
		}
		taken++
		out, err := Of(context.Background(), d, of, r.Sorted(), noise.Seeded(7))
		if err != nil {
			t.Fatalf("taken, and then: %v", err)
		}
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatalf("taken, and cannot be shown: %v", err)
		}
		if most := 2*statisticBytes + r.Columns[0].resultBytes() + r.Columns[1].resultBytes() + r.Columns[2].resultBytes(); len(text) > most {
			t.Fatalf("%d bytes, where at most %d were said", len(text), most)
		}
	})
	if taken == 0 || refused == 0 {
		t.Errorf("%d taken, %d refused: no test of both", taken, refused)
	}
}

// TestTooMuch: what would take long or be large is refused before a row is read, and the work that is said grows with what is asked for.
func TestTooMuch(t *testing.T) {
	var fields []dataset.Field
	columns := make([]ColumnRequest, 80)
	for i := range columns {
		name := fmt.Sprint("c", i)
		fields = append(fields, dataset.Field{Name: name, Kind: dataset.Number}, dataset.Field{Name: "t" + name, Kind: dataset.Text})
		columns[i] = ColumnRequest{Name: name, Low: new(0.), High: new(1.)}
		for rank := range 99 {
			columns[i].Quantiles = append(columns[i].Quantiles, float64(rank+1)/100)
		}
	}
	var wrong *RequestError
	if err := (Request{Epsilon: 1e6, Columns: columns}).Check(fields, true); !errors.As(err, &wrong) || wrong.Pointer != "/columns/6/quantiles" {
		t.Errorf("%d ranks of %d columns: %v", 99, len(columns), err)
	}
	long := make([]ColumnRequest, 3)
	for i := range long {
		long[i].Name = fmt.Sprint("tc", i)
		for j := range MaxCells {
			long[i].Texts = append(long[i].Texts, fmt.Sprint(j))
		}
	}
	if err := (Request{Epsilon: 1e6, Columns: long}).Check(fields, true); !errors.As(err, &wrong) || wrong.Pointer != "/columns/1" {
		t.Errorf("%d texts of 3 columns: %v", MaxCells, err)
	}
	work := func(columns ...ColumnRequest) int64 {
		steps, _ := Request{Epsilon: 1e6, Columns: columns}.Work(1e6, true)
		return steps
	}
	plain, bounded := ColumnRequest{Name: "c0"}, ColumnRequest{Name: "c0", Low: new(0.), High: new(1.)}
	if a, b, c, d := work(), work(plain), work(bounded), work(columns[0]); !(a < b && b < c && c+96*rankSteps <= d) || work(plain, plain) <= b+1e6 {
		t.Errorf("the work of nothing, a column, with bounds, with 99 ranks: %d, %d, %d, %d", a, b, c, d)
	}
	stopped, cancel := context.WithCancel(t.Context())
	d, s := table(t, 100), noise.Seeded(1)
	request := everything(1e6)
	k := 0
	q := estimate.Quantiles{Guard: estimate.Guard{Protection: unit.Protection{Unit: unit.Row{}, Neighbours: unit.AddedOrRemoved}, Noise: estimate.Laplace{Epsilon: noise.Eps(1)}}, Low: 0, High: 1,
		Stop: func() error { k++; return stopped.Err() }}
	if _, err := q.Intervals(estimate.Table{}, []float64{.1, .2, .3}, s); err != nil || k != 3 {
		t.Errorf("asked %d times for 3 ranks: %v", k, err)
	}
	cancel()
	if _, err := q.Intervals(estimate.Table{}, []float64{.1, .2, .3}, s); !errors.Is(err, context.Canceled) || k != 4 {
		t.Errorf("after the end, at the %dth look: %v", k, err)
	}
	if _, err := Of(stopped, d, nil, request.Sorted(), s); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
}

// TestNothing: a table without rows is released as any other.
func TestNothing(t *testing.T) {
	out := mustOf(t, of(t, nil, nil, nil), nil, everything(1_000_000), noise.Seeded(3))
	if out.Units.Low > 0 || out.Columns[0].Nulls.High != 1 {
		t.Errorf("%+v", out)
	}
	empty := make([]float64, 4000) // a column without a value: its mean and quantiles say nothing, and its share of nulls says so
	for i := range empty {
		empty[i] = math.NaN()
	}
	out = mustOf(t, of(t, empty, make([]string, 4000), make([]uint8, 4000)), nil, everything(8_000_000), noise.Seeded(3))
	if age := out.Columns[0]; age.Nulls.Low < .9 || age.Mean.High-age.Mean.Low < 1 || math.IsNaN(age.Mean.Value) {
		t.Errorf("a column without a value: %+v, mean %+v", age, age.Mean)
	}
}

// TestRefused: what is wrong with a request is said with its place, and no row is looked at.
func TestRefused(t *testing.T) {
	fields := []dataset.Field{{Name: "age", Kind: dataset.Number}, {Name: "city", Kind: dataset.Text}, {Name: "since", Kind: dataset.Time}}
	for _, c := range []struct {
		pointer string
		request Request
	}{
		{"/epsilon", Request{Epsilon: MinEpsilon - 1}},
		{"/epsilon", Request{Epsilon: MaxEpsilon + 1}},
		{"/rows_per_unit", Request{Epsilon: 1e6, RowsPerUnit: 1}},
		{"/columns", Request{Epsilon: 1e6, Columns: make([]ColumnRequest, MaxColumns+1)}},
		{"/columns/0/name", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "agee"}}}},
		{"/columns/1/name", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age"}, {Name: "age"}}}},
		{"/columns/0/low", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Low: new(1.)}}}},
		{"/columns/0/low", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Low: new(1.), High: new(1.)}}}},
		{"/columns/0/low", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Low: new(1.), High: new(math.Inf(1))}}}},
		{"/columns/0/low", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Low: new(1.), High: new(1e101)}}}},
		{"/columns/0/low", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "since", Low: new(1.), High: new(2.)}}}},
		{"/columns/0/edges", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "city", Edges: []float64{1}}}}},
		{"/columns/0/edges/1", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Edges: []float64{1, 1}}}}},
		{"/columns/0/edges/0", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Edges: []float64{math.NaN()}}}}},
		{"/columns/0/texts", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Texts: []string{"1"}}}}},
		{"/columns/0/texts/1", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "city", Texts: []string{"a", "a"}}}}},
		{"/columns/0/quantiles", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Quantiles: []float64{.5}}}}},
		{"/columns/0/quantiles/1", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Low: new(1.), High: new(2.), Quantiles: []float64{.5, .5}}}}},
		{"/columns/0/quantiles/0", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Low: new(1.), High: new(2.), Quantiles: []float64{.004}}}}},
		{"/columns/0/quantiles/0", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Low: new(1.), High: new(2.), Quantiles: []float64{.996}}}}},
		{"/columns/0", Request{Epsilon: 1e6, Columns: []ColumnRequest{{Name: "age", Low: new(0.), High: new(5e-324)}}}},
	} {
		err := c.request.Check(fields, true)
		var wrong *RequestError
		if !errors.As(err, &wrong) || !errors.Is(err, ErrRequest) || wrong.Pointer != c.pointer {
			t.Errorf("%+v: %v, want one at %s", c.request, err, c.pointer)
		}
	}
	for _, most := range []int{0, -1, MaxRowsPerUnit + 1} {
		if err := (Request{Epsilon: 1e6, RowsPerUnit: most}).Check(fields, false); err == nil {
			t.Errorf("%d rows of a unit are taken", most)
		}
	}
	many, named := make([]ColumnRequest, MaxColumns), make([]dataset.Field, MaxColumns)
	for i := range many {
		many[i] = ColumnRequest{Name: fmt.Sprint(i), Low: new(0.), High: new(1.)}
		named[i] = dataset.Field{Name: many[i].Name, Kind: dataset.Number}
	}
	if err := (Request{Epsilon: MinEpsilon, RowsPerUnit: MaxRowsPerUnit, Columns: many}).Check(named, false); !errors.Is(err, ErrRequest) {
		t.Errorf("the least epsilon for the most rows of a unit and the most columns: %v", err)
	}
	for x, ok := range map[float64]bool{1: true, .1: true, .000999: false, 20: true, 20.1: false, 1.0000001: false, math.NaN(): false, math.Inf(1): false, -1: false} {
		if _, got := EpsilonOf(x); got != ok {
			t.Errorf("epsilon %v: %v", x, got)
		}
	}
}
