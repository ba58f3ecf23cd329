//go:build engines

package remote

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
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

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
