package clickhouse

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/blocks"
)

// readRows is about how many rows a statement reads that streams them: the engine sorts so many.
const readRows = 1 << 18

// Read implements [sources.Part]. Rows are read in whole blocks of what was registered, whose checksums are compared at the end of each.
func (p *part) Read(ctx context.Context, columns []string, from, to int64, yield func(sources.Block) error) error {
	if from < 0 || to < from || to > p.info.Units {
		return fmt.Errorf("clickhouse: units %d to %d of %d", from, to, p.info.Units)
	}
	r, err := p.newReading(columns, from, to, yield)
	if err != nil || from == to {
		return err
	}
	checks := p.sql.Checks
	most := max(1, readRows*p.info.Units/max(1, p.info.Rows))
	for b := from / checks.Block; b*checks.Block < to; b++ {
		low, high := b*checks.Block, min((b+1)*checks.Block, p.info.Units)
		clear(r.sums)
		r.rows = 0
		for at := low; at < high; at += most {
			if err := r.some(ctx, at, min(at+most, high)); err != nil {
				return ofPart(err)
			}
		}
		if r.rows != checks.Rows[b] {
			return changed(partChanged, fmt.Errorf("clickhouse: %d rows in a block of %d", r.rows, checks.Rows[b]))
		}
		for i, column := range r.columns {
			if r.sums[i] != checks.Columns[column][b] {
				return changed(partChanged, fmt.Errorf("clickhouse: the checksum of column %d is %d, want %d", column, r.sums[i], checks.Columns[column][b]))
			}
		}
	}
	return nil
}

// reading is a Read that runs.
type reading struct {
	p        *part
	columns  []int // in the schema
	from, to int64 // units that are yielded
	yield    func(sources.Block) error
	text     string
	types    []string

	rows int64    // of the block of checks
	sums []uint64 // of the columns there
}

func (p *part) newReading(columns []string, from, to int64, yield func(sources.Block) error) (*reading, error) {
	r := &reading{p: p, from: from, to: to, yield: yield, types: []string{"UInt32"}}
	list := []string{"_unit"}
	for i, f := range p.info.Schema.Fields {
		if columns == nil || slices.Contains(columns, f.Name) {
			column := fmt.Sprintf("c%d", i)
			if f.Kind == dataset.Text {
				column = cleaned(f.Kind, column)
			}
			r.columns, r.types, list = append(r.columns, i), append(r.types, storedType(f.Kind)), append(list, column)
		}
	}
	for _, c := range columns {
		if !slices.ContainsFunc(p.info.Schema.Fields, func(f dataset.Field) bool { return f.Name == c }) {
			return nil, &sources.Error{Kind: sources.NotFound, Column: c, Detail: fmt.Sprintf("there is no column %q", c)}
		}
	}
	r.sums = make([]uint64, len(r.columns))
	r.text = "SELECT " + strings.Join(list, ", ") + " FROM " + p.sql.Table
	return r, nil
}

// some reads the units low..high-1 with one statement, in order. What was yielded is not yielded again where the connection fails: rows are gathered first.
func (r *reading) some(ctx context.Context, low, high int64) error {
	text := fmt.Sprintf("%s WHERE _unit >= %d AND _unit < %d ORDER BY _unit", r.text, low, high)
	var got []column
	units := []uint32(nil)
	err := r.p.s.conn.retry(ctx, func() error {
		got, units = make([]column, len(r.columns)), nil
		ctx, cancel := context.WithTimeout(ctx, r.p.s.conn.o.deadline)
		defer cancel()
		return r.p.s.conn.stream(ctx, statement{as: r.p.s.conn.o.reader, text: text}, r.types, func(b *block) error {
			units = append(units, b.columns[0].words[:b.rows]...)
			for i := range got {
				got[i].append(&b.columns[i+1], b.rows)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	offsets, err := offsetsOf(units, low, high, r.p.info.Grouped)
	if err != nil {
		return changed(partChanged, err)
	}
	r.rows += int64(len(units))
	for i := range got {
		r.sums[i] += got[i].checksum(units, r.p.sql.Checks.Bound)
	}
	return r.cut(got, offsets, low)
}

// append copies the rows of a block behind those that are there.
func (c *column) append(from *column, rows int) {
	switch {
	case from.ends != nil:
		at := len(c.data)
		c.data = append(c.data, from.data...)
		for _, end := range from.ends[:rows] {
			c.ends = append(c.ends, at+end)
		}
	case from.bytes != nil:
		c.bytes = append(c.bytes, from.bytes[:rows]...)
	case from.longs != nil:
		c.longs = append(c.longs, from.longs[:rows]...)
	default:
		c.numbers = append(c.numbers, from.numbers[:rows]...)
	}
}

// checksum is what statements register of a column whose rows are of some units: the sum of hashes, or of booleans, each with its unit if they are bound to them.
func (c *column) checksum(units []uint32, bound bool) (sum uint64) {
	for row, unit := range units {
		var v uint64
		switch {
		case c.ends != nil:
			v = hashText(c.text(row))
		case c.bytes != nil:
			v = uint64(c.bytes[row])
		default:
			v = hashNumber(math.Float64bits(c.numbers[row]))
		}
		if bound {
			v *= hashNumber(uint64(unit))
		}
		sum += v
	}
	return sum
}

// offsetsOf are where the rows of the units low..high-1 begin, and the end of the last. Units must be in order, and each must be there; without groups, once.
func offsetsOf(units []uint32, low, high int64, grouped bool) ([]uint32, error) {
	offsets := make([]uint32, 0, high-low+1)
	next := low
	for row, u := range units {
		switch {
		case int64(u) == next:
			offsets = append(offsets, uint32(row))
			next++
		case int64(u) != next-1 || next == low || !grouped:
			return nil, fmt.Errorf("clickhouse: unit %d where %d was to come", u, next)
		}
	}
	if next != high {
		return nil, fmt.Errorf("clickhouse: units end at %d, want %d", next, high)
	}
	return append(offsets, uint32(len(units))), nil
}

// cut yields those of the units from low on that are wanted, in blocks of whole units.
func (r *reading) cut(got []column, offsets []uint32, low int64) error {
	first, last := max(r.from-low, 0), min(r.to-low, int64(len(offsets)-1))
	for first < last {
		end := first + 1
		for end < last && offsets[end+1]-offsets[first] <= blocks.Rows {
			end++
		}
		b, err := r.block(got, offsets, first, end)
		if err != nil {
			return err
		}
		b.First = low + first
		if err := r.yield(b); err != nil {
			return err
		}
		first = end
	}
	return nil
}

// block makes a block of the units first..end-1.
func (r *reading) block(got []column, offsets []uint32, first, end int64) (b sources.Block, err error) {
	from, to := offsets[first], offsets[end]
	var columns []dataset.Column
	for i, at := range r.columns {
		c, _ := columnOf(r.p.info.Schema.Fields[at], &got[i], int(from), int(to))
		columns = append(columns, c)
	}
	if b.Rows, err = dataset.FromColumns(columns...); err != nil {
		return b, changed(partChanged, fmt.Errorf("clickhouse: %w", err))
	}
	if r.p.info.Grouped {
		b.Offsets = make([]uint32, 0, end-first+1)
		for _, at := range offsets[first : end+1] {
			b.Offsets = append(b.Offsets, at-from)
		}
	}
	return b, nil
}
