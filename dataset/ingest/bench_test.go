package ingest

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// benchPath is the file of HOLDOUTD_BENCH_PARQUET, or the small fixture.
func benchPath() string {
	if path := os.Getenv("HOLDOUTD_BENCH_PARQUET"); path != "" {
		return path
	}
	return fixture("flights-20k.parquet")
}

func benchTable(b *testing.B) *dataset.Table {
	table, _ := decode(b, benchPath())
	b.ResetTimer()
	return table
}

func perRow(b *testing.B, rows int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

func BenchmarkDecode(b *testing.B) {
	var res Result
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "table")
		var err error
		if res, err = Decode(context.Background(), benchPath(), dir, Limits{}); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b, int(res.Rows))
}

func BenchmarkExport(b *testing.B) {
	table := benchTable(b)
	for b.Loop() {
		if err := Export(io.Discard, table); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b, table.Rows())
}

func BenchmarkDigest(b *testing.B) {
	table := benchTable(b)
	for b.Loop() {
		if err := dataset.NewDigest().Add(table); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b, table.Rows())
}

func BenchmarkSelect(b *testing.B) {
	table := benchTable(b)
	order := make([]uint32, table.Rows())
	for i, row := range rand.New(rand.NewPCG(1, 1)).Perm(table.Rows()) {
		order[i] = uint32(row)
	}
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "selected")
		if err := dataset.Select(dir, table, order, nil); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b, table.Rows())
}

func BenchmarkOpen(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "table")
	res, err := Decode(context.Background(), benchPath(), dir, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		table, err := dataset.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		table.Close()
	}
	perRow(b, int(res.Rows))
}
