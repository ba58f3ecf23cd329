package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
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

	spending *spending // nil where columns stay

	fingerprint [sha256.Size]byte // of the manifest; zeros for a table in memory
}

// FromColumns returns a table over the caller's slices, which must not be changed afterwards. It returns an error
// when lengths differ, names are empty or repeated, or a column's values are not of its kind.
//
// What need not be in order is put in order, in a copy where there is anything to do: numbers that are not finite
// become null and -0 becomes 0; a dictionary is put in the order of marks, a text that it has twice becomes one, and codes follow.
func FromColumns(columns ...Column) (*Table, error) {
	columns = slices.Clone(columns)
	rows := 0
	for i := range columns {
		c := &columns[i]
		if err := c.clean(); err != nil {
			return nil, fmt.Errorf("dataset: column %q: %w", c.Name, err)
		}
		if i == 0 {
			rows = c.Len()
		} else if c.Len() != rows {
			return nil, fmt.Errorf("dataset: column %q has %d rows, column %q has %d", c.Name, c.Len(), columns[0].Name, rows)
		}
	}
	return newTable(columns, rows)
}

// NewText returns a Text column of these values. null, where given, tells which rows are null; their values are not
// looked at.
func NewText(name string, values []string, null func(row int) bool) Column {
	isNull := func(i int) bool { return null != nil && null(i) }
	var texts []string
	known := map[string]uint32{}
	codes := make([]uint32, len(values))
	for i, v := range values {
		if isNull(i) {
			continue
		}
		if known[v] == 0 {
			texts = append(texts, v)
			known[v] = uint32(len(texts))
		}
		codes[i] = known[v]
	}
	c := Column{Field: Field{Name: name, Kind: Text, Source: "string"}, Codes: codes, Dictionary: NewDictionary(texts...)}
	_ = c.cleanText() // texts that cannot be stay as they are, and FromColumns says so
	return c
}

// newTable indexes clean columns by name; each must have this many rows.
func newTable(columns []Column, rows int) (*Table, error) {
	t := &Table{columns: columns, rows: rows, index: make(map[string]int, len(columns))}
	for i := range columns {
		name := columns[i].Name
		if _, twice := t.index[name]; twice {
			return nil, fmt.Errorf("dataset: two columns are named %q", name)
		}
		t.index[name] = i
	}
	return t, nil
}

// Close unmaps the table. None of its columns may be used afterwards, by anyone; copies of texts may.
func (t *Table) Close() error {
	mapping := t.mapping
	t.mapping, t.columns, t.index, t.rows, t.spending = nil, nil, nil, 0, nil
	if mapping == nil {
		return nil
	}
	return unmapFile(mapping)
}

// Fingerprint is what [Fingerprint] says of the directory that the table was opened from; zeros for a table in memory.
func (t *Table) Fingerprint() [sha256.Size]byte { return t.fingerprint }

// Rows is the number of rows.
func (t *Table) Rows() int { return t.rows }

// Columns is the number of columns.
func (t *Table) Columns() int { return len(t.columns) }

// Column returns column i, 0 <= i < Columns(). Its slices must not be written to.
func (t *Table) Column(i int) *Column { return &t.columns[i] }

// Lookup returns the column of exactly that name.
func (t *Table) Lookup(name string) (*Column, bool) {
	i, ok := t.index[name]
	if !ok {
		return nil, false
	}
	return &t.columns[i], true
}

// Schema returns names, kinds and source types of the columns, in order.
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

// Null reports whether the value of a row is null.
func (c *Column) Null(row int) bool {
	switch c.Kind {
	case Bool:
		return c.Bools[row] == NullBool
	case Text:
		return c.Codes[row] == 0
	default:
		return math.IsNaN(c.Numbers[row])
	}
}

// clean brings a caller's column into the form that every table keeps, or says why it cannot.
func (c *Column) clean() error {
	if err := c.Field.check(); err != nil {
		return err
	}
	number := c.Kind == Number || c.Kind == Time
	if (c.Numbers != nil && !number) || (c.Bools != nil && c.Kind != Bool) || (c.Codes != nil && c.Kind != Text) ||
		(c.Dictionary.Len() > 0 && c.Kind != Text) {
		return fmt.Errorf("it is of kind %v and has values of another", c.Kind)
	}
	if c.Len() > MaxRows {
		return fmt.Errorf("%d rows, the limit is %d", c.Len(), MaxRows)
	}
	if number && indexUnclean(c.Numbers) >= 0 {
		c.Numbers = slices.Clone(c.Numbers)
		cleanNumbers(c.Numbers)
	}
	for i, v := range c.Bools {
		if v > NullBool {
			return fmt.Errorf("row %d holds the byte %d, which is no boolean", i, v)
		}
	}
	return c.cleanText()
}

func (c *Column) cleanText() error {
	if i := indexAbove(c.Codes, uint32(c.Dictionary.Len())); i >= 0 {
		return fmt.Errorf("row %d has code %d, the dictionary has %d texts", i, c.Codes[i], c.Dictionary.Len())
	}
	ordered, remap, err := c.Dictionary.ordered()
	if err != nil || remap == nil {
		return err
	}
	codes := make([]uint32, len(c.Codes))
	for i, code := range c.Codes {
		codes[i] = remap[code]
	}
	c.Codes, c.Dictionary = codes, ordered
	return nil
}

// indexAbove returns the index of the first value above limit, or -1.
func indexAbove(values []uint32, limit uint32) int {
	for i, v := range values {
		if v > limit {
			return i
		}
	}
	return -1
}

const (
	// nullBits are the bits of a null number: those of math.NaN(), and of no other NaN, so that equal columns have equal
	// bytes.
	nullBits = 0x7FF8000000000001
	// infiniteBits are those of a null that was an infinity in the source. It is a null in everything; a card says how
	// many the training part has.
	infiniteBits = 0x7FF8000000000002
)

// Infinite reports whether a value of a Number or Time column, a null, was an infinity in the source.
func Infinite(v float64) bool { return math.Float64bits(v) == infiniteBits }

// unclean reports whether v is what no table holds: an infinity, -0, or a NaN that is not the null.
func unclean(v float64) bool {
	b := math.Float64bits(v)
	if b<<1-1 < 0x7FF<<53-1 { // neither a zero nor of the highest exponent, as nearly all
		return false
	}
	return b == 1<<63 || (b&0x7FF0000000000000 == 0x7FF0000000000000 && b != nullBits && b != infiniteBits)
}

// indexUnclean returns the index of the first number that no table holds, or -1.
func indexUnclean(values []float64) int {
	for i, v := range values {
		if unclean(v) {
			return i
		}
	}
	return -1
}

// cleanNumbers makes infinities and all NaN the null and -0 zero, in place.
func cleanNumbers(dst []float64) {
	for i, v := range dst {
		switch {
		case !unclean(v):
		case v == 0:
			dst[i] = 0
		case math.IsInf(v, 0):
			dst[i] = math.Float64frombits(infiniteBits)
		default:
			dst[i] = math.Float64frombits(nullBits)
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
