package ingest

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
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
func Export(w io.Writer, t *dataset.Table) error { return ExportOrdered(w, t, nil) }

// ExportOrdered is Export where text columns by these names are categories in an order, from the first to the last: pandas, pyarrow and Polars read them as such. An order
// that lacks a text of its column, or has a text twice, is left out. All of its texts are written, those that no row has, too.
func ExportOrdered(w io.Writer, t *dataset.Table, orders map[string][]string) error {
	var columns []exportColumn
	for i := range t.Schema().Fields {
		column := t.Column(i)
		c, err := newExportColumn(column)
		if err != nil {
			return err
		}
		if column.Kind == dataset.Text && orders[column.Name] != nil && covers(orders[column.Name], &column.Dictionary) {
			c.order = orders[column.Name]
		}
		columns = append(columns, c)
	}
	e, err := newExporter(bufio.NewWriterSize(w, 1<<20), columns, parquet.CompressionCodec_ZSTD)
	if err != nil {
		return err
	}
	for from := 0; from < t.Rows(); from += e.groupRows {
		if err := e.writeGroup(from, min(from+e.groupRows, t.Rows())); err != nil {
			return fmt.Errorf("ingest: export: %w", err)
		}
	}
	return e.end()
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
	ordered   bool    // a column has an order
	levels    []int32 // of the column at hand: 1 value, 0 null
	zeros     []int32
	values    []any
}

// exportColumn boxes values of one column.
type exportColumn struct {
	element *parquet.SchemaElement
	path    string // the library's name of the column within the file
	box     func(i int) any
	null    func(i int) bool
	order   []string // categories from the first to the last
}

func newExporter(out *bufio.Writer, columns []exportColumn, codec parquet.CompressionCodec) (*exporter, error) {
	e := &exporter{out: out, columns: columns}
	n := int32(len(columns))
	root := parquet.NewSchemaElement()
	root.Name, root.NumChildren = "schema", &n
	e.elements = []*parquet.SchemaElement{root}
	internal := []*parquet.SchemaElement{root}
	for i := range columns {
		c := &columns[i]
		e.ordered = e.ordered || c.order != nil
		e.elements = append(e.elements, c.element)
		numbered := *c.element
		numbered.Name = "C" + strconv.Itoa(i)
		internal = append(internal, &numbered)
	}
	rows := min(exportGroupBytes/max(8*len(columns), 1), exportMaxGroupRows)
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
	e.writer.CompressionType = codec
	by := exportedBy
	e.writer.Footer.CreatedBy = &by
	return e, nil
}

// newElement is an optional column, whose type is still to be set.
func newElement(name string) exportColumn {
	el := parquet.NewSchemaElement()
	el.Name = name
	optional := parquet.FieldRepetitionType_OPTIONAL
	el.RepetitionType = &optional
	return exportColumn{element: el}
}

func newExportColumn(c *dataset.Column) (exportColumn, error) {
	x := newElement(c.Name)
	x.null = c.Null
	switch c.Kind {
	case dataset.Bool:
		setType(x.element, parquet.Type_BOOLEAN)
		x.box = func(i int) any { return c.Bools[i] == 1 }
	case dataset.Text:
		x.setText()
		x.box = boxTexts(c)
	case dataset.Time:
		return x, x.chooseTime(c)
	default:
		if integerSource(c.Source) && allWhole(c.Numbers, 1, maxExact) {
			setType(x.element, parquet.Type_INT64)
			x.box = func(i int) any { return int64(c.Numbers[i]) }
			return x, nil
		}
		setType(x.element, parquet.Type_DOUBLE)
		x.box = func(i int) any { return c.Numbers[i] }
	}
	return x, nil
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

func (x *exportColumn) chooseTime(c *dataset.Column) error {
	if c.Source == "DATE" && allWhole(c.Numbers, microsPerDay, math.MaxInt32*microsPerDay) {
		x.setDate()
		x.box = func(i int) any { return int32(c.Numbers[i] / microsPerDay) }
		return nil
	}
	for _, v := range c.Numbers {
		if math.Abs(v) > maxMicros {
			return fmt.Errorf("ingest: export: column %q has times beyond the year 140,000", c.Name)
		}
	}
	x.setStamp(strings.HasSuffix(c.Source, utcSuffix))
	x.box = func(i int) any { return int64(math.Floor(c.Numbers[i])) }
	return nil
}

// setText makes it a column of texts.
func (x *exportColumn) setText() {
	setType(x.element, parquet.Type_BYTE_ARRAY)
	utf8 := parquet.ConvertedType_UTF8
	x.element.ConvertedType = &utf8
	x.element.LogicalType = &parquet.LogicalType{STRING: parquet.NewStringType()}
}

// setDate makes it a column of days.
func (x *exportColumn) setDate() {
	setType(x.element, parquet.Type_INT32)
	date := parquet.ConvertedType_DATE
	x.element.ConvertedType = &date
	x.element.LogicalType = &parquet.LogicalType{DATE: parquet.NewDateType()}
}

// setStamp makes it a column of microseconds.
func (x *exportColumn) setStamp(utc bool) {
	setType(x.element, parquet.Type_INT64)
	stamp := parquet.NewTimestampType()
	stamp.Unit = &parquet.TimeUnit{MICROS: parquet.NewMicroSeconds()}
	stamp.IsAdjustedToUTC = utc
	x.element.LogicalType = &parquet.LogicalType{TIMESTAMP: stamp}
	if utc { // the older annotation means UTC
		micros := parquet.ConvertedType_TIMESTAMP_MICROS
		x.element.ConvertedType = &micros
	}
}

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
		t := e.columnTable(c, from, to)
		var pages []*layout.Page
		if c.order == nil {
			pages, _ = layout.TableToDataPages(t, exportPageBytes, e.writer.CompressionType)
		} else {
			pages = e.orderedPages(c, t)
		}
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

// orderedPages are pages of places in a dictionary that has all categories, in their order: that is where readers take it from.
func (e *exporter) orderedPages(c *exportColumn, t *layout.Table) []*layout.Page {
	dictionary := layout.NewDictRec(parquet.Type_BYTE_ARRAY)
	for i, text := range c.order {
		dictionary.DictSlice = append(dictionary.DictSlice, text)
		dictionary.DictMap[text] = int32(i)
	}
	e.writer.DictRecs[c.path] = dictionary
	t.Info.Encoding = parquet.Encoding_RLE_DICTIONARY
	width := max(1, bits.Len(uint(len(c.order)-1)))
	pages, _ := layout.TableToDictDataPages(dictionary, t, exportPageBytes, int32(width), e.writer.CompressionType)
	for _, p := range pages {
		p.NullCount = new(int64) // which the library adds up though it left them out; finish removes the sum
	}
	return pages
}

// covers reports whether an order has each text of a dictionary, and none twice.
func covers(order []string, d *dataset.Dictionary) bool {
	place := map[string]bool{}
	for _, text := range order {
		place[text] = true
	}
	for i := range d.Len() {
		if !place[d.Text(i)] {
			return false
		}
	}
	return len(place) == len(order)
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

// end writes the footer, and what is buffered.
func (e *exporter) end() error {
	err := e.finish()
	if err == nil {
		err = e.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("ingest: export: %w", err)
	}
	return nil
}

// finish writes the footer, with the real names. The library's own WriteStop would look the names up by its
// identifiers and add the indexes.
func (e *exporter) finish() error {
	footer := e.writer.Footer
	footer.Schema = e.elements
	for _, group := range footer.RowGroups {
		for i, chunk := range group.Columns {
			chunk.MetaData.PathInSchema = []string{e.elements[i+1].Name}
			if e.columns[i].order != nil {
				chunk.MetaData.Statistics = nil
			}
		}
	}
	if e.ordered {
		schema := arrowSchema(e.columns)
		footer.KeyValueMetadata = append(footer.KeyValueMetadata, &parquet.KeyValue{Key: arrowSchemaKey, Value: &schema})
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
