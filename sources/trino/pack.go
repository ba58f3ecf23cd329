package trino

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
)

// Rows travel as one binary value each: JSON would say a number in digits, and take four times as long to read. Numbers and times are the eight bytes of a float64, truths one
// byte and texts the bytes behind their length; all of fixed width is big-endian.

// packs are the SQL of a row's values one behind the other, of binary values.
func packs(values []string) string {
	const most = 50 // arguments that the engine's concat takes are 127
	for len(values) > 1 {
		var fewer []string
		for from := 0; from < len(values); from += most {
			some := values[from:min(from+most, len(values))]
			if len(some) == 1 {
				fewer = append(fewer, some[0])
				continue
			}
			fewer = append(fewer, "concat("+strings.Join(some, ", ")+")")
		}
		values = fewer
	}
	return values[0]
}

// packed is the binary value of a value, as a part keeps it.
func packed(kind dataset.Kind, stored string) string {
	switch kind {
	case dataset.Bool:
		return "to_big_endian_32(" + stored + ")"
	case dataset.Text:
		return "coalesce(concat(to_big_endian_32(CAST(length(to_utf8(" + stored + ")) AS integer)), to_utf8(" + stored + ")), X'ffffffff')"
	}
	return "to_ieee754_64(" + stored + ")"
}

// unpacker reads what packs has written. After the first damage everything is zero.
type unpacker struct {
	b      []byte
	failed bool
}

func (u *unpacker) take(n int) []byte {
	if n < 0 || n > len(u.b) {
		u.failed, u.b = true, nil
		return make([]byte, 8)[:min(max(n, 0), 8)]
	}
	taken := u.b[:n]
	u.b = u.b[n:]
	return taken
}

func (u *unpacker) int64() int64 { return int64(binary.BigEndian.Uint64(u.take(8))) }

func (u *unpacker) int32() int32 { return int32(binary.BigEndian.Uint32(u.take(4))) }

func (u *unpacker) number() float64 { return math.Float64frombits(binary.BigEndian.Uint64(u.take(8))) }

// text reads a text; false: it is null.
func (u *unpacker) text() ([]byte, bool) {
	n := u.int32()
	if n == -1 {
		return nil, false
	}
	if n < 0 || int(n) > len(u.b) {
		u.failed, u.b = true, nil
		return nil, false
	}
	return u.take(int(n)), true
}

// collector gathers values of a column.
type collector struct {
	field   dataset.Field
	numbers []float64
	bools   []uint8
	codes   []uint32
	texts   []string
	known   map[string]uint32
}

func newCollector(field dataset.Field) *collector {
	return &collector{field: field, known: map[string]uint32{}}
}

func (c *collector) read(u *unpacker) {
	switch c.field.Kind {
	case dataset.Bool:
		b := u.int32()
		u.failed = u.failed || b < 0 || b > dataset.NullBool
		c.bools = append(c.bools, uint8(b))
	case dataset.Text:
		text, there := u.text()
		if !there {
			c.codes = append(c.codes, 0)
			return
		}
		code, ok := c.known[string(text)]
		if !ok {
			c.texts = append(c.texts, string(text))
			code = uint32(len(c.texts))
			c.known[string(text)] = code
		}
		c.codes = append(c.codes, code)
	default:
		c.numbers = append(c.numbers, u.number())
	}
}

// column is what was gathered; the collector is empty afterwards.
func (c *collector) column() dataset.Column {
	column := dataset.Column{Field: c.field, Numbers: c.numbers, Bools: c.bools, Codes: c.codes}
	if c.field.Kind == dataset.Text {
		column.Dictionary = dataset.NewDictionary(c.texts...)
	}
	*c = *newCollector(c.field)
	return column
}

func tableOfAll(collectors []*collector) (*dataset.Table, error) {
	columns := make([]dataset.Column, len(collectors))
	for i, c := range collectors {
		columns[i] = c.column()
	}
	return dataset.FromColumns(columns...)
}

// stream runs a statement with one column of binary values and yields each. What it yields may not be kept. It is sent once: what was yielded cannot be taken back.
func (c *client) stream(ctx context.Context, statement string, yield func(row []byte) error) error {
	var row []byte
	return c.run(ctx, statement, func(p page) error {
		if len(p.Data) == 0 {
			return nil
		}
		var rows [][]string
		if err := json.Unmarshal(p.Data, &rows); err != nil {
			return fmt.Errorf("%w: %w", errProtocol, err)
		}
		for _, r := range rows {
			if len(r) != 1 {
				return fmt.Errorf("%w: a row has %d values of one column", errProtocol, len(r))
			}
			var err error
			if row, err = base64.StdEncoding.AppendDecode(row[:0], []byte(r[0])); err != nil {
				return fmt.Errorf("%w: %w", errProtocol, err)
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	})
}
