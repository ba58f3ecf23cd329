package trino

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/blocks"
)

// sortedRows is about how many rows the engine sorts at once: some hundred megabytes of its memory.
const sortedRows = 1 << 18

// Read compares the blocks that hold the units with what was registered, and then reads them: some at a time, sorted by the engine.
func (p *part) Read(ctx context.Context, columns []string, from, to int64, yield func(sources.Block) error) error {
	if from < 0 || to < from || to > p.info.Units {
		return fmt.Errorf("trino: units %d to %d of %d", from, to, p.info.Units)
	}
	if columns == nil {
		for _, f := range p.info.Schema.Fields {
			columns = append(columns, f.Name)
		}
	}
	places := make([]int, len(columns))
	for i, name := range columns {
		at, ok := p.index[name]
		if !ok {
			return fmt.Errorf("trino: no column %q", name)
		}
		places[i] = at
	}
	if from == to {
		return nil
	}
	if err := p.check(ctx, from, to); err != nil {
		return err
	}
	some := max(1, sortedRows*p.info.Units/max(p.info.Rows, 1))
	if p.info.Units > p.kept.Piece { // a range does not need two pieces for nothing
		some = min(some, p.kept.Piece)
	}
	for ; from < to; from += some {
		if err := p.readSome(ctx, places, from, min(from+some, to), yield); err != nil {
			return err
		}
	}
	return nil
}

// readSome reads units by one statement. What was yielded cannot be taken back, so that a statement that fails is sent again for the units that are left.
func (p *part) readSome(ctx context.Context, places []int, from, to int64, yield func(sources.Block) error) error {
	values := []string{"to_big_endian_32(_unit)"}
	for _, at := range places {
		column := fmt.Sprintf("c%d", at)
		if p.kept.Columns[at] { // the null that was an infinity
			column = fmt.Sprintf("if(i%d, infinity(), c%d)", at, at)
		}
		values = append(values, packed(p.info.Schema.Fields[at].Kind, column))
	}
	r := &rowReader{part: p, places: places, next: from, yield: yield}
	wait := betweenAttempts
	for attempt := 1; ; attempt++ {
		r.begin()
		statement := fmt.Sprintf("SELECT %s FROM %s WHERE _unit >= %d AND _unit < %d ORDER BY _unit", packs(values), p.from(r.next, to), r.next, to)
		err := p.stream(ctx, statement, r)
		switch {
		case r.own != nil:
			return r.own
		case err == nil:
			return r.end(to)
		case attempt == attempts || ctx.Err() != nil || !passing(err) || pause(ctx, wait) != nil:
			return ofPart(firstOf(ctx.Err(), err))
		}
		wait *= 5
	}
}

func (p *part) stream(ctx context.Context, statement string, r *rowReader) error {
	ctx, cancel := p.deadline(ctx)
	defer cancel()
	err := p.source.reader.stream(ctx, statement, func(row []byte) error {
		r.own = r.add(row)
		return r.own
	})
	if err != nil && context.Cause(ctx) == errDeadline {
		return errDeadline
	}
	return err
}

// rowReader makes blocks of rows that come in the order of their units.
type rowReader struct {
	part       *part
	places     []int
	collectors []*collector
	offsets    []uint32
	rows       uint32
	next       int64 // the first unit that was not yielded
	unit       int64 // of the last row
	yield      func(sources.Block) error
	own        error // of whoever takes the rows
}

func (r *rowReader) begin() {
	r.collectors, r.offsets, r.rows, r.unit = nil, nil, 0, r.next-1
	for _, at := range r.places {
		r.collectors = append(r.collectors, newCollector(r.part.info.Schema.Fields[at]))
	}
}

func (r *rowReader) add(row []byte) error {
	u := unpacker{b: row}
	switch unit := int64(u.int32()); {
	case unit == r.unit && r.part.info.Grouped:
	case unit == r.unit+1:
		if r.rows >= blocks.Rows {
			if err := r.flush(); err != nil {
				return err
			}
		}
		r.unit, r.offsets = unit, append(r.offsets, r.rows)
	default:
		return changed(fmt.Errorf("trino: unit %d comes behind unit %d", unit, r.unit))
	}
	r.rows++
	for _, c := range r.collectors {
		c.read(&u)
	}
	if u.failed || len(u.b) > 0 {
		return unavailable(fmt.Errorf("%w: a row of %d bytes", errProtocol, len(row)))
	}
	return nil
}

func (r *rowReader) flush() error {
	table, err := tableOfAll(r.collectors)
	if err != nil {
		return unavailable(err)
	}
	block := sources.Block{Rows: table, First: r.next}
	if r.part.info.Grouped {
		block.Offsets = append(r.offsets, r.rows)
	}
	r.next += int64(len(r.offsets))
	r.offsets, r.rows = nil, 0
	return r.yield(block)
}

func (r *rowReader) end(to int64) error {
	if r.rows > 0 {
		if err := r.flush(); err != nil {
			return err
		}
	}
	if r.next != to {
		return changed(fmt.Errorf("trino: the units end at %d, want %d", r.next, to))
	}
	return nil
}

// Distinct asks the engine for the different values of a column.
func (p *part) Distinct(ctx context.Context, column string, most int) (dataset.Column, bool, error) {
	at, ok := p.index[column]
	if !ok {
		return dataset.Column{}, false, fmt.Errorf("trino: no column %q", column)
	}
	f := p.info.Schema.Fields[at]
	name := fmt.Sprintf("c%d", at)
	there := "NOT is_nan(" + name + ")"
	switch f.Kind {
	case dataset.Bool:
		there = name + " < 2"
	case dataset.Text:
		there = name + " IS NOT NULL"
	}
	ctx, cancel := p.deadline(ctx)
	defer cancel()
	c, n := newCollector(f), 0
	err := p.source.reader.stream(ctx, fmt.Sprintf("SELECT %s FROM (SELECT DISTINCT %s FROM %s WHERE %s LIMIT %d)", packed(f.Kind, name), name, p.table(), there, int64(max(most, 0))+1), func(row []byte) error {
		u := unpacker{b: row}
		c.read(&u)
		n++
		if u.failed || len(u.b) > 0 {
			return fmt.Errorf("%w: a value of %d bytes", errProtocol, len(row))
		}
		return nil
	})
	if err != nil {
		return dataset.Column{}, false, ofPart(err)
	}
	if n > most {
		return dataset.Column{}, false, nil
	}
	slices.SortFunc(c.numbers, cmp.Compare)
	slices.Sort(c.bools)
	sorted := slices.Clone(c.texts) // each stands once, so that codes are places
	slices.Sort(sorted)
	table, err := tableOfAll([]*collector{{field: f, numbers: c.numbers, bools: c.bools, codes: c.codes, texts: sorted}})
	if err != nil {
		return dataset.Column{}, false, unavailable(err)
	}
	return *table.Column(0), true, nil
}

// Facts asks the engine for what a card says of the columns.
func (p *part) Facts(ctx context.Context) ([]sources.Facts, error) {
	if err := p.Check(ctx); err != nil {
		return nil, err
	}
	fields := p.info.Schema.Fields
	facts := make([]sources.Facts, len(fields))
	for from := 0; from < len(fields); from += factColumns {
		if err := p.factsOf(ctx, facts, from, min(from+factColumns, len(fields))); err != nil {
			return nil, err
		}
	}
	return facts, nil
}

func (p *part) factsOf(ctx context.Context, facts []sources.Facts, from, to int) error {
	fields := p.info.Schema.Fields[from:to]
	list := []string{"to_big_endian_64(count(*))"}
	for i, f := range fields {
		name := fmt.Sprintf("c%d", from+i)
		switch f.Kind {
		case dataset.Text:
			list = append(list, "to_big_endian_64(count_if("+name+" IS NULL))")
		case dataset.Bool:
			list = append(list, "to_big_endian_64(count_if("+name+" = 2))")
		default:
			finite := "if(NOT is_nan(" + name + "), " + name + ")"
			list = append(list, "to_big_endian_64(count_if(is_nan("+name+")))", "to_ieee754_64(coalesce(min("+finite+"), 1e0))", "to_ieee754_64(coalesce(max("+finite+"), 0e0))")
		}
	}
	row, err := p.one(ctx, "SELECT "+packs(list)+" FROM "+p.table())
	if err != nil {
		return err
	}
	u := unpacker{b: row}
	u.int64()
	for i, f := range fields {
		one := &facts[from+i]
		one.Nulls = u.int64()
		if f.Kind == dataset.Number || f.Kind == dataset.Time {
			one.Low, one.High = u.number(), u.number()
			one.Infinite = p.kept.Infinite[f.Name]
		}
	}
	if u.failed || len(u.b) > 0 {
		return unavailable(fmt.Errorf("%w: facts of %d bytes", errProtocol, len(row)))
	}
	for i, f := range fields {
		if f.Kind != dataset.Text {
			continue
		}
		row, err := p.one(ctx, fmt.Sprintf("SELECT to_big_endian_64(count(DISTINCT c%d)) FROM %s", from+i, p.table()))
		if err != nil {
			return err
		}
		u := unpacker{b: row}
		facts[from+i].Distinct = u.int64()
	}
	return nil
}

// one is the only row of a statement.
func (p *part) one(ctx context.Context, statement string) (one []byte, err error) {
	ctx, cancel := p.deadline(ctx)
	defer cancel()
	n := 0
	err = p.source.reader.stream(ctx, statement, func(row []byte) error {
		one = slices.Clone(row)
		n++
		return nil
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: %d rows, want one", errProtocol, n)
	}
	if err != nil {
		return nil, ofPart(err)
	}
	return one, nil
}
