package ingest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
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
	note     string // what the values are, see dataset.Field
	by       program
	empty    bool // of the null type
	ordered  bool // texts that are categories in an order, see order
	category bool // texts that are categories of pandas without an order
	unsaid   bool // bytes of which nothing says what they are
	physical physicalType
	optional bool
	form     valueForm

	// read decodes up to n rows into the batch and returns how many it got; 0 is the end.
	read readFunc
	// readDigits reads integers and decimals without a fraction as text instead.
	readDigits readFunc
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
	from := newOrigin(d.meta)
	skipped := map[string]bool{} // a nested column has many leaves
	for i := range d.meta.schema.leaves {
		leaf := &d.meta.schema.leaves[i]
		name := leaf.name
		delete(names, name)
		c, reason := planColumn(leaf, from)
		if d.encrypted(i) {
			reason = c.source + ": it is encrypted; write it without encryption to have it read"
		}
		if bare := leaf.logical.kind == noLogical || leaf.logical.kind == integerKind; bare && c.kind == dataset.Number && (c.physical == int64Type || c.physical == int32Type) {
			c.note = from.bare(name)
			if unit, ok := from.arrow.durations[name]; ok && c.physical == int64Type {
				c.source = "DURATION(" + unit + ")"
			}
		}
		c.ordered = from.ordered[name] && c.kind == dataset.Text && c.physical == byteArray
		c.category = from.category[name] && c.kind == dataset.Text && !c.ordered
		if kind, ok := d.as[name]; ok && c.readAs(kind) {
			reason = ""
		}
		if reason != "" {
			if !skipped[name] {
				skipped[name] = true
				if c.index = i; c.unsaid && !d.encrypted(i) {
					d.unsaid = append(d.unsaid, unsaid{c, len(d.result.Skipped)})
				}
				d.result.Skipped = append(d.result.Skipped, Skipped{Name: name, Reason: reason, Empty: c.empty})
			}
			continue
		}
		c.index = i
		d.columns = append(d.columns, c)
	}
	for _, c := range d.columns {
		if slices.Contains(from.index, c.name) {
			d.warn("index-column", c.name, fmt.Sprintf("%q is the index of the pandas frame, which is a column like others here; leave it out by df.to_parquet(path, index=False)", c.name))
		}
	}
	for _, name := range d.meta.schema.fields {
		if names[name] {
			d.result.Skipped = append(d.result.Skipped, Skipped{Name: name, Reason: "it is a group without any values"})
		}
	}
	return nil
}

// Whole reports whether a source is a type of integers, or of decimals without a fraction, which are Text where a value is beyond ±2^53 and Number elsewhere.
func Whole(source string) bool {
	return strings.HasPrefix(source, "DURATION(") || strings.HasPrefix(source, "INT") && source != "INT96" && source != "INTERVAL" || strings.HasPrefix(source, "UINT") ||
		strings.HasPrefix(source, "DECIMAL(") && strings.HasSuffix(source, ",0)")
}

// readAs turns to another kind where the values leave it open, and reports whether the column is read then.
func (c *column) readAs(kind dataset.Kind) bool {
	switch {
	case c.empty || c.unsaid:
		c.kind, c.read = kind, noValues(kind)
		return true
	case kind == dataset.Text && c.kind == dataset.Number && c.readDigits != nil && Whole(c.source):
		c.kind, c.read = kind, c.readDigits
	}
	return false
}

// beginning is the first characters of a name that is too long to be shown.
func beginning(name string) string {
	return string([]rune(name[:4*shownRunes])[:shownRunes]) + "…"
}

// shownRunes is how much of a long name an error quotes: enough to find the column by.
const shownRunes = 40

// planColumn returns how to read a leaf, or the reason not to.
func planColumn(leaf *leaf, from *origin) (*column, string) {
	c := &column{name: leaf.name, by: from.by, physical: leaf.physical, optional: leaf.optional, source: sourceName(leaf)}
	c.form = formOf(c.physical, leaf.typeLength, c.optional)
	switch {
	case leaf.logical.kind == newKind:
		return c, skipNew.reason(c.name, from.by)
	case leaf.nested:
		return c, leaf.nestedSkip(from).reason(c.name, from.by)
	case c.name == "" || !utf8.ValidString(c.name):
		return c, skipName.reason(c.name, otherWriter)
	case strings.ContainsFunc(c.name, forbidden):
		return c, skipMark.reason(c.name, otherWriter)
	}
	reason := c.choose(leaf, from)
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
	case nullKind:
		return "NULL"
	case interval:
		return "INTERVAL"
	}
	return leaf.physical.String()
}

// utcSuffix ends the source name of timestamps that are moments, not readings of a local clock.
const utcSuffix = ", UTC)"

// choose sets kind and read by the leaf's type, or returns the reason to skip it.
func (c *column) choose(leaf *leaf, from *origin) string {
	switch t := leaf.logical; t.kind {
	case decimalKind:
		return c.chooseDecimal(t, leaf)
	case dateKind:
		return c.chooseDate()
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
			return mismatch(c)
		}
		c.kind = dataset.Text
		c.read = byteTexts(func(v []byte) []byte { return v })
		return ""
	case nullKind:
		c.empty = true
		return skipNull.reason(c.name, c.by)
	case noLogical:
		return c.choosePhysical(leaf, from)
	case interval:
		return skipInterval.reason(c.name, c.by)
	case geometryKind:
		return skipGeometry.reason(c.name, c.by)
	case geographyKind:
		return skipGeography.reason(c.name, c.by)
	case bsonKind:
		return skipBSON.reason(c.name, c.by)
	}
	return mismatch(c)
}

// mismatch is the reason to skip a column whose logical type does not fit how its values lie.
func mismatch(c *column) string {
	return fmt.Sprintf("its type %s does not belong to values of %v; write the file again, for example with pandas", c.source, c.physical)
}

func (c *column) choosePhysical(leaf *leaf, from *origin) string {
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
		c.read = exactFloats
	case double:
		c.kind = dataset.Number
		c.read = exactFloats
	case fixedLenByteArray:
		return fixedBytes(leaf.typeLength, c.by).reason(c.name, c.by)
	default: // the texts of old writers (Impala, Hive), which nothing in the file tells from other bytes
		if from.geometry[c.name] {
			return skipGeometry.reason(c.name, c.by)
		}
		c.unsaid = true
		return skipBinary.reason(c.name, c.by)
	}
	return ""
}

func (c *column) chooseInteger(signed bool, width int64) string {
	c.kind = dataset.Number
	switch {
	case c.physical == int32Type && signed:
		c.read = numbers(integers, func(v int64) (float64, error) { return float64(v), nil })
		c.readDigits = digits(func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) })
	case c.physical == int32Type:
		// The value of a narrow unsigned type is the low bits; writers differ in what is above them.
		mask := uint32(math.MaxUint32)
		if width > 0 && width < 32 {
			mask = 1<<width - 1
		}
		c.read = numbers(integers, func(v int64) (float64, error) { return float64(uint32(v) & mask), nil })
		c.readDigits = digits(func(dst []byte, v int64) []byte { return strconv.AppendUint(dst, uint64(uint32(v)&mask), 10) })
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
		return mismatch(c)
	}
	return ""
}

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
		Detail: c.source + ": it has times more than 146,000 years from 1970; make them nulls, for example in DuckDB: " +
			fmt.Sprintf("CASE WHEN abs(year(%[1]s)) < 10000 THEN %[1]s END", quotedSQL(c.name))}
}

// integerTimes reads integers as microseconds since 1970; infinite tells those that stand for no time, by their sign, and 0 for those that are one.
func (c *column) integerTimes(is32 bool, infinite func(int64) float64, micros func(int64) float64) string {
	if is32 && c.physical != int32Type || !is32 && c.physical != int64Type {
		return mismatch(c)
	}
	c.kind = dataset.Time
	c.read = numbers(integers, func(v int64) (float64, error) {
		if none := infinite(v); none != 0 {
			return none, nil
		}
		t := micros(v)
		if t > maxMicros || t < -maxMicros {
			return 0, c.tooFar()
		}
		return t, nil
	})
	return ""
}

func (c *column) chooseDate() string {
	return c.integerTimes(true, func(days int64) float64 { // the ends of DuckDB, and of PostgreSQL
		switch days {
		case math.MaxInt32:
			return math.Inf(1)
		case -math.MaxInt32, math.MinInt32:
			return math.Inf(-1)
		}
		return 0
	}, func(days int64) float64 { return float64(days) * 86400e6 })
}

// infiniteStamp tells 'infinity' and '-infinity' from timestamps: the ends of an INT64, of which DuckDB spares one and PostgreSQL none. Of nanoseconds they are times in
// 1677 and 2262, which pandas has, unless DuckDB wrote them. fastparquet writes a missing time as the least INT64.
func (c *column) infiniteStamp(unit timeUnit) func(int64) float64 {
	return func(v int64) float64 {
		switch {
		case v == math.MinInt64 && c.by == fastparquetWriter:
			return math.NaN()
		case unit == nanos && c.by != duckdbWriter:
		case v == math.MaxInt64:
			return math.Inf(1)
		case v == -math.MaxInt64, v == math.MinInt64:
			return math.Inf(-1)
		}
		return 0
	}
}

func (c *column) chooseTimestamp(t logicalType) string {
	micro := map[timeUnit]func(int64) float64{
		millis: func(v int64) float64 { return float64(v) * 1000 },
		micros: func(v int64) float64 { return float64(v) },
		nanos:  func(v int64) float64 { return float64(floorDiv(v, 1000)) },
	}[t.unit]
	if micro == nil {
		return mismatch(c)
	}
	return c.integerTimes(false, c.infiniteStamp(t.unit), micro)
}

// chooseTime reads a time of day as seconds since midnight.
func (c *column) chooseTime(t logicalType) string {
	per := map[timeUnit]float64{millis: 1e3, micros: 1e6, nanos: 1e9}[t.unit]
	physical := int64Type
	if t.unit == millis {
		physical = int32Type
	}
	if per == 0 || c.physical != physical {
		return mismatch(c)
	}
	c.kind, c.note = dataset.Number, "seconds since midnight"
	c.read = numbers(integers, func(v int64) (float64, error) { return float64(v) / per, nil })
	return ""
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
		return mismatch(c)
	}
	c.kind = dataset.Text
	var text [36]byte
	c.read = byteTexts(func(v []byte) []byte {
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
		return mismatch(c)
	}
	c.kind = kind
	c.read = numbers(byteArrays, func(v []byte) (float64, error) { return value(v) })
	return ""
}

// floatDigits is how many significant digits of a decimal every float64 keeps: each decimal of so many digits has a float64 of its own.
const floatDigits = 15

// maxDecimalBytes holds 76 digits, the most that writers have.
const maxDecimalBytes = 32

// chooseDecimal reads unscaled integers and divides them by a power of ten: each value is the nearest float64. Decimals without a fraction are integers, and are read as
// those are: identifiers must not become one another.
func (c *column) chooseDecimal(t logicalType, leaf *leaf) string {
	c.kind = dataset.Number
	if t.scale != 0 && t.precision > floatDigits {
		c.note = fmt.Sprintf("each value is the nearest 64-bit float, which keeps %d digits of the %d", floatDigits, t.precision)
	}
	number := func(unscaled int64) (float64, error) {
		if t.scale == 0 {
			return exactInt64(unscaled)
		}
		return scaled(unscaled, int(t.scale)), nil
	}
	switch c.physical {
	case int32Type, int64Type:
		c.read = numbers(integers, number)
		c.readDigits = digits(func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) })
	case fixedLenByteArray, byteArray:
		if c.physical == fixedLenByteArray && leaf.typeLength < 1 {
			return mismatch(c)
		}
		c.read = numbers(byteArrays, func(b []byte) (float64, error) {
			if len(b) == 0 { // no number, not zero
				return 0, errValues
			}
			if unscaled, ok := bigEndian(b); ok {
				return number(unscaled)
			}
			if t.scale == 0 {
				return 0, errTooWide
			}
			text, err := appendBig(nil, b)
			return nearest(text, int(t.scale)), err
		})
		var text []byte
		c.readDigits = checkedTexts(byteArrays, func(b []byte) (_ []byte, err error) {
			text, err = appendBig(text[:0], b)
			return text, err
		})
	default:
		return mismatch(c)
	}
	return ""
}

// appendBig appends the decimal digits of a two's complement integer.
func appendBig(dst, b []byte) ([]byte, error) {
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:] // bytes that only repeat the sign
	}
	if len(b) == 0 || len(b) > maxDecimalBytes {
		return dst, errValues
	}
	v := new(big.Int).SetBytes(b)
	if b[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v.Append(dst, 10), nil
}

// scaled is the float64 that is nearest to unscaled / 10^scale. A quotient is correctly rounded while both are exact.
func scaled(unscaled int64, scale int) float64 {
	if scale >= 0 && scale < len(powersOfTen) && unscaled <= maxExact && unscaled >= -maxExact {
		return float64(unscaled) / powersOfTen[scale]
	}
	return nearest(strconv.AppendInt(nil, unscaled, 10), scale)
}

// nearest is the float64 that is nearest to digits / 10^scale.
func nearest(digits []byte, scale int) float64 {
	// ParseFloat is correctly rounded for any exponent; what it returns out of range (±Inf, 0) is the nearest.
	v, _ := strconv.ParseFloat(string(digits)+"e"+strconv.Itoa(-scale), 64)
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
