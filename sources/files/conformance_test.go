package files

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/xitongsys/parquet-go/writer"

	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sourcetest"
)

// TestConformance is the suite that every source passes, over folders of two files each and segments of 150 rows.
func TestConformance(t *testing.T) {
	dir, parts, tables := t.TempDir(), t.TempDir(), 0
	options := sourcetest.Options{
		Programs: 1500, // of rows, and of units
		Rows:     400,
		Open: func(t testing.TB) sources.Source {
			s, err := New(Options{Dir: dir, Parts: parts, Argv: []string{os.Args[0], childDecode}, SegmentRows: 150})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Load: func(t testing.TB, name string, rows sourcetest.Rows) string {
			tables++
			table := fmt.Sprintf("%s %d", name, tables)
			writeRows(t, filepath.Join(dir, table), rows)
			return table
		},
		Replace: func(t testing.TB, table string, rows sourcetest.Rows) { writeRows(t, filepath.Join(dir, table), rows) },
		Faults:  map[string]func(t testing.TB, part sources.PartInfo){},
	}
	for name, damage := range damages() {
		options.Faults[name] = func(t testing.TB, part sources.PartInfo) {
			if err := damage(filepath.Join(parts, part.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	delete(options.Faults, "another manifest") // whoever has the part open knows the one that was: see TestDamage
	sourcetest.Run(t, options)
}

// writeRows writes rows as a folder of two files, as they are: what is no number, infinities and -0 included.
func writeRows(t testing.TB, dir string, rows sourcetest.Rows) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var fields []reflect.StructField
	for i, c := range rows {
		as := map[sourcetest.Type]struct {
			tag string
			of  any
		}{
			sourcetest.Float64: {"type=DOUBLE", new(float64)}, sourcetest.Float32: {"type=FLOAT", new(float32)}, sourcetest.Int64: {"type=INT64", new(int64)}, sourcetest.Bool: {"type=BOOLEAN", new(bool)},
			sourcetest.Text:    {"type=BYTE_ARRAY, convertedtype=UTF8", new(string)},
			sourcetest.Instant: {"type=INT64, logicaltype=TIMESTAMP, logicaltype.isadjustedtoutc=true, logicaltype.unit=MICROS", new(int64)},
		}[c.Type]
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("C", i), Type: reflect.TypeOf(as.of), Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", "name="+c.Name+", "+as.tag))})
	}
	row := reflect.StructOf(fields)
	cut := rows.Len() / 3
	for i, part := range [][2]int{{0, cut}, {cut, rows.Len()}} {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i, ".parquet")))
		if err != nil {
			t.Fatal(err)
		}
		w, err := writer.NewParquetWriterFromWriter(f, reflect.New(row).Interface(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for at := part[0]; at < part[1]; at++ {
			v := reflect.New(row)
			for i := range rows {
				c := &rows[i]
				if c.IsNull(at) {
					continue
				}
				var value any
				switch c.Type {
				case sourcetest.Float64:
					value = &c.Floats[at]
				case sourcetest.Float32:
					x := float32(c.Floats[at])
					value = &x
				case sourcetest.Bool:
					value = &c.Bools[at]
				case sourcetest.Text:
					value = &c.Texts[at]
				default:
					value = &c.Ints[at]
				}
				v.Elem().Field(i).Set(reflect.ValueOf(value))
			}
			if err := w.Write(v.Interface()); err != nil {
				t.Fatal(err)
			}
			if at == part[0]+40 {
				if err := w.Flush(true); err != nil { // a row group
					t.Fatal(err)
				}
			}
		}
		if err := w.WriteStop(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
