package trino

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
)

const (
	// unitsOfBlock is how many units are yielded together.
	unitsOfBlock = 1 << 16
	// groupedRows is about how many rows the engine groups by unit at once: it keeps the groups in memory. A table of more rows is read several times, a part of the units each time.
	groupedRows = 1 << 23
)

// keys are the columns of a key, as SQL.
type keys struct {
	sources.Keys
	fields  []dataset.Field
	values  []string // as an upload has them; SQL's null where null
	latest  string
	stratum *ownerColumn
}

func refused(column, detail string) error {
	return &sources.Error{Kind: sources.Refused, Column: column, Detail: detail}
}

// keysOf finds the columns of a key.
func (o *owned) keysOf(by sources.Keys) (k keys, err error) {
	k.Keys = by
	if len(by.Columns) == 0 {
		return k, refused("", "rows of a Trino have no places: name a key, the columns that together identify a unit or a row")
	}
	if by.Day && len(by.Columns) != 1 {
		return k, refused("", "units are days of one column of times")
	}
	for _, name := range by.Columns {
		c, ok := o.column(name)
		if !ok {
			return k, refused(name, fmt.Sprintf("the key's column %q is none of the table's, or one that is not read", name))
		}
		value := c.value()
		if by.Day {
			if c.Kind != dataset.Time {
				return k, refused(name, fmt.Sprintf("units are days of a column of times, which %q is not", name))
			}
			value = "floor(" + value + " / 8.64e10) * 8.64e10"
		}
		k.fields = append(k.fields, dataset.Field{Name: c.Name, Kind: c.Kind, Source: c.Type})
		k.values = append(k.values, value)
	}
	if by.Latest != "" {
		c, ok := o.column(by.Latest)
		if !ok || c.Kind != dataset.Time {
			return k, refused(by.Latest, fmt.Sprintf("the latest time is wanted of the column %q, which is no column of times that is read", by.Latest))
		}
		k.latest = c.value()
	}
	if by.Stratum != "" {
		c, ok := o.column(by.Stratum)
		if !ok {
			return k, refused(by.Stratum, fmt.Sprintf("the stratum's column %q is none of the table's, or one that is not read", by.Stratum))
		}
		k.stratum = c
	}
	return k, nil
}

// packed is the SQL of a unit's key as binary, which names the unit here and there. An -0 was made 0, so that equal keys have equal bytes. names are of the key's values.
func (k *keys) packed(names []string) string {
	values := make([]string, len(names))
	for i, name := range names {
		switch k.fields[i].Kind {
		case dataset.Bool:
			values[i] = "to_big_endian_32(CAST(" + name + " AS integer))"
		default:
			values[i] = packed(k.fields[i].Kind, name)
		}
	}
	return packs(values)
}

// names of the key's values in a subselect.
func (k *keys) names() []string {
	names := make([]string, len(k.values))
	for i := range names {
		names[i] = fmt.Sprintf("k%d", i)
	}
	return names
}

// statement asks for units: the key, the rows, whether a part of the key is null, and the rest as it is wanted. Of the units in 2^bits parts it asks for one.
func (o *owned) statement(k *keys, bits, part int) string {
	names, nulls := k.names(), make([]string, len(k.values))
	inner := make([]string, len(k.values))
	for i, value := range k.values {
		inner[i], nulls[i] = value+" AS "+names[i], names[i]+" IS NULL"
	}
	key := k.packed(names)
	row := []string{fmt.Sprintf("if(%s, X'01', X'00')", strings.Join(nulls, " OR "))}
	list := append([]string{"count(*) AS n"}, names...)
	row = append(row, "to_big_endian_64(n)")
	if k.latest != "" {
		inner, list = append(inner, k.latest+" AS l"), append(list, "max(l) AS l")
		row = append(row, "to_ieee754_64(coalesce(l, nan()))")
	}
	if k.stratum != nil {
		inner = append(inner, k.stratum.value()+" AS s")
		list = append(list, "min(s) AS s", "min(s) IS DISTINCT FROM max(s) OR count(s) <> 0 AND count(s) <> count(*) AS o")
		stored := "s"
		switch k.stratum.Kind {
		case dataset.Bool:
			stored = "CASE WHEN s IS NULL THEN 2 WHEN s THEN 1 ELSE 0 END"
		case dataset.Text:
		default:
			stored = "coalesce(s, nan())"
		}
		row = append(row, "if(o, X'01', X'00')", packed(k.stratum.Kind, stored))
	}
	row = append(row, fmt.Sprintf("if(%s, X'', %s)", strings.Join(nulls, " OR "), key))
	where := ""
	if bits > 0 {
		where = fmt.Sprintf(" WHERE bitwise_and(from_big_endian_64(xxhash64(coalesce(%s, X''))), %d) = %d", key, 1<<bits-1, part)
	}
	return fmt.Sprintf("SELECT %s FROM (SELECT %s FROM (SELECT %s FROM %s)%s GROUP BY %s)", packs(row), strings.Join(list, ", "), strings.Join(inner, ", "), o.from(), where, strings.Join(names, ", "))
}

// Units groups the rows by unit in the engine, and streams the groups. Of a table of very many rows it does so for some of the units at a time.
func (s *Source) Units(ctx context.Context, of sources.Snapshot, by sources.Keys, yield func(sources.Units) error) error {
	o, err := s.reopened(of)
	if err != nil {
		return err
	}
	return o.units(ctx, of.Rows, by, func(units sources.Units, _ [][]byte) error { return yield(units) })
}

// units yields units, and the bytes that name them.
func (o *owned) units(ctx context.Context, rows int64, by sources.Keys, yield func(units sources.Units, names [][]byte) error) error {
	k, err := o.keysOf(by)
	if err != nil {
		return err
	}
	bits := 0
	for rows>>bits > groupedRows {
		bits++
	}
	b := newUnitBlock(&k)
	for part := range 1 << bits {
		var own error
		err := o.source.loader.stream(ctx, o.statement(&k, bits, part), func(row []byte) error {
			if own = b.add(row); own == nil && b.len() == unitsOfBlock {
				own = b.flush(yield)
			}
			return own
		})
		if own != nil {
			return own
		}
		if err != nil {
			return ofTable(o.table, err)
		}
	}
	if b.len() > 0 {
		err = b.flush(yield)
	}
	if err == nil && b.rows != rows {
		err = &sources.Error{Kind: sources.Changed, Detail: tableChanged, Err: fmt.Errorf("trino: the units have %d rows, want %d", b.rows, rows)}
	}
	return err
}

// unitBlock gathers units.
type unitBlock struct {
	k       *keys
	keys    []*collector
	strata  *collector
	counts  []int64
	latest  []float64
	names   [][]byte
	backing []byte
	rows    int64 // of all units so far
}

func newUnitBlock(k *keys) *unitBlock {
	b := &unitBlock{k: k}
	for _, f := range k.fields {
		b.keys = append(b.keys, newCollector(f))
	}
	if k.stratum != nil {
		b.strata = newCollector(dataset.Field{Name: k.stratum.Name, Kind: k.stratum.Kind, Source: k.stratum.Type})
	}
	return b
}

func (b *unitBlock) len() int { return len(b.counts) }

func (b *unitBlock) add(row []byte) error {
	u := unpacker{b: row}
	null := u.take(1)[0] != 0
	n := u.int64()
	if null {
		return refused(b.k.Columns[0], "the key is null in some rows: "+strings.Join(b.k.Columns, ", ")+"; make a view without them, or choose another key")
	}
	if b.k.Keys.Rows && n != 1 {
		return refused(b.k.Columns[0], "the key is the same in several rows: "+strings.Join(b.k.Columns, ", ")+"; choose columns that identify a row, or let rows of one key be a unit")
	}
	if b.k.latest != "" {
		b.latest = append(b.latest, u.number())
	}
	if b.strata != nil {
		if u.take(1)[0] != 0 {
			return refused(b.k.Stratum, fmt.Sprintf("the stratum %q differs within a unit", b.k.Stratum))
		}
		b.strata.read(&u)
	}
	begin := len(b.backing)
	b.backing = append(b.backing, u.b...)
	b.names = append(b.names, b.backing[begin:len(b.backing):len(b.backing)])
	for _, c := range b.keys {
		c.read(&u)
	}
	if u.failed || len(u.b) > 0 || n < 1 {
		return unavailable(fmt.Errorf("%w: a unit of %d bytes", errProtocol, len(row)))
	}
	b.counts = append(b.counts, n)
	b.rows += n
	return nil
}

func (b *unitBlock) flush(yield func(units sources.Units, names [][]byte) error) error {
	table, err := tableOfAll(b.keys)
	if err != nil {
		return unavailable(err)
	}
	units := sources.Units{Keys: table, Rows: b.counts}
	if b.k.latest != "" {
		units.Latest = b.latest
		for i, x := range units.Latest {
			if math.IsInf(x, 0) {
				units.Latest[i] = math.NaN()
			}
		}
	}
	if b.strata != nil {
		strata, err := tableOfAll([]*collector{b.strata})
		if err != nil {
			return unavailable(err)
		}
		units.Strata = strata.Column(0)
	}
	names := b.names
	b.counts, b.latest, b.names, b.backing = nil, nil, nil, nil
	return yield(units, names)
}
