package sourcetest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
)

// wants checks that an error is of a kind that whoever asks is told of, with a text.
func wants(t testing.TB, what string, err error, kinds ...sources.Kind) {
	t.Helper()
	var e *sources.Error
	if !errors.As(err, &e) || !slices.Contains(kinds, e.Kind) || strings.TrimSpace(e.Detail) == "" {
		t.Errorf("%s: the error is %v, want one of %v with a text", what, err, kinds)
	}
}

// looks: a look at a table says its columns as an upload has them, its rows, and a checksum that is the same for the same rows in another order and in another table, and another
// where one cell is another. It would notice a checksum of the order, of a part of the columns, or of values after they were made clean in some lossy way.
func looks(t T, s *suite) {
	if err := s.src.Ready(t.Context()); err != nil {
		t.Errorf("a source that is there is not ready: %v", err)
	}
	if s.src.Kind() == "" {
		t.Error("the source is of no kind")
	}
	rows := s.edgeRows(1, 200, 3)
	_, of := s.load(t, rows)
	if of.Rows != 200 || of.Checksum == "" {
		t.Errorf("%d rows with the checksum %q, want 200", of.Rows, of.Checksum)
	}
	upload := rows.Upload()
	at := map[string]int{}
	for i, f := range of.Schema.Fields {
		at[f.Name] = i
		if c, ok := upload.Lookup(f.Name); !ok || c.Kind != f.Kind {
			t.Errorf("column %q is %v, not what an upload has", f.Name, f.Kind)
		}
		if f.Source == "" {
			t.Errorf("column %q has no type of the owner's", f.Name)
		}
	}
	for _, skipped := range of.Skipped {
		if skipped.Reason == "" || skipped.Name != "wide" {
			t.Errorf("column %q is skipped, because %q", skipped.Name, skipped.Reason)
		}
		at[skipped.Name] = -1
	}
	for i := range upload.Columns() {
		if _, ok := at[upload.Column(i).Name]; !ok {
			t.Errorf("column %q is neither in the schema nor said to be skipped", upload.Column(i).Name)
		}
	}
	again, shuffled := of, of
	_, again = s.load(t, rows)
	_, shuffled = s.load(t, rows.Take(rand.New(rand.NewPCG(1, 3)).Perm(200)))
	if again.Checksum != of.Checksum {
		t.Error("the same rows in another table have another checksum")
	}
	if shuffled.Checksum != of.Checksum && !s.rowsHavePlaces() {
		t.Error("the same rows in another order have another checksum")
	}
	for i, c := range rows {
		if at[c.Name] < 0 {
			continue
		}
		changed := slices.Clone(rows)
		all := make([]int, 200)
		for i := range all {
			all[i] = i
		}
		changed[i] = rows[i : i+1].Take(all)[0]
		oneCell(&changed[i], 77)
		if _, other := s.load(t, changed); other.Checksum == of.Checksum {
			t.Errorf("another cell of column %q, and the same checksum", c.Name)
		}
	}
	missing := make([]int, 199)
	for i := range missing {
		missing[i] = i
	}
	if _, other := s.load(t, rows.Take(missing)); other.Checksum == of.Checksum || other.Rows != 199 {
		t.Error("a row is missing, and the look does not say it")
	}
}

// oneCell makes a cell another one, by as little as its type allows where it was not null.
func oneCell(c *Column, row int) {
	null := c.IsNull(row)
	if null {
		c.Null[row] = false
	}
	switch x := 0.0; c.Type {
	case Float64, Float32:
		if x = c.Floats[row]; c.Type == Float64 && !null && x-x == 0 && x != 0 && math.Abs(x) < 1e300 {
			c.Floats[row] = math.Nextafter(x, math.Inf(1))
		} else {
			c.Floats[row] = 12345.5
		}
	case Int64:
		c.Ints[row] ^= 1
	case Instant:
		c.Ints[row] += 86400e6
		if c.Ints[row] > 2e15 {
			c.Ints[row] = 1e15
		}
	case Bool:
		c.Bools[row] = !c.Bools[row] || null
	case Text:
		c.Texts[row] += " "
	}
}

func looksAtNothing(t T, s *suite) {
	for _, name := range []string{"no_such_table", "", "'; DROP TABLE x; --", "a.b.c.d.e", "../..", strings.Repeat("n", 5000), "x\x00y"} {
		_, err := s.src.Look(t.Context(), name)
		wants(t, "a look at the table "+name[:min(len(name), 20)], err, sources.NotFound, sources.Refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	table := s.Load(t, "cancelled", s.edgeRows(1, 5, 1))
	if _, err := s.src.Look(ctx, table); err == nil {
		t.Error("a look that was cancelled says something")
	}
}

// units: each unit comes once, with its rows, latest time and stratum, for keys of one column and of several, of texts, numbers and days.
func units(t T, s *suite) {
	rows := s.edgeRows(2, 300, 4)
	_, of := s.load(t, rows)
	for name, by := range map[string]sources.Keys{
		"rows":                     s.rowKeys(),
		"rows, latest":             {Columns: []string{"id"}, Rows: true, Latest: "d", Stratum: "q"},
		"rows by two columns":      {Columns: []string{"unit", "id"}, Rows: true, Stratum: "t"},
		"units":                    {Columns: []string{"unit"}},
		"units, latest, strata":    {Columns: []string{"unit"}, Latest: "d", Stratum: "group"},
		"days":                     {Columns: []string{"when"}, Day: true, Latest: "e"},
		"instants":                 {Columns: []string{"when"}},
		"units by several columns": {Columns: []string{"unit", "when", "id"}, Latest: "when"},
	} {
		if err := s.stream(t.Context(), byUnit(rows, by), of); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.rowsHavePlaces() {
		if err := s.stream(t.Context(), byUnit(rows, sources.Keys{Latest: "d", Stratum: "s"}), of); err != nil {
			t.Errorf("places: %v", err)
		}
	}
	enough := errors.New("enough")
	if err := s.src.Units(t.Context(), of, s.rowKeys(), func(sources.Units) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("whoever reads units has enough, and the error is %v", err)
	}
}

// refusedUnits: what is no key, or no stratum, is refused with a text that says the column.
func refusedUnits(t T, s *suite) {
	rows := s.edgeRows(3, 100, 4)
	_, of := s.load(t, rows)
	for name, by := range map[string]sources.Keys{
		"a null key":                         {Columns: []string{"s"}},
		"a null in a key of several":         {Columns: []string{"unit", "p"}},
		"rows that share a key":              {Columns: []string{"unit"}, Rows: true},
		"an unknown key":                     {Columns: []string{"ids"}},
		"a stratum that differs in a unit":   {Columns: []string{"unit"}, Stratum: "id"},
		"a stratum that is null in one row":  {Columns: []string{"unit"}, Stratum: "p"},
		"an unknown stratum":                 {Columns: []string{"unit"}, Stratum: "groups"},
		"an unknown column of latest times":  {Columns: []string{"unit"}, Latest: "dd"},
		"a latest time of a column of texts": {Columns: []string{"unit"}, Latest: "t"},
	} {
		err := s.src.Units(t.Context(), of, by, func(sources.Units) error { return nil })
		wants(t, name, err, sources.Refused, sources.NotFound)
	}
	if !s.rowsHavePlaces() {
		wants(t, "no key", s.src.Units(t.Context(), of, sources.Keys{}, func(sources.Units) error { return nil }), sources.Refused)
	}
}

// division: every row is in exactly one part, at the number that its unit was given, with the values that an upload of the same rows has.
func division(t T, s *suite) {
	rows := s.edgeRows(4, s.Rows, 5)
	keys := map[string]sources.Keys{"rows": s.rowKeys(), "units": {Columns: []string{"unit"}, Latest: "d", Stratum: "group"}, "days": {Columns: []string{"when"}, Day: true}}
	if s.rowsHavePlaces() {
		keys["places"] = sources.Keys{}
	}
	for name, by := range keys {
		t.Run(name, func(t T) {
			r := s.register(t, rows, by, 5, 0.4, 0.1, 0.5)
			listed := must1(t)(s.src.Parts(t.Context()))
			for i, info := range r.infos {
				if !slices.Contains(listed, info.Name) {
					t.Errorf("part %s is not listed among %v", info.Name, listed)
				}
				holds(t, s.open(t, r, i, r.parts[i].largest()), r.parts[i], info)
			}
			for _, info := range r.infos {
				for range 2 { // one that is not there is no error
					if err := s.src.Drop(t.Context(), info.Name); err != nil {
						t.Error(err)
					}
				}
				if slices.Contains(must1(t)(s.src.Parts(t.Context())), info.Name) {
					t.Errorf("part %s is listed after it was dropped", info.Name)
				}
				if p, err := s.src.Open(t.Context(), info, 1); err == nil {
					_ = p.Close()
					t.Errorf("part %s was dropped, and opens", info.Name)
				}
			}
		})
	}
	t.Run("one unit", func(t T) {
		r := s.register(t, rows.Take([]int{7}).Whole(), s.rowKeys(), 6, 1)
		holds(t, s.open(t, r, 0, 1), r.parts[0], r.infos[0])
	})
}

func must1(t testing.TB) func([]string, error) []string {
	return func(names []string, err error) []string {
		t.Helper()
		return must(t, names, err)
	}
}

// holds checks that a part has the rows that it must have: all columns, ranges of units, and what is said of it.
func holds(t testing.TB, p sources.Part, want part, info sources.PartInfo) {
	t.Helper()
	if info.Rows != int64(want.rows.Rows()) || info.Units != want.units() || info.LargestUnit != want.largest() {
		t.Errorf("%d rows, %d units, at most %d rows a unit; want %d, %d, %d", info.Rows, info.Units, info.LargestUnit, want.rows.Rows(), want.units(), want.largest())
	}
	if p.Units() != want.units() {
		t.Errorf("%d units, want %d", p.Units(), want.units())
	}
	shape := p.Shape()
	for _, f := range info.Schema.Fields {
		if f.Kind == dataset.Text && (shape.Texts[f.Name] != want.shape.Texts[f.Name] || info.Texts[f.Name] != want.shape.Texts[f.Name]) {
			t.Errorf("the shape of the texts of %q is %v and %v, an upload's is %v", f.Name, shape.Texts[f.Name], info.Texts[f.Name], want.shape.Texts[f.Name])
		}
	}
	if shape.Rows != want.shape.Rows || shape.Units != want.shape.Units {
		t.Errorf("the shape is of %d rows and %d units, want %d and %d", shape.Rows, shape.Units, want.shape.Rows, want.shape.Units)
	}
	n := want.units()
	for _, columns := range [][]string{nil, {"x"}, {"t", "wide", "p", "d"}} {
		names := columns
		if columns == nil {
			names = named(info.Schema)
		}
		if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(named(info.Schema), name) }) {
			continue // a column that the source skips
		}
		for _, r := range [][2]int64{{0, n}, {0, 0}, {n, n}, {n / 3, n/2 + 1}, {n - 1, n}} {
			if r[1] <= n {
				reads(t, p, want, columns, names, r[0], r[1])
			}
		}
	}
	if err := p.Read(t.Context(), []string{"no such column"}, 0, n, func(sources.Block) error { return nil }); err == nil {
		t.Error("a column that is not there is read")
	}
	if err := p.Read(t.Context(), nil, 0, n+1, func(sources.Block) error { return nil }); err == nil {
		t.Error("a unit that is not there is read")
	}
	enough := errors.New("enough")
	if err := p.Read(t.Context(), nil, 0, n, func(sources.Block) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("whoever reads has enough, and the error is %v", err)
	}
	if err := p.Check(t.Context()); err != nil {
		t.Errorf("a part that is as it was made: %v", err)
	}
}

// reads checks the blocks of a range of units.
func reads(t testing.TB, p sources.Part, want part, columns, names []string, from, to int64) {
	t.Helper()
	next := from
	err := p.Read(t.Context(), columns, from, to, func(b sources.Block) error {
		if b.First != next || b.Rows.Columns() != len(names) || (b.Offsets != nil) != (want.offsets != nil) {
			t.Errorf("units %d to %d: a block from unit %d with %d columns, want unit %d and %d columns; offsets: %v", from, to, b.First, b.Rows.Columns(), next, len(names), b.Offsets != nil)
		}
		begins := b.Offsets
		if begins == nil {
			for i := range b.Rows.Rows() + 1 {
				begins = append(begins, uint32(i))
			}
		}
		if begins[0] != 0 || int(begins[len(begins)-1]) != b.Rows.Rows() {
			t.Errorf("units %d to %d: a block of %d rows has the offsets %d to %d", from, to, b.Rows.Rows(), begins[0], begins[len(begins)-1])
			return nil
		}
		for i := range begins[1:] {
			if next >= to {
				t.Errorf("units %d to %d: unit %d comes", from, to, next)
				return nil
			}
			var got, expected []string
			for row := begins[i]; row < begins[i+1]; row++ {
				got = append(got, line(b.Rows, names, int(row)))
			}
			begin, end := want.rowsOf(next)
			for row := begin; row < end; row++ {
				expected = append(expected, line(want.rows, names, row))
			}
			slices.Sort(got) // rows of one unit come in any order
			slices.Sort(expected)
			if !slices.Equal(got, expected) {
				t.Errorf("unit %d has the rows\n\t%s\nan upload has\n\t%s", next, strings.Join(got, "\n\t"), strings.Join(expected, "\n\t"))
				return errors.New("enough")
			}
			next++
		}
		return nil
	})
	if err != nil || next != to {
		t.Errorf("units %d to %d: read until %d, %v", from, to, next, err)
	}
}

// changedTable: a table that is not as it was looked at, before or while it is divided, makes no parts.
func changedTable(t T, s *suite) {
	rows := s.edgeRows(6, 200, 3)
	some := make([]int, 199)
	for i := range some {
		some[i] = i
	}
	cell := slices.Clone(rows)
	cell[3] = rows[3:4].Take(append(slices.Clone(some), 199))[0]
	oneCell(&cell[3], 11)
	for name, other := range map[string]Rows{"a row is missing": rows.Take(some), "a cell is another": cell, "a row comes twice": rows.Take(append(slices.Clone(some), 0))} {
		for _, while := range []bool{false, true} {
			table, of := s.load(t, rows)
			o := byUnit(rows, s.rowKeys())
			a := o.assign(7, 0.5, 0.5)
			changed := false
			change := func() {
				if !changed {
					s.Replace(t, table, other)
				}
				changed = true
			}
			if !while {
				change()
			}
			infos, err := s.src.Divide(t.Context(), of, o.keys, []sources.PartSpec{{Name: "changed_0", Units: a.units[0]}, {Name: "changed_1", Units: a.units[1]}}, func(units sources.Units, places []sources.Place) error {
				change()
				for i := range units.Len() {
					places[i] = a.place[keyOf(units.Keys, o.keys, i)]
				}
				return nil
			}, func(int64) {})
			if infos != nil {
				t.Errorf("%s, while it was divided: %v; and there are parts", name, while)
			}
			wants(t, name, err, sources.Changed)
			s.sweep(t)
		}
	}
}

// failedDivision: what is left of a division that was cut off is listed, and goes.
func failedDivision(t T, s *suite) {
	rows := s.edgeRows(8, 200, 3)
	_, of := s.load(t, rows)
	o := byUnit(rows, s.rowKeys())
	a := o.assign(7, 0.5, 0.5)
	specs := []sources.PartSpec{{Name: "failed_0", Units: a.units[0]}, {Name: "failed_1", Units: a.units[1]}}
	enough := errors.New("enough")
	_, err := s.src.Divide(t.Context(), of, o.keys, specs, func(sources.Units, []sources.Place) error { return enough }, func(int64) {})
	if !errors.Is(err, enough) {
		t.Errorf("nobody knows a place, and the error is %v", err)
	}
	s.sweep(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = s.src.Divide(ctx, of, o.keys, specs, func(units sources.Units, places []sources.Place) error {
		for i := range units.Len() {
			places[i] = a.place[keyOf(units.Keys, o.keys, i)]
		}
		cancel()
		return nil
	}, func(int64) {})
	if err == nil {
		t.Error("a division that was cancelled succeeds")
	}
	s.sweep(t)
	infos, err := s.divide(t.Context(), o, of, a) // the same again
	if err != nil {
		t.Fatal(err)
	}
	holds(t, s.open(t, registered{infos: infos}, 0, 1), o.parts(a)[0], infos[0])
}

// sweep drops all parts.
func (s *suite) sweep(t testing.TB) {
	t.Helper()
	for _, name := range must1(t)(s.src.Parts(t.Context())) {
		if err := s.src.Drop(t.Context(), name); err != nil {
			t.Errorf("a part that is left cannot be dropped: %v", err)
		}
	}
	if left := must1(t)(s.src.Parts(t.Context())); len(left) != 0 {
		t.Errorf("parts are left: %v", left)
	}
}
