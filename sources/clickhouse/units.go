package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
)

// unitsBlock is how many units are yielded together.
const unitsBlock = 1 << 16

// grouping is a table and what one unit of it is, with the SQL for it.
type grouping struct {
	of     *looked
	by     sources.Keys
	keys   []*kept
	clean  []string // of the key: what units are grouped by
	latest *kept
	strata *kept
	alias  string // begins every name that a statement gives, and no column of the table
}

// newGrouping reads a snapshot and finds the columns of the keys.
func newGrouping(of sources.Snapshot, by sources.Keys) (*grouping, error) {
	g := &grouping{of: &looked{}, by: by}
	if err := json.Unmarshal(of.Private, g.of); err != nil {
		return nil, fmt.Errorf("clickhouse: the snapshot: %w", err)
	}
	if err := g.of.plan(); err != nil {
		return nil, err
	}
	g.alias = "_holdoutd"
	for slices.ContainsFunc(g.of.Columns, func(k kept) bool { return strings.HasPrefix(k.Name, g.alias) }) {
		g.alias += "_"
	}
	find := func(what, column string) (*kept, error) {
		for i := range g.of.Columns {
			if k := &g.of.Columns[i]; k.Name == column {
				return k, nil
			}
		}
		for _, skipped := range of.Skipped {
			if skipped.Name == column {
				return nil, refused(column, "%s is the column %q, which is not read: %s", what, column, skipped.Reason)
			}
		}
		return nil, &sources.Error{Kind: sources.NotFound, Column: column, Detail: fmt.Sprintf("%s is the column %q, which the table has not", what, column)}
	}
	if len(by.Columns) == 0 {
		return nil, refused("", "rows of this source have no places: name the columns that identify a row, or a unit, as the key")
	}
	seen := map[string]bool{}
	for _, column := range by.Columns {
		k, err := find("the key", column)
		if err != nil {
			return nil, err
		}
		if seen[column] {
			return nil, refused(column, "the key names the column %q twice", column)
		}
		seen[column] = true
		clean := k.clean()
		if by.Day {
			if k.Kind != dataset.Time || len(by.Columns) > 1 {
				return nil, refused(column, "days are those of one column of dates or times; %q is none", column)
			}
			// The day's first microsecond, of the quotient that the server's own tables have.
			clean = fmt.Sprintf("if(isNaN(%[1]s), toUInt64(%[2]d), %[3]s)", stored(k.Kind, clean), uint64(nullBits),
				cleaned(k.Kind, "plus(multiply(floor(divide("+stored(k.Kind, clean)+", toFloat64(86400000000))), toFloat64(86400000000)), toFloat64(0))"))
		}
		g.keys, g.clean = append(g.keys, k), append(g.clean, clean)
	}
	var err error
	if by.Latest != "" {
		if g.latest, err = find("the column of times", by.Latest); err != nil {
			return nil, err
		}
		if g.latest.Kind != dataset.Time {
			return nil, refused(by.Latest, "the latest time is asked of the column %q, which holds no dates or times", by.Latest)
		}
	}
	if by.Stratum != "" {
		if g.strata, err = find("the stratum", by.Stratum); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// key is the alias of a column of the key.
func (g *grouping) key(i int) string { return fmt.Sprintf("%sk%d", g.alias, i) }

// selected is SQL of the units of a table, a row for each, and the types of its columns: the key, the number of rows, then the latest time and the stratum where they are wanted.
func (g *grouping) selected() (text string, types []string) {
	var list, groups []string
	for i, clean := range g.clean {
		list, groups = append(list, clean+" AS "+g.key(i)), append(groups, g.key(i))
		types = append(types, cleanType(g.keys[i].Kind))
	}
	list, types = append(list, "count()"), append(types, "UInt64")
	if g.latest != nil {
		v := stored(g.latest.Kind, g.latest.clean())
		list, types = append(list, "maxIf("+v+", equals("+v+", "+v+"))", "countIf(equals("+v+", "+v+"))"), append(types, "Float64", "UInt64")
	}
	if g.strata != nil {
		v := g.strata.clean()
		list, types = append(list, "any("+v+")", "toUInt8(notEquals(min("+v+"), max("+v+")))"), append(types, cleanType(g.strata.Kind), "UInt8")
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + g.of.from() + " GROUP BY " + strings.Join(groups, ", "), types
}

// Units implements [sources.Source].
func (s *Source) Units(ctx context.Context, of sources.Snapshot, by sources.Keys, yield func(sources.Units) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	g, err := newGrouping(of, by)
	if err != nil {
		return err
	}
	return s.units(ctx, g, func(u sources.Units, _ *block, _, _ int) error { return yield(u) })
}

// units streams the units of a table, and the blocks of the reply in which the yielded ones are: from row to row.
func (s *Source) units(ctx context.Context, g *grouping, yield func(u sources.Units, b *block, from, to int) error) error {
	text, types := g.selected()
	return s.conn.stream(ctx, statement{as: s.conn.o.loader, text: text, settings: s.heavy()}, types, func(b *block) error {
		for from := 0; from < b.rows; from += unitsBlock {
			to := min(b.rows, from+unitsBlock)
			u, err := g.read(b, from, to)
			if err != nil {
				return err
			}
			if err := yield(u, b, from, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// read makes units of rows of a block.
func (g *grouping) read(b *block, from, to int) (u sources.Units, err error) {
	var columns []dataset.Column
	for i, k := range g.keys {
		c, nulls := columnOf(dataset.Field{Name: k.Name, Kind: k.Kind, Source: k.Type}, &b.columns[i], from, to)
		if nulls > 0 {
			return u, refused(k.Name, "the key's column %q is null, or no finite number, in a row: every row needs a key; leave such rows out in a view, or name another key", k.Name)
		}
		columns = append(columns, c)
	}
	if u.Keys, err = dataset.FromColumns(columns...); err != nil {
		return u, fmt.Errorf("clickhouse: %w", err)
	}
	at := len(g.keys)
	for _, n := range b.columns[at].longs[from:to] {
		if g.by.Rows && n != 1 {
			return u, refused(g.by.Columns[0], "the key identifies no row: a value of it is in several rows; name more columns, or make them one unit")
		}
		u.Rows = append(u.Rows, int64(n))
	}
	if at++; g.latest != nil {
		u.Latest = slices.Clone(b.columns[at].numbers[from:to])
		for i, n := range b.columns[at+1].longs[from:to] {
			if n == 0 {
				u.Latest[i] = math.NaN()
			}
		}
		at += 2
	}
	if g.strata != nil {
		if slices.Contains(b.columns[at+1].bytes[from:to], 1) {
			return u, refused(g.by.Stratum, "the stratum %q differs between rows of one unit; name a column that is the same in all rows of a unit", g.by.Stratum)
		}
		c, _ := columnOf(dataset.Field{Name: g.strata.Name, Kind: g.strata.Kind, Source: g.strata.Type}, &b.columns[at], from, to)
		t, err := dataset.FromColumns(c)
		if err != nil {
			return u, fmt.Errorf("clickhouse: %w", err)
		}
		u.Strata = t.Column(0)
	}
	return u, nil
}

// columnOf is a column of what clean, or a part, has: rows from up to to, copied; and how many are null.
func columnOf(f dataset.Field, c *column, from, to int) (d dataset.Column, nulls int) {
	d.Field = f
	switch f.Kind {
	case dataset.Bool:
		d.Bools = slices.Clone(c.bytes[from:to])
		for _, v := range d.Bools {
			if v == dataset.NullBool {
				nulls++
			}
		}
	case dataset.Text:
		var texts []string
		codes, known := make([]uint32, to-from), map[string]uint32{}
		for i := range codes {
			text := c.text(from + i)
			if len(text) == 1 && text[0] == 0xff {
				nulls++
				continue
			}
			code, ok := known[string(text)]
			if !ok {
				texts = append(texts, string(text))
				code = uint32(len(texts))
				known[texts[code-1]] = code
			}
			codes[i] = code
		}
		d.Codes, d.Dictionary = codes, dataset.NewDictionary(texts...)
	default:
		d.Numbers = make([]float64, to-from)
		if c.longs != nil { // bits
			for i, v := range c.longs[from:to] {
				d.Numbers[i] = math.Float64frombits(v)
			}
		} else {
			copy(d.Numbers, c.numbers[from:to])
		}
		for _, v := range d.Numbers {
			if v != v {
				nulls++
			}
		}
	}
	return d, nulls
}
