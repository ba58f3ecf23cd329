package sql

import (
	"fmt"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Units of several rows: sums of their rows first, then of the units, as queries/kernel has it in unit.go.

// innerKey is a sum of rows, or their number where of is none.
type innerKey struct{ of id }

// group is a sum of the rows of each unit.
type group struct {
	name string
	of   id
}

// inner is a column of sums of the rows of each unit.
func (b *builder) rowsOf(of id) id {
	if v := b.at(of); v.op == opInteger && v.k == 1 {
		return b.column("m", integers)
	}
	k := innerKey{of}
	if at, ok := b.inner[k]; ok {
		return at
	}
	name := fmt.Sprintf("a%d", len(b.groups))
	b.groups = append(b.groups, group{name, of})
	b.inner[k] = b.column(name, integers)
	return b.inner[k]
}

// anyOf is 1 for a unit with a row in which where holds, else 0.
func (b *builder) anyOf(f form) id {
	n := b.rowsOf(b.bit(f.where))
	return b.bit(b.add(value{op: opIntegerLess, class: bits, args: args(b.integer(0), n)}))
}

// unitValue is the value of a unit, an integer.
func (b *builder) unitValue(at int, f form) id {
	if v, ok := b.values[at]; ok {
		return v
	}
	s := none
	switch {
	case f.number != none:
		s = b.rowsOf(f.number)
	case f.off == 0:
		s = b.times(b.rowsOf(b.bit(f.mask)), f.on)
	default:
		s = b.sum(b.times(b.rowsOf(b.bit(f.mask)), f.on-f.off), b.times(b.rowsOf(b.bit(f.where)), f.off))
	}
	d := b.column("m", integers)
	switch {
	case f.perUnit == rowfn.UnitShare:
		d = b.atLeast(d, b.part.Cap)
	case !f.everyRow:
		d = b.atLeast(b.rowsOf(b.bit(f.where)), 1)
	}
	b.values[at] = b.rounded(s, d)
	return b.values[at]
}

func (b *builder) atLeast(n id, least int64) id {
	less := b.add(value{op: opIntegerLess, class: bits, args: args(n, b.integer(least))})
	return b.add(value{op: opChoose, class: integers, args: args(less, b.integer(least), n)})
}

// rounded is s/d for 0 <= s <= 2^61 and 0 < d < 2^31, halves upwards.
func (b *builder) rounded(s, d id) id {
	return b.whole(opQuotient, b.sum(b.times(s, 2), d), b.times(d, 2))
}

// writeGrouped prints a statement about units of several rows: with checksums of the rows of each unit, which are added up over units.
func (b *builder) writeGrouped(checks []string, added []template, keep []string, where string) {
	s, d := b.s, b.d
	rows := make([]id, len(b.groups))
	for i, g := range b.groups {
		rows[i] = g.of
	}
	below := d.print(b.graph, rows)
	inner, units := []string{"_unit", d.fill(d.whole, "count(*)") + " AS m"}, []string{"m"}
	for i, check := range checks {
		inner = append(inner, fmt.Sprintf("%s AS k%d", check, i))
		units = append(units, fmt.Sprintf("k%d", i))
	}
	for i, g := range b.groups {
		inner = append(inner, d.fill(d.whole, d.fill(d.total, below.text[rows[i]]))+" AS "+g.name)
		units = append(units, g.name)
	}
	table := "(SELECT " + strings.Join(inner, ", ") + " FROM " + below.from(b.part.local(), rows, keep, where) + " GROUP BY _unit)"
	above := d.print(b.graph, b.sums)
	list := []string{d.fill(d.whole, "count(*)"), d.fill(d.total, "_unit"), d.fill(d.total, "m")}
	for i := range checks {
		for _, t := range added {
			list = append(list, d.fill(t, fmt.Sprintf("k%d", i)))
		}
	}
	for _, of := range b.sums {
		list = append(list, d.fill(d.total, above.text[of]))
	}
	s.perCheck, s.sums, s.Width = len(added), len(b.sums), len(list)
	s.Text = b.part.selects(list, above.from(table, b.sums, append([]string{"_unit"}, units...), ""))
}
