package ingest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xitongsys/parquet-go/common"
	"github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/source"

	"github.com/holdoutd/holdoutd/dataset"
)

// memoryFile is a file for the second reader, which opens one handle for each column.
type memoryFile struct {
	*bytes.Reader
	data []byte
}

var errReadOnly = errors.New("read-only")

func openMemory(data []byte) *memoryFile                        { return &memoryFile{bytes.NewReader(data), data} }
func (f *memoryFile) Open(string) (source.ParquetFile, error)   { return openMemory(f.data), nil }
func (f *memoryFile) Create(string) (source.ParquetFile, error) { return nil, errReadOnly }
func (f *memoryFile) Write([]byte) (int, error)                 { return 0, errReadOnly }
func (f *memoryFile) Close() error                              { return nil }

// Every fixture that the second, independent reader can serve, and the export of every fixture, must hold the same values through both readers. What Decode does to a value is done again here in
// another way. The second reader knows neither Brotli nor LZ4, and in data pages of version 2 it decompresses pages that
// say that they are not compressed and misreads booleans, so those files are left to their known contents.
func TestTwoReadersAgree(t *testing.T) {
	var names []string
	for _, codec := range []string{"none", "snappy", "gzip", "zstd"} {
		names = append(names, "types-pyarrow-"+codec+"-v1.parquet")
	}
	names = append(names, "int96.parquet", "encodings.parquet", "duckdb.parquet", "flights-20k.parquet")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			table, _ := decode(t, fixture(name))
			compare(t, table, read(t, name))
		})
	}
	for _, name := range append(names, "polars.parquet", "types-pyarrow-lz4-v2.parquet") {
		t.Run("export of "+name, func(t *testing.T) {
			table, _ := decode(t, fixture(name))
			path := filepath.Join(t.TempDir(), "export.parquet")
			exportTo(t, path, table)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			back, _ := decode(t, path)
			if back.Columns() != table.Columns() {
				t.Fatalf("%d columns, the export has %d", table.Columns(), back.Columns())
			}
			compare(t, back, data)
		})
	}
}

// compare reads data with the second reader and compares every column that the table has.
func compare(t *testing.T, table *dataset.Table, data []byte) {
	t.Helper()
	r, err := reader.NewParquetColumnReader(openMemory(data), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.ReadStop()
	if r.GetNumRows() != int64(table.Rows()) {
		t.Fatalf("%d rows, the second reader says %d", table.Rows(), r.GetNumRows())
	}
	compared := 0
	for i, path := range r.SchemaHandler.ValueColumns {
		names := common.StrToPath(r.SchemaHandler.InPathToExPath[path])
		c, ok := table.Lookup(names[1])
		if !ok || len(names) != 2 {
			continue
		}
		values, _, _, err := r.ReadColumnByIndex(int64(i), int64(table.Rows()))
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if len(values) != table.Rows() {
			t.Fatalf("%s: %d values for %d rows", c.Name, len(values), table.Rows())
		}
		for row, v := range values {
			if got, want := cell(c, row), second(c, v); got != want {
				t.Fatalf("%s (%s) row %d: %s, the second reader says %s", c.Name, c.Source, row, got, want)
			}
		}
		compared++
	}
	if compared != table.Columns() {
		t.Errorf("%d of %d columns were compared", compared, table.Columns())
	}
}

func cell(c *dataset.Column, row int) string {
	switch {
	case c.Null(row):
		return "null"
	case c.Kind == dataset.Bool:
		return strconv.FormatBool(c.Bools[row] == 1)
	case c.Kind == dataset.Text:
		return c.Dictionary.Text(int(c.Codes[row]) - 1)
	}
	return number(c.Numbers[row])
}

func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "null"
	}
	return strconv.FormatFloat(v+0, 'g', -1, 64)
}

// second is what a value of the second reader means in a column of this source type.
func second(c *dataset.Column, v any) string {
	if v == nil {
		return "null"
	}
	integer := func() *big.Int {
		switch x := v.(type) {
		case int32:
			return big.NewInt(int64(x))
		case int64:
			return big.NewInt(x)
		case uint32:
			return big.NewInt(int64(x))
		case uint64:
			return new(big.Int).SetUint64(x)
		case string: // two's complement, big-endian
			z := new(big.Int).SetBytes([]byte(x))
			if len(x) > 0 && x[0] >= 0x80 {
				z.Sub(z, new(big.Int).Lsh(big.NewInt(1), uint(8*len(x))))
			}
			return z
		}
		panic(fmt.Sprintf("%T in a column of %s", v, c.Source))
	}
	over := func(numerator *big.Int, denominator *big.Int) string {
		f, _ := new(big.Rat).SetFrac(numerator, denominator).Float64()
		return number(f)
	}
	floor := func(x *big.Int, d int64) string { return over(new(big.Int).Div(x, big.NewInt(d)), big.NewInt(1)) }
	kind, args, _ := strings.Cut(strings.TrimSuffix(c.Source, ")"), "(")
	unit := map[string]int64{"ms": 1e3, "us": 1e6, "ns": 1e9}[strings.TrimSuffix(args, ", UTC")]
	switch kind {
	case "STRING", "ENUM", "JSON":
		return v.(string)
	case "UUID":
		h := hex.EncodeToString([]byte(v.(string)))
		return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
	case "BOOLEAN":
		return strconv.FormatBool(v.(bool))
	case "FLOAT":
		return number(float64(v.(float32)))
	case "DOUBLE":
		if v.(float64) == 0 {
			return "0"
		}
		return number(v.(float64))
	case "FLOAT16":
		return half(v.(string))
	case "DATE":
		return over(new(big.Int).Mul(integer(), big.NewInt(86400e6)), big.NewInt(1))
	case "TIMESTAMP":
		return floor(new(big.Int).Mul(integer(), big.NewInt(1e6)), unit)
	case "TIME":
		return over(integer(), big.NewInt(unit))
	case "INT96":
		b := []byte(v.(string))
		for i, j := 0, 11; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
		day, nanos := new(big.Int).SetBytes(b[:4]), new(big.Int).SetBytes(b[4:])
		day.Sub(day, big.NewInt(2440588)).Mul(day, big.NewInt(86400e9))
		return floor(day.Add(day, nanos), 1000)
	case "DECIMAL":
		_, scale, _ := strings.Cut(args, ",")
		n, err := strconv.Atoi(scale)
		if err != nil {
			panic(err)
		}
		return over(integer(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
	}
	z := integer()
	if strings.HasPrefix(kind, "UINT") && z.Sign() < 0 {
		bits, err := strconv.Atoi(kind[4:])
		if err != nil {
			panic(err)
		}
		z.Add(z, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	if c.Kind == dataset.Text {
		return z.String()
	}
	return over(z, big.NewInt(1))
}

// half reads an IEEE 754 half-precision number, little-endian.
func half(s string) string {
	h := uint(s[0]) | uint(s[1])<<8
	v := math.Ldexp(float64(h&0x3ff|0x400), int(h>>10&31)-25)
	if h>>10&31 == 0 {
		v = math.Ldexp(float64(h&0x3ff), -24)
	}
	if h>>10&31 == 31 {
		return "null"
	}
	if h>>15 == 1 && v != 0 {
		v = -v
	}
	return number(v)
}
