package sourcetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// parts: what a part says of its columns is what its rows have, and a price is said for every batch.
func parts(t T, s *suite) {
	r := s.register(t, s.edgeRows(9, s.Rows, 4), sources.Keys{Columns: []string{"unit"}}, 10, 0.5, 0.5)
	p, want := s.open(t, r, 1, 3), r.parts[1]
	facts, err := p.Facts(t.Context())
	must(t, facts, err)
	fields := r.infos[1].Schema.Fields
	if len(facts) != len(fields) {
		t.Fatalf("facts of %d columns, there are %d", len(facts), len(fields))
	}
	for i, f := range fields {
		c, _ := want.rows.Lookup(f.Name)
		if expected := factsOf(c); facts[i] != expected && !(facts[i].Low > facts[i].High && expected.Low > expected.High && facts[i].Nulls == expected.Nulls) {
			t.Errorf("column %q: %+v, want %+v", f.Name, facts[i], expected)
		}
		distinct := distinctOf(c)
		for _, most := range []int{len(distinct), len(distinct) + 5} {
			column, ok, err := p.Distinct(t.Context(), f.Name, most)
			if err != nil || !ok || column.Kind != c.Kind || column.Len() != len(distinct) {
				t.Errorf("column %q: %d different values of kind %v, %v, %v; want %d of kind %v", f.Name, column.Len(), column.Kind, ok, err, len(distinct), c.Kind)
				continue
			}
			for row := range column.Len() {
				if cell(&column, row) != distinct[row] {
					t.Errorf("column %q: value %d is %s, want %s", f.Name, row, cell(&column, row), distinct[row])
				}
			}
		}
		if _, ok, err := p.Distinct(t.Context(), f.Name, len(distinct)-1); err != nil || ok {
			t.Errorf("column %q has more than %d values, and the source says %v, %v", f.Name, len(distinct)-1, ok, err)
		}
	}
	if _, _, err := p.Distinct(t.Context(), "no such column", 10); err == nil {
		t.Error("a column that is not there has values")
	}
	batch := rowfn.Batch{Functions: directed()}
	price, err := p.Price(batch)
	if err != nil || price.Pushed+price.Read != len(batch.Functions) || price.Pushed < 0 || price.Read < 0 || price.Scans < 1 || price.Seconds < 0 || price.Bytes < 0 {
		t.Errorf("the price of %d row functions is %+v, %v", len(batch.Functions), price, err)
	}
}

// factsOf are the facts of a column.
func factsOf(c *dataset.Column) sources.Facts {
	f := sources.Facts{Low: 1}
	for i := range c.Len() {
		if c.Null(i) {
			f.Nulls++
			if c.Kind == dataset.Number && dataset.Infinite(c.Numbers[i]) {
				f.Infinite++
			}
		} else if c.Kind == dataset.Number || c.Kind == dataset.Time {
			if f.Low > f.High {
				f.Low, f.High = c.Numbers[i], c.Numbers[i]
			}
			f.Low, f.High = min(f.Low, c.Numbers[i]), max(f.High, c.Numbers[i])
		}
	}
	if c.Kind == dataset.Text {
		f.Distinct = int64(len(distinctOf(c)))
	}
	if c.Kind == dataset.Text || c.Kind == dataset.Bool {
		f.Low = 0
	}
	return f
}

// distinctOf are the different values of a column in order: of numbers and times, false before true, and texts by their bytes.
func distinctOf(c *dataset.Column) []string {
	var values []string
	for _, row := range distinctRows(c) {
		values = append(values, cell(c, row))
	}
	return values
}

// distinctRows are rows with the different values of a column, in their order.
func distinctRows(c *dataset.Column) []int {
	rows := map[string]int{}
	for i := range c.Len() {
		if !c.Null(i) {
			rows[cell(c, i)] = i
		}
	}
	return slices.SortedFunc(maps.Values(rows), func(i, j int) int {
		switch c.Kind {
		case dataset.Text:
			return strings.Compare(c.Dictionary.Text(int(c.Codes[i])-1), c.Dictionary.Text(int(c.Codes[j])-1))
		case dataset.Bool:
			return cmp.Compare(c.Bools[i], c.Bools[j])
		default:
			return cmp.Compare(c.Numbers[i], c.Numbers[j])
		}
	})
}

// changedParts: a part that is opened as one that it is not does not answer.
func changedParts(t T, s *suite) {
	r := s.register(t, s.edgeRows(11, 200, 4), sources.Keys{Columns: []string{"unit"}}, 12, 0.5, 0.5)
	info := r.infos[0]
	if len(info.Checksums) < len(info.Schema.Fields) {
		t.Errorf("%d checksums of %d columns", len(info.Checksums), len(info.Schema.Fields))
	}
	others := map[string]func(*sources.PartInfo){
		"more rows":  func(i *sources.PartInfo) { i.Rows++ },
		"more units": func(i *sources.PartInfo) { i.Units++ },
		"the other":  func(i *sources.PartInfo) { i.Name = r.infos[1].Name },
		"no part":    func(i *sources.PartInfo) { i.Name = "nothing" },
	}
	for name := range info.Checksums {
		others["checksum "+name] = func(i *sources.PartInfo) {
			i.Checksums = maps.Clone(i.Checksums)
			i.Checksums[name] = flipped(i.Checksums[name])
		}
	}
	all := rowfn.Batch{}
	for _, f := range info.Schema.Fields {
		all.Functions = append(all.Functions, usesColumn(f))
	}
	for name, change := range others {
		changed := info
		change(&changed)
		s.mustNotAnswer(t, name, changed, all, name != "no part")
	}
}

// flipped is another checksum of the same form.
func flipped(checksum string) string {
	b := []byte(checksum)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] >= '0' && b[i] <= '9' {
			b[i] = '0' + (b[i]-'0'+1)%10
			return string(b)
		}
	}
	return checksum + "1"
}

// usesColumn is a row function that cannot be known without a column.
func usesColumn(f dataset.Field) rowfn.Function {
	c := rowfn.Column(f.Name, map[dataset.Kind]rowfn.Type{dataset.Number: rowfn.Number, dataset.Bool: rowfn.Condition, dataset.Text: rowfn.Text, dataset.Time: rowfn.Time}[f.Kind])
	return rowfn.Function{Value: rowfn.IsNull(c), Lo: 0, Hi: 1}
}

// mustNotAnswer checks that a part that is not as it was made says so when it is opened, and else in Check and in all sums of a batch that reads all columns.
func (s *suite) mustNotAnswer(t testing.TB, what string, info sources.PartInfo, batch rowfn.Batch, changed bool) {
	t.Helper()
	kinds := []sources.Kind{sources.Changed}
	if !changed {
		kinds = append(kinds, sources.NotFound)
	}
	p, err := s.src.Open(t.Context(), info, 3)
	if err != nil {
		wants(t, what+": opened", err, kinds...)
		return
	}
	defer p.Close()
	wants(t, what+": checked", p.Check(t.Context()), kinds...)
	s.sumsMustFail(t, what, p, batch)
}

// sumsMustFail checks that no sum is answered of a part that was changed.
func (s *suite) sumsMustFail(t testing.TB, what string, p sources.Part, batch rowfn.Batch) {
	t.Helper()
	if _, err := p.Moments(t.Context(), batch, 0, p.Units()); err == nil {
		t.Errorf("%s: it is summed", what)
	} else {
		wants(t, what+": summed", err, sources.Changed, sources.Unavailable)
	}
}

// spoiledParts: each fault that can be planted where the source keeps a part is noticed, by whoever has it open, and by whoever opens it.
func spoiledParts(t T, s *suite) {
	for name, spoil := range s.Faults {
		t.Run(name, func(t T) {
			r := s.register(t, s.edgeRows(13, 300, 4), sources.Keys{Columns: []string{"unit"}}, 14, 0.5, 0.5)
			var all rowfn.Batch
			for _, f := range r.infos[0].Schema.Fields {
				all.Functions = append(all.Functions, usesColumn(f))
			}
			open := s.open(t, r, 0, 3)
			if _, err := open.Moments(t.Context(), all, 0, open.Units()); err != nil {
				t.Fatal(err)
			}
			spoil(t, r.infos[0])
			s.sumsMustFail(t, "a part that was open", open, all)
			s.mustNotAnswer(t, "a part that is opened", r.infos[0], all, false)
		})
	}
}
