package sourcetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/sources"
)

// registered is a table that was divided: what the source keeps of each part, and what it must hold.
type registered struct {
	of    sources.Snapshot
	infos []sources.PartInfo
	parts []part
}

// part is what a part must hold: the upload of the same rows, unit after unit.
type part struct {
	owner   Rows           // as its owner had them
	rows    *dataset.Table // as an upload has them
	offsets []uint32       // nil: each row is a unit
	shape   dataset.Shape
}

// owned is an owner's table by its units.
type owned struct {
	rows   Rows
	upload *dataset.Table
	keys   sources.Keys
	units  []string         // the key of each, in the order of their first rows
	of     map[string][]int // the rows of each
}

// grouped reports whether units may have several rows.
func grouped(by sources.Keys) bool { return len(by.Columns) > 0 && !by.Rows }

func byUnit(rows Rows, by sources.Keys) *owned {
	o := &owned{rows: rows, upload: rows.Upload(), keys: by, of: map[string][]int{}}
	for i := range rows.Len() {
		key := o.key(i)
		if o.of[key] == nil {
			o.units = append(o.units, key)
		}
		o.of[key] = append(o.of[key], i)
	}
	return o
}

// key is the unit of a row.
func (o *owned) key(row int) string {
	if len(o.keys.Columns) == 0 {
		return fmt.Sprint("place ", row)
	}
	return keyOf(o.upload, o.keys, row)
}

// keyOf is the unit of a row of a table with the key's columns, or of places where there is none.
func keyOf(t *dataset.Table, by sources.Keys, row int) string {
	if len(by.Columns) == 0 {
		c, ok := t.Lookup("row")
		if !ok || c.Kind != dataset.Number {
			return "no column of places"
		}
		return fmt.Sprint("place ", c.Numbers[row])
	}
	if c, ok := t.Lookup(by.Columns[0]); by.Day && ok && c.Kind == dataset.Time {
		return fmt.Sprint("day ", math.Floor(c.Numbers[row]/86400e6))
	} else if by.Day && ok && c.Kind == dataset.Number {
		return fmt.Sprint("day ", c.Numbers[row])
	}
	return line(t, by.Columns, row)
}

// latest is the latest value of a time column in a unit.
func (o *owned) latest(unit string) float64 {
	c, _ := o.upload.Lookup(o.keys.Latest)
	latest := math.NaN()
	for _, row := range o.of[unit] {
		if x := c.Numbers[row]; !(x <= latest) && x == x {
			latest = x
		}
	}
	return latest
}

// load makes an owner's table and looks at it.
func (s *suite) load(t testing.TB, rows Rows) (string, sources.Snapshot) {
	t.Helper()
	s.tables++
	table := s.Load(t, fmt.Sprintf("t%d", s.tables), rows)
	of, err := s.src.Look(t.Context(), table)
	return table, must(t, of, err)
}

// each calls yield for every unit of a stream of units and checks what the stream says of them.
func (o *owned) each(units sources.Units, yield func(i int, key string)) error {
	if units.Keys == nil || len(units.Rows) != units.Len() || (units.Latest != nil) != (o.keys.Latest != "") || (units.Strata != nil) != (o.keys.Stratum != "") {
		return fmt.Errorf("units come without what was wanted of them, or with more: %d keys, %d numbers of rows, latest: %v, strata: %v", units.Len(), len(units.Rows), units.Latest != nil, units.Strata != nil)
	}
	for i := range units.Len() {
		key := keyOf(units.Keys, o.keys, i)
		rows := o.of[key]
		if rows == nil {
			return fmt.Errorf("a unit that is not in the table: %s", key)
		}
		if units.Rows[i] != int64(len(rows)) {
			return fmt.Errorf("unit %s has %d rows, the source says %d", key, len(rows), units.Rows[i])
		}
		if units.Latest != nil && math.Float64bits(units.Latest[i]+0) != math.Float64bits(o.latest(key)+0) && !(math.IsNaN(units.Latest[i]) && math.IsNaN(o.latest(key))) {
			return fmt.Errorf("the latest time of unit %s is %v, the source says %v", key, o.latest(key), units.Latest[i])
		}
		if units.Strata != nil {
			if c, _ := o.upload.Lookup(o.keys.Stratum); cell(c, rows[0]) != cell(units.Strata, i) {
				return fmt.Errorf("the stratum of unit %s is %s, the source says %s", key, cell(c, rows[0]), cell(units.Strata, i))
			}
		}
		yield(i, key)
	}
	return nil
}

// stream reads all units of a table, and checks that each comes once.
func (s *suite) stream(ctx context.Context, o *owned, of sources.Snapshot) error {
	seen := map[string]bool{}
	var twice error
	err := s.src.Units(ctx, of, o.keys, func(units sources.Units) error {
		return o.each(units, func(_ int, key string) {
			if seen[key] {
				twice = fmt.Errorf("unit %s comes twice", key)
			}
			seen[key] = true
		})
	})
	if err == nil && twice == nil && len(seen) != len(o.units) {
		twice = fmt.Errorf("%d of %d units came", len(seen), len(o.units))
	}
	if err == nil {
		err = twice
	}
	return err
}

// assignment is where each unit goes, and how many units each part has.
type assignment struct {
	place map[string]sources.Place
	units []int64
}

// assign gives units to parts in a random order: about these shares of them, one at least to each part.
func (o *owned) assign(seed uint64, shares ...float64) assignment {
	r := rand.New(rand.NewPCG(seed, 2))
	a := assignment{map[string]sources.Place{}, make([]int64, len(shares))}
	for at, i := range r.Perm(len(o.units)) {
		side, x := at, r.Float64()
		if at >= len(shares) {
			for side = 0; side < len(shares)-1 && x >= shares[side]; side++ {
				x -= shares[side]
			}
		}
		a.place[o.units[i]] = sources.Place{Part: side, Number: a.units[side]}
		a.units[side]++
	}
	return a
}

// divide makes parts by an assignment, and checks that the source asks for each unit once and tells how far it is.
func (s *suite) divide(ctx context.Context, o *owned, of sources.Snapshot, a assignment) ([]sources.PartInfo, error) {
	s.tables++
	var specs []sources.PartSpec
	for i, n := range a.units {
		specs = append(specs, sources.PartSpec{Name: fmt.Sprintf("p%d_%d", s.tables, i), Units: n})
	}
	asked := map[string]bool{}
	var wrong error
	last := int64(0)
	infos, err := s.src.Divide(ctx, of, o.keys, specs, func(units sources.Units, places []sources.Place) error {
		if len(places) != units.Len() {
			return fmt.Errorf("%d places for %d units", len(places), units.Len())
		}
		return o.each(units, func(i int, key string) {
			if asked[key] {
				wrong = fmt.Errorf("the place of unit %s is asked for twice", key)
			}
			asked[key], places[i] = true, a.place[key]
		})
	}, func(rows int64) {
		if rows < last {
			wrong = fmt.Errorf("%d rows have their place, then %d", last, rows)
		}
		last = rows
	})
	switch {
	case err != nil:
		return nil, err
	case wrong != nil:
		return nil, wrong
	case len(asked) != len(o.units):
		return nil, fmt.Errorf("the places of %d of %d units were asked for", len(asked), len(o.units))
	case last > int64(o.rows.Len()):
		return nil, fmt.Errorf("%d of %d rows have their place", last, o.rows.Len())
	case len(infos) != len(specs):
		return nil, fmt.Errorf("%d of %d parts", len(infos), len(specs))
	}
	for i, info := range infos {
		if info.Name != specs[i].Name || info.Units != specs[i].Units || info.Grouped != grouped(o.keys) {
			return nil, fmt.Errorf("part %d is %+v, asked for was %+v", i, info, specs[i])
		}
	}
	return infos, nil
}

// parts are what the parts of an assignment must hold.
func (o *owned) parts(a assignment) []part {
	parts := make([]part, len(a.units))
	byNumber := make([][]string, len(a.units))
	for i, n := range a.units {
		byNumber[i] = make([]string, n)
	}
	for unit, place := range a.place {
		byNumber[place.Part][place.Number] = unit
	}
	for i, units := range byNumber {
		var rows []int
		offsets := []uint32{0}
		for _, unit := range units {
			rows = append(rows, o.of[unit]...)
			offsets = append(offsets, uint32(len(rows)))
		}
		parts[i].owner = o.rows.Take(rows)
		parts[i].rows = parts[i].owner.Upload()
		if grouped(o.keys) {
			parts[i].offsets = offsets
			parts[i].shape.Units = int64(len(units))
		}
		parts[i].shape.Rows, parts[i].shape.Texts = int64(len(rows)), o.upload.Shape().Texts
	}
	return parts
}

// engine is the server's own engine over the part's rows.
func (p part) engine(t testing.TB, rowsCap int64) *engine.Table {
	e, err := engine.NewTable(p.rows, p.offsets, rowsCap)
	return must(t, e, err)
}

// units is how many units the part has.
func (p part) units() int64 {
	if p.offsets == nil {
		return int64(p.rows.Rows())
	}
	return int64(len(p.offsets) - 1)
}

// rowsOf are the first row of a unit and the one after its last.
func (p part) rowsOf(unit int64) (from, to int) {
	if p.offsets == nil {
		return int(unit), int(unit) + 1
	}
	return int(p.offsets[unit]), int(p.offsets[unit+1])
}

// largest is how many rows the largest unit has.
func (p part) largest() int64 {
	largest := 0
	for u := range p.units() {
		from, to := p.rowsOf(u)
		largest = max(largest, to-from)
	}
	return int64(largest)
}

// register loads rows and divides them by keys into parts of about these shares.
func (s *suite) register(t testing.TB, rows Rows, by sources.Keys, seed uint64, shares ...float64) registered {
	t.Helper()
	_, of := s.load(t, rows)
	o := byUnit(rows, by)
	a := o.assign(seed, shares...)
	infos, err := s.divide(t.Context(), o, of, a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, info := range infos {
			_ = s.src.Drop(context.WithoutCancel(t.Context()), info.Name)
		}
	})
	return registered{of, infos, o.parts(a)}
}

// open opens a part of what was registered.
func (s *suite) open(t testing.TB, r registered, i int, rowsCap int64) sources.Part {
	t.Helper()
	p, err := s.src.Open(t.Context(), r.infos[i], rowsCap)
	must(t, p, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// rowKeys are keys by which each row of an edge table is a unit.
func (s *suite) rowKeys() sources.Keys { return sources.Keys{Columns: []string{"id"}, Rows: true} }
