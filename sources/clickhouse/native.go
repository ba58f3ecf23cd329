package clickhouse

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	// maxBlockRows is far above the rows of a block that ClickHouse sends (65,536 and, joined, a few times as many).
	maxBlockRows = 1 << 24
	// maxBlockText bounds the texts of a column in a block.
	maxBlockText = 1 << 30
	// maxNameLength bounds names and types in a block.
	maxNameLength = 4 << 10
)

// native reads the format Native: blocks of columns. It has a count of rows and the types of the columns in front of each block, so that a reply that is cut off, or that ends
// in the text of an error, is not taken for a whole one.
type native struct {
	in    *bufio.Reader
	types []string
}

// column is a column of a block. One of the slices is used, by the type.
type column struct {
	bytes   []uint8   // UInt8
	words   []uint32  // UInt32
	longs   []uint64  // UInt64, Int64 and the bits of Float64
	numbers []float64 // Float64
	data    []byte    // String: the texts one behind the other
	ends    []int     // and where each ends
}

// text is the text of a row.
func (c *column) text(row int) []byte {
	from := 0
	if row > 0 {
		from = c.ends[row-1]
	}
	return c.data[from:c.ends[row]]
}

// block is some rows of a reply. Its slices are used again for the next one.
type block struct {
	rows    int
	columns []column
}

func newNative(r io.Reader, types []string) *native {
	return &native{in: bufio.NewReaderSize(r, 1<<18), types: types}
}

var (
	errNotNative = errors.New("no block of these columns")
	errOtherType = errors.New("a column is of another type")
)

// next reads the next block; io.EOF is the end. Any other error may be that of an engine whose text stands in the reply: rest returns it.
func (n *native) next(b *block) error {
	if _, err := n.in.Peek(1); err != nil {
		return err
	}
	columns, err := n.varint()
	if err != nil || columns != uint64(len(n.types)) {
		return errors.Join(errNotNative, err)
	}
	rows, err := n.varint()
	if err != nil || rows > maxBlockRows {
		return errors.Join(errNotNative, err)
	}
	b.rows = int(rows)
	if len(b.columns) != len(n.types) {
		b.columns = make([]column, len(n.types))
	}
	for i, want := range n.types {
		if _, err := n.string(); err != nil {
			return err
		}
		kind, err := n.string()
		if err != nil {
			return err
		}
		if kind != want {
			return fmt.Errorf("%w: column %d is of the type %q, not %q", errOtherType, i, kind, want)
		}
		if err := n.values(&b.columns[i], want, int(rows)); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// rest is the beginning of what was not read: after an error, perhaps the engine's.
func (n *native) rest() []byte {
	text, _ := io.ReadAll(io.LimitReader(n.in, maxErrorText))
	return text
}

func (n *native) varint() (uint64, error) {
	v, err := binary.ReadUvarint(n.in)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}

func (n *native) string() (string, error) {
	length, err := n.varint()
	if err != nil || length > maxNameLength {
		return "", errors.Join(errNotNative, err)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(n.in, text); err != nil {
		return "", io.ErrUnexpectedEOF
	}
	return string(text), nil
}

func (n *native) values(c *column, kind string, rows int) error {
	switch kind {
	case "UInt8":
		c.bytes = sized(c.bytes, rows)
		_, err := io.ReadFull(n.in, c.bytes)
		return err
	case "UInt32":
		c.words = sized(c.words, rows)
		return n.fixed(rows, 4, func(at int, piece []byte) {
			for i := range len(piece) / 4 {
				c.words[at+i] = binary.LittleEndian.Uint32(piece[4*i:])
			}
		})
	case "UInt64", "Int64":
		c.longs = sized(c.longs, rows)
		return n.fixed(rows, 8, func(at int, piece []byte) {
			for i := range len(piece) / 8 {
				c.longs[at+i] = binary.LittleEndian.Uint64(piece[8*i:])
			}
		})
	case "Float64":
		c.numbers = sized(c.numbers, rows)
		return n.fixed(rows, 8, func(at int, piece []byte) {
			for i := range len(piece) / 8 {
				c.numbers[at+i] = math.Float64frombits(binary.LittleEndian.Uint64(piece[8*i:]))
			}
		})
	case "String":
		c.data, c.ends = c.data[:0], sized(c.ends, rows)
		for i := range rows {
			length, err := n.varint()
			if err != nil {
				return err
			}
			from := len(c.data)
			if length > maxBlockText || from > maxBlockText {
				return errNotNative
			}
			if c.data, err = n.append(c.data, int(length)); err != nil {
				return err
			}
			c.ends[i] = len(c.data)
		}
		return nil
	}
	return fmt.Errorf("clickhouse: no reader of the type %q", kind)
}

// append reads so many bytes behind what dst has. Memory grows with what has arrived, not with what a length says.
func (n *native) append(dst []byte, length int) ([]byte, error) {
	const piece = 1 << 20
	for length > 0 {
		now := min(length, piece)
		from := len(dst)
		if cap(dst)-from < now {
			dst = append(dst, make([]byte, now)...)
		} else {
			dst = dst[:from+now]
		}
		if _, err := io.ReadFull(n.in, dst[from:]); err != nil {
			return dst, err
		}
		length -= now
	}
	return dst, nil
}

// fixed reads values of a fixed width in pieces of whole values.
func (n *native) fixed(rows, width int, take func(at int, piece []byte)) error {
	for at := 0; at < rows; {
		piece, err := n.in.Peek(min((rows-at)*width, n.in.Size()/width*width))
		if len(piece) < width {
			return errors.Join(io.ErrUnexpectedEOF, err)
		}
		piece = piece[:len(piece)/width*width]
		take(at, piece)
		at += len(piece) / width
		if _, err := n.in.Discard(len(piece)); err != nil {
			return err
		}
	}
	return nil
}

// sized is a slice of so many values, the same memory where it is enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
