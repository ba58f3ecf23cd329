package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxRows is the largest number of rows of a table, so that the int64 sum of a 30-bit value over all rows cannot overflow.
const MaxRows = math.MaxInt32

// Table is a read-only table, mapped from files or in memory. It is safe for concurrent use until Close.
type Table struct {
	columns []Column
	index   map[string]int
	rows    int
	mapping []byte // nil for a table in memory
}

// FromColumns returns a table over the caller's slices, which must not be changed afterwards. Numbers that are not
// finite become null and -0 becomes 0, in a copy where there are any. It returns an error when lengths differ, names are
// empty or repeated, or a column's values are not of its kind; a dictionary must be sorted and unique (see [NewText]).
func FromColumns(columns ...Column) (*Table, error) {
	columns = slices.Clone(columns)
	rows := 0
	for i := range columns {
		c := &columns[i]
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("dataset: column %q: %w", c.Name, err)
		}
		if (c.Kind == Number || c.Kind == Time) && indexUnclean(c.Numbers) >= 0 {
			c.Numbers = slices.Clone(c.Numbers)
			cleanNumbers(c.Numbers)
		}
		if i == 0 {
			rows = c.Len()
		} else if c.Len() != rows {
			return nil, fmt.Errorf("dataset: column %q has %d rows, column %q has %d", c.Name, c.Len(), columns[0].Name, rows)
		}
	}
	return newTable(columns, rows)
}

// NewText returns a Text column of these values. null, where given, tells which rows are null.
func NewText(name string, values []string, null func(row int) bool) Column {
	isNull := func(i int) bool { return null != nil && null(i) }
	dictionary := make([]string, 0, len(values))
	for i, v := range values {
		if !isNull(i) {
			dictionary = append(dictionary, v)
		}
	}
	slices.Sort(dictionary)
	dictionary = slices.Clip(slices.Compact(dictionary))
	codes := make([]uint32, len(values))
	for i, v := range values {
		if !isNull(i) {
			at, _ := slices.BinarySearch(dictionary, v)
			codes[i] = uint32(at) + 1
		}
	}
	return Column{Field: Field{Name: name, Kind: Text, Source: "string"}, Codes: codes, Dictionary: dictionary}
}

// newTable indexes the columns by name; each must have this many rows.
func newTable(columns []Column, rows int) (*Table, error) {
	t := &Table{columns: columns, rows: rows, index: make(map[string]int, len(columns))}
	for i := range columns {
		name := columns[i].Name
		if name == "" {
			return nil, fmt.Errorf("dataset: column %d has no name", i)
		}
		if _, twice := t.index[name]; twice {
			return nil, fmt.Errorf("dataset: two columns are named %q", name)
		}
		t.index[name] = i
	}
	return t, nil
}

// Close unmaps the table. None of its columns may be used afterwards.
func (t *Table) Close() error {
	mapping := t.mapping
	t.mapping, t.columns, t.index, t.rows = nil, nil, nil, 0
	if mapping == nil {
		return nil
	}
	return unmapFile(mapping)
}

// Rows is the number of rows.
func (t *Table) Rows() int { return t.rows }

// Columns is the number of columns.
func (t *Table) Columns() int { return len(t.columns) }

// Column returns column i, 0 <= i < Columns().
func (t *Table) Column(i int) *Column { return &t.columns[i] }

// Lookup returns the column of that name.
func (t *Table) Lookup(name string) (*Column, bool) {
	i, ok := t.index[name]
	if !ok {
		return nil, false
	}
	return &t.columns[i], true
}

// Schema returns the names and kinds of the columns.
func (t *Table) Schema() Schema {
	fields := make([]Field, len(t.columns))
	for i := range t.columns {
		fields[i] = t.columns[i].Field
	}
	return Schema{Fields: fields}
}

// Len is the number of values of the column.
func (c *Column) Len() int {
	switch c.Kind {
	case Bool:
		return len(c.Bools)
	case Text:
		return len(c.Codes)
	default:
		return len(c.Numbers)
	}
}

// check reports the first value that a reader could not rely on; unclean numbers are no fault.
func (c *Column) check() error {
	if !c.Kind.Valid() {
		return fmt.Errorf("%v is no kind of column", c.Kind)
	}
	if c.Len() > MaxRows {
		return fmt.Errorf("%d rows, the limit is %d", c.Len(), MaxRows)
	}
	for i, v := range c.Bools {
		if v > NullBool {
			return fmt.Errorf("row %d holds the byte %d, which is no boolean", i, v)
		}
	}
	if i := indexAbove(c.Codes, uint32(len(c.Dictionary))); i >= 0 {
		return fmt.Errorf("row %d has code %d, the dictionary has %d texts", i, c.Codes[i], len(c.Dictionary))
	}
	for i, v := range c.Dictionary {
		if !utf8.ValidString(v) {
			return fmt.Errorf("text %d of the dictionary is not UTF-8", i)
		}
		if i > 0 && c.Dictionary[i-1] >= v {
			return errors.New("the dictionary is not sorted, or has a text twice")
		}
	}
	return nil
}

// sortDictionary returns the distinct texts in order, and for each old code (0 is null) the new one; remap is nil
// where the dictionary was sorted and unique already.
func sortDictionary(dictionary []string) (sorted []string, remap []uint32) {
	strictly := true
	for i := 1; i < len(dictionary) && strictly; i++ {
		strictly = dictionary[i-1] < dictionary[i]
	}
	if strictly {
		return dictionary, nil
	}
	order := make([]uint32, len(dictionary))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(dictionary[a], dictionary[b]) })
	sorted = make([]string, 0, len(dictionary))
	remap = make([]uint32, len(dictionary)+1)
	for _, old := range order {
		if s := dictionary[old]; len(sorted) == 0 || sorted[len(sorted)-1] != s {
			sorted = append(sorted, s)
		}
		remap[old+1] = uint32(len(sorted))
	}
	return sorted, remap
}

// indexAbove returns the index of the first value above limit, or -1.
func indexAbove(values []uint32, limit uint32) int {
	return slices.IndexFunc(values, func(v uint32) bool { return v > limit })
}

// unclean reports whether v is what no Number column holds: an infinity or -0.
func unclean(v float64) bool { return math.IsInf(v, 0) || (v == 0 && math.Signbit(v)) }

// indexUnclean returns the index of the first infinity or -0, or -1.
func indexUnclean(values []float64) int { return slices.IndexFunc(values, unclean) }

// cleanNumbers makes infinities null and -0 zero, in place.
func cleanNumbers(values []float64) {
	for i, v := range values {
		if unclean(v) {
			values[i] = v - v + 0 // NaN for an infinity, 0 for -0
		}
	}
}

// check reports a field that no table can have.
func (f Field) check() error {
	switch {
	case f.Name == "":
		return errors.New("a column has no name")
	case !utf8.ValidString(f.Name):
		return fmt.Errorf("the column name %q is not UTF-8", f.Name)
	case !f.Kind.Valid():
		return fmt.Errorf("column %q: %v is no kind of column", f.Name, f.Kind)
	}
	return nil
}
