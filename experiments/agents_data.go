package experiments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// realTable decodes a Parquet file as the server does, and copies its columns in their order, texts as codes alone.
func realTable(name, parquet string) (columns []dataset.Column, rows int, err error) {
	fail := func(err error) ([]dataset.Column, int, error) {
		return nil, 0, fmt.Errorf("experiments: %s: %w", name, err)
	}
	dir, err := os.MkdirTemp("", "holdoutd-"+name+"-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, name+".parquet")
	if err := os.WriteFile(path, []byte(parquet), 0o600); err != nil {
		return fail(err)
	}
	if _, err := ingest.Decode(context.Background(), path, filepath.Join(dir, "table"), ingest.Limits{}); err != nil {
		return fail(err)
	}
	table, err := dataset.Open(filepath.Join(dir, "table"))
	if err != nil {
		return fail(err)
	}
	defer table.Close()
	for i := range table.Columns() {
		c := *table.Column(i)
		c.Numbers, c.Codes, c.Dictionary = slices.Clone(c.Numbers), ranks(&c), dataset.Dictionary{}
		columns = append(columns, c)
	}
	return columns, table.Rows(), nil
}

// ranks are the codes of a column if its dictionary were sorted; nil without texts.
func ranks(c *dataset.Column) []uint32 {
	if c.Kind != dataset.Text {
		return nil
	}
	sorted := c.Dictionary.Sorted()
	rank := make([]uint32, len(sorted)+1)
	for i, text := range sorted {
		code, _ := c.Dictionary.Find(text)
		rank[code] = uint32(i) + 1
	}
	codes := slices.Clone(c.Codes)
	for i, code := range codes {
		codes[i] = rank[code]
	}
	return codes
}

// realColumns is realTable by the columns' names.
func realColumns(name, parquet string) (map[string]dataset.Column, int, error) {
	columns, rows, err := realTable(name, parquet)
	byName := make(map[string]dataset.Column, len(columns))
	for _, c := range columns {
		byName[c.Name] = c
	}
	return byName, rows, err
}

// flights is the demo's table: what is known before a flight leaves, and how late it came.
type flightsTable struct {
	hour, weekday, month []int // from 0, Monday and January first
	distance, delay      []float64
	origin, destination  []uint32 // codes
}

func (f flightsTable) rows() int { return len(f.delay) }

var flights = sync.OnceValues(func() (flightsTable, error) {
	columns, rows, err := realColumns("flights", data.Flights)
	if err != nil {
		return flightsTable{}, err
	}
	f := flightsTable{distance: columns["distance"].Numbers, delay: columns["delay"].Numbers,
		origin: columns["origin"].Codes, destination: columns["destination"].Codes}
	date := columns["date"].Numbers
	if len(date) != rows || len(f.delay) != rows || len(f.distance) != rows || len(f.origin) != rows || len(f.destination) != rows {
		return flightsTable{}, fmt.Errorf("experiments: the flights lack a column")
	}
	for _, v := range date {
		t := time.UnixMicro(int64(v)).UTC()
		f.hour, f.weekday, f.month = append(f.hour, t.Hour()), append(f.weekday, (int(t.Weekday())+6)%7), append(f.month, int(t.Month())-1)
	}
	return f, nil
})
