package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
)

// factColumns is how many columns a statement of [part.Facts] is about.
const factColumns = 30

// Facts implements [sources.Part].
func (p *part) Facts(ctx context.Context) ([]sources.Facts, error) {
	var facts []sources.Facts
	for first := 0; first < len(p.info.Schema.Fields); first += factColumns {
		fields := p.info.Schema.Fields[first:min(first+factColumns, len(p.info.Schema.Fields))]
		list, types := []string{"count()"}, []string{"UInt64"}
		for i, f := range fields {
			c := fmt.Sprintf("c%d", first+i)
			switch f.Kind {
			case dataset.Bool:
				list, types = append(list, "countIf(equals("+c+", 2))"), append(types, "UInt64")
			case dataset.Text:
				list, types = append(list, "countIf(equals("+c+", "+nullText+"))", "uniqExact("+c+")"), append(types, "UInt64", "UInt64")
			default:
				list = append(list, "countIf(isNaN("+c+"))", fmt.Sprintf("countIf(equals(%s, toUInt64(%d)))", cleaned(f.Kind, c), uint64(infiniteBits)),
					"minIf("+c+", equals("+c+", "+c+"))", "maxIf("+c+", equals("+c+", "+c+"))")
				types = append(types, "UInt64", "UInt64", "Float64", "Float64")
			}
		}
		var row *block
		err := p.s.conn.retry(ctx, func() error {
			row = nil
			return p.stream(ctx, "SELECT "+strings.Join(list, ", ")+" FROM "+p.sql.Table, types, func(b *block) error {
				if b.rows > 0 {
					row = &block{b.rows, slices.Clone(b.columns)}
				}
				return nil
			})
		})
		if err != nil {
			return nil, ofPart(err)
		}
		if row == nil || row.rows != 1 || int64(row.columns[0].longs[0]) != p.info.Rows {
			return nil, changed(partChanged, fmt.Errorf("clickhouse: facts are not of %d rows", p.info.Rows))
		}
		at := 1
		long := func() int64 { at++; return int64(row.columns[at-1].longs[0]) }
		number := func() float64 { at++; return row.columns[at-1].numbers[0] }
		for _, f := range fields {
			fact := sources.Facts{Nulls: long()}
			switch f.Kind {
			case dataset.Bool:
			case dataset.Text:
				fact.Distinct = long() - min(fact.Nulls, 1)
			default:
				fact.Infinite = long()
				fact.Low, fact.High = number(), number()
				if fact.Nulls == p.info.Rows {
					fact.Low, fact.High = 1, 0
				}
			}
			facts = append(facts, fact)
		}
	}
	return facts, nil
}

// stream is a statement of the reader within the deadline.
func (p *part) stream(ctx context.Context, text string, types []string, yield func(*block) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.s.conn.o.deadline)
	defer cancel()
	return p.s.conn.stream(ctx, statement{as: p.s.conn.o.reader, text: text}, types, yield)
}

// Distinct implements [sources.Part].
func (p *part) Distinct(ctx context.Context, name string, most int) (dataset.Column, bool, error) {
	at := slices.IndexFunc(p.info.Schema.Fields, func(f dataset.Field) bool { return f.Name == name })
	if at < 0 {
		return dataset.Column{}, false, &sources.Error{Kind: sources.NotFound, Column: name, Detail: fmt.Sprintf("there is no column %q", name)}
	}
	f := p.info.Schema.Fields[at]
	value := cleaned(f.Kind, fmt.Sprintf("c%d", at))
	var all column
	rows := 0
	err := p.s.conn.retry(ctx, func() error {
		all, rows = column{}, 0
		// Nulls, of two sorts, are among them; and one more than there may be.
		return p.stream(ctx, fmt.Sprintf("SELECT DISTINCT %s FROM %s LIMIT %d", value, p.sql.Table, max(most, 0)+3), []string{cleanType(f.Kind)}, func(b *block) error {
			if b.rows > 0 {
				all.append(&b.columns[0], b.rows)
				rows += b.rows
			}
			return nil
		})
	})
	if err != nil {
		return dataset.Column{}, false, ofPart(err)
	}
	c, nulls := columnOf(f, &all, 0, rows)
	if rows-nulls > most {
		return dataset.Column{}, false, nil
	}
	order := make([]int, 0, rows)
	for row := range rows {
		if !c.Null(row) {
			order = append(order, row)
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		switch f.Kind {
		case dataset.Text:
			return strings.Compare(string(all.text(i)), string(all.text(j)))
		case dataset.Bool:
			return cmp.Compare(c.Bools[i], c.Bools[j])
		default:
			return cmp.Compare(c.Numbers[i], c.Numbers[j])
		}
	})
	sorted := dataset.Column{Field: f}
	switch f.Kind {
	case dataset.Text:
		texts := make([]string, len(order))
		for i, row := range order {
			texts[i] = string(all.text(row))
		}
		sorted = dataset.NewText(name, texts, nil)
		sorted.Field = f
	case dataset.Bool:
		sorted.Bools = []uint8{}
		for _, row := range order {
			sorted.Bools = append(sorted.Bools, c.Bools[row])
		}
	default:
		sorted.Numbers = []float64{}
		for _, row := range order {
			sorted.Numbers = append(sorted.Numbers, c.Numbers[row])
		}
	}
	return sorted, true, nil
}
