package sql

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Dialect is an engine's language. There are [ClickHouse] and [Trino].
type Dialect struct {
	name string
	// operations say how each operation of the total graph is written. {a}, {b} and {c} are its arguments: a bit is the integer 0 or 1 there, and a truth value, as the engine
	// has them, in {a?}. {t} is the literal of a test of texts, {n} its length as the engine counts it, {null} the null text.
	operations map[op]template
	// truths are those whose text is a truth value where the engine has such a type, and not an integer.
	truths map[op]bool
	// bit makes an integer of a truth value, truth one of an integer.
	bit, truth string

	number  func(x float64) string // literals
	integer func(k int64) string
	text    func(s string) string
	null    string                // the null text
	length  func(text string) int // of a literal, as the engine counts
	name1   func(name string) string
	lookup  func(d *Dialect, column string, v *value) string

	total   template // the sum of an integer, 0 without rows
	whole   template // an integer with a sign, of an integer
	bound   checksum // of values with the numbers of their units
	unbound checksum // of values alone: of parts that were made before there was the other one
}

// checksum is how the checksum of a column is written, modulo 2^64.
type checksum struct {
	rows  map[class]template // over rows, with the column {_unit} beside
	unit  map[class]template // over the rows of one unit
	units []template         // of those, over units: integers that are added each by itself
}

// template is how an operation is written.
type template []piece

// piece is literal text, or a place.
type piece struct {
	text  string
	place string
}

func parse(text string) (t template) {
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			t = append(t, piece{text: before})
		}
		if !found {
			break
		}
		place, after, _ := strings.Cut(rest, "}")
		t, text = append(t, piece{place: place}), after
	}
	return t
}

func templates(texts map[op]string) map[op]template {
	out := make(map[op]template, len(texts))
	for o, text := range texts {
		out[o] = parse(text)
	}
	return out
}

// argument is the index of the argument that a place is for, or -1.
func (p piece) argument() int {
	switch p.place {
	case "a", "a?":
		return 0
	case "b":
		return 1
	case "c":
		return 2
	}
	return -1
}

// String is the name of the dialect: "clickhouse" or "trino".
func (d *Dialect) String() string { return d.name }

// Name is an identifier of an owner's, quoted. Parts of qualified names are quoted one by one.
func (d *Dialect) Name(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, part := range parts {
		quoted[i] = d.name1(part)
	}
	return strings.Join(quoted, ".")
}

// Literal is a text as the engine reads it, whatever is in it.
func (d *Dialect) Literal(text string) string { return d.text(text) }

// littleEndian are the bits of a number, from the lowest byte on, as hexadecimal digits.
func littleEndian(x float64) string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
	return hex.EncodeToString(b[:])
}

func bigEndian(x float64) string { return fmt.Sprintf("%016x", math.Float64bits(x)) }

func decimal(k int64) string { return strconv.FormatInt(k, 10) }
