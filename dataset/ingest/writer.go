package ingest

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/xitongsys/parquet-go/parquet"
)

// ValueKind is what the values of a [ValueColumn] are.
type ValueKind uint8

// Kinds of values. All but texts are 64-bit words.
const (
	Integers   ValueKind = iota + 1
	Unsigned             // the bits of integers from 0 to 2^64-1
	Doubles              // IEEE 754 bits
	Truths               // 0 or 1
	Texts                // UTF-8
	Days                 // since 1970-01-01
	Instants             // microseconds since 1970-01-01 00:00 UTC
	LocalTimes           // microseconds since 1970-01-01 00:00 by a clock whose zone is not known
)

// ValueColumn is a column of a table that comes from elsewhere.
type ValueColumn struct {
	Name string
	Kind ValueKind
}

// Values are those of a column in some rows: Words, or Texts.
type Values struct {
	Words []int64
	Texts []string
	Null  []bool // which have no value; nil: all have one. What else a null has is not looked at
}

// Writer writes a table as Parquet that comes in pieces, so that it is decoded as an upload is. Its file is not compressed: it is read once.
type Writer struct {
	e       *exporter
	kinds   []ValueKind
	pending []Values
	rows    int
	texts   int // bytes of the texts that are pending
}

// NewWriter begins a file. Columns are optional, and have the types that pyarrow gives such values.
func NewWriter(w io.Writer, columns []ValueColumn) (*Writer, error) {
	v := &Writer{pending: make([]Values, len(columns))}
	var all []exportColumn
	for i, c := range columns {
		x := newElement(c.Name)
		p := &v.pending[i]
		if err := x.choose(c.Kind, p); err != nil {
			return nil, err
		}
		x.null = func(row int) bool { return p.Null[row] }
		all, v.kinds = append(all, x), append(v.kinds, c.Kind)
	}
	var err error
	v.e, err = newExporter(bufio.NewWriterSize(w, 1<<20), all, parquet.CompressionCodec_UNCOMPRESSED)
	return v, err
}

// choose sets the type of a kind, and how its values in p are boxed.
func (x *exportColumn) choose(kind ValueKind, p *Values) error {
	switch x.box = func(row int) any { return p.Words[row] }; kind {
	case Integers:
		setType(x.element, parquet.Type_INT64)
	case Unsigned:
		setType(x.element, parquet.Type_INT64)
		converted := parquet.ConvertedType_UINT_64
		x.element.ConvertedType = &converted
		integer := parquet.NewIntType()
		integer.BitWidth = 64
		x.element.LogicalType = &parquet.LogicalType{INTEGER: integer}
	case Doubles:
		setType(x.element, parquet.Type_DOUBLE)
		x.box = func(row int) any { return math.Float64frombits(uint64(p.Words[row])) }
	case Truths:
		setType(x.element, parquet.Type_BOOLEAN)
		x.box = func(row int) any { return p.Words[row] == 1 }
	case Texts:
		x.setText()
		x.box = func(row int) any { return p.Texts[row] }
	case Days:
		x.setDate()
		x.box = func(row int) any { return int32(p.Words[row]) }
	case Instants, LocalTimes:
		x.setStamp(kind == Instants)
	default:
		return fmt.Errorf("ingest: the column %q has no kind of values %d", x.element.Name, kind)
	}
	return nil
}

// Append adds rows: the values of each column, all of one length. It keeps none of the lists.
func (v *Writer) Append(columns []Values) error {
	if len(columns) != len(v.kinds) {
		return fmt.Errorf("ingest: values of %d columns for a table of %d", len(columns), len(v.kinds))
	}
	rows := -1
	for i, c := range columns {
		n, texts := len(c.Words), 0
		if v.kinds[i] == Texts {
			n = len(c.Texts)
			for _, text := range c.Texts {
				texts += len(text)
			}
		}
		if rows < 0 {
			rows = n
		}
		if n != rows || c.Null != nil && len(c.Null) != n {
			return fmt.Errorf("ingest: the column %q has %d values and %d nulls, others have %d", v.e.columns[i].element.Name, n, len(c.Null), rows)
		}
		if v.kinds[i] == Days && slices.ContainsFunc(c.Words, func(day int64) bool { return day != int64(int32(day)) }) {
			return fmt.Errorf("ingest: the column %q has a day beyond those of Parquet", v.e.columns[i].element.Name)
		}
		p := &v.pending[i]
		p.Words, p.Texts = append(p.Words, c.Words...), append(p.Texts, c.Texts...)
		if p.Null = append(p.Null, c.Null...); c.Null == nil {
			p.Null = append(p.Null, make([]bool, n)...)
		}
		v.texts += texts
	}
	if v.rows += max(rows, 0); v.rows >= v.e.groupRows || v.texts >= exportGroupBytes {
		return v.flush()
	}
	return nil
}

// flush writes what is pending as row groups.
func (v *Writer) flush() error {
	for from := 0; from < v.rows; from += v.e.groupRows {
		if err := v.e.writeGroup(from, min(from+v.e.groupRows, v.rows)); err != nil {
			return fmt.Errorf("ingest: write: %w", err)
		}
	}
	for i := range v.pending {
		p := &v.pending[i]
		clear(p.Texts) // their memory is that of whole pieces
		p.Words, p.Texts, p.Null = p.Words[:0], p.Texts[:0], p.Null[:0]
	}
	v.rows, v.texts = 0, 0
	return nil
}

// Close writes the end of the file. Without it there is no table.
func (v *Writer) Close() error {
	if err := v.flush(); err != nil {
		return err
	}
	return v.e.end()
}
