package ingest

import (
	"errors"
	"math"

	"github.com/holdoutd/holdoutd/dataset"
)

// readFunc decodes the next rows of a page into the batch and returns how many, at least one and at most batchRows.
type readFunc = func(b *batch, p *page) (int, error)

// spread reads rows of a page and calls null or value for each in order.
func spread[T any](b *batch, p *page, decode decoding[T], null func(row int), value func(row int, v T) error) (int, error) {
	decoder, n, present, err := nextRows(b, p, decode)
	if err != nil {
		return 0, err
	}
	buffer := scratch[T](b)
	if present == n { // no row is null
		for row := 0; row < n; {
			got, err := decoder.next(buffer[:n-row])
			if err != nil {
				return 0, err
			}
			for i, v := range buffer[:got] {
				if err := value(row+i, v); err != nil {
					return 0, err
				}
			}
			row += got
		}
		return n, nil
	}
	var some []T
	for row := range n {
		if b.levels[row] == 0 {
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

// nextRows turns to the next rows of a page and returns what decodes the values of those that are not null, how many rows they are, and how many values. Where there are fewer values, b.levels tells which are null.
func nextRows[T any](b *batch, p *page, decode decoding[T]) (decoder values[T], n, present int, err error) {
	if p.decoder == nil && p.present > 0 {
		decoder, err := decode(p)
		if err != nil {
			return nil, 0, 0, err
		}
		p.decoder = decoder
	}
	decoder, _ = p.decoder.(values[T]) // none where all are null
	n = int(min(p.rows, batchRows))
	present = n
	if p.levels != nil {
		if err := p.levels.next(b.levels[:n]); err != nil {
			return nil, 0, 0, err
		}
		present = 0
		for _, level := range b.levels[:n] {
			present += int(level)
		}
	}
	if int64(present) > p.present { // or the levels, which were counted, are read wrongly
		return nil, 0, 0, errLevels
	}
	p.rows, p.present = p.rows-int64(n), p.present-int64(present)
	return decoder, n, present, nil
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

// exactFloats reads FLOAT and DOUBLE, which are as they come, where they are to be.
func exactFloats(b *batch, p *page) (int, error) {
	b.kind = dataset.Number
	decoder, n, present, err := nextRows(b, p, floats)
	if err != nil {
		return 0, err
	}
	for got := 0; got < present; {
		some, err := decoder.next(b.numbers[got:present])
		if err != nil {
			return 0, err
		}
		got += some
	}
	if present == n {
		return n, nil
	}
	for row := n - 1; row >= 0; row-- { // from the last on, so that none is overwritten before it is moved
		if b.levels[row] == 0 {
			b.numbers[row] = math.NaN()
			continue
		}
		present--
		b.numbers[row] = b.numbers[present]
	}
	return n, nil
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

// byteTexts is texts for values that are bytes. Those of a dictionary come again and again: the code of an entry is kept with the dictionary, that is for one chunk.
func byteTexts(format func([]byte) []byte) readFunc {
	plainly := texts(byteArrays, format)
	return func(b *batch, p *page) (int, error) {
		if p.encoding != plainDictionary && p.encoding != rleDictionary {
			return plainly(b, p)
		}
		b.kind = dataset.Text
		if p.dict.codes == nil {
			p.dict.codes = make([]uint32, max(p.dict.entries, 0)) // -1 where all are null
		}
		codes := p.dict.codes
		return spread(b, p, places,
			func(row int) { b.codes[row] = 0 },
			func(row int, place uint32) error {
				code := codes[place]
				if code == 0 {
					var err error
					if code, err = b.code(format(p.entry(place))); err != nil {
						return err
					}
					codes[place] = code
				}
				b.codes[row] = code
				return nil
			})
	}
}

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
