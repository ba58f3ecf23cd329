package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/writer"

	"github.com/holdoutd/holdoutd/dataset"
)

// laneRow is a row of the tests' files: one column of each kind of reader that the lanes have, and a text between them.
type laneRow struct {
	Few   float64  `parquet:"name=few, type=DOUBLE, encoding=PLAIN_DICTIONARY"`
	Plain float64  `parquet:"name=plain, type=DOUBLE"`
	Holes *float64 `parquet:"name=holes, type=DOUBLE"`
	Small *float32 `parquet:"name=small, type=FLOAT, encoding=PLAIN_DICTIONARY"`
	Text  string   `parquet:"name=text, type=BYTE_ARRAY, convertedtype=UTF8, encoding=PLAIN_DICTIONARY"`
	Whole int64    `parquet:"name=whole, type=INT64"`
	Truth *bool    `parquet:"name=truth, type=BOOLEAN"`
	Time  *int64   `parquet:"name=time, type=INT64, convertedtype=TIMESTAMP_MICROS"`
}

// laneFile writes rows in groups of these sizes; change may change any of them.
func laneFile(t *testing.T, pageBytes int64, change func(row int, r *laneRow), groups ...int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := writer.NewParquetWriterFromWriter(&out, new(laneRow), 1)
	if err != nil {
		t.Fatal(err)
	}
	w.CompressionType, w.PageSize = parquet.CompressionCodec_SNAPPY, pageBytes
	r, row := rand.New(rand.NewPCG(7, 8)), 0
	for _, n := range groups {
		for range n {
			one := laneRow{Few: float64(r.IntN(50)) / 4, Plain: r.NormFloat64(), Text: string(rune('a' + r.IntN(9))), Whole: r.Int64N(1 << 50)}
			if r.IntN(5) > 0 {
				x, small, truth, time := r.NormFloat64(), float32(r.IntN(30)), r.IntN(2) == 0, r.Int64N(1<<50)
				one.Holes, one.Small, one.Truth, one.Time = &x, &small, &truth, &time
			}
			if change != nil {
				change(row, &one)
			}
			row++
			if err := w.Write(one); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteStop(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// oneReader is memory for which the lanes are not made.
const oneReader = laneShare*laneBytes - 1

// laneDecoded decodes a file with this much memory, and returns the columns as they are written.
func laneDecoded(t *testing.T, path string, memory int64) (columns []byte, res Result, err error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	if res, err = Decode(context.Background(), path, dir, Limits{MemoryBytes: memory}); err != nil {
		return nil, res, err
	}
	columns, read := os.ReadFile(filepath.Join(dir, "columns"))
	if read != nil {
		t.Fatal(read)
	}
	return columns, res, nil
}

// sameInLanes fails where a file becomes something else by lanes than by one reader, or is refused by other words.
func sameInLanes(t *testing.T, what string, data []byte) {
	t.Helper()
	path := write(t, data)
	want, wantResult, wantErr := laneDecoded(t, path, oneReader)
	got, gotResult, err := laneDecoded(t, path, 0)
	switch {
	case (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error():
		t.Errorf("%s: lanes say %v, one reader %v", what, err, wantErr)
	case !bytes.Equal(got, want):
		t.Errorf("%s: lanes write other columns than one reader", what)
	case cmp.Diff(gotResult, wantResult) != "":
		t.Errorf("%s (-lanes +one): %s", what, cmp.Diff(gotResult, wantResult))
	}
}

// TestLanes: two lanes make the bytes, the warnings and the errors of one reader: of row groups of many sizes, empty ones, integers that turn out to be too wide in a late group, and damage in any place. It would notice groups in another order, lost or repeated pieces, and nulls that move.
func TestLanes(t *testing.T) {
	const page = 1 << 13
	sameInLanes(t, "many groups", laneFile(t, page, nil, 3000, 1, 0, 40_000, 17, 20_000, 5))
	sameInLanes(t, "two groups", laneFile(t, page, nil, 100, 100))
	sameInLanes(t, "one group", laneFile(t, page, nil, 0, 100))
	sameInLanes(t, "wide integers", laneFile(t, page, func(row int, r *laneRow) {
		if row == 290 {
			r.Whole = math.MaxInt64
		}
	}, 100, 100, 100, 100))
	data := laneFile(t, page, nil, 60, 60, 60)
	r := rand.New(rand.NewPCG(9, 10))
	for range 60 {
		damaged := bytes.Clone(data)
		at := r.IntN(len(data))
		damaged[at] ^= byte(1 + r.IntN(255))
		sameInLanes(t, "damage", damaged)
	}
}

// TestLanesGiveUp: a row group of more pieces than a lane may hold, and pages that are larger than a lane takes.
func TestLanesGiveUp(t *testing.T) {
	const rows = (lanePieces + 2) * batchRows
	numbers, r := make([]float64, rows+10), rand.New(rand.NewPCG(11, 12))
	for i := range numbers {
		numbers[i] = r.NormFloat64()
	}
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: numbers})
	if err != nil {
		t.Fatal(err)
	}
	for what, page := range map[string]int64{"many pieces": exportPageBytes, "large pages": 2 * lanePageBytes} {
		var out bytes.Buffer
		buffered := bufio.NewWriter(&out)
		column, err := newExportColumn(table.Column(0))
		if err != nil {
			t.Fatal(err)
		}
		e, err := newExporter(buffered, []exportColumn{column}, parquet.CompressionCodec_ZSTD)
		if err != nil {
			t.Fatal(err)
		}
		e.writer.PageSize, e.groupRows = page, rows
		if err := errors.Join(e.writeGroup(0, rows), e.writeGroup(rows, len(numbers)), e.finish(), buffered.Flush()); err != nil {
			t.Fatal(err)
		}
		sameInLanes(t, what, out.Bytes())
	}
}
