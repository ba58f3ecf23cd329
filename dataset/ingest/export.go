package ingest

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/xitongsys/parquet-go/common"
	"github.com/xitongsys/parquet-go/layout"
	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/writer"

	"github.com/holdoutd/holdoutd/dataset"
)

const (
	// exportGroupBytes is about how much of the table is encoded before it is written: the memory that Export takes
	// is a small multiple of it.
	exportGroupBytes = 32 << 20
	// exportMaxGroupRows bounds the values of one column that are boxed at a time, 40 bytes each.
	exportMaxGroupRows = 1 << 19
	// exportMinGroupRows keeps the footer of a very wide table small.
	exportMinGroupRows = 1 << 10
	// exportPageBytes is the page size that other writers use; the library's default of 8 KB compresses badly.
	exportPageBytes = 1 << 20
	// exportedBy has the form "application version V (build B)", which readers parse.
	exportedBy = "holdoutd version 1.0.0 (build xitongsys/parquet-go-1.6.2)"
)

// Export writes a table as Parquet, zstd-compressed, every column optional, by github.com/xitongsys/parquet-go.
//
// Columns keep their names, order, nulls and, where the values allow, the type that they had in the uploaded file:
// a Number whose source was an integer type and whose values are all whole becomes INT64, other Numbers DOUBLE; a
// Time whose source was DATE and whose values are all whole days becomes DATE, other Times TIMESTAMP in
// microseconds, UTC-adjusted when the source was; Bool becomes BOOLEAN, Text STRING. It writes row group by row
// group, in memory that does not grow with the rows.
func Export(w io.Writer, t *dataset.Table) error {
	return ExportPieces(w, t.Schema(), func(yield func(*dataset.Table) error) error { return yield(t) })
}

// ExportPieces is Export of a table that comes piece by piece, each with the columns of the schema. each yields the pieces in order; it is called twice, for what type a column gets depends on all of its values, and must
// yield the same ones. An error that it returns is returned.
func ExportPieces(w io.Writer, schema dataset.Schema, each func(yield func(piece *dataset.Table) error) error) error {
	whole := make([]bool, len(schema.Fields))
	for i := range whole {
		whole[i] = true
	}
	if err := each(func(t *dataset.Table) error {
		for i := range whole {
			whole[i] = whole[i] && wholeValues(t.Column(i))
		}
		return nil
	}); err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 1<<20)
	e, err := newExporter(buffered, schema, whole)
	if err != nil {
		return err
	}
	if err := each(func(t *dataset.Table) error {
		if err := e.take(t); err != nil {
			return err
		}
		for from := 0; from < t.Rows(); from += e.groupRows {
			if err := e.writeGroup(from, min(from+e.groupRows, t.Rows())); err != nil {
				return fmt.Errorf("ingest: export: %w", err)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := e.finish(); err != nil {
		return fmt.Errorf("ingest: export: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("ingest: export: %w", err)
	}
	return nil
}

// exporter drives the library's page and row-group layers with whole columns. Its row interface takes one object a
// row through reflection, which is ten times slower, and maps names to Go identifiers, by which "a" and "A" become
// one; so columns go by their numbers here and get their names back in the footer.
type exporter struct {
	out       *bufio.Writer
	columns   []exportColumn
	elements  []*parquet.SchemaElement // the root, then the columns, by their real names
	writer    *writer.ParquetWriter
	groupRows int
	levels    []int32 // of the column at hand: 1 value, 0 null
	zeros     []int32
	values    []any
}

// exportColumn boxes values of one column of the piece at hand.
type exportColumn struct {
	whole   bool // of all pieces: its numbers are integers, or its times days
	element *parquet.SchemaElement
	path    string // the library's name of the column within the file
	box     func(i int) any
	null    func(i int) bool
}

func newExporter(out *bufio.Writer, schema dataset.Schema, whole []bool) (*exporter, error) {
	e := &exporter{out: out}
	n := int32(len(schema.Fields))
	root := parquet.NewSchemaElement()
	root.Name, root.NumChildren = "schema", &n
	e.elements = []*parquet.SchemaElement{root}
	internal := []*parquet.SchemaElement{root}
	width := int64(0)
	for i, f := range schema.Fields {
		c := newExportColumn(f, whole[i])
		e.columns = append(e.columns, c)
		e.elements = append(e.elements, c.element)
		numbered := *c.element
		numbered.Name = "C" + strconv.Itoa(i)
		internal = append(internal, &numbered)
		width += 8
	}
	rows := int(min(exportGroupBytes/max(width, 1), exportMaxGroupRows))
	e.groupRows = max(rows, exportMinGroupRows)

	var err error
	e.writer, err = writer.NewParquetWriterFromWriter(out, internal, 1)
	if err != nil {
		return nil, fmt.Errorf("ingest: export: %w", err)
	}
	for i := range e.columns {
		e.columns[i].path = e.writer.SchemaHandler.IndexMap[int32(i+1)]
	}
	e.writer.PageSize = exportPageBytes
	e.writer.CompressionType = parquet.CompressionCodec_ZSTD
	by := exportedBy
	e.writer.Footer.CreatedBy = &by
	return e, nil
}

// newExportColumn chooses the type of a column.
func newExportColumn(f dataset.Field, whole bool) exportColumn {
	el := parquet.NewSchemaElement()
	el.Name = f.Name
	optional := parquet.FieldRepetitionType_OPTIONAL
	el.RepetitionType = &optional
	switch {
	case f.Kind == dataset.Bool:
		setType(el, parquet.Type_BOOLEAN)
	case f.Kind == dataset.Text:
		setType(el, parquet.Type_BYTE_ARRAY)
		utf8 := parquet.ConvertedType_UTF8
		el.ConvertedType = &utf8
		el.LogicalType = &parquet.LogicalType{STRING: parquet.NewStringType()}
	case f.Kind == dataset.Time && whole:
		setType(el, parquet.Type_INT32)
		date := parquet.ConvertedType_DATE
		el.ConvertedType = &date
		el.LogicalType = &parquet.LogicalType{DATE: parquet.NewDateType()}
	case f.Kind == dataset.Time:
		setType(el, parquet.Type_INT64)
		stamp := parquet.NewTimestampType()
		stamp.Unit = &parquet.TimeUnit{MICROS: parquet.NewMicroSeconds()}
		stamp.IsAdjustedToUTC = strings.HasSuffix(f.Source, utcSuffix)
		el.LogicalType = &parquet.LogicalType{TIMESTAMP: stamp}
		if stamp.IsAdjustedToUTC { // the older annotation means UTC
			micros := parquet.ConvertedType_TIMESTAMP_MICROS
			el.ConvertedType = &micros
		}
	case whole:
		setType(el, parquet.Type_INT64)
	default:
		setType(el, parquet.Type_DOUBLE)
	}
	return exportColumn{element: el, whole: whole}
}

// wholeValues reports whether a column's values allow the narrower one of the types that its source had: integers, or days.
func wholeValues(c *dataset.Column) bool {
	switch c.Kind {
	case dataset.Number:
		return integerSource(c.Source) && allWhole(c.Numbers, 1, maxExact)
	case dataset.Time:
		return c.Source == "DATE" && allWhole(c.Numbers, microsPerDay, math.MaxInt32*microsPerDay)
	}
	return false
}

// take goes on with a piece.
func (e *exporter) take(t *dataset.Table) error {
	for i := range e.columns {
		if err := e.columns[i].take(t.Column(i)); err != nil {
			return err
		}
	}
	return nil
}

func (x *exportColumn) take(c *dataset.Column) error {
	x.null = c.Null
	switch {
	case c.Kind == dataset.Bool:
		x.box = func(i int) any { return c.Bools[i] == 1 }
	case c.Kind == dataset.Text:
		x.box = boxTexts(c)
	case c.Kind == dataset.Time && x.whole:
		x.box = func(i int) any { return int32(c.Numbers[i] / microsPerDay) }
	case c.Kind == dataset.Time:
		for _, v := range c.Numbers {
			if math.Abs(v) > maxMicros {
				return fmt.Errorf("ingest: export: column %q has times beyond the year 140,000", c.Name)
			}
		}
		x.box = func(i int) any { return int64(math.Floor(c.Numbers[i])) }
	case x.whole:
		x.box = func(i int) any { return int64(c.Numbers[i]) }
	default:
		x.box = func(i int) any { return c.Numbers[i] }
	}
	return nil
}

// maxBoxedTexts bounds the texts of a column that are boxed once and for all; those of larger dictionaries seldom repeat.
const maxBoxedTexts = 1 << 16

func boxTexts(c *dataset.Column) func(i int) any {
	if c.Dictionary.Len() > maxBoxedTexts {
		return func(i int) any { return c.Dictionary.Text(int(c.Codes[i]) - 1) }
	}
	boxed := make([]any, c.Dictionary.Len())
	for i := range boxed {
		boxed[i] = c.Dictionary.Text(i)
	}
	return func(i int) any { return boxed[c.Codes[i]-1] }
}

const microsPerDay = 86400e6

func setType(el *parquet.SchemaElement, t parquet.Type) { el.Type = &t }

// integerSource reports whether the uploaded column was of an integer type.
func integerSource(source string) bool {
	return strings.HasPrefix(source, "INT") || strings.HasPrefix(source, "UINT") || strings.HasPrefix(source, "DURATION")
}

// allWhole reports whether every value that is not null is a whole multiple of unit within ±limit.
func allWhole(values []float64, unit, limit float64) bool {
	for _, v := range values {
		if v == v && (math.Abs(v) > limit || math.Mod(v, unit) != 0) {
			return false
		}
	}
	return true
}

// writeGroup writes the rows from..to-1 as one row group.
func (e *exporter) writeGroup(from, to int) error {
	for i := range e.columns {
		c := &e.columns[i]
		pages, _ := layout.TableToDataPages(e.columnTable(c, from, to), exportPageBytes, e.writer.CompressionType)
		for _, p := range pages {
			p.DataTable = nil // its values are in RawData now
		}
		e.writer.PagesMapBuf[c.path] = pages
	}
	e.writer.NumRows = int64(to - from)
	if err := e.writer.Flush(true); err != nil {
		return err
	}
	e.writer.Footer.NumRows += int64(to - from)
	// Column and offset indexes are optional, and the library's are wrong for pages of nulls only.
	e.writer.ColumnIndexes, e.writer.OffsetIndexes = nil, nil
	_, err := e.out.Write(nil) // the library overlooks some errors, this reports them
	return err
}

// columnTable boxes a piece of a column; the boxes are reused by the next one.
func (e *exporter) columnTable(c *exportColumn, from, to int) *layout.Table {
	n := to - from
	if len(e.values) < n {
		e.values, e.levels, e.zeros = make([]any, n), make([]int32, n), make([]int32, n)
	}
	for i := range n {
		if c.null(from + i) {
			e.values[i], e.levels[i] = nil, 0
		} else {
			e.values[i], e.levels[i] = c.box(from+i), 1
		}
	}
	t := layout.NewEmptyTable()
	t.Schema = c.element
	t.Path = common.StrToPath(c.path)[1:]
	t.RepetitionType = parquet.FieldRepetitionType_OPTIONAL
	t.MaxDefinitionLevel = 1
	t.Values, t.DefinitionLevels, t.RepetitionLevels = e.values[:n], e.levels[:n], e.zeros[:n]
	t.Info = &common.Tag{OmitStats: true} // nobody needs them here, and long texts would fill the footer
	return t
}

// finish writes the footer, with the real names. The library's own WriteStop would look the names up by its
// identifiers and add the indexes.
func (e *exporter) finish() error {
	footer := e.writer.Footer
	footer.Schema = e.elements
	for _, group := range footer.RowGroups {
		for i, chunk := range group.Columns {
			chunk.MetaData.PathInSchema = []string{e.elements[i+1].Name}
		}
	}
	ts := thrift.NewTSerializer()
	ts.Protocol = thrift.NewTCompactProtocolFactoryConf(nil).GetProtocol(ts.Transport)
	b, err := ts.Write(context.Background(), footer)
	if err != nil {
		return err
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	_, err = e.out.Write(append(b, "PAR1"...))
	return err
}
