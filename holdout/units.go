package holdout

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries"
)

// microsecondsPerDay is the length of a UTC day; Time columns count microseconds and know no leap seconds.
const microsecondsPerDay = 24 * 60 * 60 * 1e6

// unitRule says what one observation is: a row (Column is empty), or all rows with one value of a column, or of
// the UTC day of a Time column. A row in which the value is null is a unit of its own.
type unitRule struct {
	Column string
	Day    bool
}

// votes says what has one vote each in the answer to a query of a holdout with this unit: the unit, as the card names it, or row; "" where units are rows, or where nothing is averaged.
func votes(unit string, canonical func() []byte) string {
	if unit == rowUnit || unit == "" {
		return ""
	}
	switch queries.VotesOfText(canonical()) {
	case queries.WeightUnit:
		return unit
	case queries.WeightRow:
		return rowUnit
	}
	return ""
}

// parseUnit reads the setting `unit`: "", "row", "COLUMN" or "day(COLUMN)". A column that is itself named like
// day(x) wins over the day of a column x.
func parseUnit(s string, schema dataset.Schema) (unitRule, error) {
	if s == "" || s == rowUnit {
		return unitRule{}, nil
	}
	if fieldOf(schema, s) != nil {
		return unitRule{Column: s}, nil
	}
	if inner, ok := strings.CutPrefix(s, "day("); ok && strings.HasSuffix(inner, ")") {
		name := strings.TrimSuffix(inner, ")")
		f := fieldOf(schema, name)
		switch {
		case f == nil:
			return unitRule{}, noColumn("unit", name, schema)
		case f.Kind != dataset.Time:
			return unitRule{}, invalid("unit", "unit asks for the day of %q, which holds no dates or times", name)
		}
		return unitRule{Column: name, Day: true}, nil
	}
	return unitRule{}, noColumn("unit", s, schema)
}

func (u unitRule) String() string {
	switch {
	case u.Column == "":
		return "row"
	case u.Day:
		return "day(" + u.Column + ")"
	}
	return u.Column
}

func fieldOf(s dataset.Schema, name string) *dataset.Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// maxColumnsNamed bounds how many columns an error lists.
const maxColumnsNamed = 12

// noColumn refuses a setting that names a column which the table does not have, and says which was probably meant, or which there are.
func noColumn(setting, name string, s dataset.Schema) *Error {
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.Name
	}
	if reason, skipped := s.Skipped[name]; skipped {
		return invalid(setting, "%s names the column %q, which was skipped: %s", setting, name, reason)
	}
	e := invalid(setting, "%s names the column %q, which the table does not have", setting, name)
	if e.Meant = nearest.Name(name, names); e.Meant != "" {
		e.Detail += "; did you mean " + e.Meant + "?"
		return e
	}
	more := ""
	if len(names) > maxColumnsNamed {
		names, more = names[:maxColumnsNamed], fmt.Sprintf(" and %d more", len(names)-maxColumnsNamed)
	}
	e.Detail += "; it has " + strings.Join(names, ", ") + more
	return e
}

// grouping is the rows of a table by unit. Units are numbered by their first row.
type grouping struct {
	of    []uint32 // the unit of each row; nil where each row is its own unit
	first []uint32 // the first row of each unit; nil where each row is its own unit
	n     int      // units
	room  *room    // of these and of what is made of them
}

// groupByRow makes each of rows a unit.
func groupByRow(rows int) grouping { return grouping{n: rows} }

// groupTogether makes units of rows that lie together, of which each begins where offsets say, and the last ends there.
func groupTogether(r *room, offsets []uint32) grouping {
	g := grouping{first: offsets[:len(offsets)-1], n: len(offsets) - 1, of: makeIn[uint32](r, int(offsets[len(offsets)-1])), room: r}
	for u := range g.n {
		for row := offsets[u]; row < offsets[u+1]; row++ {
			g.of[row] = uint32(u)
		}
	}
	return g
}

// groupBy groups rows by the value of a column; each null is a group of its own.
func groupBy(c dataset.Column, day bool) grouping {
	return groupIn(nil, c, day, func(yield func(int, int) bool) { yield(0, c.Len()) })
}

// groupIn is groupBy with its arrays in a room, of whose memory a list is given back as far as it is written. Pieces are all rows, in order.
func groupIn(r *room, c dataset.Column, day bool, pieces iter.Seq2[int, int]) grouping {
	rows := c.Len()
	g := grouping{of: makeIn[uint32](r, rows), first: makeIn[uint32](r, rows)[:0], room: r}
	next := func(row int) uint32 {
		g.first = append(g.first, uint32(row))
		return uint32(len(g.first) - 1)
	}
	var group func(from int, of []uint32)
	switch c.Kind {
	case dataset.Text:
		seen := make([]uint32, c.Dictionary.Len()+1) // unit+1 of a code
		group = func(from int, of []uint32) {
			for i, code := range c.Codes[from : from+len(of)] {
				if code == 0 {
					of[i] = next(from + i)
					continue
				}
				if seen[code] == 0 {
					seen[code] = next(from+i) + 1
				}
				of[i] = seen[code] - 1
			}
		}
	case dataset.Bool:
		var seen [dataset.NullBool]uint32
		group = func(from int, of []uint32) {
			for i, b := range c.Bools[from : from+len(of)] {
				if b >= dataset.NullBool {
					of[i] = next(from + i)
					continue
				}
				if seen[b] == 0 {
					seen[b] = next(from+i) + 1
				}
				of[i] = seen[b] - 1
			}
		}
	default:
		seen := newUnitTable(r, rows)
		group = func(from int, of []uint32) {
			for i, v := range c.Numbers[from : from+len(of)] {
				if day && v == v {
					v = dayOf(v)
				}
				u, known := seen.unit(v)
				if !known {
					next(from + i)
				}
				of[i] = u
			}
		}
	}
	for from, to := range pieces {
		group(from, g.of[from:to])
		r.restOf(g.of[from:to])
	}
	g.n = len(g.first)
	return g
}

// unitTable numbers the units of numbers: an open hash table, in a room where there is one, since a map of as many units as a large
// table has rows would take gigabytes.
type unitTable struct {
	room  *room
	slots []uint32  // 1 + a unit; 0: free
	shift int       // of the hash, 64 less the bits of an index
	keys  []float64 // of the units, of which none is -0; NaN of those without a number
}

const (
	// firstSlots is the size of a new table, as a power of two. It doubles, so that a table takes memory by its units and not by its rows.
	firstSlots = 10
	// fullSlots is how many of four slots are taken at most.
	fullSlots = 3
)

// newUnitTable returns a table for the numbers of so many rows. A room has place for a key of each row; those that are not used take no memory.
func newUnitTable(r *room, rows int) *unitTable {
	t := &unitTable{room: r, slots: makeIn[uint32](r, 1<<firstSlots), shift: 64 - firstSlots}
	if r != nil {
		t.keys = makeIn[float64](r, rows)[:0]
	}
	return t
}

// unit returns the unit of a number, which gets the next one where it is new; each NaN is new.
func (t *unitTable) unit(v float64) (unit uint32, known bool) {
	next := uint32(len(t.keys))
	if v == v {
		if 4*len(t.keys) >= fullSlots*len(t.slots) {
			t.grow()
		}
		slot := t.find(v)
		if t.slots[slot] != 0 {
			return t.slots[slot] - 1, true
		}
		t.slots[slot] = next + 1
	}
	t.keys = append(t.keys, v)
	return next, false
}

// find returns the slot of a number, or the free one where it belongs, by Fibonacci hashing: keys are the owner's own numbers.
func (t *unitTable) find(v float64) int {
	slot := int(math.Float64bits(v) * 0x9E3779B97F4A7C15 >> t.shift)
	for t.slots[slot] != 0 && t.keys[t.slots[slot]-1] != v {
		slot = (slot + 1) & (len(t.slots) - 1)
	}
	return slot
}

// grow doubles the slots, as often as the keys ask for: those without a number come at any time.
func (t *unitTable) grow() {
	size := len(t.slots)
	for 4*len(t.keys) >= fullSlots*size {
		size, t.shift = 2*size, t.shift-1
	}
	t.slots = makeIn[uint32](t.room, size)
	for u, v := range t.keys {
		if v == v {
			t.slots[t.find(v)] = uint32(u) + 1
		}
	}
}

// dayOf is the UTC day of a time in microseconds, counted from 1970-01-01.
func dayOf(microseconds float64) float64 { return math.Floor(microseconds / microsecondsPerDay) }

// sizes counts the rows of each unit.
func (g grouping) sizes() []uint32 {
	n := makeIn[uint32](g.room, g.n)
	if g.of == nil {
		for i := range n {
			n[i] = 1
		}
		return n
	}
	for some := range slices.Chunk(g.of, turnOf) {
		for _, u := range some {
			n[u]++
		}
		g.room.restOf(some)
	}
	return n
}

// appendUnitValue appends an injective encoding of the value that a unit shares: a letter for the kind, then the
// value. Row is the unit's first row, which stands for the unit where the value is null or where units are rows.
func appendUnitValue(dst []byte, c *dataset.Column, day bool, row uint32) []byte {
	if c == nil {
		return binary.BigEndian.AppendUint32(append(dst, 'r'), row)
	}
	switch {
	case c.Kind == dataset.Text && c.Codes[row] != 0:
		return append(append(dst, 's'), c.Dictionary.Text(int(c.Codes[row])-1)...)
	case c.Kind == dataset.Bool && c.Bools[row] < dataset.NullBool:
		return append(dst, 'b', c.Bools[row])
	case (c.Kind == dataset.Number || c.Kind == dataset.Time) && c.Numbers[row] == c.Numbers[row]:
		letter, v := byte('n'), c.Numbers[row]
		if c.Kind == dataset.Time {
			letter = 't'
		}
		if day {
			letter, v = 'd', dayOf(v)
		}
		return binary.BigEndian.AppendUint64(append(dst, letter), math.Float64bits(v))
	}
	return binary.BigEndian.AppendUint32(append(dst, '0'), row)
}

// groupInOrder lists the rows of the units in the given order of units, each unit's rows together and in a random order,
// with the offsets of the units in that list (one more than there are units). The order of the upload inside a unit could tell
// what is in its rows, as in a file that is sorted by its label. Where each row is its own unit the offsets are nil.
func (g grouping) groupInOrder(units []uint32, within placing) (rows []uint32, offsets []uint32, err error) {
	if g.of == nil {
		return units, nil, nil
	}
	start := makeIn[uint32](g.room, g.n) // 1 + where the next row of a unit goes; 0: not in the list
	offsets = makeIn[uint32](g.room, len(units)+1)[:1]
	sizes, total := g.sizes(), uint64(0)
	for _, u := range units {
		if start[u] != 0 {
			return nil, nil, fmt.Errorf("holdout: unit %d is listed twice", u)
		}
		start[u] = uint32(total) + 1
		total += uint64(sizes[u])
		offsets = append(offsets, uint32(total))
	}
	rows = makeIn[uint32](g.room, int(total))
	row := uint32(0)
	for some := range slices.Chunk(g.of, turnOf) {
		for _, u := range some {
			if start[u] != 0 {
				rows[start[u]-1] = row
				start[u]++
			}
			row++
		}
		g.room.restOf(some)
	}
	for i := range units {
		within.shuffle(rows[offsets[i]:offsets[i+1]])
	}
	return rows, offsets, nil
}
