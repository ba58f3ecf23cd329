package ingest

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/holdoutd/holdoutd/dataset"
)

// A reader of one physical type: decodes up to n rows of one page into dst (values without the nulls between them) and
// levels. It stops at the end of a page because texts lie in the page's memory, which the next page takes.
type physicalReader[T any] func(r file.ColumnChunkReader, n int64, dst []T, levels []int16) (int64, int, error)

func readInt32(r file.ColumnChunkReader, n int64, dst []int32, levels []int16) (int64, int, error) {
	return r.(*file.Int32ColumnChunkReader).ReadBatchInPage(n, dst, levels, nil)
}

func readInt64(r file.ColumnChunkReader, n int64, dst []int64, levels []int16) (int64, int, error) {
	return r.(*file.Int64ColumnChunkReader).ReadBatchInPage(n, dst, levels, nil)
}

func readInt96(r file.ColumnChunkReader, n int64, dst []parquet.Int96, levels []int16) (int64, int, error) {
	return r.(*file.Int96ColumnChunkReader).ReadBatchInPage(n, dst, levels, nil)
}

func readFloat32(r file.ColumnChunkReader, n int64, dst []float32, levels []int16) (int64, int, error) {
	return r.(*file.Float32ColumnChunkReader).ReadBatchInPage(n, dst, levels, nil)
}

func readFloat64(r file.ColumnChunkReader, n int64, dst []float64, levels []int16) (int64, int, error) {
	return r.(*file.Float64ColumnChunkReader).ReadBatchInPage(n, dst, levels, nil)
}

func readBool(r file.ColumnChunkReader, n int64, dst []bool, levels []int16) (int64, int, error) {
	return r.(*file.BooleanColumnChunkReader).ReadBatchInPage(n, dst, levels, nil)
}

func readBytes(r file.ColumnChunkReader, n int64, dst []parquet.ByteArray, levels []int16) (int64, int, error) {
	return r.(*file.ByteArrayColumnChunkReader).ReadBatchInPage(n, dst, levels, nil)
}

func readFixed(r file.ColumnChunkReader, n int64, dst []parquet.FixedLenByteArray, levels []int16) (int64, int, error) {
	return r.(*file.FixedLenByteArrayColumnChunkReader).ReadBatchInPage(n, dst, levels, nil)
}

// spread reads up to n rows and calls null or value for each in order. It checks that the library returned as many
// values as the definition levels say.
func spread[T any](c *column, b *batch, r file.ColumnChunkReader, n int64, buffer []T, read physicalReader[T],
	null func(row int), value func(row int, v T) error) (int64, error) {
	rows, values, err := read(r, n, buffer[:n], b.levels[:n])
	if err != nil {
		return 0, err
	}
	if rows < 0 || rows > n || values < 0 || int64(values) > rows || (!c.optional && int64(values) != rows) {
		return 0, fmt.Errorf("%d values for %d rows", values, rows)
	}
	next := 0
	for row := range int(rows) {
		if c.optional && b.levels[row] == 0 {
			null(row)
			continue
		}
		if next == values {
			return 0, errors.New("fewer values than rows that are not null")
		}
		if err := value(row, buffer[next]); err != nil {
			return 0, err
		}
		next++
	}
	if next != values {
		return 0, errors.New("more values than rows that are not null")
	}
	return rows, nil
}

// scratch returns a buffer for values of one physical type. The batch keeps the last one: columns of one type often
// follow each other, and thousands of columns must not hold a buffer each.
func scratch[T any](b *batch) []T {
	if buffer, ok := b.scratch.([]T); ok {
		return buffer
	}
	buffer := make([]T, batchRows)
	b.scratch = buffer
	return buffer
}

type readFunc = func(b *batch, r file.ColumnChunkReader, n int64) (int64, error)

// numbers reads a physical type as float64.
func numbers[T any](c *column, read physicalReader[T], convert func(T) (float64, error)) readFunc {
	return func(b *batch, r file.ColumnChunkReader, n int64) (int64, error) {
		buffer := scratch[T](b)
		b.kind = dataset.Number
		return spread(c, b, r, n, buffer, read,
			func(row int) { b.numbers[row] = math.NaN() },
			func(row int, v T) (err error) {
				b.numbers[row], err = convert(v)
				return err
			})
	}
}

// texts reads a physical type as text; the bytes that format returns are copied.
func texts[T any](c *column, read physicalReader[T], format func(T) []byte) readFunc {
	return func(b *batch, r file.ColumnChunkReader, n int64) (int64, error) {
		buffer := scratch[T](b)
		b.kind = dataset.Text
		return spread(c, b, r, n, buffer, read,
			func(row int) { b.codes[row] = 0 },
			func(row int, v T) (err error) {
				b.codes[row], err = b.code(format(v))
				return err
			})
	}
}

// digits reads 64-bit integers as decimal digits.
func digits(c *column, format func(dst []byte, v int64) []byte) readFunc {
	var text []byte
	return texts(c, readInt64, func(v int64) []byte {
		text = format(text[:0], v)
		return text
	})
}

// bools reads booleans as bytes.
func bools(c *column) readFunc {
	return func(b *batch, r file.ColumnChunkReader, n int64) (int64, error) {
		buffer := scratch[bool](b)
		b.kind = dataset.Bool
		return spread(c, b, r, n, buffer, readBool,
			func(row int) { b.bools[row] = dataset.NullBool },
			func(row int, v bool) error {
				b.bools[row] = 0
				if v {
					b.bools[row] = 1
				}
				return nil
			})
	}
}
