package clickhouse

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
)

// The bits of nulls in a column of numbers, as package dataset has them.
const (
	nullBits     = 0x7FF8000000000001
	infiniteBits = 0x7FF8000000000002 // a null that was an infinity
	// nullBool is dataset.NullBool; nullText is the text of a null, which is no UTF-8.
	nullBool = "toUInt8(2)"
	nullText = "unhex('ff')"
	// maxExact is the largest integer up to which a float64 holds every integer.
	maxExact = 1 << 53
	// maxScale is the most digits behind the point of a decimal: 10^22 is the largest power of ten that a float64 holds, so that a division by it rounds correctly.
	maxScale = 22
)

// kept is a column of an owner's table as it is read. It is in the snapshot's private part.
type kept struct {
	Name   string       `json:"name"`
	Type   string       `json:"type"` // in the engine
	Kind   dataset.Kind `json:"kind"`
	Digits bool         `json:"digits,omitempty"` // integers that no float64 holds: read as text
	Only   bool         `json:"only,omitempty"`   // it may be a key, and questions cannot name it
	Narrow string       `json:"narrow,omitempty"` // the type that holds its values in a part, where one of fewer than 8 bytes does
	Ticks  float64      `json:"ticks,omitempty"`  // microseconds of a time that is counted in Narrow

	base     string // the type without LowCardinality and Nullable
	nullable bool
	value    string // SQL of the value, without LowCardinality
	width    int    // of a FixedString
	scale    int    // of a decimal, or of a DateTime64
}

// plan fills what is not stored, or says why the column is not read.
func (k *kept) plan() (reason string) {
	k.base, k.nullable, k.value = k.Type, false, name(k.Name)
	if inner, ok := inside(k.base, "LowCardinality"); ok {
		k.base = inner
		k.value = "CAST(" + k.value + " AS " + inner + ")"
	}
	if inner, ok := inside(k.base, "Nullable"); ok {
		k.base, k.nullable = inner, true
	}
	kind, arguments, _ := strings.Cut(strings.TrimSuffix(k.base, ")"), "(")
	if k.base == truth {
		kind = "Bool"
	}
	switch kind {
	case "UInt8", "UInt16", "UInt32", "UInt64", "Int8", "Int16", "Int32", "Int64", "Float32", "Float64", "BFloat16":
		k.Kind = dataset.Number
	case "Decimal", "Decimal32", "Decimal64", "Decimal128":
		list := strings.Split(arguments, ",")
		scale, err := strconv.Atoi(strings.TrimSpace(list[len(list)-1]))
		if err != nil || scale < 0 || scale > maxScale {
			return fmt.Sprintf("decimals of more than %d digits behind the point are not read; cast it to Float64 or String in a view", maxScale)
		}
		k.Kind, k.scale = dataset.Number, scale
	case "Date", "Date32", "DateTime":
		k.Kind = dataset.Time
	case "DateTime64":
		first, _, _ := strings.Cut(arguments, ",")
		scale, err := strconv.Atoi(strings.TrimSpace(first))
		if err != nil || scale < 0 || scale > 9 {
			return unread
		}
		k.Kind, k.scale = dataset.Time, scale
	case "String", "Enum8", "Enum16", "UUID":
		k.Kind = dataset.Text
	case "FixedString":
		width, err := strconv.Atoi(arguments)
		if err != nil {
			return unread
		}
		k.Kind, k.width = dataset.Text, width
	case "Bool":
		k.Kind = dataset.Bool
	case "Array", "Tuple", "Map", "Nested", "JSON", "Object", "Variant", "Dynamic":
		return "nested: arrays, tuples, maps and documents are not read"
	default:
		return unread
	}
	if k.Digits {
		k.Kind = dataset.Text
	}
	return ""
}

// truth is how versions without the type Bool have booleans.
const truth = "Enum8('false' = 0, 'true' = 1)"

const unread = "its type holds no numbers, booleans, texts or times that are read; cast it in a view"

// inside is what stands in the parentheses of a type of this name.
func inside(kind, name string) (string, bool) {
	rest, ok := strings.CutPrefix(kind, name+"(")
	if !ok {
		return "", false
	}
	return strings.TrimSuffix(rest, ")"), true
}

// number is SQL of the value as Float64, Nullable where the column is: for a time in microseconds. It is what an upload of the same values reads.
func (k *kept) number() string {
	switch kind, _, _ := strings.Cut(k.base, "("); kind {
	case "Date":
		return "multiply(toFloat64(toUInt16(" + k.value + ")), toFloat64(86400000000))"
	case "Date32":
		return "multiply(toFloat64(toInt32(" + k.value + ")), toFloat64(86400000000))"
	case "DateTime":
		return "multiply(toFloat64(toUInt32(" + k.value + ")), toFloat64(1000000))"
	case "DateTime64":
		ticks := "reinterpretAsInt64(" + k.value + ")"
		if k.nullable {
			ticks = "if(isNull(" + k.value + "), NULL, reinterpretAsInt64(assumeNotNull(" + k.value + ")))"
		}
		if k.scale <= 6 {
			return fmt.Sprintf("toFloat64(multiply(%s, toInt64(%d)))", ticks, power(6-k.scale))
		}
		d := power(k.scale - 6) // finer than microseconds: rounded down
		return fmt.Sprintf("toFloat64(minus(intDiv(%[1]s, toInt64(%[2]d)), less(modulo(%[1]s, toInt64(%[2]d)), 0)))", ticks, d)
	}
	return "toFloat64(" + k.value + ")"
}

func power(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// clean is SQL of the value as an upload has it: of numbers and times their bits, a UInt64; of booleans 0, 1 or 2, a UInt8; of texts a String. None is Nullable. The bits of nulls are
// chosen among integers: engines take two literals that are no number for the same one.
func (k *kept) clean() string {
	switch k.Kind {
	case dataset.Bool:
		v := "toUInt8(" + k.value + ")"
		if k.nullable {
			v = "ifNull(" + v + ", " + nullBool + ")"
		}
		return v
	case dataset.Text:
		v := "toString(" + k.value + ")"
		if k.width > 0 {
			v = "toStringCutToZero(" + k.value + ")" // it is padded with zero bytes
		} else if k.base == "String" {
			v = k.value
		}
		if k.nullable {
			v = "ifNull(" + v + ", " + nullText + ")"
		}
		return v
	}
	v, null := k.number(), ""
	if k.nullable {
		null = fmt.Sprintf("isNull(%s), toUInt64(%d), ", k.value, uint64(nullBits))
		v = "ifNull(" + v + ", toFloat64(0))"
	}
	if strings.Contains(k.base, "Float") {
		return fmt.Sprintf("multiIf(%[1]sisNaN(%[2]s), toUInt64(%[3]d), isInfinite(%[2]s), toUInt64(%[4]d), equals(%[2]s, 0), toUInt64(0), reinterpretAsUInt64(reinterpretAsFixedString(%[2]s)))",
			null, v, uint64(nullBits), uint64(infiniteBits))
	}
	// -0 is no integer, decimal or time; but a decimal's may be
	bits := fmt.Sprintf("reinterpretAsUInt64(reinterpretAsFixedString(plus(%s, toFloat64(0))))", v)
	if null == "" {
		return bits
	}
	return fmt.Sprintf("if(%s%s)", null, bits)
}

// stored is SQL of a column of a part, of what clean has made.
func stored(kind dataset.Kind, cleaned string) string {
	if kind == dataset.Number || kind == dataset.Time {
		return "reinterpretAsFloat64(reinterpretAsFixedString(" + cleaned + "))"
	}
	return cleaned
}

// cleaned is SQL of what clean has made, of a column of a part.
func cleaned(kind dataset.Kind, stored string) string {
	if kind == dataset.Number || kind == dataset.Time {
		return "reinterpretAsUInt64(reinterpretAsFixedString(" + stored + "))"
	}
	if kind == dataset.Text {
		return "CAST(" + stored + " AS String)" // it may be of LowCardinality
	}
	return stored
}

// cleanType is the type of what clean makes.
func cleanType(kind dataset.Kind) string {
	switch kind {
	case dataset.Bool:
		return "UInt8"
	case dataset.Text:
		return "String"
	}
	return "UInt64"
}

// storedType is the type of a column of a part.
func storedType(kind dataset.Kind) string {
	if kind == dataset.Number || kind == dataset.Time {
		return "Float64"
	}
	return cleanType(kind)
}
