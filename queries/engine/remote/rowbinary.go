package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// Rows are some rows of a table, which are written.
type Rows struct {
	table   *dataset.Table
	columns []*dataset.Column // in the order of the layout
	rows    []int             // which
	units   []uint32          // of all rows; nil where every row is its own unit
	number  func(x float64) float64
}

// NewRows are some rows of a table, for a layout of its schema. offsets are those of the units, nil where every row is one.
func NewRows(t *dataset.Table, layout *sql.Table, offsets []uint32, rows []int) (*Rows, error) {
	r := &Rows{table: t, rows: rows, number: cleanNumber}
	byName := map[string]*dataset.Column{}
	for i := range t.Columns() {
		c := t.Column(i)
		if err := checkTimes(c); err != nil {
			return nil, err
		}
		place, ok := layout.Columns[c.Name]
		if !ok || place.Type != typeOf[c.Kind] {
			return nil, fmt.Errorf("remote: column %q is not one of the layout", c.Name)
		}
		byName[place.Name] = c
	}
	for _, c := range inPlace(layout) {
		if byName[c.Name] == nil {
			return nil, fmt.Errorf("remote: the table has no column for %s", c.Name)
		}
		r.columns = append(r.columns, byName[c.Name])
	}
	if (offsets != nil) != (layout.Unit != "") {
		return nil, errors.New("remote: a layout of units has offsets")
	}
	if offsets != nil {
		r.units = make([]uint32, t.Rows())
		for u := range offsets[1:] {
			for row := offsets[u]; row < offsets[u+1]; row++ {
				r.units[row] = uint32(u)
			}
		}
	}
	return r, nil
}

// binary is the rows in ClickHouse's format RowBinary: doubles as their bits, so that no decimal stands between.
func (r *Rows) binary(t *sql.Table) []byte {
	var b []byte
	for _, row := range r.rows {
		b = binary.LittleEndian.AppendUint64(b, uint64(row))
		if t.Unit != "" {
			b = binary.LittleEndian.AppendUint64(b, uint64(r.units[row]))
		}
		for _, c := range r.columns {
			switch c.Kind {
			case dataset.Text:
				text, null := "", byte(1)
				if c.Codes[row] > 0 {
					text, null = c.Dictionary.Text(int(c.Codes[row]-1)), 0
				}
				b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
				b = append(b, null)
			case dataset.Bool:
				b = append(b, c.Bools[row])
			default:
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.number(c.Numbers[row])))
			}
		}
	}
	return b
}

// Block implements [Engine].
func (c *ClickHouse) Block(ctx context.Context, t *sql.Table, columns []string, from, to int64) (Block, error) {
	selected, numbered := []string{t.Row}, t.Row
	if t.Unit != "" {
		numbered = t.Unit
	}
	for _, name := range columns {
		column := t.Columns[name]
		if selected = append(selected, column.Name); column.Type == rowfn.Text {
			selected = append(selected, column.Null)
		}
	}
	statement := fmt.Sprintf("SELECT %s FROM %s WHERE %s >= %d AND %[3]s < %[5]d FORMAT RowBinary", strings.Join(selected, ","), t.From, numbered, from, to)
	answer, err := c.ask(ctx, statement, BlockBytes)
	if err != nil {
		return Block{}, err
	}
	b, ok := decode(answer, t, columns)
	if !ok {
		return Block{}, &Error{Kind: Failed, Engine: c.engine, Detail: "the answer is none of rows"}
	}
	return b, nil
}

// decode reads rows in RowBinary.
func decode(data []byte, t *sql.Table, columns []string) (b Block, ok bool) {
	texts, nulls := map[string][]string{}, map[string][]bool{}
	known := map[string]string{} // so that a text which comes often is there once
	b.Columns = make([]dataset.Column, len(columns))
	for i, name := range columns {
		b.Columns[i].Field = dataset.Field{Name: name, Kind: kindOf[t.Columns[name].Type], Source: "stored"}
	}
	word := func() (w uint64) {
		if len(data) < 8 {
			ok = false
			return 0
		}
		w, data = binary.LittleEndian.Uint64(data), data[8:]
		return w
	}
	octet := func() (o byte) {
		if len(data) < 1 {
			ok = false
			return 0
		}
		o, data = data[0], data[1:]
		return o
	}
	for ok = true; ok && len(data) > 0; {
		b.Rows = append(b.Rows, int64(word()))
		for i := range b.Columns {
			switch column := &b.Columns[i]; column.Kind {
			case dataset.Text:
				n, size := binary.Uvarint(data)
				if size <= 0 || n > uint64(len(data)-size) {
					return b, false
				}
				text := data[size : size+int(n)]
				data = data[size+int(n):]
				s, seen := known[string(text)]
				if !seen {
					s = string(text)
					known[s] = s
				}
				texts[column.Name], nulls[column.Name] = append(texts[column.Name], s), append(nulls[column.Name], octet() != 0)
			case dataset.Bool:
				column.Bools = append(column.Bools, octet())
			default:
				column.Numbers = append(column.Numbers, math.Float64frombits(word()))
			}
		}
	}
	for i := range b.Columns {
		if column := &b.Columns[i]; column.Kind == dataset.Text {
			null := nulls[column.Name]
			*column = dataset.NewText(column.Name, texts[column.Name], func(row int) bool { return null[row] })
		}
	}
	return b, ok
}

var kindOf = map[rowfn.Type]dataset.Kind{rowfn.Number: dataset.Number, rowfn.Condition: dataset.Bool, rowfn.Text: dataset.Text, rowfn.Time: dataset.Time}
