package dataset

// Kind is how the values of a column are held.
type Kind uint8

const (
	// Number is a finite float64. A null is stored as NaN, which no value is (see Infinite for a second one): NaN and infinities of the
	// source become null, and -0 becomes 0. Integers and decimals are here while every value is within ±2^53.
	Number Kind = iota + 1
	// Bool is a byte: 0 false, 1 true, NullBool null.
	Bool
	// Text is a code into the column's dictionary; code 0 is null.
	Text
	// Time is a Number of microseconds since 1970-01-01T00:00:00Z (exact for the years 1684 to 2255).
	Time
)

// NullBool is the byte of a null in a Bool column.
const NullBool = 2

// Field is one column of a schema.
type Field struct {
	Name   string `json:"name"`
	Kind   Kind   `json:"kind"`
	Source string `json:"source"` // the type in the uploaded file, for people: "INT64", "DECIMAL(9,2)", …
	// Note says what the values are where the source does not: "seconds since midnight". It follows from the type in the file, from no value.
	Note string `json:"note,omitempty"`
}

// Schema is the ordered list of a table's columns; names are unique and not empty.
type Schema struct {
	Fields []Field `json:"fields"`
	// Skipped says why columns of the upload are not among the fields, for messages.
	Skipped map[string]string `json:"-"`
}

// Column is one column of a Table. Exactly one of the value slices is set, by Kind; it has one value a row
// and must not be written to.
type Column struct {
	Field
	Numbers    []float64  // Number and Time; NaN is null
	Bools      []uint8    // Bool
	Codes      []uint32   // Text; Codes[i]-1 indexes Dictionary, 0 is null
	Dictionary Dictionary // Text: the distinct values
}
