package sourcetest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// Type is how an owner holds a column. Each engine has a type of its own for it.
type Type int

const (
	Float64 Type = iota // Floats; what are no numbers, infinities and -0 are values like others
	Float32             // Floats, of which each is a float32
	Int64               // Ints
	Bool                // Bools
	Text                // Texts
	Instant             // Ints: a moment in UTC, in microseconds
)

// Column is a column of an owner's table. A row of which Null says so is null, and its value is not looked at.
type Column struct {
	Name   string
	Type   Type
	Wide   bool   // of an Int64: some integers of the table are beyond ±2^53, which no float64 holds; an upload has their digits
	Null   []bool // nil: no row is
	Floats []float64
	Ints   []int64
	Bools  []bool
	Texts  []string
}

// Rows are rows as an owner has them, before anything is made clean.
type Rows []Column

// Len is the number of rows.
func (r Rows) Len() int {
	if len(r) == 0 {
		return 0
	}
	return max(len(r[0].Floats), len(r[0].Ints), len(r[0].Bools), len(r[0].Texts))
}

// IsNull reports whether a row of the column is null.
func (c *Column) IsNull(row int) bool { return c.Null != nil && c.Null[row] }

// Take is the rows of these places, in this order.
func (r Rows) Take(rows []int) Rows {
	taken := make(Rows, len(r))
	for i, c := range r {
		taken[i] = Column{Name: c.Name, Type: c.Type, Wide: c.Wide, Null: pick(c.Null, rows), Floats: pick(c.Floats, rows), Ints: pick(c.Ints, rows), Bools: pick(c.Bools, rows), Texts: pick(c.Texts, rows)}
	}
	return taken
}

// Whole is the rows as a table of their own: whether its integers are wide is a matter of the rows that it has, and not of those of the table that they were taken from.
func (r Rows) Whole() Rows {
	const exact = 1 << 53
	whole := slices.Clone(r)
	for i := range whole {
		c := &whole[i]
		c.Wide = false
		for row, x := range c.Ints {
			c.Wide = c.Wide || c.Type == Int64 && !c.IsNull(row) && (x > exact || x < -exact)
		}
	}
	return whole
}

func pick[T any](values []T, rows []int) []T {
	if values == nil {
		return nil
	}
	picked := make([]T, len(rows))
	for i, row := range rows {
		picked[i] = values[row]
	}
	return picked
}

// Column is the column of a name; it must be there.
func (r Rows) Column(name string) *Column {
	for i := range r {
		if r[i].Name == name {
			return &r[i]
		}
	}
	panic("no column " + name)
}

// Upload is what the server holds after an upload of the same rows: what a source must hold too.
func (r Rows) Upload() *dataset.Table {
	columns := make([]dataset.Column, len(r))
	for i := range r {
		columns[i] = r[i].upload()
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		panic(fmt.Sprintf("rows that no table can have: %v", err))
	}
	return table
}

func (c *Column) upload() dataset.Column {
	d := dataset.Column{Field: dataset.Field{Name: c.Name}}
	switch c.Type {
	case Bool:
		d.Kind, d.Bools = dataset.Bool, make([]uint8, len(c.Bools))
		for i, b := range c.Bools {
			if b {
				d.Bools[i] = 1
			}
			if c.IsNull(i) {
				d.Bools[i] = dataset.NullBool
			}
		}
		return d
	case Text:
		return dataset.NewText(c.Name, c.Texts, c.IsNull)
	case Float64, Float32:
		d.Kind, d.Numbers = dataset.Number, make([]float64, len(c.Floats))
		copy(d.Numbers, c.Floats)
	default:
		if c.Wide {
			digits := make([]string, len(c.Ints))
			for i, x := range c.Ints {
				digits[i] = strconv.FormatInt(x, 10)
			}
			return dataset.NewText(c.Name, digits, c.IsNull)
		}
		d.Kind, d.Numbers = dataset.Number, make([]float64, len(c.Ints))
		if c.Type == Instant {
			d.Kind = dataset.Time
		}
		for i, x := range c.Ints {
			d.Numbers[i] = float64(x)
		}
	}
	for i := range d.Numbers {
		if c.IsNull(i) {
			d.Numbers[i] = math.NaN()
		}
	}
	return d
}

// cell is the value of a row of an upload as a text that tells all values apart: to compare tables cell by cell.
func cell(c *dataset.Column, row int) string {
	switch {
	case c.Null(row):
		return "null"
	case c.Kind == dataset.Bool:
		return strconv.Itoa(int(c.Bools[row]))
	case c.Kind == dataset.Text:
		return strconv.Quote(c.Dictionary.Text(int(c.Codes[row]) - 1))
	}
	return fmt.Sprintf("%v (%016x)", c.Numbers[row], math.Float64bits(c.Numbers[row]))
}

// line is the values of a row in the order of names.
func line(t *dataset.Table, names []string, row int) string {
	text := ""
	for _, name := range names {
		c, ok := t.Lookup(name)
		if !ok {
			return "no column " + name
		}
		text += name + "=" + cell(c, row) + " "
	}
	return text
}

// named are the names of the columns of a schema.
func named(s dataset.Schema) []string {
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	return names
}

// must ends a test that cannot go on.
func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
