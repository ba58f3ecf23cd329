package ingest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/holdoutd/holdoutd/dataset"
)

// maxExact is the largest integer up to which a float64 holds every integer.
const maxExact = 1 << 53

// column is a leaf of the schema that is read, and how.
type column struct {
	name     string
	index    int // among the leaves
	kind     dataset.Kind
	source   string
	physical parquet.Type
	optional bool
	leaf     *schema.Column
	form     valueForm

	// read decodes up to n rows into the batch and returns how many it got; 0 is the end.
	read readFunc
	// readDigits reads integers as text instead.
	readDigits readFunc
}

// width is the number of bytes that a value of the column takes in the dataset.
func (c *column) width() int64 {
	switch c.kind {
	case dataset.Bool:
		return 1
	case dataset.Text:
		return 4
	default:
		return 8
	}
}

// damaged blames a row group of the file for an error of its pages or of the library.
func (c *column) damaged(group int, err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		e.Column = c.name
		return e
	}
	return &Error{Kind: Damaged, Column: c.name,
		Detail: fmt.Sprintf("row group %d of the column cannot be decoded: %s", group, strings.TrimPrefix(err.Error(), "parquet: "))}
}

// planColumns decides for each column of the file whether and how it is read.
func (d *decoder) planColumns() error {
	s := d.reader.MetaData().Schema
	names := make(map[string]bool, s.Root().NumFields())
	for i := range s.Root().NumFields() {
		name := s.Root().Field(i).Name()
		if names[name] {
			return &Error{Kind: DuplicateColumn, Column: name, Detail: "two columns have this name; rename one of them"}
		}
		names[name] = true
	}
	durations := d.durations()
	skipped := map[string]bool{} // a nested column has many leaves
	for i := range s.NumColumns() {
		leaf := s.Column(i)
		name := leaf.ColumnPath()[0]
		c, reason := planColumn(leaf)
		switch {
		case d.newTypes[i]:
			reason = "its logical type is newer than this program"
		case d.encrypted(i):
			reason = "it is encrypted; write it without encryption to have it read"
		}
		if unit, ok := durations[name]; ok && c.physical == parquet.Types.Int64 && c.kind == dataset.Number {
			c.source = "DURATION(" + unit + ")"
		}
		if reason != "" {
			if !skipped[name] {
				skipped[name] = true
				d.result.Skipped = append(d.result.Skipped, Skipped{Name: name, Reason: reason})
			}
			continue
		}
		c.index = i
		d.columns = append(d.columns, c)
	}
	return nil
}

// planColumn returns how to read a leaf, or the reason not to.
func planColumn(leaf *schema.Column) (*column, string) {
	path := leaf.ColumnPath()
	c := &column{
		name: path[0], physical: leaf.PhysicalType(), optional: leaf.MaxDefinitionLevel() > 0,
		source: sourceName(leaf), leaf: leaf,
	}
	c.form = formOf(c.physical, leaf.TypeLength(), c.optional)
	switch {
	case len(path) > 1 || leaf.MaxRepetitionLevel() > 0 || leaf.MaxDefinitionLevel() > 1:
		return c, "nested: lists, structs and maps are not read"
	case c.name == "" || !utf8.ValidString(c.name):
		return c, "its name is empty or not UTF-8"
	case strings.ContainsFunc(c.name, forbidden):
		return c, "its name holds a control character"
	}
	reason := c.choose(leaf)
	return c, reason
}

// forbidden reports control characters other than the white space that spreadsheets leave in names.
func forbidden(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0x7f }

// sourceName is the type for people: the logical type if there is one, else the physical one.
func sourceName(leaf *schema.Column) string {
	logical := leaf.LogicalType()
	switch t := logical.(type) {
	case schema.DecimalLogicalType:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision(), t.Scale())
	case schema.IntLogicalType:
		if t.IsSigned() {
			return fmt.Sprintf("INT%d", t.BitWidth())
		}
		return fmt.Sprintf("UINT%d", t.BitWidth())
	case schema.TimestampLogicalType:
		if t.IsAdjustedToUTC() {
			return "TIMESTAMP(" + unitName(t.TimeUnit()) + utcSuffix
		}
		return "TIMESTAMP(" + unitName(t.TimeUnit()) + ")"
	case schema.TimeLogicalType:
		return "TIME(" + unitName(t.TimeUnit()) + ")"
	case schema.StringLogicalType:
		return "STRING"
	case schema.EnumLogicalType:
		return "ENUM"
	case schema.JSONLogicalType:
		return "JSON"
	case schema.UUIDLogicalType:
		return "UUID"
	case schema.DateLogicalType:
		return "DATE"
	case schema.Float16LogicalType:
		return "FLOAT16"
	}
	return leaf.PhysicalType().String()
}

// utcSuffix ends the source name of timestamps that are moments, not readings of a local clock.
const utcSuffix = ", UTC)"

func unitName(u schema.TimeUnitType) string {
	switch u {
	case schema.TimeUnitMillis:
		return "ms"
	case schema.TimeUnitMicros:
		return "us"
	case schema.TimeUnitNanos:
		return "ns"
	}
	return "?"
}

// choose sets kind and read by the leaf's type, or returns the reason to skip it.
func (c *column) choose(leaf *schema.Column) string {
	switch t := leaf.LogicalType().(type) {
	case schema.DecimalLogicalType:
		return c.chooseDecimal(t)
	case schema.DateLogicalType:
		return c.times(c.physical == parquet.Types.Int32, func(days int64) float64 { return float64(days) * 86400e6 })
	case schema.TimestampLogicalType:
		return c.chooseTimestamp(t)
	case schema.TimeLogicalType:
		return c.chooseTime(t)
	case schema.IntLogicalType:
		return c.chooseInteger(t.IsSigned(), t.BitWidth())
	case schema.Float16LogicalType:
		return c.fixed(2, dataset.Number, func(b []byte) (float64, error) {
			return float64(float16.FromLEBytes(b).Float32()), nil
		}, leaf)
	case schema.UUIDLogicalType:
		return c.chooseUUID(leaf)
	case schema.StringLogicalType, schema.EnumLogicalType, schema.JSONLogicalType:
		if c.physical != parquet.Types.ByteArray {
			return unknown
		}
		c.kind = dataset.Text
		c.read = texts(c, readBytes, func(v parquet.ByteArray) []byte { return v })
		return ""
	case schema.NullLogicalType:
		return "it has the null type and no values"
	case schema.NoLogicalType, schema.UnknownLogicalType, nil:
		return c.choosePhysical()
	}
	return unknown
}

const unknown = "its type holds no numbers, booleans, texts or times"

// notText says what to do about the texts of old writers (Impala, Hive, fastparquet), which nothing in the file tells
// from other bytes.
const notText = "binary without a text annotation; if it holds text, write it as strings (in pandas: df[c] = df[c].str.decode('utf-8'))"

func (c *column) choosePhysical() string {
	switch c.physical {
	case parquet.Types.Boolean:
		c.kind, c.read = dataset.Bool, bools(c)
	case parquet.Types.Int32, parquet.Types.Int64:
		return c.chooseInteger(true, 64)
	case parquet.Types.Int96:
		c.kind = dataset.Time
		c.read = numbers(c, readInt96, c.int96Micros)
	case parquet.Types.Float:
		c.kind = dataset.Number
		c.read = numbers(c, readFloat32, func(v float32) (float64, error) { return float64(v), nil })
	case parquet.Types.Double:
		c.kind = dataset.Number
		c.read = numbers(c, readFloat64, func(v float64) (float64, error) { return v, nil })
	default:
		return notText
	}
	return ""
}

func (c *column) chooseInteger(signed bool, width int8) string {
	c.kind = dataset.Number
	switch {
	case c.physical == parquet.Types.Int32 && signed:
		c.read = numbers(c, readInt32, func(v int32) (float64, error) { return float64(v), nil })
	case c.physical == parquet.Types.Int32:
		// The value of a narrow unsigned type is the low bits; writers differ in what is above them.
		mask := uint32(math.MaxUint32)
		if width > 0 && width < 32 {
			mask = 1<<width - 1
		}
		c.read = numbers(c, readInt32, func(v int32) (float64, error) { return float64(uint32(v) & mask), nil })
	case c.physical == parquet.Types.Int64 && signed:
		c.read = numbers(c, readInt64, exactInt64)
		c.readDigits = digits(c, func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) })
	case c.physical == parquet.Types.Int64:
		c.read = numbers(c, readInt64, func(v int64) (float64, error) {
			if uint64(v) > maxExact {
				return 0, errTooWide
			}
			return float64(v), nil
		})
		c.readDigits = digits(c, func(dst []byte, v int64) []byte { return strconv.AppendUint(dst, uint64(v), 10) })
	default:
		return unknown
	}
	return ""
}

func exactInt64(v int64) (float64, error) {
	if v > maxExact || v < -maxExact {
		return 0, errTooWide
	}
	return float64(v), nil
}

// maxMicros keeps times within what an int64 of microseconds holds, so that every time can be written again.
const maxMicros = 1 << 62

func (c *column) tooFar() error {
	return &Error{Kind: Unsupported, Column: c.name,
		Detail: "it has times more than 146,000 years from 1970; replace them by nulls"}
}

// times reads integers as microseconds since 1970.
func (c *column) times(is32 bool, micros func(int64) float64) string {
	c.kind = dataset.Time
	inRange := func(v float64) (float64, error) {
		if v > maxMicros || v < -maxMicros {
			return 0, c.tooFar()
		}
		return v, nil
	}
	switch {
	case is32 && c.physical == parquet.Types.Int32:
		c.read = numbers(c, readInt32, func(v int32) (float64, error) { return inRange(micros(int64(v))) })
	case !is32 && c.physical == parquet.Types.Int64:
		c.read = numbers(c, readInt64, func(v int64) (float64, error) { return inRange(micros(v)) })
	default:
		return unknown
	}
	return ""
}

func (c *column) chooseTimestamp(t schema.TimestampLogicalType) string {
	switch t.TimeUnit() {
	case schema.TimeUnitMillis:
		return c.times(false, func(v int64) float64 { return float64(v) * 1000 })
	case schema.TimeUnitMicros:
		return c.times(false, func(v int64) float64 { return float64(v) })
	case schema.TimeUnitNanos:
		return c.times(false, func(v int64) float64 { return float64(floorDiv(v, 1000)) })
	}
	return unknown
}

// chooseTime reads a time of day as seconds since midnight.
func (c *column) chooseTime(t schema.TimeLogicalType) string {
	var reason string
	switch t.TimeUnit() {
	case schema.TimeUnitMillis:
		reason = c.times(true, func(v int64) float64 { return float64(v) / 1e3 })
	case schema.TimeUnitMicros:
		reason = c.times(false, func(v int64) float64 { return float64(v) / 1e6 })
	case schema.TimeUnitNanos:
		reason = c.times(false, func(v int64) float64 { return float64(v) / 1e9 })
	default:
		reason = unknown
	}
	c.kind = dataset.Number
	return reason
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// int96Micros reads the timestamp of Impala and old Spark: nanoseconds of the day, then the Julian day.
func (c *column) int96Micros(v parquet.Int96) (float64, error) {
	const epoch, maxDays = 2440588, maxMicros / 2 / 86400_000_000
	nanos := int64(binary.LittleEndian.Uint64(v[:8]))
	day := int64(binary.LittleEndian.Uint32(v[8:])) - epoch
	if day > maxDays || day < -maxDays {
		return 0, c.tooFar()
	}
	return float64(day*86400_000_000 + floorDiv(nanos, 1000)), nil
}

func (c *column) chooseUUID(leaf *schema.Column) string {
	if c.physical != parquet.Types.FixedLenByteArray || leaf.TypeLength() != 16 {
		return unknown
	}
	c.kind = dataset.Text
	var text [36]byte
	c.read = texts(c, readFixed, func(v parquet.FixedLenByteArray) []byte {
		hex.Encode(text[0:8], v[0:4])
		hex.Encode(text[9:13], v[4:6])
		hex.Encode(text[14:18], v[6:8])
		hex.Encode(text[19:23], v[8:10])
		hex.Encode(text[24:36], v[10:16])
		text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
		return text[:]
	})
	return ""
}

func (c *column) fixed(length int, kind dataset.Kind, value func([]byte) (float64, error), leaf *schema.Column) string {
	if c.physical != parquet.Types.FixedLenByteArray || leaf.TypeLength() != length {
		return unknown
	}
	c.kind = kind
	c.read = numbers(c, readFixed, func(v parquet.FixedLenByteArray) (float64, error) { return value(v) })
	return ""
}

// chooseDecimal reads unscaled integers and divides them by a power of ten, which is correctly rounded while both
// are exact.
func (c *column) chooseDecimal(t schema.DecimalLogicalType) string {
	c.kind = dataset.Number
	value := func(unscaled int64) (float64, error) {
		if unscaled > maxExact || unscaled < -maxExact {
			return 0, c.tooPrecise()
		}
		return scaled(unscaled, int(t.Scale())), nil
	}
	bytesValue := func(b []byte) (float64, error) {
		unscaled, ok := bigEndian(b)
		if !ok {
			return 0, c.tooPrecise()
		}
		return value(unscaled)
	}
	switch c.physical {
	case parquet.Types.Int32:
		c.read = numbers(c, readInt32, func(v int32) (float64, error) { return value(int64(v)) })
	case parquet.Types.Int64:
		c.read = numbers(c, readInt64, value)
	case parquet.Types.FixedLenByteArray:
		c.read = numbers(c, readFixed, func(v parquet.FixedLenByteArray) (float64, error) { return bytesValue(v) })
	case parquet.Types.ByteArray:
		c.read = numbers(c, readBytes, func(v parquet.ByteArray) (float64, error) { return bytesValue(v) })
	default:
		return unknown
	}
	return ""
}

func (c *column) tooPrecise() error {
	return &Error{Kind: Unsupported, Column: c.name,
		Detail: c.source + " is too precise: it has values of more than 2^53 units of its last digit, which a 64-bit float cannot hold; round the column, or cast it to double or to text"}
}

func scaled(unscaled int64, scale int) float64 {
	if scale >= 0 && scale < len(powersOfTen) {
		return float64(unscaled) / powersOfTen[scale]
	}
	// ParseFloat is correctly rounded for any exponent; what it returns out of range (±Inf, 0) is the nearest.
	v, _ := strconv.ParseFloat(strconv.FormatInt(unscaled, 10)+"e"+strconv.Itoa(-scale), 64)
	return v
}

// powersOfTen are those that a float64 holds exactly.
var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// bigEndian reads a two's complement integer of any length; false when it does not fit an int64.
func bigEndian(b []byte) (int64, bool) {
	if len(b) == 0 {
		return 0, true
	}
	v := int64(int8(b[0]) >> 7) // 0 or -1
	for _, x := range b {
		if v > math.MaxInt64>>8 || v < math.MinInt64>>8 {
			return 0, false
		}
		v = v<<8 | int64(x)
	}
	return v, true
}
