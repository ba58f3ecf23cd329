package ingest

import (
	"errors"
	"math"
	"unsafe"

	"github.com/holdoutd/holdoutd/dataset"
)

// readFunc decodes the next rows of a page into the batch and returns how many, at least one and at most batchRows.
type readFunc = func(b *batch, p *page) (int, error)

// spread reads rows of a page and calls null or value for each in order.
func spread[T any](b *batch, p *page, decode decoding[T], null func(row int), value func(row int, v T) error) (int, error) {
	if p.decoder == nil && p.present > 0 {
		decoder, err := decode(p)
		if err != nil {
			return 0, err
		}
		p.decoder = decoder
	}
	decoder, _ := p.decoder.(values[T]) // none where all are null
	buffer := scratch[T](b)
	n := int(min(p.rows, batchRows))
	present := n
	if p.levels != nil {
		if err := p.levels.next(b.levels[:n]); err != nil {
			return 0, err
		}
		present = 0
		for _, level := range b.levels[:n] {
			present += int(level)
		}
	}
	if int64(present) > p.present { // or the levels, which were counted, are read wrongly
		return 0, errLevels
	}
	p.rows, p.present = p.rows-int64(n), p.present-int64(present)
	var some []T
	for row := range n {
		if p.levels != nil && b.levels[row] == 0 {
			null(row)
			continue
		}
		if len(some) == 0 {
			got, err := decoder.next(buffer[:present])
			if err != nil {
				return 0, err
			}
			some, present = buffer[:got], present-got
		}
		if err := value(row, some[0]); err != nil {
			return 0, err
		}
		some = some[1:]
	}
	return n, nil
}

// scratch returns a buffer for values of one type. The batch keeps the last one: columns of one type often follow each other, and
// thousands of columns must not hold a buffer each.
func scratch[T any](b *batch) []T {
	if buffer, ok := b.scratch.([]T); ok {
		return buffer
	}
	buffer := make([]T, batchRows)
	b.scratch = buffer
	return buffer
}

// numbers reads a physical type as float64.
func numbers[T any](decode decoding[T], convert func(T) (float64, error)) readFunc {
	return func(b *batch, p *page) (int, error) {
		b.kind = dataset.Number
		return spread(b, p, decode,
			func(row int) { b.numbers[row] = math.NaN() },
			func(row int, v T) (err error) {
				b.numbers[row], err = convert(v)
				return err
			})
	}
}

// texts reads a physical type as text; the bytes that format returns are copied.
func texts[T any](decode decoding[T], format func(T) []byte) readFunc {
	return checkedTexts(decode, func(v T) ([]byte, error) { return format(v), nil })
}

// checkedTexts is texts of values that may be none.
func checkedTexts[T any](decode decoding[T], format func(T) ([]byte, error)) readFunc {
	return func(b *batch, p *page) (int, error) {
		b.kind = dataset.Text
		return spread(b, p, decode,
			func(row int) { b.codes[row] = 0 },
			func(row int, v T) error {
				text, err := format(v)
				if err == nil {
					b.codes[row], err = b.code(text)
				}
				return err
			})
	}
}

// byteTexts is texts for values that are bytes. Those of a dictionary come again and again: the code of an entry is kept by the place of its bytes, for the rows of one call,
// while the dictionary stays where it is.
func byteTexts(format func([]byte) []byte) readFunc {
	plainly := texts(byteArrays, format)
	return func(b *batch, p *page) (int, error) {
		if p.encoding != plainDictionary && p.encoding != rleDictionary {
			return plainly(b, p)
		}
		b.kind = dataset.Text
		var known [knownEntries]struct {
			at   *byte
			n    int
			code uint32
		}
		return spread(b, p, byteArrays,
			func(row int) { b.codes[row] = 0 },
			func(row int, v []byte) error {
				at := unsafe.SliceData(v)
				k := &known[uint64(uintptr(unsafe.Pointer(at)))*0x9E3779B97F4A7C15>>(64-knownBits)]
				if k.at == nil || k.at != at || k.n != len(v) {
					code, err := b.code(format(v))
					if err != nil {
						return err
					}
					k.at, k.n, k.code = at, len(v), code
				}
				b.codes[row] = k.code
				return nil
			})
	}
}

// knownEntries are as many as stay in the first-level cache.
const (
	knownBits    = 8
	knownEntries = 1 << knownBits
)

// digits reads 64-bit integers as decimal digits.
func digits(format func(dst []byte, v int64) []byte) readFunc {
	var text []byte
	return texts(integers, func(v int64) []byte {
		text = format(text[:0], v)
		return text
	})
}

// bools reads booleans as bytes.
func bools() readFunc {
	return func(b *batch, p *page) (int, error) {
		b.kind = dataset.Bool
		return spread(b, p, truths,
			func(row int) { b.bools[row] = dataset.NullBool },
			func(row int, v uint32) error {
				b.bools[row] = uint8(v)
				return nil
			})
	}
}

// noValues reads a column without values as nulls of a kind.
func noValues(kind dataset.Kind) readFunc {
	return func(b *batch, p *page) (int, error) {
		if p.present > 0 {
			return 0, errors.New("it has values, though its type has none")
		}
		n := int(min(p.rows, batchRows))
		for row := range n {
			b.numbers[row], b.bools[row], b.codes[row] = math.NaN(), dataset.NullBool, 0
		}
		b.kind, p.rows = kind, p.rows-int64(n)
		return n, nil
	}
}
