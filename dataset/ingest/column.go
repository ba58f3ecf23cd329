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
	physical physicalType
	optional bool
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
	names, total := make(map[string]bool, len(d.meta.schema.fields)), 0
	for _, name := range d.meta.schema.fields {
		if len(name) > MaxNameLength {
			return &Error{Kind: LongName, Column: beginning(name), Detail: fmt.Sprintf("the name of this column has %d bytes, the limit is %d; rename it", len(name), MaxNameLength)}
		}
		if total += len(name); total > MaxNameBytes {
			return refuse(LongName, "the names of the columns have more than %d bytes together, which is the limit; give the columns shorter names", MaxNameBytes)
		}
		if names[name] {
			return &Error{Kind: DuplicateColumn, Column: name, Detail: "two columns have this name; rename one of them"}
		}
		names[name] = true
	}
	durations := d.durations()
	skipped := map[string]bool{} // a nested column has many leaves
	for i := range d.meta.schema.leaves {
		leaf := &d.meta.schema.leaves[i]
		name := leaf.name
		delete(names, name)
		c, reason := planColumn(leaf)
		if d.encrypted(i) {
			reason = "it is encrypted; write it without encryption to have it read"
		}
		if unit, ok := durations[name]; ok && c.physical == int64Type && c.kind == dataset.Number {
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
	for _, name := range d.meta.schema.fields {
		if names[name] {
			d.result.Skipped = append(d.result.Skipped, Skipped{Name: name, Reason: "it is a group without any values"})
		}
	}
	return nil
}

// beginning is the first characters of a name that is too long to be shown.
func beginning(name string) string {
	return string([]rune(name[:4*shownRunes])[:shownRunes]) + "…"
}

// shownRunes is how much of a long name an error quotes: enough to find the column by.
const shownRunes = 40

// planColumn returns how to read a leaf, or the reason not to.
func planColumn(leaf *leaf) (*column, string) {
	c := &column{name: leaf.name, physical: leaf.physical, optional: leaf.optional, source: sourceName(leaf)}
	c.form = formOf(c.physical, leaf.typeLength, c.optional)
	switch {
	case leaf.logical.kind == newKind:
		return c, "its logical type is newer than this program"
	case leaf.nested:
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
func sourceName(leaf *leaf) string {
	switch t := leaf.logical; t.kind {
	case decimalKind:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.precision, t.scale)
	case integerKind:
		if t.signed {
			return fmt.Sprintf("INT%d", t.bits)
		}
		return fmt.Sprintf("UINT%d", t.bits)
	case stampKind:
		if t.utc {
			return "TIMESTAMP(" + unitNames[t.unit] + utcSuffix
		}
		return "TIMESTAMP(" + unitNames[t.unit] + ")"
	case timeKind:
		return "TIME(" + unitNames[t.unit] + ")"
	case stringKind:
		return "STRING"
	case enumKind:
		return "ENUM"
	case jsonKind:
		return "JSON"
	case uuidKind:
		return "UUID"
	case dateKind:
		return "DATE"
	case float16Kind:
		return "FLOAT16"
	}
	return leaf.physical.String()
}

// utcSuffix ends the source name of timestamps that are moments, not readings of a local clock.
const utcSuffix = ", UTC)"

// choose sets kind and read by the leaf's type, or returns the reason to skip it.
func (c *column) choose(leaf *leaf) string {
	switch t := leaf.logical; t.kind {
	case decimalKind:
		return c.chooseDecimal(t, leaf)
	case dateKind:
		return c.times(c.physical == int32Type, func(days int64) float64 { return float64(days) * 86400e6 })
	case stampKind:
		return c.chooseTimestamp(t)
	case timeKind:
		return c.chooseTime(t)
	case integerKind:
		return c.chooseInteger(t.signed, t.bits)
	case float16Kind:
		return c.fixed(2, dataset.Number, func(b []byte) (float64, error) { return float16(binary.LittleEndian.Uint16(b)), nil }, leaf)
	case uuidKind:
		return c.chooseUUID(leaf)
	case stringKind, enumKind, jsonKind:
		if c.physical != byteArray {
			return unknown
		}
		c.kind = dataset.Text
		c.read = texts(byteArrays, func(v []byte) []byte { return v })
		return ""
	case nullKind:
		return "it has the null type and no values"
	case noLogical:
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
	case boolean:
		c.kind, c.read = dataset.Bool, bools()
	case int32Type, int64Type:
		return c.chooseInteger(true, 64)
	case int96:
		c.kind = dataset.Time
		c.read = numbers(byteArrays, c.int96Micros)
	case float:
		c.kind = dataset.Number
		c.read = numbers(floats, exactly)
	case double:
		c.kind = dataset.Number
		c.read = numbers(floats, exactly)
	default:
		return notText
	}
	return ""
}

func (c *column) chooseInteger(signed bool, width int64) string {
	c.kind = dataset.Number
	switch {
	case c.physical == int32Type && signed:
		c.read = numbers(integers, func(v int64) (float64, error) { return float64(v), nil })
	case c.physical == int32Type:
		// The value of a narrow unsigned type is the low bits; writers differ in what is above them.
		mask := uint32(math.MaxUint32)
		if width > 0 && width < 32 {
			mask = 1<<width - 1
		}
		c.read = numbers(integers, func(v int64) (float64, error) { return float64(uint32(v) & mask), nil })
	case c.physical == int64Type && signed:
		c.read = numbers(integers, exactInt64)
		c.readDigits = digits(func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) })
	case c.physical == int64Type:
		c.read = numbers(integers, func(v int64) (float64, error) {
			if uint64(v) > maxExact {
				return 0, errTooWide
			}
			return float64(v), nil
		})
		c.readDigits = digits(func(dst []byte, v int64) []byte { return strconv.AppendUint(dst, uint64(v), 10) })
	default:
		return unknown
	}
	return ""
}

func exactly(v float64) (float64, error) { return v, nil }

// float16 is an IEEE 754 number of half precision.
func float16(half uint16) float64 {
	sign, exponent, fraction := 1-2*float64(half>>15), int(half>>10&31), float64(half&0x3ff)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(fraction+0x400, exponent-25)
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
	case is32 && c.physical == int32Type:
		c.read = numbers(integers, func(v int64) (float64, error) { return inRange(micros(v)) })
	case !is32 && c.physical == int64Type:
		c.read = numbers(integers, func(v int64) (float64, error) { return inRange(micros(v)) })
	default:
		return unknown
	}
	return ""
}

func (c *column) chooseTimestamp(t logicalType) string {
	switch t.unit {
	case millis:
		return c.times(false, func(v int64) float64 { return float64(v) * 1000 })
	case micros:
		return c.times(false, func(v int64) float64 { return float64(v) })
	case nanos:
		return c.times(false, func(v int64) float64 { return float64(floorDiv(v, 1000)) })
	}
	return unknown
}

// chooseTime reads a time of day as seconds since midnight.
func (c *column) chooseTime(t logicalType) string {
	var reason string
	switch t.unit {
	case millis:
		reason = c.times(true, func(v int64) float64 { return float64(v) / 1e3 })
	case micros:
		reason = c.times(false, func(v int64) float64 { return float64(v) / 1e6 })
	case nanos:
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
func (c *column) int96Micros(v []byte) (float64, error) {
	const epoch, maxDays = 2440588, maxMicros / 2 / 86400_000_000
	nanos := int64(binary.LittleEndian.Uint64(v[:8]))
	day := int64(binary.LittleEndian.Uint32(v[8:])) - epoch
	if day > maxDays || day < -maxDays {
		return 0, c.tooFar()
	}
	return float64(day*86400_000_000 + floorDiv(nanos, 1000)), nil
}

func (c *column) chooseUUID(leaf *leaf) string {
	if c.physical != fixedLenByteArray || leaf.typeLength != 16 {
		return unknown
	}
	c.kind = dataset.Text
	var text [36]byte
	c.read = texts(byteArrays, func(v []byte) []byte {
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

func (c *column) fixed(length int64, kind dataset.Kind, value func([]byte) (float64, error), leaf *leaf) string {
	if c.physical != fixedLenByteArray || leaf.typeLength != length {
		return unknown
	}
	c.kind = kind
	c.read = numbers(byteArrays, func(v []byte) (float64, error) { return value(v) })
	return ""
}

// chooseDecimal reads unscaled integers and divides them by a power of ten, which is correctly rounded while both
// are exact.
func (c *column) chooseDecimal(t logicalType, leaf *leaf) string {
	c.kind = dataset.Number
	value := func(unscaled int64) (float64, error) {
		if unscaled > maxExact || unscaled < -maxExact {
			return 0, c.tooPrecise()
		}
		return scaled(unscaled, int(t.scale)), nil
	}
	bytesValue := func(b []byte) (float64, error) {
		if len(b) == 0 { // no number, not zero
			return 0, errValues
		}
		unscaled, ok := bigEndian(b)
		if !ok {
			return 0, c.tooPrecise()
		}
		return value(unscaled)
	}
	switch c.physical {
	case int32Type:
		c.read = numbers(integers, value)
	case int64Type:
		c.read = numbers(integers, value)
	case fixedLenByteArray:
		if leaf.typeLength < 1 {
			return unknown
		}
		c.read = numbers(byteArrays, func(v []byte) (float64, error) { return bytesValue(v) })
	case byteArray:
		c.read = numbers(byteArrays, func(v []byte) (float64, error) { return bytesValue(v) })
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
