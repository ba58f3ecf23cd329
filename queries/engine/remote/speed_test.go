//go:build engines

package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
	"github.com/holdoutd/holdoutd/rowfn"
)

// moving counts the bytes that go to an engine and come from it, without headers.
type moving struct{ sent, came atomic.Int64 }

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func (m *moving) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = counted{r.Body, &m.sent}
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		response.Body = counted{response.Body, &m.came}
	}
	return response, err
}

// BenchmarkBesideSQL takes questions over a table that ClickHouse 18.16 has generated, beside what a person would write there by hand, in turns in one run: means of a column within limits, of the rows in which another one
// is below a number. HOLDOUTD_ROWS says of how many rows; a tenth and a hundredth of them are measured, too, and 100 means of these alone. bench/sources.sh runs it.
func BenchmarkBesideSQL(b *testing.B) {
	most, err := strconv.ParseInt(os.Getenv("HOLDOUTD_ROWS"), 10, 64)
	if err != nil {
		most = 1_000_000
	}
	runs, err := strconv.Atoi(os.Getenv("HOLDOUTD_RUNS"))
	if err != nil {
		runs = 3
	}
	address := enginetest.ClickHouse18(b)
	loader, err := NewClickHouse(address.Address(0, "loader"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	m := &moving{}
	reader, err := NewClickHouse(address.Address(0, "reader"), Options{Transport: m, Tell: func(words string) { b.Log(words) }})
	if err != nil {
		b.Fatal(err)
	}
	var schema dataset.Schema
	for _, name := range []string{"x", "y", "z"} {
		schema.Fields = append(schema.Fields, dataset.Field{Name: name, Kind: dataset.Number})
	}
	for b.Loop() {
		for _, rows := range []int64{most / 100, most / 10, most} {
			layout := Layout(fmt.Sprint("rows_", rows), schema, 0)
			begun := time.Now()
			if err := loader.Make(b.Context(), &layout); err != nil {
				b.Fatal(err)
			}
			const piece = 5_000_000
			for from := int64(0); from < rows; from += piece {
				statement := fmt.Sprintf("INSERT INTO %s SELECT number+%d AS n,intHash64(n)%%1000003/1000003,intHash64(n+7)%%1000003/1000003,intHash64(n+11)%%1000003/1000003*1.5-.25 FROM system.numbers LIMIT %d", layout.From, from, min(piece, rows-from))
				if err := loader.change(b.Context(), statement, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.Logf("%d rows were generated in %.1f s", rows, time.Since(begun).Seconds())
			s, err := New(reader, Registered{Table: layout, Units: rows, Rows: rows})
			if err != nil {
				b.Fatal(err)
			}
			for _, aggregates := range []int{10, 100} {
				if aggregates == 100 && rows == most {
					break
				}
				var functions []rowfn.Function
				var plain, fixed []string
				for i := range aggregates {
					limit := float64(i+1) / float64(aggregates+1)
					functions = append(functions, rowfn.Function{Value: rowfn.Column("z", rowfn.Number), Lo: 0, Hi: 1, Where: rowfn.CompareTo(rowfn.OpLess, rowfn.Column([]string{"x", "y"}[i%2], rowfn.Number), limit)})
					by := []string{"c0", "c1"}[i%2]
					plain = append(plain, fmt.Sprintf("sumIf(least(greatest(c2,0),1),%s<%g)", by, limit))
					fixed = append(fixed, fmt.Sprintf("sum(if(%s<%g,toInt64(floor(least(greatest(c2,0),1)*1073741824+0.5)),0))", by, limit))
				}
				statements := map[string]string{"floats": strings.Join(plain, ","), "integers": strings.Join(fixed, ",")}
				took, sent, came := map[string][]float64{}, int64(0), int64(0)
				for range runs {
					m.sent.Store(0)
					m.came.Store(0)
					begun := time.Now()
					sums, err := s.Sums(b.Context(), functions, 0, rows)
					if err != nil {
						b.Fatal(err)
					}
					took["ours"] = append(took["ours"], time.Since(begun).Seconds())
					sent, came = m.sent.Load(), m.came.Load()
					for _, by := range []string{"floats", "integers"} {
						begun := time.Now()
						cells, err := reader.Integers(b.Context(), "SELECT count(),"+statements[by]+" FROM "+layout.From+" FORMAT TabSeparated", aggregates+1)
						if err != nil {
							b.Fatal(err)
						}
						took[by] = append(took[by], time.Since(begun).Seconds())
						for i, cell := range cells[1:] {
							if by == "integers" && cell != fmt.Sprint(sums[i]) {
								b.Fatalf("sum %d: %d, by hand %s", i, sums[i], cell)
							}
						}
					}
				}
				ours, floats, integers := median(took["ours"]), median(took["floats"]), median(took["integers"])
				b.Logf("%d rows, %d aggregates: %.3f s; by hand %.3f s with floats (%.2f times), %.3f s with integers (%.2f times); %d bytes sent, %d came; of ours %.3f", rows, aggregates, ours, floats, ours/floats, integers, ours/integers, sent, came, took["ours"])
			}
			if err := loader.Drop(b.Context(), &layout); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkTableOfAnEngine takes a table of ten columns from ClickHouse 18.16 into a file of Parquet, as an upload of path= does, beside the engine's own answer to the same statement, which nobody reads.
// HOLDOUTD_ROWS says of how many rows.
func BenchmarkTableOfAnEngine(b *testing.B) {
	rows, err := strconv.ParseInt(os.Getenv("HOLDOUTD_ROWS"), 10, 64)
	if err != nil {
		rows = 1_000_000
	}
	address := enginetest.ClickHouse18(b)
	loader, err := NewClickHouse(address.Address(0, "loader"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	m := &moving{}
	reader, err := NewClickHouse(address.Address(0, "reader"), Options{Transport: m})
	if err != nil {
		b.Fatal(err)
	}
	if err := loader.change(b.Context(), "CREATE TABLE wide ENGINE = MergeTree() ORDER BY a AS SELECT number AS a, intHash64(number) % 1000 AS b, toInt32(number % 31) AS c, intHash64(number) % 1000003 / 7 AS d, "+
		"if(number % 9 = 0, NULL, intHash64(number + 1) % 1000003 / 7) AS e, d * e AS f, toString(number % 4) AS g, concat('region ', toString(intHash64(number) % 50)) AS h, toDate(number % 10000) AS i, toDateTime(number) AS j FROM numbers("+fmt.Sprint(rows)+")", nil); err != nil {
		b.Fatal(err)
	}
	columns, err := reader.Columns(b.Context(), "wide")
	if err != nil {
		b.Fatal(err)
	}
	var declared []ingest.ValueColumn
	for i := range columns {
		declared = append(declared, columns[i].ValueColumn)
	}
	read := func(take func([]ingest.Values) error) float64 {
		begun := time.Now()
		if err := reader.Rows(b.Context(), "wide", columns, take); err != nil {
			b.Fatal(err)
		}
		return time.Since(begun).Seconds()
	}
	for b.Loop() {
		m.came.Store(0)
		nothing := read(func([]ingest.Values) error { return nil })
		f, err := os.Create(filepath.Join(b.TempDir(), "table.parquet"))
		if err != nil {
			b.Fatal(err)
		}
		w, err := ingest.NewWriter(f, declared)
		if err != nil {
			b.Fatal(err)
		}
		whole := read(w.Append)
		if err := errors.Join(w.Close(), f.Close()); err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		if _, _, err := reader.State(b.Context(), "wide", columns); err != nil {
			b.Fatal(err)
		}
		b.Logf("%d rows of 10 columns: %.1f s into a file, %.1f s where the rows are read and dropped; %d bytes came; %.1f s for the checksum, which is asked twice", rows, whole, nothing, m.came.Load()/2, time.Since(begun).Seconds())
	}
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
